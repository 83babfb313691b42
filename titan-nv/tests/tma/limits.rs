//! The limits of the encoder.

use titan_nv::tma::TensorMapError as E;
use titan_nv::tma::{Element, Fill, L2Promotion, Swizzle, TensorMap};

fn map() -> TensorMap {
    let map = TensorMap::tiled(Element::Bf16, 0x1000, &[100, 70], &[208], &[64, 128]);
    TensorMap { swizzle: Swizzle::B128, l2: L2Promotion::B256, fill: Fill::Nan, ..map }
}

#[test]
fn limits_are_the_encoders() {
    assert_eq!(map().check(), Ok(()));
    let broken: [(TensorMap, E); 12] = [
        (TensorMap { rank: 0, ..map() }, E::Rank(0)),
        (TensorMap { rank: 6, ..map() }, E::Rank(6)),
        (TensorMap { address: 8, ..map() }, E::Address(8)),
        (TensorMap { extents: [100, 0, 1, 1, 1], ..map() }, E::Extent { dim: 1, extent: 0 }),
        (TensorMap { extents: [(1 << 32) + 1, 1, 1, 1, 1], ..map() }, E::Extent { dim: 0, extent: (1 << 32) + 1 }),
        (TensorMap { strides: [200, 0, 0, 0], ..map() }, E::Stride { dim: 1, stride: 200 }),
        (TensorMap { strides: [1 << 40, 0, 0, 0], ..map() }, E::Stride { dim: 1, stride: 1 << 40 }),
        (TensorMap { box_extents: [64, 257, 1, 1, 1], ..map() }, E::Box { dim: 1, extent: 257 }),
        (TensorMap { element_strides: [1, 9, 1, 1, 1], ..map() }, E::ElementStride { dim: 1, stride: 9 }),
        (TensorMap { element_strides: [2, 1, 1, 1, 1], ..map() }, E::InnermostStride(2)),
        (TensorMap { box_extents: [60, 1, 1, 1, 1], ..map() }, E::InnerBytes { bytes: 120 }),
        (TensorMap { box_extents: [72, 1, 1, 1, 1], ..map() }, E::Swizzle { bytes: 144, span: 128 }),
    ];
    for (map, error) in broken {
        assert_eq!(map.check(), Err(error));
    }
    assert_eq!(TensorMap { element: Element::U16, ..map() }.check(), Err(E::Fill));
    // Smaller strides after larger ones, and boxes larger than the tensor, are legal.
    let any = TensorMap { rank: 3, strides: [208, 16, 0, 0], box_extents: [64, 128, 256, 1, 1], ..map() };
    assert_eq!(any.check(), Ok(()));
}

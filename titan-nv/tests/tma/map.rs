//! Tensor maps as bytes.

use titan_nv::tma::{Element, Fill, L2Promotion, MAX_RANK, Swizzle, TensorMap};

/// The size of a map.
const BYTES: usize = 128;

fn map() -> TensorMap {
    let map = TensorMap::tiled(Element::Bf16, 0x1000, &[100, 70], &[208], &[64, 128]);
    TensorMap { swizzle: Swizzle::B128, l2: L2Promotion::B256, fill: Fill::Nan, ..map }
}

#[test]
fn bytes_say_everything() {
    let mut all = map();
    (all.extents, all.strides) = ([1, 2, 3, 4, 1 << 32], [16, 32, 48, (1 << 40) - 16]);
    (all.box_extents, all.element_strides) = ([256, 1, 2, 3, 4], [1, 8, 2, 3, 4]);
    for map in [map(), TensorMap { rank: 5, ..all }] {
        assert_eq!(TensorMap::from_bytes(&map.to_bytes()), Some(map));
    }
    assert_eq!(TensorMap::from_bytes(&[0; BYTES]), None);
    assert_eq!(TensorMap::from_bytes(&map().to_bytes()[..100]), None);
    let mut bytes = map().to_bytes();
    bytes[BYTES - 1] = 1;
    assert_eq!(TensorMap::from_bytes(&bytes), None);
}

#[test]
fn what_is_illegal_stays_so_in_bytes_and_overflows_nothing() {
    let (boxes, strides) = ([1 << 16 | 64; MAX_RANK], [257; MAX_RANK]);
    for map in [TensorMap { box_extents: boxes, ..map() }, TensorMap { element_strides: strides, ..map() }] {
        assert!(TensorMap::from_bytes(&map.to_bytes()).unwrap().check().is_err());
    }
    let huge = TensorMap { rank: 5, box_extents: [256; MAX_RANK], ..map() };
    assert_eq!(huge.box_bytes(), u32::MAX);
}

#[test]
fn a_box_has_every_so_manieth_element() {
    let map = TensorMap { element_strides: [1, 3, 1, 1, 1], ..map() };
    assert_eq!((map.tile(0), map.tile(1), map.box_bytes()), (64, 43, 64 * 43 * 2));
}

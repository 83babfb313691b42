//! Changes of one field of a tensor map.

use titan_nv::tma::{Element, Field, Fill, ReplaceError, Swizzle, TensorMap, TensorMapError};

/// The fields of a matrix of bf16, innermost dimension first.
const MATRIX: [(Field, u64); 11] = [
    (Field::Address, 0x1000),
    (Field::Rank, 1),
    (Field::Box(0), 64),
    (Field::Box(1), 128),
    (Field::Extent(0), 100),
    (Field::Extent(1), 70),
    (Field::Stride(0), 208),
    (Field::ElementStride(0), 1),
    (Field::ElementStride(1), 1),
    (Field::Element, 10),
    (Field::Swizzle, 3),
];

#[test]
fn every_field_set_on_zeros_is_the_map_of_the_host() {
    let mut bytes = [0; 128];
    for (i, (field, value)) in MATRIX.into_iter().enumerate() {
        field.replace(&mut bytes, value).unwrap();
        let legal = TensorMap::from_bytes(&bytes).unwrap().check().is_ok();
        assert_eq!(legal, i >= 8, "the last two may be zero: {field:?}");
    }
    let host = TensorMap::tiled(Element::Bf16, 0x1000, &[100, 70], &[208], &[64, 128]);
    let mut host = TensorMap { swizzle: Swizzle::B128, ..host };
    host.extents[2..].fill(0);
    host.box_extents[2..].fill(0);
    host.element_strides[2..].fill(0);
    assert_eq!(TensorMap::from_bytes(&bytes), Some(host));
    Field::Fill.replace(&mut bytes, 1).unwrap();
    assert_eq!(TensorMap::from_bytes(&bytes), Some(TensorMap { fill: Fill::Nan, ..host }));
}

#[test]
fn what_the_encoder_refuses_is_kept_and_refused_by_the_check() {
    let host = TensorMap::tiled(Element::U8, 0x1000, &[64, 70], &[64], &[64, 8]);
    for (field, value, broken) in [
        (Field::Address, 8, TensorMapError::Address(8)),
        (Field::Rank, 5, TensorMapError::Rank(6)),
        (Field::Rank, u64::from(u32::MAX), TensorMapError::Rank(255)),
        (Field::Box(1), 257, TensorMapError::Box { dim: 1, extent: 257 }),
        (Field::Box(1), 1 << 20, TensorMapError::Box { dim: 1, extent: 65535 }),
        (Field::Extent(1), 0, TensorMapError::Extent { dim: 1, extent: 0 }),
        (Field::Stride(0), 24, TensorMapError::Stride { dim: 0, stride: 24 }),
        (Field::ElementStride(1), 9, TensorMapError::ElementStride { dim: 1, stride: 9 }),
        (Field::Fill, 1, TensorMapError::Fill),
    ] {
        let mut bytes = host.to_bytes();
        field.replace(&mut bytes, value).unwrap();
        let refused = TensorMap::from_bytes(&bytes).unwrap().check().unwrap_err();
        assert_eq!(std::mem::discriminant(&refused), std::mem::discriminant(&broken), "{refused}");
        if !matches!(field, Field::Stride(_)) {
            assert_eq!(refused, broken);
        }
    }
}

#[test]
fn what_maps_do_not_have_is_an_error() {
    let mut bytes = TensorMap::tiled(Element::U8, 0x1000, &[64], &[], &[64]).to_bytes();
    let before = bytes;
    for (field, value) in
        [(Field::Element, 8), (Field::Element, 11), (Field::Interleave, 1), (Field::Swizzle, 4), (Field::Fill, 2)]
    {
        assert_eq!(field.replace(&mut bytes, value), Err(ReplaceError::Choice(field, value)));
    }
    assert_eq!(Field::Box(5).replace(&mut bytes, 1), Err(ReplaceError::Dim(5)));
    assert_eq!(Field::Stride(4).replace(&mut bytes, 16), Err(ReplaceError::Dim(4)));
    Field::Interleave.replace(&mut bytes, 0).unwrap();
    assert_eq!(bytes, before);
    bytes[0] = 7;
    assert_eq!(Field::Address.replace(&mut bytes, 0), Err(ReplaceError::NoMap));
}

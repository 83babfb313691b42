//! The maps of the arguments of a launch, and why there are none.

use titan_core::ir::{Const, Elem, Swizzle};
use titan_core::launch::abi::{GpuArg, MapParam, PartMap};
use titan_nv::tma::{TensorMap, Unfit};

/// A tensor of three axes and its map, of a box that is a plane.
fn told(address: u64, extents: [i32; 3], strides: [i64; 3]) -> String {
    let map =
        MapParam { param: 0, elem: Elem::F16, extents: vec![1, 8, 64], swizzle: Swizzle::B128, part: PartMap::Whole };
    let argument = GpuArg::Tensor { address, extents: extents.to_vec(), strides: strides.to_vec() };
    match TensorMap::of_argument(&map, &argument) {
        Ok(map) => format!("{map}, {:?}", map.strides),
        Err(why) => why.of_axes(3),
    }
}

#[test]
fn maps_are_innermost_first_and_reasons_count_axes_as_in_the_shape() {
    let (extents, strides) = ([3, 70, 100], [7280, 104, 1]);
    assert_eq!(
        told(0x1000, extents, strides),
        "F16 [100, 70, 3] in boxes of [64, 8, 1], swizzle B128, [208, 14560, 0, 0]"
    );
    for (address, extents, strides, why) in [
        (0x1008, extents, strides, "it begins at address 0x1008, which is not a multiple of 16"),
        (0, extents, strides, "the launch leaves it out"),
        (0x1000, [3, 0, 100], strides, "it has no elements along axis 1"),
        (0x1000, [3, 70, 0], strides, "it has no elements along axis 2"),
        (0x1000, extents, [7280, 104, 2], "neighbours along axis 2 are 2 elements apart, and must be adjacent"),
        (0x1000, extents, [7280, 104, 0], "neighbours along axis 2 are 0 elements apart, and must be adjacent"),
        (0x1000, extents, [7280, 104, -1], "neighbours along axis 2 are -1 elements apart, and must be adjacent"),
        (
            0x1000,
            extents,
            [7280, -104, 1],
            "neighbours along axis 1 are -104 elements apart: the distance must be positive",
        ),
        (0x1000, extents, [0, 104, 1], "neighbours along axis 0 are 0 elements apart: the distance must be positive"),
        (
            0x1000,
            extents,
            [7280, 101, 1],
            "neighbours along axis 1 are 202 bytes apart: multiples of 16 below 2^40 are possible",
        ),
        (
            0x1000,
            extents,
            [1 << 39, 104, 1],
            "neighbours along axis 0 are 549755813888 elements apart, which is 2^40 bytes or more",
        ),
        (0x1000, extents, [7000, 104, 1], "elements along axis 0 overlap those along other axes"),
        (0x1000, extents, [7280, 96, 1], "elements along axis 1 overlap those along other axes"),
        (u64::MAX - 0xFFF, extents, strides, "it ends beyond the last address"),
        (
            0x1000,
            [(1 << 30) + 1, 70, 100],
            strides,
            "coordinates along axis 0 are 0 to 1073741825: its extent can be at most 1073741824",
        ),
        (
            0x1000,
            [3, i32::MAX, 100],
            strides,
            "coordinates along axis 1 are 0 to 2147483647: its extent can be at most 1073741824",
        ),
    ] {
        assert_eq!(told(address, extents, strides), why);
    }
    // The largest possible extent.
    assert!(told(0x1000, [1 << 30, 70, 100], strides).starts_with("F16 [100, 70, 1073741824]"));
    // An axis of one element is never stepped along, so its stride may be anything.
    assert!(told(0x1000, [1, 1, 100], [-1, 0, 1]).starts_with("F16 [100, 1, 1]"));
    let map =
        MapParam { param: 0, elem: Elem::F16, extents: vec![8, 64], swizzle: Swizzle::B128, part: PartMap::Whole };
    for argument in [GpuArg::Absent, GpuArg::Scalar(Const::Int(Elem::I32, 1))] {
        assert_eq!(TensorMap::of_argument(&map, &argument), Err(Unfit::Absent));
    }
    let flat = GpuArg::Tensor { address: 0x1000, extents: vec![64], strides: vec![1] };
    assert_eq!(
        TensorMap::of_argument(&map, &flat).map_err(|why| why.of_axes(2)),
        Err("its rank is 1, and that of its boxes 2".to_owned())
    );
}

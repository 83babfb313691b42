//! Which tensors of a launch have maps.

use crate::brute::pick;
use std::ops::RangeInclusive;
use titan_nv::tma::{
    Direction, Element, L2Promotion, Memory, Request, Swizzle, Tensor, TensorMapError as E, Unfit, fit, tma,
};
use titan_sim::engine::Rng;

const REQUEST: Request<'_> =
    Request { boxes: &[64, 128], element_strides: &[], starts: &[], swizzle: Swizzle::B128, l2: L2Promotion::B256 };
const TENSOR: Tensor<'_> =
    Tensor { element: Element::Bf16, address: Some(0x7000_0000), extents: &[1000, 4096], strides: &[1, 1024] };

#[test]
fn a_view_narrower_than_its_rows_has_its_own_extents() {
    let map = fit(&TENSOR, &REQUEST).unwrap();
    assert_eq!((map.rank, &map.extents[..2], map.strides[0]), (2, &[1000, 4096][..], 2048));
    assert_eq!((map.swizzle, map.l2, map.check()), (Swizzle::B128, L2Promotion::B256, Ok(())));
    // Loads see nothing of the row beyond the view, and stores touch nothing of it.
    let request = Request { boxes: &[16, 2], swizzle: Swizzle::None, ..REQUEST };
    let view = Tensor { element: Element::U8, extents: &[20, 3], strides: &[1, 32], ..TENSOR };
    let map = fit(&view, &request).unwrap();
    let (mut global, mut shared) = ([7_u8; 96], [0xCC; 32]);
    tma(&[16, 0], 0, &map, Direction::Load, Memory { global: &mut global, shared: &mut shared }).unwrap();
    assert_eq!(shared.map(|b| b == 7).iter().filter(|b| **b).count(), 2 * 4);
    assert_eq!((shared[3], shared[4], shared[16], shared[20]), (7, 0, 7, 0));
    shared = [9; 32];
    tma(&[16, 0], 0, &map, Direction::Store, Memory { global: &mut global, shared: &mut shared }).unwrap();
    assert_eq!((global[19], global[20], global[31], global[32 + 19], global[32 + 20]), (9, 7, 7, 9, 7));
}

#[test]
fn each_reason_is_told() {
    let refused = |tensor: Tensor<'_>, why: Unfit| assert_eq!(fit(&tensor, &REQUEST).unwrap_err(), why);
    refused(Tensor { address: None, ..TENSOR }, Unfit::Absent);
    refused(Tensor { address: Some(0), ..TENSOR }, Unfit::Absent);
    refused(Tensor { address: Some(0x7000_0008), ..TENSOR }, Unfit::Map(E::Address(0x7000_0008)));
    refused(Tensor { extents: &[0, 4096], ..TENSOR }, Unfit::Empty { dim: 0 });
    refused(Tensor { extents: &[1000, 0], ..TENSOR }, Unfit::Empty { dim: 1 });
    refused(Tensor { extents: &[1000], ..TENSOR }, Unfit::Ranks { extents: 1, strides: 2, boxes: 2 });
    // A column-major tensor, a flipped row, a row of one element again and again.
    for stride in [4096, -1, 0, 2] {
        refused(Tensor { strides: &[stride, 1024], ..TENSOR }, Unfit::InnermostStride { stride });
    }
    for stride in [0, -1024] {
        refused(Tensor { strides: &[1, stride], ..TENSOR }, Unfit::StrideSign { dim: 1, stride });
    }
    // Odd, and even but no multiple of 16 bytes.
    refused(Tensor { strides: &[1, 1001], ..TENSOR }, Unfit::Map(E::Stride { dim: 1, stride: 2002 }));
    refused(Tensor { strides: &[1, 1004], ..TENSOR }, Unfit::Map(E::Stride { dim: 1, stride: 2008 }));
    for stride in [1 << 39, i64::MAX] {
        refused(Tensor { strides: &[1, stride], ..TENSOR }, Unfit::StrideSize { dim: 1, stride });
    }
    refused(Tensor { strides: &[1, 992], ..TENSOR }, Unfit::Overlap { dim: 1 });
    let extent = (1 << 32) + 1;
    refused(Tensor { extents: &[extent, 1], ..TENSOR }, Unfit::Map(E::Extent { dim: 0, extent }));
    refused(Tensor { address: Some(u64::MAX - 4095), ..TENSOR }, Unfit::End);
}

#[test]
fn each_reason_of_a_request_is_told() {
    let refused = |request: Request<'_>, why: Unfit| assert_eq!(fit(&TENSOR, &request).unwrap_err(), why);
    refused(Request { boxes: &[64], ..REQUEST }, Unfit::Ranks { extents: 2, strides: 2, boxes: 1 });
    refused(Request { element_strides: &[1], ..REQUEST }, Unfit::Ranks { extents: 2, strides: 2, boxes: 2 });
    refused(Request { boxes: &[64, 257], ..REQUEST }, Unfit::Map(E::Box { dim: 1, extent: 257 }));
    refused(Request { boxes: &[64, 0], ..REQUEST }, Unfit::Map(E::Box { dim: 1, extent: 0 }));
    refused(Request { boxes: &[60, 8], ..REQUEST }, Unfit::Map(E::InnerBytes { bytes: 120 }));
    refused(Request { boxes: &[128, 8], ..REQUEST }, Unfit::Map(E::Swizzle { bytes: 256, span: 128 }));
    // The encoder accepts this, but the position of its rows is unspecified.
    refused(Request { boxes: &[32, 8], ..REQUEST }, Unfit::Rows { bytes: 64, span: 128 });
    refused(Request { element_strides: &[1, 9], ..REQUEST }, Unfit::Map(E::ElementStride { dim: 1, stride: 9 }));
    refused(Request { element_strides: &[2, 1], ..REQUEST }, Unfit::Map(E::InnermostStride(2)));
    let large = Request { boxes: &[256, 256], swizzle: Swizzle::None, ..REQUEST };
    assert_eq!(fit(&Tensor { element: Element::F32, ..TENSOR }, &large).unwrap_err(), Unfit::Shared { bytes: 1 << 18 });
    let ranks = Tensor { extents: &[8; 6], strides: &[1; 6], ..TENSOR };
    assert_eq!(fit(&ranks, &Request { boxes: &[8; 6], ..REQUEST }).unwrap_err(), Unfit::Map(E::Rank(6)));
    let none = Tensor { extents: &[], strides: &[], ..TENSOR };
    assert_eq!(fit(&none, &Request { boxes: &[], ..REQUEST }).unwrap_err(), Unfit::Map(E::Rank(0)));
}

#[test]
fn coordinates_have_32_bits() {
    let of = |extent: u64, starts: &[RangeInclusive<i64>]| {
        let tensor = Tensor { element: Element::U8, extents: &[16, extent], strides: &[1, 16], ..TENSOR };
        let request = Request { boxes: &[16, 128], swizzle: Swizzle::None, starts, ..REQUEST };
        fit(&tensor, &request).map(|map| map.extents[1])
    };
    let two_31 = 1_u64 << 31;
    // The last box of 2^31 elements ends at 2^31 - 1.
    assert_eq!(of(two_31, &[]), Ok(two_31));
    let (dim, high) = (1, (1 << 31) + 127);
    assert_eq!(of(two_31 + 1, &[]), Err(Unfit::Coordinates { dim, low: 0, high }));
    // A launch that reads no farther may have more.
    assert_eq!(of(1 << 32, &[0..=0, 0..=1_000_000]), Ok(1 << 32));
    let low = i64::from(i32::MIN) - 1;
    assert_eq!(of(8, &[0..=0, low..=0]), Err(Unfit::Coordinates { dim, low, high: 127 }));
    assert_eq!(of(8, &[0..=0, -128..=i64::MAX]), Err(Unfit::Coordinates { dim, low: -128, high: i64::MAX }));
}

#[test]
fn a_dimension_of_one_element_has_any_stride() {
    for stride in [0, -7, 1, 1001, i64::MIN, i64::MAX] {
        let row = Tensor { extents: &[1000, 1], strides: &[1, stride], ..TENSOR };
        assert_eq!(fit(&row, &REQUEST).unwrap().extents[..2], [1000, 1]);
        let column = Tensor { extents: &[1, 4096], strides: &[stride, 1024], ..TENSOR };
        assert_eq!(fit(&column, &REQUEST).unwrap().extents[..2], [1, 4096]);
    }
}

/// Heads within rows, and a row in pieces of 64: strides in any order, as long as nothing overlaps.
#[test]
fn strides_need_no_order() {
    let request = Request { boxes: &[64, 128, 1], ..REQUEST };
    let of =
        |extents: &[u64], strides: &[i64]| fit(&Tensor { extents, strides, ..TENSOR }, &request).map(|map| map.strides);
    assert_eq!(of(&[64, 512, 8], &[1, 512, 64]), Ok([1024, 128, 0, 0]));
    assert_eq!(of(&[64, 100, 16], &[1, 1024, 64]), Ok([2048, 128, 0, 0]));
    // Rows of 1000 elements in 16 pieces: the last one ends in the next row.
    assert_eq!(of(&[64, 100, 16], &[1, 1000, 64]), Err(Unfit::Overlap { dim: 1 }));
    // Windows that slide by 8.
    assert_eq!(of(&[64, 100, 4], &[1, 8, 4096]), Err(Unfit::Overlap { dim: 1 }));
}

/// Any tensor that has a map: the map's addresses are the tensor's, all within it, no two alike.
#[test]
fn maps_have_the_addresses_of_their_tensors() {
    let mut rng = Rng::new(31);
    let (mut fitted, mut unfit) = (0, 0);
    for _ in 0..20_000 {
        let rank = pick(&mut rng, 1..=4) as usize;
        let extents: Vec<u64> = (0..rank).map(|_| pick(&mut rng, 0..=5) as u64).collect();
        let mut strides: Vec<i64> = (0..rank).map(|_| 4 * pick(&mut rng, -2..=24)).collect();
        strides[0] = pick(&mut rng, 0..=20).min(2) - 1;
        strides[0] += i64::from(strides[0] == 0);
        let boxes: Vec<u32> = (0..rank).map(|d| if d == 0 { 4 } else { pick(&mut rng, 1..=3) as u32 }).collect();
        let address = 0x7000_0000 + 4 * pick(&mut rng, 0..=20).min(3) as u64 / 3 * 4;
        let tensor = Tensor { element: Element::F32, address: Some(address), extents: &extents, strides: &strides };
        let request = Request { boxes: &boxes, swizzle: Swizzle::None, ..REQUEST };
        let Ok(map) = fit(&tensor, &request) else {
            unfit += 1;
            continue;
        };
        fitted += 1;
        let mut seen = std::collections::BTreeSet::new();
        for at in 0..extents.iter().product() {
            let (mut rest, mut own, mut of_map) = (at, 0, 0);
            for dim in 0..rank {
                let i = rest % extents[dim];
                rest /= extents[dim];
                own += 4 * i as i64 * strides[dim];
                of_map += i * if dim == 0 { 4 } else { map.strides[dim - 1] };
            }
            assert_eq!((own, map.address), (of_map as i64, address));
            assert!(seen.insert(of_map), "{extents:?} {strides:?}");
        }
    }
    assert!(fitted > 300 && unfit > 300, "{fitted} {unfit}");
}

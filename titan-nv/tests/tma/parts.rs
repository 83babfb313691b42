//! Maps for parts of a tensor: copies by the coordinates that `MapParam` states are those of the part, row by row, for all small parts and
//! for the largest; every other coordinate copies something else.

use crate::brute::pick;
use titan_core::ir::{self, Elem};
use titan_core::launch::abi::{GpuArg, MapParam, PartMap};
use titan_nv::tma::{Direction, Memory, TensorMap, TensorMapError, Unfit, tma};
use titan_sim::engine::Rng;

const MOST: i64 = MapParam::MOST_EXTENT as i64;

/// A tensor of halves at address 16, of which parts along an axis are copied in boxes.
#[derive(Clone, Debug)]
struct Case {
    /// Axis 0 first.
    extents: Vec<i32>,
    strides: Vec<i64>,
    boxes: Vec<u32>,
    axis: usize,
}

impl Case {
    fn map(&self) -> Result<TensorMap, Unfit> {
        let part = PartMap::Along(u8::try_from(self.axis).expect("few axes"));
        let map = MapParam { param: 0, elem: Elem::F16, extents: self.boxes.clone(), swizzle: ir::Swizzle::None, part };
        let (extents, strides) = (self.extents.clone(), self.strides.clone());
        TensorMap::of_argument(&map, &GpuArg::Tensor { address: 16, extents, strides })
    }

    /// The coordinates of the tile that begins at `first` of the part, the innermost dimension first.
    fn coordinates(&self, [lo, hi]: [i64; 2], first: &[i64]) -> Vec<i32> {
        let mut all = first.to_vec();
        let (n, i) = (hi - lo, first[self.axis]);
        all[self.axis] = if (0..n).contains(&i) { MOST - n + i } else { MOST };
        all.reverse();
        all.extend([hi, MOST]);
        all.into_iter().map(|x| i32::try_from(x).expect("32 bits")).collect()
    }
}

/// A tensor whose rows have a few elements behind them, in boxes that no extent is a multiple of.
fn random(rng: &mut Rng) -> Case {
    let rank = pick(rng, 2..=3) as usize;
    let extents: Vec<i32> = (0..rank).map(|_| pick(rng, 1..=5) as i32).collect();
    let mut strides = vec![1; rank];
    let mut distance = 8 * pick(rng, 1..=2);
    for axis in (0..rank - 1).rev() {
        strides[axis] = distance;
        distance *= i64::from(extents[axis]) + pick(rng, 0..=1);
    }
    let mut boxes: Vec<u32> = (0..rank).map(|_| pick(rng, 1..=3) as u32).collect();
    boxes[rank - 1] = 8;
    Case { extents, strides, boxes, axis: pick(rng, 0..=rank as i64 - 2) as usize }
}

/// The bytes of a tensor's memory, all different from zero and from each other as far as possible.
fn memory(case: &Case) -> Vec<u8> {
    let last: i64 = case.extents.iter().zip(&case.strides).map(|(n, s)| (i64::from(*n) - 1) * s).sum();
    (0..2 * (last + 1)).map(|i| (i % 255 + 1) as u8).collect()
}

/// Every position of a box, the first axis slowest.
fn positions(boxes: &[u32]) -> Vec<Vec<i64>> {
    boxes.iter().fold(vec![Vec::new()], |all, n| {
        all.iter().flat_map(|p| (0..i64::from(*n)).map(move |i| [&p[..], &[i]].concat())).collect()
    })
}

/// Where each position of the box at `first` of the part lies in memory; `None` outside of the part.
fn places(case: &Case, [lo, hi]: [i64; 2], first: &[i64]) -> Vec<Option<usize>> {
    let of = |position: Vec<i64>| {
        let mut at = 0;
        for (axis, (x, i)) in first.iter().zip(position).enumerate() {
            let (from, to) = if axis == case.axis { (lo, hi) } else { (0, case.extents[axis].into()) };
            let index = x + i;
            if index < 0 || index >= to - from {
                return None;
            }
            at += (from + index) * case.strides[axis];
        }
        Some(2 * at as usize)
    };
    positions(&case.boxes).into_iter().map(of).collect()
}

/// Whether a load and a store at these coordinates are those of the part.
fn is_right(case: &Case, map: &TensorMap, part: [i64; 2], first: &[i64], x: &[i32]) -> bool {
    let wanted = places(case, part, first);
    let bytes = map.box_bytes() as usize;
    let before = memory(case);
    let (mut global, mut shared) = (before.clone(), vec![0xCC; bytes]);
    let loaded = tma(x, 0, map, Direction::Load, Memory { global: &mut global, shared: &mut shared });
    let of = |at: &Option<usize>| at.map_or([0; 2], |at| [before[at], before[at + 1]]);
    let right = shared.as_chunks().0.iter().copied().eq(wanted.iter().map(of));
    let mut after = before.clone();
    let stored = tma(x, 0, map, Direction::Store, Memory { global: &mut global, shared: &mut vec![0; bytes] });
    for at in wanted.into_iter().flatten() {
        after[at..at + 2].fill(0);
    }
    loaded.is_ok() && stored.is_ok() && right && global == after
}

/// All parts of random tensors, with tiles inside of them, across their ends, and behind them; the greatest coordinates among them.
#[test]
fn copies_of_parts_are_of_the_part_alone() {
    let mut rng = Rng::new(23);
    let (mut copies, mut empty, mut cut) = (0, 0, 0);
    for _ in 0..300 {
        let case = random(&mut rng);
        let map = case.map().unwrap_or_else(|e| panic!("{case:?}: {e}"));
        let rows = i64::from(case.extents[case.axis]);
        for part in (0..=rows).flat_map(|lo| (lo..=rows).map(move |hi| [lo, hi])) {
            let n = part[1] - part[0];
            for i in [-2, -1, 0, 1, 2, 3, 4, 5, MOST - 256].into_iter().chain(n.checked_sub(1)) {
                let mut first: Vec<i64> = case.extents.iter().map(|n| pick(&mut rng, -1..=i64::from(*n))).collect();
                first[case.axis] = i;
                // A tile before a part does not exist, as opposed to one that reaches into it.
                if (-i64::from(case.boxes[case.axis])..0).contains(&i) {
                    continue;
                }
                let x = case.coordinates(part, &first);
                assert!(is_right(&case, &map, part, &first, &x), "{case:?} {part:?} {first:?}: {x:?}");
                copies += 1;
                empty += i32::from(n == 0);
                cut += i32::from((0..n).contains(&i) && i + i64::from(case.boxes[case.axis]) > n && part[1] < rows);
            }
        }
    }
    assert!(copies > 5000 && empty > 1000 && cut > 500, "{copies} {empty} {cut}");
}

/// Each coordinate matters, and each stride.
#[test]
fn other_coordinates_and_strides_copy_something_else() {
    let mut rng = Rng::new(29);
    for _ in 0..200 {
        let case = random(&mut rng);
        let map = case.map().expect("it fits");
        let rank = case.extents.len();
        let rows = i64::from(case.extents[case.axis]);
        let (part, first) = ([0, rows], vec![0; rank]);
        let x = case.coordinates(part, &first);
        assert!(is_right(&case, &map, part, &first, &x));
        for dim in [rank - 1 - case.axis, rank, rank + 1] {
            for by in [-1, 1] {
                let mut other = x.clone();
                other[dim] += by;
                assert!(!is_right(&case, &map, part, &first, &other), "{case:?} {x:?} {other:?}");
            }
        }
        for dim in [rank - 1, rank] {
            let mut other = map;
            other.strides[dim] += 16;
            assert!(!is_right(&case, &other, part, &first, &x), "{case:?} {other:?}");
        }
    }
}

/// Extents and bounds up to 2³⁰, and distances of rows up to 2³⁴ - 16: each coordinate has 32 bits, is inside of its extent exactly if the row
/// is in the part, and the sum is the row's address, all in exact arithmetic.
#[test]
fn the_largest_parts_and_strides() {
    let ends = |most: i64| [0, 1, 2, 255, most / 2, most - 256, most - 2, most - 1, most];
    for (rows, pitch) in [16i64, 32, 1 << 20, (1 << 33) - 16, (1 << 34) - 16]
        .into_iter()
        .flat_map(|pitch| [1, 2, 1 << 29, MOST - 1, MOST].map(|rows| (rows, pitch)))
    {
        let extents = vec![i32::try_from(rows).expect("an extent"), 8];
        let case = Case { extents, strides: vec![pitch / 2, 1], boxes: vec![64, 8], axis: 0 };
        let map = case.map().unwrap_or_else(|e| panic!("{case:?}: {e}"));
        assert_eq!(map.check(), Ok(()));
        // The stride of one row is not given: no row but the first is reached.
        let pitch = if rows == 1 { 16 } else { pitch };
        let parts = ends(rows).into_iter().flat_map(|lo| ends(rows).map(|hi| [lo, hi]));
        for [lo, hi] in parts.filter(|[lo, hi]| (0..=*hi).contains(lo) && *hi <= rows) {
            for i in ends(hi - lo).into_iter().chain(ends(MOST)).filter(|i| (0..=MOST).contains(i)) {
                let x = case.coordinates([lo, hi], &[i, 0]);
                for down in [0, 1, 63] {
                    let along = i64::from(x[1]) + down;
                    assert!((0..=i64::from(i32::MAX)).contains(&along));
                    let at = [0, along, x[2].into(), x[3].into()];
                    let inside = (0..4).all(|dim| at[dim] >= 0 && at[dim].cast_unsigned() < map.extents[dim]);
                    assert_eq!(inside, i < hi - lo && i + down < hi - lo, "{case:?} {lo}..{hi}, {i} + {down}");
                    let sum: i128 = (1..4).map(|dim| i128::from(at[dim]) * i128::from(map.strides[dim - 1])).sum();
                    let row = i128::from(lo + i + down) * i128::from(pitch);
                    assert!(!inside || sum == (1 << 64) + row, "{case:?} {lo}..{hi}, {i} + {down}: {sum} {row}");
                }
            }
        }
    }
}

#[test]
fn tensors_without_a_map_for_parts() {
    let case = Case { extents: vec![6, 5, 8], strides: vec![40, 8, 1], boxes: vec![1, 4, 8], axis: 1 };
    assert_eq!(case.map().map(|map| map.rank), Ok(5));
    let four = Case { extents: vec![6; 4], strides: vec![8000, 400, 8, 1], boxes: vec![1, 1, 4, 8], axis: 1 };
    assert_eq!(four.map(), Err(Unfit::Map(TensorMapError::Rank(6))));
    assert_eq!(Case { axis: 2, ..case.clone() }.map(), Err(Unfit::PartDimension { dim: 0 }));
    let far = |stride| Case { strides: vec![stride, 8, 1], axis: 0, ..case.clone() }.map();
    assert_eq!(far((1 << 33) - 8).map(|map| map.strides[3]), Ok(16));
    for stride in [1 << 33, (1 << 33) + 8, (1 << 39) - 8] {
        assert_eq!(far(stride), Err(Unfit::PartStride { dim: 2, bytes: 2 * stride.cast_unsigned() }));
        let sentence = "neighbours along axis 0 are ";
        assert!(far(stride).is_err_and(|why| why.of_axes(3).starts_with(sentence)), "{stride}");
    }
    // What no map describes has none for its parts either.
    assert_eq!(Case { extents: vec![0, 5, 8], ..case.clone() }.map(), Err(Unfit::Empty { dim: 2 }));
    assert!(matches!(far(41), Err(Unfit::Map(TensorMapError::Stride { .. }))));
    assert!(matches!(Case { extents: vec![i32::MAX, 5, 8], ..case }.map(), Err(Unfit::Coordinates { .. })));
}

//! The reference function, against formulas.

use crate::brute::pick;
use titan_nv::tma::{Direction, Element, Fill, Memory, Swizzle, TensorMap, Undefined, tma};
use titan_sim::engine::Rng;

const ELEMENTS: [Element; 10] = [
    Element::U8,
    Element::U16,
    Element::U32,
    Element::I32,
    Element::U64,
    Element::I64,
    Element::F16,
    Element::F32,
    Element::F64,
    Element::Bf16,
];

fn load(map: &TensorMap, x: &[i32], sa: u64, global: &mut [u8], bytes: usize) -> Vec<u8> {
    let mut shared = vec![0xCC; bytes];
    tma(x, sa, map, Direction::Load, Memory { global, shared: &mut shared }).unwrap();
    shared
}

/// A map with rows of `row` bytes in the box, and memory that holds its tensor.
fn random(rng: &mut Rng, row: u32) -> (TensorMap, Vec<u8>, Vec<i32>) {
    let element = ELEMENTS[rng.below(10)];
    let rank = pick(rng, 1..=5) as usize;
    let extents: Vec<u64> = (0..rank).map(|d| pick(rng, 1..=if d == 0 { 40 } else { 6 }) as u64).collect();
    let mut bytes = (extents[0] * u64::from(element.bytes())).next_multiple_of(16);
    let mut strides = Vec::new();
    for extent in &extents[1..] {
        strides.push(bytes);
        bytes *= extent;
    }
    let mut boxes: Vec<u32> = (0..rank).map(|_| pick(rng, 1..=3) as u32).collect();
    boxes[0] = row / element.bytes();
    let mut map = TensorMap::tiled(element, 0x1000, &extents, &strides, &boxes);
    for dim in 1..rank {
        map.element_strides[dim] = pick(rng, 1..=3) as u32;
    }
    let x = (0..rank).map(|dim| pick(rng, -4..=extents[dim] as i64 + 2) as i32).collect();
    let global = (0..bytes).map(|_| rng.next_u64() as u8 | 1).collect();
    (map, global, x)
}

#[test]
fn elements_are_where_the_formula_has_them() {
    let mut rng = Rng::new(11);
    let (mut inside, mut outside) = (0, 0);
    for _ in 0..2000 {
        let (mut map, mut global, x) = random(&mut rng, 48);
        map.fill = if map.element.is_float() { Fill::Nan } else { Fill::Zero };
        let (n, bytes) = (map.element.bytes() as usize, map.box_bytes() as usize);
        let shared = load(&map, &x, 32, &mut global, bytes + 40);
        assert!(shared[..32].iter().chain(&shared[32 + bytes..]).all(|b| *b == 0xCC));
        for at in 0..bytes / n {
            // The position, digit by digit.
            let mut rest = at;
            let mut from = Some(0);
            for dim in 0..map.dims() {
                let tile = map.tile(dim) as usize;
                let p = i64::from(x[dim]) + (rest % tile) as i64 * i64::from(map.element_strides[dim]);
                let stride = if dim == 0 { n as u64 } else { map.strides[dim - 1] };
                from = from
                    .filter(|_| p >= 0 && p < map.extents[dim] as i64)
                    .map(|from| from + p as usize * stride as usize);
                rest /= tile;
            }
            let fill = if map.fill == Fill::Nan { [0xFF; 8] } else { [0; 8] };
            let expected = from.map_or(&fill[..n], |from| &global[from..from + n]);
            assert_eq!(&shared[32 + at * n..][..n], expected, "{map:?} at {x:?}");
            *if from.is_some() { &mut inside } else { &mut outside } += 1;
        }
    }
    assert!(inside > 1000 && outside > 1000, "{inside} {outside}");
}

#[test]
fn a_swizzle_moves_units_of_sixteen_bytes() {
    let mut rng = Rng::new(12);
    for (swizzle, span) in [(Swizzle::B32, 32), (Swizzle::B64, 64), (Swizzle::B128, 128)] {
        let mut moved = 0;
        for _ in 0..300 {
            let (map, mut global, x) = random(&mut rng, span);
            let bytes = map.box_bytes() as usize;
            // From the middle of a pattern too.
            let sa = 128 * pick(&mut rng, 0..=8) as usize;
            let room = (sa + bytes).next_multiple_of(1024);
            let plain = load(&map, &x, sa as u64, &mut global, room);
            let swizzled = load(&TensorMap { swizzle, ..map }, &x, sa as u64, &mut global, room);
            for at in sa..sa + bytes {
                assert_eq!(swizzled[swizzle.apply(at as u64) as usize], plain[at], "{swizzle:?} {at}");
            }
            moved += u32::from(plain != swizzled);
        }
        assert!(moved > 20, "{swizzle:?} {moved}");
    }
}

#[test]
fn a_store_is_the_load_backwards_and_touches_nothing_else() {
    let mut rng = Rng::new(13);
    for swizzle in [Swizzle::None, Swizzle::B128] {
        for _ in 0..500 {
            let (map, mut global, x) = random(&mut rng, 128);
            let map = TensorMap { swizzle, ..map };
            let room = (map.box_bytes() as usize).next_multiple_of(1024);
            let mut shared = load(&map, &x, 0, &mut global, room);
            // What is stored over zeros is what was loaded.
            let mut stored = vec![0; global.len()];
            tma(&x, 0, &map, Direction::Store, Memory { global: &mut stored, shared: &mut shared }).unwrap();
            assert!(stored.iter().zip(&global).all(|(to, from)| *to == 0 || to == from));
            let again = load(&map, &x, 0, &mut stored, room);
            assert_eq!(again, shared);
            // All of the tensor's bytes are odd, and nothing else is.
            let odd = |bytes: &[u8]| bytes.iter().filter(|b| **b & 1 == 1).count();
            assert_eq!(odd(&stored), odd(&shared));
        }
    }
}

#[test]
fn a_box_before_the_tensor_is_all_zeros() {
    let mut rng = Rng::new(14);
    for _ in 0..300 {
        let (map, mut global, _) = random(&mut rng, 48);
        let before: Vec<i32> = map.box_extents[..map.dims()].iter().map(|b| -(*b as i32)).collect();
        let bytes = map.box_bytes() as usize;
        assert_eq!(load(&map, &before, 0, &mut global, bytes), vec![0; bytes]);
    }
}

#[test]
fn what_is_not_defined_is_told() {
    let map = TensorMap::tiled(Element::F32, 0, &[8, 8], &[32], &[4, 2]);
    let run = |map: &TensorMap, x: &[i32], global: usize, shared: usize| {
        let (mut global, mut shared) = (vec![0; global], vec![0; shared]);
        tma(x, 0, map, Direction::Load, Memory { global: &mut global, shared: &mut shared })
    };
    assert_eq!(run(&map, &[0, 0], 256, 32), Ok(()));
    assert_eq!(run(&map, &[0], 256, 32), Err(Undefined::Coordinates { rank: 2, coordinates: 1 }));
    assert_eq!(run(&map, &[0, 0], 47, 32), Err(Undefined::Outside { memory: "global", at: 44, bytes: 47 }));
    assert_eq!(run(&map, &[0, 0], 256, 31), Err(Undefined::Outside { memory: "shared", at: 28, bytes: 31 }));
    let narrow = TensorMap { swizzle: Swizzle::B32, ..map };
    assert_eq!(run(&narrow, &[0, 0], 256, 32), Err(Undefined::Rows { bytes: 16, span: 32 }));
    // The ends of the coordinates.
    assert_eq!(run(&map, &[i32::MAX, i32::MIN], 256, 32), Ok(()));
}

/// One map for all parts `lo..hi` of the rows of a matrix: extents and strides whose products wrap, so that the engine stops at the end of
/// the part that the coordinates name.
#[test]
fn one_map_ends_wherever_its_coordinates_say() {
    let (rows, most) = (12_i32, 0x7fff_0000);
    let (extents, strides) = ([16, 1 << 30, most, most], [16, 16, (1 << 34) - 16]);
    let map = TensorMap::tiled(Element::U8, 0x1000, &extents, &strides, &[16, 4, 1, 1]);
    map.check().unwrap();
    let mut global: Vec<u8> = (0..rows).flat_map(|row| [row as u8 + 1; 16]).collect();
    for (lo, hi) in (0..=rows).flat_map(|lo| (lo..=rows).map(move |hi| (lo, hi))) {
        for first in 0..=hi - lo {
            let x = [0, (1 << 30) - (hi - lo) + first, hi, 1 << 30];
            let shared = load(&map, &x, 0, &mut global, 64);
            let row = |i: i32| if lo + first + i < hi { (lo + first + i) as u8 + 1 } else { 0 };
            let want: Vec<u8> = (0..4).flat_map(|i| [row(i); 16]).collect();
            assert_eq!(shared, want, "row {first} of {lo}..{hi}");
        }
    }
}

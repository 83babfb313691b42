//! Products of parts of tensors whose ends only the device knows, and of which bulk copies need maps that the device makes, in all ways
//! (`ways`): parts along the last axis, by which sums are grouped; parts of parts; parts of tensors with four axes.
//!
//! All numbers are small and whole, so that every sum is exact.

use super::gpu::{Code, hopper};
use super::moved::{Moved, moved_coordinates};
use super::rng::Rng;
use super::ways::{Counts, compare};
use super::{execute, grid, program_grid};
use titan_core::driver::{Stages, stages};
use titan_core::ir::{Const, Elem};
use titan_core::launch::abi::PartMap;
use titan_core::num;
use titan_core::text::parse_one;
use titan_core::verify::{Verified, verify};
use titan_sim::engine::Completion;
use titan_sim::sim;

/// The extents of a tile: rows, columns, depth of a step.
type Tile = [u32; 3];

/// Which parts a kernel multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    /// Columns `off[e]..off[e + 1]` of both operands.
    Columns,
    /// The same by another array of ends, and columns `from..to` of these columns.
    OfColumns,
    /// Columns `3..to` for all programs.
    Same,
    /// Rows `off[e]..off[e + 1]` of a tensor with four axes, with two of them fixed; so is the output.
    Rows,
}

fn kernel(elem: Elem, tile: Tile, of: Parts) -> Verified {
    let text = text(elem, tile, of);
    verify(parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn text(elem: Elem, [bm, bn, bk]: Tile, of: Parts) -> String {
    let view = |name: &str| match of {
        Parts::Columns => format!("%{name}e = slice<1> %{name}, %lo, %hi : tensor<{elem}, 2>"),
        Parts::OfColumns => format!(
            "%{name}o = slice<1> %{name}, %lo, %end : tensor<{elem}, 2>\n%{name}e = slice<1> %{name}o, %from, %to : tensor<{elem}, 2>"
        ),
        Parts::Same => format!("%{name}e = slice<1> %{name}, %three, %to : tensor<{elem}, 2>"),
        Parts::Rows => format!(
            "%{name}s = segment %{name}, %off, %e : tensor<{elem}, 4>\n%{name}i = index<1> %{name}s, %one : tensor<{elem}, 3>\n\
             %{name}e = index<1> %{name}i, %0 : tensor<{elem}, 2>"
        ),
    };
    let (x, z, y, out) = match of {
        Parts::Rows => ("[R, 2, 2, K]", "[E, N, K]", format!("{elem}>[R, 2, 2, N]"), view("y")),
        Parts::Columns | Parts::OfColumns | Parts::Same => {
            ("[M, T]", "[N, T]", format!("{elem}>[E, M, N]"), format!("%ye = index<0> %y, %e : tensor<{elem}, 2>"))
        }
    };
    let (rows, second) = match of {
        Parts::Rows => ("R", format!("%ze = index<0> %z, %e : tensor<{elem}, 2>")),
        Parts::Columns | Parts::OfColumns | Parts::Same => ("M", view("z")),
    };
    let bounds = match of {
        Parts::Rows => "",
        Parts::Columns | Parts::OfColumns | Parts::Same => {
            "%f = add %e, %one : i32\n%lo = get %off[%e] : i32\n%hi = get %off[%f] : i32\n%end = get %ends[%e] : i32"
        }
    };
    format!(
        "kernel @parts(%x: in tensor<{elem}>{x}, %z: in tensor<{elem}>{z}, %off: in tensor<i32>[E + 1], %ends: in tensor<i32>[E], \
         %y: mut tensor<{y}, %from: i32, %to: i32) grid(E, cdiv({rows}, {bm}), cdiv(N, {bn})) {{
    %e = program_id<0> : i32
    %m = program_id<1> : i32
    %n = program_id<2> : i32
    %0 = const 0 : i32
    %one = const 1 : i32
    %three = const 3 : i32
    {bounds}
    {first}
    {second}
    %len = dim<1> %xe : i32
    %bk = const {bk} : i32
    %more = const {} : i32
    %up = add %len, %more : i32
    %steps = div %up, %bk : i32
    %start = const 0.0 : f32
    %zero = splat %start : tile<{bm}x{bn}xf32>
    %sum = for %k = %0 to %steps step %one pipelined carry(%acc = %zero) : tile<{bm}x{bn}xf32> {{
        %pad = const 0.0 : {elem}
        %xt = load_tile %xe[%m, %k] or %pad : tile<{bm}x{bk}x{elem}>
        %zt = load_tile %ze[%n, %k] or %pad : tile<{bn}x{bk}x{elem}>
        %zu = permute<1, 0> %zt : tile<{bk}x{bn}x{elem}>
        %next = mma %xt, %zu, %acc : tile<{bm}x{bn}xf32>
        continue %next
    }}
    %done = cast %sum : tile<{bm}x{bn}x{elem}>
    {out}
    store_tile %ye[%m, %n], %done
    return
}}
",
        bk - 1,
        first = view("x"),
    )
}

/// The extents of the tensors of a launch, and bounds of parts.
#[derive(Debug)]
struct Sizes {
    /// Rows of X, or of all groups; rows of Z; what is summed over.
    mnt: [usize; 3],
    off: Vec<i32>,
    ends: Vec<i32>,
    from: i32,
    to: i32,
}

fn numbers(rng: &mut Rng, elem: Elem, n: usize) -> Vec<u8> {
    // No zeros: ways may differ in the sign of a sum of zeros.
    let one = |_| f64::from(rng.of(&[-3, -2, -1, 1, 2, 3]));
    let code = |x: f64| if elem == Elem::F16 { num::f16_from_f64(x) } else { num::bf16_from_f64(x) };
    (0..n).map(one).flat_map(|x| code(x).to_le_bytes()).collect()
}

fn arguments(rng: &mut Rng, elem: Elem, sizes: &Sizes, of: Parts) -> Vec<sim::Arg> {
    let Sizes { mnt: [m, n, t], off, ends, from, to } = sizes;
    let words = |all: &[i32]| all.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    let mut tensor = |shape: &[usize]| {
        let bytes = numbers(rng, elem, shape.iter().product());
        sim::Arg::dense(elem, &shape.iter().map(|n| *n as i64).collect::<Vec<_>>(), bytes)
    };
    let (x, z, y) = match of {
        Parts::Rows => (tensor(&[*m, 2, 2, *t]), tensor(&[ends.len(), *n, *t]), tensor(&[*m, 2, 2, *n])),
        Parts::Columns | Parts::OfColumns | Parts::Same => {
            (tensor(&[*m, *t]), tensor(&[*n, *t]), tensor(&[ends.len(), *m, *n]))
        }
    };
    let scalar = |v: i32| sim::Arg::Scalar(Const::Int(Elem::I32, v.into()));
    vec![
        x,
        z,
        sim::Arg::dense(Elem::I32, &[off.len() as i64], words(off)),
        sim::Arg::dense(Elem::I32, &[ends.len() as i64], words(ends)),
        y,
        scalar(*from),
        scalar(*to),
    ]
}

/// Extents of which few are multiples of a tile. Bounds of rows are in order; those of columns are any, also outside of the tensor.
fn sizes(rng: &mut Rng, [bm, bn, bk]: Tile, of: Parts) -> Sizes {
    let groups = 1 + rng.below(4) as usize;
    let t = rng.of(&[1, bk - 1, bk, 2 * bk + 1, 4 * bk, 9 * bk - 5]).next_multiple_of(8) as i32;
    let n = (1 + rng.below(bn + bn / 2)).next_multiple_of(8) as usize;
    if of == Parts::Rows {
        let mut off = vec![0];
        (0..groups).for_each(|_| off.push(off[off.len() - 1] + rng.of(&[0, 1, bm / 2 + 1, bm, bm + 3]) as i32));
        let rows = (off[groups] + rng.of(&[0, 1, 5])).max(1) as usize;
        return Sizes { mnt: [rows, n, t as usize], off, ends: vec![0; groups], from: 0, to: 0 };
    }
    let mut bound = |at_once: &[i32]| match rng.below(4) {
        0 => rng.of(at_once),
        _ => rng.below(t as u32 + 1) as i32,
    };
    const EDGES: [i32; 6] = [0, -1, i32::MIN, i32::MAX, 1, 8];
    let mut off: Vec<i32> = (0..=groups).map(|_| bound(&EDGES)).collect();
    let ends = (0..groups).map(|_| bound(&EDGES)).collect();
    let (from, to) = (bound(&EDGES[..4]).min(t), bound(&EDGES));
    if rng.below(3) > 0 {
        off.sort_unstable();
    }
    Sizes { mnt: [1 + rng.below(bm + 9) as usize, n, t as usize], off, ends, from, to }
}

/// The kernels of each test in the quick depth.
const QUICK: usize = 3;

const TILES: [Tile; 6] = [[64, 64, 64], [64, 32, 32], [64, 128, 32], [16, 16, 32], [128, 64, 64], [128, 64, 32]];

/// Compares kernels with so many seeds, from the first one on, or with a few of these in the quick depth: the tests together have all tiles.
fn agree(first: u64, n: u64, of: Parts) -> Counts {
    let (mut counts, mut found) = (Counts::default(), Vec::new());
    for seed in first..first + test_depth::cases(n, QUICK as u64) {
        let mut rng = Rng::new(seed);
        let tile = TILES[seed as usize % TILES.len()];
        let elem = rng.of(&[Elem::Bf16, Elem::F16]);
        let kernel = kernel(elem, tile, of);
        let sizes = sizes(&mut rng, tile, of);
        let args = arguments(&mut rng, elem, &sizes, of);
        let grid = grid(&kernel, &args).expect("arguments that fit");
        let wrong = compare(&kernel, (&args, grid), true, &mut counts);
        found.extend(wrong.map(|w| format!("{seed}: {elem} {tile:?} {sizes:?}: {w}")));
    }
    println!("{counts:?}");
    assert!(found.is_empty(), "{} wrong\n{}", found.len(), found.join("\n"));
    counts
}

#[test]
fn grouped_sums_are_the_same_in_all_ways() {
    let counts = agree(0, 36, Parts::Columns);
    let [all, hopper] = test_depth::cases([36, 20], [QUICK, 1]);
    assert!(counts.kernels == all && counts.hopper >= hopper && counts.mixed == 0, "{counts:?}");
}

#[test]
fn parts_of_parts_are_the_same_in_all_ways() {
    let counts = agree(100, 36, Parts::OfColumns);
    let [all, hopper] = test_depth::cases([36, 20], [QUICK, 1]);
    assert!(counts.kernels == all && counts.hopper >= hopper && counts.mixed == 0, "{counts:?}");
}

#[test]
fn parts_of_all_programs_are_the_same_in_all_ways() {
    let counts = agree(200, 18, Parts::Same);
    let [all, hopper] = test_depth::cases([18, 10], [QUICK, 1]);
    assert!(counts.kernels == all && counts.hopper >= hopper && counts.mixed == 0, "{counts:?}");
}

#[test]
fn rows_of_four_axes_are_the_same_in_all_ways() {
    let counts = agree(300, 24, Parts::Rows);
    let [all, hopper] = test_depth::cases([24, 12], [QUICK, 1]);
    assert!(counts.kernels == all && counts.hopper >= hopper && counts.mixed == 0, "{counts:?}");
}

fn made(tile: Tile, of: Parts) -> Stages {
    stages(&kernel(Elem::Bf16, tile, of), hopper(), true, None).unwrap_or_else(|e| panic!("{e:?}"))
}

/// The parameter of each map, with the axes of its parts and the parameter with an element for each entry.
fn tables(made: &Stages) -> Vec<(u32, Vec<u8>, Option<u32>)> {
    let table = |part: &PartMap| match part {
        PartMap::Ending { axes, entries, .. } => Some((axes.clone(), *entries)),
        PartMap::Whole | PartMap::Along(_) => None,
    };
    made.lanes.maps.iter().filter_map(|map| table(&map.part).map(|(axes, of)| (map.param, axes, of))).collect()
}

#[test]
fn the_maps_that_the_device_makes() {
    let columns = made([64, 64, 64], Parts::Columns);
    assert_eq!(tables(&columns), [(0, vec![1], Some(2)), (1, vec![1], Some(2))]);
    // The number of an entry is that of the inner part's end, or of the outer one's beginning: both are those of the group.
    assert_eq!(tables(&made([64, 64, 64], Parts::OfColumns)), [(0, vec![1], Some(3)), (1, vec![1], Some(3))]);
    assert_eq!(tables(&made([64, 64, 64], Parts::Same)), [(0, vec![1], None), (1, vec![1], None)]);
    assert_eq!(tables(&made([64, 64, 64], Parts::Rows)), [(0, vec![0], Some(2))]);
    for made in [columns, made([64, 64, 64], Parts::Rows)] {
        let text = String::from_utf8(made.code.payload).expect("PTX is text");
        assert!(!text.contains("cp.async.cg") && !text.contains("cp.async.ca"), "threads copy nothing: {text}");
    }
}

/// Code for maps that are not made right, or not at all, gives another result or an error: each line of the kernel that makes them, and
/// each that acquires one, without it or with another number.
#[test]
fn every_step_of_making_a_map_matters() {
    let tile = [64, 64, 64];
    for of in [Parts::Columns, Parts::OfColumns] {
        let (kernel, made) = (kernel(Elem::Bf16, tile, of), made(tile, of));
        let (off, ends) = (vec![0, 70, 70, 75, 143], vec![143, 143, 143, 143]);
        let sizes = Sizes { mnt: [70, 72, 200], off, ends, from: 0, to: 200 };
        let mut args = arguments(&mut Rng::new(1), Elem::Bf16, &sizes, of);
        for arg in &mut args[..2] {
            // Beyond all parts, columns are infinite, so that none of them may be multiplied, not even by zero.
            let sim::Arg::Tensor { bytes, .. } = arg else { panic!("an operand is a tensor") };
            for (i, number) in bytes.chunks_exact_mut(2).enumerate().filter(|(i, _)| i % 200 >= 143) {
                number.copy_from_slice(&[if i % 2 == 0 { 0x80 } else { 0x81 }, 0x7f]);
            }
        }
        let asked = grid(&kernel, &args).expect("arguments that fit");
        let wanted = execute(&kernel, &args, asked).expect("it runs");
        let places = program_grid(&made.barriers, asked);
        let code = || Code::of(&made.lanes, hopper()).expect("code");
        let run = |code: Code| code.run(&kernel, &args, places, Completion::Late);
        assert!(run(code()).as_ref() == Ok(&wanted));
        let text = code().text;
        let from = text.find(".visible .entry parts_maps").expect("a kernel that makes maps");
        let (user, maker) = text.split_at(from);
        let mut changes = Vec::new();
        for (n, line) in maker.lines().enumerate() {
            let other = |to: String| {
                let lines = maker.lines().enumerate().map(|(i, l)| if i == n { to.clone() } else { l.to_owned() });
                format!("{user}{}", lines.collect::<Vec<_>>().join("\n"))
            };
            if line.contains("generic.release") {
                // A later release of the same thread is for the map, too.
                changes.push((line.to_owned(), format!("{user}{}", maker.replace(line, ""))));
            } else if line.contains("st.global")
                || line.contains("tensormap")
                || of == Parts::Columns && line.contains("ld.global")
            {
                changes.push((line.to_owned(), other(String::new())));
            }
            if line.contains("global_dim") {
                changes.push((
                    format!("{line}, of another dimension"),
                    other(line.replace("], 0,", "], 1,").replace("], 3,", "], 2,")),
                ));
            }
            if line.contains("mul.wide") {
                changes.push((format!("{line}, other places"), other(line.replace(", 128", ", 256"))));
            }
        }
        for line in user.lines().filter(|line| line.contains("tensormap")) {
            changes.push((line.to_owned(), text.replace(line, "")));
        }
        assert!(changes.len() >= 2 * 20, "{text}");
        for (what, text) in changes {
            let found = run(code().changed(text).expect("it is PTX"));
            assert!(found.as_ref() != Ok(&wanted), "{of:?}: {what}");
        }
        for Moved { what, text } in moved_coordinates(&text, "cp.async.bulk.tensor") {
            let found = run(code().changed(text).expect("it is PTX"));
            assert!(found.as_ref() != Ok(&wanted), "{of:?}: {what}");
        }
    }
}

//! Products of a mixture of experts, in all ways (`ways`). Their rows are selected by indices, or lie one expert after the other. In the
//! first case the loops over `pipelined(..)` fill stages with rows that threads copy and, for sm_90a, with tiles that are copied in bulk; in
//! the second one, all tiles are copied in bulk, also those of the rows of an expert, whose bounds only the device knows.
//!
//! All numbers are small and whole, so that every sum is exact.

use super::gpu::{Code, hopper, machine};
use super::moved::{Moved, moved_coordinates};
use super::rng::Rng;
use super::ways::{Counts, compare};
use super::{execute, grid, program_grid};
use titan_core::driver::{Stages, stages};
use titan_core::ir::{Elem, NvOp, OpKind, TtgOp};
use titan_core::launch::abi::PartMap;
use titan_core::num;
use titan_core::text::parse_one;
use titan_core::verify::{Verified, verify};
use titan_nv::Machine;
use titan_sim::engine::Completion;
use titan_sim::sim;

/// The extents of a tile: rows, columns, depth of a step.
type Tile = [u32; 3];

/// How the rows of an expert are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// By indices, as in the example `grouped_gemm`.
    Indexed,
    /// They are those of the product, so that the tensor has one for each of its rows.
    InOrder,
    /// The same, in the second matrix of a tensor, and the matrices of experts are numbered from one on, and are those of the first two.
    OfParts,
}

/// The kernel of the example `grouped_gemm`, with other elements.
fn kernel(elem: Elem, tile: Tile, by: Rows) -> Verified {
    let text = text(elem, tile);
    let text = match by {
        Rows::Indexed => text,
        Rows::InOrder => in_order(&text, elem, tile),
        Rows::OfParts => of_parts(&in_order(&text, elem, tile), elem),
    };
    verify(parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// The kernel whose rows are those of the product.
fn in_order(text: &str, elem: Elem, [bm, ..]: Tile) -> String {
    let tokens = format!("%token = load_tile %rows[%m] or %none : tile<{bm}xi32>");
    let changes = [
        ("[TOK, K]", "[R, K]".to_owned()),
        (
            "%rows = segment %row, %off, %e : tensor<i32, 1>",
            format!("%rows = segment %x, %off, %e : tensor<{elem}, 2>"),
        ),
        ("%none = const -1 : i32", String::new()),
        (&tokens, String::new()),
        ("gather_rows %x[%token, %at]", "load_tile %rows[%m, %k]".to_owned()),
        ("%at = mul %k, %bk : i32", String::new()),
    ];
    changed(text, &changes)
}

/// The kernel of which all operands are views of views.
fn of_parts(text: &str, elem: Elem) -> String {
    let second = format!("%x1 = index<0> %x, %1 : tensor<{elem}, 2>\n%rows = segment %x1, %off");
    let experts = format!(
        "%2 = const 2 : i32\n%some = slice<0> %w, %0, %2 : tensor<{elem}, 3>\n%before = sub %e, %1 : i32\n%we = index<0> %some, %before"
    );
    changed(
        text,
        &[
            ("[R, K]", "[2, R, K]".to_owned()),
            ("dim<1> %x", "dim<2> %x".to_owned()),
            ("%rows = segment %x, %off", second),
            ("%some =", "%odd =".to_owned()),
            ("cast %some", "cast %odd".to_owned()),
            ("%we = index<0> %w, %e", experts),
        ],
    )
}

fn changed(text: &str, changes: &[(&str, String)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

fn text(elem: Elem, [bm, bn, bk]: Tile) -> String {
    format!(
        "kernel @grouped(%x: in tensor<{elem}>[TOK, K], %row: in tensor<i32>[R], %w: in tensor<{elem}>[E, N, K], \
         %off: in tensor<i32>[E + 1], %y: mut tensor<{elem}>[R, N]) grid persistent {{
    %K = dim<1> %x : i32
    %count = ragged_count<{bm}, {bn}> %y, %off : i32
    %0 = const 0 : i32
    %1 = const 1 : i32
    for %i = %0 to %count step %1 distributed {{
        %e, %m, %n = ragged_tile<{bm}, {bn}> %y, %off, %i : i32, i32, i32
        %out = segment %y, %off, %e : tensor<{elem}, 2>
        %rows = segment %row, %off, %e : tensor<i32, 1>
        %none = const -1 : i32
        %token = load_tile %rows[%m] or %none : tile<{bm}xi32>
        %we = index<0> %w, %e : tensor<{elem}, 2>
        %start = const 0.0 : f32
        %zero = splat %start : tile<{bm}x{bn}xf32>
        %bk = const {bk} : i32
        %whole = div %K, %bk : i32
        %rest = rem %K, %bk : i32
        %some = gt %rest, %0 : bool
        %more = cast %some : i32
        %steps = add %whole, %more : i32
        %sum = for %k = %0 to %steps step %1 pipelined carry(%acc = %zero) : tile<{bm}x{bn}xf32> {{
            %at = mul %k, %bk : i32
            %pad = const 0.0 : {elem}
            %xt = gather_rows %x[%token, %at] or %pad : tile<{bm}x{bk}x{elem}>
            %wt = load_tile %we[%n, %k] or %pad : tile<{bn}x{bk}x{elem}>
            %wu = permute<1, 0> %wt : tile<{bk}x{bn}x{elem}>
            %next = mma %xt, %wu, %acc : tile<{bm}x{bn}xf32>
            continue %next
        }}
        %done = cast %sum : tile<{bm}x{bn}x{elem}>
        store_tile %out[%m, %n], %done
        continue
    }}
    return
}}
"
    )
}

/// The extents of the tensors of a launch.
struct Extents {
    tokens: usize,
    /// Rows of each expert.
    experts: Vec<usize>,
    columns: usize,
    depth: usize,
}

fn numbers(rng: &mut Rng, elem: Elem, n: usize) -> Vec<u8> {
    let one = |_| f64::from(rng.below(7)) - 3.0;
    let code = |x: f64| if elem == Elem::F16 { num::f16_from_f64(x) } else { num::bf16_from_f64(x) };
    (0..n).map(one).flat_map(|x| code(x).to_le_bytes()).collect()
}

fn arguments(rng: &mut Rng, elem: Elem, sizes: &Extents, by: Rows) -> Vec<sim::Arg> {
    let Extents { tokens, experts, columns, depth } = sizes;
    let rows: usize = experts.iter().sum();
    let tokens = if by == Rows::Indexed { tokens } else { &rows };
    let matrices = if by == Rows::OfParts { &[2][..] } else { &[] };
    let words = |all: &[i32]| all.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    let mut offsets = vec![0];
    experts.iter().for_each(|n| offsets.push(offsets[offsets.len() - 1] + *n as i32));
    // Some rows are no tokens: one before the first, or one behind the last.
    let tokens_of = (0..rows).map(|_| rng.below(*tokens as u32 + 2) as i32 - 1).collect::<Vec<i32>>();
    let shape = |all: &[usize]| all.iter().map(|n| *n as i64).collect::<Vec<i64>>();
    vec![
        sim::Arg::dense(elem, &shape(&[matrices, &[*tokens, *depth]].concat()), numbers(rng, elem, 2 * tokens * depth)),
        sim::Arg::dense(Elem::I32, &shape(&[rows]), words(&tokens_of)),
        sim::Arg::dense(
            elem,
            &shape(&[experts.len(), *columns, *depth]),
            numbers(rng, elem, experts.len() * columns * depth),
        ),
        sim::Arg::dense(Elem::I32, &shape(&[offsets.len()]), words(&offsets)),
        sim::Arg::dense(elem, &shape(&[rows, *columns]), vec![0xFF; rows * columns * 2]),
    ]
}

/// Extents of which few are multiples of a tile; `aligned`: rows begin at multiples of 16 bytes.
fn extents(rng: &mut Rng, [bm, bn, bk]: Tile, aligned: bool) -> Extents {
    let multiple = |n: u32| if aligned { n.next_multiple_of(8) } else { n | 1 };
    let experts = (0..1 + rng.below(4)).map(|_| rng.of(&[0, 1, bm / 2 + 1, bm, bm + 3]) as usize).collect();
    Extents {
        tokens: 1 + rng.below(2 * bm) as usize,
        experts,
        columns: multiple(1 + rng.below(bn + bn / 2)) as usize,
        // No step, one, as many as slots, and more.
        depth: multiple(rng.of(&[1, bk - 1, bk, 2 * bk + 1, 4 * bk, 9 * bk - 5])) as usize,
    }
}

/// The kernels of each test in the quick depth.
const QUICK: usize = 3;

const TILES: [Tile; 6] = [[64, 64, 64], [64, 32, 32], [64, 128, 32], [16, 16, 32], [32, 64, 64], [128, 64, 32]];

/// Compares kernels with so many seeds, from the first one on, or with a few of these in the quick depth: the tests together have all tiles.
fn agree(first: u64, n: u64, aligned: bool, by: Rows) -> Counts {
    let (mut counts, mut found) = (Counts::default(), Vec::new());
    for seed in first..first + test_depth::cases(n, QUICK as u64) {
        let mut rng = Rng::new(seed);
        let tile = TILES[seed as usize % TILES.len()];
        let elem = rng.of(&[Elem::Bf16, Elem::F16]);
        let kernel = kernel(elem, tile, by);
        let sizes = extents(&mut rng, tile, aligned);
        let args = arguments(&mut rng, elem, &sizes, by);
        let grid = grid(&kernel, &args).expect("arguments that fit");
        let wrong = compare(&kernel, (&args, grid), true, &mut counts);
        let Extents { tokens, experts, columns, depth } = sizes;
        found.extend(wrong.map(|w| format!("{seed}: {elem} {tile:?} {tokens} {experts:?} {columns} {depth}: {w}")));
    }
    println!("{counts:?}");
    assert!(found.is_empty(), "{} wrong\n{}", found.len(), found.join("\n"));
    counts
}

#[test]
fn rows_of_experts_are_the_same_in_all_ways() {
    let counts = agree(0, 36, true, Rows::Indexed);
    let [all, hopper] = test_depth::cases([36, 20], [QUICK, 1]);
    assert_eq!((counts.kernels, counts.made_rings), (all, all), "{counts:?}");
    assert!(counts.hopper >= hopper && counts.mixed >= hopper, "{counts:?}");
}

#[test]
fn rows_that_are_not_aligned_are_the_same_in_all_ways() {
    let counts = agree(100, 12, false, Rows::Indexed);
    assert_eq!(counts.kernels, test_depth::cases(12, QUICK), "{counts:?}");
    assert_eq!(counts.mixed, 0, "only rows that are aligned are copied in bulk or asynchronously: {counts:?}");
}

#[test]
fn rows_in_order_are_the_same_in_all_ways() {
    let counts = agree(200, 48, true, Rows::InOrder);
    let [all, hopper] = test_depth::cases([48, 24], [QUICK, 1]);
    assert_eq!((counts.kernels, counts.made_rings), (all, all), "{counts:?}");
    assert!(counts.hopper >= hopper && counts.mixed == 0, "{counts:?}");
}

#[test]
fn views_of_views_are_the_same_in_all_ways() {
    let counts = agree(300, 24, true, Rows::OfParts);
    let [all, hopper] = test_depth::cases([24, 12], [QUICK, 1]);
    assert_eq!((counts.kernels, counts.made_rings), (all, all), "{counts:?}");
    assert!(counts.hopper >= hopper && counts.mixed == 0, "{counts:?}");
}

/// How many operations of a barrier program are rows that threads copy, bulk loads, and bulk stores.
fn copies(made: &Stages) -> [usize; 3] {
    let has = |wanted: &dyn Fn(&OpKind) -> bool| made.barriers.ops.iter().filter(|op| wanted(&op.kind)).count();
    [
        has(&|kind| matches!(kind, OpKind::Ttg(TtgOp::SourceRows { .. }))),
        has(&|kind| matches!(kind, OpKind::Nv(NvOp::BulkLoad { tensor: true, .. }))),
        has(&|kind| matches!(kind, OpKind::Nv(NvOp::BulkStore { tensor: true, .. }))),
    ]
}

fn made(machine: &Machine, tile: Tile, by: Rows) -> Stages {
    stages(&kernel(Elem::Bf16, tile, by), machine, true, None).unwrap_or_else(|e| panic!("{e:?}"))
}

/// Boxes, and the axis along which they are of parts.
fn boxes(made: &Stages) -> Vec<(Vec<u32>, Option<u8>)> {
    let part = |part: &PartMap| match part {
        PartMap::Whole => None,
        PartMap::Along(axis) => Some(*axis),
        PartMap::Ending { .. } => panic!("no end of a part is known to a kernel before"),
    };
    made.lanes.maps.iter().map(|map| (map.extents.clone(), part(&map.part))).collect()
}

/// On sm_80 threads copy both tiles of a stage; on sm_90a they copy the rows, and the others are copied in bulk for MMAs of warpgroups.
#[test]
fn rows_are_copied_by_threads_and_tiles_in_bulk() {
    let ampere = made(machine(), [64, 64, 32], Rows::Indexed);
    assert_eq!(ampere.schedule.loops[0].loads.len(), 2, "{}", ampere.schedule);
    assert!(ampere.schedule.loops[0].distance >= 2, "{}", ampere.schedule);
    let [rows, loads, stores] = copies(&ampere);
    assert!(rows > 0 && loads == 0 && stores == 0);
    let hopper = made(hopper(), [64, 64, 64], Rows::Indexed);
    assert_eq!(hopper.barriers.roles.len(), 2, "{}", hopper.schedule);
    assert_eq!(copies(&hopper), [1, 1, 1]);
    assert!(hopper.barriers.ops.iter().any(|op| op.kind == OpKind::Nv(NvOp::Wgmma)));
    // The map of `w` has a box of one expert; that of `y` is for the rows of an expert.
    assert_eq!(boxes(&hopper), [(vec![1, 64, 64], None), (vec![64, 64], Some(0))]);
}

/// Rows in order are copied in bulk too, by maps for parts.
#[test]
fn rows_in_order_are_copied_in_bulk() {
    let rows = made(hopper(), [64, 64, 64], Rows::InOrder);
    assert_eq!(copies(&rows), [0, 2, 1]);
    assert_eq!(boxes(&rows), [(vec![64, 64], Some(0)), (vec![1, 64, 64], None), (vec![64, 64], Some(0))]);
    assert!(!rows.code.payload.windows(12).any(|text| text == b"cp.async.cg."), "threads copy nothing");
    // Two slices of 64 columns.
    let wide = made(hopper(), [128, 128, 64], Rows::InOrder);
    assert_eq!(copies(&wide), [0, 2, 2]);
    let views = made(hopper(), [64, 64, 64], Rows::OfParts);
    assert_eq!(boxes(&views), [(vec![1, 64, 64], Some(1)), (vec![1, 64, 64], Some(0)), (vec![64, 64], Some(0))]);
}

/// A copy of a part of a tensor with two axes.
const BOX: &str = "cp.async.bulk.tensor.4d";

/// Copies of parts and stores to them with each of their coordinates moved by one in either direction: none goes unnoticed.
#[test]
fn every_coordinate_of_a_copy_matters() {
    let tile = [64, 64, 64];
    let (kernel, made) = (kernel(Elem::Bf16, tile, Rows::InOrder), made(hopper(), tile, Rows::InOrder));
    let sizes = Extents { tokens: 0, experts: vec![5, 0, 70, 3], columns: 72, depth: 72 };
    let args = arguments(&mut Rng::new(1), Elem::Bf16, &sizes, Rows::InOrder);
    let asked = grid(&kernel, &args).expect("arguments that fit");
    let wanted = execute(&kernel, &args, asked).expect("it runs");
    let places = program_grid(&made.barriers, asked);
    let code = || Code::of(&made.lanes, hopper()).expect("code");
    let run = |code: Code| code.run(&kernel, &args, places, Completion::Late);
    assert!(run(code()).as_ref() == Ok(&wanted));
    let text = code().text;
    for Moved { what, text } in moved_coordinates(&text, BOX) {
        let found = run(code().changed(text).expect("it is PTX"));
        assert!(found.as_ref() != Ok(&wanted), "{what}");
    }
    let copies =
        |stores: bool| text.lines().filter(|line| line.contains(BOX) && line.contains("bulk_group") == stores).count();
    assert_eq!((copies(false), copies(true)), (1, 1), "{text}");
}

/// The next tile is computed while the store of the previous one, of the same expert or of another one, is in flight. A wait less is noticed:
/// before the buffer is written again, and before the program ends.
#[test]
fn stores_of_one_tile_are_in_flight_while_the_next_is_computed() {
    let tile = [64, 64, 64];
    let (kernel, made) = (kernel(Elem::Bf16, tile, Rows::InOrder), made(hopper(), tile, Rows::InOrder));
    let sizes = Extents { tokens: 0, experts: vec![5, 0, 70, 3, 130], columns: 72, depth: 72 };
    let args = arguments(&mut Rng::new(1), Elem::Bf16, &sizes, Rows::InOrder);
    let asked = grid(&kernel, &args).expect("arguments that fit");
    let wanted = execute(&kernel, &args, asked).expect("it runs");
    // One program has several tiles.
    let code = || Code::of(&made.lanes, hopper()).expect("code");
    let right = |code: &Code| {
        let all = [Completion::Late, Completion::Early, Completion::Seeded(1), Completion::Seeded(2)];
        all.into_iter().all(|completion| code.run(&kernel, &args, [2, 1, 1], completion).as_ref() == Ok(&wanted))
    };
    assert!(right(&code()));
    let text = code().text;
    let waits: Vec<&str> = text.lines().filter(|line| line.contains("cp.async.bulk.wait_group")).collect();
    assert!(waits.len() == 2 && waits.iter().all(|line| line.contains(".read 0")), "{waits:?}");
    let without = |which: usize| {
        let mut seen = 0;
        let stays = |line: &&str| {
            let wait = line.contains("cp.async.bulk.wait_group");
            seen += usize::from(wait);
            !wait || seen != which + 1
        };
        text.lines().filter(stays).collect::<Vec<_>>().join("\n")
    };
    for which in 0..2 {
        assert!(!right(&code().changed(without(which)).expect("it is PTX")), "without wait {which}");
    }
}

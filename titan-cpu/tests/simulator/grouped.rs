//! Products of a mixture of experts, whose rows indices select, in all ways (`ways`): their loops over `pipelined(..)` fill stages with
//! rows that threads copy and, for sm_90a, with tiles that are copied in bulk.
//!
//! All numbers are small and whole, so that every sum is exact.

use super::gpu::{hopper, machine};
use super::grid;
use super::rng::Rng;
use super::ways::{Counts, compare};
use titan_core::driver::stages;
use titan_core::ir::{Elem, NvOp, OpKind, TtgOp};
use titan_core::num;
use titan_core::text::parse_one;
use titan_core::verify::{Verified, verify};
use titan_sim::sim;

/// The extents of a tile: rows, columns, depth of a step.
type Tile = [u32; 3];

/// The kernel of the example `grouped_gemm`, with other elements.
fn kernel(elem: Elem, [bm, bn, bk]: Tile) -> Verified {
    let text = format!(
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
    );
    verify(parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
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

fn arguments(rng: &mut Rng, elem: Elem, sizes: &Extents) -> Vec<sim::Arg> {
    let Extents { tokens, experts, columns, depth } = sizes;
    let rows: usize = experts.iter().sum();
    let words = |all: &[i32]| all.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    let mut offsets = vec![0];
    experts.iter().for_each(|n| offsets.push(offsets[offsets.len() - 1] + *n as i32));
    // Some rows are no tokens: one before the first, or one behind the last.
    let tokens_of = (0..rows).map(|_| rng.below(*tokens as u32 + 2) as i32 - 1).collect::<Vec<i32>>();
    let shape = |all: &[usize]| all.iter().map(|n| *n as i64).collect::<Vec<i64>>();
    vec![
        sim::Arg::dense(elem, &shape(&[*tokens, *depth]), numbers(rng, elem, tokens * depth)),
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

const TILES: [Tile; 6] = [[64, 64, 64], [64, 32, 32], [64, 128, 32], [16, 16, 32], [32, 64, 64], [128, 64, 32]];

fn agree(seeds: std::ops::Range<u64>, aligned: bool) -> Counts {
    let (mut counts, mut found) = (Counts::default(), Vec::new());
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let tile = TILES[seed as usize % TILES.len()];
        let elem = rng.of(&[Elem::Bf16, Elem::F16]);
        let kernel = kernel(elem, tile);
        let sizes = extents(&mut rng, tile, aligned);
        let args = arguments(&mut rng, elem, &sizes);
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
    let counts = agree(0..36, true);
    assert_eq!((counts.kernels, counts.made_rings), (36, 36), "{counts:?}");
    assert!(counts.hopper >= 20 && counts.mixed >= 20, "{counts:?}");
}

#[test]
fn rows_that_are_not_aligned_are_the_same_in_all_ways() {
    let counts = agree(100..112, false);
    assert_eq!(counts.kernels, 12, "{counts:?}");
    assert_eq!(counts.mixed, 0, "only rows that are aligned are copied in bulk or asynchronously: {counts:?}");
}

/// On sm_80 threads copy both tiles of a stage; on sm_90a they copy the rows, and the others are copied in bulk for MMAs of warpgroups.
#[test]
fn rows_are_copied_by_threads_and_tiles_in_bulk() {
    let of = |machine, tile| stages(&kernel(Elem::Bf16, tile), machine, true, None).unwrap_or_else(|e| panic!("{e:?}"));
    let has = |made: &titan_core::driver::Stages, wanted: &dyn Fn(&OpKind) -> bool| {
        made.barriers.ops.iter().filter(|op| wanted(&op.kind)).count()
    };
    let rows = |kind: &OpKind| matches!(kind, OpKind::Ttg(TtgOp::SourceRows { .. }));
    let bulk = |kind: &OpKind| matches!(kind, OpKind::Nv(NvOp::BulkLoad { tensor: true, .. }));
    let ampere = of(machine(), [64, 64, 32]);
    assert_eq!(ampere.schedule.loops[0].loads.len(), 2, "{}", ampere.schedule);
    assert!(ampere.schedule.loops[0].distance >= 2, "{}", ampere.schedule);
    assert!(has(&ampere, &rows) > 0 && has(&ampere, &bulk) == 0);
    let hopper = of(hopper(), [64, 64, 64]);
    assert_eq!(hopper.barriers.roles.len(), 2, "{}", hopper.schedule);
    assert!(has(&hopper, &rows) == 1 && has(&hopper, &bulk) == 1);
    assert!(has(&hopper, &|kind| *kind == OpKind::Nv(NvOp::Wgmma)) > 0);
    // The map of `w` has a box of one expert.
    assert_eq!(hopper.lanes.maps.iter().map(|map| map.extents.clone()).collect::<Vec<_>>(), [[1, 64, 64]]);
}

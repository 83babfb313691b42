//! Loads, stores, views, gathers and output tiles at and beyond the edges.

use titan::lang::{Shared, Tensor, Tile, Trap, ops, run};
use titan::prelude::*;

use crate::{memory_of, tensor, tile};

/// `10, 11, …` in extents `[3, 4]`.
fn grid() -> (Shared<i32>, Tensor<i32, 2>) {
    let shared = Shared::new((10..22).collect());
    (shared.clone(), memory_of(shared, [3, 4]))
}

#[test]
fn tiles_load_padding_outside() {
    let (_, t) = grid();
    assert_eq!(t.load_tile::<2, 3>([1, 1]).to_vec(), [21, 0, 0, 0, 0, 0]);
    assert_eq!(t.load_tile_or::<2, 3>([1, 1], -1).to_vec(), [21, -1, -1, -1, -1, -1]);
    assert_eq!(t.load_tile::<2, 2>([-1, 0]).to_vec(), [0; 4]);
    assert_eq!(t.load_tile::<2, 2>([i32::MAX, i32::MIN]).to_vec(), [0; 4]);
    assert_eq!(t.load_at::<2, 2>([-1, 3]).to_vec(), [0, 0, 13, 0]);
    assert_eq!(t.load_at_or::<2, 2>([1, -1], 7).to_vec(), [7, 14, 7, 18]);
    assert_eq!((t.dim(0), t.dim(1)), (3, 4));
}

#[test]
fn tiles_store_only_inside() {
    let (shared, mut t) = grid();
    t.store_tile([1, 1], Tile::<i32, D2<2, 3>>::full(1));
    t.store_tile([-1, 0], Tile::<i32, D2<2, 3>>::full(2));
    t.store_at([-1, -1], Tile::<i32, D2<2, 2>>::full(3));
    t.store_at([2, 3], Tile::<i32, D2<2, 2>>::full(4));
    t.store_tile([i32::MAX, 0], Tile::<i32, D2<2, 2>>::full(5));
    assert_eq!(shared.to_vec(), [3, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 4]);
}

#[test]
fn rank_1_to_4_load_and_store() {
    let shared = Shared::new((0..24).collect::<Vec<i32>>());
    let mut t = memory_of(shared.clone(), [2, 3, 2, 2]);
    assert_eq!(t.load_tile::<1, 2, 2, 1>([1, 1, 0, 1]).to_vec(), [21, 23, 0, 0]);
    t.store_at([1, 2, 1, 1], Tile::<i32, D4<1, 1, 1, 1>>::full(99));
    assert_eq!(shared.to_vec()[23], 99);
    assert_eq!(t.index::<1>(2).load_tile::<2, 1, 1>([0, 0, 0]).to_vec(), [8, 20]);
    assert_eq!(t.index::<1>(2).index::<0>(1).index::<1>(0).load_at::<3>([-1]).to_vec(), [0, 20, 22]);
}

#[test]
fn strides_may_be_zero_negative_or_permuted() {
    let memory = Shared::new((0..12).collect::<Vec<i32>>());
    let transposed = Tensor::from_host(memory.clone(), 0, [4, 3], [1, 4]);
    assert_eq!(transposed.load_tile::<2, 3>([1, 0]).to_vec(), [2, 6, 10, 3, 7, 11]);
    let reversed = Tensor::from_host(memory.clone(), 11, [12], [-1]);
    assert_eq!(reversed.load_tile::<3>([0]).to_vec(), [11, 10, 9]);
    let repeated = Tensor::from_host(memory, 5, [1000, 2], [0, 1]);
    assert_eq!(repeated.load_at::<2, 2>([998, 0]).to_vec(), [5, 6, 5, 6]);
}

#[test]
#[should_panic(expected = "elements 0 to 12 are not within 0..12")]
fn a_tensor_lies_within_its_memory() {
    let _ = Tensor::from_host(Shared::new(vec![0_i32; 12]), 0, [13], [1]);
}

#[test]
fn slices_clip_to_the_tensor() {
    let (_, t) = grid();
    let s = t.slice::<1>(-5..2);
    assert_eq!((s.dim(0), s.dim(1)), (3, 2));
    assert_eq!(s.load_tile::<1, 3>([0, 0]).to_vec(), [10, 11, 0]);
    let s = t.slice::<0>(1..100);
    assert_eq!(s.dim(0), 2);
    assert_eq!(s.get([1, 0]), 18);
    for (lo, hi) in [(3, 1), (4, 9), (-3, -1), (i32::MIN, i32::MIN), (i32::MAX, i32::MAX)] {
        let s = t.slice::<1>(lo..hi);
        assert_eq!(s.dim(1), 0, "{lo}..{hi}");
        assert_eq!(s.load_tile_or::<1, 1>([0, 0], 5).to_vec(), [5]);
    }
    assert_eq!(t.slice::<0>(1..3).slice::<0>(1..3).load_at::<2, 1>([0, 0]).to_vec(), [18, 0]);
}

#[test]
fn an_index_outside_its_axis_gives_a_view_of_nothing() {
    let (shared, mut t) = grid();
    for outside in [-1, 3, i32::MAX, i32::MIN] {
        assert_eq!(t.index::<0>(outside).load_tile_or::<4>([0], -7).to_vec(), [-7; 4]);
        assert_eq!(t.index::<0>(outside).slice::<0>(0..2).load_tile::<2>([0]).to_vec(), [0; 2]);
        t.index_mut::<0>(outside).store_tile([0], Tile::<i32, D1<4>>::ones());
        t.index_mut::<0>(outside).atomic_add([iota::<4>()], Tile::<i32, D1<4>>::ones());
    }
    assert_eq!(shared.to_vec(), (10..22).collect::<Vec<_>>());
    assert_eq!(trapped(|| _ = t.index::<0>(3).get([0])).message, "`get` at [0] is outside the tensor of extents [4]");
}

/// The trap of a program.
#[track_caller]
fn trapped(body: impl FnMut()) -> Trap {
    run([1, 1, 1], body).expect_err("the program traps")
}

#[test]
fn single_elements_trap_outside() {
    let (shared, mut t) = grid();
    assert_eq!(t.get([2, 3]), 21);
    t.set([0, 1], -4);
    assert_eq!(shared.to_vec()[1], -4);
    let line = line!() + 1;
    let trap = trapped(|| _ = t.get([3, 0]));
    assert_eq!((trap.message.as_str(), trap.line), ("`get` at [3, 0] is outside the tensor of extents [3, 4]", line));
    assert!(trap.file.ends_with("memory.rs") && trap.column > 1);
    let trap = trapped(|| t.set([0, -1], 0));
    assert_eq!(trap.message, "`set` at [0, -1] is outside the tensor of extents [3, 4]");
    assert_eq!(shared.to_vec()[0], 10);
}

#[test]
fn segments_must_not_decrease_and_lie_inside() {
    let (shared, mut t) = grid();
    let off = tensor(&[0, 1, 1, 3, 2, 4, -1, 2], [8]);
    assert_eq!(t.segment(&off, 0).dim(0), 1);
    assert_eq!(t.segment(&off, 1).dim(0), 0);
    assert_eq!(t.segment(&off, 2).load_tile::<3, 1>([0, 0]).to_vec(), [14, 18, 0]);
    t.segment_mut(&off, 2).store_tile([1, 0], Tile::<i32, D2<1, 4>>::zeros());
    assert_eq!(shared.to_vec()[8..], [0; 4]);
    let messages = [3, 4, 5, 6].map(|e| trapped(|| drop(t.segment(&off, e))).message);
    assert_eq!(messages[0], "segment 3 is 3..2, which does not lie within 0..3");
    assert_eq!(messages[1], "segment 4 is 2..4, which does not lie within 0..3");
    assert_eq!(messages[2], "segment 5 is 4..-1, which does not lie within 0..3");
    assert_eq!(messages[3], "segment 6 is -1..2, which does not lie within 0..3");
    assert_eq!(trapped(|| drop(t.segment(&off, 7))).message, "`get` at [8] is outside the tensor of extents [8]");
    assert_eq!(
        trapped(|| drop(t.segment(&off, i32::MAX))).message,
        "`get` at [2147483647] is outside the tensor of extents [8]"
    );
}

#[test]
fn rows_gather_by_tiles_and_scalars() {
    let t = tensor(&(0..24).collect::<Vec<i32>>(), [2, 3, 4]);
    let rows = tile::<i32, 4>(&[2, -1, 3, 0]);
    assert_eq!(t.gather_rows::<4, 2>((1, rows), 3).to_vec(), [23, 0, 0, 0, 0, 0, 15, 0]);
    assert_eq!(t.gather_rows_or::<4, 2>((rows, 1), 0, 9).to_vec(), [9, 9, 9, 9, 9, 9, 4, 5]);
    assert_eq!(t.gather_rows::<2, 2>((0, 0), -1).to_vec(), [0, 0, 0, 0]);
    assert_eq!(t.gather_rows_or::<1, 3>((0, 1), -1, 9).to_vec(), [9, 4, 5]);
    let (_, t) = grid();
    assert_eq!(t.gather_rows::<2, 2>(tile::<i32, 2>(&[i32::MIN, 1]), 2).to_vec(), [0, 0, 16, 17]);
    assert_eq!(t.gather_rows::<1, 2>(2, i32::MAX).to_vec(), [0, 0]);
}

#[test]
fn rows_scatter_where_they_exist() {
    let (shared, mut t) = grid();
    let values = iota::<6>().reshape::<D2<3, 2>>();
    t.scatter_rows(tile::<i32, 3>(&[1, -1, 0]), 3, values);
    let mut want: Vec<i32> = (10..22).collect();
    (want[7], want[3]) = (0, 4);
    assert_eq!(shared.to_vec(), want);
    t.scatter_rows(tile::<i32, 3>(&[2, 2, 2]), 0, values);
    assert!([0, 2, 4].contains(&shared.to_vec()[8]));
}

#[test]
fn elements_gather_and_scatter_by_lane() {
    let (shared, mut t) = grid();
    let (rows, cols) = (tile::<i32, 4>(&[0, 2, -1, 1]), tile::<i32, 4>(&[3, 0, 0, 4]));
    assert_eq!(t.gather([rows, cols]).to_vec(), [13, 18, 0, 0]);
    assert_eq!(t.gather_or([rows, cols], -1).to_vec(), [13, 18, -1, -1]);
    t.scatter([rows, cols], tile::<i32, 4>(&[1, 2, 3, 4]));
    assert_eq!(t.gather([rows, cols]).to_vec(), [1, 2, 0, 0]);
    assert_eq!(shared.to_vec().iter().sum::<i32>(), (10..22).sum::<i32>() - 13 - 18 + 3);
    let square = [rows.reshape::<D2<2, 2>>(), cols.reshape::<D2<2, 2>>()];
    let gathered: Tile<i32, D2<2, 2>> = t.gather(square);
    assert_eq!(gathered.to_vec(), [1, 2, 0, 0]);
}

#[test]
fn every_atomic_contribution_counts() {
    let shared = Shared::new(vec![5_i32; 4]);
    let mut t = memory_of(shared.clone(), [4]);
    let (at, v) = (tile::<i32, 5>(&[0, 0, 3, -1, 4]), tile::<i32, 5>(&[1, 10, 7, 100, 100]));
    t.atomic_add([at], v);
    assert_eq!(shared.to_vec(), [16, 5, 5, 12]);
    t.atomic_max([at], v);
    assert_eq!(shared.to_vec(), [16, 5, 5, 12]);
    t.atomic_min([at], v);
    assert_eq!(shared.to_vec(), [1, 5, 5, 7]);
    t.atomic_add_tile([1], Tile::<i32, D1<3>>::ones());
    t.atomic_max_tile([0], Tile::<i32, D1<2>>::full(3));
    t.atomic_min_tile([1], Tile::<i32, D1<2>>::full(5));
    assert_eq!(shared.to_vec(), [3, 5, 5, 5]);
    let floats = Shared::new(vec![f16::NAN; 2]);
    let mut t = memory_of(floats.clone(), [2]);
    t.atomic_max_tile([0], Tile::<f16, D1<2>>::ones());
    assert_eq!(floats.to_vec(), [f16::ONE; 2]);
}

#[test]
fn output_tiles_are_dealt_once_each() {
    for programs in [1, 2, 5, 50] {
        let shared = Shared::new(vec![0_i32; 7 * 5]);
        let mut t = memory_of(shared.clone(), [7, 5]);
        let mut seen = Vec::new();
        run([programs, 1, 1], || {
            for (nth, out) in t.tiles::<2, 3>().enumerate() {
                seen.push(out.index());
                assert_eq!(out.group(), 0);
                if out.index() == [3, 1] {
                    out.skip();
                    continue;
                }
                let old = out.load();
                assert_eq!(old.reduce_sum::<1>().reduce_sum::<0>(), 0, "tile {nth} is fresh");
                out.store(Tile::full(1));
            }
        })
        .unwrap();
        seen.sort_unstable();
        let all: Vec<[i32; 2]> = (0..4).flat_map(|i| (0..2).map(move |j| [i, j])).collect();
        assert_eq!(seen, all, "{programs} programs");
        assert_eq!(shared.to_vec().iter().sum::<i32>(), 7 * 5 - 2);
    }
}

#[test]
fn roles_share_one_schedule() {
    let mut t = memory_of(Shared::new(vec![0_i32; 12]), [3, 4]);
    run([2, 1, 1], || {
        let work = t.work::<2, 2>();
        let indices: Vec<_> = work.indices().collect();
        let mut tiles = Vec::new();
        for out in work.tiles() {
            tiles.push(out.index());
            out.skip();
        }
        assert_eq!(indices, tiles);
        assert_eq!(indices.len(), 2);
    })
    .unwrap();
}

#[test]
fn ragged_tiles_start_anew_in_each_group() {
    let shared = Shared::new(vec![0_i32; 6]);
    let mut t = memory_of(shared.clone(), [6, 1]);
    let off = tensor(&[0, 3, 3, 4, 6], [5]);
    let mut seen = Vec::new();
    run([2, 1, 1], || {
        for out in t.ragged::<2, 1>(&off) {
            seen.push((out.group(), out.index()[0]));
            let (group, old) = (out.group(), out.load());
            out.store(ops::add(old, group + 1));
        }
    })
    .unwrap();
    assert_eq!(seen, [(0, 0), (2, 0), (0, 1), (3, 0)]);
    assert_eq!(shared.to_vec(), [1, 1, 1, 3, 4, 4]);
    let bad = tensor(&[0, 3, 7], [3]);
    let trap = run([1, 1, 1], || t.ragged::<2, 1>(&bad).for_each(Own::skip)).unwrap_err();
    assert_eq!(trap.message, "segment 1 is 3..7, which does not lie within 0..6");
}

#[test]
fn memory_outlives_its_tensors() {
    let shared = Shared::new(vec![1_i32, 2]);
    let t = memory_of(shared.clone(), [2]);
    assert_eq!(shared.clone().into_vec(), [1, 2]);
    drop(t);
    assert_eq!(shared.into_vec(), [1, 2]);
}

#[test]
fn tensors_go_to_other_threads() {
    let shared = Shared::new(vec![1.0_f32; 4]);
    let mut t = memory_of(shared.clone(), [4]);
    let kernel = move || run([1, 1, 1], || t.store_tile([0], Tile::<f32, D1<4>>::zeros()));
    std::thread::spawn(kernel).join().expect("no panic").expect("no trap");
    assert_eq!(shared.to_vec(), [0.0; 4]);
}

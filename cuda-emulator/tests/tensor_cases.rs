//! Arguments that a kernel with code for several architectures must get right: products over nothing, empty tensors, a tile and less, more
//! and fewer steps than a ring has slots, and views of all kinds, as inputs and as outputs. Each is launched through the emulated driver, on
//! boards of several compute capabilities, and must leave in memory what the CPU device leaves there, also around the elements of a view.
//! With `TITAN_DEVICE=cuda`, what is expected of Hopper is launched on the real device too, which chooses the code that it has.
//!
//! Views have no negative strides; `titan-nv/tests/tma/fit.rs` has them for tensors that are given to the driver directly.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::disallowed_methods, reason = "tests are pointed at devices by the environment")]
#![expect(clippy::duplicate_mod, reason = "each example has the part that all share")]

mod cuda_process;
#[path = "../../examples/flash_attention.rs"]
#[expect(dead_code, reason = "an example has a `main`")]
mod flash_attention;
#[path = "../../examples/gemm.rs"]
#[expect(dead_code, reason = "an example has a `main`")]
mod gemm;
#[path = "../../examples/gemm_ws.rs"]
#[expect(dead_code, reason = "an example has a `main`")]
mod gemm_ws;
#[path = "../../examples/vector_add.rs"]
#[expect(dead_code, reason = "an example has a `main`")]
mod vector_add;

use cuda_process::{CHILD, device, with};
use titan::prelude::*;
use titan::{Choice, Launch, View, ViewMut};

const DEVICES: &str = "CUDA_EMULATOR_DEVICES";
const HOPPER: &str = "sm_90:sms=2:memory=64";
/// Boards without tensor maps or with code for sm_80 only, whose multiprocessors have 163, 99, 99, 227 and 99 KiB for a block.
const OTHERS: [&str; 5] = ["sm_80", "sm_86", "sm_89", "sm_100", "sm_120"];

/// How the elements of a matrix lie in memory.
#[derive(Clone, Copy, Debug)]
enum Lies {
    Alone,
    /// In rows with so many elements before and behind its own.
    Within(usize, usize),
    /// Below so many rows, and above others.
    Below(usize),
    /// Column by column.
    Turned,
    /// One row, which all rows are.
    OneRow,
    /// One column, which all columns are.
    OneColumn,
}

impl Lies {
    /// The tensor in which a matrix of this shape lies.
    fn around(self, [rows, columns]: [usize; 2]) -> [usize; 2] {
        match self {
            Lies::Alone => [rows, columns],
            Lies::Within(before, behind) => [rows, before + columns + behind],
            Lies::Below(first) => [first + rows + 3, columns],
            Lies::Turned => [columns, rows],
            Lies::OneRow => [1, columns],
            Lies::OneColumn => [rows, 1],
        }
    }

    fn view(self, memory: &Tensor<f16, 2>, [rows, columns]: [usize; 2]) -> View<'_, f16, 2> {
        match self {
            Lies::Alone => memory.view(),
            Lies::Within(before, _) => memory.slice::<1>(before..before + columns).unwrap(),
            Lies::Below(first) => memory.slice::<0>(first..first + rows).unwrap(),
            Lies::Turned => memory.transpose::<0, 1>().unwrap(),
            Lies::OneRow | Lies::OneColumn => memory.broadcast([rows, columns]).unwrap(),
        }
    }

    fn view_mut(self, memory: &mut Tensor<f16, 2>, [rows, columns]: [usize; 2]) -> ViewMut<'_, f16, 2> {
        match self {
            Lies::Alone => memory.view_mut(),
            Lies::Within(before, _) => memory.slice_mut::<1>(before..before + columns).unwrap(),
            Lies::Below(first) => memory.slice_mut::<0>(first..first + rows).unwrap(),
            Lies::Turned => memory.transpose_mut::<0, 1>().unwrap(),
            Lies::OneRow | Lies::OneColumn => panic!("outputs do not repeat elements"),
        }
    }
}

/// A matrix product as examples have it: `C = A · Bᵀ`.
type Product = for<'a, 'b> fn(&'a View<'b, f16, 2>, &'a View<'b, f16, 2>, &'a mut ViewMut<'b, f16, 2>) -> Launch<'a>;

/// The products of the examples, with the extents of their tiles and the slots of their rings: plain loops with programs in clusters, of two
/// and of one warpgroup, roles by hand, and two instances of a role in turn.
const PRODUCTS: [(&str, Product, [usize; 3]); 4] = [
    ("gemm", |a, b, c| gemm::gemm::<f16, 128, 256, 64>(a, b, c), [128, 256, 64]),
    ("small gemm", |a, b, c| gemm::gemm::<f16, 64, 64, 32>(a, b, c), [64, 64, 32]),
    ("gemm_ws", |a, b, c| gemm_ws::gemm_ws::<128, 128, 64>(a, b, c), [128, 128, 64]),
    ("gemm_in_turn", |a, b, c| gemm_ws::gemm_in_turn::<128, 128, 64>(a, b, c), [128, 128, 64]),
];

/// Small integers, whose products and sums are exact.
fn numbers(n: usize, seed: usize) -> Vec<f16> {
    (0..n).map(|i| f16::from_f32(((i * 7 + i / 5 + seed) % 5) as f32 - 2.0)).collect()
}

/// A product on a device: the code that runs it, and everything that is in the output's memory behind it.
fn run(dev: &Device, product: Product, [m, n, k]: [usize; 3], lies: [Lies; 3]) -> (Option<Choice>, Vec<u16>) {
    let shapes = [[m, k], [n, k], [m, n]];
    let filled = |i: usize| {
        let shape = lies[i].around(shapes[i]);
        dev.tensor(numbers(shape[0] * shape[1], i + 1), shape).unwrap()
    };
    let (a, b, mut c) = (filled(0), filled(1), filled(2));
    let (a, b) = (lies[0].view(&a, shapes[0]), lies[1].view(&b, shapes[1]));
    let mut view = lies[2].view_mut(&mut c, shapes[2]);
    let choice = product(&a, &b, &mut view).choice().unwrap();
    product(&a, &b, &mut view).sync().unwrap();
    (choice, c.to_vec().unwrap().into_iter().map(f16::to_bits).collect())
}

/// The same as on the CPU; returns the choice.
#[track_caller]
fn agrees(dev: &Device, what: &str, product: Product, size: [usize; 3], lies: [Lies; 3]) -> Option<Choice> {
    let (choice, found) = run(dev, product, size, lies);
    let (_, wanted) = run(&Device::cpu(), product, size, lies);
    let differs = found.iter().zip(&wanted).position(|(x, y)| x != y);
    assert_eq!((found.len(), differs), (wanted.len(), None), "{what}, {size:?}, {lies:?}: {choice:?}");
    choice
}

/// Runs `body` on each board, in a process of its own, which knows its board by the setting.
fn on_boards(test: &str, boards: &[&str], body: impl Fn(&Device, &str)) {
    let real = std::env::var("TITAN_DEVICE").is_ok_and(|name| name.starts_with("cuda"));
    if real && !is_emulated() && boards.contains(&HOPPER) {
        body(&Device::best().unwrap(), "the real device");
    }
    for board in boards {
        with(test, &[(DEVICES, board), ("CUDA_EMULATOR_ORDER", "random:1")], || {
            body(&device(), &std::env::var(DEVICES).unwrap());
        });
        if std::env::var(CHILD).is_ok() {
            return;
        }
    }
}

const ALONE: [Lies; 3] = [Lies::Alone; 3];

/// Whether this process has the emulated driver.
fn is_emulated() -> bool {
    std::env::var(CHILD).is_ok()
}

/// What a launch is expected to run, with the reasons in [`Choice`].
#[track_caller]
fn ran(choice: Option<&Choice>, target: &str) {
    let choice = choice.expect("there are programs");
    assert!(choice.target == target || !is_emulated(), "{choice}, and not that for {target}");
}

/// All cases; in the quick depth every third of them, others for each subject: so each case is met by some subject.
fn some_of<T>(cases: impl IntoIterator<Item = T>, subject: &str) -> Vec<T> {
    let first = subject.bytes().map(usize::from).sum::<usize>() % 3;
    cases
        .into_iter()
        .enumerate()
        .filter(|(i, _)| test_depth::is_full() || i % 3 == first)
        .map(|(_, case)| case)
        .collect()
}

/// Sizes for tiles of these extents, and whether bulk copies can bring the operands.
fn sizes([bm, bn, bk]: [usize; 3]) -> Vec<([usize; 3], bool)> {
    vec![
        // Nothing to sum, and rows or columns of nothing.
        ([bm + 2, bn + 8, 0], false),
        ([1, 1, 0], false),
        // Less than a tile, along all axes and along one.
        ([1, 8, 8], true),
        ([1, 1, 1], false),
        ([bm, bn, 8], true),
        // One tile; one step and a bit; all slots but one.
        ([bm, bn, bk], true),
        ([bm - 1, bn - 8, bk + 8], true),
        ([bm + 1, 8, 2 * bk], true),
        // Rows of C that begin anywhere.
        ([bm + 1, bn + 3, bk + 8], true),
        // More steps than slots; rows of A and B that begin anywhere.
        ([bm + 2, 16, 7 * bk + 8], true),
        ([bm + 2, 16, bk + 7], false),
    ]
}

#[test]
fn products_of_all_sizes() {
    on_boards("products_of_all_sizes", &[HOPPER], |dev, _| {
        for (what, product, tile) in PRODUCTS {
            for (size, in_bulk) in some_of(sizes(tile), what) {
                let choice = agrees(dev, what, product, size, ALONE);
                ran(choice.as_ref(), if in_bulk { "sm_90a" } else { "sm_80" });
            }
            for size in [[0, tile[1], tile[2]], [tile[0], 0, tile[2]], [0, 0, 0]] {
                // Programs that walk over tiles are launched and find none; a grid of no programs is not.
                let choice = agrees(dev, what, product, size, ALONE);
                assert_eq!(choice.is_some(), what.starts_with("gemm_"), "{what}: {size:?} has no tile");
            }
        }
    });
}

/// Clusters run where there is more than one tile along their axis.
#[test]
fn plain_products_have_clusters() {
    on_boards("plain_products_have_clusters", &[HOPPER], |dev, _| {
        for (what, product, [bm, bn, bk]) in PRODUCTS {
            let along_m = agrees(dev, what, product, [bm + 1, 8, bk], ALONE).unwrap();
            let along_n = agrees(dev, what, product, [8, bn + 1, bk], ALONE).unwrap();
            let refused = |choice: &Choice, axis: &str| choice.passed_over.iter().any(|(_, why)| why.contains(axis));
            assert!(along_m.passed_over.is_empty() || !is_emulated(), "{what}: {along_m}");
            ran(Some(&along_m), "sm_90a");
            assert!(refused(&along_n, &format!("`M > {bm}`")) || !is_emulated(), "{what}: {along_n}");
        }
    });
}

#[test]
fn views_of_all_kinds() {
    use Lies::{Alone, Below, OneColumn, OneRow, Turned, Within};
    // Views of A, B and C, and whether bulk copies can bring both operands.
    let cases = [
        ([Within(8, 16), Alone, Alone], true),
        ([Alone, Within(0, 8), Alone], true),
        ([Below(3), Below(5), Alone], true),
        ([Within(8, 8), Within(16, 24), Within(8, 16)], true),
        ([Alone, Alone, Below(2)], true),
        // A first element or rows that are not at multiples of 16 bytes.
        ([Within(1, 7), Alone, Alone], false),
        ([Alone, Within(8, 1), Alone], false),
        ([Within(3, 2), Within(5, 2), Within(1, 2)], false),
        // Columns, one row or one column for all.
        ([Turned, Alone, Alone], false),
        ([Alone, Turned, Turned], false),
        ([OneRow, Alone, Alone], false),
        ([Alone, OneRow, Below(1)], false),
        ([OneColumn, OneColumn, Alone], false),
    ];
    on_boards("views_of_all_kinds", &[HOPPER], |dev, _| {
        for (what, product, [bm, bn, bk]) in PRODUCTS {
            for (lies, in_bulk) in some_of(cases, what) {
                let choice = agrees(dev, what, product, [bm + 6, bn.min(72) - 8, bk + 16], lies);
                ran(choice.as_ref(), if in_bulk { "sm_90a" } else { "sm_80" });
            }
        }
    });
}

/// Outputs whose rows begin anywhere, beside operands that bulk copies bring: only elements of the view are written.
#[test]
fn outputs_whose_rows_begin_anywhere() {
    on_boards("outputs_whose_rows_begin_anywhere", &[HOPPER], |dev, _| {
        for (what, product, [bm, bn, bk]) in PRODUCTS {
            for lies in some_of([Lies::Within(1, 2), Lies::Within(8, 1), Lies::Turned, Lies::Alone], what) {
                let size = [bm + 3, bn.min(72) - 3, bk + 8];
                let choice = agrees(dev, what, product, size, [Lies::Alone, Lies::Alone, lies]);
                ran(choice.as_ref(), "sm_90a");
            }
        }
    });
}

/// The distance of rows does not matter if there is one; code also computes where further rows would be.
#[test]
fn one_row_of_any_pitch() {
    let boards: Vec<&str> = OTHERS.into_iter().chain([HOPPER]).collect();
    on_boards("one_row_of_any_pitch", &boards, |dev, _| {
        for (what, product, [_, _, bk]) in PRODUCTS {
            let one = Lies::Within(8, 1);
            for size in some_of([[1, 8, bk], [1, 1, bk], [1, 8, 0], [1, 1, 0]], what) {
                agrees(dev, what, product, size, [one, one, Lies::Alone]);
                agrees(dev, what, product, size, [one, Lies::Alone, one]);
            }
        }
    });
}

#[test]
fn devices_without_tensor_maps_or_of_other_architectures() {
    on_boards("devices_without_tensor_maps_or_of_other_architectures", &OTHERS, |dev, board| {
        for (what, product, tile @ [bm, bn, bk]) in PRODUCTS {
            for (size, _) in some_of(sizes(tile), what).into_iter().filter(|([_, _, k], _)| *k <= 2 * bk) {
                let choice = agrees(dev, what, product, size, ALONE).expect("there are programs");
                assert_eq!(choice.target, "sm_80", "{choice}");
                let told = choice.passed_over.iter().filter(|(target, _)| target == "sm_90a").count();
                assert_eq!(told, 0, "{board} is told of code for other devices: {choice}");
            }
            for lies in some_of([Lies::Within(1, 7), Lies::Turned, Lies::OneRow, Lies::Below(2)], what) {
                agrees(dev, what, product, [bm + 6, bn.min(72) - 8, bk + 16], [lies, Lies::Alone, Lies::Alone]);
            }
        }
    });
}

/// `C[m, n] = Σ_k A[64 · first + m, k] · B[n, k]`, and the same with another B if there is one.
#[titan::kernel(instances(BM in [64]), grid(cdiv(P, BM), cdiv(N, 32)))]
fn at_row<const BM: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(N, K)] other: Option<&Tensor<f16, 2>>,
    #[shape(P, N)] c: &mut Tensor<f32, 2>,
    first: i32,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, 32>::zeros();
    for k in pipelined(0..cdiv(K, 32)) {
        acc = mma(a.load_tile::<BM, 32>([first + m, k]), b.load_tile::<32, 32>([n, k]).t(), acc);
    }
    if let Some(other) = other {
        for k in pipelined(0..cdiv(K, 32)) {
            acc = mma(a.load_tile::<BM, 32>([first + m, k]), other.load_tile::<32, 32>([n, k]).t(), acc);
        }
    }
    c.store_tile([m, n], acc);
}

/// The code that runs [`at_row`], and its result.
fn run_at_row(dev: &Device, a: &View<'_, f16, 2>, second: bool, first: i32) -> (Option<Choice>, Vec<f32>) {
    let [p, n, k] = [70, 40, a.shape()[1]];
    let b = dev.tensor(numbers(n * k, 2), [n, k]).unwrap();
    let other = dev.tensor(numbers(n * k, 3), [n, k]).unwrap();
    let mut c = dev.full([p, n], f32::NAN).unwrap();
    let choice = at_row::<64>(a, &b, second.then_some(&other), &mut c, first).choice().unwrap();
    at_row::<64>(a, &b, second.then_some(&other), &mut c, first).sync().unwrap();
    (choice, c.to_vec().unwrap())
}

const ALL: [&str; 6] = [HOPPER, OTHERS[0], OTHERS[1], OTHERS[2], OTHERS[3], OTHERS[4]];

/// An operand of an MMA that a launch leaves out.
#[test]
fn operands_that_are_absent() {
    on_boards("operands_that_are_absent", &ALL, |dev, board| {
        for k in [0, 8, 31, 200] {
            let of = |dev: &Device, second| {
                let a = dev.tensor(numbers(70 * k, 1), [70, k]).unwrap();
                run_at_row(dev, &a.view(), second, 0)
            };
            for second in [false, true] {
                let (choice, found) = of(dev, second);
                assert_eq!(found, of(&Device::cpu(), second).1, "{board}, K = {k}, {second}: {choice:?}");
            }
        }
    });
}

/// Tiles outside of a tensor, and extents up to 2³¹ - 1: rows that are all one row take no memory.
#[test]
fn extents_near_the_greatest() {
    const MOST: usize = i32::MAX as usize;
    on_boards("extents_near_the_greatest", &ALL, |dev, board| {
        for rows in [1, 64, 130, (1 << 30) - 1, 1 << 30, MOST - 64, MOST] {
            let of = |dev: &Device, first| {
                let a = dev.tensor(numbers(24 * rows.min(130), 1), [rows.min(130), 24]).unwrap();
                let one = a.slice::<0>(0..1).unwrap();
                let a = if rows > 130 { one.broadcast([rows, 24]).unwrap() } else { a.view() };
                run_at_row(dev, &a, false, first)
            };
            let last = i32::try_from(rows.div_ceil(64)).unwrap() - 1;
            let all = [0, last, last - 1, last + 1, -1, i32::MAX / 64, i32::MAX, i32::MIN];
            for first in some_of(all, &format!("{rows} rows on {board}")) {
                let (choice, found) = of(dev, first);
                assert_eq!(found, of(&Device::cpu(), first).1, "{board}, {rows} rows, tile {first}: {choice:?}");
            }
        }
    });
}

/// How the heads of keys and values lie in memory.
#[derive(Clone, Copy, Debug)]
enum Heads {
    /// One after the other.
    Alone,
    /// Beside each other in rows, as a projection writes them.
    Beside,
    /// One head for all.
    One,
    /// Column by column.
    Turned,
}

impl Heads {
    /// The tensor in which they lie: `rows` of 64 elements for each of two batches and two heads.
    fn around(self, rows: usize) -> [usize; 4] {
        match self {
            Heads::Alone => [2, 2, rows, 64],
            Heads::Beside => [2, rows, 2, 64],
            Heads::One => [2, 1, rows, 64],
            Heads::Turned => [2, 2, 64, rows],
        }
    }

    fn view(self, memory: &Tensor<f16, 4>, rows: usize) -> View<'_, f16, 4> {
        match self {
            Heads::Alone => memory.view(),
            Heads::Beside => memory.permute([0, 2, 1, 3]).unwrap(),
            Heads::One => memory.broadcast([2, 2, rows, 64]).unwrap(),
            Heads::Turned => memory.transpose::<2, 3>().unwrap(),
        }
    }
}

/// Attention of `n` queries to `keys` keys on a device: the code that runs it, and its output.
fn attention(dev: &Device, [n, keys]: [usize; 2], causal: bool, heads: Heads) -> (Option<Choice>, Vec<f16>) {
    let filled = |rows: usize, seed: usize, heads: Heads| {
        let shape = heads.around(rows);
        dev.tensor(numbers(shape.iter().product(), seed), shape).unwrap()
    };
    let (q, k, v) = (filled(n, 1, Heads::Alone), filled(keys, 2, heads), filled(keys, 3, heads));
    let (k, v) = (heads.view(&k, keys), heads.view(&v, keys));
    let mut out = dev.full([2, 2, n, 64], f16::ONE).unwrap();
    let launch = if causal {
        flash_attention::flash_attention::<f16, 64, 64, 64, true>
    } else {
        flash_attention::flash_attention::<f16, 64, 64, 64, false>
    };
    let choice = launch(&q, &k, &v, &mut out, 0.125).choice().unwrap();
    launch(&q, &k, &v, &mut out, 0.125).sync().unwrap();
    (choice, out.to_vec().unwrap())
}

#[test]
fn attention_of_all_sizes_and_views() {
    on_boards("attention_of_all_sizes_and_views", &[HOPPER, "sm_86", "sm_100"], |dev, board| {
        let sizes = [[1, 1], [64, 64], [5, 0], [77, 100], [3, 65], [130, 330]];
        for (size, heads) in sizes
            .map(|size| (size, Heads::Alone))
            .into_iter()
            .chain([Heads::Beside, Heads::One, Heads::Turned].map(|heads| ([66, 136], heads)))
        {
            for causal in [false, true] {
                // The first queries of a causal product with fewer keys than queries see none.
                if causal && size[1] < size[0] {
                    continue;
                }
                let (choice, found) = attention(dev, size, causal, heads);
                let (_, wanted) = attention(&Device::cpu(), size, causal, heads);
                let choice = choice.expect("there are queries");
                let differs = found.iter().zip(&wanted).position(|(x, y)| {
                    let (x, y) = (x.to_f32(), y.to_f32());
                    x.is_nan() != y.is_nan() || (x - y).abs() > 4e-3 * (1.0 + y.abs())
                });
                assert_eq!(differs, None, "{board}: {size:?}, {causal}, {heads:?}: {choice}");
                let in_bulk = board == HOPPER && size[1] > 0 && matches!(heads, Heads::Alone | Heads::Beside);
                ran(Some(&choice), if in_bulk { "sm_90a" } else { "sm_80" });
            }
        }
    });
}

/// So many elements of a vector from one on, or of one element that is repeated.
fn part<'a>(x: &'a View<'_, f32, 1>, n: usize, apart: usize, first: usize) -> View<'a, f32, 1> {
    if apart == 0 { x.broadcast([n]).unwrap() } else { x.slice::<0>(first..first + n).unwrap() }
}

/// The sum of two vectors that lie in memory like this: each neighbour so many elements behind the one before, from an element on.
fn sum(dev: &Device, n: usize, apart: [usize; 3], first: usize) -> Vec<u32> {
    let memory = |i: usize| {
        let rows = if apart[i] == 0 { 1 } else { first + n };
        dev.from_fn([rows, apart[i].max(1)], |[r, c]| (r * 5 + c * 3 + i) as f32).unwrap()
    };
    let (x, y, mut z) = (memory(0), memory(1), memory(2));
    {
        let (x, y) = (x.index::<1>(0).unwrap(), y.index::<1>(0).unwrap());
        let (x, y) = (part(&x, n, apart[0], first), part(&y, n, apart[1], first));
        let mut z = z.index_mut::<1>(0).unwrap();
        let mut z = z.slice_mut::<0>(first..first + n).unwrap();
        vector_add::vector_add(&x, &y, &mut z).sync().unwrap();
    }
    z.to_vec().unwrap().into_iter().map(f32::to_bits).collect()
}

/// A kernel without MMAs, whose code is the same on all devices.
#[test]
fn elementwise_on_views_of_all_kinds() {
    on_boards("elementwise_on_views_of_all_kinds", &ALL, |dev, board| {
        for n in [0, 1, 3, 1023, 1024, 1025, 2500] {
            for apart in [[1, 1, 1], [1, 3, 1], [0, 1, 1], [0, 0, 4], [7, 1, 5]] {
                for first in some_of([0, 1, 4], &format!("{n} {apart:?} {board}")) {
                    let found = sum(dev, n, apart, first);
                    assert!(found == sum(&Device::cpu(), n, apart, first), "{board}: {n}, {apart:?}, {first}");
                }
            }
        }
    });
}

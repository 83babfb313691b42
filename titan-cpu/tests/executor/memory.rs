//! Loads and stores at every place, views, gathers, scatters, atomics, packed elements, ragged outputs.
#![expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "test data are small")]

use crate::common::{K, Rng, Tensor, all_options, data, run, shape_of};
use titan_core::ir::{AtomicOp, BinOp, Const, Elem, ForKind, OpKind, Unit, Value};
use titan_cpu::{Options, Program};

pub(crate) fn constant(k: &mut K, e: Elem, v: f64) -> Value {
    k.0.constant(if e.is_float() { Const::Float(e, v) } else { Const::Int(e, v as i64) })
}

/// Row-major coordinates of a box.
fn coordinates(extents: &[i32]) -> Vec<Vec<i32>> {
    extents.iter().fold(vec![vec![]], |all, n| {
        all.iter().flat_map(|at: &Vec<i32>| (0..*n).map(move |i| [&at[..], &[i]].concat())).collect()
    })
}

/// The element of a tensor, or the padding.
fn at(values: &[f64], extents: &[i32], coordinates: &[i32], pad: f64) -> f64 {
    let inside = coordinates.iter().zip(extents).all(|(i, n)| *i >= 0 && i < n);
    let index = coordinates.iter().zip(extents).fold(0i64, |sum, (i, n)| sum * i64::from(*n) + i64::from(*i));
    if inside { values[index as usize] } else { pad }
}

const CASES: [(&[i32], &[i32]); 4] =
    [(&[11], &[4]), (&[7, 10], &[4, 6]), (&[3, 5, 6], &[2, 3, 4]), (&[2, 3, 4, 6], &[2, 2, 3, 4])];

#[test]
fn a_load_from_an_output_sees_what_its_program_has_stored() {
    for options in all_options() {
        let mut k = K::new("again");
        let (y, z) = (k.output("y", Elem::F32, 1), k.output("z", Elem::F32, 1));
        let zero = k.i32(0);
        let (one, pad) = (constant(&mut k, Elem::F32, 1.0), constant(&mut k, Elem::F32, 0.0));
        let ones = k.op(OpKind::Splat(shape_of(&[4])), &[one]);
        k.store(y, &[zero], ones);
        let again = k.op(OpKind::Load(Unit::Tile, shape_of(&[4])), &[y, zero, pad]);
        k.store(z, &[zero], again);
        let program = k.compile(options);
        let (y, z) = (Tensor::zeros(Elem::F32, &[4]), Tensor::zeros(Elem::F32, &[4]));
        run(&program, &[y.arg(), z.arg()], [1, 1, 1]);
        assert_eq!(z.values(), [1.0; 4], "{options:?}");
    }
}

#[test]
fn loads_at_every_place() {
    for e in Elem::ALL {
        for (extents, tile) in CASES {
            for unit in [Unit::Elem, Unit::Tile] {
                for options in all_options().into_iter().take(2) {
                    check_load(e, extents, tile, unit, options);
                }
            }
        }
    }
}

/// One program loads from everywhere, inside, across each edge, and outside.
fn check_load(e: Elem, extents: &[i32], tile: &[i32], unit: Unit, options: Options) {
    let rank = extents.len();
    let even: Vec<i32> = if e.bits() == 4 { with_last(extents, extents[rank - 1] / 2 * 2) } else { extents.to_vec() };
    let pad = data(e, 1, 99)[0];
    let mut k = K::new("load");
    let (x, where_) = (k.input("x", e, rank), k.input("at", Elem::I32, 1));
    let y = k.output("y", e, rank);
    let coordinate = |k: &mut K, axis: i32| {
        let axis = k.i32(axis);
        k.op(OpKind::Get, &[where_, axis])
    };
    let place: Vec<Value> = (0..rank as i32).map(|axis| coordinate(&mut k, axis)).collect();
    let pad_value = constant(&mut k, e, pad);
    let args: Vec<Value> = [x].into_iter().chain(place).chain([pad_value]).collect();
    let t = k.op(OpKind::Load(unit, shape_of(tile)), &args);
    let zero = k.i32(0);
    k.store(y, &vec![zero; rank], t);
    let program = k.compile(options);
    let values = data(e, even.iter().product::<i32>() as usize, 7);
    let (tx, ty) = (Tensor::new(e, &even, &values), Tensor::zeros(e, tile));
    let starts: &[i32] = if unit == Unit::Tile { &[-1, 0, 1, 2] } else { &[-7, -2, 0, 1, 3, 9, 40] };
    for place in starts.iter().flat_map(|a| starts.iter().map(move |b| [*a, *b])).take(49) {
        let place: Vec<i32> = (0..rank).map(|axis| place[axis % 2]).collect();
        let whole: Vec<f64> = place.iter().map(|p| f64::from(*p)).collect();
        run(&program, &[tx.arg(), Tensor::new(Elem::I32, &[rank as i32], &whole).arg(), ty.arg()], [1, 1, 1]);
        let first: Vec<i32> =
            place.iter().zip(tile).map(|(p, n)| if unit == Unit::Tile { p * n } else { *p }).collect();
        let want: Vec<f64> = coordinates(tile)
            .iter()
            .map(|i| at(&values, &even, &i.iter().zip(&first).map(|(i, f)| i + f).collect::<Vec<_>>(), pad))
            .collect();
        assert_eq!(ty.values(), want, "{e} {extents:?} {tile:?} at {place:?} {unit} {options:?}");
    }
}

fn with_last(extents: &[i32], last: i32) -> Vec<i32> {
    let mut extents = extents.to_vec();
    *extents.last_mut().unwrap() = last;
    extents
}

#[test]
fn stores_at_every_place() {
    for e in Elem::ALL {
        for (extents, tile) in CASES {
            let rank = extents.len();
            let extents = if e.bits() == 4 { with_last(extents, extents[rank - 1] / 2 * 2) } else { extents.to_vec() };
            let mut k = K::new("store");
            let (x, where_) = (k.input("x", e, rank), k.input("at", Elem::I32, 1));
            let y = k.output("y", e, rank);
            let zero = k.i32(0);
            let t = k.load(x, &vec![zero; rank], tile);
            let mut args = vec![k.shared(y)];
            for axis in 0..rank as i32 {
                let axis = k.i32(axis);
                args.push(k.op(OpKind::Get, &[where_, axis]));
            }
            args.push(t);
            k.run(OpKind::Store(Unit::Elem), &args);
            let program = k.compile(Options::default());
            let values = data(e, tile.iter().product::<i32>() as usize, 5);
            let before = data(e, extents.iter().product::<i32>() as usize, 6);
            for start in [-50, -3, -1, 0, 1, 2, 5, 60] {
                let (tx, ty) = (Tensor::new(e, tile, &values), Tensor::new(e, &extents, &before));
                let place = Tensor::new(Elem::I32, &[rank as i32], &vec![f64::from(start); rank]);
                run(&program, &[tx.arg(), place.arg(), ty.arg()], [1, 1, 1]);
                let want: Vec<f64> = coordinates(&extents)
                    .iter()
                    .zip(&before)
                    .map(|(i, old)| at(&values, tile, &i.iter().map(|i| i - start).collect::<Vec<_>>(), *old))
                    .collect();
                assert_eq!(ty.values(), want, "{e} {tile:?} into {extents:?} at {start}");
            }
        }
    }
}

/// `y = x`, tile by tile, rank 2.
fn copy(e: Elem, tile: &[i32], options: Options) -> Program {
    let mut k = K::new("copy");
    let (x, y) = (k.input("x", e, 2), k.output("y", e, 2));
    let at = [k.pid(0), k.pid(1)];
    let t = k.load(x, &at, tile);
    k.store(y, &at, t);
    k.compile(options)
}

#[test]
fn strides_of_every_kind() {
    for e in [Elem::F64, Elem::F32, Elem::F16, Elem::U8, Elem::I4] {
        for options in all_options().into_iter().take(2) {
            let program = copy(e, &[4, 4], options);
            let values = data(e, 120, 3);
            let memory = Tensor::new(e, &[120], &values).memory;
            // (strides, offset in elements): dense, rows apart, transposed, repeated, backwards.
            for (strides, first) in
                [([10, 1], 0i64), ([12, 1], 4), ([1, 9], 2), ([0, 1], 6), ([10, 0], 0), ([-10, 1], 60), ([7, -1], 12)]
            {
                let x = Tensor {
                    elem: e,
                    extents: vec![6, 8],
                    strides: strides.to_vec(),
                    memory: memory.clone(),
                    offset: 0,
                };
                let x = Tensor { offset: (first as usize * e.bits() as usize) / 8, ..x };
                let y = Tensor::zeros(e, &[6, 8]);
                run(&program, &[x.arg(), y.arg()], [2, 2, 1]);
                let want: Vec<f64> =
                    (0..48).map(|i| values[(first + i / 8 * strides[0] + i % 8 * strides[1]) as usize]).collect();
                assert_eq!(y.values(), want, "{e} {strides:?}");
                // The same view as an output, where it has no element twice.
                if strides.iter().all(|s| *s != 0) && strides != [7, -1] {
                    let to = Tensor { memory: Tensor::zeros(e, &[120]).memory, ..x.clone() };
                    run(&program, &[y.arg(), to.arg()], [2, 2, 1]);
                    let got = to.values();
                    assert!(
                        (0..48).all(
                            |i| got[(first + i / 8 * strides[0] + i % 8 * strides[1]) as usize] == want[i as usize]
                        )
                    );
                }
            }
        }
    }
}

/// Views made by `f`, then loaded as rank-2 tiles at (0, 0) in element units after `shift`.
fn view_of(
    extents: &[i32],
    f: &dyn Fn(&mut K, Value, Value) -> Value,
    offsets: &[i64],
    shift: [i32; 2],
) -> Result<Vec<f64>, titan_cpu::RunError> {
    let mut k = K::new("view");
    let (x, off) = (k.input("x", Elem::F32, extents.len()), k.input("off", Elem::I32, 1));
    let y = k.output("y", Elem::F32, 2);
    let v = f(&mut k, x, off);
    let at = shift.map(|s| k.i32(s));
    let pad = constant(&mut k, Elem::F32, -1.0);
    let t = k.op(OpKind::Load(Unit::Elem, shape_of(&[4, 4])), &[v, at[0], at[1], pad]);
    let zero = k.i32(0);
    k.store(y, &[zero, zero], t);
    let program = k.compile(Options::default());
    let n = extents.iter().product::<i32>();
    let values: Vec<f64> = (0..n).map(f64::from).collect();
    let off = Tensor::ints(Elem::I32, &[offsets.len() as i32], offsets);
    let y = Tensor::zeros(Elem::F32, &[4, 4]);
    program.run(&[Tensor::new(Elem::F32, extents, &values).arg(), off.arg(), y.arg()], [1, 1, 1])?;
    Ok(y.values())
}

/// Rows and columns of a matrix of `cols` columns, as far as they are inside `rows .. , cols ..`.
fn window(cols: i32, rows: std::ops::Range<i32>, width: std::ops::Range<i32>, shift: [i32; 2]) -> Vec<f64> {
    let cell = |i: i32, j: i32| {
        let (r, c) = (rows.start + i + shift[0], width.start + j + shift[1]);
        let inside = rows.contains(&r) && width.contains(&c) && i + shift[0] >= 0 && j + shift[1] >= 0;
        if inside { f64::from(r * cols + c) } else { -1.0 }
    };
    (0..16).map(|i| cell(i / 4, i % 4)).collect()
}

#[test]
fn slices_clip_to_the_tensor() {
    for (lo, hi) in [(0, 6), (2, 5), (-3, 2), (4, 100), (5, 2), (9, 12), (i32::MIN, i32::MAX)] {
        for shift in [[0, 0], [-1, 1], [1, -2]] {
            let (from, to) = (lo.clamp(0, 6), hi.clamp(0, 6).max(lo.clamp(0, 6)));
            let f = |axis: u8| {
                move |k: &mut K, x: Value, _: Value| {
                    let range = [k.i32(lo), k.i32(hi)];
                    k.op(OpKind::Slice(axis), &[x, range[0], range[1]])
                }
            };
            assert_eq!(
                view_of(&[6, 5], &f(0), &[0], shift).unwrap(),
                window(5, from..to, 0..5, shift),
                "rows {lo}..{hi}"
            );
            assert_eq!(
                view_of(&[5, 6], &f(1), &[0], shift).unwrap(),
                window(6, 0..5, from..to, shift),
                "columns {lo}..{hi}"
            );
        }
    }
}

#[test]
fn an_index_fixes_an_axis_and_outside_of_it_everything_is_outside() {
    for (i, inside) in [(0, true), (2, true), (-1, false), (3, false), (i32::MIN, false)] {
        let f = |k: &mut K, x: Value, _: Value| {
            let i = k.i32(i);
            k.op(OpKind::Index(0), &[x, i])
        };
        let want: Vec<f64> =
            window(5, 0..4, 0..5, [0, 0]).iter().map(|v| if inside { v + f64::from(i * 20) } else { -1.0 }).collect();
        assert_eq!(view_of(&[3, 4, 5], &f, &[0], [0, 0]).unwrap(), want, "index {i}");
    }
    // The middle axis, of a slice, of a segment.
    let f = |k: &mut K, x: Value, off: Value| {
        let [one, two, six] = [1, 2, 6].map(|i| k.i32(i));
        let x = k.op(OpKind::Segment, &[x, off, one]);
        let x = k.op(OpKind::Slice(2), &[x, one, six]);
        k.op(OpKind::Index(1), &[x, two])
    };
    let got = view_of(&[4, 3, 5], &f, &[0, 1, 3], [0, 0]).unwrap();
    let want: Vec<f64> =
        (0..16).map(|i| if i / 4 < 2 { f64::from((i / 4 + 1) * 15 + 10 + i % 4 + 1) } else { -1.0 }).collect();
    assert_eq!(got, want);
}

#[test]
fn segments_are_checked() {
    let f = |e: i32| {
        move |k: &mut K, x: Value, off: Value| {
            k.0.set_loc(titan_core::ir::Loc { line: 3, column: 9 });
            let e = k.i32(e);
            k.op(OpKind::Segment, &[x, off, e])
        }
    };
    assert_eq!(view_of(&[6, 5], &f(1), &[0, 2, 5], [0, 0]).unwrap(), window(5, 2..5, 0..5, [0, 0]));
    assert_eq!(view_of(&[6, 5], &f(0), &[2, 2], [0, 0]).unwrap(), [-1.0; 16]);
    for (e, offsets, part) in [
        (0, vec![3, 2], "segment 0 is 3 .. 2"),
        (0, vec![-1, 2], "segment 0 is -1 .. 2"),
        (1, vec![0, 2, 7], "segment 1 is 2 .. 7, which is not a range of an axis of 6"),
        (2, vec![0, 2, 3], "segment 2 of 3 offsets"),
        (-1, vec![0, 2, 3], "segment -1 of 3 offsets"),
    ] {
        let error = view_of(&[6, 5], &f(e), &offsets, [0, 0]).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("line 3, column 9"), "{error}");
    }
}

#[test]
fn rows_are_gathered_and_scattered() {
    for e in Elem::ALL {
        let extents = [4, 3, 10];
        let values = data(e, 120, 12);
        let i = [0i64, 3, -1, 2, 4, 1, 0, 2];
        let j = 2;
        for col in [-3, 0, 4, 8, 20] {
            let mut k = K::new("gather_rows");
            let (x, ix) = (k.input("x", e, 3), k.input("ix", Elem::I32, 1));
            let y = k.output("y", e, 2);
            let zero = k.i32(0);
            let rows = k.load(ix, &[zero], &[8]);
            let (second, first_col) = (k.i32(j), k.i32(col));
            let pad = constant(&mut k, e, 1.0);
            let t = k.op(OpKind::GatherRows { rows: 8, width: 6 }, &[x, rows, second, first_col, pad]);
            k.store(y, &[zero, zero], t);
            let program = k.compile(Options::default());
            let y = Tensor::zeros(e, &[8, 6]);
            let tx = Tensor::new(e, &extents, &values);
            run(&program, &[tx.arg(), Tensor::ints(Elem::I32, &[8], &i).arg(), y.arg()], [1, 1, 1]);
            let want: Vec<f64> =
                (0..48).map(|n| at(&values, &extents, &[i[n / 6] as i32, j, col + n as i32 % 6], 1.0)).collect();
            assert_eq!(y.values(), want, "{e} column {col}");
        }
    }
    for e in Elem::ALL.into_iter().filter(|e| e.bits() >= 8) {
        let mut k = K::new("scatter_rows");
        let (x, ix) = (k.input("x", e, 2), k.input("ix", Elem::I32, 1));
        let y = k.output("y", e, 3);
        let zero = k.i32(0);
        let (rows, t) = (k.load(ix, &[zero], &[4]), k.load(x, &[zero, zero], &[4, 6]));
        let (one, col) = (k.i32(1), k.i32(-2));
        k.run(OpKind::ScatterRows, &[y, one, rows, col, t]);
        let program = k.compile(Options::default());
        let (values, i) = (data(e, 24, 13), [2i64, -1, 0, 5]);
        let y = Tensor::zeros(e, &[2, 3, 5]);
        run(
            &program,
            &[Tensor::new(e, &[4, 6], &values).arg(), Tensor::ints(Elem::I32, &[4], &i).arg(), y.arg()],
            [1, 1, 1],
        );
        let mut want = vec![0.0; 30];
        for (row, target) in [(0, 2), (2, 0)] {
            (0..4).for_each(|c| want[15 + target * 5 + c] = values[row * 6 + c + 2]);
        }
        assert_eq!(y.values(), want, "{e}");
    }
}

#[test]
fn elements_are_gathered_and_scattered() {
    for e in Elem::ALL {
        let mut k = K::new("gather");
        let (x, i, j) = (k.input("x", e, 2), k.input("i", Elem::I32, 2), k.input("j", Elem::I32, 2));
        let y = k.output("y", e, 2);
        let zero = k.i32(0);
        let (ti, tj) = (k.load(i, &[zero, zero], &[4, 6]), k.load(j, &[zero, zero], &[4, 6]));
        let pad = constant(&mut k, e, 1.0);
        let t = k.op(OpKind::Gather, &[x, ti, tj, pad]);
        k.store(y, &[zero, zero], t);
        let program = k.compile(Options::default());
        let mut rng = Rng(17);
        let mut indices = |n: u64| (0..24).map(|_| rng.below(n + 2) as i64 - 1).collect::<Vec<i64>>();
        let (vi, vj, values) = (indices(5), indices(8), data(e, 40, 14));
        let y = Tensor::zeros(e, &[4, 6]);
        let ints = |v: &[i64]| Tensor::ints(Elem::I32, &[4, 6], v).arg();
        run(&program, &[Tensor::new(e, &[5, 8], &values).arg(), ints(&vi), ints(&vj), y.arg()], [1, 1, 1]);
        let want: Vec<f64> =
            vi.iter().zip(&vj).map(|(i, j)| at(&values, &[5, 8], &[*i as i32, *j as i32], 1.0)).collect();
        assert_eq!(y.values(), want, "{e}");
    }
}

/// Every program applies an operation to the elements that random lanes name.
fn scatter_kernel(kind: OpKind, e: Elem) -> Program {
    let mut k = K::new("scatter");
    let (i, v) = (k.input("i", Elem::I32, 1), k.input("v", e, 1));
    let y = k.output("y", e, 1);
    let p = k.pid(0);
    let (ti, tv) = (k.load(i, &[p], &[64]), k.load(v, &[p], &[64]));
    k.run(kind, &[y, ti, tv]);
    k.compile(Options::default())
}

#[test]
fn colliding_scatters_leave_one_of_the_values() {
    let (n, cells) = (64 * 500i32, 40);
    let mut rng = Rng(3);
    let i: Vec<i64> = (0..n).map(|_| rng.below(cells + 2) as i64 - 1).collect();
    let v: Vec<i64> = (0..i64::from(n)).map(|n| n * 7 % 60_000).collect();
    for e in Elem::ALL.into_iter().filter(|e| e.is_arith_int() && e.bits() >= 16) {
        let v: Vec<i64> = v.iter().map(|v| titan_core::ir::fold::wrap(e, *v)).collect();
        let y = Tensor::ints(e, &[cells as i32], &vec![-1; cells as usize]);
        let args = [Tensor::ints(Elem::I32, &[n], &i).arg(), Tensor::ints(e, &[n], &v).arg(), y.arg()];
        run(&scatter_kernel(OpKind::Scatter, e), &args, [500, 1, 1]);
        for (cell, value) in y.int_values().iter().enumerate() {
            assert!(
                i.iter().zip(&v).any(|(i, v)| *i == cell as i64 && v == value),
                "{e}: {value} was not stored to {cell}"
            );
        }
    }
}

#[test]
fn every_atomic_contribution_counts() {
    let (n, cells) = (64 * 500, 7u64);
    let mut rng = Rng(4);
    let i: Vec<i64> = (0..n).map(|_| rng.below(cells + 1) as i64 - 1).collect();
    for e in Elem::ALL.into_iter().filter(|e| e.is_arith() && e.bits() >= 16) {
        // Small whole numbers: sums are exact in every type that holds the result.
        let largest = if e.bits() == 16 { 1 } else { 50 };
        let v: Vec<f64> =
            (0..n).map(|j| if e.bits() == 16 && j % 32 != 0 { 0.0 } else { rng.below(largest + 1) as f64 }).collect();
        for (op, atomic) in [(AtomicOp::Add, BinOp::Add), (AtomicOp::Max, BinOp::Max), (AtomicOp::Min, BinOp::Min)] {
            let y = Tensor::new(e, &[cells as i32], &vec![3.0; cells as usize]);
            let args = [Tensor::ints(Elem::I32, &[n], &i).arg(), Tensor::new(e, &[n], &v).arg(), y.arg()];
            run(&scatter_kernel(OpKind::Atomic(op), e), &args, [500, 1, 1]);
            let mut want = vec![3.0; cells as usize];
            for (i, v) in i.iter().zip(&v).filter(|(i, _)| **i >= 0) {
                let old = &mut want[*i as usize];
                *old = match atomic {
                    BinOp::Add => *old + v,
                    BinOp::Max => old.max(*v),
                    _ => old.min(*v),
                };
            }
            if e != Elem::Bf16 || op != AtomicOp::Add {
                assert_eq!(y.values(), want, "{e} {op}");
            }
        }
    }
}

#[test]
fn tiles_are_added_atomically() {
    for e in [Elem::F32, Elem::I32, Elem::F64, Elem::F16] {
        let mut k = K::new("atomic_tile");
        let (x, y) = (k.input("x", e, 2), k.output("y", e, 2));
        // A grid has the axes that its kernel names.
        k.pid(0);
        let zero = k.i32(0);
        let t = k.load(x, &[zero, zero], &[4, 8]);
        k.run(OpKind::AtomicTile(AtomicOp::Add), &[y, zero, zero, t]);
        let program = k.compile(Options::default());
        // The tile sticks out of the tensor.
        let (x, y) = (Tensor::new(e, &[4, 8], &[1.0; 32]), Tensor::zeros(e, &[3, 6]));
        run(&program, &[x.arg(), y.arg()], [1000, 1, 1]);
        assert_eq!(y.values(), [1000.0; 18], "{e}");
    }
}

#[test]
fn packed_elements_of_neighbouring_programs() {
    for e in [Elem::I4, Elem::U4] {
        for tile in [[1, 2], [2, 6], [3, 16]] {
            let program = copy(e, &tile, Options::default());
            let values = data(e, 10 * 32, 8);
            let (x, y) = (Tensor::new(e, &[10, 32], &values), Tensor::new(e, &[10, 32], &[1.0; 320]));
            let programs = |axis: usize, n: u32| n.div_ceil(tile[axis] as u32);
            run(&program, &[x.arg(), y.arg()], [programs(0, 10), programs(1, 32), 1]);
            assert_eq!(y.values(), values, "{e} {tile:?}");
        }
    }
}

#[test]
fn ragged_outputs_cover_every_segment() {
    let mut k = K::new("ragged");
    let off = k.input("off", Elem::I32, 1);
    let y = k.output("y", Elem::I32, 2);
    let (rows, cols) = (4, 8);
    let n = k.op(OpKind::RaggedCount { rows, cols }, &[y, off]);
    let (lo, step) = (k.i32(0), k.i32(1));
    let open = k.0.begin_for(ForKind::Distributed, [lo, n, step], &[]).unwrap();
    let place = k.run(OpKind::RaggedTile { rows, cols }, &[y, off, open.index.unwrap()]);
    let part = k.op(OpKind::Segment, &[y, off, place[0]]);
    let hundred = k.i32(100);
    let e = k.op(OpKind::Binary(BinOp::Mul), &[place[0], hundred]);
    let ten = k.i32(10);
    let m = k.op(OpKind::Binary(BinOp::Mul), &[place[1], ten]);
    let sum = k.op(OpKind::Binary(BinOp::Add), &[e, m]);
    let sum = k.op(OpKind::Binary(BinOp::Add), &[sum, place[2]]);
    let one = k.i32(1);
    let sum = k.op(OpKind::Binary(BinOp::Add), &[sum, one]);
    let t = k.op(OpKind::Splat(shape_of(&[rows, cols])), &[sum]);
    k.store(part, &[place[1], place[2]], t);
    k.0.terminate(OpKind::Continue(0), &[]);
    k.0.end_loop(open, &[]);
    let program = k.compile(Options::default());
    let offsets = [0i64, 3, 3, 9, 10, 20];
    for programs in [1, 2, 7, 100] {
        let y = Tensor::zeros(Elem::I32, &[20, 19]);
        run(&program, &[Tensor::ints(Elem::I32, &[6], &offsets).arg(), y.arg()], [programs, 1, 1]);
        for (i, got) in y.int_values().iter().enumerate() {
            let (row, col) = (i as i64 / 19, i as i64 % 19);
            let e = offsets.iter().rposition(|o| *o <= row).unwrap();
            let want = e as i64 * 100 + (row - offsets[e]) / 4 * 10 + col / 8 + 1;
            assert_eq!(*got, want, "row {row}, column {col}");
        }
    }
}

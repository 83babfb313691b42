//! Every operation on every element type that has it, on ragged tensors with and without alignment.

use crate::cases::{Case, Tile, Values, get, load, places, tensor};
use crate::devices::{Outcome, Tensors, emulated, on_cpu, on_gfx942, on_gpu};
use crate::machine::Rng;
use crate::numbers::{Num, excess, is_float};
use crate::random::PROGRAMS;
use crate::reference::{self, Want};
use crate::report::{say, setting};
use std::collections::BTreeMap;
use titan_core::ir::{ArgOp, BinOp, Elem, OpKind, Pred, ReduceOp, UnOp, mma_is_legal};
use titan_core::verify::verify;

const FLOATS: [Elem; 4] = [Elem::F64, Elem::F32, Elem::F16, Elem::Bf16];
const INTS: [Elem; 8] = [Elem::I64, Elem::I32, Elem::I16, Elem::I8, Elem::U64, Elem::U32, Elem::U16, Elem::U8];

/// Types that casts know, except those that share a byte.
const ALL: [Elem; 16] = [
    Elem::F64,
    Elem::F32,
    Elem::Tf32,
    Elem::F16,
    Elem::Bf16,
    Elem::E4m3,
    Elem::E5m2,
    Elem::I64,
    Elem::I32,
    Elem::I16,
    Elem::I8,
    Elem::U64,
    Elem::U32,
    Elem::U16,
    Elem::U8,
    Elem::Bool,
];

fn arithmetic() -> impl Iterator<Item = Elem> {
    FLOATS.into_iter().chain(INTS)
}

fn shape(rng: &mut Rng, least: usize) -> Vec<i32> {
    let rank = least + rng.below(3 - least as u32 + 1) as usize;
    loop {
        let shape: Vec<i32> = (0..rank).map(|_| rng.of(&[1, 2, 3, 5, 7, 8, 12, 16, 24, 32, 48])).collect();
        if shape.iter().product::<i32>() <= 384 {
            return shape;
        }
    }
}

/// A case that works on elements at the same place.
fn each(name: String, elems: &[Elem], shape: &[i32], kind: OpKind, want: impl Fn(&[Num]) -> Want + 'static) -> Case {
    Case {
        name,
        inputs: elems.iter().map(|e| (*e, shape.to_vec())).collect(),
        values: Values::Any,
        build: Box::new(move |b, tiles| b.op(kind.clone(), tiles)),
        expect: Box::new(move |tiles| {
            let at = |i: usize| tiles.iter().map(|t| t.data[i]).collect::<Vec<_>>();
            vec![(0..tiles[0].data.len()).map(|i| want(&at(i))).collect()]
        }),
    }
}

/// A select by one `bool`, which is computed from a tile of one element.
fn select_by_one(elem: Elem, shape: &[i32]) -> Case {
    Case {
        name: format!("select {elem} by one bool"),
        inputs: vec![(Elem::I32, vec![1]), (elem, shape.to_vec()), (elem, shape.to_vec())],
        values: Values::Any,
        build: Box::new(move |b, tiles| {
            let (zero, number) = (b.i32(0), b.op1(OpKind::Reduce(ReduceOp::Max, 0), &tiles[..1])?);
            let one = b.op1(OpKind::Cmp(Pred::Gt), &[number, zero])?;
            b.op(OpKind::Select, &[one, tiles[1], tiles[2]])
        }),
        expect: Box::new(move |tiles| {
            let chosen = if tiles[0].data[0].int() > 0 { &tiles[1] } else { &tiles[2] };
            vec![chosen.data.iter().map(|x| Want::exact(*x)).collect()]
        }),
    }
}

fn elementwise(rng: &mut Rng) -> Vec<Case> {
    let mut all = Vec::new();
    for elem in arithmetic() {
        for op in UnOp::ALL.iter().copied() {
            let case = each(format!("{op} {elem}"), &[elem], &shape(rng, 1), OpKind::Unary(op), move |x| {
                reference::unary(op, elem, x[0])
            });
            all.push(case);
        }
        for op in BinOp::ALL.iter().copied() {
            all.push(each(format!("{op} {elem}"), &[elem; 2], &shape(rng, 1), OpKind::Binary(op), move |x| {
                reference::binary(op, elem, x[0], x[1])
            }));
        }
        let pred = rng.of(Pred::ALL);
        all.push(each(format!("{pred} {elem}"), &[elem; 2], &shape(rng, 1), OpKind::Cmp(pred), move |x| {
            Want::exact(Num::Int(reference::compare(pred, x[0], x[1]).into()))
        }));
        all.push(each(format!("select {elem}"), &[Elem::Bool, elem, elem], &shape(rng, 1), OpKind::Select, |x| {
            Want::exact(if x[0].int() != 0 { x[1] } else { x[2] })
        }));
        all.push(select_by_one(elem, &shape(rng, 1)));
    }
    for elem in FLOATS {
        all.push(each(format!("mul_add {elem}"), &[elem; 3], &shape(rng, 1), OpKind::MulAdd, |x| {
            Want::exact(Num::Float(titan_core::num::fma(x[0].float(), x[1].float(), x[2].float())))
        }));
    }
    for from in ALL {
        for to in ALL.into_iter().filter(|to| *to != from) {
            all.push(each(format!("{from} to {to}"), &[from], &shape(rng, 1), OpKind::Cast(to), move |x| {
                reference::cast(to, x[0])
            }));
        }
    }
    all
}

/// The lines of a tile along an axis: where each begins among the rest, and its elements.
fn lines(tile: &Tile, axis: usize) -> Vec<Vec<Num>> {
    let inner: usize = tile.shape[axis + 1..].iter().product::<i32>() as usize;
    let (n, outer) = (tile.shape[axis] as usize, tile.shape[..axis].iter().product::<i32>() as usize);
    let line = |o: usize, i: usize| (0..n).map(|k| tile.data[(o * n + k) * inner + i]).collect();
    (0..outer).flat_map(|o| (0..inner).map(move |i| line(o, i))).collect()
}

fn along(
    name: String,
    elem: Elem,
    kind: OpKind,
    shape: &[i32],
    expect: impl Fn(&Tile) -> Vec<Vec<Want>> + 'static,
) -> Case {
    Case {
        name,
        inputs: vec![(elem, shape.to_vec())],
        values: Values::Tame,
        build: Box::new(move |b, tiles| b.op(kind.clone(), tiles)),
        expect: Box::new(move |tiles| expect(&tiles[0])),
    }
}

fn best(op: ArgOp, line: &[Num]) -> usize {
    let better = |a: Num, b: Num| {
        let (x, y) = if op == ArgOp::Max { (a, b) } else { (b, a) };
        match (x, y) {
            (Num::Int(x), Num::Int(y)) => x > y,
            (x, y) => x.float() > y.float() || (b.float().is_nan() && !a.float().is_nan()),
        }
    };
    (1..line.len()).fold(0, |best, i| if better(line[i], line[best]) { i } else { best })
}

fn reductions(rng: &mut Rng) -> Vec<Case> {
    let mut all = Vec::new();
    for elem in arithmetic() {
        for op in ReduceOp::ALL.iter().copied() {
            let extents = shape(rng, 2);
            let axis = rng.below(extents.len() as u32) as usize;
            all.push(along(format!("reduce_{op} {elem}"), elem, OpKind::Reduce(op, axis as u8), &extents, move |t| {
                vec![lines(t, axis).iter().map(|line| reference::reduce(op, elem, line)).collect()]
            }));
            let extents = shape(rng, 1);
            let axis = rng.below(extents.len() as u32) as usize;
            all.push(along(format!("scan_{op} {elem}"), elem, OpKind::Scan(op, axis as u8), &extents, move |t| {
                vec![scanned(t, axis, |line| reference::reduce(op, elem, line))]
            }));
        }
        for op in ArgOp::ALL.iter().copied() {
            let extents = shape(rng, 2);
            let axis = rng.below(extents.len() as u32) as usize;
            all.push(along(format!("arg{op} {elem}"), elem, OpKind::ArgReduce(op, axis as u8), &extents, move |t| {
                let lines = lines(t, axis);
                let value = lines.iter().map(|line| Want::exact(line[best(op, line)])).collect();
                let index = lines.iter().map(|line| Want::exact(Num::Int(best(op, line) as i128))).collect();
                vec![value, index]
            }));
        }
    }
    all
}

/// A scan, back in row-major order.
fn scanned(tile: &Tile, axis: usize, f: impl Fn(&[Num]) -> Want) -> Vec<Want> {
    let inner: usize = tile.shape[axis + 1..].iter().product::<i32>() as usize;
    let n = tile.shape[axis] as usize;
    let lines = lines(tile, axis);
    let place = |i: usize| (i / (inner * n) * inner + i % inner, i / inner % n);
    (0..tile.data.len()).map(|i| f(&lines[place(i).0][..=place(i).1])).collect()
}

fn products(rng: &mut Rng) -> Vec<Case> {
    let mut all = Vec::new();
    for (a, b) in ALL.into_iter().flat_map(|a| ALL.into_iter().map(move |b| (a, b))) {
        for acc in [Elem::F64, Elem::F32, Elem::I32] {
            if !mma_is_legal(a, b, acc) {
                continue;
            }
            for batch in [None, None, Some(2)] {
                let [m, n, k] =
                    [rng.of(&[1, 8, 16, 24, 32, 48]), rng.of(&[1, 8, 16, 40, 64]), rng.of(&[4, 8, 16, 20, 32, 64])];
                let of = |x: i32, y: i32| batch.into_iter().chain([x, y]).collect::<Vec<i32>>();
                all.push(Case {
                    name: format!("mma {a} {b} {acc}"),
                    inputs: vec![(a, of(m, k)), (b, of(k, n)), (acc, of(m, n))],
                    values: Values::Tame,
                    build: Box::new(|b, tiles| b.op(OpKind::Mma, tiles)),
                    expect: Box::new(move |tiles| vec![product(acc, tiles)]),
                });
            }
        }
    }
    all
}

fn product(acc: Elem, tiles: &[Tile]) -> Vec<Want> {
    let (rows, columns) = (lines(&tiles[0], tiles[0].shape.len() - 1), lines(&tiles[1], tiles[1].shape.len() - 2));
    let of = |t: &Tile, back: usize| t.shape[t.shape.len() - back] as usize;
    let (m, n) = (of(&tiles[2], 2), of(&tiles[2], 1));
    let want = |i: usize| {
        let (batch, row, column) = (i / (m * n), i / n % m, i % n);
        reference::dot(acc, &rows[batch * m + row], &columns[batch * n + column], tiles[2].data[i])
    };
    (0..tiles[2].data.len()).map(want).collect()
}

/// How far the results of a run are from what they should be.
fn worst(case: &Case, outs: &[(Elem, Vec<i32>)], before: &Tensors, after: &Tensors) -> Result<f64, String> {
    let mut worst = 0f64;
    let inputs = case.inputs.len();
    for (i, (elem, shape)) in outs.iter().enumerate() {
        let (old, new) =
            (before[inputs + i].as_ref().expect("a tensor"), after[inputs + i].as_ref().expect("a tensor"));
        let mut wanted = BTreeMap::new();
        for p in 0..PROGRAMS {
            let tiles: Vec<Tile> = case
                .inputs
                .iter()
                .zip(before)
                .map(|((_, shape), t)| load(t.as_ref().expect("a tensor"), shape, p))
                .collect();
            let extents: Vec<u32> = shape.iter().map(|n| n.unsigned_abs()).collect();
            for (mut at, want) in places(&extents).into_iter().zip((case.expect)(&tiles).swap_remove(i)) {
                at[0] += i64::from(p) * i64::from(shape[0]);
                wanted.insert(at, want);
            }
        }
        for at in places(&new.extents) {
            let found = get(new, &at).expect("inside");
            let want = wanted.get(&at).copied().unwrap_or(Want::exact(get(old, &at).expect("inside")));
            let off = apart(*elem, found, want);
            if off > want.bound.ulps + 1e-6 {
                return Err(format!(
                    "result {i} at {at:?} is {found:?}, not {:?}: off by {off} of {:?}",
                    want.value, want.bound
                ));
            }
            worst = worst.max(off);
        }
    }
    Ok(worst)
}

fn apart(elem: Elem, found: Num, want: Want) -> f64 {
    if is_float(elem) {
        return excess(elem, found.float(), want.value.float(), want.bound);
    }
    if found == want.value { 0.0 } else { f64::INFINITY }
}

/// The greatest errors of executor, emulators of PTX and of gfx942, and GPU by operation, in last places; and how often what was run.
#[derive(Default)]
struct Tally {
    errors: BTreeMap<String, [f64; 4]>,
    runs: u64,
    refused: BTreeMap<String, u64>,
}

fn run(case: &Case, (seed, values): (u64, Values), aligned: bool, tally: &mut Tally) -> Result<(), String> {
    let Ok((kernel, outs)) = case.kernel() else { return Ok(()) };
    let verified = verify(kernel).map_err(|errors| format!("{errors:?}"))?;
    let mut rng = Rng::new(seed);
    let mut tensors: Tensors = Vec::new();
    for (elem, shape) in &case.inputs {
        tensors.push(Some(tensor(&mut rng, *elem, shape.len(), aligned, values)));
    }
    for (elem, shape) in &outs {
        tensors.push(Some(tensor(&mut rng, *elem, shape.len(), aligned, Values::Tame)));
    }
    let errors = tally.errors.entry(case.name.clone()).or_default();
    let executed = on_cpu(&verified, &tensors, 1).and_then(|after| worst(case, &outs, &tensors, &after));
    errors[0] = errors[0].max(executed.map_err(|e| format!("executor: {e}"))?);
    match emulated(&verified, &tensors, 1) {
        Ok((Outcome::Done(after), _)) => {
            let off = worst(case, &outs, &tensors, &after).map_err(|e| format!("emulator: {e}"))?;
            errors[1] = errors[1].max(off);
        }
        Ok((Outcome::Refused(reason), _)) => *tally.refused.entry(reason).or_default() += 1,
        Err(error) => return Err(format!("emulator: {error}")),
    }
    match on_gfx942(&verified, &tensors, 1) {
        Some(Ok((Outcome::Done(after), _))) => {
            let off = worst(case, &outs, &tensors, &after).map_err(|e| format!("gfx942: {e}"))?;
            errors[2] = errors[2].max(off);
        }
        Some(Ok((Outcome::Refused(reason), _))) => *tally.refused.entry(reason).or_default() += 1,
        Some(Err(error)) => return Err(format!("gfx942: {error}")),
        None => {}
    }
    match on_gpu(&verified, &tensors, 1) {
        Some(Ok(Outcome::Done(after))) => {
            let off = worst(case, &outs, &tensors, &after).map_err(|e| format!("GPU: {e}"))?;
            errors[3] = errors[3].max(off);
        }
        Some(Err(error)) => return Err(format!("GPU: {error}")),
        Some(Ok(Outcome::Refused(_))) | None => {}
    }
    tally.runs += 1;
    Ok(())
}

/// Elements for which the code of an operation is about the same.
fn family(elem: &str) -> &str {
    match elem {
        "f16" | "bf16" => "half",
        "e4m3" | "e5m2" => "f8",
        "i64" | "u64" => "wide",
        "i32" | "i16" | "i8" => "signed",
        "u32" | "u16" | "u8" => "unsigned",
        other => other,
    }
}

/// What the sample of the quick depth has: every operation on an element of every family, and at every place every element.
fn traits((_, case): &(usize, &Case)) -> Vec<String> {
    let words: Vec<&str> = case.name.split(' ').collect();
    let of_all: Vec<&str> = words.iter().map(|word| family(word)).collect();
    let each = words.iter().enumerate().map(|(place, word)| format!("{place} of {}: {word}", words.len()));
    each.chain([of_all.join(" ")]).collect()
}

#[test]
fn operations_are_within_their_bounds() {
    let rounds = setting("TITAN_DIFFERENTIAL_ROUNDS", 1);
    let mut tally = Tally::default();
    let mut wrong: Vec<String> = Vec::new();
    for round in 0..rounds {
        let mut rng = Rng::new(round);
        let cases = [elementwise(&mut rng), reductions(&mut rng), products(&mut rng)];
        // Only what an element has can be sampled.
        let legal =
            cases.iter().flatten().enumerate().filter(|(_, case)| test_depth::is_full() || case.kernel().is_ok());
        for (i, case) in test_depth::covering(legal, traits) {
            let seed = round * 100_000 + i as u64;
            if let Err(what) = run(case, (seed, case.values), i % 2 == 0, &mut tally) {
                wrong.push(format!("{} (seed {seed}): {what}", case.name));
            }
        }
    }
    report(&tally, &wrong);
    assert!(tally.runs >= test_depth::cases(500, 200) * rounds, "only {} kernels were run", tally.runs);
}

/// The signs of zeros, which other tests rarely meet.
#[test]
fn zeros_have_the_same_sign_everywhere() {
    let mut tally = Tally::default();
    let mut wrong: Vec<String> = Vec::new();
    for round in 0..setting("TITAN_DIFFERENTIAL_ROUNDS", 1) {
        let mut rng = Rng::new(round + 77);
        let cases = [elementwise(&mut rng), reductions(&mut rng), products(&mut rng)];
        let with_floats = |case: &&Case| case.inputs.iter().any(|(elem, _)| is_float(*elem));
        let legal = cases.iter().flatten().filter(with_floats).enumerate();
        let legal = legal.filter(|(_, case)| test_depth::is_full() || case.kernel().is_ok());
        for (i, case) in test_depth::covering(legal, traits) {
            let seed = round * 100_000 + i as u64;
            if let Err(what) = run(case, (seed, Values::Zeros), i % 2 == 0, &mut tally) {
                wrong.push(format!("{} (seed {seed}): {what}", case.name));
            }
        }
    }
    report(&tally, &wrong);
    assert!(tally.runs >= test_depth::cases(250, 100), "only {} kernels were run", tally.runs);
}

fn report(tally: &Tally, wrong: &[String]) {
    let inexact: Vec<_> = tally.errors.iter().filter(|(_, e)| e.iter().any(|x| *x > 0.0)).collect();
    say("greatest errors beyond one rounding, in last places: executor, emulators of PTX and of gfx942, GPU");
    inexact.iter().for_each(|(name, [cpu, ptx, amd, gpu])| {
        say(&format!("  {name:<24}{cpu:>8.3}{ptx:>8.3}{amd:>8.3}{gpu:>8.3}"));
    });
    tally.refused.iter().for_each(|(reason, n)| say(&format!("  refused {n} times: {reason}")));
    say(&format!("{} kernels of one operation, {} operations and types", tally.runs, tally.errors.len()));
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), tally.runs, wrong.join("\n"));
}

//! The output rule against brute force: of random kernels that the verifier accepts, no two programs touch one element.
//!
//! The kernels are made from a small description, which is also run directly, for all programs of a small grid, or for
//! chosen ones of a grid as large as grids get: with wrapping arithmetic, views that clip, and segments that trap. What the
//! description means is written here a second time, without the prover's forms. Both counts are asserted: the prover
//! accepts often, and the kernels that it refuses collide often.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::Cell;
use std::io::Write;
use titan_core::ir::{
    Access, BinOp, Builder, Const, DimSpec, Elem, ForKind, GridSpec, HostExpr, HostOp, Kernel, OpKind, Pred, TileShape,
    Unit, Value,
};
use titan_core::verify::verify;

/// An index.
#[derive(Clone, Debug)]
enum Expr {
    /// `program_id(0)`, `program_id(1)`, or in a persistent kernel the number of the iteration for both.
    Program(bool),
    /// A part of what the mode takes apart.
    Part(usize),
    /// The variable of the loop around the accesses.
    Looped,
    /// The scalar argument.
    Scalar,
    Const(i32),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// The first if the scalar argument is positive.
    Select(Box<Expr>, Box<Expr>),
}

#[derive(Clone, Debug)]
enum View {
    Whole,
    /// The first axis from one to the other.
    Slice(Expr, Expr),
    /// The first axis by offsets.
    Segment(Expr),
    /// The first axis fixed; the second is what remains.
    Index(Expr),
}

#[derive(Clone, Debug)]
struct Touch {
    store: bool,
    unit: Unit,
    view: View,
    at: [Expr; 2],
    extent: [i32; 2],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// `program_id(0)` is taken apart by `unflatten`.
    Grid,
    /// A distributed loop, its number taken apart by `unflatten`.
    Deal,
    /// A distributed loop over ragged tiles.
    Ragged,
}

#[derive(Clone, Debug)]
struct Case {
    mode: Mode,
    grid: [i64; 2],
    /// The grid is `cdiv(n, by)` of the scalar argument instead of the first extent.
    of_scalar: Option<i32>,
    extents: [i32; 2],
    /// What `unflatten` takes apart.
    base: Expr,
    parts: [i32; 2],
    off: Vec<i32>,
    scalar: i32,
    exit: Option<i32>,
    looped: Option<(Expr, Expr, i32)>,
    touches: Vec<Touch>,
}

// ---- the description as IR

struct Emit {
    b: Builder,
    program: [Value; 2],
    parts: Vec<Value>,
    looped: Value,
    scalar: Value,
    off: Value,
    c: Value,
}

impl Emit {
    fn op(&mut self, kind: OpKind, args: &[Value]) -> Value {
        self.b.op1(kind, args).expect("operands fit")
    }

    fn expr(&mut self, e: &Expr) -> Value {
        match e {
            Expr::Program(second) => self.program[usize::from(*second)],
            Expr::Part(i) => self.parts[i % self.parts.len()],
            Expr::Looped => self.looped,
            Expr::Scalar => self.scalar,
            Expr::Const(c) => self.b.i32(*c),
            Expr::Binary(op, x, y) => {
                let (x, y) = (self.expr(x), self.expr(y));
                self.op(OpKind::Binary(*op), &[x, y])
            }
            Expr::Select(x, y) => {
                let (x, y, zero) = (self.expr(x), self.expr(y), self.b.i32(0));
                let positive = self.op(OpKind::Cmp(Pred::Gt), &[self.scalar, zero]);
                self.op(OpKind::Select, &[positive, x, y])
            }
        }
    }

    fn touch(&mut self, t: &Touch) {
        let (mut view, mut rank) = (self.c, 2);
        match &t.view {
            View::Whole => {}
            View::Slice(lo, hi) => {
                let (lo, hi) = (self.expr(lo), self.expr(hi));
                view = self.op(OpKind::Slice(0), &[view, lo, hi]);
            }
            View::Segment(e) => {
                let e = self.expr(e);
                view = self.op(OpKind::Segment, &[view, self.off, e]);
            }
            View::Index(i) => {
                let i = self.expr(i);
                view = self.op(OpKind::Index(0), &[view, i]);
                rank = 1;
            }
        }
        let shape = TileShape::new(&t.extent[2 - rank..]).expect("a shape");
        let at: Vec<Value> = t.at[2 - rank..].iter().map(|e| self.expr(e)).collect();
        let zero = self.b.constant(Const::Float(Elem::F32, 0.0));
        if t.store {
            let tile = self.op(OpKind::Splat(shape), &[zero]);
            let args: Vec<Value> = [view].into_iter().chain(at).chain([tile]).collect();
            self.b.op(OpKind::Store(t.unit), &args).expect("stored");
        } else {
            let args: Vec<Value> = [view].into_iter().chain(at).chain([zero]).collect();
            self.op(OpKind::Load(t.unit, shape), &args);
        }
    }

    fn touches(&mut self, case: &Case) {
        if let Some((lo, hi, step)) = &case.looped {
            let bounds = [self.expr(lo), self.expr(hi), self.b.i32(*step)];
            let open = self.b.begin_for(ForKind::Sequential, bounds, &[]).expect("bounds");
            self.looped = open.index.expect("an index");
            case.touches.iter().for_each(|t| self.touch(t));
            self.b.terminate(OpKind::Continue(0), &[]);
            self.b.end_loop(open, &[]);
        } else {
            case.touches.iter().for_each(|t| self.touch(t));
        }
    }
}

fn emit(case: &Case) -> Kernel {
    let mut b = Builder::new("random", vec![]);
    let off = b.tensor("off", Elem::I32, Access::In, false, vec![DimSpec::Any]);
    let c = b.tensor("c", Elem::F32, Access::Mut, false, vec![DimSpec::Any; 2]);
    let scalar = b.scalar("n", Elem::I32);
    let zero = b.i32(0);
    let mut e = Emit { b, program: [zero; 2], parts: vec![zero], looped: zero, scalar, off, c };
    if case.mode == Mode::Grid {
        let first = match case.of_scalar {
            Some(by) => HostExpr::binary(HostOp::Cdiv, HostExpr::Scalar(2), HostExpr::Const(by.into())),
            None => HostExpr::Const(case.grid[0]),
        };
        e.b.set_grid(GridSpec::Extents(vec![first, HostExpr::Const(case.grid[1])]));
        e.program = [0, 1].map(|a| e.op(OpKind::ProgramId(a), &[]));
    } else {
        e.b.set_grid(GridSpec::Persistent);
    }
    if let Some(limit) = case.exit {
        let (p, limit) = (e.b.op1(OpKind::ProgramId(0), &[]).expect("an id"), e.b.i32(limit));
        let late = e.op(OpKind::Cmp(Pred::Gt), &[p, limit]);
        let mut arms = e.b.begin_if(late);
        e.b.terminate(OpKind::Return, &[]);
        e.b.begin_else(&mut arms);
        e.b.terminate(OpKind::Yield, &[]);
        e.b.end_if(arms, &[]);
    }
    let extents = case.parts.map(|d| e.b.i32(d));
    match case.mode {
        Mode::Grid => {
            let base = e.expr(&case.base);
            e.parts = e.b.op(OpKind::Unflatten, &[base, extents[0], extents[1]]).expect("parts");
            e.touches(case);
        }
        Mode::Deal | Mode::Ragged => {
            let (rows, cols) = (case.parts[0], case.parts[1]);
            let total = if case.mode == Mode::Deal {
                e.b.i32(i32::try_from(case.grid[1] * 4).expect("small"))
            } else {
                e.op(OpKind::RaggedCount { rows, cols }, &[c, off])
            };
            let bounds = [e.b.i32(0), total, e.b.i32(1)];
            let open = e.b.begin_for(ForKind::Distributed, bounds, &[]).expect("bounds");
            let j = open.index.expect("an index");
            e.program = [j; 2];
            e.parts = if case.mode == Mode::Deal {
                let base = e.expr(&case.base);
                e.b.op(OpKind::Unflatten, &[base, extents[0], extents[1]]).expect("parts")
            } else {
                e.b.op(OpKind::RaggedTile { rows, cols }, &[c, off, j]).expect("parts")
            };
            e.touches(case);
            e.b.terminate(OpKind::Continue(0), &[]);
            e.b.end_loop(open, &[]);
        }
    }
    e.b.finish()
}

// ---- the description as programs

/// A half-open interval.
type Span = (i64, i64);

struct Trap;

struct Run<'a> {
    case: &'a Case,
    program: [i32; 2],
    parts: Vec<i32>,
    looped: i32,
    boxes: Vec<[Span; 2]>,
}

fn divide(x: i32, y: i32) -> (i32, i32) {
    if y == 0 { (0, x) } else { (x.wrapping_div(y), x.wrapping_rem(y)) }
}

impl Run<'_> {
    fn eval(&self, e: &Expr) -> i32 {
        match e {
            Expr::Program(second) => self.program[usize::from(*second)],
            Expr::Part(i) => self.parts[i % self.parts.len()],
            Expr::Looped => self.looped,
            Expr::Scalar => self.case.scalar,
            Expr::Const(c) => *c,
            Expr::Select(x, y) => self.eval(if self.case.scalar > 0 { x } else { y }),
            Expr::Binary(op, x, y) => {
                let (x, y) = (self.eval(x), self.eval(y));
                match op {
                    BinOp::Add => x.wrapping_add(y),
                    BinOp::Sub => x.wrapping_sub(y),
                    BinOp::Mul => x.wrapping_mul(y),
                    BinOp::Div => divide(x, y).0,
                    BinOp::Rem => divide(x, y).1,
                    BinOp::And => x & y,
                    BinOp::Min => x.min(y),
                    BinOp::Max => x.max(y),
                    BinOp::Shl if (0..32).contains(&y) => x.wrapping_shl(y.cast_unsigned()),
                    BinOp::Shr if (0..32).contains(&y) => x >> y,
                    BinOp::Shl | BinOp::Shr | BinOp::Or | BinOp::Xor => 0,
                }
            }
        }
    }

    fn touch(&mut self, t: &Touch) -> Result<(), Trap> {
        let size = self.case.extents.map(i64::from);
        let mut window: [Span; 2] = [(0, size[0]), (0, size[1])];
        let mut fixed = false;
        match &t.view {
            View::Whole => {}
            View::Slice(lo, hi) => {
                let (lo, hi) = (i64::from(self.eval(lo)).max(0), i64::from(self.eval(hi)).min(size[0]));
                window[0] = (lo, hi.max(lo));
            }
            View::Segment(e) => window[0] = self.segment(self.eval(e))?,
            View::Index(i) => {
                let i = i64::from(self.eval(i));
                let inside = (0..size[0]).contains(&i);
                window[0] = if inside { (i, i + 1) } else { (0, 0) };
                fixed = true;
            }
        }
        let mut touched = window;
        for (d, slot) in touched.iter_mut().enumerate().skip(usize::from(fixed)) {
            let (at, extent) = (i64::from(self.eval(&t.at[d])), i64::from(t.extent[d]));
            let first = if t.unit == Unit::Tile { at * extent } else { at };
            let (from, to) = (first.max(0) + window[d].0, first + extent + window[d].0);
            *slot = (from, to.min(window[d].1));
        }
        if touched.iter().all(|(from, to)| from < to) {
            self.boxes.push(touched);
        }
        Ok(())
    }

    fn segment(&self, e: i32) -> Result<Span, Trap> {
        let get = |i: i32| usize::try_from(i).ok().and_then(|i| self.case.off.get(i)).copied().ok_or(Trap);
        let (lo, hi) = (get(e)?, get(e.wrapping_add(1))?);
        let legal = 0 <= lo && lo <= hi && hi <= self.case.extents[0];
        if legal { Ok((lo.into(), hi.into())) } else { Err(Trap) }
    }

    fn touches(&mut self) -> Result<(), Trap> {
        let case = self.case;
        let Some((lo, hi, step)) = &case.looped else { return case.touches.iter().try_for_each(|t| self.touch(t)) };
        // The bounds cannot name the variable: there it stands for 0.
        self.looped = 0;
        let (lo, hi) = (i64::from(self.eval(lo)), i64::from(self.eval(hi)));
        // Long loops are cut short: what they touch first is enough to find collisions.
        let mut at = lo;
        for _ in 0..12 {
            if at >= hi {
                break;
            }
            self.looped = i32::try_from(at).expect("below an i32");
            case.touches.iter().try_for_each(|t| self.touch(t))?;
            at += i64::from(*step);
        }
        Ok(())
    }

    fn unflatten(&mut self) {
        self.parts = vec![0];
        self.looped = 0;
        let (first, second) = divide(self.eval(&self.case.base), self.case.parts[1]);
        self.parts = vec![first, second];
    }

    /// The tile of number `j` of a ragged output; the offsets have been checked.
    fn ragged(&mut self, j: i64) -> bool {
        let (rows, cols) = (i64::from(self.case.parts[0]), i64::from(self.case.parts[1]));
        let across = (i64::from(self.case.extents[1]) + cols - 1) / cols;
        let mut first = 0;
        for (e, w) in self.case.off.windows(2).enumerate() {
            let tiles = (i64::from(w[1] - w[0]) + rows - 1) / rows * across;
            if j < first + tiles {
                let (m, n) = ((j - first) / across, (j - first) % across);
                self.parts = [i64::try_from(e).expect("small"), m, n].map(|v| i32::try_from(v).expect("small")).to_vec();
                return true;
            }
            first += tiles;
        }
        false
    }
}

/// What one program touches.
fn program(case: &Case, at: [i64; 2]) -> Result<Vec<[Span; 2]>, Trap> {
    let ids = at.map(|p| i32::try_from(p).expect("an i32"));
    let mut run = Run { case, program: ids, parts: vec![0], looped: 0, boxes: Vec::new() };
    if case.exit.is_some_and(|limit| ids[0] > limit) {
        return Ok(run.boxes);
    }
    match case.mode {
        Mode::Grid => {
            run.unflatten();
            run.touches()?;
        }
        Mode::Deal => {
            for j in (at[0]..case.grid[1] * 4).step_by(usize::try_from(case.grid[0]).expect("small")) {
                run.program = [i32::try_from(j).expect("small"); 2];
                run.unflatten();
                run.touches()?;
            }
        }
        Mode::Ragged => {
            let legal = case.off.windows(2).all(|w| w[0] <= w[1])
                && case.off.iter().all(|o| (0..=case.extents[0]).contains(o));
            if !legal {
                return Err(Trap);
            }
            let mut j = at[0];
            while run.ragged(j) {
                run.program = [i32::try_from(j).expect("small"); 2];
                run.touches()?;
                j += case.grid[0];
            }
        }
    }
    Ok(run.boxes)
}

/// All indices of a small extent, telling ones of a large.
fn indices(extent: i64) -> Vec<i64> {
    if extent <= 40 {
        return (0..extent).collect();
    }
    let powers = (0..31).map(|k| 1i64 << k).flat_map(|p| [p - 1, p, p + 1, extent - p]);
    let mut all: Vec<i64> = powers.chain([0, 2, 3, 5]).filter(|p| (0..extent).contains(p)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Two programs that touch one element, in a launch that does not trap.
fn collision(case: &Case) -> Option<String> {
    let first = match case.of_scalar {
        Some(by) => (i64::from(case.scalar) + i64::from(by) - 1) / i64::from(by),
        None => case.grid[0],
    };
    let second = if case.mode == Mode::Grid { case.grid[1] } else { 1 };
    let mut all: Vec<([i64; 2], [Span; 2])> = Vec::new();
    for p in indices(first) {
        for q in indices(second) {
            let boxes = program(case, [p, q]).ok()?;
            all.extend(boxes.into_iter().map(|b| ([p, q], b)));
        }
    }
    let meet = |a: Span, b: Span| a.0.max(b.0) < a.1.min(b.1);
    all.sort_unstable_by_key(|(_, b)| b[0]);
    for (i, (p, a)) in all.iter().enumerate() {
        for (q, b) in all[i + 1..].iter().take_while(|(_, b)| b[0].0 < a[0].1) {
            if p != q && meet(a[0], b[0]) && meet(a[1], b[1]) {
                return Some(format!("programs {p:?} and {q:?} touch {a:?} and {b:?}"));
            }
        }
    }
    None
}

// ---- random descriptions

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        6 => any::<bool>().prop_map(Expr::Program),
        6 => (0..3usize).prop_map(Expr::Part),
        2 => Just(Expr::Looped),
        2 => Just(Expr::Scalar),
        4 => prop_oneof![8 => -3..9i32, 1 => Just(1 << 20), 1 => Just(i32::MAX)].prop_map(Expr::Const),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let op = prop_oneof![
            6 => Just(BinOp::Add), 2 => Just(BinOp::Sub), 1 => Just(BinOp::Min), 1 => Just(BinOp::Max),
            1 => Just(BinOp::And), 1 => Just(BinOp::Mul),
        ];
        let by = prop_oneof![
            6 => Just(BinOp::Mul), 1 => Just(BinOp::Div), 1 => Just(BinOp::Rem), 1 => Just(BinOp::Shl), 1 => Just(BinOp::Shr),
        ];
        let factor = prop_oneof![8 => -2..9i32, 1 => Just(128), 1 => Just(1 << 20), 1 => Just(1 << 30)];
        let binary = |op, x, y| Expr::Binary(op, Box::new(x), Box::new(y));
        prop_oneof![
            4 => (op, inner.clone(), inner.clone()).prop_map(move |(op, x, y)| binary(op, x, y)),
            6 => (by, inner.clone(), factor).prop_map(move |(op, x, c)| binary(op, x, Expr::Const(c))),
            1 => (inner.clone(), inner).prop_map(|(x, y)| Expr::Select(Box::new(x), Box::new(y))),
        ]
    })
}

/// Mostly the plain sources, so that many kernels are right.
fn index() -> impl Strategy<Value = Expr> {
    prop_oneof![
        3 => any::<bool>().prop_map(Expr::Program),
        3 => (0..3usize).prop_map(Expr::Part),
        1 => Just(Expr::Const(0)),
        4 => expr(),
    ]
}

fn touch() -> impl Strategy<Value = Touch> {
    let view = prop_oneof![
        4 => Just(View::Whole),
        1 => (expr(), 1..9i32).prop_map(|(lo, n)| {
            let hi = Expr::Binary(BinOp::Add, Box::new(lo.clone()), Box::new(Expr::Const(n)));
            View::Slice(lo, hi)
        }),
        1 => (expr(), expr()).prop_map(|(lo, hi)| View::Slice(lo, hi)),
        3 => index().prop_map(View::Segment),
        2 => index().prop_map(View::Index),
    ];
    let unit = prop_oneof![Just(Unit::Tile), Just(Unit::Elem)];
    let extent = prop_oneof![4 => 1..5i32, 1 => Just(128)];
    (any::<bool>(), unit, view, [index(), index()], [extent.clone(), extent])
        .prop_map(|(store, unit, view, at, extent)| Touch { store, unit, view, at, extent })
}

fn case() -> impl Strategy<Value = Case> {
    let mode = prop_oneof![3 => Just(Mode::Grid), 1 => Just(Mode::Deal), 1 => Just(Mode::Ragged)];
    let grid = prop_oneof![6 => [1..7i64, 1..4i64], 1 => Just([i64::from(i32::MAX), 1])];
    let of_scalar = prop_oneof![5 => Just(None), 1 => prop_oneof![Just(1), Just(128), Just(4)].prop_map(Some)];
    let extents = prop_oneof![3 => [1..60i32, 1..60i32], 1 => [Just(i32::MAX), Just(i32::MAX)]];
    // Mostly enough of them for the grid, so that launches get through.
    let off = prop_oneof![
        3 => proptest::collection::vec(0..5i32, 7..9).prop_map(|steps| {
            steps.iter().scan(0, |sum, s| { *sum += s; Some(*sum) }).collect()
        }),
        1 => proptest::collection::vec(0..12i32, 2..9),
    ];
    let scalar = prop_oneof![2 => 1..30i32, 1 => -3..3i32, 1 => Just(i32::MAX)];
    let exit = prop_oneof![4 => Just(None), 1 => (0..3i32).prop_map(Some)];
    let looped = prop_oneof![
        3 => Just(None),
        1 => (expr(), expr(), 1..4i32).prop_map(Some),
        1 => (expr(), 1..6i32, 1..3i32).prop_map(|(lo, n, step)| {
            let hi = Expr::Binary(BinOp::Add, Box::new(lo.clone()), Box::new(Expr::Const(n)));
            Some((lo, hi, step))
        }),
    ];
    let touches = proptest::collection::vec(touch(), 1..3);
    let parts = ([1..5i32, 1..5i32], prop_oneof![5 => Just(Expr::Program(false)), 1 => expr()]);
    ((mode, grid, of_scalar, extents, parts), (off, scalar, exit, looped, touches, any::<bool>())).prop_map(
        |((mode, grid, of_scalar, extents, (parts, base)), (off, scalar, exit, looped, mut touches, same))| {
            if same && touches.len() > 1 {
                // A load of what is stored, as kernels do.
                touches[1] = Touch { store: !touches[0].store, ..touches[0].clone() };
            }
            touches[0].store = true;
            let large = mode == Mode::Grid;
            let grid = if large { grid } else { grid.map(|g| g.min(7)) };
            let extents = if mode == Mode::Ragged { extents.map(|d| d.min(40)) } else { extents };
            let off = off.into_iter().map(|o: i32| o.min(extents[0])).collect();
            let of_scalar = of_scalar.filter(|_| large);
            Case { mode, grid, of_scalar, extents, base, parts, off, scalar, exit, looped, touches }
        },
    )
}

#[test]
fn programs_of_accepted_kernels_do_not_meet() {
    let cases = 12_000;
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let (accepted, nontrivial, collided) = (Cell::new(0u32), Cell::new(0u32), Cell::new(0u32));
    let outcome = runner.run(&case(), |case| {
        let verdict = verify(emit(&case));
        let found = collision(&case);
        if verdict.is_ok() {
            accepted.set(accepted.get() + 1);
            let wide = case.mode != Mode::Grid || case.grid.iter().any(|g| *g > 1) || case.of_scalar.is_some();
            nontrivial.set(nontrivial.get() + u32::from(wide));
            prop_assert!(found.is_none(), "{}", found.unwrap_or_default());
        } else if found.is_some() {
            collided.set(collided.get() + 1);
        }
        Ok(())
    });
    let (accepted, nontrivial, collided) = (accepted.get(), nontrivial.get(), collided.get());
    let report = format!("of {cases} kernels {accepted} are accepted, {nontrivial} of these on several programs; {collided} collide");
    writeln!(std::io::stderr(), "{report}").expect("written");
    if let Err(e) = outcome {
        panic!("{e}");
    }
    assert!(nontrivial * 12 >= cases, "too few are accepted for this to say much: {report}");
    assert!(collided * 4 >= cases, "too few collide for this to say much: {report}");
}

//! A description as IR.

use crate::describe::{Case, Expr, Mode, Touch, View};
use titan_core::ir::{
    Access, Builder, Const, DimSpec, Elem, ForKind, GridSpec, HostExpr, HostOp, Kernel, OpKind, Pred, TileShape, Value,
};

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

/// The kernel of a description.
pub(crate) fn emit(case: &Case) -> Kernel {
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
    let order = case.group.map_or(OpKind::Unflatten, OpKind::UnflattenGrouped);
    match case.mode {
        Mode::Grid => {
            let base = e.expr(&case.base);
            e.parts = e.b.op(order.clone(), &[base, extents[0], extents[1]]).expect("parts");
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
                e.b.op(order.clone(), &[base, extents[0], extents[1]]).expect("parts")
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

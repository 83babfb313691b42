//! Methods of rings, of stages and of MMAs in flight; those of the role that fills a ring are in [`super::token`].

use super::super::val::{PipeVal, RangeVal};
use super::super::{FnLower, Lowered, Stop, Val};
use crate::ast::{Expr, ExprKind};
use crate::infer::ITy;
use crate::infer::pipe::PipeTy;
use crate::method_pipe::PipeMethod as M;
use titan_core::ir::{ForKind, OpKind, Pipe, TtgOp, Ty, Value};

impl FnLower<'_, '_, '_> {
    pub(in crate::lower) fn pipe_method(&mut self, e: &Expr, method: M, recv: Val, args: &[Expr]) -> Lowered<Val> {
        let span = e.span;
        match recv {
            Val::Pipe(PipeVal::Ring(pipe)) => self.ring_method(e, method, pipe, args),
            Val::Pipe(PipeVal::Filling { slot, contents, span: at }) => self.commit(slot, contents, at),
            Val::Pipe(PipeVal::Work(tiles)) => {
                Ok(if method == M::Indices { Val::Pipe(PipeVal::Indices(tiles)) } else { Val::Tiles(tiles) })
            }
            Val::Value(v) => match method {
                M::Copy(_) | M::Fill(_) | M::Write | M::Store(_) | M::StoreWait => {
                    self.token_method(e, method, v, args)
                }
                M::AccMma | M::AccMmaReg => self.acc_mma(e, v, args),
                M::WaitFilled => Ok(Val::Pipe(PipeVal::Filled(v))),
                M::Release => self.release(v, span),
                M::Split => {
                    let ITy::Array(_, n) = self.infer.ty(e.id) else { return Err(Stop) };
                    let n = u8::try_from(*n).map_err(|_| Stop)?;
                    let parts = self.ops(span, OpKind::Ttg(TtgOp::Split(n)), &[v])?;
                    Ok(Val::Array(parts.into_iter().map(Val::Value).collect()))
                }
                _ => self.value_of_token(e, method, v).map(Val::Value),
            },
            _ => Err(self.internal(span, "an operation on something else")),
        }
    }

    /// Methods with one result and no arguments.
    fn value_of_token(&mut self, e: &Expr, method: M, v: Value) -> Lowered<Value> {
        let span = e.span;
        match method {
            M::Wait => {
                let stage = self.ttg(span, TtgOp::WaitReady, &[v])?;
                self.ttg(span, TtgOp::ReadPerm, &[stage])
            }
            M::View(field) => self.view_of(e, field, v),
            M::OnlyView => self.view_of(e, 0, v),
            M::Load => self.ttg(span, TtgOp::Read, &[v]),
            M::Transpose => {
                let rank = if let Ty::Smem(_, shape) = self.ty(v) { shape.rank() } else { 2 };
                let perm = if rank == 3 { [0, 2, 1, 3] } else { [1, 0, 2, 3] };
                self.op(span, OpKind::Permute(perm), &[v])
            }
            M::ComputeWait => self.ttg(span, TtgOp::ComputeWait, &[v]),
            M::AccFinish => self.ttg(span, TtgOp::AccFinish, &[v]),
            _ => Err(self.internal(span, "an operation on something else")),
        }
    }

    fn ring_method(&mut self, e: &Expr, method: M, pipe: Pipe, args: &[Expr]) -> Lowered<Val> {
        let op = match method {
            M::Acquire | M::StagingAcquire => TtgOp::Acquire(pipe),
            M::Ready => TtgOp::Ready(pipe),
            M::Produce | M::Consume => {
                let range = match self.expr(&args[0])? {
                    Val::Range(r @ RangeVal { kind: ForKind::Sequential, .. }) => r,
                    _ => return Err(self.pipelined_side(args[0].span)),
                };
                return Ok(Val::Pipe(PipeVal::Side { pipe, range, fills: method == M::Produce, span: e.span }));
            }
            _ => return Err(self.internal(e.span, "an operation on something else")),
        };
        self.ttg(e.span, op, &[]).map(Val::Value)
    }

    fn pipelined_side(&self, span: proc_macro2::Span) -> Stop {
        let help = "pass the range itself: the ring is the pipeline, `ring.produce(0..n)`";
        self.sh.cx.error_help(
            titan_core::diag::Code::NestedPipeline,
            span,
            "`pipelined` cannot be used with `produce` and `consume`",
            help,
        );
        Stop
    }

    fn view_of(&mut self, e: &Expr, field: u8, stage: Value) -> Lowered<Value> {
        let ITy::Pipe(PipeTy::View(elem, shape)) = *self.infer.ty(e.id) else { return Err(Stop) };
        let (elem, shape) = (self.elem(elem, e.span)?, self.shape(shape, e.span)?);
        self.ttg(e.span, TtgOp::View { field, elem, shape }, &[stage])
    }

    /// `acc.mma(stage, |s| (s.a(), s.b()))` and `acc.mma_reg(stage, tile, |s| s.get())`
    fn acc_mma(&mut self, e: &Expr, acc: Value, args: &[Expr]) -> Lowered<Val> {
        let [stage, registers @ .., closure] = args else { return Err(Stop) };
        let val = self.expr(stage)?;
        let stage = self.value(val, stage.span)?;
        let mut operands = vec![acc, stage];
        for r in registers {
            let val = self.expr(r)?;
            operands.push(self.value(val, r.span)?);
        }
        let ExprKind::Closure { params, body } = &closure.kind else { return Err(Stop) };
        if let Some(param) = params.first() {
            self.bind(param, Val::Value(stage))?;
        }
        if !self.expr(body)?.flatten(&mut operands) {
            return Err(self.internal(body.span, "operands of another kind"));
        }
        self.ttg(e.span, TtgOp::AccMma, &operands).map(Val::Value)
    }
}

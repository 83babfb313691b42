//! Functions of pipelines.

use super::super::val::PipeVal;
use super::super::{FnLower, Lowered, Stop, Val};
use crate::ast::{Builtin, Expr, Path};
use crate::infer::ITy;
use crate::infer::pipe::PipeTy;
use proc_macro2::{Ident, Span};
use titan_core::ir::{Const, Elem, OpKind, PipeDecl, PipeSpace, TileShape, TtgOp, Value};

impl FnLower<'_, '_, '_> {
    pub(in crate::lower) fn pipe_builtin(&mut self, e: &Expr, b: Builtin, path: &Path, args: &[Expr]) -> Lowered<Val> {
        let span = e.span;
        match (b, self.infer.ty(e.id).clone()) {
            (
                Builtin::RingNew | Builtin::StagingNew,
                ITy::Pipe(PipeTy::Ring(fields, slots) | PipeTy::Staging(fields, slots)),
            ) => {
                let at = path.segments.first().map_or(span, Ident::span);
                self.at(at);
                let loc = self.sh.b.loc();
                let decl = PipeDecl { name: None, slots, fields, space: PipeSpace::Shared, loc };
                Ok(Val::Pipe(PipeVal::Ring(self.sh.b.pipe(decl))))
            }
            (Builtin::AccZeros | Builtin::AccFromTile, ITy::Pipe(PipeTy::Acc(elem, shape, keep))) => {
                let start = match args.first() {
                    Some(tile) => {
                        let val = self.expr(tile)?;
                        self.value(val, tile.span)?
                    }
                    None => {
                        let (elem, shape) = (self.elem(elem, span)?, self.shape(shape, span)?);
                        self.zeros(elem, shape, span)?
                    }
                };
                self.ttg(span, TtgOp::AccStart(keep), &[start]).map(Val::Value)
            }
            (Builtin::MmaAsync | Builtin::MmaAsyncReg, _) => {
                let mut operands = Vec::new();
                for a in args {
                    let val = self.expr(a)?;
                    operands.push(self.value(val, a.span)?);
                }
                self.ttg(span, TtgOp::ComputeIssue, &operands).map(Val::Value)
            }
            (Builtin::StageJoin, _) => {
                let mut parts = Vec::new();
                if !self.expr(&args[0])?.flatten(&mut parts) {
                    return Err(self.internal(span, "parts of another kind"));
                }
                self.ttg(span, TtgOp::Join, &parts).map(Val::Value)
            }
            _ => Err(Stop),
        }
    }

    fn zeros(&mut self, elem: Elem, shape: TileShape, span: Span) -> Lowered<Value> {
        let c = if elem.is_float() { Const::Float(elem, 0.0) } else { Const::Int(elem, 0) };
        let zero = self.sh.b.constant(c);
        self.op(span, OpKind::Splat(shape), &[zero])
    }
}

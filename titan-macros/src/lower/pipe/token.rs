//! Copies to slots of rings, and stores from staging slots.

use super::super::val::{Contents, PipeVal, Tiles};
use super::super::{FnLower, Lowered, Stop, Val};
use crate::ast::Expr;
use crate::infer::ITy;
use crate::infer::pipe::PipeTy;
use crate::method::Method;
use crate::method_pipe::PipeMethod as M;
use proc_macro2::Span;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{Proxy, TtgOp, Ty, Value};

impl FnLower<'_, '_, '_> {
    /// `t.tile([i, j])`, `t.tile_at([r, c])`, `t.rows((i, ..), col)`
    pub(in crate::lower) fn source(&mut self, e: &Expr, method: Method, t: Value, args: &[Expr]) -> Lowered<Val> {
        let ITy::Pipe(PipeTy::Source(source)) = *self.infer.ty(e.id) else { return Err(Stop) };
        let Some(shape) = self.infer.shape_of(source.shape) else {
            let diag =
                Diagnostic::new(Code::CannotInfer, e.span, "the extents of a copy source cannot be inferred here");
            self.sh.cx.unless_broken(diag.help("copy it to a slot, or write them: `x.tile::<8, 8>(..)`"));
            return Err(Stop);
        };
        let mut operands = vec![t];
        let op = match method {
            Method::Source(unit) => {
                self.coordinates(&args[0], &mut operands)?;
                TtgOp::Source(unit, shape)
            }
            _ => {
                self.rows(&args[0], &mut operands)?;
                let col = self.expr(&args[1])?;
                operands.push(self.value(col, args[1].span)?);
                TtgOp::SourceRows { rows: shape[0], width: shape[1] }
            }
        };
        operands.push(self.zero(self.ty(t).elem()));
        self.ttg(e.span, op, &operands).map(Val::Value)
    }

    /// `c.work::<..>()`: the number of tiles is computed here, so that it is the same in every role.
    pub(in crate::lower) fn work(&mut self, e: &Expr, t: Value) -> Lowered<Val> {
        let ITy::Pipe(PipeTy::Work(own)) = *self.infer.ty(e.id) else { return Err(Stop) };
        let mut tiles = Tiles { tensor: t, shape: own.shape, group: own.group, offsets: None, counts: None };
        let counts = self.tile_counts(&tiles, e.span)?;
        let total = self.product(&counts, e.span)?;
        tiles.counts = Some((counts, total));
        Ok(Val::Pipe(PipeVal::Work(tiles)))
    }

    /// Methods of slots and of stores from them.
    pub(super) fn token_method(&mut self, e: &Expr, method: M, v: Value, args: &[Expr]) -> Lowered<Val> {
        let span = e.span;
        match method {
            M::Fill(fill) => Ok(Val::Pipe(PipeVal::Filling { slot: v, contents: Contents::Fill(fill), span })),
            M::Copy(skipped) => {
                let mut condition = None;
                if let (Some(fill), [c, _]) = (skipped, args) {
                    let val = self.expr(c)?;
                    condition = Some((self.value(val, c.span)?, fill));
                }
                let arg = args.last().ok_or(Stop)?;
                let mut sources = Vec::new();
                if !self.expr(arg)?.flatten(&mut sources) {
                    return Err(self.internal(arg.span, "sources of another kind"));
                }
                Ok(Val::Pipe(PipeVal::Filling { slot: v, contents: Contents::Copy(sources, condition), span }))
            }
            M::Write => {
                let val = self.expr(&args[0])?;
                let tile = self.value(val, args[0].span)?;
                self.ttg(span, TtgOp::Write, &[v, tile]).map(Val::Value)
            }
            M::Store(unit) => {
                let tensor = self.expr(&args[0])?;
                let mut operands = vec![self.tensor(tensor, args[0].span)?];
                self.coordinates(&args[1], &mut operands)?;
                operands.push(v);
                self.ttg(span, TtgOp::StoreIssue(unit), &operands).map(Val::Value)
            }
            _ => self.ttg_effect(span, TtgOp::StoreWait, &[v]),
        }
    }

    /// `.commit()`, with the place of the method that states the contents of the slot.
    pub(super) fn commit(&mut self, slot: Value, contents: Contents, span: Span) -> Lowered<Val> {
        match contents {
            Contents::Fill(fill) => self.ttg_effect(span, TtgOp::Fill(fill), &[slot]),
            Contents::Copy(sources, condition) => {
                let Ty::Token(_, pipe) = self.ty(slot) else { return Err(self.internal(span, "a slot was expected")) };
                let bytes = self.sh.b.kernel().pipe(pipe).map_or(0, titan_core::ir::PipeDecl::bytes);
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                let mut operands = vec![slot];
                operands.extend(sources);
                operands.extend(condition.map(|(c, _)| c));
                let op = TtgOp::AsyncProduce { bytes, proxy: Proxy::Generic, skipped: condition.map(|(_, fill)| fill) };
                self.ttg_effect(span, op, &operands)
            }
        }
    }
}

//! Calls: the language's own functions, and device functions, which are inlined.

use super::{FnLower, Lowered, Stop, Val, assigned};
use crate::ast::{Builtin, Callee, Expr, Path};
use crate::consts::{self, ConstValue};
use crate::infer::{ITy, Infer};
use crate::items::{DeviceFn, FnEnv};
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{BinOp, Const, Elem, ForKind, OpKind, Pred, Value};

/// Calls nested more deeply than this are treated as recursion.
const MAX_INLINED: usize = 64;

impl FnLower<'_, '_, '_> {
    pub(super) fn call(&mut self, e: &Expr, path: &Path, callee: &Callee, args: &[Expr]) -> Lowered<Val> {
        match callee {
            Callee::Builtin(b) => self.builtin(e, *b, path, args),
            Callee::Device(key) => {
                let items = self.env.items;
                let device = items.devices.get(key).ok_or(Stop)?;
                self.inline(e, path, device, args)
            }
            Callee::None => Err(Stop),
        }
    }

    fn builtin(&mut self, e: &Expr, b: Builtin, path: &Path, args: &[Expr]) -> Lowered<Val> {
        let span = e.span;
        match b {
            Builtin::ProgramId | Builtin::NumPrograms => {
                let axis = self.const_axis(&args[0])?;
                let kind = if b == Builtin::ProgramId { OpKind::ProgramId(axis) } else { OpKind::NumPrograms(axis) };
                Ok(Val::Value(self.op(span, kind, &[])?))
            }
            Builtin::Cdiv => {
                let (a, b) = (self.expr(&args[0])?, self.expr(&args[1])?);
                let (a, b) = (self.value(a, span)?, self.value(b, span)?);
                self.cdiv(a, b, span)
            }
            Builtin::Unflatten | Builtin::UnflattenGrouped => {
                let i = self.expr(&args[0])?;
                let mut operands = vec![self.value(i, span)?];
                if !self.expr(&args[1])?.flatten(&mut operands) {
                    return Err(Stop);
                }
                let order = match path.generics.as_ref().and_then(|(_, g)| g.first()) {
                    Some(rows) if b == Builtin::UnflattenGrouped => {
                        let rows = self.env.const_arg(rows).ok().and_then(|n| i32::try_from(n).ok()).ok_or(Stop)?;
                        OpKind::UnflattenGrouped(rows)
                    }
                    Some(_) | None => OpKind::Unflatten,
                };
                let parts = self.ops(span, order, &operands)?;
                Ok(Val::Array(parts.into_iter().map(Val::Value).collect()))
            }
            Builtin::Pipelined => match self.expr(&args[0])? {
                Val::Range(r) => Ok(Val::Range(super::val::RangeVal { kind: ForKind::Pipelined, ..r })),
                _ => Err(self.internal(span, "`pipelined` over something else")),
            },
            Builtin::Mma => {
                let mut operands = Vec::new();
                for a in args {
                    let val = self.expr(a)?;
                    operands.push(self.in_registers(val, a.span)?);
                }
                Ok(Val::Value(self.op(span, OpKind::Mma, &operands)?))
            }
            Builtin::Iota => {
                let (_, shape) = self.tile_ty(e.id, span)?;
                Ok(Val::Value(self.op(span, OpKind::Iota(shape[0]), &[])?))
            }
            Builtin::Select if !matches!(self.infer.ty(e.id), ITy::Tile(..)) => {
                let mask = self.expr(&args[0])?;
                let (mask, a, b) = (self.value(mask, span)?, self.expr(&args[1])?, self.expr(&args[2])?);
                self.pick(mask, &a, &b, span)
            }
            Builtin::Select => {
                let (elem, shape) = self.tile_ty(e.id, span)?;
                let mask = self.expr(&args[0])?;
                let mut operands = vec![self.value(mask, span)?];
                for a in &args[1..] {
                    let val = self.expr(a)?;
                    operands.push(self.beside(val, elem, shape, a.span)?);
                }
                Ok(Val::Value(self.op(span, OpKind::Select, &operands)?))
            }
            Builtin::TileZeros | Builtin::TileOnes => {
                let (elem, shape) = self.tile_ty(e.id, span)?;
                let v = i64::from(b == Builtin::TileOnes);
                let c = if elem.is_float() { Const::Float(elem, v as f64) } else { Const::Int(elem, v) };
                let v = self.sh.b.constant(c);
                Ok(Val::Value(self.op(span, OpKind::Splat(shape), &[v])?))
            }
            Builtin::TileFull => {
                let (_, shape) = self.tile_ty(e.id, span)?;
                let val = self.expr(&args[0])?;
                let v = self.value(val, span)?;
                Ok(Val::Value(self.op(span, OpKind::Splat(shape), &[v])?))
            }
            Builtin::RingNew
            | Builtin::StagingNew
            | Builtin::AccZeros
            | Builtin::AccFromTile
            | Builtin::MmaAsync
            | Builtin::MmaAsyncReg
            | Builtin::StageJoin => self.pipe_builtin(e, b, path, args),
            Builtin::Some | Builtin::Role => Err(Stop),
        }
    }

    /// The quotient rounded up: a remainder of the divisor's sign adds one.
    fn cdiv(&mut self, a: Value, b: Value, span: Span) -> Lowered<Val> {
        let zero = self.i32(0);
        let quotient = self.op(span, OpKind::Binary(BinOp::Div), &[a, b])?;
        let rest = self.op(span, OpKind::Binary(BinOp::Rem), &[a, b])?;
        let up = match self.sh.b.kernel().int_constant(b) {
            Some(1..) => self.op(span, OpKind::Cmp(Pred::Gt), &[rest, zero])?,
            _ => {
                let some = self.op(span, OpKind::Cmp(Pred::Ne), &[rest, zero])?;
                let signs = self.op(span, OpKind::Binary(BinOp::Xor), &[rest, b])?;
                let same = self.op(span, OpKind::Cmp(Pred::Ge), &[signs, zero])?;
                let by_zero = self.op(span, OpKind::Cmp(Pred::Ne), &[b, zero])?;
                let up = self.op(span, OpKind::Binary(BinOp::And), &[some, same])?;
                self.op(span, OpKind::Binary(BinOp::And), &[up, by_zero])?
            }
        };
        let up = self.op(span, OpKind::Cast(Elem::I32), &[up])?;
        self.op(span, OpKind::Binary(BinOp::Add), &[quotient, up]).map(Val::Value)
    }

    pub(super) fn const_axis(&self, arg: &Expr) -> Lowered<u8> {
        match consts::eval(arg, &self.env) {
            Ok(ConstValue::Int(v)) => u8::try_from(v).map_err(|_| Stop),
            _ => Err(Stop),
        }
    }

    /// Lowers the body of a device function in place of its call.
    fn inline(&mut self, e: &Expr, path: &Path, device: &DeviceFn, args: &[Expr]) -> Lowered<Val> {
        if self.sh.inlined >= MAX_INLINED {
            let title = format!("`{}` calls itself, or calls nest deeper than {MAX_INLINED}", path.text());
            return Err(self.error(Code::DeviceFn, e.span, title));
        }
        let mut vals = Vec::new();
        for a in args {
            vals.push(self.expr(a)?);
        }
        let tys: Vec<ITy> = args.iter().map(|a| self.infer.ty(a.id).clone()).collect();
        let ret = self.infer.ty(e.id).clone();
        let generics = self.infer.device_generics(device, path, &tys, &ret, e.span);
        let env = FnEnv { func: &device.func, generics: &generics, items: &device.items };
        let before = self.sh.cx.reports();
        self.sh.cx.called(e.span, &device.func.name.to_string());
        let mut infer = Infer::new(self.sh.cx, env);
        let params: Vec<ITy> = device.func.params.iter().map(|p| infer.ty_ref(&p.ty)).collect();
        infer.run(params);
        self.sh.cx.returned();
        if self.sh.cx.reports() != before {
            return Err(Stop);
        }
        self.at(e.span);
        let site = self.call_site.unwrap_or_else(|| self.sh.b.loc());
        self.sh.inlined += 1;
        self.sh.cx.called(e.span, &device.func.name.to_string());
        let (closure, chosen) = (self.closure, self.chosen);
        let result = FnLower { closure, chosen, ..FnLower::new(self.sh, env, infer, Some(site)) }.inlined(vals, e.span);
        self.sh.inlined -= 1;
        self.sh.cx.returned();
        result
    }

    fn inlined(mut self, args: Vec<Val>, span: Span) -> Lowered<Val> {
        for (var, val) in args.into_iter().enumerate() {
            self.vars[var] = Some(val);
        }
        let body = &self.env.func.body;
        if !assigned::of_block(body).returns {
            return self.block(body);
        }
        if self.closure != super::Closure::None {
            let title = format!("`{}` returns early, but a closure calls it", self.env.func.name);
            self.sh.cx.error_help(
                Code::Syntax,
                span,
                title,
                "make its value the last expression: `if c { a } else { b }`",
            );
            return Err(Stop);
        }
        // A function with an early `return` becomes a loop with one iteration.
        let open = self.sh.b.begin_loop(&[]);
        let level = self.enter_returning(&open);
        self.return_loop = Some(level);
        let val = self.block(body)?;
        if !self.sh.b.is_terminated() {
            let target = self.loops.iter().position(|l| l.level == level).ok_or(Stop)?;
            self.break_to(target, Some(val), span)?;
        }
        self.leave_returning(open, span)
    }
}

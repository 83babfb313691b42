//! Operations of tensors and output tiles.

use super::val::Tiles;
use super::{Closure, FnLower, Lowered, OwnVal, Stop, Val};
use crate::ast::{Expr, GenericArg};
use crate::infer::ITy;
use crate::method::Method;
use proc_macro2::Span;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::op_table::mnemonic;
use titan_core::ir::{ForKind, OpKind, TileShape, Ty, Unit, Value};

impl FnLower<'_, '_, '_> {
    pub(super) fn tensor_method(
        &mut self,
        e: &Expr,
        method: Method,
        t: Value,
        generics: &[GenericArg],
        args: &[Expr],
    ) -> Lowered<Val> {
        let span = e.span;
        match method {
            Method::Dim => {
                let axis = self.const_axis(&args[0])?;
                Ok(Val::Value(self.op(span, OpKind::Dim(axis), &[t])?))
            }
            Method::IsSome(positive) => {
                let present = self.op(span, OpKind::Present, &[t])?;
                Ok(Val::Value(if positive { present } else { self.not(span, present)? }))
            }
            Method::Load { unit, padded } => {
                let mut operands = vec![t];
                self.coordinates(&args[0], &mut operands)?;
                operands.push(self.padding(padded.then(|| args.last()).flatten(), t)?);
                let (_, shape) = self.tile_ty(e.id, span)?;
                Ok(Val::Value(self.op(span, OpKind::Load(unit, shape), &operands)?))
            }
            Method::Store(unit) => self.store(OpKind::Store(unit), t, args, span),
            Method::AtomicTile(op) => self.store(OpKind::AtomicTile(op), t, args, span),
            Method::Get => {
                let mut operands = vec![t];
                self.coordinates(&args[0], &mut operands)?;
                Ok(Val::Value(self.op(span, OpKind::Get, &operands)?))
            }
            Method::Set | Method::Scatter => {
                let kind = if method == Method::Set { OpKind::Set } else { OpKind::Scatter };
                self.store(kind, t, args, span)
            }
            Method::Atomic(op) => self.store(OpKind::Atomic(op), t, args, span),
            Method::Fetch(op) => self.fetch(OpKind::Fetch(op), t, args, span),
            Method::CompareExchange => self.fetch(OpKind::CompareExchange, t, args, span),
            Method::Index | Method::Slice => self.view(method, t, generics, &args[0], span),
            Method::Segment => {
                let off = self.expr(&args[0])?;
                let off = self.tensor(off, args[0].span)?;
                let i = self.expr(&args[1])?;
                let i = self.value(i, args[1].span)?;
                Ok(Val::Tensor(self.op(span, OpKind::Segment, &[t, off, i])?))
            }
            Method::GatherRows { padded } => {
                let mut operands = vec![t];
                self.rows(&args[0], &mut operands)?;
                let col = self.expr(&args[1])?;
                operands.push(self.value(col, args[1].span)?);
                operands.push(self.padding(padded.then(|| args.last()).flatten(), t)?);
                let (_, shape) = self.tile_ty(e.id, span)?;
                Ok(Val::Value(self.op(span, OpKind::GatherRows { rows: shape[0], width: shape[1] }, &operands)?))
            }
            Method::ScatterRows => {
                let mut operands = vec![t];
                self.rows(&args[0], &mut operands)?;
                for a in &args[1..] {
                    let val = self.expr(a)?;
                    operands.push(self.value(val, a.span)?);
                }
                self.effect(span, OpKind::ScatterRows, &operands)
            }
            Method::Gather { padded } => {
                let mut operands = vec![t];
                self.coordinates(&args[0], &mut operands)?;
                operands.push(self.padding(padded.then(|| args.last()).flatten(), t)?);
                Ok(Val::Value(self.op(span, OpKind::Gather, &operands)?))
            }
            Method::Tiles { .. } | Method::Ragged => {
                let ITy::OwnIter(own) = self.infer.ty(e.id).clone() else { return Err(Stop) };
                let offsets = match args.first() {
                    Some(a) => {
                        let off = self.expr(a)?;
                        Some(self.tensor(off, a.span)?)
                    }
                    None => None,
                };
                Ok(Val::Tiles(Tiles { tensor: t, shape: own.shape, group: own.group, offsets, counts: None }))
            }
            Method::Source(_) | Method::SourceRows => self.source(e, method, t, args),
            Method::Work { .. } => self.work(e, t),
            Method::Shared => Ok(Val::Tensor(self.op(span, OpKind::Shared, &[t])?)),
            _ => Err(self.no_meaning(span)),
        }
    }

    /// Appends the lowered coordinates `[i, j]`.
    pub(super) fn coordinates(&mut self, arg: &Expr, out: &mut Vec<Value>) -> Lowered<()> {
        if self.expr(arg)?.flatten(out) { Ok(()) } else { Err(self.internal(arg.span, "coordinates of another kind")) }
    }

    /// Row indices: a tuple or one of them.
    pub(super) fn rows(&mut self, arg: &Expr, out: &mut Vec<Value>) -> Lowered<()> {
        self.coordinates(arg, out)
    }

    fn padding(&mut self, pad: Option<&Expr>, t: Value) -> Lowered<Value> {
        match pad {
            Some(e) => {
                let val = self.expr(e)?;
                self.value(val, e.span)
            }
            None => Ok(self.zero(self.ty(t).elem())),
        }
    }

    /// Coordinates and a value.
    fn store(&mut self, kind: OpKind, t: Value, args: &[Expr], span: Span) -> Lowered<Val> {
        let mut operands = vec![t];
        self.coordinates(&args[0], &mut operands)?;
        let val = self.expr(&args[1])?;
        operands.push(self.value(val, args[1].span)?);
        self.effect(span, kind, &operands)
    }

    /// An atomic update that returns what it found. One of an element is one of a tile of one lane.
    fn fetch(&mut self, kind: OpKind, t: Value, args: &[Expr], span: Span) -> Lowered<Val> {
        if self.closure != Closure::None {
            let name = mnemonic(&kind);
            let title = format!("`{name}` in a closure: how often it would be executed is not defined");
            let help =
                "call it outside of the closure, with a tile of indices: one update for each element of the tile";
            return Err(self.push_diag(Diagnostic::new(Code::InClosure, span, title).help(help)));
        }
        let mut operands = vec![t];
        self.coordinates(&args[0], &mut operands)?;
        for arg in &args[1..] {
            let val = self.expr(arg)?;
            operands.push(self.value(val, arg.span)?);
        }
        let single = TileShape::new(&[1]).ok_or(Stop)?;
        let is_one = operands.last().is_some_and(|v| matches!(self.ty(*v), Ty::Scalar(_)));
        for operand in operands.iter_mut().skip(1).filter(|_| is_one) {
            *operand = self.op(span, OpKind::Splat(single), &[*operand])?;
        }
        let mut found = Vec::new();
        for value in self.ops(span, kind, &operands)? {
            found.push(Val::Value(if is_one { self.only_element(value, span)? } else { value }));
        }
        if let [_, _] = &found[..] { Ok(Val::Tuple(found)) } else { found.pop().ok_or(Stop) }
    }

    fn view(&mut self, method: Method, t: Value, generics: &[GenericArg], arg: &Expr, span: Span) -> Lowered<Val> {
        let axis =
            generics.first().and_then(|g| self.env.const_arg(g).ok()).and_then(|a| u8::try_from(a).ok()).ok_or(Stop)?;
        let val = self.expr(arg)?;
        let view = match (method, val) {
            (Method::Index, val) => {
                let i = self.value(val, arg.span)?;
                self.op(span, OpKind::Index(axis), &[t, i])?
            }
            (_, Val::Range(r)) if r.kind == ForKind::Sequential => {
                self.op(span, OpKind::Slice(axis), &[t, r.lo, r.hi])?
            }
            _ => return Err(self.internal(arg.span, "a view of something else")),
        };
        Ok(Val::Tensor(view))
    }

    pub(super) fn own_method(&mut self, method: Method, own: &OwnVal, args: &[Expr], span: Span) -> Lowered<Val> {
        if let Method::OwnIndex | Method::OwnGroup | Method::OwnLoad = method {
            self.read_own(own, span);
        }
        match method {
            Method::OwnIndex => Ok(Val::Array(own.index.iter().copied().map(Val::Value).collect())),
            Method::OwnGroup => own.group.map(Val::Value).ok_or(Stop),
            Method::OwnLoad => {
                let mut operands = vec![own.tensor];
                operands.extend(&own.index);
                operands.push(self.zero(self.ty(own.tensor).elem()));
                Ok(Val::Value(self.op(span, OpKind::Load(Unit::Tile, own.shape), &operands)?))
            }
            Method::OwnStore => {
                // The receiver is moved before the arguments are evaluated.
                self.consume(own, span);
                let val = self.expr(&args[0])?;
                let v = self.value(val, args[0].span)?;
                if self.ty(v).tile_shape().is_some() { self.store_own(own, v, span) } else { Err(Stop) }
            }
            Method::OwnStoreFrom => self.store_own_from(own, &args[0], span),
            Method::OwnSkip => Ok(self.skip_own(own, span)),
            _ => Err(self.no_meaning(span)),
        }
    }
}

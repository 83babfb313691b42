//! Constant tables, and elements of arrays at places that are known only at run time.
//!
//! There is no memory in which an array could be: the element is chosen by selections, in a tree with one level for each bit of the index.
//!
//! Deliberately absent: assignments to elements.

use super::{FnLower, Lowered, Stop, Val};
use crate::ast::Expr;
use crate::consts::NotConst;
use titan_core::diag::Code;
use titan_core::ir::{BinOp, Const, Elem, OpKind, Pred, Ty, Value};

impl FnLower<'_, '_, '_> {
    /// The numbers of a constant table.
    pub(super) fn table(&mut self, e: &Expr, key: &str) -> Lowered<Val> {
        let constant = self.env.items.constants.get(key).ok_or(Stop)?;
        let entries = constant.entries().ok_or(Stop)?.len();
        let mut list = Vec::new();
        for place in 0..entries {
            let value = match i64::try_from(place).ok().and_then(|place| constant.entry(place)) {
                Some(Ok(value)) => value,
                Some(Err(NotConst::Error(what))) => {
                    return Err(self.error(
                        Code::ConstEval,
                        e.span,
                        format!("number {place} of the constant has {what}"),
                    ));
                }
                Some(Err(NotConst::Runtime)) | None => return Err(Stop),
            };
            let c = self.const_of(value, constant.elem, e.span)?;
            list.push(Val::Value(self.sh.b.constant(c)));
        }
        Ok(Val::Array(list))
    }

    /// The element of an array at a place; zero if there is none.
    pub(super) fn chosen(&mut self, list: Vec<Val>, index: &Expr) -> Lowered<Val> {
        let span = index.span;
        let place = self.expr(index)?;
        let place = self.value(place, span)?;
        let mut level = Vec::new();
        for item in list {
            let item = self.value(item, span)?;
            level.push(match (self.ty(place), self.ty(item)) {
                (Ty::Tile(_, shape), Ty::Scalar(_)) => self.op(span, OpKind::Splat(shape), &[item])?,
                _ => item,
            });
        }
        let (n, like) = (level.len(), *level.first().ok_or(Stop)?);
        for bit in 0..n.next_power_of_two().trailing_zeros() {
            let bit = self.everywhere(place, Const::Int(Elem::I32, 1 << bit), span)?;
            let zero = self.everywhere(place, Const::Int(Elem::I32, 0), span)?;
            let set = self.op(span, OpKind::Binary(BinOp::And), &[place, bit])?;
            let set = self.op(span, OpKind::Cmp(Pred::Ne), &[set, zero])?;
            let mut next = Vec::new();
            for pair in level.chunks(2) {
                next.push(match pair {
                    [even, odd] => self.op(span, OpKind::Select, &[set, *odd, *even])?,
                    // Without a partner: of the indices that lead here, none with this bit is in the array.
                    _ => *pair.first().ok_or(Stop)?,
                });
            }
            level = next;
        }
        let chosen = *level.first().ok_or(Stop)?;
        // Read as unsigned, negative places are beyond the end too.
        let count = i64::try_from(n).map_err(|_| Stop)?;
        let end = self.everywhere(place, Const::Int(Elem::U32, count), span)?;
        let unsigned = self.op(span, OpKind::Bitcast(Elem::U32), &[place])?;
        let inside = self.op(span, OpKind::Cmp(Pred::Lt), &[unsigned, end])?;
        let none = self.nothing(like, span)?;
        self.op(span, OpKind::Select, &[inside, chosen, none]).map(Val::Value)
    }

    /// Zero, or `false`, in the type of a value.
    fn nothing(&mut self, like: Value, span: proc_macro2::Span) -> Lowered<Value> {
        let zero = self.zero(self.ty(like).elem());
        match self.ty(like) {
            Ty::Tile(_, shape) => self.op(span, OpKind::Splat(shape), &[zero]),
            _ => Ok(zero),
        }
    }
}

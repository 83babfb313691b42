//! The parities for which claims of a ring wait, and the numbers of rounds with which counters are compared.

use super::{At, Check};
use crate::ir::{BinOp, OpKind, Value};

impl Check<'_> {
    fn binary(&self, value: Value, wanted: BinOp) -> Option<(Value, Value)> {
        let op = self.kernel.def_op(value).filter(|op| op.kind == OpKind::Binary(wanted))?;
        if let [a, b] = op.args[..] { Some((a, b)) } else { None }
    }

    /// Whether a value is `turn % 2`, or its inverse; or `turn` itself, if that is the parity of the round.
    pub(super) fn is_parity(&mut self, value: Value, turn: Value, other: bool, at: &At<'_>) -> Option<()> {
        let kernel = self.kernel;
        let number = |v: Value| kernel.int_constant(v);
        if let (Some(parity), Some(turn)) = (number(value), number(turn)) {
            return (parity == (turn + i64::from(other)).rem_euclid(2)).then_some(());
        }
        // 1 - p is the other parity of p.
        let value = if other {
            let (one, parity) = self.binary(value, BinOp::Sub)?;
            (number(one) == Some(1)).then_some(parity)?
        } else {
            value
        };
        // A ring either counts rounds and waits for their remainders by 2, or carries parities. If both occur, `counts`
        // refuses it: a round of 2 is no parity.
        self.ring(at).parities[usize::from(value != turn)] = true;
        if value == turn {
            return Some(());
        }
        let of = match (self.binary(value, BinOp::Rem), self.binary(value, BinOp::And)) {
            (Some((of, two)), _) if number(two) == Some(2) => of,
            // The number of a round is not negative, so that a mask is a remainder.
            (_, Some((of, one))) if number(one) == Some(1) => of,
            (_, _) => return None,
        };
        (of == turn).then_some(())
    }

    pub(super) fn is_one_more(&self, value: Value, than: Value) -> bool {
        let number = |v: Value| self.kernel.int_constant(v);
        if let (Some(value), Some(than)) = (number(value), number(than)) {
            return value == than + 1;
        }
        self.binary(value, BinOp::Add).is_some_and(|(of, one)| of == than && number(one) == Some(1))
    }
}

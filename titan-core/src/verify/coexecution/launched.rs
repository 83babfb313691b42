//! The numbers of a launch: extents, shape names, scalar arguments, and what a kernel requires of them.

use super::key::Key;
use super::linear::{Condition, Facts, Linear};
use super::values::Symbols;
use crate::ir::{Def, DimSpec, GridSpec, HostExpr, HostOp, ParamKind, Pred};

impl Symbols<'_> {
    /// Adds the requirements that a launch has checked.
    pub(in crate::verify) fn requirements(&mut self, facts: &mut Facts) {
        for require in &self.kernel().sig.requires {
            if let Some(condition) = self.host_condition(require, facts) {
                facts.assume(&condition, true);
            }
        }
    }

    /// Whether the grid is empty for the numbers of an example.
    pub(super) fn is_idle(&mut self, facts: &mut Facts) -> bool {
        if let Some(example) = &mut self.example {
            example.complete();
        }
        let GridSpec::Extents(extents) = &self.kernel().sig.grid else { return false };
        extents.iter().any(|e| self.host(e, facts).and_then(|l| l.as_constant()).is_some_and(|n| n < 1))
    }

    fn host_condition(&mut self, expr: &HostExpr, facts: &mut Facts) -> Option<Condition> {
        let HostExpr::Binary(op, a, b) = expr else { return None };
        let pred = match op {
            HostOp::Eq => Pred::Eq,
            HostOp::Ne => Pred::Ne,
            HostOp::Lt => Pred::Lt,
            HostOp::Le => Pred::Le,
            HostOp::Gt => Pred::Gt,
            HostOp::Ge => Pred::Ge,
            // Both sides hold, so both are facts. Of an `or`, neither is known to hold, and nothing is assumed.
            HostOp::And => {
                for side in [a, b] {
                    if let Some(condition) = self.host_condition(side, facts) {
                        facts.assume(&condition, true);
                    }
                }
                return None;
            }
            HostOp::Add
            | HostOp::Sub
            | HostOp::Mul
            | HostOp::Div
            | HostOp::Rem
            | HostOp::Cdiv
            | HostOp::Min
            | HostOp::Max
            | HostOp::Or => return None,
        };
        Some(Condition::compare(pred, &self.host(a, facts)?, &self.host(b, facts)?))
    }

    fn host(&mut self, expr: &HostExpr, facts: &mut Facts) -> Option<Linear> {
        match expr {
            HostExpr::Const(c) => Some(Linear::constant(*c)),
            HostExpr::Symbol(s) => Some(self.extent(Key::Symbol(*s), facts)),
            HostExpr::Scalar(p) => Some(self.given(Key::Value(self.kernel().param(*p), 0))),
            HostExpr::Dim(p, axis) => Some(self.dim(*p, *axis, facts)),
            HostExpr::Not(_) => None,
            HostExpr::Binary(op, a, b) => {
                let (a, b) = (self.host(a, facts)?, self.host(b, facts)?);
                match (op, a.as_constant(), b.as_constant()) {
                    (HostOp::Add, ..) => Some(a.plus(1, &b)),
                    (HostOp::Sub, ..) => Some(a.minus(&b)),
                    (HostOp::Mul, ..) => self.product(&a, &b, facts),
                    (HostOp::Div, _, Some(k)) => self.quotient(&a, k, facts),
                    (HostOp::Cdiv, _, Some(k)) => self.quotient(&a.plus_const(k - 1), k, facts),
                    (_, _, _) => None,
                }
            }
        }
    }

    /// A launch argument: an atom, or its number in an example.
    pub(super) fn given(&mut self, key: Key) -> Linear {
        // In an example, arguments have numbers; what is loaded from memory has none.
        let data = matches!(key, Key::Value(value, _) if !matches!(self.kernel().value(value).def, Def::Param(_)));
        match self.example.as_mut().filter(|_| !data).and_then(|e| e.number(&key)) {
            Some(number) => Linear::constant(number),
            None => Linear::atom(self.intern(key)),
        }
    }

    /// An extent, which is not negative.
    pub(super) fn extent(&mut self, key: Key, facts: &mut Facts) -> Linear {
        let atom = self.given(key);
        if !facts.is_not_negative(&atom) {
            facts.assume(&Condition::NotNegative(atom.clone(), true), true);
        }
        atom
    }

    pub(super) fn dim(&mut self, param: usize, axis: usize, facts: &mut Facts) -> Linear {
        let declared = self.kernel().sig.params.get(param).and_then(|p| match &p.kind {
            ParamKind::Tensor { shape, .. } => shape.get(axis),
            ParamKind::Scalar(_) => None,
        });
        match declared {
            Some(DimSpec::Bind(s)) => self.extent(Key::Symbol(*s), facts),
            Some(DimSpec::Equals(e)) => match self.host(e, facts) {
                Some(l) => l,
                None => self.extent(Key::Dim(param, axis), facts),
            },
            Some(DimSpec::Any) | None => self.extent(Key::Dim(param, axis), facts),
        }
    }
}

//! Explains indices that are not followed, although they may be right: variables of loops over a part, and numbers made of bits. The help
//! names the form that is followed.

use super::{Access, Context, DEEP};
use crate::analysis::affine::{Affine, Term};
use crate::analysis::uses::Tree;
use crate::diag::{Code, Diagnostic};
use crate::ir::{BinOp, Def, Loc, OpKind, Value};

impl Context<'_> {
    /// An index computed from the variable of a loop over a range that depends on the program, but is not known to be a part.
    pub(super) fn ranged(&self, access: &Access) -> Option<Diagnostic<Loc>> {
        let tree = Tree::new(self.output.kernel);
        let variable = |v: Value| self.variable_of(&tree, v, DEEP);
        let (index, from) = access.coordinates.iter().find_map(|(_, v)| variable(*v))?;
        let (name, who, source) = (self.output.name(), self.who(), self.source());
        let index = self.called(index, "its index");
        let size = self.output.forms.of(from).terms.get(&Term::Program(self.axis)).copied();
        let size = size.filter(|c| *c > 1).map_or_else(|| "C".to_owned(), |c| c.to_string());
        let title = format!(
            "{} are not known to write different parts of `{name}`: {index} is in a range that depends on {who}, and is not known to be \
             in a part of one size for each",
            self.programs()
        );
        let error = self.output.error(Code::Overlap, access, title);
        Some(
            error
                .help(format!(
                    "write the range as `{source} * {size}..{source} * {size} + {size}`, by a constant; its end may be clamped: \
                     `({source} * {size} + {size}).min(N)`"
                ))
                .help(format!("or count from 0 and add the start: `for i in 0..{size}`, with the index `{source} * {size} + i`"))
                .help(format!("or split the axis: `#[shape(.., {size})]`, with the indices `{source}` and `i`")),
        )
    }

    /// The variable of a loop whose bounds depend on the program, from which a value is computed, and the start of the loop. Variables whose
    /// forms contain the index of the program are not looked for.
    fn variable_of(&self, tree: &Tree, value: Value, deep: u32) -> Option<(Value, Value)> {
        let kernel = self.output.kernel;
        match kernel.value(value).def {
            Def::BlockArg(block, 0) => {
                let looped = kernel.op(tree.owner(block)?);
                let (OpKind::For(_), [from, to, ..]) = (&looped.kind, &looped.args[..]) else { return None };
                let depends = [from, to].iter().any(|v| self.origins.of(**v).of_axis(self.axis));
                (depends && !self.is_followed(value)).then_some((value, *from))
            }
            Def::Result(id, _) => {
                let op = kernel.op(id);
                let computes = deep > 0 && matches!(op.kind, OpKind::Binary(_) | OpKind::Unary(_));
                op.args.iter().filter(|_| computes).find_map(|v| self.variable_of(tree, *v, deep - 1))
            }
            Def::Param(_) | Def::BlockArg(..) => None,
        }
    }

    /// An index made of bits of the program's index.
    pub(super) fn of_bits(&self, access: &Access) -> Option<Diagnostic<Loc>> {
        let bits = |v: Value| self.bits_in(v, DEEP);
        let exchanges = access.coordinates.iter().find_map(|(_, v)| bits(*v))? == BinOp::Xor;
        let (name, who, source) = (self.output.name(), self.who(), self.source());
        let (sign, why) = if exchanges {
            ("^", "is not known to exchange parts of one size")
        } else {
            ("|", "is not known to add bits that the other operand does not have")
        };
        let title = format!(
            "{} are not known to write different parts of `{name}`: its index has `{sign}` with {who}, which {why}",
            self.programs()
        );
        let error = self.output.error(Code::Overlap, access, title);
        let help = if exchanges {
            format!(
                "`{source} ^ c` is followed if `c` is the same for all programs, or depends only on other indices of `{name}`; so is \
                 `^` with fewer bits than the size of a part"
            )
        } else {
            format!(
                "`({source} << 5) | i` is followed if `i` is known to be less than 32, as in `for i in 0..32`, or after `& 31`"
            )
        };
        let error = error.help(help);
        Some(
            error
                .help(format!("or add what is in the part: `{source} * C + i`, with a constant `C` and `i` in `0..C`")),
        )
    }

    /// The operation on bits of the program's index whose result is not followed, from which a value is computed.
    fn bits_in(&self, value: Value, deep: u32) -> Option<BinOp> {
        let op = self.output.kernel.def_op(value).filter(|_| deep > 0)?;
        if let OpKind::Binary(kind @ (BinOp::Or | BinOp::Xor)) = op.kind
            && self.origins.of(value).of_axis(self.axis)
            && !self.is_followed(value)
        {
            return Some(kind);
        }
        let computes = matches!(op.kind, OpKind::Binary(_) | OpKind::Unary(_));
        op.args.iter().filter(|_| computes).find_map(|v| self.bits_in(*v, deep - 1))
    }

    /// Whether a form of a value has a term that differs between programs.
    fn is_followed(&self, value: Value) -> bool {
        let differs = |form: &Affine| form.terms.keys().any(|t| t.is_source());
        self.output.forms.all(value).iter().any(differs)
    }
}

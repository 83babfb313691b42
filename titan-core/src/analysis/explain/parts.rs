//! Explains what is wrong with the parts into which an index is decomposed, by `unflatten` or by arithmetic.

use super::{Access, Context, DEEP, verb};
use crate::analysis::affine::Term;
use crate::analysis::forms::is_box;
use crate::analysis::grid::is_product;
use crate::analysis::tiles::cdiv;
use crate::diag::{Code, Diagnostic};
use crate::ir::{Def, Kernel, Loc, Op, OpKind, Value};

impl Context<'_> {
    /// An index that is decomposed by arithmetic instead of `unflatten`.
    pub(super) fn taken_apart(&self, error: impl Fn(String) -> Diagnostic<Loc>, v: Value) -> Diagnostic<Loc> {
        let (name, who, index) = (self.output.name(), self.who(), self.called(v, "its index"));
        let error = error(format!(
            "{} are not known to write different parts of `{name}`: {index} is made of quotients and remainders of {who}, which \
             are not followed",
            self.programs()
        ));
        if self.is_persistent() {
            return error
                .help(format!("take the tiles as they come: `for out in {name}.tiles::<..>()`, with `out.index()`"))
                .help(format!("in groups of 8 rows: `for out in {name}.tiles_grouped::<.., 8>()`"));
        }
        error
            .help(format!("decompose it with `let [i, j] = unflatten({}, [rows, columns])`", self.source()))
            .help(format!(
                "in groups of 8 rows: `let [i, j] = unflatten_grouped::<8>({}, [rows, columns])`",
                self.source()
            ))
            .help(format!("`unsafe {{ {name}.shared() }}` makes you responsible for disjoint accesses of programs"))
    }

    /// A coordinate of an `unflatten` on which the access does not depend.
    pub(super) fn part(&self, access: &Access) -> Option<Diagnostic<Loc>> {
        let (output, name) = (self.output, self.output.name());
        let base = |t: Term| t == Term::Program(self.axis) || (self.axis == 0 && t == Term::Work);
        output.forms.groups.iter().enumerate().find_map(|(g, group)| {
            group.base.as_source().filter(|(t, _)| base(*t))?;
            let told = |i: &usize| output.told(&[access], Term::Part(g, *i), &mut Vec::new()).is_some();
            let (known, missing): (Vec<usize>, Vec<usize>) =
                (0..group.needed.len()).filter(|i| group.needed[*i]).partition(told);
            let (_, part) = (known.first()?, missing.first()?);
            let made = output.kernel.op(group.op);
            let part = self.called(*made.results.get(*part)?, "one part of the index");
            let title = format!("programs that differ only in {part} may write the same part of `{name}`");
            let error = output.error(Code::Overlap, access, title).related(made.loc, format!("{part} is one of these"));
            Some(error.help(format!("index an axis of `{name}` by {part} as well")))
        })
    }

    /// A coordinate that overflows because it is computed from a part of an `unflatten` without a bound: the number of programs is not
    /// known to be the product of its extents.
    pub(super) fn unbounded_part(&self, access: &Access, index: Value) -> Option<Diagnostic<Loc>> {
        let (output, name) = (self.output, self.output.name());
        let kernel = output.kernel;
        let (op, part) = self.origin_part(index, DEEP)?;
        let [base, extents @ ..] = &op.args[..] else { return None };
        let OpKind::ProgramId(axis) = kernel.def_op(*base)?.kind else { return None };
        if is_product(kernel, axis, extents) {
            return None;
        }
        let (part, index) = (self.called(part, "a part"), self.called(index, "its index"));
        let example = "such as `grid(cdiv(M, 8) * cdiv(N, 8))` for `unflatten(.., [cdiv(M, 8), cdiv(N, 8)])`";
        let free = extents.iter().find(|e| !is_of_a_tensor(kernel, **e));
        let (why, help) = match free {
            Some(extent) => (
                format!("{} is not the extent of a tensor", self.called(*extent, "one of its extents")),
                format!("take all its extents from tensors, and launch their product, {example}"),
            ),
            None => (
                "the grid is not written as the product of its extents".to_owned(),
                format!("launch the product of its extents, in the same order, {example}"),
            ),
        };
        let title = format!(
            "{} `{name}` may wrap to another program's part: {index} may overflow `i32`, because {part} of its `unflatten` has no bound: {why}",
            verb(output, access)
        );
        let error = output.error(Code::Overlap, access, title).related(op.loc, "the `unflatten`");
        Some(error.help(help).help("or count in tiles, which cannot overflow: `store_tile`, `load_tile`"))
    }

    /// The decomposition by which a value is computed, and its result that the value depends on.
    fn origin_part(&self, value: Value, deep: u32) -> Option<(&Op, Value)> {
        let op = self.output.kernel.def_op(value).filter(|_| deep > 0)?;
        if is_box(&op.kind) {
            return Some((op, value));
        }
        let computes = matches!(
            op.kind,
            OpKind::Binary(_) | OpKind::Unary(_) | OpKind::Splat(_) | OpKind::Broadcast { .. } | OpKind::Reshape(_)
        );
        op.args.iter().filter(|_| computes).find_map(|v| self.origin_part(*v, deep - 1))
    }
}

/// Whether a value is the extent of a parameter, divided by a constant and rounded up or not, or a constant.
fn is_of_a_tensor(kernel: &Kernel, value: Value) -> bool {
    let of = cdiv(kernel, value).map_or(value, |(x, _)| x);
    let of_param = |op: &Op| {
        let param = |v: &Value| matches!(kernel.value(*v).def, Def::Param(_));
        matches!(op.kind, OpKind::Dim(_)) && op.args.first().is_some_and(param)
    };
    kernel.int_constant(of).is_some() || kernel.def_op(of).is_some_and(of_param)
}

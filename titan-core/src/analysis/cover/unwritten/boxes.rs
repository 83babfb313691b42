//! Extents of `unflatten` that are not the numbers of an output's parts.
//!
//! The parts of an output along its axes form a box, and `unflatten` gives each part a number, by the extents that the kernel states. Two
//! mistakes leave parts unwritten:
//!
//! * An extent, other than the first, is less than the number of parts along its axis: the parts beyond it have no number.
//! * An extent is greater: the last parts have numbers that no program has, since a launch requires one program for each part only. In
//!   groups of rows this is true of the first extent as well, which determines the size of the last group.
//!
//! Deliberately absent: numbers that are not the indices of programs, and extents that depend on values in memory.

use super::super::count;
use super::super::example::{Search, mentions_dim, named, when};
use super::trap::exact;
use crate::analysis::affine::{I32, Term};
use crate::analysis::forms::{Forms, Group, is_box};
use crate::analysis::partition::{By, Key};
use crate::diag::{Code, Diagnostic};
use crate::ir::{BinOp, GridSpec, HostExpr, HostNames as _, HostOp, Kernel, Loc, OpKind, Value};

/// How deep an extent is converted to an expression.
const DEEP: u32 = 16;

/// Which part of the output no program writes.
enum Missed {
    /// Those of this index along the axis of this extent, which is less than the number of parts.
    Beyond { part: usize, index: i64, parts: i64 },
    /// The one of these indices, which has this number; there are so many programs.
    Last { at: Vec<i64>, number: i64, programs: i64 },
}

/// The parts of an output that `unflatten` numbers.
struct Boxed<'a> {
    kernel: &'a Kernel,
    group: &'a Group,
    /// For each part of a number, the key that divides an axis by it; `None` if the extent is 1.
    keys: Vec<Option<&'a Key>>,
    /// The numbers of parts along the axes, and the extents.
    counts: Vec<HostExpr>,
    extents: Vec<HostExpr>,
}

/// T0411 for an output whose parts are numbered by wrong extents, for arguments that the kernel accepts.
pub(super) fn miscounted(
    kernel: &Kernel,
    forms: &Forms,
    (param, keys): (usize, &[Key]),
    demands: &[(HostExpr, i64)],
) -> Option<Diagnostic<Loc>> {
    let boxes = forms.groups.iter().enumerate().filter(|(_, group)| is_box(&group.kind));
    boxes
        .into_iter()
        .find_map(|(number, group)| Boxed::new(kernel, param, (number, group), keys)?.wrong(param, demands))
}

impl<'a> Boxed<'a> {
    fn new(kernel: &'a Kernel, param: usize, (number, group): (usize, &'a Group), keys: &'a [Key]) -> Option<Self> {
        let (_, args) = kernel.op(group.op).args.split_first()?;
        let mut boxed = Boxed { kernel, group, keys: Vec::new(), counts: Vec::new(), extents: Vec::new() };
        for (i, extent) in args.iter().enumerate() {
            let key = keys.iter().find(|key| key.source == Term::Part(number, i));
            let parts = match key {
                Some(key) => count(&kernel.sig, param, key)?.0,
                None if group.needed.get(i) == Some(&false) => HostExpr::Const(1),
                None => return None,
            };
            boxed.keys.push(key);
            boxed.counts.push(named(&kernel.sig, &parts));
            boxed.extents.push(named(&kernel.sig, &expr(kernel, *extent, DEEP)?));
        }
        // Without a name, nothing is declared about an extent.
        let is_named = boxed.counts.iter().chain(&boxed.extents).all(|e| !mentions_dim(e));
        (is_named && boxed.keys.iter().flatten().next().is_some()).then_some(boxed)
    }

    /// The extent of the grid whose indices are the numbers, if they are.
    fn programs(&self) -> Option<HostExpr> {
        let (Term::Program(axis), 1) = self.group.base.as_source()? else { return None };
        let GridSpec::Extents(declared) = &self.kernel.sig.grid else { return None };
        Some(declared.get(usize::from(axis)).cloned().unwrap_or(HostExpr::Const(1)))
    }

    fn wrong(&self, param: usize, demands: &[(HostExpr, i64)]) -> Option<Diagnostic<Loc>> {
        let programs = self.programs();
        // The number of rows of a group is a constant of the kernel, near whose multiples an example may be.
        let rows = if let OpKind::UnflattenGrouped(rows) = self.group.kind { rows.into() } else { 1 };
        let asked = [&[HostExpr::Const(rows)][..], &self.counts, &self.extents, programs.as_slice()].concat();
        let search = Search { sig: &self.kernel.sig, param, asked, demands: demands.to_vec() };
        let (example, missed) = search.find(&|results| self.missed(results))?;
        Some(self.diagnostic(param, &when(&example), &missed))
    }

    /// What is missed with these numbers of parts, extents, and programs.
    fn missed(&self, results: &[i64]) -> Option<Missed> {
        let (counts, rest) = results.get(1..)?.split_at_checked(self.counts.len())?;
        let (extents, programs) = rest.split_at_checked(self.extents.len())?;
        if results.iter().any(|n| !(1..=I32.hi).contains(n)) {
            return None;
        }
        let short = |i: &usize| *i > 0 && extents.get(*i) < counts.get(*i);
        if let Some(part) = (0..counts.len()).find(short) {
            return Some(Missed::Beyond { part, index: extents[part], parts: counts[part] });
        }
        let at: Vec<i64> = counts.iter().map(|n| n - 1).collect();
        let number = number(&self.group.kind, &at, extents).filter(|n| *n <= I32.hi)?;
        let programs = programs.first().copied().filter(|n| *n <= number)?;
        Some(Missed::Last { at, number, programs })
    }

    /// The first element along its axis of a part.
    fn element(&self, part: usize, index: i64) -> Option<(usize, i64)> {
        let key = self.keys.get(part).copied().flatten()?;
        let By::Stride { size, offset, .. } = key.by else { return None };
        Some((key.axis, index.checked_mul(size)?.checked_add(offset)?))
    }

    fn diagnostic(&self, param: usize, when: &str, missed: &Missed) -> Diagnostic<Loc> {
        let name = self.kernel.sig.param(param);
        let method = if self.group.kind == OpKind::Unflatten { "unflatten" } else { "unflatten_grouped" };
        let plural = |n: i64, word: &str| if n == 1 { format!("{n} {word}") } else { format!("{n} {word}s") };
        let place = |(axis, index): (usize, i64)| format!("index {index} along axis {axis}");
        let title = match missed {
            Missed::Beyond { part, index, parts } => {
                let at = self.element(*part, *index).map(place).unwrap_or_default();
                let count = plural(*parts, "part");
                format!(
                    "{when}no program writes `{name}` at {at}: `{method}` counts to {index} there, and `{name}` has {count}"
                )
            }
            Missed::Last { at, number, programs } => {
                let places: Vec<String> =
                    at.iter().enumerate().filter_map(|(i, n)| self.element(i, *n)).map(place).collect();
                let (at, grid) = (places.join(" and "), plural(*programs, "program"));
                format!(
                    "{when}no program writes `{name}` at {at}: `{method}` gives it the number {number}, and the grid has {grid}"
                )
            }
        };
        let right: Vec<String> = self.counts.iter().map(|e| e.in_attribute(&self.kernel.sig)).collect();
        let help = format!("the extents of `{method}` are the numbers of parts of `{name}`: `[{}]`", right.join(", "));
        Diagnostic::new(Code::Unwritten, self.kernel.op(self.group.op).loc, title)
            .help(help)
            .help("or `grid(unchecked ..)`, if the rest is left unwritten on purpose")
    }
}

/// The number of coordinates in a box.
fn number(kind: &OpKind, at: &[i64], extents: &[i64]) -> Option<i64> {
    let row_major = |at: &[i64]| {
        at.iter().zip(extents).try_fold(0i64, |sum, (at, extent)| sum.checked_mul(*extent)?.checked_add(*at))
    };
    let (OpKind::UnflattenGrouped(rows), [.., row, column], [.., height, width]) = (kind, at, extents) else {
        return row_major(at);
    };
    let rows = i64::from(*rows);
    if rows < 1 || row >= height {
        return row_major(at);
    }
    let first = row - row % rows;
    let local = column.checked_mul(rows.min(height - first))?.checked_add(row - first)?;
    let [outer @ .., _, _] = at else { return None };
    row_major(&[outer, &[first + local / width, local % width]].concat())
}

/// A value as an expression of the arguments.
fn expr(kernel: &Kernel, value: Value, deep: u32) -> Option<HostExpr> {
    if let Some(known) = exact(kernel, value) {
        return Some(known);
    }
    let op = kernel.def_op(value)?;
    let (OpKind::Binary(of), [a, b]) = (&op.kind, &op.args[..]) else { return None };
    let of = match of {
        BinOp::Add => HostOp::Add,
        BinOp::Sub => HostOp::Sub,
        BinOp::Mul => HostOp::Mul,
        BinOp::Div => HostOp::Div,
        BinOp::Rem => HostOp::Rem,
        BinOp::Min => HostOp::Min,
        BinOp::Max => HostOp::Max,
        BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr | BinOp::MulHi | BinOp::Powf => return None,
    };
    let deep = deep.checked_sub(1)?;
    Some(HostExpr::binary(of, expr(kernel, *a, deep)?, expr(kernel, *b, deep)?))
}

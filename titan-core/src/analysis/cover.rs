//! Whether a declared grid covers every output that is partitioned between programs.
//!
//! A key of [`super::partition`] confines each program to its own part of an axis. So a grid with fewer programs than parts leaves elements
//! unwritten, whatever the kernel does inside of a part. The number of parts is a [`Need`]: a launch compares it with its grid, and at
//! compile time [`short`] searches for arguments for which a declared grid is too small. `grid(unchecked ..)` declares that the rest of an
//! output is left unwritten intentionally.
//!
//! * For a program index itself, the parts are those of the axis that it divides.
//! * For an index that is decomposed ([`Term::Part`]), each part of it divides an axis, and different programs have different
//!   parts: there must be at least as many programs as combinations of parts.
//! * For an index that is permuted in blocks (`p ^ 1`), the parts are those of whole blocks: the last part may be that of the last program
//!   of its block.
//!
//! A grid may be larger: stores outside of a tensor are dropped.
//!
//! Whether the programs write all of their parts is another question, see [`unwritten()`].
//!
//! Deliberately absent: outputs that are scattered to, updated atomically or exempt from the rule; parts that start at an argument or are
//! in reverse order.

mod example;
mod reach;
mod unwritten;

pub use unwritten::unwritten;

use super::affine::Term;
use super::forms::Forms;
use super::partition::{By, Class, Key, Partition};
use crate::diag::{Code, Diagnostic};
use crate::ir::{DimSpec, GridSpec, HostExpr, HostNames, HostOp, Kernel, Loc, Need, ParamKind, Parts, Signature};

/// The requirements of a kernel's outputs on the grid.
#[must_use]
pub fn needs(kernel: &Kernel, partition: &Partition) -> Vec<Need> {
    if kernel.sig.grid == GridSpec::Persistent {
        return Vec::new();
    }
    let forms = Forms::new(kernel, true);
    let mut needs = Vec::new();
    // The output rule has no keys for axes with one program.
    let narrow = Partition::of_narrow_axes(kernel);
    for (param, class) in partition.outputs.iter().chain(narrow.iter().flat_map(|p| &p.outputs)) {
        let Class::Partitioned(keys) = class else { continue };
        needs.extend(keys.iter().filter_map(|key| {
            let Term::Program(axis) = key.source else { return None };
            let (programs, parts) = count(&kernel.sig, *param, key)?;
            Some(Need { axis, param: *param, programs, parts: vec![parts] })
        }));
        needs.extend((0..forms.groups.len()).filter_map(|g| of_group(kernel, &forms, *param, keys, g)));
    }
    needs
}

/// The number of programs that the parts of a decomposed index require.
fn of_group(kernel: &Kernel, forms: &Forms, param: usize, keys: &[Key], number: usize) -> Option<Need> {
    let group = forms.groups.get(number)?;
    let (Term::Program(axis), 1) = group.base.as_source()? else { return None };
    let needed = (0..group.needed.len()).filter(|i| group.needed[*i]);
    let mut found = Vec::new();
    for part in needed {
        let key = keys.iter().find(|k| k.source == Term::Part(number, part))?;
        found.push(count(&kernel.sig, param, key)?);
    }
    let (counts, parts): (Vec<HostExpr>, Vec<Parts>) = found.into_iter().unzip();
    let programs = counts.into_iter().reduce(|a, b| HostExpr::binary(HostOp::Mul, a, b))?;
    let blocks = |of: HostExpr, op: HostOp| HostExpr::binary(op, of, HostExpr::Const(group.block));
    let programs = if group.block > 1 { blocks(blocks(programs, HostOp::Cdiv), HostOp::Mul) } else { programs };
    Some(Need { axis, param, programs, parts })
}

/// The number of values that a source must have so that its parts reach the end of the axis that it divides.
fn count(sig: &Signature, param: usize, key: &Key) -> Option<(HostExpr, Parts)> {
    let axis = key.axis;
    match key.by {
        By::Stride { size, offset, plain: true } if size > 0 => {
            let extent = extent(sig, param, axis)?;
            let rest = match offset {
                0 => extent,
                before if before < 0 => HostExpr::binary(HostOp::Add, extent, HostExpr::Const(before.checked_neg()?)),
                before => HostExpr::binary(HostOp::Sub, extent, HostExpr::Const(before)),
            };
            let parts = match size {
                1 => rest,
                size => HostExpr::binary(HostOp::Cdiv, rest, HostExpr::Const(size)),
            };
            Some((parts, Parts { axis, size: Some(size) }))
        }
        By::Segment { offsets: Some(off) } => {
            let segments = HostExpr::binary(HostOp::Sub, extent(sig, off, 0)?, HostExpr::Const(1));
            Some((segments, Parts { axis, size: None }))
        }
        By::Stride { .. } | By::Segment { .. } => None,
    }
}

/// The number of programs for a key that divides all of its axis from 0 on: the extent of the inferred grid.
pub(super) fn from_zero(sig: &Signature, param: usize, key: &Key) -> Option<HostExpr> {
    let whole = match key.by {
        By::Stride { offset, .. } => offset == 0,
        By::Segment { .. } => true,
    };
    count(sig, param, key).filter(|_| whole).map(|(programs, _)| programs)
}

/// An extent of a parameter, by its shape name if it has one.
pub(crate) fn extent(sig: &Signature, param: usize, axis: usize) -> Option<HostExpr> {
    match sig.params.get(param).map(|p| &p.kind) {
        Some(ParamKind::Tensor { shape, .. }) => match shape.get(axis)? {
            DimSpec::Bind(symbol) => Some(HostExpr::Symbol(*symbol)),
            DimSpec::Equals(expr) => Some(expr.clone()),
            DimSpec::Any => Some(HostExpr::Dim(param, axis)),
        },
        Some(ParamKind::Scalar(_)) | None => None,
    }
}

/// A declared grid that is too small for an output, for some arguments that the kernel accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Short {
    /// The requirement that is violated.
    pub need: Need,
    /// The arguments, as shape names with values.
    pub example: Vec<(String, i64)>,
    /// The extent of the grid for them.
    pub found: i64,
    /// The required extent for them.
    pub wanted: i64,
    /// A grid that is large enough, as far as it is known.
    pub right: Vec<HostExpr>,
}

/// The first axis of a declared grid that is too small for some arguments. Only shape names are tried; extents without a name and scalar
/// arguments are compared at each launch.
#[must_use]
pub fn short(kernel: &Kernel, partition: &Partition) -> Option<Short> {
    let GridSpec::Extents(declared) = &kernel.sig.grid else { return None };
    if kernel.sig.partial {
        return None;
    }
    let mut first: Option<Short> = None;
    let mut right = declared.clone();
    let mut needs = needs(kernel, partition);
    needs.sort_by_key(|need| need.axis);
    for need in needs {
        let axis = usize::from(need.axis);
        let programs = need.programs.clone();
        if let Some(extent) = right.get_mut(axis).filter(|e| **e != programs)
            && let Some(found) = example::find(&kernel.sig, extent, need)
        {
            // For several outputs, the maximum of their requirements; it replaces an extent that is too small.
            *extent = match declared.get(axis) {
                Some(own) if own == extent => programs,
                Some(_) | None => HostExpr::binary(HostOp::Max, extent.clone(), programs),
            };
            first.get_or_insert(found);
        }
    }
    first.map(|short| Short { right, ..short })
}

impl Short {
    /// T0410, without a location, which is that of the grid.
    #[must_use]
    pub fn diagnostic(&self, sig: &Signature) -> Diagnostic<Loc> {
        let Short { need, example, found, wanted, right } = self;
        let (axis, name, parts) = (need.axis, sig.param(need.param), need.text());
        let written = |e: &HostExpr| e.in_attribute(sig);
        let when = example::when(example);
        let title = format!(
            "{when}the grid has {found} {} along its axis {axis}, but `{name}` has {wanted} {parts}, one for each: the rest would \
             keep what it holds",
            if *found == 1 { "program" } else { "programs" }
        );
        let all = right.iter().map(written).collect::<Vec<_>>().join(", ");
        let mut error =
            Diagnostic::new(Code::GridShort, Loc::default(), title).help(format!("`grid({all})` covers all outputs"));
        if let GridSpec::Extents(declared) = &sig.grid
            && let Some(HostExpr::Binary(HostOp::Div, a, b)) = declared.get(usize::from(axis))
        {
            let whole = format!("{} % {} == 0", written(a), written(b));
            error = error.help(format!("or `require({whole})`, if the kernel is used only with such extents"));
        }
        error.help("or `grid(unchecked ..)`, if the rest is left unwritten on purpose")
    }
}

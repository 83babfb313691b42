//! Elements of partitioned outputs that no program writes, although there are enough programs.
//!
//! For each axis of an output, [`super::reach`] over-approximates the indices that the stores of all programs write. If it leaves out an
//! index, and the kernel accepts arguments for which the axis is longer than that, then no element at that index is written.
//!
//! What is found: parts that are stored at a distance larger than their extent, such as `store_tile([m * BM, n], ..)`, whose coordinates
//! are numbers of tiles; stores that begin after the first element; stores that end before the last one, if none of the sources or loops
//! of the kernel divides the rest of the axis; and wrong extents of `unflatten` ([`boxes`]).
//!
//! Deliberately absent: guards of stores, counters of loops beyond their range, dependences between axes, the union of elements that
//! different sources select, and kernels that reject arguments by themselves, if it is not known which (see [`trap`]). In all these cases a
//! kernel is accepted.

mod boxes;
mod help;
mod trap;

use super::example::{Search, mentions_dim, named, when};
use super::reach::{Reach, gap};
use super::{extent, needs};
use crate::analysis::access::{Access, Accesses, Kind};
use crate::analysis::affine::Affine;
use crate::analysis::forms::Forms;
use crate::analysis::partition::{Class, Partition};
use crate::analysis::uses::Tree;
use crate::diag::{Code, Diagnostic};
use crate::ir::{GridSpec, HostExpr, HostNames as _, HostOp, Kernel, Loc, Param, ParamKind, Signature};

/// Elements of an output that no program writes, for arguments that the kernel accepts.
struct Found<'a> {
    kernel: &'a Kernel,
    /// The output.
    param: usize,
    /// The axis along which elements are left out.
    axis: usize,
    /// The first index that is left out.
    index: i64,
    /// The extent of the axis.
    extent: HostExpr,
    /// The arguments, as names with values.
    example: Vec<(String, i64)>,
    /// All stores to the output.
    stores: &'a [&'a Access],
    /// What they may write along the axis.
    reaches: Vec<Reach>,
    /// The store at which this is reported.
    blamed: usize,
}

/// Which elements along an axis no program writes.
enum LeftOut {
    /// Those before the first one that is written, which has this index.
    Before(i64),
    /// Those between the elements that a store writes, which repeats at a larger distance.
    Between(Reach),
    /// Those before the next one that is written, which has this index.
    Until(i64),
    /// Those after the last one that is written.
    End,
}

/// T0411: for each output that has elements that no program writes, the first axis along which they are.
#[must_use]
pub fn unwritten(kernel: &Kernel, partition: &Partition) -> Vec<Diagnostic<Loc>> {
    if kernel.sig.partial {
        return Vec::new();
    }
    let forms = Forms::new(kernel, true);
    let accesses = Accesses::new(kernel, &forms, &Tree::new(kernel));
    let Some(mut demands) = trap::conditions(kernel, &forms, &accesses) else { return Vec::new() };
    demands.extend(launches(kernel, partition));
    demands.extend(whole_bytes(&kernel.sig));
    let of_output = |(param, class): &(usize, Class)| {
        let Class::Partitioned(keys) = class else { return None };
        let stores = accesses.list.iter().filter(|a| a.param == *param && a.kind == Kind::Write);
        let stores: Vec<&Access> = stores.collect();
        let rank = stores.first()?.axes.len();
        (0..rank)
            .find_map(|axis| along(kernel, &demands, &forms, (*param, axis), &stores))
            .or_else(|| boxes::miscounted(kernel, &forms, (*param, keys), &demands))
    };
    partition.outputs.iter().filter_map(of_output).collect()
}

/// The error for an axis of an output.
fn along(
    kernel: &Kernel,
    demands: &[(HostExpr, i64)],
    forms: &Forms,
    (param, axis): (usize, usize),
    stores: &[&Access],
) -> Option<Diagnostic<Loc>> {
    let reach = |a: &&Access| Reach::of(a.axes.get(axis)?, &forms.ranges);
    let reaches = stores.iter().map(reach).collect::<Option<Vec<Reach>>>()?;
    let index = gap(&reaches)?;
    let extent = named(&kernel.sig, &extent(&kernel.sig, param, axis)?);
    let found = Found {
        kernel,
        param,
        axis,
        index,
        extent,
        example: Vec::new(),
        stores,
        blamed: blamed(&reaches, index),
        reaches,
    };
    // Without a name, nothing is declared about the extent, and it may be meant to end where the stores do.
    if mentions_dim(&found.extent) && matches!(found.left_out(), LeftOut::Until(_) | LeftOut::End) {
        return None;
    }
    let asked = vec![found.extent.clone(), HostExpr::Const(index), HostExpr::Const(index.checked_add(1)?)];
    let search = Search { sig: &kernel.sig, param, asked, demands: demands.to_vec() };
    let longer = |results: &[i64]| results.first().filter(|extent| **extent > index).copied();
    let (example, _) = search.find(&longer)?;
    Some(Found { example, ..found }.diagnostic(forms))
}

/// What a launch demands of a declared grid: programs, and as many as the parts of the outputs.
fn launches(kernel: &Kernel, partition: &Partition) -> Vec<(HostExpr, i64)> {
    let GridSpec::Extents(declared) = &kernel.sig.grid else { return Vec::new() };
    let mut out: Vec<(HostExpr, i64)> = declared.iter().map(|e| (e.clone(), 1)).collect();
    for need in needs(kernel, partition) {
        let declared = declared.get(usize::from(need.axis)).cloned().unwrap_or(HostExpr::Const(1));
        if declared != need.programs {
            out.push((HostExpr::binary(HostOp::Sub, declared, need.programs), 0));
        }
    }
    out
}

/// What a launch demands of tensors with two elements in a byte: the extent of the last axis is even.
fn whole_bytes(sig: &Signature) -> Vec<(HostExpr, i64)> {
    let even = |(param, p): (usize, &Param)| {
        let ParamKind::Tensor { elem, shape, .. } = &p.kind else { return None };
        let last = extent(sig, param, shape.len().checked_sub(1).filter(|_| elem.bits() < 8)?)?;
        let odd = HostExpr::binary(HostOp::Rem, last, HostExpr::Const(2));
        Some((HostExpr::binary(HostOp::Sub, HostExpr::Const(0), odd), 0))
    };
    sig.params.iter().enumerate().filter_map(even).collect()
}

/// The store whose elements end before an index; the first store, if there is none.
fn blamed(reaches: &[Reach], index: i64) -> usize {
    let ends = |r: &Reach| index > 0 && r.run(index - 1).is_some();
    let repeated = reaches.iter().position(|r| ends(r) && r.step > 0);
    repeated.or_else(|| reaches.iter().position(ends)).unwrap_or(0)
}

impl Found<'_> {
    fn diagnostic(&self, forms: &Forms) -> Diagnostic<Loc> {
        let Found { kernel, param, axis, index, .. } = self;
        let when = when(&self.example);
        let (name, reason) = (kernel.sig.param(*param), self.reason());
        let title = format!("{when}no program writes `{name}` at index {index} along axis {axis}: {reason}");
        let place = self.stores.get(self.blamed).map_or_else(Loc::default, |a| kernel.op(a.op).loc);
        let mut error = Diagnostic::new(Code::Unwritten, place, title);
        let purpose = format!("{}, if the rest is left unwritten on purpose", self.unchecked());
        for (i, help) in self.helps(forms).into_iter().chain([purpose]).enumerate() {
            let or = if i > 0 { "or " } else { "" };
            error = error.help(format!("{or}{help}"));
        }
        error
    }

    /// The reach of the store at which the error is reported.
    fn reach(&self) -> Option<&Reach> {
        self.reaches.get(self.blamed)
    }

    /// Which elements are left out.
    fn left_out(&self) -> LeftOut {
        // `None` is less than every index: if one store has no least index, there is none of all.
        let least = self.reaches.iter().map(|r| r.least).min().flatten();
        if let Some(least) = least.filter(|least| *least > self.index) {
            return LeftOut::Before(least);
        }
        let repeats = |r: &&Reach| r.step > r.span() && r.most.is_none_or(|most| most >= self.index);
        if let Some(reach) = self.reach().filter(repeats) {
            return LeftOut::Between(*reach);
        }
        self.reaches.iter().filter_map(|r| r.next(self.index)).min().map_or(LeftOut::End, LeftOut::Until)
    }

    fn reason(&self) -> String {
        let others = self.stores.len() > 1;
        match self.left_out() {
            LeftOut::Before(least) if others => format!("its stores begin at {least}"),
            LeftOut::Before(least) => format!("the store begins at {least}"),
            LeftOut::Between(reach) => {
                let claims = self.stores.get(self.blamed).and_then(|a| a.axes.get(self.axis));
                let is_exact = claims.and_then(|c| c.start.as_ref()).is_some_and(Affine::is_exact);
                let most = if is_exact { "" } else { "at most " };
                let rest = if others { ", and no other store writes the rest" } else { "" };
                format!("this store writes {most}{} of every {} indices{rest}", reach.span(), reach.step)
            }
            LeftOut::Until(next) => format!("the next store begins at {next}"),
            LeftOut::End if others => "its stores end there".to_owned(),
            LeftOut::End => "the store ends there".to_owned(),
        }
    }
}

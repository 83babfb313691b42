//! The report of the fence pass.

use super::place::Around;
use crate::analysis::proxy::{Found, Overlay, Pair};
use crate::collections::SortedSet;
use crate::ir::op_table::mnemonic;
use crate::ir::{FenceSpace, Kernel, Loc, OpId, Scope};
use std::fmt;

/// A fence that was placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The mnemonic of the operation that it precedes.
    pub before: &'static str,
    /// The location of that operation.
    pub at: Loc,
    /// The scope of the fence.
    pub scope: Scope,
    /// The memory that it orders.
    pub space: FenceSpace,
}

/// A problem that the pass could not repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The location of the operation.
    pub at: Loc,
    /// A description of the problem.
    pub what: &'static str,
}

/// The changes of the pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The inserted fences, in program order.
    pub fences: Vec<Placed>,
    /// The locations of bulk stores after which a commit was inserted.
    pub commits: Vec<Loc>,
    /// The locations of inserted waits for bulk stores, each with the number of groups that may stay in flight.
    pub waits: Vec<(Loc, u32)>,
    /// The locations of redundant fences of the kernel.
    pub unneeded: Vec<Loc>,
    /// The problems that remain.
    pub left: Vec<Left>,
}

impl Report {
    /// Whether the kernel is unchanged.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.fences.is_empty() && self.commits.is_empty() && self.waits.is_empty()
    }
}

struct Where(Loc);

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Loc::default() { Ok(()) } else { write!(f, " at {}:{}", self.0.line, self.0.column) }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for p in &self.fences {
            writeln!(f, "fence inserted before `{}`{}: scope {}, space {}", p.before, Where(p.at), p.scope, p.space)?;
        }
        for at in &self.commits {
            writeln!(f, "group committed after the bulk store{}", Where(*at))?;
        }
        for (at, n) in &self.waits {
            writeln!(f, "wait for bulk stores{}: at most {n} groups in flight", Where(*at))?;
        }
        for at in &self.unneeded {
            writeln!(f, "redundant fence{}", Where(*at))?;
        }
        for left in &self.left {
            writeln!(f, "not repaired{}: {}", Where(left.at), left.what)?;
        }
        Ok(())
    }
}

pub(super) fn report(kernel: &Kernel, overlay: &Overlay, unneeded: &[OpId], left: &Found) -> Report {
    let mut report = Report::default();
    for id in Around::new(kernel).order {
        let (op, at) = (kernel.op(id), kernel.op(id).loc);
        if let Some((scope, space)) = overlay.fences.get(&id) {
            report.fences.push(Placed { before: mnemonic(&op.kind), at, scope: *scope, space: *space });
        }
        report.commits.extend(overlay.commits.contains(&id).then_some(at));
        report.waits.extend(overlay.waits.get(&id).map(|n| (at, *n)));
        report.unneeded.extend(unneeded.contains(&id).then_some(at));
        if let Some(hazard) = left.at(id) {
            let landing: SortedSet<&Pair> = hazard.landing.iter().collect();
            let what = "`cp.async` copies that may be incomplete are read or overwritten through the async proxy: wait for their group first";
            report.left.extend((!landing.is_empty()).then_some(Left { at, what }));
            let what = "generic accesses are not fenced";
            report.left.extend((!hazard.pairs.is_empty()).then_some(Left { at, what }));
        }
    }
    report
}

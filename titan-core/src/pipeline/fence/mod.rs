//! The fence pass: inserts missing proxy fences into kernels of the barrier dialect, and the commits and waits of bulk stores.
//!
//! [`crate::analysis::proxy`] finds missing fences, by byte ranges; this module decides where they are inserted:
//!
//! * immediately before the operation that needs it: the asynchronous access, or the arrival that publishes to another role; before the
//!   barrier of a warp's lanes, or of a role's warps, if that comes immediately before the arrival;
//! * hoisted before a loop if nothing in the loop may access the bytes again; if the loop executes zero iterations, the fence is
//!   redundant but harmless;
//! * hoisted before a branch only if every arm needs it: there is no speculation;
//! * never duplicated: an existing fence, or one inserted for an earlier access, suffices or is widened; running the pass twice
//!   changes nothing, and no inserted fence can be removed again;
//! * with the smallest sufficient scope and space: `cluster` only for multicast, `global` only for tensors.
//!
//! Existing fences are kept. Redundant ones are reported, and removed on request.
//!
//! A bulk store is in the open group until that is committed, and reads its region until the group is waited for. Where the region is
//! written again, where an arrival permits another role to write it, and at the end of the role, the pass inserts
//! `ttg.nv.bulk_group.commit` after the store (after the last one, if several follow each other) and `ttg.nv.bulk_group.wait {read = true}`
//! before that point, where they are missing.
//!
//! Opaque calls access their regions through the generic proxy unless declared otherwise, in the kernel or by name in
//! [`Options::calls`]; declarations of the options are written into the kernel.
//!
//! [`Mode::Tilelang`] places fences by the rules of TileLang's pass instead: see `tilelang`.
//!
//! Deliberately absent: missing barriers and waits; fences of rings, which are placed when a target lowers them.

mod apply;
mod asked;
mod place;
mod report;
mod stores;
mod tilelang;

pub use report::{Left, Placed, Report};

use crate::analysis::proxy::Overlay;
use crate::collections::SortedMap;
use crate::ir::{CallProxy, Kernel, OpKind, RegionOp};
use asked::Asked;
use std::rc::Rc;

/// The rules by which fences are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// By byte ranges.
    #[default]
    Regions,
    /// By the last proxy used in the whole function, as TileLang does.
    Tilelang,
}

/// The options of the pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The rules of placement.
    pub mode: Mode,
    /// Whether fences that order nothing are removed, not only reported.
    pub remove_unneeded: bool,
    /// Whether missing commits and waits of bulk stores are inserted.
    pub handshake: bool,
    /// The proxy of opaque calls that do not declare one, by name.
    pub calls: SortedMap<String, CallProxy>,
}

impl Default for Options {
    fn default() -> Options {
        Options { mode: Mode::Regions, remove_unneeded: false, handshake: true, calls: SortedMap::new() }
    }
}

/// The result of the pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fenced {
    /// The kernel, not verified.
    pub kernel: Kernel,
    /// The changes, and the problems that remain.
    pub report: Report,
}

/// The kernel with the fences, commits and waits that it lacks, not verified: what [`fence`] does by default, without a report.
#[must_use]
pub fn fenced(kernel: &Kernel) -> Kernel {
    let mut overlay = Overlay::default();
    let asked = Asked::new(kernel);
    stores::handshake(&asked, &mut overlay);
    place::fences(&asked, &mut overlay);
    apply::apply(kernel.clone(), &overlay)
}

/// Runs the pass. The kernel must be well-formed; it need not obey the rules of barriers.
#[must_use]
pub fn fence(kernel: &Kernel, options: &Options) -> Fenced {
    let declared = declare(kernel, &options.calls);
    let mut overlay = Overlay::default();
    let asked = Asked::new(&declared);
    // First the commits and waits of bulk stores: a wait orders accesses too, so that what it covers needs no fence.
    if options.handshake {
        stores::handshake(&asked, &mut overlay);
    }
    let mut unneeded = Vec::new();
    match options.mode {
        Mode::Regions => {
            // Fences of the kernel that are redundant are looked for once the missing ones are placed: removing one
            // must not uncover a pair that only both together would have covered.
            place::fences(&asked, &mut overlay);
            unneeded = place::unneeded(&asked, &overlay);
        }
        Mode::Tilelang => tilelang::fences(&declared, &mut overlay),
    }
    let left = match options.mode {
        // What the analysis finds in the result is reported as not repaired, and the verifier refuses it (rules 61 and 68,
        // T0716).
        Mode::Regions => asked.find(&overlay),
        Mode::Tilelang => Rc::default(),
    };
    let report = report::report(&declared, &overlay, &unneeded, &left);
    if options.remove_unneeded {
        overlay.gone.extend(unneeded);
    }
    Fenced { kernel: apply::apply(declared, &overlay), report }
}

/// The kernel with the undeclared calls declared by the options.
fn declare(kernel: &Kernel, calls: &SortedMap<String, CallProxy>) -> Kernel {
    let mut declared = kernel.clone();
    for op in &mut declared.ops {
        if let OpKind::Region(RegionOp::Call(call)) = &mut op.kind
            && call.proxy.is_none()
        {
            call.proxy = calls.get(&call.name).copied();
        }
    }
    declared
}

//! The fence pass: barrier-level kernels get the proxy fences that they lack, and bulk stores their handshake.
//!
//! What is missing is what [`crate::analysis::proxy`] finds, byte range by byte range; this module decides where it goes:
//!
//! * right before the operation that needs it: the asynchronous access, or the arrival that tells another role;
//! * out of a loop, to its front, if nothing in the loop may touch the bytes again; a loop that runs no time at all then has
//!   one fence too many, which costs time and nothing else;
//! * out of a branch only if every arm needs it: nothing is speculated on a condition;
//! * never doubled: a fence that is there, or was placed for an earlier access, is widened or does already; running the pass
//!   twice changes nothing, and no fence that it placed can be taken away again;
//! * for the least scope and memory that do: `cluster` only for multicast, `global` only for tensors.
//!
//! Fences that are there are kept. Those that order nothing that needs it are reported, and removed if that is asked for.
//!
//! A bulk store is in the open group until that is closed, and reads its region until the group is waited for. Where the
//! region is written again, where another role is told that it may, and at the end of the role, the pass adds
//! `ttg.nv.bulk_group.commit` after the store (after the last one, if several follow each other) and
//! `ttg.nv.bulk_group.wait {read = true}` in front, as far as they are not there.
//!
//! Opaque calls touch their regions ordinarily unless they are declared, in the kernel or by name in [`Options::calls`]; what
//! the options say is written into the kernel.
//!
//! [`Mode::Tilelang`] places fences by the rules of TileLang's pass instead: see `tilelang`.
//!
//! Deliberately absent: barriers and waits that are missing; fences of rings, which are placed when a target lowers them.

mod apply;
mod place;
mod report;
mod stores;
mod tilelang;

pub use report::{Left, Placed, Report};

use crate::analysis::proxy::{Found, Overlay, find};
use crate::ir::{CallProxy, Kernel, OpKind, RegionOp};
use std::collections::BTreeMap;

/// By which rules fences are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// By the bytes that accesses share.
    #[default]
    Regions,
    /// By the last proxy of the whole function.
    Tilelang,
}

/// How the pass works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// By which rules.
    pub mode: Mode,
    /// Whether fences that order nothing are removed, not only reported.
    pub remove_unneeded: bool,
    /// Whether bulk stores get their handshake.
    pub handshake: bool,
    /// The proxy of opaque calls that do not declare one, by name.
    pub calls: BTreeMap<String, CallProxy>,
}

impl Default for Options {
    fn default() -> Options {
        Options { mode: Mode::Regions, remove_unneeded: false, handshake: true, calls: BTreeMap::new() }
    }
}

/// A kernel after the pass, and what was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fenced {
    /// The kernel, not verified.
    pub kernel: Kernel,
    /// What was done and what could not be.
    pub report: Report,
}

/// Places what is missing. The structure and types of the kernel must be right; it need not obey the rules of barriers.
#[must_use]
pub fn fence(kernel: &Kernel, options: &Options) -> Fenced {
    let declared = declare(kernel, &options.calls);
    let mut overlay = Overlay::default();
    if options.handshake {
        stores::handshake(&declared, &mut overlay);
    }
    let mut unneeded = Vec::new();
    match options.mode {
        Mode::Regions => {
            place::fences(&declared, &mut overlay);
            unneeded = place::unneeded(&declared, &overlay);
        }
        Mode::Tilelang => tilelang::fences(&declared, &mut overlay),
    }
    let left = match options.mode {
        Mode::Regions => find(&declared, &overlay),
        Mode::Tilelang => Found::default(),
    };
    let report = report::report(&declared, &overlay, &unneeded, &left);
    if options.remove_unneeded {
        overlay.gone.extend(unneeded);
    }
    Fenced { kernel: apply::apply(declared, &overlay), report }
}

/// The same kernel with calls declared that were not.
fn declare(kernel: &Kernel, calls: &BTreeMap<String, CallProxy>) -> Kernel {
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

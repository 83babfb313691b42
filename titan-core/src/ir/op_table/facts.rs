//! What the verifier, the analyses and the passes know of an operation: the facts of its row.
//!
//! Deliberately absent: types (`crate::ir::infer`), and what the operation computes (`docs/semantics.md`).

use crate::ir::traffic::{NO_TRAFFIC, Traffic};
use crate::ir::{Completion, Effect, Flow, Stated};

/// The facts of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The side effect.
    pub effect: Effect,
    /// The accesses to memory, and the ordering effect.
    pub traffic: Traffic,
    /// How the completion of the asynchronous work that the operation starts is detected. For operations on rings, other than copies, the
    /// class of their work is chosen when a target lowers them; their tokens wait for it.
    pub completion: Completion,
    /// The number in the operation that hardware limits.
    pub stated: Stated,
    /// The control flow that the operation is.
    pub(in crate::ir) flow: Option<Flow>,
}

/// No effect, no accesses, no ordering; synchronous, without a number that hardware limits.
pub(super) const PURE: Facts = synchronous(Effect::Pure, NO_TRAFFIC);

/// A synchronous operation without a number that hardware limits.
pub(super) const fn synchronous(effect: Effect, traffic: Traffic) -> Facts {
    operation(effect, traffic, Completion::Immediate, Stated::Nothing)
}

/// Any operation but control flow.
pub(super) const fn operation(effect: Effect, traffic: Traffic, completion: Completion, stated: Stated) -> Facts {
    Facts { effect, traffic, completion, stated, flow: None }
}

/// An operation of control flow.
pub(super) const fn flow(flow: Flow, traffic: Traffic) -> Facts {
    Facts { flow: Some(flow), ..synchronous(Effect::Control, traffic) }
}

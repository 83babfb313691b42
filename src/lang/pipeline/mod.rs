//! Pipelines in the user's hands: rings of stages in shared memory, the tokens that guard them, products that run by
//! themselves, and roles.
//!
//! | file | types |
//! |---|---|
//! | `bundle.rs` | [`Smem`] and what a stage holds |
//! | `ring.rs` | [`Ring`], and the filling side: [`Slot`], [`Filling`] |
//! | `stage.rs` | the reading side: [`Ready`], [`Stage`], [`Part`] |
//! | `views.rs` | the tiles of a stage: [`SmemRef`] |
//! | `source.rs` | what is copied: [`Source`] |
//! | `compute.rs` | [`mma_async`], [`Compute`], [`Acc`] |
//! | `staging.rs` | stores that run by themselves: [`Staging`] |
//! | `role.rs` | [`role()`], and how the reference runs roles |
//!
//! Tokens are affine: their methods take them. What rustc does not see is the verifier's: a token that is dropped, sides that
//! do not correspond, times, waits in a circle.
//!
//! The reference has time to spare: a ring is a queue without end, and a stage is loaded when it is waited for, because the
//! tensors that are copied from do not change while a kernel runs.

mod bundle;
mod compute;
mod ring;
mod role;
mod source;
mod stage;
mod staging;
mod views;

pub use self::bundle::{Bundle, Smem};
pub use self::compute::{Acc, Compute, mma_async, mma_async_reg};
pub use self::ring::{Filling, Ring, Slot};
pub use self::role::{Nobody, Roles, role};
pub use self::source::Source;
pub use self::stage::{Part, Readers, Ready, Stage};
pub use self::staging::{OfRank, Staging, StagingSlot, Store, Written};
pub use self::views::{Has, SmemRef, field};

pub(super) use self::role::{RoleState, begin_program, begin_role, once};

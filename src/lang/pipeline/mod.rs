//! Explicit pipelines: rings of stages in shared memory, their tokens, asynchronous MMAs and stores, and roles.
//!
//! | file | types |
//! |---|---|
//! | `bundle.rs` | [`Smem`], and the contents of a stage |
//! | `ring.rs` | [`Ring`], and the tokens of the role that fills it: [`Slot`], [`Filling`] |
//! | `stage.rs` | the tokens of roles that read: [`Ready`], [`Stage`], [`Part`] |
//! | `views.rs` | the tiles of a stage: [`SmemRef`] |
//! | `source.rs` | the sources of copies: [`Source`] |
//! | `compute.rs` | [`mma_async`], [`Compute`], [`Acc`] |
//! | `staging.rs` | asynchronous stores: [`Staging`] |
//! | `role.rs` | [`role()`], and the execution of roles in the reference |
//!
//! Tokens are affine: their methods consume them. The verifier checks what rustc does not: that no token is dropped, that a ring is
//! filled as often as it is read, ring times, and that roles do not wait for each other in a cycle.
//!
//! In the reference a ring is an unbounded queue, and a stage is loaded when it is waited for: the tensors from which it is copied
//! do not change while a kernel runs.

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
pub use self::role::{NoRoles, Roles, role};
pub use self::source::Source;
pub use self::stage::{Part, Readers, Ready, Stage};
pub use self::staging::{OfRank, Staging, StagingSlot, Store, Written};
pub use self::views::{Has, SmemRef, field};

pub(super) use self::role::{RoleState, begin_program, begin_role, once};

//! The compiler core of TITAN.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]
mod entity;
mod named_enum;

pub mod allocate;
pub mod analysis;
pub mod artifact;
pub mod collections;
pub mod complete;
pub mod diag;
pub mod driver;
pub mod expand;
pub mod ir;
pub mod lane;
pub mod launch;
pub mod lay_out;
pub mod layout;
pub mod lower;
pub mod num;
pub mod pipeline;
pub mod plan;
pub mod schedule;
pub mod synchronize;
pub mod target;
pub mod text;
pub mod verify;

//! Pipelines made and counted: the transforms between tile IR and its lowering.
//!
//! * [`implicit`] turns loops over `pipelined(..)` into rings whose copies run ahead;
//! * [`depth`] says how far ahead;
//! * [`carry`] waits for the next stage one iteration early;
//! * [`fuse`] fuses a role that copies and a role that computes;
//! * [`vtok`] counts the commit groups of copies, and computes how many may stay in flight at each wait for a stage;
//! * [`fence`](mod@fence) places the fences between proxies that programs of barriers lack, and the handshake of bulk stores.
//!
//! Deliberately absent: the choice of slots and distances by search, which is the scheduler's; roles, which the lowering
//! parts.

pub mod carry;
pub mod depth;
mod edit;
pub mod fence;
pub mod fuse;
pub mod implicit;
pub mod vtok;

//! Pipeline transforms between tile IR and its lowering.
//!
//! * [`implicit`] lowers loops over `pipelined(..)` to rings with prefetching;
//! * [`exits`] turns early exits into branches;
//! * [`split`] splits loops over rings into a role that copies and a role that computes;
//! * [`apart`] tells which loads of a loop belong to which of its two MMAs;
//! * [`walk`] gives programs their tiles: in groups of rows, by a loop of persistent programs, to instances of a role in turn, to clusters;
//! * [`fuse`] fuses a role that copies and a role that computes;
//! * [`unmask`](mod@unmask) splits loops into iterations that need no masks, and the rest;
//! * [`modulo`] rewrites loops so that the operations of a body are executed in the stages and the order of a schedule;
//! * [`fence`](mod@fence) inserts missing proxy fences into programs of the barrier dialect, and the waits of bulk stores.
//!
//! Deliberately absent: a search for slots and distances, which belongs to the scheduler.

pub mod apart;
pub(crate) mod edit;
pub mod exits;
pub mod fence;
pub mod fuse;
pub mod implicit;
pub mod modulo;
pub(crate) mod operands;
pub mod split;
pub mod unmask;
pub mod walk;

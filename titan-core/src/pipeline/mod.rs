//! Pipeline transforms between tile IR and its lowering.
//!
//! * [`implicit`] lowers loops over `pipelined(..)` to rings with prefetching;
//! * [`exits`] turns early exits into branches;
//! * [`split`] splits loops over rings into a role that copies and a role that computes;
//! * [`apart`] tells which loads of a loop belong to which of its two MMAs;
//! * [`cluster`] distributes the tiles of a persistent kernel to clusters of programs;
//! * [`instances`] gives a role several instances, which take the tiles of a persistent kernel in turn;
//! * [`persist`] makes kernels with a grid persistent;
//! * [`raster`] numbers the programs of a grid in groups of rows, which share tiles;
//! * [`fuse`] fuses a role that copies and a role that computes;
//! * [`unmask`](mod@unmask) splits loops into iterations that need no masks, and the rest;
//! * [`modulo`] rewrites loops so that the operations of a body are executed in the stages and the order of a schedule;
//! * [`fence`](mod@fence) inserts missing proxy fences into programs of the barrier dialect, and the waits of bulk stores.
//!
//! Deliberately absent: a search for slots and distances, which belongs to the scheduler.

pub mod apart;
pub mod cluster;
pub(crate) mod edit;
pub mod exits;
pub mod fence;
pub mod fuse;
mod grid;
pub mod implicit;
pub mod instances;
pub mod modulo;
pub(crate) mod operands;
pub mod persist;
pub mod raster;
pub mod split;
pub mod unmask;

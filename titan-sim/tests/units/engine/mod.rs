//! The machine on which emulators and the simulator execute.

mod hash;
mod machine;
mod pending;
mod phase;
mod race;
mod rendezvous;
mod rng;
mod schedule;
mod space;

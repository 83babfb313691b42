//! The parts of the engine, each by itself; the simulator's arithmetic; and the certificate of determinate synchronisation.

mod arith;
mod certificate;
mod engine;

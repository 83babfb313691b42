//! Barrier-level programs before the verifier: mutants of right ones, against runs of the machine that they are for.

mod mutants;
mod ops;
mod run;
mod tensor;

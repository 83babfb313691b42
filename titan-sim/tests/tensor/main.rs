//! Tensor memory: correct programs and their mutants, judged by the verifier and by the simulator, which share no rule of the order of
//! accesses.

#[path = "../sim/args.rs"]
#[expect(dead_code, reason = "the tests of the simulator need more of it")]
mod args;

mod judged;
mod mutants;
mod programs;

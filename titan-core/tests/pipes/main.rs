//! Pipelines before the verifier: programs of roles, as text, against a run of their steps.
#![expect(clippy::print_stdout, reason = "how many programs were of which kind")]

mod ahead;
mod anew;
mod apart;
mod bounds;
mod dependences;
mod expanded;
mod groups;
mod in_flight;
mod legal;
#[path = "../shared/loop_moves.rs"]
mod loop_moves;
#[path = "../shared/loop_mutants.rs"]
#[expect(dead_code, reason = "the tables of kinds are made by other tests")]
mod loop_mutants;
mod modulo;
mod nested;
mod operands;
mod peeled;
mod products;
mod program;
mod random;
mod raster;
mod rows;
mod shapes;
mod stores;
mod times;

//! Every good pipeline of the tree, broken in every way that there is a row for, and given to each layer of checks.

#[path = "../sim/args.rs"]
#[expect(dead_code, reason = "the tests of the simulator need more of it")]
mod args;

mod barriers;
mod changes;
mod kinds;
mod layers;
mod rings;
mod sources;
mod text;
mod verifier;

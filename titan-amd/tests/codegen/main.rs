//! The code generator: what it emits is executed by the emulator, and compared with what the lane IR says; its checkers refuse mutants.

mod accumulators;
mod bfloats;
#[path = "../../../titan-nv/tests/emit/cases.rs"]
#[allow(dead_code, reason = "some are of operations that only other machines have")]
mod cases;
mod constants;
mod floats;
mod interleaved;
mod issue;
mod kernels;
mod launch;
mod llvm;
mod loops;
#[path = "../../../titan-core/tests/machine/mod.rs"]
mod machine;
mod masks;
mod matrices;
mod mutants;
mod nests;
mod occupancy;
mod operations;
mod order;
mod page;
mod pairs;
#[path = "../../../titan-core/tests/lower/random.rs"]
mod random;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../../titan-core/tests/lower/tensor.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod tensor;

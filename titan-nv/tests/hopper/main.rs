//! The emulator on sm_90a: clusters, bulk tensor copies, products of warpgroups, register pools, and what misuses them.

mod any_outputs;
mod attention;
mod boxes;
mod clusters;
mod counters;
mod dequantized;
#[path = "../../../titan-core/tests/shared/facts.rs"]
mod established;
mod facts;
mod far;
mod foreign;
mod fp8;
mod gates;
mod harness;
mod instances;
mod kept;
#[path = "kernels/attention.rs"]
mod kernels;
mod later;
mod lowered;
mod mistakes;
mod misuse;
mod mixed;
mod mixed_mutants;
#[path = "kernels/moved.rs"]
mod moved;
mod multicast;
mod operands;
mod overlapped;
mod parts;
mod placed;
mod products;
#[path = "../emit/ptxas.rs"]
mod ptxas;
mod random;
mod reference;
mod registers;
#[path = "../emit/sass.rs"]
#[allow(dead_code, reason = "loops of other targets are counted in other tests")]
mod sass;
mod tensor_memory;
mod why;
mod widths;

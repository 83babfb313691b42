//! What the examples ship for NVIDIA: NVIDIA's own assembler takes it for every machine that it is meant for, and spills
//! nothing. `cargo xtask test` brings the assembler; without it the test says so and passes.
#![expect(clippy::duplicate_mod, dead_code, reason = "each example carries the common part and a `main`")]

#[path = "../shared/examples.rs"]
mod all;
mod attention;
#[path = "../../benches/gpu/kernels.rs"]
mod gpu_kernels;
#[path = "../../titan-nv/tests/emit/ptxas.rs"]
mod ptxas;
#[path = "../../titan-nv/tests/emit/sass.rs"]
#[expect(dead_code, reason = "loops of other targets are counted in other tests")]
mod sass;
#[cfg(feature = "cuda")]
mod size;
mod table;

#[test]
fn what_the_examples_ship_is_assembled_without_spills() {
    assert_eq!(table::FALLBACK, titan_core::driver::FALLBACK);
    table::every_kernel_is_assembled(40, 20);
}

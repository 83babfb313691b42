//! What the examples ship for NVIDIA: NVIDIA's own assembler takes it for every machine that it is meant for, and spills
//! nothing. `cargo xtask test` brings the assembler; without it the test says so and passes.
#![expect(clippy::duplicate_mod, dead_code, reason = "each example carries the common part and a `main`")]

mod attention;
#[path = "../../examples/batched_gemm.rs"]
mod batched_gemm;
#[path = "../../examples/conv2d.rs"]
mod conv2d;
#[path = "../../examples/flash_attention.rs"]
mod flash_attention;
#[path = "../../examples/fp8_gemm.rs"]
mod fp8_gemm;
#[path = "../../examples/gemm.rs"]
mod gemm;
#[path = "../../examples/gemm_ws.rs"]
mod gemm_ws;
#[path = "../../benches/gpu/kernels.rs"]
mod gpu_kernels;
#[path = "../../examples/grouped_gemm.rs"]
mod grouped_gemm;
#[path = "../../examples/linear_gelu.rs"]
mod linear_gelu;
#[path = "../../examples/paged_attention.rs"]
mod paged_attention;
#[path = "../../titan-nv/tests/emit/ptxas.rs"]
mod ptxas;
#[path = "../../examples/rms_norm.rs"]
mod rms_norm;
#[path = "../../examples/rope.rs"]
mod rope;
#[path = "../../examples/router.rs"]
mod router;
#[path = "../../titan-nv/tests/emit/sass.rs"]
#[expect(dead_code, reason = "loops of other targets are counted in other tests")]
mod sass;
#[cfg(feature = "cuda")]
mod size;
#[path = "../../examples/softmax.rs"]
mod softmax;
#[path = "../../examples/split_k.rs"]
mod split_k;
mod table;
#[path = "../../examples/vector_add.rs"]
mod vector_add;
#[path = "../../examples/w4a16.rs"]
mod w4a16;

#[test]
fn what_the_examples_ship_is_assembled_without_spills() {
    assert_eq!(table::FALLBACK, titan_core::driver::FALLBACK);
    table::every_kernel_is_assembled(40, 20);
}

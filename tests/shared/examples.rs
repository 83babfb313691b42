//! The modules of all examples that are single files, but for the ports, for test programs that look at what they embed or run them. Each carries the common
//! part and a `main`.

#[path = "../../examples/batched_gemm.rs"]
pub(crate) mod batched_gemm;
#[path = "../../examples/conv2d.rs"]
pub(crate) mod conv2d;
#[path = "../../examples/flash_attention.rs"]
pub(crate) mod flash_attention;
#[path = "../../examples/fp8_gemm.rs"]
pub(crate) mod fp8_gemm;
#[path = "../../examples/gemm.rs"]
pub(crate) mod gemm;
#[path = "../../examples/gemm_ws.rs"]
pub(crate) mod gemm_ws;
#[path = "../../examples/grouped_gemm.rs"]
pub(crate) mod grouped_gemm;
#[path = "../../examples/linear_gelu.rs"]
pub(crate) mod linear_gelu;
#[path = "../../examples/paged_attention.rs"]
pub(crate) mod paged_attention;
#[path = "../../examples/rms_norm.rs"]
pub(crate) mod rms_norm;
#[path = "../../examples/rope.rs"]
pub(crate) mod rope;
#[path = "../../examples/router.rs"]
pub(crate) mod router;
#[path = "../../examples/softmax.rs"]
pub(crate) mod softmax;
#[path = "../../examples/split_k.rs"]
pub(crate) mod split_k;
#[path = "../../examples/vector_add.rs"]
pub(crate) mod vector_add;
#[path = "../../examples/w4a16.rs"]
pub(crate) mod w4a16;

//! The ten kernels of an inference engine compile, and agree with plain loops.
#[path = "kernels/attention.rs"] mod attention;
#[path = "kernels/conv.rs"] mod conv;
#[path = "kernels/gemm.rs"] mod gemm;
#[path = "kernels/moe.rs"] mod moe;
#[path = "kernels/norm.rs"] mod norm;
#[path = "kernels/quant.rs"] mod quant;

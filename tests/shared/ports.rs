//! The modules of the examples that are ports of tutorials of Triton and of examples of CubeCL. They are run like the others, on every device; the
//! tests that look at the code of the other examples do without them, since they have neither MMAs nor rings.

#[path = "../../examples/cubecl_gelu.rs"]
pub(crate) mod cubecl_gelu;
#[path = "../../examples/cubecl_normalization.rs"]
pub(crate) mod cubecl_normalization;
#[path = "../../examples/cubecl_sum.rs"]
pub(crate) mod cubecl_sum;
#[path = "../../examples/triton_layer_norm.rs"]
pub(crate) mod triton_layer_norm;
#[path = "../../examples/triton_softmax.rs"]
pub(crate) mod triton_softmax;
#[path = "../../examples/triton_vector_add.rs"]
pub(crate) mod triton_vector_add;

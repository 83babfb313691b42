//! What the model ships for NVIDIA, as `tests/shipped` of the root package has it for the examples.

#[path = "../../../titan-nv/tests/emit/ptxas.rs"]
mod ptxas;
#[path = "../../../tests/shipped/table.rs"]
mod table;

use minilm::encoder::TitanEncoder;
use minilm::model::Encoder;

#[test]
fn what_the_model_ships_is_assembled_without_spills() {
    // The linker removes functions that are not called, with their kernels.
    std::hint::black_box(<TitanEncoder as Encoder>::embed as *const ());
    // Its tiles are smaller than those of warpgroups.
    table::every_kernel_is_assembled(10, 0);
}

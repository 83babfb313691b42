#[path = "01_mma_inner_extents.rs"]
mod n01_mma_inner_extents;
#[path = "02_mma_elements.rs"]
mod n02_mma_elements;
#[path = "03_add_extents.rs"]
mod n03_add_extents;
#[path = "04_add_elements.rs"]
mod n04_add_elements;
#[path = "05_store_to_input.rs"]
mod n05_store_to_input;
#[path = "06_undefined_function.rs"]
mod n06_undefined_function;
#[path = "07_match.rs"]
mod n07_match;
#[path = "08_vec_new.rs"]
mod n08_vec_new;
#[path = "09_reduced_axis.rs"]
mod n09_reduced_axis;
#[path = "10_reshape.rs"]
mod n10_reshape;
#[path = "11_mma_f64.rs"]
mod n11_mma_f64;
#[path = "12_extent_48.rs"]
mod n12_extent_48;
#[path = "13_block_scales.rs"]
mod n13_block_scales;
#[path = "14_oversized.rs"]
mod n14_oversized;
#[path = "15_never_stored.rs"]
mod n15_never_stored;

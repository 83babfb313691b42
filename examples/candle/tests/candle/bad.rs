//! Bad input is an error on the CPU.

use crate::common::bad;
use candle_core::Device;

#[test]
fn extents_that_do_not_fit_are_errors() {
    bad::extents_that_do_not_fit_are_errors(&Device::Cpu);
}

#[test]
fn element_types_that_do_not_fit_are_errors() {
    bad::element_types_that_do_not_fit_are_errors(&Device::Cpu);
}

#[test]
fn codes_with_strides_are_an_error() {
    bad::codes_with_strides_are_an_error(&Device::Cpu);
}

#[test]
fn tensors_in_place_share_nothing() {
    bad::tensors_in_place_share_nothing(&Device::Cpu);
}

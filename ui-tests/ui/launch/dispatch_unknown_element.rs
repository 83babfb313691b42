//! A list of element types with one that does not exist.
use titan::prelude::*;
use titan::{DynTensor, dispatch};

fn bits(x: &DynTensor) -> titan::Result<u32> {
    dispatch!(match x.elem() { T in [f32, e8m0] => T::ELEM.bits() })
}

fn main() {}

//! The twin of `ui/launch/dispatch_unknown_element.rs`, without the mistake.
use titan::prelude::*;
use titan::{DynTensor, dispatch};

fn bits(x: &DynTensor) -> titan::Result<u32> {
    dispatch!(match x.elem() { T in [f32, e4m3] => T::ELEM.bits() })
}

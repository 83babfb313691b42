//! Host code that is generic over the element, or knows it only at run time: launches of instances that it does not write out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod dispatch;
mod dynamic;
mod generic;
mod kernels;
mod listed;
mod safetensors;

//! The language, construct by construct: what a device computes equals what the body computes as plain Rust.
//!
//! Each kernel is small and uses one thing. `same!` launches it and runs its reference on the same inputs; expected values
//! are written out where plain Rust and the language could be wrong in the same way.
#![allow(clippy::too_many_arguments, reason = "kernels take what they take")]

mod control;
mod elements;
mod fetch;
mod functions;
mod macros;
mod memory;
mod notes;
mod options;
mod order;
mod parts;
mod random;
mod shapes;
mod tuples;

use titan::prelude::*;

/// Launches a kernel and its reference with separate outputs, and returns both results.
macro_rules! same {
    ($kernel:ident $(::<$($g:tt),*>)? ($dev:expr; $($arg:expr),*; $out:ty, $shape:expr $(; $($after:expr),*)?)) => {{
        let mut device = $dev.zeros::<$out, { $shape.len() }>($shape)?;
        let mut reference = $dev.zeros::<$out, { $shape.len() }>($shape)?;
        $kernel $(::<$($g),*>)? ($($arg,)* &mut device $(, $($after),*)?).sync()?;
        $kernel::reference $(::<$($g),*>)? ($($arg,)* &mut reference $(, $($after),*)?)?;
        let (device, reference) = (device.to_vec()?, reference.to_vec()?);
        assert_eq!(format!("{device:?}"), format!("{reference:?}"), "device and reference of {}", stringify!($kernel));
        device
    }};
}
pub(crate) use same;

/// `0, 1, …` as `f32`, shifted and scaled.
pub(crate) fn ramp(n: usize, from: f32, step: f32) -> Vec<f32> {
    (0..n).map(|i| from + i as f32 * step).collect()
}

pub(crate) fn device() -> Device {
    Device::best().expect("there is a device")
}

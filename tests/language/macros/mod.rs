//! Kernels and device functions that `macro_rules!` macros make: a name of a macro and the same name of its caller are two, as in Rust.
//!
//! In every program here, names that are compared by their text alone would give another result, or an error.

mod fragments;
mod items;
mod labels;
mod roles;
mod statements;
mod variables;

use super::ramp;
use titan::prelude::*;

/// The elements of the source.
const N: usize = 20;

/// All devices on which this program can run a kernel.
fn devices() -> Vec<Device> {
    #[cfg_attr(
        not(any(feature = "emulator", feature = "simulator")),
        expect(unused_mut, reason = "there is one device without these features")
    )]
    let mut all = vec![super::device()];
    #[cfg(feature = "emulator")]
    all.extend(["sm_80", "sm_90a"].map(|target| Device::emulator(target).expect("the emulator has the target")));
    #[cfg(feature = "simulator")]
    all.push(Device::simulator(titan::sim::Options::default()));
    all
}

/// `1, 2, …`
fn source() -> Vec<f32> {
    ramp(N, 1.0, 1.0)
}

/// Runs a kernel with a source and a destination as the reference and on all devices: each element of the destination is that function of the
/// source's.
macro_rules! gives {
    ($kernel:ident $(::<$($g:tt),*>)? ($($more:expr),*), $want:expr) => {{
        let want: Vec<f32> = $crate::macros::source().into_iter().map($want).collect();
        for dev in $crate::macros::devices() {
            let src = dev.tensor(&$crate::macros::source(), [$crate::macros::N])?;
            let mut out = dev.zeros::<f32, 1>([$crate::macros::N])?;
            let mut again = dev.zeros::<f32, 1>([$crate::macros::N])?;
            $kernel::reference $(::<$($g),*>)? (&src, &mut again $(, $more)*)?;
            assert_eq!(again.to_vec()?, want, "the reference of {}", stringify!($kernel));
            $kernel $(::<$($g),*>)? (&src, &mut out $(, $more)*).sync()?;
            assert_eq!(out.to_vec()?, want, "{} on {dev}", stringify!($kernel));
        }
    }};
}
pub(crate) use gives;

//! How a kernel is run: on a device, or as the plain host code that every device is compared with.

use titan::Stream;

/// What runs the kernels.
#[derive(Clone, Debug)]
pub enum Run {
    /// The stream's device, in the stream's order.
    On(Stream),
    /// The host, program after program: slow, and right by definition.
    Reference,
}

/// `run!(how, kernel::<..>(..))`: enqueues the launch, or runs the reference to its end.
macro_rules! run {
    ($run:expr, $kernel:ident::<$($generic:tt),+>($($arg:expr),+ $(,)?)) => {
        match $run {
            $crate::encoder::Run::On(stream) => $kernel::<$($generic),+>($($arg),+).launch(stream),
            $crate::encoder::Run::Reference => $kernel::reference::<$($generic),+>($($arg),+),
        }
    };
}
pub(crate) use run;

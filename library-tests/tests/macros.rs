//! Kernels that macros of another crate make, paths by `$crate` of two crates, and tokens that pass through a procedural macro.

use library_tests::{kernel_of_another_crate, with_scale};
use titan::prelude::*;

/// Runs a kernel as the reference and on the device.
macro_rules! gives {
    ($kernel:ident, $want:expr) => {{
        let dev = Device::best()?;
        let xs: Vec<f32> = (1..=20).map(|x| x as f32).collect();
        let want: Vec<f32> = xs.iter().copied().map($want).collect();
        let src = dev.tensor(&xs, [20])?;
        let (mut out, mut again) = (dev.zeros::<f32, 1>([20])?, dev.zeros::<f32, 1>([20])?);
        $kernel::reference(&src, &mut again)?;
        assert_eq!(again.to_vec()?, want, "the reference");
        $kernel(&src, &mut out).sync()?;
        assert_eq!(out.to_vec()?, want, "on {dev}");
    }};
}

kernel_of_another_crate!(another_s, s => s * 1000.0);
kernel_of_another_crate!(another_p, p => p * 1000.0);
kernel_of_another_crate!(another_x, x => x * 1000.0);

#[test]
fn macros_of_another_crate() -> titan::Result<()> {
    let want = |x: f32| x * 1000.0 + (x * 10.0 + 1.0 + 6.0) + 40.0;
    gives!(another_s, want);
    gives!(another_x, want);
    gives!(another_p, want);
    Ok(())
}

/// This crate's function and constant with the names of those of the other crate.
#[titan::device]
fn scale<S: Shape>(x: Tile<f32, S>) -> Tile<f32, S> {
    x * 3.0
}

#[titan::constant]
const ADDED: f32 = 500.0;

/// `$crate` is this crate in the macro, and the other one in the expression that it is called with.
macro_rules! both_crates {
    ($name:ident, $x:ident => $e:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $x = src.load_tile::<16>([p]);
            dst.store_tile([p], $e * 1000.0 + ($crate::scale($x) + $crate::ADDED));
        }
    };
}
with_scale!(both_crates, two_crates, s);

/// The same in a device function, whose items are obtained where it is called.
macro_rules! both_in_device {
    ($name:ident, $x:ident => $e:expr) => {
        #[titan::device]
        fn $name($x: Tile<f32, 16>) -> Tile<f32, 16> {
            $e * 1000.0 + ($crate::scale($x) + $crate::ADDED)
        }
    };
}
with_scale!(both_in_device, in_device, x);

#[titan::kernel]
fn through_a_function(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    dst.store_tile([p], in_device(src.load_tile::<16>([p])));
}

#[test]
fn the_crate_of_a_path_is_that_of_its_macro() -> titan::Result<()> {
    let want = |x: f32| (x * 10.0 + 40.0) * 1000.0 + (x * 3.0 + 500.0);
    gives!(two_crates, want);
    gives!(through_a_function, want);
    Ok(())
}

/// Names are pasted by a procedural macro, which also passes on the others.
macro_rules! pasted {
    ($name:ident, $x:ident => $e:expr) => {
        paste::paste! {
            #[titan::kernel]
            fn [<$name _kernel>](#[shape(N)] [<$x _in>]: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
                let p = program_id(0);
                let $x = [<$x _in>].load_tile::<16>([p]);
                let s = 3.0f32;
                let [<s _ 2>] = ($e) * s;
                dst.store_tile([p], s_2 + $x);
            }
        }
    };
}
pasted!(names, s => s + 1.0);
pasted!(others, dst => dst + 1.0);

#[test]
fn tokens_from_a_procedural_macro() -> titan::Result<()> {
    gives!(names_kernel, |x| (x + 1.0) * 3.0 + x);
    gives!(others_kernel, |x| (x + 1.0) * 3.0 + x);
    Ok(())
}

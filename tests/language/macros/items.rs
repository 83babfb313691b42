//! What macros do not hide: functions, constants, shape names and generic parameters, and variables with the same names.

use super::gives;
use titan::prelude::*;

#[titan::device]
fn half<S: Shape>(x: Tile<f32, S>) -> Tile<f32, S> {
    x * 0.5
}

#[titan::constant]
const OFFSET: f32 = 7.0;

/// The macro has a variable with the name of the function that its caller calls.
macro_rules! beside_functions {
    ($name:ident, $x:ident => $e:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $x = src.load_tile::<16>([p]);
            let half = 4.0f32;
            dst.store_tile([p], $e * half);
        }
    };
}
beside_functions!(function_half, x => half(x));
beside_functions!(function_and_variable, half => half + OFFSET);

#[test]
fn functions_and_constants() -> titan::Result<()> {
    gives!(function_half(), |x| x * 2.0);
    gives!(function_and_variable(), |x| (x + 7.0) * 4.0);
    Ok(())
}

mod tools {
    use titan::prelude::*;

    #[titan::constant]
    pub(crate) const WIDTH: i32 = 8;

    /// Device functions of a macro: the macro's `t`, its caller's, and that of a nested call.
    macro_rules! device_functions {
        ($l:lifetime, $($name:ident($t:ident) => $e:expr;)+) => {
            $(
                #[titan::device]
                pub(crate) fn $name<S: Shape>($t: Tile<f32, S>) -> Tile<f32, S> {
                    let t = 10.0f32;
                    let mut n = 0;
                    $l: loop {
                        'a: for _ in 0..5 {
                            n += 1;
                            if n == 3 {
                                break $l;
                            }
                            continue 'a;
                        }
                    }
                    $e * t + n as f32
                }
            )+
        };
    }
    device_functions! { 'a,
        once(t) => t + 1.0;
        twice(n) => once(n) - (n - 1.0);
    }

    /// A kernel that uses this module's items wherever it is made.
    macro_rules! kernel_with_items {
        ($name:ident, $f:expr) => {
            #[titan::kernel(grid(cdiv(N, $crate::macros::items::tools::WIDTH)))]
            fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
                let p = program_id(0);
                let t = src.load_tile::<{ $crate::macros::items::tools::WIDTH }>([p]);
                let once = $crate::macros::items::tools::once(t);
                dst.store_tile([p], $f(once) + t);
            }
        };
    }
    pub(crate) use kernel_with_items;
}

use tools::{kernel_with_items, once, twice};

kernel_with_items!(with_twice, twice);
kernel_with_items!(with_once, once);

#[test]
fn device_functions_of_macros() -> titan::Result<()> {
    let once = |x: f32| (x + 1.0) * 10.0 + 3.0;
    let twice = move |x: f32| (once(x) - (x - 1.0)) * 10.0 + 3.0;
    gives!(with_twice(), |x| twice(once(x)) + x);
    gives!(with_once(), |x| once(once(x)) + x);
    Ok(())
}

/// Shape names and generic parameters are not hygienic: the macro's grid uses those of its caller. Variables are, whatever their names.
macro_rules! with_grid {
    ([$($generics:tt)*] $name:ident($($params:tt)*) $dst:ident[$p:ident] = $e:expr) => {
        #[titan::kernel(instances(B in [8]), grid(cdiv(N, B)), require(N % 2 == 0))]
        fn $name<$($generics)*>($($params)*) {
            let $p = program_id(0);
            let shape_N = 3.0f32;
            $dst.store_tile([$p], $e * shape_N + (N + B) as f32);
        }
    };
}
with_grid!([const B: i32] shape_names(
    #[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>
) dst[n] = src.load_tile::<B>([n]) + (N + B) as f32);

#[test]
fn shape_names_and_generic_parameters() -> titan::Result<()> {
    gives!(shape_names::<8>(), |x| (x + 28.0) * 3.0 + 28.0);
    Ok(())
}

/// A path in another macro's call.
macro_rules! called {
    ($name:ident, $f:path, $g:path) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let half = src.load_tile::<16>([p]);
            dst.store_tile([p], $f($g(half)) + OFFSET);
        }
    };
}
called!(paths, half, self::tools::once);

#[test]
fn paths_of_functions() -> titan::Result<()> {
    gives!(paths(), |x| ((x + 1.0) * 10.0 + 3.0) * 0.5 + 7.0);
    Ok(())
}

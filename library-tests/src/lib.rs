//! Tests of the runtime that need libraries which it does not need itself. They stand apart from it so that the first
//! command of the README does not build these.
//!
//! The library is the other crate of the tests of macros: it exports macros that contain kernels, functions and constants that they use, and
//! a kernel whose instances other crates choose.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

use titan::prelude::*;

/// What macros of this crate add.
#[titan::constant]
pub const ADDED: f32 = 40.0;

/// Ten times a tile.
#[titan::device]
pub fn scale<S: Shape>(x: Tile<f32, S>) -> Tile<f32, S> {
    let s = 10.0f32;
    x * s
}

/// A device function of this crate's macro, with a variable of the macro's and one of its caller's.
macro_rules! shifted {
    ($(#[$doc:meta])* $name:ident, $x:ident => $e:expr) => {
        $(#[$doc])*
        #[titan::device]
        pub fn $name<S: Shape>($x: Tile<f32, S>) -> Tile<f32, S> {
            let mut s = 0.0f32;
            let mut n = 0;
            while n < 3 {
                n += 1;
                s += n as f32;
            }
            $e + s
        }
    };
}
shifted! {
    /// `10 x + 1 + 6`
    shifted, s => scale(s) + 1.0
}

/// A kernel with variables of this macro, `s` and `p`, and an expression of its caller.
#[macro_export]
macro_rules! kernel_of_another_crate {
    ($name:ident, $x:ident => $e:expr) => {
        /// Made by a macro of another crate.
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $x = src.load_tile::<16>([p]);
            let s = $crate::ADDED;
            dst.store_tile([p], $e + $crate::shifted($x) + s);
        }
    };
}

/// Passes a call of this crate's `scale` to a macro.
#[macro_export]
macro_rules! with_scale {
    ($callback:ident, $name:ident, $x:ident) => {
        $callback!($name, $x => $crate::scale($x) + $crate::ADDED);
    };
}

/// A kernel whose instances other crates choose.
#[titan::kernel(instances(T in [f16, f32], BN in [32, 64], NEGATE in [false, true]))]
pub fn copied<T: Float, const BN: i32, const NEGATE: bool>(
    #[shape(N)] x: &Tensor<T, 1>,
    #[shape(N)] y: &mut Tensor<T, 1>,
) {
    let p = program_id(0);
    let v = x.load_tile::<BN>([p]);
    y.store_tile([p], if NEGATE { -v } else { v });
}

//! Fragments of every kind, and tokens that are taken one by one.

#![expect(clippy::nonminimal_bool, clippy::eq_op, reason = "the operators of fragments are the subject")]

use super::gives;
use titan::prelude::*;

/// An expression is one operand, whatever is in it.
macro_rules! squared {
    ($name:ident, $x:ident => $e:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $x = src.load_tile::<16>([p]);
            dst.store_tile([p], -$e * $e - $e);
        }
    };
}
squared!(expression, e => e + 1.0);

#[test]
fn expressions() -> titan::Result<()> {
    gives!(expression(), |x| -(x + 1.0) * (x + 1.0) - (x + 1.0));
    Ok(())
}

/// Operands of methods, casts, indices, signs, `&&` and ranges, in a kernel and in a function of Rust.
macro_rules! operands {
    ($name:ident $plain:ident, $e:expr, $n:expr, $l:literal, $list:expr, $if:expr, $c:expr, $d:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let mut sum = $e.exp2() + $n as f32 + -$l + $l.exp2() + $list[1] + $if.exp2() + -$n as f32;
            for i in $n + 6..$n + 8 {
                sum += i as f32;
            }
            if $c && $d || $d && $c {
                sum += 64.0;
            }
            dst.store_tile([p], src.load_tile::<16>([p]) + sum);
        }

        fn $plain() -> f32 {
            let mut sum = $e.exp2() + $n as f32 + -$l + f32::exp2($l) + $list[1] + $if.exp2() + -$n as f32;
            for i in $n + 6..$n + 8 {
                sum += i as f32;
            }
            if $c && $d || $d && $c {
                sum += 64.0;
            }
            sum
        }
    };
}
operands!(operand operand_in_rust, -3.0f32, 1 - 4, -2.0f32, [1.0f32, 8.0], if 1 < 2 { 3.0f32 } else { 5.0 }, true || false, false || false);
operands!(other other_in_rust, 1.0f32 + 2.0, -4, 3.0f32, [4.0f32, 2.0], if 1 > 2 { 3.0f32 } else { 5.0 }, 1 > 2 || 2 > 1, 1 < 2);

#[test]
fn fragments_are_operands() -> titan::Result<()> {
    let (sum, other_sum) = (operand_in_rust(), other_in_rust());
    gives!(operand(), |x| x + sum);
    gives!(other(), |x| x + other_sum);
    Ok(())
}

/// Constants and extents that are computed from fragments.
macro_rules! computed {
    ($name:ident, $C:ident: $t:ty, $n:ident, $a:expr, $b:expr, $message:literal) => {
        #[titan::constant]
        const $C: $t = $a * 2;

        #[titan::kernel(instances(B in [$a * 2, $C + 2]), grid(cdiv(N, B)), require($b > 0))]
        fn $name<const B: i32>(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>, $n: i32) {
            let p = program_id(0);
            static_assert!($a * 2 == 6, $message);
            tassert!($b * 2 == 2 * $n + 2, $message);
            let a = Tile::<f32, { ($a + B) / 2 }>::ones().reduce_sum::<0>();
            let b = Tile::<f32, { $a + B / 2 }>::ones().reduce_sum::<0>();
            let c = Tile::<f32, { $a * B }>::ones().reduce_sum::<0>();
            let e = Tile::<f32, { $a * 2 }>::ones().reduce_sum::<0>();
            let d = Tile::<f32, { 1 + 2 * B }>::ones().reduce_sum::<0>();
            dst.store_tile([p], src.load_tile::<B>([p]) + a + b * 100.0 + c * 10000.0 + d * 100000.0 + e);
        }
    };
}
computed!(constants, SIX: i32, n, 1 + 2, n + 1, "the message");

#[test]
fn extents_of_fragments() -> titan::Result<()> {
    assert_eq!(SIX, 6, "the constant is the same in Rust");
    gives!(constants::<6>(4), |x| x + 6.0 + 4.0 + 600.0 + 180000.0 + 1300000.0);
    gives!(constants::<8>(4), |x| x + 6.0 + 5.0 + 700.0 + 240000.0 + 1700000.0);
    Ok(())
}

/// A block has its own variables, and sees those of its author.
macro_rules! in_block {
    ($name:ident, $x:ident $n:ident, $b:block) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $x = src.load_tile::<16>([p]);
            let mut $n = 0;
            let t = 2.0f32;
            for n in 0..3 {
                if n != 1 $b
            }
            dst.store_tile([p], $x * t + $n as f32);
        }
    };
}
in_block!(block, t n, {
    let p = 5;
    n += p;
});

#[test]
fn blocks() -> titan::Result<()> {
    gives!(block(), |x| x * 2.0 + 10.0);
    Ok(())
}

/// Types, literals and identifiers as generic arguments, and a generic parameter that the caller names.
macro_rules! typed {
    ($name:ident, $t:ty, $n:literal, $B:ident, $x:ident => $e:expr) => {
        #[titan::kernel(instances($B in [8, $n], T in [$t]), grid(cdiv(N, $B)))]
        fn $name<const $B: i32, T: Float>(#[shape(N)] src: &Tensor<T, 1>, #[shape(N)] dst: &mut Tensor<T, 1>) {
            let p = program_id(0);
            let $x: Tile<$t, $B> = src.load_tile::<$B>([p]).cast::<$t>();
            let x = Tile::<$t, { $B / 2 }>::ones().reduce_sum::<0>();
            dst.store_tile([p], ($e + x).cast::<T>());
        }
    };
}
typed!(types, f32, 16, BLOCK, x => x * BLOCK as f32);

#[test]
fn types_and_literals() -> titan::Result<()> {
    gives!(types::<8, f32>(), |x| x * 8.0 + 4.0);
    gives!(types::<16, f32>(), |x| x * 16.0 + 8.0);
    Ok(())
}

/// A list of steps, taken one by one: `x` is the caller's in each, `c` the counter of the first rule, and each loop has its own variable.
macro_rules! steps {
    ($name:ident, $x:ident: $($step:tt)*) => {
        steps!(@ $name $x n [let mut n = 0;] $($step)*);
    };
    (@ $name:ident $x:ident $c:ident [$($done:tt)*] add $e:expr; $($rest:tt)*) => {
        steps!(@ $name $x $c [$($done)* $c += 1; $x = $x + $e;] $($rest)*);
    };
    (@ $name:ident $x:ident $c:ident [$($done:tt)*] repeat $e:expr; $($rest:tt)*) => {
        steps!(@ $name $x $c [$($done)* for n in 0..$e { $x += n as f32; }] $($rest)*);
    };
    (@ $name:ident $x:ident $c:ident [$($done:tt)*]) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let mut $x = src.load_tile::<16>([p]);
            $($done)*
            dst.store_tile([p], $x * $c as f32);
        }
    };
}
steps!(step_by_step, n: add n; repeat 3; repeat 2; add n * 2.0;);

#[test]
fn tokens_one_by_one() -> titan::Result<()> {
    gives!(step_by_step(), |x| (x + x + 3.0 + 1.0) * 3.0 * 2.0);
    Ok(())
}

/// Conditions, ranges and places of assignments.
macro_rules! assigned {
    ($name:ident, $place:expr, $cond:expr, $range:expr, $n:ident) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let (mut $n, mut n) = (0, 1);
            for i in $range {
                if $cond {
                    $place = $place + i;
                }
                n *= 2;
            }
            dst.store_tile([p], src.load_tile::<16>([p]) * ($n * 100 + n) as f32);
        }
    };
}
assigned!(places, n, n < 5, n..n + 6, n);

#[test]
fn places_conditions_and_ranges() -> titan::Result<()> {
    // 0 + 1 + 2 + 3 = 6, which ends it, and six doublings.
    gives!(places(), |x| x * 664.0);
    Ok(())
}

/// Several kernels of one macro, and one kernel of many macros: each gets the names of its own expansion.
macro_rules! family {
    ($($name:ident by $f:expr, $x:ident;)+) => {
        $(
            #[titan::kernel]
            fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
                let p = program_id(0);
                let $x = 2.0f32;
                let x = src.load_tile::<16>([p]);
                dst.store_tile([p], x * ($f));
            }
        )+
    };
}
family!(by_two by x, x; by_three by x + 1.0, x; by_four by y * y, y;);

#[test]
fn several_kernels() -> titan::Result<()> {
    gives!(by_two(), |x| x * 2.0);
    gives!(by_three(), |x| x * 3.0);
    gives!(by_four(), |x| x * 4.0);
    Ok(())
}

/// A kernel in a function in a macro.
macro_rules! local_kernel {
    ($x:ident => $e:expr) => {{
        let s = 1.0;
        #[titan::kernel]
        fn local(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $x = src.load_tile::<16>([p]);
            let s = 3.0f32;
            dst.store_tile([p], $e * s);
        }
        gives!(local(), |x| (x + s) * 3.0);
    }};
}

#[test]
fn kernels_in_functions() -> titan::Result<()> {
    local_kernel!(s => s + 1.0);
    Ok(())
}

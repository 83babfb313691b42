//! Variables: of `let`, loops, closures, patterns and parameters, shadowed, assigned and counted.

use super::gives;
use titan::prelude::*;

/// The macro's `s` stands beside its caller's.
macro_rules! scaled {
    ($name:ident, $x:ident => $body:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $x = src.load_tile::<16>([p]);
            let s = Tile::<f32, 16>::full(3.0);
            dst.store_tile([p], $body * s);
        }
    };
}
scaled!(scaled_s, s => s + 1.0);
scaled!(scaled_p, p => p + 1.0);
scaled!(scaled_x, x => x + 1.0);

#[test]
fn a_variable_of_the_macro_does_not_hide_its_callers() -> titan::Result<()> {
    gives!(scaled_s(), |x| (x + 1.0) * 3.0);
    gives!(scaled_x(), |x| (x + 1.0) * 3.0);
    Ok(())
}

/// The caller's variable is declared after the macro's, and does not hide it.
#[test]
fn a_variable_of_the_caller_does_not_hide_the_macros() -> titan::Result<()> {
    gives!(scaled_p(), |x| (x + 1.0) * 3.0);
    Ok(())
}

/// The macro's loop has a variable `i`, in an expression of the caller's with another `i`.
macro_rules! summed {
    ($name:ident, $i:ident => $term:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $i = 5;
            let mut sum = Tile::<f32, 16>::zeros();
            for i in 0..3 {
                sum += src.load_tile::<16>([p]) * ($term + i) as f32;
            }
            dst.store_tile([p], sum);
        }
    };
}
summed!(sum_of_i, i => i);
summed!(sum_of_j, j => j);

/// The caller's variable is that of the loop; the macro has an `i` of its own around it.
macro_rules! looped {
    ($name:ident, $i:ident => $term:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let i = 7;
            let mut sum = 0;
            for $i in 0..4 {
                sum += $term * i;
            }
            dst.store_tile([p], src.load_tile::<16>([p]) * sum as f32);
        }
    };
}
looped!(loop_of_i, i => i);

#[test]
fn variables_of_loops() -> titan::Result<()> {
    gives!(sum_of_i(), |x| x * (5.0 + 6.0 + 7.0));
    gives!(sum_of_j(), |x| x * (5.0 + 6.0 + 7.0));
    gives!(loop_of_i(), |x| x * ((1.0 + 2.0 + 3.0) * 7.0));
    Ok(())
}

/// Two counters `n`, both of which a loop carries.
macro_rules! counted {
    ($name:ident, $n:ident, $step:stmt) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let mut $n = 1;
            let mut n = 0;
            while n < 4 {
                $step;
                n += 1;
                if n == 2 {
                    n += 1;
                }
            }
            dst.store_tile([p], src.load_tile::<16>([p]) * ($n * 10 + n) as f32);
        }
    };
}
counted!(counter_n, n, n *= 3);
counted!(counter_m, m, m = m * 3);

#[test]
fn counters_that_are_assigned() -> titan::Result<()> {
    gives!(counter_n(), |x| x * 274.0);
    gives!(counter_m(), |x| x * 274.0);
    Ok(())
}

/// The macro shadows its own variable, in a block, an arm and a closure, and never its caller's.
macro_rules! shadowed {
    ($name:ident, $v:ident => $e:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $v = src.load_tile::<16>([p]);
            let v = $e + 1.0;
            let v = v * 2.0;
            let v = {
                let v = v + $e;
                if p >= 0 {
                    let v = v + 100.0;
                    v + $e
                } else {
                    v
                }
            };
            dst.store_tile([p], v.map(|v| v + 0.5) + $e);
        }
    };
}
shadowed!(shadow_v, v => v * 4.0);

#[test]
fn shadowing_in_the_macro() -> titan::Result<()> {
    gives!(shadow_v(), |x| (x * 4.0 + 1.0) * 2.0 + x * 4.0 + 100.0 + x * 4.0 + 0.5 + x * 4.0);
    Ok(())
}

/// The parameter of the macro's closure, and a variable of the caller's in its body.
macro_rules! mapped {
    ($name:ident, $v:ident => $e:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $v = p as f32 * 0.0 + 8.0;
            dst.store_tile([p], src.load_tile::<16>([p]).map(|v| if v > 2.0 { $e } else { v }));
        }
    };
}
mapped!(map_v, v => v + 1.0);

#[test]
fn parameters_of_closures() -> titan::Result<()> {
    gives!(map_v(), |x| if x > 2.0 { 9.0 } else { x });
    Ok(())
}

/// Patterns: the caller's, with names of the macro's.
macro_rules! taken_apart {
    ($name:ident, $pat:pat => $e:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let (a, [b, c]) = (2.0f32, [3.0f32, 4.0f32]);
            let $pat = (src.load_tile::<16>([p]), [5.0f32, 6.0f32]);
            dst.store_tile([p], $e + a + b + c);
        }
    };
}
taken_apart!(pattern_abc, (a, [b, c]) => a * (b * c));
taken_apart!(pattern_cba, (c, [b, a]) => c * (b - a));

#[test]
fn patterns() -> titan::Result<()> {
    gives!(pattern_abc(), |x| x * 30.0 + 9.0);
    gives!(pattern_cba(), |x| 9.0 - x);
    Ok(())
}

/// Two parameters `k`, one of the macro and one of its caller, in the body and in requirements.
macro_rules! with_parameter {
    ($name:ident, $k:ident => $e:expr) => {
        #[titan::kernel(grid(cdiv(N, 16)), require($k > 10, k < 10))]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>, $k: i32, k: i32) {
            let p = program_id(0);
            dst.store_tile([p], src.load_tile::<16>([p]) * ($e as f32) + k as f32);
        }
    };
}
with_parameter!(parameter_k, k => k + 1);
with_parameter!(parameter_n, n => n + 1);

#[test]
fn parameters_of_the_kernel() -> titan::Result<()> {
    gives!(parameter_k(20, 3), |x| x * 21.0 + 3.0);
    gives!(parameter_n(20, 3), |x| x * 21.0 + 3.0);
    let dev = super::super::device();
    let src = dev.tensor(&super::source(), [super::N])?;
    let mut dst = dev.zeros::<f32, 1>([super::N])?;
    for (caller, own) in [(3, 3), (20, 20), (3, 20)] {
        parameter_k(&src, &mut dst, caller, own).sync().expect_err("a requirement does not hold");
    }
    Ok(())
}

/// Two tensors of the same name, one of which may be absent.
macro_rules! added {
    ($name:ident, $x:ident => $e:expr) => {
        #[titan::kernel]
        fn $name(
            #[shape(N)] x: &Tensor<f32, 1>,
            #[shape(N)] y: &mut Tensor<f32, 1>,
            #[shape(N)] $x: Option<&Tensor<f32, 1>>,
        ) {
            let p = program_id(0);
            let mut v = x.load_tile::<16>([p]);
            if let Some(x) = $x {
                let $x = x.load_tile::<16>([p]);
                v += $e;
            }
            y.store_tile([p], v + x.load_tile::<16>([p]));
        }
    };
}
added!(add_x, x => x * 10.0);

#[test]
fn tensors_and_their_presence() -> titan::Result<()> {
    gives!(add_x(None), |x| 2.0 * x);
    for dev in super::devices() {
        let (a, b) = (dev.tensor(&[1.0f32, 2.0], [2])?, dev.tensor(&[3.0f32, 4.0], [2])?);
        let (mut out, mut again) = (dev.zeros([2])?, dev.zeros([2])?);
        add_x(&a, &mut out, Some(&b)).sync()?;
        add_x::reference(&a, &mut again, Some(&b))?;
        assert_eq!((out.to_vec()?, again.to_vec()?), (vec![32.0, 44.0], vec![32.0, 44.0]), "{dev}");
    }
    Ok(())
}

/// The names pass through several macros, each of which adds one.
macro_rules! outer {
    ($name:ident, $a:ident => $e:expr) => {
        middle!($name, $a s => $e, s * 10.0);
    };
}
macro_rules! middle {
    ($name:ident, $a:ident $b:ident => $($e:expr),+) => {
        inner!($name, [$a $b s] [$($e),+, s * 100.0]);
    };
}
macro_rules! inner {
    ($name:ident, [$a:ident $b:ident $c:ident] [$x:expr, $y:expr, $z:expr]) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $a = src.load_tile::<16>([p]);
            let $b = $a + 1.0;
            let $c = $b + 1.0;
            let s = $c + 1.0;
            dst.store_tile([p], $x + $y + $z + s * 1000.0);
        }
    };
}
outer!(four_names, s => s);

#[test]
fn nested_macros() -> titan::Result<()> {
    gives!(four_names(), |x| x + (x + 1.0) * 10.0 + (x + 2.0) * 100.0 + (x + 3.0) * 1000.0);
    Ok(())
}

/// `r#s` is the name `s`.
macro_rules! raw {
    ($name:ident, $x:ident => $body:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $x = src.load_tile::<16>([p]);
            let s = 3.0f32;
            dst.store_tile([p], $body * r#s);
        }
    };
}
raw!(raw_s, r#s => s + r#s);

#[test]
fn raw_identifiers() -> titan::Result<()> {
    gives!(raw_s(), |x| (x + x) * 3.0);
    Ok(())
}

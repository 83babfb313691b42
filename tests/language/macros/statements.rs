//! Blocks and statements as fragments: where rustc reads statements, so do kernels, and their variables are those of their authors.

#![allow(
    redundant_semicolons,
    unused_braces,
    unused_mut,
    unused_assignments,
    clippy::neg_multiply,
    reason = "the macros of this file take any statements"
)]

use super::gives;
use titan::prelude::*;

/// A block wherever a block may be, and one that has a value.
macro_rules! blocks {
    ($name:ident, $x:ident $n:ident, $b:block, $v:block, $or:block) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $x = src.load_tile::<16>([p]);
            let mut $n = 0;
            // Another variable, also where the caller calls its own `n`.
            let mut n = 0;
            $b
            n += 100;
            for _ in 0..2 $b
            if $n == 3 $b else $or
            if $n == 0 $b else if $n == 4 $or else $b
            $b $or
            loop {
                $b
                break;
            }
            while $n < 12 $b
            $b;
            let v = $v;
            let w = -$v * 2.0 + $v;
            let f = src.load_tile::<16>([p]).map(|e| $v * e);
            dst.store_tile([p], $x * v + w + f + ($n * 1000 + n) as f32);
        }
    };
}
blocks!(in_blocks, q n, { n += 1; }, { let n = 2.0f32; n }, { n += 4; });

#[test]
fn blocks_are_blocks() -> titan::Result<()> {
    // 1, 3, then 1 more, then 4 more, then 5, then 1, which makes 14.
    let (mut n, mut other) = (0, 0);
    n += 1;
    other += 100;
    n += 2;
    n += if n == 3 { 1 } else { 4 };
    n += if n == 0 {
        1
    } else if n == 4 {
        4
    } else {
        1
    };
    n += 1 + 4;
    n += 1;
    while n < 12 {
        n += 1;
    }
    n += 1;
    gives!(in_blocks(), |x| x * 2.0 + (-2.0 * 2.0 + 2.0) + 2.0 * x + (n * 1000 + other) as f32);
    Ok(())
}

/// Statements of every kind, with and without semicolons after them.
macro_rules! statements {
    ($name:ident, $x:ident $n:ident, $($s:stmt)*) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let mut $x = src.load_tile::<16>([p]);
            let mut $n = 0;
            let y = 1000.0f32;
            $($s)*
            dst.store_tile([p], $x * $n as f32 + y);
        }
    };
}
statements!(of_every_kind, x n,
    let y = x * 2.0;
    ;
    for i in 0..3 { n += i; }
    if n > 1 { n += 1; } else { n += 2; }
    { let x = 5; n += x; }
    tassert!(n == 9);
    let (a, mut b): (i32, i32) = (1, 2);
    'outer: loop { loop { b += a; break 'outer; } }
    while n < 10 { n += 1; }
    n += b;
    x = y;
);
statements!(nothing, x n,);
statements!(one_assignment, x n, n = 3);
statements!(one_loop, x n, for _ in 0..3 { n += 1; });
statements!(macros_without_semicolons, x n, n += 2; tassert! { n == 2 } tassert!(n == 2); tassert!(n > 1) n += 1;);

#[test]
fn statements_are_statements() -> titan::Result<()> {
    gives!(of_every_kind(), |x| x * 2.0 * 13.0 + 1000.0);
    gives!(nothing(), |_| 1000.0);
    gives!(one_assignment(), |x| x * 3.0 + 1000.0);
    gives!(one_loop(), |x| x * 3.0 + 1000.0);
    gives!(macros_without_semicolons(), |x| x * 3.0 + 1000.0);
    Ok(())
}

/// One statement each, of which the variables are the caller's: `t` of the caller is not that of the macro.
macro_rules! two_statements {
    ($name:ident, $x:ident, $first:stmt, $second:stmt => $e:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let $x = src.load_tile::<16>([p]);
            let t = 7.0f32;
            $first;
            let u = 9.0f32;
            $second;
            dst.store_tile([p], $e * t + u);
        }
    };
}
two_statements!(own_variables, s, let t = s + 1.0, let u = t * 2.0 => u - t);
two_statements!(shadowed, t, let t = t + 1.0, let t = t * 2.0 => t);

/// The same, through other macros, which leave the fragments as they are.
macro_rules! forwarded {
    ($name:ident, $x:ident, $first:stmt, $second:stmt => $e:expr, $b:block) => {
        once_more!($name, $x, $first, $second => $e, $b);
    };
}
macro_rules! once_more {
    ($name:ident, $x:ident, $first:stmt, $second:stmt => $e:expr, $b:block) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let mut $x = src.load_tile::<16>([p]);
            let t = 7.0f32;
            $first;
            $second;
            $b
            dst.store_tile([p], $e * t);
        }
    };
}
forwarded!(through_macros, s, let t = s + 1.0, let u = t * 2.0 => u - t + s, { s += 1.0; });

#[test]
fn variables_of_statements() -> titan::Result<()> {
    gives!(own_variables(), |x| (x + 1.0) * 7.0 + 9.0);
    gives!(shadowed(), |x| (x + 1.0) * 2.0 * 7.0 + 9.0);
    gives!(through_macros(), |x| (x + 1.0 + x + 1.0) * 7.0);
    Ok(())
}

/// What follows a block is the next statement, whatever fragment the block is of: `- $x` is the value. What follows another expression is its
/// second operand.
macro_rules! ends {
    ($name:ident $plain:ident, $x:ident, $b:block, $if:stmt, $e:expr, $o:expr) => {
        #[titan::device]
        fn $name($x: f32) -> f32 {
            let a = { $b - $x };
            let b = { $if - $x };
            let c = { $e - $x };
            let d = { $o - $x };
            a + b * 10.0 + c * 100.0 + d * 1000.0
        }

        #[allow(
            clippy::suspicious_unary_op_formatting,
            clippy::unused_unit,
            reason = "where statements end is the subject"
        )]
        fn $plain($x: f32) -> f32 {
            let a = { $b - $x };
            let b = { $if - $x };
            let c = { $e - $x };
            let d = { $o - $x };
            a + b * 10.0 + c * 100.0 + d * 1000.0
        }
    };
}
ends!(ended ended_in_rust, x, { let _ = 1; }, if true { let _ = 1; }, { let _ = 1; }, { 50.0 } + 1.0);

#[titan::kernel]
fn of_ends(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    dst.store_tile([p], src.load_tile::<16>([p]) * ended(3.0));
}

#[test]
fn statements_end_as_in_rust() -> titan::Result<()> {
    let value = ended_in_rust(3.0);
    assert_eq!(value, -3.0 - 30.0 - 300.0 + 48_000.0);
    gives!(of_ends(), |x| x * value);
    Ok(())
}

/// Functions whose bodies are blocks of the caller, with all other kinds of fragments.
macro_rules! whole {
    ($vis:vis $name:ident [$inner:ident in $module:ident] ($src:ident, $dst:ident, $x:ident), $body:block, $value:block, $t:ty, $p:pat => $e:expr, $f:path, $l:lifetime, $lit:literal, $(#[$m:meta])*) => {
        $(#[$m])*
        #[titan::device]
        $vis fn $inner($x: $t) -> $t $value

        $(#[$m])*
        #[titan::kernel]
        $vis fn $name(#[shape(N)] $src: &Tensor<$t, 1>, #[shape(N)] $dst: &mut Tensor<$t, 1>) $body

        pub(crate) mod $module {
            use titan::prelude::*;

            #[titan::device]
            $vis fn again($x: $t) -> $t {
                let $p = ($x, $lit);
                let mut n = 0;
                $l: loop {
                    n += 1;
                    if n == 3 { break $l; }
                }
                $f($e) + n as f32
            }
        }
    };
}
whole!(pub(crate) of_bodies [doubled in inner] (src, dst, v),
    {
        let p = program_id(0);
        dst.store_tile([p], src.load_tile::<16>([p]) * doubled(inner::again(2.0)))
    },
    { let w = v * 2.0; w }, f32, (a, b) => a - b, super::doubled, 'a, -1.5,
    #[doc = "Of a block."] #[allow(dead_code)]
);

#[test]
fn bodies_are_blocks() -> titan::Result<()> {
    gives!(of_bodies(), |x| x * (2.0 * (2.0 * 3.5 + 3.0)));
    Ok(())
}

/// The arms of `match role()` are blocks, with and without commas, and have the variables of their authors.
macro_rules! arms {
    ($name:ident, $ring:ident $tiles:ident $x:ident $y:ident, $fill:block, $read:block) => {
        #[titan::kernel(roles(fill: 1 warp, read: 1 warpgroup), allow(no_code))]
        fn $name(#[shape(M, N)] $x: &Tensor<f32, 2>, #[shape(M, N)] $y: &mut Tensor<f32, 2>) {
            let $ring = Ring::<Smem<f32, 16, 16>, 3>::new();
            let $tiles = $y.work::<16, 16>();
            match role() {
                Role::Fill => $fill
                Role::Read => $read,
            }
        }
    };
}
arms!(of_arms, ring tiles x y,
    {
        for at in tiles.indices() {
            ring.acquire().copy(x.tile(at)).commit();
        }
    },
    {
        for out in tiles.tiles() {
            let stage = ring.ready().wait();
            let v = stage.get().load() * 2.0;
            stage.release();
            out.store(v);
        }
    }
);

#[test]
fn arms_are_blocks() -> titan::Result<()> {
    // Roles have no code for AMD's GPUs.
    for dev in super::devices().into_iter().filter(|dev| !dev.to_string().contains("gfx942")) {
        let x = dev.from_fn([33, 40], |[i, j]| (i * 64 + j) as f32)?;
        let want: Vec<f32> = x.to_vec()?.iter().map(|v: &f32| v * 2.0).collect();
        let (mut y, mut again) = (dev.zeros([33, 40])?, dev.zeros([33, 40])?);
        of_arms(&x, &mut y).sync()?;
        of_arms::reference(&x, &mut again)?;
        assert_eq!((y.to_vec()?, again.to_vec()?), (want.clone(), want), "of_arms on {dev}");
    }
    Ok(())
}

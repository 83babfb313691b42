//! Literals keep their types through the operators' functions: a kernel of literals, desugared.
use titan::lang::{Tile, ops};
use titan::prelude::*;

#[test]
fn literals_take_the_type_of_what_stands_beside_them() {
    let (n, s, t) = (7_i32, 0.25_f32, Tile::<f16, D1<8>>::ones());
    // let a = 2 * n + 1 - (n + 3) / 2 % 5;
    let a = ops::sub(ops::add(ops::mul(2, n), 1), ops::rem(ops::div(ops::add(n, 3), 2), 5));
    assert_eq!(a, 15);
    // let b = 1.0 + s * 0.5;
    let b = ops::add(1.0, ops::mul(s, 0.5));
    // let u = 1.0 - t * 2.0 + t / 3.0;
    let u = ops::add(ops::sub(1.0, ops::mul(t, 2.0)), ops::div(t, 3.0));
    // let v = (2.0 * t.cast::<f32>() + b).sqrt().max(0.0);
    let v = ops::add(ops::mul(2.0, t.cast::<f32>()), b).sqrt().max(0.0);
    // let m = (iota::<8>() + 2 * a) % 3 == 0;
    let m = ops::eq(ops::rem(ops::add(iota::<8>(), ops::mul(2, a)), 3), 0);
    // let both = m & (v > 0.5) | !m;
    let both = ops::or(ops::and(m, ops::gt(v, 0.5)), ops::not(m));
    assert!(both.all::<0>());
    // let c = 3 + 4;
    let c = ops::add(3, 4);
    // let w = select(both, v, -1.0) * (c as f32);
    let w = ops::mul(select(both, v, -1.0), c as f32);
    // let bits = (iota::<8>() << 2 | 1) & 0xFF ^ 3;
    let bits = ops::xor(ops::and(ops::or(ops::shl(iota::<8>(), 2), 1), 0xFF), 3);
    assert_eq!(bits.to_vec(), [2, 6, 10, 14, 18, 22, 26, 30]);
    // u + (w + bits.cast::<f32>()).cast::<f16>()
    let y = ops::add(u, ops::add(w, bits.cast::<f32>()).cast::<f16>());
    let w0 = (2.0 + 1.125_f32).sqrt() * 7.0 + 2.0;
    let want = f64::from(f16::from_f32(w0)) - 1.0 + 1.0 / 3.0;
    assert!((y.to_vec()[0].to_f64() - want).abs() < 0.01, "{y} {want}");
    // let mut i = 0; while i < 3 { i += 1; }
    let mut i = 0;
    while ops::lt(i, 3) {
        ops::add_assign(&mut i, 1);
    }
    assert_eq!(i, 3);
    // let q = (1.0 + 2.0_f32).max(0.0);
    let q = ops::add(1.0, 2.0_f32).max(0.0);
    assert_eq!(q, 3.0);
    // both arms literal, the type from the tile they are stored in; and not
    let mask: Tile<f32, D1<8>> = select(m, 1.0, 0.0);
    assert_eq!(ops::add(mask, select(m, 0, 1).cast()).to_vec(), [1.0; 8]);
    // a cast takes the type of the other operand
    let chosen = select(m, v, iota::<8>().cast());
    assert_eq!(ops::sub(chosen, ops::mul(chosen, t.cast())).to_vec(), [0.0; 8]);
    // closures: the parameter's type is known
    let h = t.map(|x| ops::mul(ops::add(x, 1.0), 0.5));
    assert_eq!(h.reduce_sum::<0>(), f16::from_f32(8.0));
    let k = ops::neg(ops::mul(iota::<4>(), 3)).reduce_min::<0>();
    assert_eq!(ops::neg(k), 9);
    let half = ops::mul(f16::from_f32(3.0), 0.5);
    assert_eq!(half, f16::from_f32(1.5));
}

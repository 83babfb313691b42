//! Conversions of all 16-bit floats, and of `f32` around all ties; and scalar arguments of every kind.

use crate::common::{Tensor, compile_text, run};
use titan_core::ir::Elem;
use titan_core::num;
use titan_cpu::{Arg, Options, Scalar};

/// The bits of the results of a cast of these bits.
fn cast(from: Elem, to: Elem, bits: &[i64]) -> Vec<i64> {
    let text = format!(
        "kernel @cast(%a: in tensor<{from}>[N], %c: mut tensor<{to}>[N]) grid(cdiv(N, 1024)) {{\n\
         %p = program_id<0>\n%pad = const 0.0 : {from}\n%x = load_tile %a[%p] or %pad : tile<1024x{from}>\n%y = cast %x : tile<1024x{to}>\n\
         store_tile %c[%p], %y\nreturn\n}}\n"
    );
    let n = i32::try_from(bits.len()).expect("an extent");
    let (a, c) = (Tensor::ints(from, &[n], bits), Tensor::zeros(to, &[n]));
    run(&compile_text(&text, Options::default()), &[a.arg(), c.arg()], [n.cast_unsigned().div_ceil(1024), 1, 1]);
    c.int_values()
}

#[test]
fn half_conversions_agree_with_the_reference() {
    let all: Vec<i64> = (0..=u16::MAX).map(i64::from).collect();
    type Read = fn(u16) -> f32;
    type Write = fn(f32) -> u16;
    let reference: [(Elem, Read); 2] = [(Elem::F16, num::f16_to_f32), (Elem::Bf16, num::bf16_to_f32)];
    for (elem, to_f32) in reference {
        for (bits, found) in (0..=u16::MAX).zip(cast(elem, Elem::F32, &all)) {
            let (a, b) = (f32::from_bits(found as u32), to_f32(bits));
            assert!(a == b || a.is_nan() && b.is_nan(), "{elem} {bits:#x}");
            assert!(a.is_nan() || a.is_sign_negative() == b.is_sign_negative());
        }
    }
    let lower = [0u32, 1, 0x0FFF, 0x1000, 0x1001, 0x1FFF, 0x2FFF, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xFFFF];
    let all = (0..=u16::MAX).flat_map(|hi| lower.map(|lo| i64::from(u32::from(hi) << 16 | lo)));
    let all: Vec<i64> = all.collect();
    let reference: [(Elem, Write, Read); 2] =
        [(Elem::F16, num::f16_from_f32, num::f16_to_f32), (Elem::Bf16, num::bf16_from_f32, num::bf16_to_f32)];
    for (elem, from_f32, to_f32) in reference {
        for (bits, found) in all.iter().zip(cast(Elem::F32, elem, &all)) {
            let (x, found) = (f32::from_bits(*bits as u32), found as u16);
            if x.is_nan() {
                assert!(to_f32(found).is_nan(), "{x}");
            } else {
                assert_eq!(found, from_f32(x), "{elem} {x}");
            }
        }
    }
}

#[test]
fn scalar_slots_keep_values() {
    // What a kernel stores that casts its argument.
    let stored = |elem: Elem, scalar: Scalar, to: Elem| {
        let (cast, value) = if elem == to { (String::new(), "%x") } else { (format!("%y = cast %x : {to}\n"), "%y") };
        let text = format!(
            "kernel @k(%x: {elem}, %c: mut tensor<{to}>[N]) grid(1) {{\n%zero = const 0 : i32\n{cast}\
             set %c[%zero], {value}\nreturn\n}}\n"
        );
        let c = Tensor::zeros(to, &[1]);
        run(&compile_text(&text, Options::default()), &[Arg::Scalar(scalar), c.arg()], [1, 1, 1]);
        c.int_values()[0]
    };
    assert_eq!(stored(Elem::I8, Scalar::Int(-1), Elem::I64), -1);
    assert_eq!(stored(Elem::U8, Scalar::Int(255), Elem::U64), 255);
    assert_eq!(stored(Elem::U64, Scalar::Int(-1), Elem::U64).cast_unsigned(), u64::MAX);
    assert_eq!(f32::from_bits(stored(Elem::F32, Scalar::Float(-1.5), Elem::F32) as u32), -1.5);
}

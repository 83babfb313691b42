//! Conversions from every element type to every other, against Rust's `as` and against rounding by its definition.

use crate::harness::{Format, Lane, codes, doubles, integers, singles, target};
use titan_core::ir::Elem;
use titan_core::lane::{Num, OpKind};
use titan_core::lower::scalar::{bitcast, cast};

/// A number of any type, as it is.
#[derive(Clone, Copy, Debug)]
enum Exact {
    Float(f64),
    Int(i128),
}

/// What the register of an element means.
fn read(elem: Elem, bits: u64) -> Exact {
    let fp8 = |fraction: u32, bias, greatest: u64| {
        let format = Format::fp8(fraction, bias, greatest as u32);
        let code = (bits & 0x7f) as usize;
        let infinite = elem == Elem::E5m2 && code == 0x7c;
        let x = if infinite { f64::INFINITY } else { format.numbers.get(code).copied().unwrap_or(f64::NAN) };
        Exact::Float(if bits & 0x80 != 0 { -x } else { x })
    };
    match elem {
        Elem::F64 => Exact::Float(f64::from_bits(bits)),
        Elem::F32 | Elem::Tf32 => Exact::Float(f32::from_bits(bits as u32).into()),
        Elem::F16 => Exact::Float(half::f16::from_bits(bits as u16).to_f64()),
        Elem::Bf16 => Exact::Float(half::bf16::from_bits(bits as u16).to_f64()),
        Elem::E4m3 => fp8(3, 7, 0x7e),
        Elem::E5m2 => fp8(2, 15, 0x7b),
        Elem::I64 => Exact::Int((bits as i64).into()),
        Elem::I32 | Elem::I16 | Elem::I8 | Elem::I4 => Exact::Int((bits as u32 as i32).into()),
        Elem::U64 => Exact::Int(bits.into()),
        Elem::U32 | Elem::U16 | Elem::U8 | Elem::U4 | Elem::Bool => Exact::Int((bits as u32).into()),
    }
}

fn int_range(elem: Elem) -> (i128, i128) {
    let n = elem.bits();
    if elem.is_signed_int() { (-(1 << (n - 1)), (1 << (n - 1)) - 1) } else { (0, (1 << n) - 1) }
}

/// The register of an integer, extended as its type says.
fn int_register(elem: Elem, n: i128) -> u64 {
    if elem.bits() == 64 { n as u64 } else { u64::from(n as u32) }
}

/// What the cast must give; nothing where that is some NaN.
fn want(to: Elem, x: Exact, format: Option<&Format>) -> Option<u64> {
    match (to, x) {
        (Elem::Bool, Exact::Float(x)) => Some((x != 0.0).into()),
        (Elem::Bool, Exact::Int(n)) => Some((n != 0).into()),
        (_, Exact::Float(x)) if to.is_int() => {
            let (lo, hi) = int_range(to);
            Some(int_register(to, (x as i128).clamp(lo, hi)))
        }
        (_, Exact::Int(n)) if to.is_int() => {
            let kept = n << (128 - to.bits());
            let kept = if to.is_signed_int() {
                kept >> (128 - to.bits())
            } else {
                (kept as u128 >> (128 - to.bits())) as i128
            };
            Some(int_register(to, kept))
        }
        (_, Exact::Float(x)) if x.is_nan() => None,
        (Elem::F64, Exact::Float(x)) => Some(x.to_bits()),
        (Elem::F64, Exact::Int(n)) => Some((n as f64).to_bits()),
        (Elem::F32, Exact::Float(x)) => Some((x as f32).to_bits().into()),
        (Elem::F32, Exact::Int(n)) => Some((n as f32).to_bits().into()),
        _ => {
            let format = format?;
            let last = format.numbers.len();
            let (code, negative) = match x {
                Exact::Float(x) if x.is_infinite() => (if format.saturates { last - 1 } else { last }, x < 0.0),
                Exact::Float(x) => (format.nearest_to(x.abs()), x.is_sign_negative()),
                Exact::Int(n) => {
                    (format.nearest(|m| n.abs().cmp(&(m.min(1e37) as i128)).then(less_if(m.fract() > 0.0))), n < 0)
                }
            };
            let shift = if to == Elem::Tf32 { 13 } else { 0 };
            let sign = if to == Elem::Tf32 { 31 } else { to.bits() - 1 };
            Some((code as u64) << shift | u64::from(negative) << sign)
        }
    }
}

/// Conversions to `tf32` and their results: ties away from zero, with carries into the exponent and to infinity. The emulator of PTX is
/// tested with the same pairs (`cvt.rna.tf32.f32`, titan-nv/tests/emu/half.rs).
const TO_TF32: &[(u64, u64)] = &[
    (0x3f80_0fff, 0x3f80_0000),
    (0x3f80_1000, 0x3f80_2000),
    (0x3f80_3000, 0x3f80_4000),
    (0xbf80_1000, 0xbf80_2000),
    (0x3fff_f000, 0x4000_0000),
    (0x0000_1000, 0x0000_2000),
    (0x0000_0fff, 0x0000_0000),
    (0x7f7f_f000, 0x7f80_0000),
    (0xff80_0000, 0xff80_0000),
];

/// The operation of the lane IR, which casts do not use, for they are computed on bits.
#[test]
fn the_conversion_to_tf32_rounds_ties_away_from_zero() {
    let kind = OpKind::Convert { from: Num::F32, to: Num::Tf32 };
    let lane = Lane::new(&[Elem::F32], |b, v| b.one(kind, &[v[0]]));
    let mut call = lane.call();
    for (bits, want) in TO_TF32 {
        assert_eq!(call(&[*bits]), *want, "{bits:#x}");
    }
    let format = Format::tf32();
    for bits in registers(Elem::F32) {
        let got = call(&[bits]);
        match want(Elem::Tf32, read(Elem::F32, bits), Some(&format)) {
            Some(want) => assert_eq!(got, want, "{bits:#x}"),
            None => assert!(f32::from_bits(got as u32).is_nan() && got & 0x1fff == 0, "{bits:#x}: {got:#x}"),
        }
    }
}

fn less_if(yes: bool) -> std::cmp::Ordering {
    if yes { std::cmp::Ordering::Less } else { std::cmp::Ordering::Equal }
}

/// Registers of an element type: all there are, as far as [`codes`] has them, or edges and random ones.
fn registers(elem: Elem) -> Vec<u64> {
    match elem {
        Elem::F64 => doubles(test_depth::cases(4000, 400)).iter().map(|x| x.to_bits()).collect(),
        Elem::F32 => singles(6000).into_iter().map(u64::from).collect(),
        Elem::Tf32 => singles(6000).into_iter().map(|x| u64::from(x & !0x1fff)).collect(),
        Elem::F16 | Elem::Bf16 => codes().map(u64::from).collect(),
        Elem::E4m3 | Elem::E5m2 => (0..=0xff).collect(),
        Elem::Bool => vec![0, 1],
        Elem::I64 | Elem::U64 => integers(4000).iter().map(|n| *n as u64).collect(),
        _ => {
            let (lo, hi) = int_range(elem);
            let all = if elem.bits() == 16 {
                codes().map(|code| lo + i128::from(code)).collect()
            } else if elem.bits() < 16 {
                (lo..=hi).collect()
            } else {
                integers(4000).iter().map(|n| i128::from(*n).clamp(lo, hi)).collect()
            };
            let all: Vec<i128> = all;
            all.into_iter().map(|n| int_register(elem, n)).collect()
        }
    }
}

fn check(from: Elem, native: bool) {
    let target = target(native);
    let operands: Vec<(u64, Exact)> = registers(from).into_iter().map(|bits| (bits, read(from, bits))).collect();
    for to in Elem::ALL {
        let format =
            matches!(to, Elem::Tf32 | Elem::F16 | Elem::Bf16 | Elem::E4m3 | Elem::E5m2).then(|| Format::of(to));
        let lane = Lane::new(&[from], |b, v| cast(b, &target, from, to, v[0]));
        let mut call = lane.call();
        for (bits, x) in &operands {
            let got = call(&[*bits]);
            // The same type is the same bits: nothing saturates.
            match if from == to { Some(*bits) } else { want(to, *x, format.as_ref()) } {
                Some(want) => assert_eq!(got, want, "{from} {bits:#x} = {x:?} to {to}: {got:#x}, not {want:#x}"),
                None => {
                    let Exact::Float(y) = read(to, got) else { panic!("{to} is a float") };
                    assert!(y.is_nan(), "{from} {bits:#x} to {to}: {got:#x} is not NaN");
                    assert!(to != Elem::Tf32 || got & 0x1fff == 0, "{from} {bits:#x} to {to}: low digits");
                }
            }
        }
    }
}

macro_rules! from {
    ($($name:ident $elem:ident;)*) => {$(
        #[test]
        fn $name() {
            check(Elem::$elem, true);
            check(Elem::$elem, false);
        }
    )*};
}
from! {
    from_f64 F64; from_f32 F32; from_tf32 Tf32; from_f16 F16; from_bf16 Bf16; from_e4m3 E4m3; from_e5m2 E5m2; from_bool Bool;
    from_i64 I64; from_i32 I32; from_i16 I16; from_i8 I8; from_i4 I4; from_u64 U64; from_u32 U32; from_u16 U16; from_u8 U8;
    from_u4 U4;
}

/// There and back is the identity, and on the way the register is what the type says.
#[test]
fn bits_survive() {
    for from in Elem::ALL {
        for to in Elem::ALL {
            if from.bits() != to.bits() || from == Elem::Bool || to == Elem::Bool {
                continue;
            }
            let there = Lane::new(&[from], |b, v| bitcast(b, from, to, v[0]));
            let back = Lane::new(&[to], |b, v| bitcast(b, to, from, v[0]));
            let (mut there, mut back) = (there.call(), back.call());
            let mask = if from.bits() == 64 { u64::MAX } else { (1 << from.bits()) - 1 };
            for bits in registers(from) {
                let other = there(&[bits]);
                assert_eq!(other & mask, bits & mask, "{from} {bits:#x} to {to}");
                assert_eq!(back(&[other]), bits, "{from} {bits:#x} to {to} and back");
                let extended = to.is_signed_int() && to.bits() < 32;
                let sign = 32 - to.bits().min(32);
                assert!(
                    !extended || (other as u32 as i32) << sign >> sign == other as u32 as i32,
                    "{to} {other:#x} is extended"
                );
            }
        }
    }
}

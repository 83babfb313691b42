//! Atomic operations: functions of the value in memory and of the data, found by mnemonic.
//!
//! Source: the pseudocode of ISA §12.12 (`DS_`), §12.13 (`BUFFER_ATOMIC_`), §12.15; §9.2 "Float Memory Atomics", whose table 52 says where
//! subnormal numbers are flushed: in the local data share by `MODE`, but never for sums of `f64`; in memory for sums of `f32` only.

use super::lane::float::{f64_of, in32, in64, max32, max64, min32, min64, of_f32, out32};
use super::lane::{Mode, denormals, half};
use titan_core::num;

/// The new value of memory, from the old one and up to two data.
pub(crate) type AtomicFn = fn(m: Mode, old: u64, data: u64, second: u64) -> u64;

#[expect(clippy::cast_possible_truncation, reason = "a word")]
const fn u(x: u64) -> u32 {
    x as u32
}

const fn i(x: u64) -> i32 {
    u(x).cast_signed()
}

fn inc(old: u64, most: u64) -> u64 {
    if old >= most { 0 } else { old + 1 }
}

fn dec(old: u64, most: u64) -> u64 {
    if old == 0 || old > most { most } else { old - 1 }
}

/// Applies a function to both halves of packed numbers.
fn halves(old: u64, data: u64, f: impl Fn(u64, u64) -> u64) -> u64 {
    let each = |s: u32| f(old >> s & 0xFFFF, data >> s & 0xFFFF) << s;
    each(0) | each(16)
}

#[expect(clippy::cast_possible_truncation, reason = "the bits of a number")]
fn add_bf16(a: u64, b: u64) -> u64 {
    num::bf16_from_f64(num::bf16_to_f64(a as u16) + num::bf16_to_f64(b as u16)).into()
}

/// A sum of `bf16` in the local data share. A `bf16` is the upper half of an `f32`, so that both have the same subnormal numbers.
fn add_bf16_by_mode(m: Mode, a: u64, b: u64) -> u64 {
    let kept = denormals(m, 16);
    let flush = |x: u64, keep: bool| if !keep && x & 0x7F80 == 0 { x & 0x8000 } else { x };
    flush(add_bf16(flush(a, kept.inputs), flush(b, kept.inputs)), kept.results)
}

/// A sum of `f16` in the local data share.
fn add_f16_by_mode(m: Mode, a: u64, b: u64) -> u64 {
    half::write(Mode { fp16_overflow: false, ..m }, half::read(m, a) + half::read(m, b))
}

/// The extreme of two numbers, which are compared with subnormal ones flushed: the result is the one that was chosen, as it was.
fn chosen(result: u64, [a, b]: [u64; 2], [old, data]: [u64; 2]) -> u64 {
    if result == a {
        old
    } else if result == b {
        data
    } else {
        // A NaN that was made quiet.
        result
    }
}

fn extreme32(m: Mode, old: u64, data: u64, f: fn(Mode, f32, f32) -> f32) -> u64 {
    let (a, b) = (in32(m, old), in32(m, data));
    chosen(of_f32(f(m, a, b)), [of_f32(a), of_f32(b)], [old, data])
}

fn extreme64(m: Mode, old: u64, data: u64, f: fn(Mode, f64, f64) -> f64) -> u64 {
    let (a, b) = (in64(m, old), in64(m, data));
    chosen(f(m, a, b).to_bits(), [a.to_bits(), b.to_bits()], [old, data])
}

/// The function of a mnemonic, and its width in bytes; `wide` states whether the operands have 64 bits.
pub(crate) fn function(name: &str, wide: bool) -> Option<AtomicFn> {
    let lds = name.starts_with("ds_");
    let op = name.strip_prefix("ds_").map(|n| n.replace("_rtn", ""));
    let op = op.or_else(|| name.split_once("_atomic_").map(|(_, n)| n.replace("_x2", "")))?;
    let base = ["_u32", "_u64", "_i32", "_i64", "_b32", "_b64"].iter().find_map(|s| op.strip_suffix(s));
    let signed = op.ends_with("_i32") || op.ends_with("_i64");
    let base = base.unwrap_or(&op);
    Some(match (base, wide) {
        ("swap" | "wrxchg", _) => |_, _, d, _| d,
        // The order of the data differs: in memory the new value comes second, in the local data share first.
        ("cmpswap", _) => |_, old, new, cmp| if old == cmp { new } else { old },
        ("cmpst", _) => |_, old, cmp, new| if old == cmp { new } else { old },
        ("add", false) => |_, old, d, _| u(old).wrapping_add(u(d)).into(),
        ("add", true) => |_, old, d, _| old.wrapping_add(d),
        ("sub", false) => |_, old, d, _| u(old).wrapping_sub(u(d)).into(),
        ("sub", true) => |_, old, d, _| old.wrapping_sub(d),
        ("rsub", false) => |_, old, d, _| u(d).wrapping_sub(u(old)).into(),
        ("rsub", true) => |_, old, d, _| d.wrapping_sub(old),
        ("inc", _) => |_, old, d, _| inc(old, d),
        ("dec", _) => |_, old, d, _| dec(old, d),
        ("and", _) => |_, old, d, _| old & d,
        ("or", _) => |_, old, d, _| old | d,
        ("xor", _) => |_, old, d, _| old ^ d,
        ("mskor", _) => |_, old, mask, d| old & !mask | d,
        ("umin", _) => |_, old, d, _| old.min(d),
        ("umax", _) => |_, old, d, _| old.max(d),
        ("min", _) if lds && !signed => |_, old, d, _| old.min(d),
        ("max", _) if lds && !signed => |_, old, d, _| old.max(d),
        ("smin" | "min", false) => |_, old, d, _| if i(d) < i(old) { d } else { old },
        ("smax" | "max", false) => |_, old, d, _| if i(d) > i(old) { d } else { old },
        ("smin" | "min", true) => |_, old, d, _| if d.cast_signed() < old.cast_signed() { d } else { old },
        ("smax" | "max", true) => |_, old, d, _| if d.cast_signed() > old.cast_signed() { d } else { old },
        ("wrap", _) => |_, old, d, e| if old >= d { old - d } else { old.wrapping_add(e) & 0xFFFF_FFFF },
        ("add_f32", _) if lds => |m, old, d, _| out32(m, in32(m, old) + in32(m, d)),
        // ISA §10.3.1: memory flushes subnormal `f32`.
        ("add_f32", _) => |m, old, d, _| {
            let m = Mode { denorm_32: 0, ..m };
            out32(m, in32(m, old) + in32(m, d))
        },
        ("min_f32", _) => |m, old, d, _| extreme32(m, old, d, min32),
        ("max_f32", _) => |m, old, d, _| extreme32(m, old, d, max32),
        ("add_f64", _) => |_, old, d, _| (f64_of(old) + f64_of(d)).to_bits(),
        ("min_f64", _) if lds => |m, old, d, _| extreme64(m, old, d, min64),
        ("max_f64", _) if lds => |m, old, d, _| extreme64(m, old, d, max64),
        ("min_f64", _) => |m, old, d, _| min64(m, f64_of(old), f64_of(d)).to_bits(),
        ("max_f64", _) => |m, old, d, _| max64(m, f64_of(old), f64_of(d)).to_bits(),
        ("pk_add_f16", _) if lds => |m, old, d, _| halves(old, d, |a, b| add_f16_by_mode(m, a, b)),
        ("pk_add_bf16", _) if lds => |m, old, d, _| halves(old, d, |a, b| add_bf16_by_mode(m, a, b)),
        ("pk_add_f16", _) => {
            |_, old, d, _| halves(old, d, |a, b| u64::from(num::f16_from_f64(half::to_f64(a) + half::to_f64(b))))
        }
        ("pk_add_bf16", _) => |_, old, d, _| halves(old, d, add_bf16),
        ("cmpst_f32", _) => |m, old, cmp, new| if in32(m, old) == in32(m, cmp) { of_f32(in32(m, new)) } else { old },
        ("cmpst_f64", _) => |m, old, cmp, new| if in64(m, old) == in64(m, cmp) { in64(m, new).to_bits() } else { old },
        _ => return None,
    })
}

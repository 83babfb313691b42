//! Rounding, in all directions, against the core's and the machine's.

use titan_core::num::Format as Other;
use titan_nv::emu::internals::{BF16, E4M3, E5M2, F16, F32, Rnd, round32, sticky};

#[test]
fn rounding_to_nearest_agrees_with_the_core() {
    // With the code of infinity, to which the core overflows; the fp8 formats saturate there too.
    let pairs = [
        (F16, Other::F16, Some(0x7C00)),
        (BF16, Other::BF16, Some(0x7F80)),
        (E4M3, Other::E4M3, None),
        (E5M2, Other::E5M2, None),
    ];
    for (ours, theirs, infinity) in pairs {
        for code in 0..(ours.sign() << 1) {
            let x = ours.value(code);
            let y = theirs.to_f64(u32::try_from(code).unwrap());
            assert!(x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan(), "{ours:?} {code:#x}");
            if x.is_nan() {
                continue;
            }
            for x in [x, x.next_up(), x.next_down(), x * 1.03, x * 1.000_001] {
                let code = theirs.from_f64(x);
                // The core's f16 and bf16 overflow to infinity.
                let is_infinity = infinity.is_some_and(|infinity| u64::from(code) & (ours.sign() - 1) == infinity);
                let wanted = if is_infinity { code - 1 } else { code };
                assert_eq!(ours.code(x, Rnd::Near, true) as u32, wanted, "{ours:?} {x}");
            }
        }
    }
}

#[test]
fn directions_enclose_the_value() {
    for format in [F16, BF16, F32, E5M2] {
        for x in [1.0, 1.1, -1.1, 1e-8, -1e-8, 3e-45, 1e-60, 65519.9, 6e4, 1e39] {
            let [down, up, zero, near] =
                [Rnd::Down, Rnd::Up, Rnd::Zero, Rnd::Near].map(|r| format.value(format.code(x, r, false)));
            assert!(down <= x && x <= up, "{format:?} {x}: {down} {up}");
            assert_eq!(zero, if x > 0.0 { down } else { up });
            assert!(near == down || near == up);
        }
    }
}

#[test]
fn round_trips_in_f32_are_those_of_the_machine() {
    for bits in (0..=u32::MAX).step_by(104_729) {
        let x = f64::from(f32::from_bits(bits)) * 1.000_000_037;
        if !x.is_nan() {
            assert_eq!(F32.code(x, Rnd::Near, false), u64::from((x as f32).to_bits()), "{x}");
        }
    }
}

#[test]
fn sticky_breaks_ties() {
    // Half way between two f32, and a little more.
    let tie = 1.0 + 2f64.powi(-24);
    assert_eq!(round32(tie, Rnd::Near), 1.0);
    assert_eq!(round32(sticky(tie, 1e-300), Rnd::Near), 1.0 + f32::EPSILON);
    assert_eq!(round32(sticky(tie, -1e-300), Rnd::Up), 1.0 + f32::EPSILON);
    assert_eq!(round32(sticky(0.0, -1.0), Rnd::Down), -f32::from_bits(1));
}

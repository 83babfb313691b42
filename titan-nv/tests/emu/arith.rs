//! Integer arithmetic.

use crate::harness::{check, s};

const M1: u64 = u64::MAX;

#[test]
fn addition_and_subtraction_wrap_or_saturate() {
    check(
        "sm_80",
        &[
            ("add.s32 %r, %a0, %a1;", &[(&[1, 2], 3), (&[0xFFFF_FFFF, 2], 1), (&[0x7FFF_FFFF, 1], 0x8000_0000)]),
            (
                "add.sat.s32 %r, %a0, %a1;",
                &[(&[0x7FFF_FFFF, 1], 0x7FFF_FFFF), (&[0x8000_0000, s(-1)], 0x8000_0000), (&[3, 4], 7)],
            ),
            ("sub.sat.s32 %r, %a0, %a1;", &[(&[0x8000_0000, 1], 0x8000_0000), (&[0x7FFF_FFFF, s(-1)], 0x7FFF_FFFF)]),
            ("add.u16 %s, %h0, %h1;", &[(&[0xFFFF, 2], 1)]),
            ("add.s64 %d, %x0, %x1;", &[(&[M1, 2], 1)]),
            ("sub.u32 %r, %a0, %a1;", &[(&[1, 2], 0xFFFF_FFFF)]),
            ("sub.s64 %d, %x0, %x1;", &[(&[1, 2], M1)]),
            ("sub.s16 %s, %h0, 5;", &[(&[3], 0xFFFE)]),
            ("add.cc.u32 %t0, %a0, %a1; addc.u32 %r, 0, 0;", &[(&[0xFFFF_FFFF, 1], 1), (&[0xFFFF_FFFE, 1], 0)]),
            ("sub.cc.u32 %t0, %a0, %a1; subc.u32 %r, 5, 1;", &[(&[0, 1], 3), (&[1, 1], 4)]),
            ("add.cc.u64 %e0, %x0, %x1; addc.cc.u64 %e1, %x0, 0; addc.u64 %d, 0, 0;", &[(&[M1, 1], 1), (&[M1, 0], 0)]),
        ],
    );
}

#[test]
fn products_low_high_wide() {
    check(
        "sm_80",
        &[
            ("mul.lo.s32 %r, %a0, %a1;", &[(&[s(-3), 5], s(-15)), (&[0x1_0001, 0x1_0001], 0x2_0001)]),
            ("mul.hi.u32 %r, %a0, %a1;", &[(&[0xFFFF_FFFF, 0xFFFF_FFFF], 0xFFFF_FFFE)]),
            ("mul.hi.s32 %r, %a0, %a1;", &[(&[s(-1), s(-1)], 0), (&[s(-2), 3], s(-1)), (&[0x4000_0000, 8], 2)]),
            ("mul.hi.s16 %s, %h0, %h1;", &[(&[0xFFFE, 3], 0xFFFF), (&[0x4000, 8], 2)]),
            ("mul.hi.u64 %d, %x0, %x1;", &[(&[M1, M1], M1 - 1)]),
            ("mul.hi.s64 %d, %x0, %x1;", &[(&[M1, M1], 0), (&[M1 - 1, 3], M1)]),
            ("mul.lo.u64 %d, %x0, %x1;", &[(&[1 << 40, 1 << 30], 0), (&[1 << 40, 3], 3 << 40)]),
            ("mul.wide.u32 %d, %a0, %a1;", &[(&[0xFFFF_FFFF, 0xFFFF_FFFF], 0xFFFF_FFFE_0000_0001)]),
            ("mul.wide.s32 %d, %a0, %a1;", &[(&[s(-1), 7], -7_i64 as u64)]),
            ("mul.wide.s16 %r, %h0, %h1;", &[(&[0xFFFF, 7], s(-7))]),
            ("mul.wide.u16 %r, %h0, %h1;", &[(&[0xFFFF, 0xFFFF], 0xFFFE_0001)]),
            ("mad.lo.u32 %r, %a0, %a1, %a2;", &[(&[3, 4, 5], 17)]),
            ("mad.lo.s16 %s, %h0, %h1, %h2;", &[(&[3, 4, 0xFFFF], 11)]),
            ("mad.hi.s32 %r, %a0, %a1, %a2;", &[(&[s(-2), 3, 10], 9)]),
            ("mad.hi.sat.s32 %r, %a0, %a1, %a2;", &[(&[0x7FFF_FFFF, 0x7FFF_FFFF, 0x7FFF_FFFF], 0x7FFF_FFFF)]),
            ("mad.wide.u32 %d, %a0, %a1, %x2;", &[(&[0xFFFF_FFFF, 2, 3], 0x2_0000_0001)]),
            ("mad.wide.s32 %d, %a0, %a1, %x2;", &[(&[s(-5), 2, 3], -7_i64 as u64)]),
            (
                "mad.lo.cc.u32 %t0, %a0, %a1, %a2; madc.hi.u32 %r, %a0, %a1, 0;",
                &[(&[0xFFFF_FFFF, 1, 1], 1), (&[0x8000_0000, 2, 0], 1)],
            ),
            ("mul24.lo.u32 %r, %a0, %a1;", &[(&[0xFF00_0003, 0xFF00_0005], 15)]),
            ("mul24.hi.u32 %r, %a0, %a1;", &[(&[0x80_0000, 0x80_0000], 0x4000_0000)]),
            ("mad24.lo.s32 %r, %a0, %a1, %a2;", &[(&[0xFF_FFFF, 3, 1], s(-2))]),
            ("dp4a.s32.s32 %r, %a0, %a1, %a2;", &[(&[0xFF02_03FE, 0x0102_0304, 100], 100 - 1 + 4 + 9 - 8)]),
            ("dp4a.u32.u32 %r, %a0, %a1, %a2;", &[(&[0xFF02_03FE, 0x0102_0304, 0], 255 + 4 + 9 + 254 * 4)]),
            ("dp4a.u32.s32 %r, %a0, %a1, %a2;", &[(&[0xFF, 0xFF, 0], s(-255))]),
        ],
    );
}

#[test]
fn division_truncates_and_keeps_the_dividends_sign() {
    check(
        "sm_80",
        &[
            (
                "div.s32 %r, %a0, %a1;",
                &[(&[s(-7), 2], s(-3)), (&[7, s(-2)], s(-3)), (&[0x8000_0000, s(-1)], 0x8000_0000)],
            ),
            ("rem.s32 %r, %a0, %a1;", &[(&[s(-7), 2], s(-1)), (&[7, s(-2)], 1)]),
            ("div.u32 %r, %a0, %a1;", &[(&[0xFFFF_FFFF, 10], 429_496_729)]),
            ("rem.u64 %d, %x0, %x1;", &[(&[M1, 10], 5)]),
            ("div.s64 %d, %x0, %x1;", &[(&[-9_i64 as u64, 4], -2_i64 as u64)]),
            ("div.u16 %s, %h0, %h1;", &[(&[1000, 7], 142)]),
            ("rem.s16 %s, %h0, %h1;", &[(&[0xFFF9, 2], 0xFFFF)]),
        ],
    );
}

#[test]
fn extremes_and_magnitudes() {
    check(
        "sm_80",
        &[
            ("min.s32 %r, %a0, %a1;", &[(&[s(-1), 1], s(-1))]),
            ("min.u32 %r, %a0, %a1;", &[(&[s(-1), 1], 1)]),
            ("max.s64 %d, %x0, %x1;", &[(&[M1, 1], 1)]),
            ("max.u16 %s, %h0, %h1;", &[(&[0xFFFF, 1], 0xFFFF)]),
            ("abs.s32 %r, %a0;", &[(&[s(-5)], 5), (&[0x8000_0000], 0x8000_0000)]),
            ("abs.s64 %d, %x0;", &[(&[-5_i64 as u64], 5)]),
            ("neg.s16 %s, %h0;", &[(&[1], 0xFFFF)]),
            ("neg.s32 %r, %a0;", &[(&[s(-5)], 5)]),
            ("sad.s32 %r, %a0, %a1, %a2;", &[(&[s(-5), 3, 1], 9)]),
            ("sad.u32 %r, %a0, %a1, %a2;", &[(&[2, 5, 1], 4), (&[5, 2, 1], 4)]),
        ],
    );
}

#[test]
fn pairs_of_16_bits() {
    check(
        "sm_90",
        &[
            ("add.u16x2 %r, %a0, %a1;", &[(&[0x0001_FFFF, 0x0002_0001], 0x0003_0000)]),
            ("min.s16x2 %r, %a0, %a1;", &[(&[0xFFFF_0005, 0x0001_0004], 0xFFFF_0004)]),
            ("max.u16x2 %r, %a0, %a1;", &[(&[0xFFFF_0005, 0x0001_0004], 0xFFFF_0005)]),
        ],
    );
}

#[test]
fn comparisons_of_integers() {
    let holds: &[(&str, [u64; 3])] = &[
        ("eq.s32", [0, 1, 0]),
        ("ne.b32", [1, 0, 1]),
        ("lt.s32", [1, 0, 0]),
        ("le.s32", [1, 1, 0]),
        ("gt.s32", [0, 0, 1]),
        ("ge.s32", [0, 1, 1]),
        ("lt.u32", [0, 0, 1]),
        ("lo.u32", [0, 0, 1]),
        ("ls.u32", [0, 1, 1]),
        ("hi.u32", [1, 0, 0]),
        ("hs.u32", [1, 1, 0]),
    ];
    for (cmp, want) in holds {
        // -1 against 1, 3 against 3, 1 against -1.
        let body = format!("setp.{cmp} %p, %a0, %a1;");
        let threads: [(&[u64], u64); 3] = [(&[s(-1), 1], want[0]), (&[3, 3], want[1]), (&[1, s(-1)], want[2])];
        check("sm_80", &[(&body, &threads)]);
    }
    check(
        "sm_80",
        &[
            ("setp.lt.s16 %p, %h0, %h1;", &[(&[0xFFFF, 1], 1), (&[1, 0xFFFF], 0)]),
            ("setp.gt.s64 %p, %x0, %x1;", &[(&[M1, 1], 0)]),
            ("setp.eq.b16 %p, %h0, %h1;", &[(&[0x1_0005, 5], 1)]),
            ("setp.lt.s32 %p|%q0, %a0, %a1; selp.b32 %r, 1, 0, %q0;", &[(&[1, 2], 0), (&[2, 1], 1)]),
            ("setp.lt.s32 %q0, %a0, 5; setp.lt.and.s32 %p, %a1, 5, %q0;", &[(&[1, 1], 1), (&[9, 1], 0), (&[1, 9], 0)]),
            ("setp.lt.s32 %q0, %a0, 5; setp.lt.or.s32 %p, %a1, 5, !%q0;", &[(&[1, 9], 0), (&[9, 9], 1)]),
            ("setp.lt.s32 %q0, %a0, 5; setp.lt.xor.s32 %p, %a1, 5, %q0;", &[(&[1, 1], 0), (&[1, 9], 1)]),
            ("set.lt.u32.s32 %r, %a0, %a1;", &[(&[1, 2], 0xFFFF_FFFF), (&[2, 1], 0)]),
            ("set.gt.f32.u32 %r, %a0, %a1;", &[(&[2, 1], 0x3F80_0000), (&[1, 2], 0)]),
            ("setp.ne.b32 %p, %a0, 0; selp.b64 %d, %x1, %x2, %p;", &[(&[1, 7, 8], 7), (&[0, 7, 8], 8)]),
            ("slct.b32.s32 %r, %a0, %a1, %a2;", &[(&[7, 8, 0], 7), (&[7, 8, s(-1)], 8)]),
            ("slct.u64.f32 %d, %x0, %x1, %a2;", &[(&[7, 8, 0x8000_0000], 7), (&[7, 8, 0xBF80_0000], 8)]),
        ],
    );
}

#[test]
fn logic_of_predicates() {
    let p = "setp.ne.b32 %q0, %a0, 0; setp.ne.b32 %q1, %a1, 0; ";
    for (op, want) in [("and", [0, 0, 1]), ("or", [0, 1, 1]), ("xor", [0, 1, 0])] {
        let body = format!("{p}{op}.pred %p, %q0, %q1;");
        check("sm_80", &[(&body, &[(&[0, 0], want[0]), (&[0, 1], want[1]), (&[1, 1], want[2])])]);
    }
    let body = format!("{p}not.pred %q2, %q0; mov.pred %p, %q2;");
    check("sm_80", &[(&body, &[(&[0, 0], 1), (&[1, 0], 0)])]);
}

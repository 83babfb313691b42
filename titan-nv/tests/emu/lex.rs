//! Tokens: words, numbers and comments, by what modules with them do.

use crate::harness::{Case, check, header, module_of};
use titan_nv::emu::{EmuError, ErrorCode, Module};

fn error(text: &str) -> EmuError {
    Module::parse(text).err().unwrap_or_else(|| panic!("accepted: {text}"))
}

#[test]
fn words_keep_their_dots_and_labels_lose_their_colon() {
    let body = "add.u64 %e0, %in, 8; ld.global.L1::no_allocate.v4.b32 {%r,_,%t0,_}, [%e0+-8]; bra $L__x; mov.u32 %r,7; \
                $L__x: add.u32 %r, %r, %t0;";
    check("sm_80", &[(body, &[(&[5 | 1 << 40, 6 | 1 << 40], 11)])]);
}

#[test]
fn numbers_of_all_kinds() {
    let cases: [Case<'_>; 9] = [
        ("mov.u64 %d, 0x1F;", &[(&[0], 31)]),
        ("mov.u64 %d, 0xFFFFFFFFFFFFFFFF;", &[(&[0], u64::MAX)]),
        ("mov.u64 %d, 0b101;", &[(&[0], 5)]),
        ("mov.u64 %d, 017;", &[(&[0], 15)]),
        ("mov.u64 %d, 42U;", &[(&[0], 42)]),
        ("mov.f32 %f0, 0f3F800000; mov.b32 %r, %f0;", &[(&[0], 0x3F80_0000)]),
        ("mov.f64 %fd0, 0d3FF0000000000000; mov.b64 %d, %fd0;", &[(&[0], 0x3FF0_0000_0000_0000)]),
        ("mov.f64 %fd0, 1.5e1; mov.b64 %d, %fd0;", &[(&[0], 15f64.to_bits())]),
        ("mov.f64 %fd0, .25; mov.b64 %d, %fd0;", &[(&[0], 0.25f64.to_bits())]),
    ];
    check("sm_80", &cases);
    for (body, says) in [
        ("mov.f32 %f0, 0f3F8;", "8 hexadecimal digits"),
        ("mov.u64 %rd0, 09;", "`09` is no integer"),
        ("mov.u64 %rd0, 0x;", "`` is no integer"),
        ("mov.u64 %rd0, 99999999999999999999;", "`99999999999999999999` is no integer"),
    ] {
        let error = error(&module_of("sm_80", "", body));
        assert_eq!(error.code(), ErrorCode::Syntax, "{body}: {error}");
        assert!(error.to_string().contains(says), "{body}: {error}");
    }
}

#[test]
fn comments_count_lines() {
    assert_eq!(error("/* a\n b */ x // y\nz").line(), 2);
    let after = format!("/* a\n b */ // y\n{}z", header("sm_80"));
    assert_eq!(error(&after).line(), 6);
    for (text, says) in [("/* a", "does not end"), ("\"a", "does not end"), ("a § b", "`§` is no part of PTX")] {
        let error = error(text);
        assert_eq!((error.code(), error.line()), (ErrorCode::Syntax, 1), "{text}: {error}");
        assert!(error.to_string().contains(says), "{text}: {error}");
    }
}

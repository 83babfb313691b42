//! What is refused when a module is parsed: each with its line, and nothing by silence.

use crate::harness::{header, module_of};
use titan_nv::emu::{ErrorCode, Module};

/// The error of a body's only line.
fn refused(body: &str) -> (ErrorCode, String) {
    let text = module_of("sm_80", "", body);
    let error = Module::parse(&text).err().unwrap_or_else(|| panic!("accepted: {body}"));
    let line = text.lines().nth(error.line() as usize - 1).unwrap_or_default();
    assert!(line.contains(body), "at `{line}`: {error}");
    (error.code(), error.to_string())
}

#[test]
fn unknown_instructions_and_modifiers() {
    for body in [
        "frobnicate.u32 %r0, %r1;",
        "add.u32.sat %r0, %r1, %r2;",
        "add.sat.u32 %r0, %r1, %r2;",
        "ld.global.v3.u32 %r0, [%rd0];",
        "ld.shared.fast.u32 %r0, [%r1];",
        "mul.u32 %r0, %r1, %r2;",
        "add.q32 %r0, %r1, %r2;",
        "shl.s32 %r0, %r1, %r2;",
        "setp.less.u32 %p0, %r1, %r2;",
        "fma.f32 %f0, %f1, %f2, %f3;",
        "sin.f32 %f0, %f1;",
        "sqrt.f32 %f0, %f1;",
        "cvt.s32.f32 %r0, %f1;",
        "cvt.rn.s32.f32 %r0, %f1;",
        "cvt.f32.f64 %f0, %rd0;",
        "bar.sync.aligned 0;",
        "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%f0}, {%r0}, {%r1}, {%f1};",
        "mma.sync.aligned.m16n8k24.row.col.f32.f16.f16.f32 {%f0}, {%r0}, {%r1}, {%f1};",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%f0}, {%r0}, {%r1}, {%f1};",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;",
        "multimem.red.add.u32 [%rd0], %r0;",
        "and.u32 %r0, %r1, %r2;",
        "neg.u32 %r0, %r1;",
        "selp.f16 %h0, %h1, %h2, %p0;",
        "atom.global.add.f16 %h0, [%rd0], %h1;",
        "min.f32.NaN %f0, %f1, %f2;",
        "shfl.bfly.b32 %r0, %r1, 1, 31;",
        "popc.u32 %r0, %r1;",
        "cvt.rn.satfinite.e4m3x2.f16 %h0, %h1;",
        "tensormap.replace.tile.rank.shared.b1024.b32 [%r0], 1;",
        "tensormap.replace.tile.global_stride.global.b1024.b32 [%rd0], 0, %r1;",
        "tensormap.replace.tile.global_stride.global.b1024.b64 [%rd0], 4, %rd1;",
        "tensormap.replace.tile.box_dim.global.b1024.b32 [%rd0], 5, %r1;",
        "tensormap.replace.tile.elemtype.global.b1024.b32 [%rd0], 8;",
        "tensormap.replace.tile.interleave_layout.global.b1024.b32 [%rd0], 1;",
        "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%rd0], 4;",
        "tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%rd0], 1;",
        "tensormap.replace.tile.fill_mode.global.b1024.b32 [%rd0], 2;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.acquire.gpu.sync.aligned [%rd0], [%r0], 128;",
        "fence.proxy.generic::tensormap.acquire.gpu [%rd0], 128;",
    ] {
        let (code, message) = refused(body);
        assert_eq!(code, ErrorCode::Unknown, "{message}");
    }
    let (_, message) = refused("add.u32.sat %r0, %r1, %r2;");
    assert!(message.contains("`add.u32.sat`: `.sat` is not known there"), "{message}");
}

#[test]
fn operands_that_do_not_fit() {
    for (body, says) in [
        ("add.u32 %r0, %r1;", "takes 3 operands, not 2"),
        ("add.u32 %r0, %r1, %rd0;", "`%rd0` is declared `.b64`, which does not fit `.u32`"),
        ("add.f32 %f0, %f1, 1;", "integer constant stands where a floating-point one"),
        ("add.u32 %r0, %f0, %r1;", "declared `.f32`"),
        ("add.u32 %r0, %r1, 0x1FFFFFFFF;", "does not fit `.u32`"),
        ("add.u32 %r0, %r1, %p0;", "declared `.pred`"),
        ("@%r0 mov.u32 %r1, 0;", "declared `.b32`, which does not fit `.pred`"),
        ("ld.global.u32 %r0, [%r1];", "cannot hold a global address"),
        ("ld.global.v2.u32 %r0, [%rd0];", "1 registers for 2 elements"),
        ("ld.global.u64 %r0, [%rd0];", "does not fit `.u64`"),
        ("cp.async.cg.shared.global [%r0], [%rd0], 8;", "cannot copy 8 bytes"),
        ("mov.b64 %rd0, {%r0, %r1, %r2};", "3 parts do not make"),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3};",
            "has 3 elements instead of 4",
        ),
        ("st.global.u32 %rd0, %r0;", "address in brackets"),
        ("ld.global.u32 %r0, [%rd0-4];", "expected `]`"),
        ("bra 5;", "a label is needed"),
    ] {
        let (code, message) = refused(body);
        assert!(matches!(code, ErrorCode::Operand | ErrorCode::Syntax) && message.contains(says), "{message}");
    }
}

#[test]
fn names_that_are_not_declared() {
    for body in ["mov.u32 %r0, %nowhere;", "bra NOWHERE;", "@%q bra X;", "mov.u32 %r0, %tid.w;", ".reg .b32 %r0;"] {
        if body.starts_with(".reg") {
            // In the same scope it is a second declaration; in an inner one it is another register.
            assert!(Module::parse(&module_of("sm_80", "", body)).is_err());
            let inner = "{ .reg .pred %r0; setp.eq.u32 %r0, %ti, 0; @%r0 bra IN; IN: } mov.u32 %r0, 1;";
            Module::parse(&module_of("sm_80", "", inner)).unwrap();
        } else {
            assert_eq!(refused(body).0, ErrorCode::Symbol);
        }
    }
    // A label of an inner scope is not one of the outer.
    assert!(Module::parse(&module_of("sm_80", "", "bra IN; { IN: mov.u32 %v, 0; }")).is_err());
}

#[test]
fn what_is_no_module() {
    for (text, code) in [
        ("", ErrorCode::Syntax),
        (".version 8.0", ErrorCode::Syntax),
        (".version eight\n.target sm_80", ErrorCode::Syntax),
        (".version 8.0\n.target sm_80\n.address_size 32", ErrorCode::Unknown),
        (".version 8.0\n.target sm_80\n.texref t;", ErrorCode::Unknown),
        (".version 8.0\n.target sm_80\n.entry k() { ret; ", ErrorCode::Syntax),
        (".version 8.0\n.target sm_80\n.entry k() { ret }", ErrorCode::Syntax),
        (".version 8.0\n.target sm_80\n.global .b32 x; .global .b32 x;", ErrorCode::Symbol),
        (".version 8.0\n.target sm_80\n.global .b32 x[];", ErrorCode::Symbol),
        (".version 8.0\n.target sm_80\n.global .b32 x = {1, 2};", ErrorCode::Symbol),
        (".version 8.0\n.target sm_80\n.entry k() {} .entry k() {}", ErrorCode::Symbol),
        (".version 8.0\n.target sm_80\n.entry k(.param .b8 p[40000]) {}", ErrorCode::Symbol),
        (".version 8.0\n.target sm_80\n.global .b8 x[4294967295];", ErrorCode::Symbol),
        (".version 8.0\n.target sm_80\n.shared .b8 x[1000000];\n.entry k() {}", ErrorCode::Symbol),
        (".version 8.0\n.target sm_80\n.entry k() .explicitcluster { ret; }", ErrorCode::Target),
        (".version 8.0\n.target sm_80\n.func f() { call f; ret; } .entry k() { call f; }", ErrorCode::Unknown),
    ] {
        let error = Module::parse(text).expect_err(text);
        assert_eq!(error.code(), code, "{text}: {error}");
    }
}

#[test]
fn nesting_has_a_limit() {
    for (open, close) in [("(", ")"), ("-", ""), ("!", ""), ("~(", ")")] {
        let body = format!("mov.u32 %v, {}1{};", open.repeat(20_000), close.repeat(20_000));
        let error = Module::parse(&module_of("sm_80", "", &body)).unwrap_err();
        assert!(error.to_string().contains("nested too deep"), "{error}");
    }
    let shared = format!(".global .b32 x = {}1{};\n", "{".repeat(20_000), "}".repeat(20_000));
    assert!(Module::parse(&module_of("sm_80", &shared, "")).is_err());
    let body = format!("mov.b64 {}%r0{}, %rd0;", "{".repeat(20_000), "}".repeat(20_000));
    assert!(Module::parse(&module_of("sm_80", "", &body)).is_err());
}

#[test]
fn what_says_nothing_about_meaning_is_read_over() {
    let text = header("sm_80")
        + ".file 1 \"a.rs\", 0, 10\n.section .debug_info { .b8 1, 2 \n .b32 .debug_line {} }\n.extern .func (.param .b32 r) printf (.param .b64 f);\n\
        .weak .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[24]) .maxntid 128, 1, 1 .minnctapersm 2 .maxnreg 64\n\
        { .pragma \"nounroll\"; .reg .b32 %a, %b<2>; .loc 1 3 4 mov.u32 %a, (1 << 4) | 3 * -1 + 0x10; ret; }\n";
    let module = Module::parse(&text).unwrap();
    let kernel = module.entry("k").unwrap();
    assert_eq!(kernel.param_sizes().collect::<Vec<_>>(), [8, 24]);
    assert_eq!((module.target(), module.kernels().collect::<Vec<_>>()), ("sm_80", vec!["k"]));
    assert!(module.version().0 >= 7);
}

#[test]
fn no_text_makes_the_parser_panic() {
    // A good text with pieces cut out, doubled and swapped.
    let good = module_of(
        "sm_80",
        ".shared .align 8 .b8 buf[64];\n",
        "
        L: ld.global.v2.u32 {%r0, %r1}, [%rd0+8]; @!%p0 bra L; setp.lt.s32 %p0|%p1, %r0, -5; mov.b64 %rd1, {%r0, 0x7};
        mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3};
        cvt.rn.f16.f32 %h0, %f0; ts: .branchtargets L, L; brx.idx %r0, ts; mov.u32 %r3, buf+4; .loc 1 2 3",
    );
    let mut rng = titan_sim::engine::Rng::new(11);
    for _ in 0..1500 {
        let mut text = good.clone().into_bytes();
        for _ in 0..=rng.below(4) {
            let (a, b) = (rng.below(text.len()), rng.below(text.len()));
            let (a, b) = (a.min(b), a.max(b).min(a.min(b) + 12));
            match rng.below(4) {
                0 => drop(text.drain(a..b)),
                1 => text
                    .splice(
                        a..a,
                        b".x, %9 { [ ; 0f 99999999999".iter().copied().skip(b % 20).take(5).collect::<Vec<_>>(),
                    )
                    .for_each(drop),
                2 => text.swap(a, b),
                _ => text[a] = b"%.,;:{}[]()<>+-0xfL@!|_ \n"[b % 25],
            }
        }
        let text = String::from_utf8_lossy(&text);
        drop(Module::parse(&text));
    }
}

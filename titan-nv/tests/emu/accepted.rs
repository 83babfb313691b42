//! What the assembler accepts although it is not written as in the manual, or is rare: the emulator accepts it too, with the same meaning.

use crate::harness::{check, f, fails, gives, header, module_of, run_body, toolkit_accepts};
use titan_nv::emu::{ErrorCode, Module, Options};

/// That bodies are accepted, by the assembler too.
fn accepted(target: &str, before: &str, bodies: &[&str]) {
    for body in bodies {
        let text = module_of(target, before, body);
        Module::parse(&text).unwrap_or_else(|e| panic!("{body}: {e}"));
        assert_ne!(toolkit_accepts(&text, target), Some(false), "{body}");
    }
}

#[test]
fn modifiers_in_any_order() {
    accepted(
        "sm_80",
        "",
        &[
            "div.ftz.rn.f32 %f0, %f1, %f2;",
            "div.ftz.approx.f32 %f0, %f1, %f2;",
            "div.full.ftz.f32 %f0, %f1, %f2;",
            "add.ftz.rz.f32 %f0, %f1, %f2;",
            "sub.sat.rn.f32 %f0, %f1, %f2;",
            "mul.rn.sat.ftz.f32 %f0, %f1, %f2;",
            "fma.ftz.rn.f32 %f0, %f1, %f2, %f3;",
            "fma.relu.rn.f16 %h0, %h1, %h2, %h3;",
            "rcp.ftz.rn.f32 %f0, %f1;",
            "sqrt.ftz.approx.f32 %f0, %f1;",
            "ex2.ftz.approx.f32 %f0, %f1;",
            "min.NaN.ftz.f32 %f0, %f1, %f2;",
            "cvt.sat.rn.f16.f32 %h0, %f0;",
            "cvt.relu.rn.f16.f32 %h0, %f0;",
            "cvt.ftz.rni.s32.f32 %r0, %f0;",
            "cvt.rni.sat.ftz.s8.f32 %r0, %f0;",
            "setp.ftz.lt.f32 %p0, %f0, %f1;",
            "setp.lt.ftz.and.f32 %p0, %f0, %f1, %p1;",
            "set.ftz.lt.u32.f32 %r0, %f0, %f1;",
            "ld.v2.global.u32 {%r0, %r1}, [%rd0];",
            "ld.ca.global.u32 %r0, [%rd0];",
            "ld.global.volatile.u32 %r0, [%rd0];",
            "ld.global.relaxed.gpu.u32 %r0, [%rd0];",
            "ld.gpu.acquire.global.u32 %r0, [%rd0];",
            "st.global.release.gpu.u32 [%rd0], %r0;",
        ],
    );
    // Subnormal operands are zeros, rounding is upwards.
    check(
        "sm_80",
        &[
            (
                "div.ftz.rn.f32 %r, %a0, %a1;",
                &[(&[f(1e-40), f(1e-40)], 0x7fff_ffff), (&[f(1.0), f(3.0)], f(1.0 / 3.0))],
            ),
            ("add.ftz.rp.f32 %r, %a0, %a1;", &[(&[f(1.0), f(1e-10)], f(1.000_000_1)), (&[f(1e-40), f(1e-40)], f(0.0))]),
            ("cvt.ftz.sat.f32.f32 %r, %a0;", &[(&[f(1e-40)], f(0.0)), (&[f(7.0)], f(1.0))]),
        ],
    );
}

#[test]
fn each_modifier_once() {
    for body in [
        "div.rn.rn.f32 %f0, %f1, %f2;",
        "div.ftz.rn.ftz.f32 %f0, %f1, %f2;",
        "div.approx.rn.f32 %f0, %f1, %f2;",
        "add.sat.sat.f32 %f0, %f1, %f2;",
        "cvt.rn.rz.f16.f32 %h0, %f0;",
        "cvt.sat.satfinite.f16.f32 %h0, %f0;",
        "setp.ftz.lt.ftz.f32 %p0, %f0, %f1;",
        "ld.global.shared.u32 %r0, [%rd0];",
        "ld.relaxed.gpu.cta.global.u32 %r0, [%rd0];",
        "ld.v2.v2.u32 {%r0, %r1}, [%rd0];",
    ] {
        let error = Module::parse(&module_of("sm_80", "", body)).expect_err(body);
        assert_eq!(error.code(), ErrorCode::Unknown, "{error}");
    }
    for body in ["ld.gpu.global.u32 %r0, [%rd0];", "ld.weak.gpu.global.u32 %r0, [%rd0];"] {
        let error = Module::parse(&module_of("sm_80", "", body)).expect_err(body);
        assert!(error.to_string().contains("a scope needs an order"), "{error}");
    }
}

#[test]
fn constants_are_numbers_of_64_bits() {
    let all = u64::from(u32::MAX);
    check(
        "sm_80",
        &[
            ("add.cc.u32 %r, 0xffffffffffffffffU, %a0; addc.u32 %r, 0, 0;", &[(&[1], 1), (&[0], 0)]),
            ("add.u32 %r, %a0, 18446744073709551615;", &[(&[1], 0)]),
            ("and.b32 %r, %a0, 0xFFFFFFFF80000000;", &[(&[all], 0x8000_0000)]),
            ("xor.b16 %s, %h0, 0xFFFFFFFFFFFFFFFE;", &[(&[1], 0xFFFF)]),
            ("add.u64 %d, %x0, 0xFFFFFFFFFFFFFFFF;", &[(&[1], 0)]),
        ],
    );
    // These would lose bits.
    for body in ["add.u32 %r0, %r1, 0x1FFFFFFFF;", "add.u32 %r0, %r1, 0xFFFFFFFF7FFFFFFF;", "mov.b16 %h0, 0x1FFFF;"] {
        assert!(Module::parse(&module_of("sm_80", "", body)).is_err(), "{body}");
    }
}

/// Without a state space, the name of a variable gives it: the assembler makes the same code.
#[test]
fn a_variable_without_its_state_space() {
    let before = ".shared .align 8 .b32 s[64]; .global .align 8 .b32 g[64]; .const .align 8 .b32 c[4];\n";
    let run = |body: &str, want: fn(u32) -> u32| gives("sm_80", before, body, 32, want);
    run("st.u32 [s+4], 7; bar.sync 0; ld.u32 %v, [s+4]; st.global.u32 [%mine], %v;", |_| 7);
    run("st.u32 [g], 5; ld.volatile.u32 %v, [g]; st.global.u32 [%mine], %v;", |_| 5);
    run(".local .b32 l; st.u32 [l], %ti; ld.u32 %v, [l]; st.global.u32 [%mine], %v;", |t| t);
    run(
        "setp.eq.u32 %p0, %ti, 0; @%p0 st.u32 [s], 0; bar.sync 0; atom.add.u32 %r0, [s], 1; red.add.u32 [s], 1;
         bar.sync 0; ld.u32 %v, [s]; st.global.u32 [%mine], %v;",
        |_| 64,
    );
    run(
        "setp.eq.u32 %p0, %ti, 0; @%p0 mbarrier.init.b64 [s], 32; bar.sync 0; mbarrier.arrive.b64 %state, [s];
         W: mbarrier.test_wait.b64 %p1, [s], %state; @!%p1 bra W; mov.u32 %v, 9; st.global.u32 [%mine], %v;",
        |_| 9,
    );
    for body in ["ld.global.u32 %r0, [s];", "ld.shared.u32 %r0, [g];", ".local .b32 l; atom.add.u32 %r0, [l], 1;"] {
        let error = Module::parse(&module_of("sm_80", before, body)).expect_err(body);
        assert_eq!(error.code(), ErrorCode::Operand, "{error}");
    }
}

/// Threads that have ended, or that end while the others wait, are not needed, wherever they do it.
#[test]
fn threads_that_have_ended_take_no_part() {
    let half = "setp.lt.u32 %p0, %lane, 16; setp.lt.u32 %p1, %lane, 20;\n";
    for end in ["@!%p0 exit;", "@!%p0 ret;", "@!%p0 bra OUT;", "@%p0 bra IN; bra OUT; IN:", "@%p0 bra IN; ret; IN:"] {
        let run = |instr: &str, want: fn(u32) -> u32| {
            let body =
                format!("{half}{end} {instr} st.global.u32 [%mine], %v; ret; OUT: st.global.u32 [%mine], 99; exit;");
            let leaves_word = end.contains("OUT");
            gives("sm_80", ".shared .b32 s[64];\n", &body, 32, |t| match t {
                16.. => {
                    if leaves_word {
                        99
                    } else {
                        0
                    }
                }
                _ => want(t),
            });
        };
        run("vote.sync.ballot.b32 %v, %p1, -1;", |_| 0xFFFF);
        run("vote.sync.all.pred %p2, %p0, -1; selp.u32 %v, 1, 0, %p2;", |_| 1);
        run("shfl.sync.bfly.b32 %v, %lane, 1, 31, -1;", |t| t ^ 1);
        run("redux.sync.add.u32 %v, %lane, -1;", |_| 120);
        run("mov.u32 %r0, 7; match.any.sync.b32 %v, %r0, -1;", |_| 0xFFFF);
        run("bar.warp.sync -1; mov.u32 %v, 4;", |_| 4);
    }
}

/// Barriers of all threads are for those that have not ended as well, but others must not do anything in between.
#[test]
fn threads_that_have_ended_are_not_at_barriers() {
    let half = "setp.lt.u32 %p0, %lane, 16;\n";
    for end in ["@!%p0 exit;", "@!%p0 ret;", "@!%p0 bra OUT;", "@%p0 bra IN; bra OUT; IN:"] {
        for instr in ["bar.sync 0;", "barrier.sync.aligned 0;", "bar.red.popc.u32 %v, 0, %p0;"] {
            let body = format!("{half}{end} {instr} mov.u32 %v, 3; st.global.u32 [%mine], %v; OUT: ret;");
            gives("sm_80", "", &body, 32, |t| if t < 16 { 3 } else { 0 });
        }
    }
    let body = format!("{half}@!%p0 bra OUT;\n bar.sync 0;\n ret; OUT: st.global.u32 [%mine], 9;");
    fails("", &body, 32, ErrorCode::Divergence, "bar.sync");
}

/// Threads that do not end are missed at the instruction.
#[test]
fn threads_that_are_elsewhere_are_missed() {
    let half = "setp.lt.u32 %p0, %lane, 16;\n";
    for (body, at) in [
        ("@%p0 bra IN; bra OUT; IN: vote.sync.ballot.b32 %v, %p0, -1;\n OUT: bar.sync 0;", "vote.sync"),
        (
            "@%p0 bra IN; bra OUT; IN: shfl.sync.idx.b32 %v, %ti, 0, 31, -1;\n OUT: redux.sync.add.u32 %v, %ti, -1;",
            "shfl.sync",
        ),
        ("@%p0 bra IN; bra OUT; IN: bar.sync 0;\n OUT: bar.sync 0;", "bar.sync"),
        ("@%p0 vote.sync.ballot.b32 %v, %p0, -1;", "vote.sync"),
    ] {
        let says = fails("", &format!("{half}{body}"), 32, ErrorCode::Divergence, at);
        assert!(says.contains("0xffff0000"), "{says}");
    }
}

#[test]
fn directives_without_spaces() {
    accepted(
        "sm_80",
        ".shared.b32 s; .global.align 16 .b8 g[16]; .const.b32 c = 1; .shared .b32 a, b[4];\n",
        &[
            ".reg.b32 %q<4>; mov.u32 %q1, 1;",
            ".reg.b32%q; mov.u32 %q, 1;",
            ".reg .b32%q; mov.u32 %q, 1;",
            ".reg.pred%z; setp.eq.u32 %z, %r1, %r2;",
            "{.reg.b32 t;mov.u32 t,1;}",
            ".local.align 8 .b8 l[16]; .local .b32 m, n; st.local.u32 [n], 1;",
            "st.shared.u32 [a], 1; st.shared.u32 [b+12], 1;",
        ],
    );
    let text = header("sm_80") + ".visible.entry k(.param.u64 out, .param.align 8 .b8 s[16]){ret;}";
    let module = Module::parse(&text).unwrap();
    assert_eq!(module.entry("k").unwrap().param_sizes().collect::<Vec<_>>(), [8, 16]);
    assert_ne!(toolkit_accepts(&text, "sm_80"), Some(false));
}

const FUNCTIONS: &str = "
    .extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
    .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
    .global .align 1 .b8 what[6] = {120, 32, 60, 32, 52, 0};
    .global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};
    .global .align 1 .b8 name[2] = {102, 0};
    .func (.param .b32 r) later(.param .b32 a);
    .func (.param .b32 r) plus_one(.param .b32 a) {
        .reg .b32 %x; ld.param.u32 %x, [a]; add.u32 %x, %x, 1; st.param.b32 [r+0], %x; ret;
    }
    .func (.reg .b32 %r) sum(.reg .b32 %a, .reg .b32 %b) { add.u32 %r, %a, %b; ret; }
    .func (.param .b32 r) collatz(.param .b32 a) {
        .reg .b32 %x<4>; .reg .pred %p<2>; ld.param.u32 %x0, [a]; mov.u32 %x1, 0;
        L: setp.le.u32 %p0, %x0, 1; @%p0 bra DONE;
        and.b32 %x2, %x0, 1; setp.eq.u32 %p1, %x2, 0; add.u32 %x1, %x1, 1;
        @%p1 bra EVEN; mad.lo.u32 %x0, %x0, 3, 1; bra L; EVEN: shr.u32 %x0, %x0, 1; bra L;
        DONE: st.param.b32 [r], %x1; ret;
    }
    .func (.param .b32 r) nested(.param .b32 a) {
        .reg .b32 %x; .reg .pred %p; ld.param.u32 %x, [a]; setp.gt.u32 %p, %x, 9; mov.u32 %x, 0; st.param.b32 [r], %x;
        @%p ret;
        { .param .b32 p; ld.param.u32 %x, [a]; st.param.b32 [p], %x; .param .b32 q; call.uni (q), plus_one, (p);
          ld.param.u32 %x, [q]; }
        call (%x), sum, (%x, 100); st.param.b32 [r], %x; ret;
    }
    .func (.param .align 8 .b8 r[16]) pair(.param .align 8 .b8 a[16]) {
        .reg .b32 %x<4>; ld.param.v4.u32 {%x0, %x1, %x2, %x3}, [a]; st.param.v2.b32 [r], {%x3, %x2};
        st.param.v2.b32 [r+8], {%x1, %x0}; ret;
    }
    .func count() { .shared .align 4 .b32 n; .reg .b32 %x; atom.shared.add.u32 %x, [n], 1; ret; }
    .func clear() { .reg .b32 %x; .reg .pred %p; mov.u32 %x, %tid.x; setp.ne.u32 %p, %x, 0; @%p ret; ret; }
    .func (.param .b32 r) later(.param .b32 a) { .reg .b32 %x; ld.param.u32 %x, [a]; shl.b32 %x, %x, 1; st.param.b32 [r], %x; ret; }
    .func again() { call again; ret; }
";
/// A function that is no PTX.
const ODD: &str = ".func odd() { frobnicate; }\n";

/// A call with an argument and a result, as compilers write it.
fn call(function: &str, arg: &str) -> String {
    format!(
        "{{ .param .b32 param0; st.param.b32 [param0+0], {arg}; .param .b32 retval0; call.uni (retval0), {function}, (param0);
         ld.param.b32 %v, [retval0+0]; }}\n"
    )
}

#[test]
fn calls_of_functions() {
    let collatz = |mut n: u32| {
        let mut steps = 0;
        while n > 1 {
            n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
            steps += 1;
        }
        steps
    };
    let run = |body: &str, want: &dyn Fn(u32) -> u32| {
        gives("sm_80", FUNCTIONS, &format!("{body} st.global.u32 [%mine], %v;"), 32, want);
    };
    run(&call("plus_one", "%ti"), &|t| t + 1);
    run(&call("later", "%ti"), &|t| 2 * t);
    run(&call("collatz", "%ti"), &collatz);
    run(&call("nested", "%ti"), &|t| if t > 9 { 0 } else { t + 101 });
    // Twice, in a loop, and under a guard.
    run(&(call("collatz", "%ti") + &call("plus_one", "%v")), &|t| collatz(t) + 1);
    run(
        &format!(
            "mov.u32 %r0, 0; mov.u32 %v, %ti; L: {} add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 5; @%p0 bra L;",
            call("nested", "%v")
        ),
        &|t| (0..5).fold(t, |t, _| if t > 9 { 0 } else { t + 101 }),
    );
    run("mov.u32 %v, 7; setp.lt.u32 %p0, %ti, 4; @%p0 call (%v), sum, (%ti, 50); @!%p0 call (_), sum, (1, 2);", &|t| {
        if t < 4 { t + 50 } else { 7 }
    });
    // Registers and variables are passed for each other.
    run("call (%v), plus_one, (%ti);", &|t| t + 1);
    run(".param .b32 q; st.param.u32 [q], %ti; .param .b32 z; call (z), sum, (q, q); ld.param.u32 %v, [z];", &|t| {
        2 * t
    });
    run(
        ".param .align 8 .b8 p[16], q[16]; st.param.v4.u32 [p], {1, 2, 3, %ti}; call (q), pair, (p); ld.param.u32 %r0, [q];
         ld.param.u32 %r1, [q+12]; mad.lo.u32 %v, %r0, 10, %r1;",
        &|t| 10 * t + 1,
    );
    run("call clear, (); call.uni clear; mov.u32 %v, 5;", &|_| 5);
}

/// A shared variable of a function is the same in all its calls; here nothing has set it.
#[test]
fn shared_variables_of_functions() {
    let says = fails(FUNCTIONS, "call count;", 32, ErrorCode::Uninitialised, "count");
    assert!(says.contains("byte 0 of `n` (shared memory) was never written"), "{says}");
    let before = "
        .func (.reg .b32 %r) counted(.reg .b32 %other) {
            .shared .align 4 .b32 n; .reg .pred %first; setp.eq.u32 %first, %other, 0; @%first st.shared.u32 [n], 0;
            bar.sync 0; atom.shared.add.u32 %r, [n], 1; bar.sync 0; ld.shared.u32 %r, [n]; ret;
        }\n";
    let body = "call (%r0), counted, (%ti); bar.sync 0; call (%r1), counted, (1);
        mad.lo.u32 %v, %r0, 1000, %r1; st.global.u32 [%mine], %v;";
    gives("sm_80", before, body, 32, |_| 32_064);
}

#[test]
fn assertions() {
    let body = "
        setp.lt.u32 %p0, %ti, 4; @%p0 bra FINE;
        mov.u64 %rd0, what; cvta.global.u64 %rd0, %rd0; mov.u64 %rd1, file; cvta.global.u64 %rd1, %rd1;
        mov.u64 %rd2, name; cvta.global.u64 %rd2, %rd2;
        { .param .b64 param0; st.param.b64 [param0+0], %rd0; .param .b64 param1; st.param.b64 [param1+0], %rd1;
          .param .b32 param2; st.param.b32 [param2+0], 12; .param .b64 param3; st.param.b64 [param3+0], %rd2;
          .param .b64 param4; st.param.b64 [param4+0], 1;
          call.uni __assertfail, (param0, param1, param2, param3, param4);
        }
        FINE: st.global.u32 [%mine], %ti;";
    gives("sm_80", FUNCTIONS, body, 4, |t| t);
    let says = fails(FUNCTIONS, body, 6, ErrorCode::Trap, "__assertfail");
    assert!(says.contains("the assertion `x < 4` in `f` failed at a.cu:12"), "{says}");
    assert!(says.contains("thread (4, 0, 0)"), "{says}");
    // Another external function is an error where it is called.
    let print = "setp.lt.u32 %p0, %ti, 4; @%p0 bra FINE;
        { .param .b64 param0; st.param.b64 [param0], 0; .param .b64 param1; st.param.b64 [param1], 0; .param .b32 retval0;
          call.uni (retval0), vprintf, (param0, param1); }
        FINE: st.global.u32 [%mine], %ti;";
    gives("sm_80", FUNCTIONS, print, 4, |t| t);
    let says = fails(FUNCTIONS, print, 6, ErrorCode::Unknown, "vprintf");
    assert!(says.contains("`vprintf` is defined elsewhere"), "{says}");
}

/// The ABI passes predicates and integers of 16 bits in `.param` space only; ptxas refuses calls with others, and accepts `.b16`.
#[test]
fn registers_that_are_not_passed_to_functions() {
    for ty in ["pred", "u16", "s16"] {
        let argument = (format!(".func odd(.reg .{ty} %a) {{ ret; }}\n"), format!(".reg .{ty} %x; call odd, (%x);"));
        let result = (format!(".func (.reg .{ty} %a) odd() {{ ret; }}\n"), format!(".reg .{ty} %x; call (%x), odd;"));
        for (function, body) in [argument, result] {
            let text = module_of("sm_80", &function, &body);
            let error = Module::parse(&text).expect_err(&text);
            assert_eq!((error.code(), error.line()), (ErrorCode::Operand, 4), "{error}");
            assert!(error.to_string().contains(&format!("in registers of type `.{ty}`")), "{error}");
            assert_ne!(toolkit_accepts(&text, "sm_80"), Some(true), "{text}");
            let uncalled = module_of("sm_80", &function, "");
            let untyped = text.replace(&format!(".reg .{ty}"), ".reg .b16");
            for text in [uncalled, untyped] {
                Module::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
                assert_ne!(toolkit_accepts(&text, "sm_80"), Some(false), "{text}");
            }
        }
    }
}

#[test]
fn calls_that_are_refused() {
    for (body, code, says) in [
        ("call again;", ErrorCode::Unknown, "`again` calls itself"),
        ("call odd;", ErrorCode::Unknown, "`frobnicate` is no instruction"),
        ("call (%v), sum, (%ti);", ErrorCode::Operand, "`sum` has 2 parameters, not 1"),
        ("call sum, (%ti, %ti);", ErrorCode::Operand, "`sum` has 1 results, not 0"),
        ("call (%rd0), sum, (%ti, %ti);", ErrorCode::Operand, "is declared `.b64`"),
        (".param .b64 q; .param .b32 r; call (r), plus_one, (q);", ErrorCode::Operand, "has another size"),
        ("call %rd0;", ErrorCode::Unknown, "a call by an address"),
        (".param .b32 q; mov.u32 %v, q;", ErrorCode::Unknown, "the address of an argument or result of a call"),
    ] {
        let error = Module::parse(&module_of("sm_80", &format!("{FUNCTIONS}{ODD}"), body)).expect_err(body);
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    // What is not called need not be known.
    let options = Options::default();
    assert!(Module::parse(&module_of("sm_80", ODD, "mov.u32 %v, 1;")).is_ok());
    // An argument that was not stored is uninitialised.
    let body =
        ".param .b32 q; .param .b32 r; call (r), plus_one, (q); ld.param.u32 %v, [r]; st.global.u32 [%mine], %v;";
    let error = run_body("sm_80", FUNCTIONS, body, 1, &options).expect_err("nothing was stored");
    assert_eq!(error.code(), ErrorCode::Uninitialised, "{error}");
}

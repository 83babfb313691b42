//! What is found while a kernel runs, with its place; and what is not an error though it looks like one.

use crate::harness::{fails, gives, header, module_of, run_body};
use titan_nv::emu::{DevicePtr, ErrorCode, Launch, Memory, Module, Options, Param, Uninitialised};

#[test]
fn registers_must_be_written_before() {
    let message = fails("", "add.u32 %v, %r7, 1;", 32, ErrorCode::Uninitialised, "add.u32 %v");
    assert!(message.contains("register `%r7` is read and was never written"), "{message}");
    let message = fails("", "@%p3 bra X; X: mov.u32 %v, 0;", 32, ErrorCode::Uninitialised, "bra X");
    assert!(message.contains("predicate `%p3`"), "{message}");
    // Written in some threads, read in others.
    let message = fails(
        "",
        "setp.lt.u32 %p0, %ti, 7; @%p0 mov.u32 %r0, 1;\n add.u32 %v, %r0, 1;",
        32,
        ErrorCode::Uninitialised,
        "add.u32 %v",
    );
    assert!(message.contains("thread (7, 0, 0) of block (0, 0, 0)"), "{message}");
    // What is not selected is not read.
    gives("sm_80", "", "setp.ge.u32 %p0, %ti, 0; selp.u32 %v, 3, %r9, %p0; st.global.u32 [%mine], %v;", 32, |_| 3);
}

#[test]
fn bytes_must_be_written_before() {
    let shared = ".shared .align 8 .b8 buf[64];\n";
    let message = fails(
        shared,
        "mov.u32 %r0, buf; st.shared.u8 [%r0], 1; ld.shared.u32 %v, [%r0];",
        1,
        ErrorCode::Uninitialised,
        "ld.shared.u32",
    );
    assert!(message.contains("byte 1 of `buf` (shared memory) was never written"), "{message}");
}

#[test]
fn what_was_never_written_may_be_moved_about() {
    let options = Options { uninitialised: Uninitialised::Propagate, ..Options::default() };
    let shared = ".shared .align 8 .b8 buf[64];\n";
    let moved = "mov.u32 %r0, buf; ld.shared.v2.u32 {%r1, %r2}, [%r0]; add.u32 %r3, %r1, 1; st.shared.u32 [%r0+8], %r3; mov.u32 %v, 4;";
    assert_eq!(run_body("sm_80", shared, &format!("{moved} st.global.u32 [%mine], %v;"), 1, &options).unwrap(), [4]);
    for decides in [
        "ld.shared.u32 %r4, [%r0+8]; setp.eq.u32 %p0, %r4, 0; @%p0 mov.u32 %v, 1;",
        "add.u32 %r4, %r3, %r0; ld.shared.u32 %v, [%r4];",
    ] {
        let error = run_body("sm_80", shared, &format!("{moved} {decides}"), 1, &options).expect_err(decides);
        assert_eq!(error.code(), ErrorCode::Uninitialised, "{error}");
    }
    // The error is reported to the host, too.
    let text = module_of("sm_80", shared, &format!("{moved} st.global.u32 [%mine], %r3;"));
    let module = Module::parse(&text).unwrap();
    let mut memory = Memory::new();
    let out = memory.upload("result", &[0; 4]);
    let params = [Param::Ptr(out)];
    let launch = Launch { grid: [1; 3], block: [1; 3], dynamic_shared: 0, cluster: None, params: &params };
    module.entry("k").unwrap().run(&launch, &mut memory, &options).unwrap();
    let error = memory.read(out, 4).unwrap_err();
    assert_eq!((error.code(), memory.read_any(out, 4).unwrap()), (ErrorCode::Uninitialised, vec![0xFF; 4]));
    assert!(error.to_string().contains("byte 0 of `result`"), "{error}");
}

#[test]
fn accesses_stay_inside_their_allocation() {
    let message = fails("", "st.global.u32 [%mine+128], 0;", 32, ErrorCode::OutOfBounds, "st.global");
    assert!(message.contains("they begin 0 bytes after the end of `out` of 128 bytes"), "{message}");
    let message = fails("", "st.global.u32 [%mine+-4], 0;", 32, ErrorCode::OutOfBounds, "st.global");
    assert!(message.contains("4 bytes before `out`") && message.contains("thread (0, 0, 0)"), "{message}");
    let message =
        fails("", "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%out+128];", 1, ErrorCode::OutOfBounds, "ld.global");
    assert!(message.contains("124 bytes after the end of `out`"), "{message}");
    // Out of one shared variable is not into the next.
    let message = fails(
        ".shared .align 4 .b8 a[64];\n.shared .align 4 .b8 b[64];\n",
        "mov.u32 %r0, a; st.shared.u32 [%r0+64], 0;",
        1,
        ErrorCode::OutOfBounds,
        "st.shared",
    );
    assert!(message.contains("after the end of `a`"), "{message}");
    fails("", "mov.u64 %rd0, 0; ld.global.u32 %v, [%rd0];", 1, ErrorCode::OutOfBounds, "ld.global");
    // An index that wraps at 32 bits leads nowhere.
    fails(
        "",
        "mov.u32 %r0, 0xFFFFFFFF; mad.wide.u32 %rd0, %r0, 4, %out; ld.global.u32 %v, [%rd0];",
        1,
        ErrorCode::OutOfBounds,
        "ld.global",
    );
}

#[test]
fn freed_and_constant_memory() {
    let text = module_of("sm_80", "", "st.global.u32 [%mine], 1;");
    let module = Module::parse(&text).unwrap();
    let mut memory = Memory::new();
    let out = memory.upload("weights", &[0; 4]);
    let run = |memory: &mut Memory| {
        let params = [Param::Ptr(out)];
        let launch = Launch { grid: [1; 3], block: [1; 3], dynamic_shared: 0, cluster: None, params: &params };
        module.entry("k").unwrap().run(&launch, memory, &Options::default())
    };
    memory.set_writable(out, false);
    let error = run(&mut memory).unwrap_err();
    assert!(
        error.code() == ErrorCode::Permission && error.to_string().contains("`weights`, which may not be written"),
        "{error}"
    );
    memory.set_writable(out, true);
    run(&mut memory).unwrap();
    memory.free(out);
    let error = run(&mut memory).unwrap_err();
    assert!(error.to_string().contains("`weights`, which is freed"), "{error}");
    assert!(memory.read(out, 1).is_err() && memory.write(DevicePtr::NULL, &[0]).is_err());
}

#[test]
fn addresses_are_multiples_of_the_size() {
    let message = fails("", "ld.global.u32 %v, [%out+2];", 1, ErrorCode::Misaligned, "ld.global");
    assert!(message.contains("not a multiple of 4"), "{message}");
    fails("", "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%out+4];", 32, ErrorCode::Misaligned, "ld.global");
    fails(
        ".shared .align 16 .b8 buf[64];\n",
        "mov.u32 %r0, buf; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%v}, [%r0+8];",
        32,
        ErrorCode::Misaligned,
        "ldmatrix",
    );
}

#[test]
fn instructions_that_need_all_threads() {
    let part = "setp.lt.u32 %p0, %ti, 7; @%p0 bra X;\n";
    let message = fails("", &format!("{part} bar.sync 0;\n X: mov.u32 %v, 0;"), 32, ErrorCode::Divergence, "bar.sync");
    assert!(
        message.contains("threads 0xffffff80 of the warp") && message.contains("0x0000007f have not come"),
        "{message}"
    );
    fails("", "setp.lt.u32 %p0, %ti, 7;\n@%p0 bar.sync 0;", 32, ErrorCode::Divergence, "bar.sync");
    fails(
        "",
        &format!("{part} shfl.sync.idx.b32 %v, %ti, 0, 31, -1;\n X: mov.u32 %v, 0;"),
        32,
        ErrorCode::Divergence,
        "shfl.sync",
    );
    let message = fails("", "shfl.sync.idx.b32 %v, %ti, 0, 31, 0xFF;", 32, ErrorCode::Divergence, "shfl.sync");
    assert!(message.contains("not in the member mask 0x000000ff"), "{message}");
    let mma = "mov.b32 %r0, 0; mov.f32 %f0, 0f00000000; mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r0, %r0}, {%r0}, {%f0, %f0, %f0, %f0};";
    let message = fails("", mma, 16, ErrorCode::Divergence, "mma.sync");
    assert!(message.contains("needs 32 threads"), "{message}");
}

#[test]
fn reading_a_thread_that_is_not_there() {
    let body = "setp.lt.u32 %p0, %lane, 16; mov.u32 %v, 0; @%p0 shfl.sync.idx.b32 %v, %lane, 20, 31, 0xFFFF;\n add.u32 %r0, %v, 1;";
    fails("", body, 32, ErrorCode::Uninitialised, "add.u32 %r0");
}

#[test]
fn traps_and_limits() {
    fails("", "setp.eq.u32 %p0, %ti, 3; @%p0 trap;", 32, ErrorCode::Trap, "trap");
    let options = Options { max_steps: 1000, ..Options::default() };
    let error = run_body("sm_80", "", "L: add.u32 %v, %ti, 1; bra L;", 32, &options).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Limit, "{error}");
}

#[test]
fn errors_name_the_source() {
    let text = header("sm_80")
        + ".file 1 \"src/gemm.rs\"\n.file 2 \"src/math.rs\"\n.visible .entry k() {\n.reg .b32 %r<3>;\n.loc 1 7 5\nmov.u32 %r0, 1;\n.loc 2 40 9, function_name $L__x, inlined_at 1 12 3\nadd.u32 %r1, %r0, %r2;\n.loc 1 13 1\nret;\n}\n.section .debug_str { $L__x: .b8 0 }\n";
    let module = Module::parse(&text).unwrap();
    let launch = Launch { grid: [2, 1, 1], block: [33, 2, 1], dynamic_shared: 0, cluster: None, params: &[] };
    let error = module.entry("k").unwrap().run(&launch, &mut Memory::new(), &Options::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "error[emu::uninitialised]: register `%r2` is read and was never written\n  at PTX line 11: add.u32 %r1, %r0, %r2;\n    \
         from src/math.rs:40:9\n    inlined at src/gemm.rs:12:3\n  in thread (0, 0, 0) of block (0, 0, 0)"
    );
    assert_eq!((error.report().site.sources[0].line, error.line()), (40, 11));
}

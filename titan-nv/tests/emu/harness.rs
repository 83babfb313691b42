//! Small kernels from single instructions, and how to run them.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use titan_nv::emu::{DevicePtr, EmuError, ErrorCode, Launch, Memory, Module, Options, Param};

/// An instruction, and what it gives: operands to result, one for each thread.
pub(crate) type Case<'a> = (&'a str, &'a [(&'a [u64], u64)]);

/// A module's first lines.
pub(crate) fn header(target: &str) -> String {
    // The least version that has every instruction used here on the target.
    let version = match target {
        "sm_80" => "7.8",
        "sm_89" => "8.4",
        _ => "8.1",
    };
    format!(".version {version}\n.target {target}\n.address_size 64\n")
}

/// Kernel `k{i}`: loads operands into `%x0..` (64 bits), `%a0..` (32) and `%h0..` (16), runs the body, and stores `%d`
/// (64 bits), which is `%r` or `%s` widened if the body sets those, or 1 where it sets `%p`.
fn kernel(i: usize, body: &str, operands: usize) -> String {
    let uses = |name: &str| {
        body.contains(&format!("{name},")) || body.contains(&format!("{name}|")) || body.contains(&format!("{name}}}"))
    };
    let mut text = format!(
        ".visible .entry k{i}(.param .u64 in, .param .u64 out)\n{{\n  .reg .b64 %x<9>, %d, %in, %out, %at, %e<4>;\n  \
         .reg .b32 %a<9>, %r, %ti, %t<8>;\n  .reg .b16 %h<9>, %s, %u<4>;\n  .reg .pred %p, %q<4>;\n  \
         .reg .f32 %f<4>;\n  .reg .f64 %fd<4>;\n  mov.u32 %ti, %tid.x;\n  ld.param.u64 %in, [in];\n  \
         ld.param.u64 %out, [out];\n  mul.wide.u32 %at, %ti, {};\n  add.u64 %in, %in, %at;\n  \
         mul.wide.u32 %at, %ti, 8;\n  add.u64 %out, %out, %at;\n",
        8 * operands
    );
    for n in 0..operands {
        text += &format!(
            "  ld.global.u64 %x{n}, [%in+{}];\n  cvt.u32.u64 %a{n}, %x{n};\n  cvt.u16.u64 %h{n}, %x{n};\n",
            8 * n
        );
    }
    text += &format!("  {body}\n");
    let result = if uses("%d") {
        ""
    } else if uses("%r") {
        "cvt.u64.u32 %d, %r;"
    } else if uses("%s") {
        "cvt.u64.u16 %d, %s;"
    } else {
        "selp.u64 %d, 1, 0, %p;"
    };
    text + &format!("  {result}\n  st.global.u64 [%out], %d;\n  ret;\n}}\n")
}

/// Checks instructions on a target, each in a kernel of its own.
pub(crate) fn check(target: &str, cases: &[Case<'_>]) {
    let kernels = cases.iter().enumerate().map(|(i, (body, c))| kernel(i, body, c[0].0.len()));
    let text = header(target) + &kernels.collect::<String>();
    let module = Module::parse(&text).unwrap_or_else(|e| panic!("{e}\n{}", line(&text, e.line())));
    assemble(&text, target);
    for (i, (body, threads)) in cases.iter().enumerate() {
        for group in threads.chunks(32) {
            let got = run_cases(&module, i, group);
            for ((operands, want), got) in group.iter().zip(got) {
                assert_eq!(got, *want, "{body}\n  operands {operands:#x?}\n  got {got:#x} instead of {want:#x}");
            }
        }
    }
}

fn run_cases(module: &Module, i: usize, threads: &[(&[u64], u64)]) -> Vec<u64> {
    let mut memory = Memory::new();
    let bytes: Vec<u8> = threads.iter().flat_map(|(ops, _)| ops.iter().flat_map(|x| x.to_le_bytes())).collect();
    let (input, output) = (memory.upload("in", &bytes), memory.alloc_named("out", threads.len() * 8));
    let block = [threads.len() as u32, 1, 1];
    let params = [Param::Ptr(input), Param::Ptr(output)];
    let launch = Launch { grid: [1, 1, 1], block, dynamic_shared: 0, cluster: None, params: &params };
    let kernel = module.entry(&format!("k{i}")).unwrap();
    kernel.run(&launch, &mut memory, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    words(&memory, output, threads.len())
}

/// So many words of 64 bits.
pub(crate) fn words(memory: &Memory, at: DevicePtr, n: usize) -> Vec<u64> {
    let bytes = memory.read(at, n * 8).unwrap();
    bytes.chunks(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect()
}

/// So many words of 32 bits.
pub(crate) fn words32(memory: &Memory, at: DevicePtr, n: usize) -> Vec<u32> {
    let bytes = memory.read(at, n * 4).unwrap();
    bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn line(text: &str, n: u32) -> &str {
    text.lines().nth(n.saturating_sub(1) as usize).unwrap_or_default()
}

/// A kernel `k(out)` of this body, with usual registers declared, and `%ti`, `%lane`, `%out` and `%mine` (the address
/// of this thread's 32-bit word of the output) set.
pub(crate) fn module_of(target: &str, shared: &str, body: &str) -> String {
    header(target)
        + shared
        + ".visible .entry k(.param .u64 out)\n{\n  .reg .b64 %rd<9>, %out, %mine, %state;\n  .reg .b32 %r<32>, %ti, %lane, %v;\n  \
           .reg .b16 %h<8>;\n  .reg .pred %p<8>;\n  .reg .f32 %f<8>;\n  mov.u32 %ti, %tid.x;\n  \
           mov.u32 %lane, %laneid;\n  ld.param.u64 %out, [out];\n  mad.wide.u32 %mine, %ti, 4, %out;\n"
        + body
        + "\n  ret;\n}\n"
}

/// What a kernel of [`module_of`] leaves in its output, one word for each thread.
pub(crate) fn run_body(
    target: &str,
    shared: &str,
    body: &str,
    threads: u32,
    options: &Options,
) -> Result<Vec<u32>, EmuError> {
    let text = module_of(target, shared, body);
    let module = Module::parse(&text).unwrap_or_else(|e| panic!("{e}\n{}", line(&text, e.line())));
    assemble(&text, target);
    let mut memory = Memory::new();
    let out = memory.upload("out", &vec![0; threads as usize * 4]);
    let params = [Param::Ptr(out)];
    let launch = Launch { grid: [1, 1, 1], block: [threads, 1, 1], dynamic_shared: 0, cluster: None, params: &params };
    module.entry("k")?.run(&launch, &mut memory, options)?;
    Ok(words32(&memory, out, threads as usize))
}

/// That a kernel gives what a function of the thread says.
pub(crate) fn gives(target: &str, shared: &str, body: &str, threads: u32, want: impl Fn(u32) -> u32) {
    let options = Options { sanitize: true, ..Options::default() };
    let got = run_body(target, shared, body, threads, &options).unwrap_or_else(|e| panic!("{e}"));
    for (i, got) in got.into_iter().enumerate() {
        assert_eq!(got, want(i as u32), "thread {i} of\n{body}");
    }
}

/// That a kernel fails by a rule, at the line of the instruction that contains `at`; the message.
pub(crate) fn fails(shared: &str, body: &str, threads: u32, code: ErrorCode, at: &str) -> String {
    let error = run_body("sm_80", shared, body, threads, &Options::default()).expect_err(body);
    assert_eq!(error.code(), code, "{error}");
    let text = module_of("sm_80", shared, body);
    assert!(line(&text, error.line()).contains(at), "at `{}` instead of `{at}`: {error}", line(&text, error.line()));
    let options = Options { sanitize: true, ..Options::default() };
    let sanitized = run_body("sm_80", shared, body, threads, &options).expect_err(body);
    assert_eq!(sanitized.code(), code, "{sanitized}");
    error.to_string()
}

/// Has the assembler of the toolkit look at a text, if there is one; it must accept it.
pub(crate) fn assemble(text: &str, target: &str) {
    let Some((accepted, said)) = toolkit(text, target) else { return };
    let numbered = || text.lines().enumerate().map(|(i, l)| format!("{:4} {l}\n", i + 1)).collect::<String>();
    assert!(accepted, "{said}\n{}", numbered());
}

/// Whether the assembler of the toolkit accepts a text; `None` if there is no assembler.
pub(crate) fn toolkit_accepts(text: &str, target: &str) -> Option<bool> {
    toolkit(text, target).map(|(accepted, _)| accepted)
}

fn toolkit(text: &str, target: &str) -> Option<(bool, String)> {
    static PTXAS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = || {
        let path = PathBuf::from(std::env::var_os("TITAN_PTXAS").unwrap_or_else(|| "ptxas".into()));
        let runs = Command::new(&path).arg("--version").output().is_ok_and(|o| o.status.success());
        if !runs {
            let line = format!(
                "SKIPPED the toolkit's assembler on the emulator's tests: no `{}` (TITAN_PTXAS)\n",
                path.display()
            );
            // Not `eprintln!`, which is kept back for tests that pass.
            std::io::stderr().write_all(line.as_bytes()).unwrap();
        }
        runs.then_some(path)
    };
    let ptxas = PTXAS.get_or_init(found).as_ref()?;
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{:?}.ptx", std::thread::current().id()));
    std::fs::write(&file, text).unwrap();
    let arch = format!("-arch={target}");
    let out = Command::new(ptxas).args([&arch, "-o", "/dev/null"]).arg(&file).output().unwrap();
    Some((out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned()))
}

pub(crate) fn f(x: f32) -> u64 {
    x.to_bits().into()
}

pub(crate) fn d(x: f64) -> u64 {
    x.to_bits()
}

pub(crate) fn h(x: f32) -> u64 {
    titan_core::num::f16_from_f32(x).into()
}

pub(crate) fn b(x: f32) -> u64 {
    titan_core::num::bf16_from_f32(x).into()
}

/// A negative number as 32 bits.
pub(crate) fn s(x: i32) -> u64 {
    x.cast_unsigned().into()
}

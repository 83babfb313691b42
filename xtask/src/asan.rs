//! The code that is `unsafe` and runs without a GPU, under AddressSanitizer: the memory, the threads and the kernels of the CPU
//! device, and the runtime over it and over an emulated GPU.
//!
//! The sanitizer is an unstable option of rustc, which a stable rustc accepts with `RUSTC_BOOTSTRAP`. Its library is part of rustc on
//! Linux; elsewhere this is reported and nothing is run. Code for the host, which is the macro, has no sanitizer and is not built again.

use crate::cargo::{host, rustc};
use crate::test::{Group, Options, run_groups};
use std::io;
use std::path::Path;
use std::process::Command;

/// Why rustc cannot do it here, or for which machine it compiles.
fn target() -> io::Result<Result<String, String>> {
    let host = host()?;
    let sysroot = Command::new(rustc()).args(["--print", "sysroot"]).output()?;
    let sysroot = String::from_utf8_lossy(&sysroot.stdout).into_owned();
    let libraries = Path::new(sysroot.trim()).join("lib/rustlib").join(&host).join("lib");
    let is_runtime = |name: &str| name.starts_with("librustc-") && name.ends_with("_rt.asan.a");
    let found = std::fs::read_dir(&libraries)?
        .any(|file| file.is_ok_and(|file| is_runtime(&file.file_name().to_string_lossy())));
    Ok(if found { Ok(host) } else { Err(format!("rustc has no AddressSanitizer for {host}")) })
}

/// Runs the tests; whether all passed, or none could be run.
#[expect(clippy::print_stdout, reason = "skipped tests are printed to the terminal")]
pub(crate) fn run() -> io::Result<bool> {
    let target = match target()? {
        Ok(target) => target,
        Err(why) => {
            println!("SKIPPED AddressSanitizer: {why}");
            return Ok(true);
        }
    };
    let mut build = crate::cargo::cargo();
    build.args([
        "test",
        "--locked",
        "--target",
        &target,
        "-p",
        "titan-gpu-cpu",
        "-p",
        "titan-gpu",
        "-p",
        "library-tests",
    ]);
    build.args(["--no-default-features", "--features", "titan-gpu/cpu-matmul,titan-gpu/emulator"]);
    build.env("RUSTFLAGS", SANITIZER).env("RUSTC_WRAPPER", std::env::current_exe()?).env(VARIABLE, "1");
    // One test limits its address space, which the sanitizer needs most of.
    let skipped = ["--skip", "tiles_without_room_are_an_error"];
    // Barrier programs in the simulator and the emulator, which the program `simulator` runs, are safe Rust.
    let tidy = ["executor", "threads", "runtime_order", "runtime_await", "runtime_memory", "views", "tasks"];
    // Tests that forget what they should drop, on purpose, leak.
    let forgetful = ["runtime_launch", "runtime_lifetimes", "runtime_lent", "runtime_dlpack"];
    let group = |programs: &[&'static str], leaks: bool| Group {
        programs: programs.to_vec(),
        // Some tests allocate more memory than there is, and expect the failure.
        environment: vec![(
            "ASAN_OPTIONS",
            format!("allocator_may_return_null=1:detect_leaks={}", u8::from(leaks)).into(),
        )],
    };
    let options = Options { passed_on: skipped.map(str::to_owned).to_vec(), ..Options::default() };
    run_groups(build, &[group(&tidy, true), group(&forgetful, false)], &options)
}

/// What makes a crate one with the sanitizer.
const SANITIZER: &str = "-Zsanitizer=address";

/// Set while this program is cargo's compiler.
const VARIABLE: &str = "TITAN_ASAN";

/// The crates whose code is safe, and of which little runs here: what optimizing them would cost is never gained.
const UNOPTIMIZED: [&str; 3] = ["titan_core", "titan_sim", "titan_nv"];

/// Whether cargo runs this program in place of the compiler.
pub(crate) fn is_compiler() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// The command that compiles a crate: `args` are the compiler and its arguments. Only crates with the sanitizer see `RUSTC_BOOTSTRAP`:
/// build scripts look at it, and would have the macro built again.
pub(crate) fn compiler(compiler: &str, args: &[String]) -> Command {
    let mut command = Command::new(compiler);
    command.args(args);
    if args.iter().any(|arg| arg == SANITIZER) {
        command.env("RUSTC_BOOTSTRAP", "1");
        let name = args.iter().position(|arg| arg == "--crate-name").and_then(|at| args.get(at + 1));
        if name.is_some_and(|name| UNOPTIMIZED.contains(&name.as_str())) {
            command.arg("-Copt-level=0");
        }
    }
    command
}

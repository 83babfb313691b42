//! The code that is `unsafe` and runs without a GPU, under AddressSanitizer: the memory, the threads and the kernels of the CPU
//! device, and the runtime over it and over an emulated GPU.
//!
//! The sanitizer is an unstable option of rustc, which a stable rustc accepts with `RUSTC_BOOTSTRAP`. Its library is part of rustc on
//! Linux; elsewhere this is reported and nothing is run. Everything is built again, into a separate folder.

use super::test::cargo;
use std::io;
use std::path::Path;
use std::process::Command;

/// Why rustc cannot do it here, or for which machine it compiles.
fn host() -> io::Result<Result<String, String>> {
    let ask = |args: &[&str]| {
        let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).args(args).output()?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let version = ask(&["-vV"])?;
    let Some(host) = version.lines().find_map(|line| line.strip_prefix("host: ")) else {
        return Ok(Err("rustc does not say for which machine it compiles".to_owned()));
    };
    let libraries = Path::new(ask(&["--print", "sysroot"])?.trim()).join("lib/rustlib").join(host).join("lib");
    let is_runtime = |name: &str| name.starts_with("librustc-") && name.ends_with("_rt.asan.a");
    let found = std::fs::read_dir(&libraries)?
        .any(|file| file.is_ok_and(|file| is_runtime(&file.file_name().to_string_lossy())));
    Ok(if found { Ok(host.to_owned()) } else { Err(format!("rustc has no AddressSanitizer for {host}")) })
}

/// Runs the tests; whether all passed, or none could be run.
#[expect(clippy::print_stdout, reason = "skipped tests are printed to the terminal")]
pub(crate) fn run() -> io::Result<bool> {
    let host = match host()? {
        Ok(host) => host,
        Err(why) => {
            println!("SKIPPED AddressSanitizer: {why}");
            return Ok(true);
        }
    };
    let folder = crate::tools::target()?.join("asan");
    let run = |args: &[&str], leaks: bool| {
        let mut tests = cargo();
        tests.args(["test", "--no-fail-fast", "--target", &host, "--target-dir"]).arg(&folder).args(args);
        tests.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address");
        // Some tests allocate more memory than there is, and expect the failure.
        tests.env("ASAN_OPTIONS", format!("allocator_may_return_null=1:detect_leaks={}", u8::from(leaks)));
        tests.status().map(|status| status.success())
    };
    // One test limits its address space, which the sanitizer needs most of.
    let skipped = "tiles_without_room_are_an_error";
    // Barrier programs in the simulator and the emulator, which `--test simulator` runs, are safe Rust.
    let args = ["-p", "titan-gpu-cpu", "--test", "executor", "--test", "threads", "--", "--skip", skipped];
    let mut passed = run(&args, true)?;
    // Tests that forget what they should drop, on purpose, leak.
    let (tidy, forgetful) = (["order", "await", "memory"], ["launch", "lifetimes", "lent"]);
    for (tests, leaks) in [(&tidy[..], true), (&forgetful[..], false)] {
        let names: Vec<String> = tests.iter().map(|name| format!("runtime_{name}")).collect();
        let mut args = vec!["-p", "titan-gpu", "--no-default-features", "--features", "cpu,emulator"];
        args.extend(names.iter().flat_map(|name| ["--test", name]));
        passed &= run(&args, leaks)?;
    }
    let others =
        ["-p", "library-tests", "--features", "titan/cpu,titan/emulator", "--test", "views", "--test", "tasks"];
    passed &= run(&others, true)?;
    Ok(passed)
}

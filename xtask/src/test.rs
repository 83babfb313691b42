//! Runs the workspace's tests with `cargo test`, which a fresh machine has.
//!
//! A test that cannot run here passes and writes a line `SKIPPED <test>: <why>` to stderr. The lines are repeated at the
//! end, so that a skipped test is not mistaken for one that ran.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// The line that a skipped test prints.
const MARK: &str = "SKIPPED ";

/// All packages with all features, whatever is then run of them: so nothing is built twice.
const EVERY: [&str; 4] = ["test", "--workspace", "--features", "titan-gpu/emulator,titan-gpu/simulator,titan-gpu/hip"];

/// The tests that ask for a device.
const ON_DEVICES: [&str; 7] =
    ["language", "examples", "lang_semantics", "pipelines", "runtime_launch", "runtime_await", "runtime_lifetimes"];

/// Every test of the workspace; whether all passed.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the outcome is printed to the terminal")]
pub(crate) fn run(args: &[String]) -> io::Result<bool> {
    let mut tests = cargo();
    for tool in crate::tools::ALL.iter().filter(|tool| std::env::var_os(tool.variable).is_none()) {
        match tool.brought(None) {
            Ok(path) => drop(tests.env(tool.variable, path)),
            Err(why) => eprintln!("xtask: tests run without {}: {why}", tool.name),
        }
    }
    if let Err(why) = crate::llvm::bring() {
        eprintln!("xtask: tests of the AMD back end run without LLVM 19: {why}");
    }
    let mut child = tests.args(EVERY).arg("--no-fail-fast").args(args).stderr(Stdio::piped()).spawn()?;
    let mut skipped = Vec::new();
    for line in child.stderr.take().into_iter().flat_map(|e| BufReader::new(e).lines()) {
        let line = line?;
        // Tests print while others do: the mark may follow something on the same line.
        if let Some(at) = line.find(MARK) {
            skipped.push(line[at + MARK.len()..].to_owned());
        }
        eprintln!("{line}");
    }
    let passed = child.wait()?.success() & emulated(args)? & driven(args)?;
    println!("\nskipped here: {}", if skipped.is_empty() { "nothing that needs only a CPU" } else { "" });
    skipped.iter().for_each(|s| println!("  {s}"));
    for (what, why) in absent() {
        println!("  {what}: {why}");
    }
    println!("tests: {}", if passed { "all passed" } else { "FAILED" });
    Ok(passed)
}

/// The tests that ask for a device, once more.
fn on_device(name: &str) -> Command {
    let mut tests = cargo();
    tests.args(EVERY).args(ON_DEVICES.iter().flat_map(|test| ["--test", test])).env("TITAN_DEVICE", name);
    tests
}

/// With the embedded PTX in the emulator, that for each target: only if every test was asked for.
fn emulated(args: &[String]) -> io::Result<bool> {
    let mut passed = true;
    for device in ["emulator:sm_80", "emulator:sm_90a"] {
        passed &= !args.is_empty() || on_device(device).status()?.success();
    }
    Ok(passed)
}

/// Through the CUDA runtime, with a driver that needs no GPU: placed where the loader looks first, as late as allowed and in a
/// random order, with GPUs of both targets.
fn driven(args: &[String]) -> io::Result<bool> {
    if !args.is_empty() || !cfg!(target_os = "linux") {
        return Ok(true);
    }
    // The tests have built the library beside themselves.
    let (target, library) = (crate::tools::target()?, "libcuda_emulator.so");
    let folder = target.join("cuda-emulator");
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(target.join("debug/deps").join(library), folder.join("libcuda.so.1"))?;
    let mut passed = true;
    for (order, gpu) in [("late", "sm_80"), ("random:1", "sm_80"), ("random:2", "sm_90")] {
        let mut tests = on_device("cuda:0");
        tests.env("LD_LIBRARY_PATH", &folder).env("CUDA_EMULATOR_ORDER", order);
        tests.env("CUDA_EMULATOR_DEVICES", format!("{gpu}:sms=3:memory=256"));
        passed &= tests.status()?.success();
    }
    Ok(passed)
}

/// What no test needs, but some would use.
fn absent() -> Vec<(&'static str, &'static str)> {
    let mut all = vec![("tests on GPUs", "`cargo xtask bundle` makes what runs there")];
    if !Path::new("/proc/driver/nvidia/version").exists() && !Path::new("/dev/kfd").exists() {
        all.push(("devices", "no NVIDIA and no AMD driver was found; everything ran on the CPU"));
    }
    all
}

/// Rewrites what tests compare with.
pub(crate) fn bless() -> io::Result<bool> {
    let status = cargo()
        .args(["test", "--workspace", "--no-fail-fast"])
        .env("TITAN_BLESS", "1")
        .env("TRYBUILD", "overwrite")
        .status()?;
    Ok(status.success())
}

/// Only the rules of the repository.
pub(crate) fn tidy() -> io::Result<bool> {
    Ok(cargo().args(["test", "-p", "xtask", "--test", "tidy"]).status()?.success())
}

/// The cargo that runs this program, in the repository's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    command
}

//! Systems other than the one that this runs on. The library is checked for macOS and for WebAssembly, without a warning. The tests whose outcome
//! may depend on the system are built for Windows and run under wine: those of the language, the CPU device, the runtime, artifacts and
//! emulated devices.
//!
//! What cannot be installed is reported, and what needs it is skipped. Nothing of this is in the quick depth: the checks alone take a minute of CPU
//! time when everything else is built.
//!
//! Deliberately absent: tests on Windows and macOS themselves, where hosted CI compiles everything and runs one kernel; the emulated drivers,
//! which are libraries of Linux; tests of the compiler, whose outcome no system changes.

mod wine;

use crate::cargo::{FEATURES, cargo};
use crate::install;
use crate::test::{Options, run_elsewhere};
use std::io;

/// A system for which the library is checked.
struct System {
    name: &'static str,
    target: &'static str,
    features: &'static [&'static str],
}

const CHECKED: [System; 2] = [
    System { name: "macOS", target: "aarch64-apple-darwin", features: &["--features", "emulator,simulator,hip"] },
    System {
        name: "WebAssembly",
        target: "wasm32-unknown-unknown",
        // No device but the CPU is there. The macro is that of the tests, which generates code for AMD's GPUs too.
        features: &["--no-default-features", "--features", "cpu-matmul,titan-macros/amd"],
    },
];

/// The target of Windows whose programs mingw links.
const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// The packages whose tests run on Windows.
const PACKAGES: [&str; 7] =
    ["titan-gpu", "titan-gpu-core", "titan-gpu-cpu", "titan-gpu-nv", "titan-gpu-amd", "titan-gpu-cli", "library-tests"];

/// Their test programs.
const PROGRAMS: [&str; 37] = [
    // The language.
    "language",
    "lang_kernels",
    "lang_literals",
    "lang_semantics",
    "generic_host",
    "pipelines",
    "examples",
    "macros",
    "instances",
    // The CPU device.
    "executor",
    "threads",
    // The runtime, and how those of the vendors are looked for.
    "runtime",
    "runtime_arguments",
    "runtime_await",
    "runtime_axes",
    "runtime_dlpack",
    "runtime_launch",
    "runtime_lent",
    "runtime_lifetimes",
    "runtime_memory",
    "runtime_order",
    "runtime_reference",
    "runtime_timing",
    "runtime_transfer",
    "views",
    "tasks",
    "uploads",
    "graphs",
    "measurements",
    // Artifacts, alone and embedded in programs of Windows.
    "artifact",
    "programs",
    "cli",
    "explain",
    "stages",
    // Emulated devices.
    "emu",
    "amd",
    "differential",
];

/// Checks and runs everything; whether all passed, or could not be had here.
pub(crate) fn run(args: &[String]) -> io::Result<bool> {
    let options = Options::parse(args).map_err(io::Error::other)?;
    let mut passed = true;
    if options.is_everything() {
        for system in &CHECKED {
            passed &= check(system)?;
        }
    }
    Ok(windows(&options)? && passed)
}

/// Checks the library for a system.
#[expect(clippy::print_stdout, reason = "what is checked and skipped is printed to the terminal")]
fn check(system: &System) -> io::Result<bool> {
    let System { name, target, features } = system;
    if let Err(why) = install::library(target) {
        println!("SKIPPED the check for {name}: {why}");
        return Ok(true);
    }
    println!("\nthe library for {name} ({target})");
    let mut check = cargo();
    check.args(["check", "--locked", "-p", "titan-gpu", "--lib", "--target", target]).args(*features);
    Ok(check.env("RUSTFLAGS", "--deny warnings").status()?.success())
}

/// Runs the tests of Windows.
#[expect(clippy::print_stdout, reason = "what is tested and skipped is printed to the terminal")]
fn windows(options: &Options) -> io::Result<bool> {
    let runner = match install::library(WINDOWS).and_then(|()| wine::bring()) {
        Ok(runner) => runner,
        Err(why) => {
            println!("SKIPPED the tests of Windows: {why}");
            return Ok(true);
        }
    };
    println!("\ntests of Windows ({WINDOWS}), in the quick depth, run by {}", runner.program.display());
    let mut build = cargo();
    build.args(["test", "--locked", "--target", WINDOWS, "--features", FEATURES]);
    build.args(PACKAGES.iter().flat_map(|name| ["-p", name]));
    let wanted =
        PROGRAMS.iter().filter(|name| options.programs.is_empty() || options.programs.iter().any(|p| p == *name));
    build.args(wanted.flat_map(|name| ["--test", name]));
    run_elsewhere(build, &runner, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packages all of whose test programs run on Windows, but for those of [`LEFT_OUT`]. Of the others, only what runs kernels or reads artifacts does.
    const WHOLE: [&str; 3] = ["titan-gpu", "titan-gpu-cli", "library-tests"];

    /// Test programs that do not run on Windows: the package, the program, the reason.
    const LEFT_OUT: [(&str, &str, &str); 7] = [
        ("titan-gpu", "explored", "the model checker, whose outcome no system changes"),
        ("titan-gpu", "output_rule", "the compiler's proofs and the simulator, whose outcome no system changes"),
        ("titan-gpu", "simulator", "the simulator, whose outcome no system changes"),
        ("titan-gpu", "nvtx", "it replaces a library of Linux"),
        (
            "titan-gpu",
            "shipped",
            "NVIDIA's assembler, which `cargo xtask tools` installs for Linux, takes what was compiled on Linux",
        ),
        (
            "titan-gpu-cli",
            "schedule",
            "the scheduler, whose outcome no system changes; titan-core's tests of it have the same name",
        ),
        ("titan-gpu-cli", "written", "the compiler, whose outcome no system changes"),
    ];

    /// The folder with the tests of a package.
    fn tests_of(package: &str) -> std::path::PathBuf {
        let folder = match package.strip_prefix("titan-gpu") {
            Some("") => String::new(),
            Some(rest) => format!("titan{rest}"),
            None => package.to_owned(),
        };
        crate::cargo::root().join(folder).join("tests")
    }

    /// The names of the test programs of a package: files, and folders with a `main.rs`.
    fn programs_of(package: &str) -> Vec<String> {
        let entries =
            std::fs::read_dir(tests_of(package)).expect("a folder of tests").flatten().map(|entry| entry.path());
        let is_program =
            |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "rs") || path.join("main.rs").is_file();
        let stem = |path: std::path::PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
        entries.filter(is_program).filter_map(stem).collect()
    }

    /// They run in the full depth only: a program of another name would be missed late.
    #[test]
    fn every_program_is_a_test_of_one_of_the_packages() {
        let all = PACKAGES.map(|package| (package, programs_of(package)));
        for program in PROGRAMS {
            assert!(all.iter().any(|(_, own)| own.iter().any(|name| name == program)), "{program}");
        }
        for (package, own) in &all {
            assert!(own.iter().any(|name| PROGRAMS.contains(&name.as_str())), "{package}");
        }
    }

    #[test]
    fn every_test_of_host_code_runs_on_windows_or_is_left_out_for_a_reason() {
        for package in WHOLE {
            for program in programs_of(package) {
                let left_out = LEFT_OUT.iter().any(|(of, name, _)| *of == package && *name == program);
                assert!(
                    PROGRAMS.contains(&program.as_str()) != left_out,
                    "{package}: write `{program}` into PROGRAMS, or into LEFT_OUT with the reason, and not into both"
                );
            }
        }
        for (package, program, reason) in LEFT_OUT {
            assert!(WHOLE.contains(&package) && programs_of(package).iter().any(|name| name == program), "{program}");
            assert!(!reason.is_empty(), "{program}");
        }
    }
}

//! Test programs of the optimized packages, without optimization.
//!
//! The libraries that tests run are optimized, and cargo optimizes what else is in their packages in the same way. For most test programs that
//! takes three times as long as running them: a program of 6,000 lines is compiled in 4 s instead of 19 s. So this program is cargo's
//! compiler when `cargo xtask test` builds, and leaves it out. Cargo takes programs that were compiled in either way for the same.
//!
//! Deliberately absent: unit tests inside of libraries, which are the libraries.

use std::process::Command;

/// Set while this program is cargo's compiler.
pub(super) const VARIABLE: &str = "TITAN_TESTS_UNOPTIMIZED";

/// The programs that run for so long that optimizing them pays: what they compute themselves, such as every operand of an operation, takes up to
/// eight times as long without; and one whose recursion needs too much of a stack.
const OPTIMIZED: [&str; 20] = [
    "barriers",
    "codegen",
    "emit",
    "fences",
    "hand",
    "hopper",
    "lane",
    "layout",
    "lower",
    "mutation",
    "output_rule",
    "pipes",
    "sanitize",
    "scalar",
    "schedule",
    "sim",
    "simulator",
    "synchronize",
    "tensor",
    "tma",
];

/// Whether cargo runs this program in place of the compiler.
pub(crate) fn is_compiler() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// The command that compiles a crate: `args` are the arguments of the compiler.
pub(crate) fn compiler(compiler: &str, args: &[String]) -> Command {
    let mut command = Command::new(compiler);
    command.args(args);
    let name = args.iter().position(|arg| arg == "--crate-name").and_then(|at| args.get(at + 1));
    let is_program = args.iter().any(|arg| arg == "--test") && args.iter().any(|arg| is_in_tests(arg));
    if is_program && name.is_some_and(|name| !OPTIMIZED.contains(&name.as_str())) {
        // The last of several is the one that counts.
        command.arg("-Copt-level=0");
    }
    command
}

/// Whether an argument is the root of a test program: the arguments of rustc's options are no paths of sources.
fn is_in_tests(arg: &str) -> bool {
    arg.ends_with(".rs") && arg.replace('\\', "/").split('/').any(|part| part == "tests")
}

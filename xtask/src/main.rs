//! Commands of the repository: `cargo xtask test` runs the tests that this machine can run, and lists those that it skipped.
//!
//! Repository rules that rustc cannot state are tests, in `tests/tidy/`. Deliberately absent: formatting, release chores,
//! anything that cannot do without more than cargo.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

mod asan;
mod book;
mod bundle;
mod cargo;
mod install;
mod lint;
mod llvm;
mod plant;
mod platforms;
mod python;
mod test;
mod times;
mod tools;
mod wrapper;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <chore>

  test [ARGS..]   the tests of the workspace, in a sample of minutes; `--full` runs every case, `--help` lists the arguments
  lint            clippy and rustdoc, without a warning
  tools [--from WHEEL]
                  bring what tests compare with to target/tools (about 1.4 GB); `test --full` does it too
  bundle [FOLDER] tests and benchmark for a machine with a GPU and its driver only, stripped, to be copied there
  asan            tests of the CPU device and the runtime under AddressSanitizer, where rustc has it
  book [ARGS..]   the code blocks of the book, compiled and run; `--site` makes its pages, `--help` lists the arguments
  bless           rewrite what tests compare with: canonical .tir files, generated pages, compiler messages
  plant [ARGS..]  plant defects of one line in a copy, and report which of them the tests find; `--help` lists the arguments
  platforms [ARGS..]
                  check the library for macOS and WebAssembly, and run tests of Windows under wine; arguments as for `test`
  times           how long the macro takes for every example, part by part, unoptimized and optimized
  tidy            only the rules of the repository: layers, headers, lengths, links";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool speaks on stdout and stderr")]
fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = wrapper::compile(&args) {
        return code;
    }
    let (chore, rest) = args.split_first().map_or(("help", &[][..]), |(first, rest)| (first.as_str(), rest));
    let done = match chore {
        "test" => test::run(rest),
        "tools" => tools(rest),
        "asan" => asan::run(),
        "book" => book::run(rest),
        "lint" => lint::run(),
        "bless" => test::bless(),
        "bundle" => bundle::run(rest),
        "plant" => plant::run(rest),
        "platforms" => platforms::run(rest),
        "tidy" => test::tidy(),
        "times" => times::run(),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(true)
        }
        other => {
            eprintln!("unknown command `{other}`\n\n{HELP}");
            Ok(false)
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Downloads the tools and prints their paths.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
fn tools(args: &[String]) -> std::io::Result<bool> {
    let from = match args {
        [] => None,
        [flag, path] if flag == "--from" => Some(path.as_str()),
        _ => return Err(std::io::Error::other("`tools` takes `--from WHEEL` or nothing")),
    };
    let mut all_there = true;
    for (name, brought) in tools::bring(from) {
        match brought {
            Ok(path) => println!("{name}: {}", path.display()),
            Err(why) => {
                println!("{name}: {why}");
                all_there = false;
            }
        }
    }
    Ok(all_there)
}

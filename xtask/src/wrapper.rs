//! This program in the place of cargo's compiler, which some commands ask for (`RUSTC_WRAPPER`): they need other arguments for some
//! crates than for others, and cargo has one set for all.

use crate::test::unoptimized;
use crate::{asan, lint};
use std::process::{Command, ExitCode};

/// Compiles a crate, if cargo runs this program for that: `args` are the compiler and its arguments.
#[expect(clippy::print_stderr, reason = "cargo shows what its compiler prints")]
pub(crate) fn compile(args: &[String]) -> Option<ExitCode> {
    let command: fn(&str, &[String]) -> Command = if lint::is_compiler() {
        lint::compiler
    } else if asan::is_compiler() {
        asan::compiler
    } else if unoptimized::is_compiler() {
        unoptimized::compiler
    } else {
        return None;
    };
    let Some((compiler, rest)) = args.split_first() else { return Some(ExitCode::FAILURE) };
    let mut command = command(compiler, rest);
    Some(match command.status() {
        Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
        Err(error) => {
            eprintln!("xtask: {:?} in the place of `{compiler}`: {error}", command.get_program());
            ExitCode::FAILURE
        }
    })
}

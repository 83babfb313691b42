//! `titan`: the command line tool for tile IR and for diagnosing kernels.
//!
//! ```text
//! titan list FILE          lists the kernels that are embedded in a program, with the code for each target
//! titan check FILE.tir     verifies tile IR; prints every finding with its source lines, or as `--json`
//! titan sim FILE.tir       runs it in the simulator: reports races, deadlocks, reads of uninitialised memory, with the schedule
//! titan opt FILE.tir       runs passes by name: proxy fences, rings for `pipelined` loops, fused roles
//! titan emit FILE.tir      prints the kernels at a stage of compilation for a target: laid out, as barrier programs, as PTX
//! titan schedule FILE      prints the bounds and the modulo schedule of a dependence graph
//! titan fmt FILE.tir       prints the canonical text of a file
//! titan explain T0402      explains an error code
//! titan doctor             checks the machine and the crate: toolchain, profiles, cache, devices
//! ```
//!
//! Where a command takes a file of tile IR, it takes a program with embedded kernels as well.
//!
//! Exit status: 0 without findings, 1 with findings, 2 if the command line is wrong or a file cannot be used.
//!
//! Deliberately absent: compiling kernels into programs (that is `cargo build`).

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

mod arguments;
mod check;
mod choices;
mod cli;
mod doctor;
mod emit;
mod explain;
mod fmt;
mod list;
mod machine;
mod opt;
mod picture;
mod report;
mod schedule;
mod sim;
mod source;
mod timeline;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// The outcome of a command.
pub(crate) enum Outcome {
    Clean,
    Findings,
}

fn main() -> ExitCode {
    let matches = match cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // A closed terminal does not change the exit status.
            drop(error.print());
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let mut out = Reader(io::stdout().lock());
    let done = match matches.subcommand() {
        Some(("list", m)) => list::run(cli::file(m), cli::kernel(m), &mut out),
        Some(("check", m)) => check::run(cli::file(m), cli::kernel(m), &cli::targets(m), cli::json(m), &mut out),
        Some(("sim", m)) => sim::run(m, &mut out),
        Some(("opt", m)) => opt::run(m, &mut out),
        Some(("emit", m)) => emit::run(m, &mut out),
        Some(("schedule", m)) => schedule::run(m, &mut out),
        Some(("fmt", m)) => fmt::run(cli::file(m), cli::kernel(m), &mut out),
        Some(("explain", m)) => explain::run(cli::code(m), cli::kernel(m), &cli::targets(m), &mut out),
        Some(("doctor", _)) => doctor::run(&mut out),
        _ => Err(io::Error::other("unknown command")),
    };
    match done.and_then(|outcome| out.flush().map(|()| outcome)) {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(1),
        Err(error) => {
            drop(writeln!(io::stderr(), "titan: {error}"));
            ExitCode::from(2)
        }
    }
}

/// The output. A closed pipe does not change the outcome.
struct Reader<W>(W);

fn unless_gone<T>(done: io::Result<T>, instead: T) -> io::Result<T> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(instead),
        done => done,
    }
}

impl<W: Write> Write for Reader<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_gone(self.0.write(bytes), bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        unless_gone(self.0.flush(), ())
    }
}

/// An error that contains the path of a file.
pub(crate) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

//! Builds and runs tests in the copy of the repository, with a limit of time.

use super::copy::Copy;
use super::defect::Tests;
use super::verdict::{Reader, Verdict};
use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The variables that may pass from the outer cargo to the inner one: what the user sets for all of cargo.
const KEPT: [&str; 6] =
    ["CARGO_HOME", "CARGO_BUILD_JOBS", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTRIES_", "CARGO_TERM_"];

/// The beginnings of those that may not: settings of cargo's that belong to the outer build, and what tests read.
const REMOVED: [&str; 8] =
    ["CARGO", "RUSTC", "RUSTFLAGS", "RUSTDOC", "TITAN_", "TRYBUILD", "CUDA_EMULATOR_", "LD_LIBRARY_PATH"];

/// What tests are built with: one changed line costs seconds. Panics keep their lines.
const PROFILE: [(&str, &str); 3] = [
    ("CARGO_INCREMENTAL", "1"),
    ("CARGO_PROFILE_DEV_CODEGEN_UNITS", "64"),
    ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_CODEGEN_UNITS", "64"),
];

/// To build may take so many times as long as to run.
const BUILD: u32 = 3;

/// A command in the copy, with an environment in which only this program and the user decide.
pub(crate) fn command(copy: &Copy, program: &std::ffi::OsStr) -> io::Result<Command> {
    let mut command = Command::new(program);
    command.current_dir(&copy.tree).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let is = |list: &[&str]| list.iter().any(|prefix| text.starts_with(prefix));
        if is(&REMOVED) && !is(&KEPT) {
            command.env_remove(&name);
        }
    }
    command.envs(PROFILE).env("CARGO_TARGET_DIR", &copy.target).env("TITAN_CACHE", &copy.cache);
    // Tools that the outer command has brought are not brought again.
    for tool in &crate::tools::ALL {
        if let Some(path) = std::env::var_os(tool.variable).or(tool.present().ok().map(Into::into)) {
            command.env(tool.variable, path);
        }
    }
    if let Some(folder) = std::env::var_os("TITAN_LLVM") {
        command.env("TITAN_LLVM", folder);
    }
    Ok(command)
}

/// Builds the commands of the copy, which no defect may change while it is tried.
pub(crate) fn prepare(copy: &Copy) -> io::Result<()> {
    let mut build = command(copy, "cargo".as_ref())?;
    let built = build.args(["build", "--quiet", "--locked", "-p", "xtask"]).status()?;
    if built.success() { Ok(()) } else { Err(io::Error::other("the commands of the copy could not be built")) }
}

/// Whether a package of the copy compiles; what cargo says otherwise.
pub(crate) fn check(copy: &Copy, package: &str) -> io::Result<Result<(), String>> {
    let mut cargo = command(copy, "cargo".as_ref())?;
    let output = cargo.args(["check", "--quiet", "--locked", "--all-features", "-p", package]).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(if output.status.success() { Ok(()) } else { Err(said) })
}

/// Runs test programs of one package, until one fails.
pub(crate) fn run(copy: &Copy, tests: &[&Tests], is_full: bool, minutes: u64, package: &str) -> io::Result<Verdict> {
    let xtask = copy.target.join("debug").join(format!("xtask{}", std::env::consts::EXE_SUFFIX));
    let mut command = command(copy, xtask.as_os_str())?;
    command.arg("test").args(is_full.then_some("--full"));
    command.args(tests.iter().take(1).flat_map(|tests| ["-p", tests.package.as_str()]));
    command.args(tests.iter().filter_map(|tests| tests.program.as_deref()).flat_map(|program| ["--test", program]));
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = group(&mut command).spawn()?;
    // The command holds the writing ends; the last line is read when the child and its children have closed theirs.
    drop(command);
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
            if sender.send(String::from_utf8_lossy(&bytes).trim_end().to_owned()).is_err() {
                break;
            }
            bytes.clear();
        }
    });
    let limit = Duration::from_secs(60 * minutes);
    let (mut verdict, mut text) = (Reader::new(package), String::new());
    let mut end = Instant::now() + limit * BUILD;
    loop {
        match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                text = text + &line + "\n";
                let was_running = verdict.is_running;
                if verdict.line(&line) {
                    break;
                }
                if verdict.is_running && !was_running {
                    end = Instant::now() + limit;
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                kill(&mut child)?;
                return Ok(verdict.hangs(minutes));
            }
        }
    }
    drop(receiver);
    if !verdict.is_decided() {
        let success = child.wait()?.success();
        let _ = thread.join();
        return verdict.end(success).map_err(|why| io::Error::other(format!("{why}:\n{text}")));
    }
    kill(&mut child)?;
    verdict.end(false).map_err(io::Error::other)
}

/// Makes a command the first process of a group of its own, so that it can be ended together with all that it starts.
fn group(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}

/// Ends a process and its group.
fn kill(child: &mut Child) -> io::Result<()> {
    if cfg!(unix) {
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status()?;
    }
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().map(drop)
}

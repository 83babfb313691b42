//! Builds and runs tests in the copy of the repository, with a limit of time.

use super::copy::RepositoryCopy;
use super::defect::Tests;
use super::verdict::{Reader, Verdict};
use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The variables that may pass from the outer cargo to the inner one: what the user sets for all of cargo.
const KEPT: [&str; 6] =
    ["CARGO_HOME", "CARGO_BUILD_JOBS", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTRIES_", "CARGO_TERM_"];

/// The beginnings of those that may not: settings of cargo's that belong to the outer build, and what tests read.
const REMOVED: [&str; 9] = [
    "CARGO",
    "RUSTC",
    "RUSTFLAGS",
    "RUSTDOC",
    "TITAN_",
    "TRYBUILD",
    "CUDA_EMULATOR_",
    "HIP_EMULATOR_",
    "LD_LIBRARY_PATH",
];

/// What tests are built with: one changed line costs seconds. Panics keep their lines.
const PROFILE: [(&str, &str); 3] = [
    ("CARGO_INCREMENTAL", "1"),
    ("CARGO_PROFILE_DEV_CODEGEN_UNITS", "64"),
    ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_CODEGEN_UNITS", "64"),
];

/// To build may take so many times as long as to run.
const BUILD: u32 = 3;

/// A command in the copy, with an environment in which only this program and the user decide.
fn command(copy: &RepositoryCopy, program: &std::ffi::OsStr) -> Command {
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
    command
}

/// Builds the commands of the copy, which no defect may change while it is tried.
pub(crate) fn prepare(copy: &RepositoryCopy) -> io::Result<()> {
    let mut build = command(copy, "cargo".as_ref());
    let built = build.args(["build", "--quiet", "--locked", "-p", "xtask"]).status()?;
    if built.success() { Ok(()) } else { Err(io::Error::other("the commands of the copy could not be built")) }
}

/// Whether a package of the copy compiles; what cargo says otherwise.
pub(crate) fn check(copy: &RepositoryCopy, package: &str) -> io::Result<Result<(), String>> {
    let mut cargo = command(copy, "cargo".as_ref());
    let output = cargo.args(["check", "--quiet", "--locked", "--all-features", "-p", package]).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(if output.status.success() { Ok(()) } else { Err(said) })
}

/// Runs test programs of one package, until one fails. `package` is the one with the defect, as cargo calls it.
pub(crate) fn run(
    copy: &RepositoryCopy,
    tests: &[&Tests],
    is_full: bool,
    minutes: u64,
    package: &str,
) -> io::Result<Verdict> {
    let xtask = copy.target.join("debug").join(format!("xtask{}", std::env::consts::EXE_SUFFIX));
    let mut command = command(copy, xtask.as_os_str());
    command.arg("test").args(is_full.then_some("--full"));
    command.args(tests.iter().take(1).flat_map(|tests| ["-p", tests.package.as_str()]));
    command.args(tests.iter().filter_map(|tests| tests.program.as_deref()).flat_map(|program| ["--test", program]));
    let (mut child, lines) = start(command)?;
    let mut reader = Reader::new(package);
    let mut said = String::new();
    let is_late = read(&lines, &mut reader, &mut said, Duration::from_secs(60 * minutes));
    if is_late {
        kill(&mut child)?;
        return Ok(reader.hangs(minutes));
    }
    if reader.is_decided() {
        kill(&mut child)?;
        return reader.end(false).map_err(io::Error::other);
    }
    let success = child.wait()?.success();
    reader.end(success).map_err(|why| io::Error::other(format!("{why}:\n{said}")))
}

/// Starts a command; the lines that it and its children print, on both streams, until they have closed them.
fn start(mut command: Command) -> io::Result<(Child, Receiver<String>)> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let child = group(&mut command).spawn()?;
    // The command holds the writing ends.
    drop(command);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
            if sender.send(String::from_utf8_lossy(&bytes).trim_end().to_owned()).is_err() {
                break;
            }
            bytes.clear();
        }
    });
    Ok((child, receiver))
}

/// Reads lines until one decides or there are no more; whether the time ran out before. It begins again when the tests are built.
fn read(lines: &Receiver<String>, reader: &mut Reader, said: &mut String, limit: Duration) -> bool {
    let mut end = Instant::now() + limit * BUILD;
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                said.push_str(&line);
                said.push('\n');
                let was_running = reader.is_running;
                if reader.line(&line) {
                    return false;
                }
                if reader.is_running && !was_running {
                    end = Instant::now() + limit;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => return true,
        }
    }
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

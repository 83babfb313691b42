//! A Python with Triton, another compiler, which needs no GPU to compile. Without it tests say that they are skipped.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The Python that `TITAN_PYTHON` names, that `cargo xtask tools` made, or `python3`; `None`, after saying that the tests of `what` are
/// skipped, if it has no Triton.
pub(crate) fn python(what: &str) -> Option<&'static Path> {
    static FOUND: OnceLock<Result<PathBuf, PathBuf>> = OnceLock::new();
    match FOUND.get_or_init(find) {
        Ok(python) => Some(python),
        Err(python) => {
            let line = format!(
                "SKIPPED {what}: there is no Triton 3.9 in `{}`; `cargo xtask tools` installs it, or TITAN_PYTHON names a Python that has it\n",
                python.display()
            );
            // Not `eprintln!`, which is kept back for tests that pass; and a test must not fail because stderr is closed.
            drop(std::io::stderr().write_all(line.as_bytes()));
            None
        }
    }
}

/// The folder for what tests make.
fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The program, or the one that was tried in vain.
fn find() -> Result<PathBuf, PathBuf> {
    let made =
        || scratch().parent().map(|target| target.join("tools/python/bin/python3")).filter(|path| path.is_file());
    let named = std::env::var_os("TITAN_PYTHON").map(PathBuf::from);
    let python = named.or_else(made).unwrap_or_else(|| "python3".into());
    // Other releases take other arguments, and have other defects.
    let ask = "import sys, triton; sys.exit(not triton.__version__.startswith('3.9.'))";
    let has_it = Command::new(&python).args(["-c", ask]).output().is_ok_and(|said| said.status.success());
    if has_it { Ok(python) } else { Err(python) }
}

/// A script that is run with it; what it compiles is kept for the next run.
pub(crate) fn command(python: &Path, script: &str) -> Command {
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script));
    if std::env::var_os("TRITON_CACHE_DIR").is_none() {
        command.env("TRITON_CACHE_DIR", scratch().join("triton-cache"));
    }
    command
}

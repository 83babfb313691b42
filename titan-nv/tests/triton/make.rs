//! Kernels that Triton compiles, for the tests of both back ends.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of this name with what Triton compiles of the crate's `tests/triton/kernels.py`; `None`, after saying that the tests of `what`
/// are skipped, without it.
pub(crate) fn make(what: &str, name: &str) -> Option<PathBuf> {
    let python = std::env::var_os("TITAN_PYTHON").unwrap_or_else(|| "python3".into());
    // Other releases take other arguments, and have other defects.
    let ask = "import sys, triton; sys.exit(not triton.__version__.startswith('3.9.'))";
    let has_it = Command::new(&python).args(["-c", ask]).output().is_ok_and(|o| o.status.success());
    if !has_it {
        let line = format!("SKIPPED {what}: no Triton 3.9 in `{}` (TITAN_PYTHON)\n", python.display());
        // Not `eprintln!`, which is kept back for tests that pass.
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/triton/kernels.py");
    let done = Command::new(&python).arg(script).arg(&folder).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(folder)
}

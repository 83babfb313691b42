//! Kernels that Triton compiles, for the tests of both back ends.

#[path = "../../../titan-core/tests/shared/triton.rs"]
mod triton;

use std::path::{Path, PathBuf};

/// The folder of this name with what Triton compiles of a script of the crate; `None`, after saying that the tests of `what` are skipped,
/// without Triton.
pub(crate) fn make(what: &str, name: &str, script: &str) -> Option<PathBuf> {
    let python = triton::python(what)?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let done = triton::command(python, script).arg(&folder).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(folder)
}

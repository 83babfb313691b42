//! The functions called from Python on NumPy's arrays: `functions.py` has the checks.
//!
//! NumPy is installed into an environment of this test's own, in the build folder. Without Python or a network the test says that it was skipped.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::path::{Path, PathBuf};
use std::process::Command;

const RELEASE: &str = "numpy==2.4.6";

fn ran(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| error.to_string())?;
    let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if done.status.success() { Ok(text) } else { Err(text) }
}

/// A Python with NumPy.
fn python() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = folder.join("bin").join("python3");
    if ran(Command::new(&python).args(["-c", "import numpy"])).is_err() {
        ran(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        ran(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:", RELEASE]))?;
    }
    Ok(python)
}

/// The shared library, which cargo builds for this test.
fn library() -> PathBuf {
    let beside = std::env::current_exe().unwrap();
    let name = if cfg!(target_os = "macos") { "libdlpack_functions.dylib" } else { "libdlpack_functions.so" };
    beside.with_file_name(name)
}

#[test]
fn numpy_and_the_kernels_use_the_same_memory() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => {
            println!(
                "SKIPPED numpy_and_the_kernels_use_the_same_memory: no NumPy: {}",
                why.lines().last().unwrap_or("")
            );
            return;
        }
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("functions.py");
    let said = ran(Command::new(python).arg(script).arg(library()));
    assert!(said.as_ref().is_ok_and(|text| text.contains("checked with NumPy")), "{said:?}");
}

//! A Python with Triton, whose kernels tests run in the emulators: an environment of its own under `target/tools`, made with the system's
//! `python3` and `pip`. The wheels are pinned by their hashes. Without it those tests say that they were skipped.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Where tests look for it.
pub(crate) const PYTHON: &str = "TITAN_PYTHON";

/// The release that the kernels of the tests are written for.
const RELEASE: &str = "3.9.0";

/// The hashes of its wheels for Linux on x86-64: for Python 3.11, for 3.12 and later, and for 3.14 without the global lock.
const WHEELS: [&str; 3] = [
    "1622118a038b0c6e16fa4a0305da62c8b3c15904ee1cc4d4e65846a25969e41e",
    "5e52ab4e2f1d64f0ac494c9aa723697b793f81a91c4cae4c36608ca0bc4267bf",
    "eab30be40d412e947f3b74b20f50e4f8e07dd11439e7ddc6bd6184cabda2be79",
];

/// The program, which the first call installs.
pub(crate) fn with_triton() -> Result<PathBuf, String> {
    let tools = crate::tools::dir().map_err(|error| error.to_string())?;
    let folder = tools.join(format!("triton-{RELEASE}"));
    let python = folder.join("bin").join("python3");
    let ask = format!("import sys, triton; sys.exit(triton.__version__ != '{RELEASE}')");
    let has_it = || Command::new(&python).args(["-c", &ask]).output().is_ok_and(|said| said.status.success());
    if has_it() {
        return Ok(python);
    }
    ran(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let hashes: Vec<String> = WHEELS.iter().map(|hash| format!(" --hash=sha256:{hash}")).collect();
    let wanted = folder.join("requirements.txt");
    let text = format!("triton=={RELEASE}{}\n", hashes.concat());
    std::fs::write(&wanted, text).map_err(|error| format!("`{}`: {error}", wanted.display()))?;
    let install = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--require-hashes", "-r"];
    ran(Command::new(&python).args(install).arg(&wanted))?;
    if has_it() { Ok(python) } else { Err(format!("`{}` cannot import Triton {RELEASE}", python.display())) }
}

/// Runs a command; the error is what it says last.
fn ran(command: &mut Command) -> Result<(), String> {
    let Output { status, stderr, .. } =
        command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&stderr);
    Err(format!("{command:?} ended with {status}: {}", said.lines().last().unwrap_or_default()))
}

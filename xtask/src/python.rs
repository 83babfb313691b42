//! A Python with Triton, whose kernels and layouts tests compare with: an environment of its own in `target/tools/python`, made with the
//! system's `python3` and its `venv`. Triton's wheel is pinned by its hash. Without the environment those tests say that they were skipped.
//!
//! Deliberately absent: another release of Triton, and packages that it does not need to compile.

use crate::install::ran;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names of Triton's wheels begin so.
pub(crate) const WHEELS: &str = "triton-3.9.0-";

/// The release that the kernels of the tests are written for.
const RELEASE: &str = "3.9.0";

/// The hashes of its wheels for Linux on x86-64: `cp311-cp311`; `cp312-abi3`, for Python 3.12 and later; `cp314-cp314t`, without the global
/// lock. There is none for earlier versions of Python.
const HASHES: [&str; 3] = [
    "1622118a038b0c6e16fa4a0305da62c8b3c15904ee1cc4d4e65846a25969e41e",
    "5e52ab4e2f1d64f0ac494c9aa723697b793f81a91c4cae4c36608ca0bc4267bf",
    "eab30be40d412e947f3b74b20f50e4f8e07dd11439e7ddc6bd6184cabda2be79",
];

/// The first version of Python that there is a wheel for.
const OLDEST: (u32, u32) = (3, 11);

/// Prints the version, and which modules are not there that make an environment.
const ASK: &str = "import sys, importlib.util as u; \
    print(*sys.version_info[:2], *(m for m in ('venv', 'ensurepip') if u.find_spec(m) is None))";

/// The program, which the first call installs, from the wheel that the user has or from the package index. An environment that is not
/// complete, or whose Python is gone, is made again.
pub(crate) fn with_triton(wheel: Option<&Path>) -> Result<PathBuf, String> {
    let tools = crate::tools::dir().map_err(|error| error.to_string())?;
    let at = |error: io::Error| format!("`{}`: {error}", tools.display());
    fs::create_dir_all(&tools).map_err(at)?;
    // Two runs at once wait for each other.
    let lock = File::create(tools.join(".lock-python")).map_err(at)?;
    lock.lock().map_err(at)?;
    let folder = tools.join("python");
    let python = folder.join("bin").join("python3");
    if is_complete(&folder, &python) {
        return Ok(python);
    }
    is_suitable(&asked("python3")?)?;
    ran("python3 -m venv", Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let wanted = folder.join("wanted.txt");
    let hashes: String = HASHES.iter().map(|hash| format!(" --hash=sha256:{hash}")).collect();
    fs::write(&wanted, format!("triton=={RELEASE}{hashes}\n")).map_err(at)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"]);
    install.args(["--only-binary", ":all:", "--require-hashes", "-r"]).arg(&wanted);
    if let Some(wheel) = wheel {
        let beside = wheel.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        install.args(["--no-index", "--find-links"]).arg(beside);
    }
    if std::env::var_os("PIP_CACHE_DIR").is_none() {
        install.env("PIP_CACHE_DIR", tools.join("pip-cache"));
    }
    ran("pip install", &mut install)?;
    fs::write(folder.join(COMPLETE), RELEASE).map_err(at)?;
    if is_complete(&folder, &python) {
        return Ok(python);
    }
    Err(format!("`{}` cannot import Triton {RELEASE}", python.display()))
}

/// In the tools' folder, the file that is written when everything is installed, and the program.
pub(crate) const MARKS: (&str, &str) = ("python/complete.txt", "python/bin/python3");

/// The file that is written when everything is installed, with the release.
const COMPLETE: &str = "complete.txt";

fn is_complete(folder: &Path, python: &Path) -> bool {
    let import = format!("import sys, triton; sys.exit(triton.__version__ != '{RELEASE}')");
    fs::read_to_string(folder.join(COMPLETE)).is_ok_and(|release| release == RELEASE)
        && Command::new(python).args(["-c", &import]).output().is_ok_and(|said| said.status.success())
}

/// What a Python says of itself.
fn asked(python: &str) -> Result<String, String> {
    let said = Command::new(python).args(["-c", ASK]).output().map_err(|error| format!("`{python}`: {error}"))?;
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}

/// Whether an environment can be made with a Python that says so; if not, why.
fn is_suitable(said: &str) -> Result<(), String> {
    let mut words = said.split_whitespace();
    let mut number = || words.next().and_then(|word| word.parse().ok());
    let (Some(major), Some(minor)) = (number(), number()) else {
        return Err(format!("`python3` does not tell its version: `{}`", said.trim()));
    };
    if (major, minor) < OLDEST {
        let (from, since) = OLDEST;
        return Err(format!(
            "`python3` is Python {major}.{minor}; Triton {RELEASE} has wheels for {from}.{since} and later"
        ));
    }
    match words.next() {
        Some(module) => {
            Err(format!("`python3` has no module `{module}`; on Debian and Ubuntu it is in the package `python3-venv`"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_why_a_python_cannot_be_used_is_told() {
        for said in ["3 11\n", "3 14\n", "4 0\n"] {
            assert_eq!(is_suitable(said), Ok(()));
        }
        for (said, why) in [
            ("3 10\n", "Python 3.10; Triton 3.9.0 has wheels for 3.11 and later"),
            ("3 12 ensurepip\n", "no module `ensurepip`; on Debian"),
            ("3 12 venv ensurepip\n", "no module `venv`"),
            ("", "does not tell its version"),
        ] {
            assert!(is_suitable(said).is_err_and(|error| error.contains(why)), "{said}");
        }
        assert!(asked("no-such-python").is_err_and(|error| error.contains("`no-such-python`")));
    }

    #[test]
    fn a_python_is_asked_for_its_version() {
        let Ok(said) = asked("python3") else { return };
        assert!(said.starts_with("3 "), "{said}");
    }
}

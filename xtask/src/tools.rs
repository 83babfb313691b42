//! The assemblers of vendors, which tests use as oracles: brought from the package index into `target/tools`, pinned by their
//! hashes, and found there the next time. Without them the tests that want them say that they were skipped.
//!
//! Deliberately absent: anything that building or using TITAN would need.

use std::io;
use std::path::{Path, PathBuf};
use wheel::{Asset, Origin, Outcome, Wheel};

/// `ptxas` of CUDA 12.9.1, NVIDIA's assembler, for the one kind of machine whose wheel is pinned.
const PTXAS_WHEEL: Wheel = Wheel {
    package: "nvidia-cuda-nvcc-cu12",
    version: "12.9.86",
    file: "nvidia_cuda_nvcc_cu12-12.9.86-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl",
    bytes: 40_546_229,
    sha256: "5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0",
    command: "cargo xtask tools",
};

const PTXAS: Asset = Asset {
    name: "ptxas",
    entry: "nvidia/cuda_nvcc/bin/ptxas",
    bytes: 34_931_056,
    sha256: "983b0e9283855979f42cebfd80d43f9b6e786eb84f03f7570bf941c4d3a3c461",
};

/// Brings the tools, or takes them from a wheel that the user has; where they are, or why they are not there.
pub(crate) fn bring(from: Option<&str>) -> Result<(PathBuf, Outcome), String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("ptxas is pinned for Linux on x86-64 only".to_owned());
    }
    let dir = dir().map_err(|error| error.to_string())?;
    let origin = from.map_or(Origin::Index, |path| Origin::Wheel(PathBuf::from(path)));
    let outcome = wheel::fetch(&PTXAS_WHEEL, &[PTXAS], &dir, &origin).map_err(|error| error.to_string())?;
    let path = dir.join(PTXAS.name);
    executable(&path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    Ok((path, outcome))
}

/// `tools` in the folder that cargo builds into, which this program lies in.
fn dir() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(Path::parent).ok_or_else(|| io::Error::other("no target folder"))?;
    Ok(target.join("tools"))
}

#[cfg(unix)]
fn executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn executable(_: &Path) -> io::Result<()> {
    Ok(())
}

//! What tests compare with and other people made: an assembler, and a compiler in a Python of its own. Brought from the package index
//! into `target/tools`, pinned by their hashes, and found there the next time. Without them the tests that want them say that
//! they were skipped.
//!
//! Deliberately absent: anything that building or using TITAN would need.

use crate::python;
use std::io;
use std::path::{Path, PathBuf};
use wheel::{Asset, Origin, Wheel};

/// The wheel with NVIDIA's assembler of CUDA 12.9.1, for the one kind of machine that it is pinned for.
const WHEEL: Wheel = Wheel {
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

/// What tests compare with.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// The environment variable by which tests find it.
    pub(crate) variable: &'static str,
    /// How the name of its wheel begins.
    wheel: &'static str,
    /// Brings it, from the wheel that the user has or from the package index; its program.
    bring: fn(Option<&Path>) -> Result<PathBuf, String>,
    /// The file in the tools' folder that is there when it was brought completely, and its program there.
    marks: (&'static str, &'static str),
}

/// All of them.
pub(crate) const ALL: [Tool; 2] = [
    Tool { name: "ptxas", variable: "TITAN_PTXAS", wheel: WHEEL.file, bring: ptxas, marks: ("ptxas", "ptxas") },
    Tool {
        name: "Triton",
        variable: "TITAN_PYTHON",
        wheel: python::WHEELS,
        bring: python::with_triton,
        marks: python::MARKS,
    },
];

/// Where a tool is, or why it is not there.
pub(crate) type Brought = (&'static str, Result<PathBuf, String>);

/// Brings every tool, or the one whose wheel the user has.
pub(crate) fn bring(from: Option<&str>) -> Vec<Brought> {
    let Some(path) = from else {
        return ALL.iter().map(|tool| (tool.name, tool.brought(None))).collect();
    };
    let path = Path::new(path);
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    match ALL.iter().find(|tool| name.starts_with(tool.wheel)) {
        Some(tool) => vec![(tool.name, tool.brought(Some(path)))],
        None => vec![("the wheel", Err(format!("`{}` is not the name of a pinned wheel", path.display())))],
    }
}

impl Tool {
    /// Where it is, if an earlier command brought it.
    pub(crate) fn present(&self) -> Result<PathBuf, String> {
        let folder = dir().map_err(|error| error.to_string())?;
        let (mark, program) = self.marks;
        if folder.join(mark).is_file() && folder.join(program).is_file() {
            Ok(folder.join(program))
        } else {
            Err("`--full` or `cargo xtask tools` brings it".to_owned())
        }
    }

    /// Brings it, if it is pinned for this kind of machine.
    pub(crate) fn brought(&self, wheel: Option<&Path>) -> Result<PathBuf, String> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err("it is pinned for Linux on x86-64 only".to_owned());
        }
        (self.bring)(wheel)
    }
}

fn ptxas(wheel: Option<&Path>) -> Result<PathBuf, String> {
    let dir = dir().map_err(|error| error.to_string())?;
    let origin = wheel.map_or(Origin::Index, |path| Origin::Wheel(path.to_owned()));
    wheel::fetch(&WHEEL, &[PTXAS], &dir, &origin).map_err(|error| error.to_string())?;
    let path = dir.join(PTXAS.name);
    executable(&path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    Ok(path)
}

/// Where tools are.
pub(crate) fn dir() -> io::Result<PathBuf> {
    target().map(|target| target.join("tools"))
}

/// The folder that cargo builds into, which this program lies in.
pub(crate) fn target() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(Path::parent).ok_or_else(|| io::Error::other("no target folder"))?;
    Ok(target.to_path_buf())
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

//! What tests compare with and other people made: an assembler, a compiler's library. Brought from the package index into
//! `target/tools`, pinned by their hashes, and found there the next time. Without them the tests that want them say that
//! they were skipped.
//!
//! Deliberately absent: anything that building or using TITAN would need.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use wheel::{Asset, Origin, Outcome, Wheel};

/// A file of a wheel.
struct Tool {
    wheel: Wheel,
    asset: Asset,
    is_program: bool,
}

/// `ptxas` of CUDA 12.9.1, NVIDIA's assembler, for the one kind of machine whose wheel is pinned.
const PTXAS: Tool = Tool {
    wheel: Wheel {
        package: "nvidia-cuda-nvcc-cu12",
        version: "12.9.86",
        file: "nvidia_cuda_nvcc_cu12-12.9.86-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl",
        bytes: 40_546_229,
        sha256: "5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0",
        command: "cargo xtask tools",
    },
    asset: Asset {
        name: "ptxas",
        entry: "nvidia/cuda_nvcc/bin/ptxas",
        bytes: 34_931_056,
        sha256: "983b0e9283855979f42cebfd80d43f9b6e786eb84f03f7570bf941c4d3a3c461",
    },
    is_program: true,
};

/// Triton's library, whose layouts are compared with ours: a wheel for each version of Python, none of which needs a GPU.
const TRITON: [(&str, Tool); 5] = [
    (
        "3.10",
        triton(
            "triton-3.7.1-cp310-cp310-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
            (197_596_267, "ee89fbf782ec2ad50391dd1cf26cbea4f4467154c37f4773026da8fc31c0f58e"),
            "libtriton.cpython-310-x86_64-linux-gnu.so",
            (461_068_920, "d2bf2f9d9f1685ea392d4b088393730953203ead1904538ac79627cd60148776"),
        ),
    ),
    (
        "3.11",
        triton(
            "triton-3.7.1-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
            (197_701_306, "6744957e9fd610a29680ec2346057d0c86948ed3812468670719f391e94b44a5"),
            "libtriton.cpython-311-x86_64-linux-gnu.so",
            (461_594_312, "89448c9bb54bc2fb1e7ef234603ddaef6a29ba4dbcabc6c3c4ada4442d4a0bb9"),
        ),
    ),
    (
        "3.12",
        triton(
            "triton-3.7.1-cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
            (197_719_725, "7e40869937a68206ec70d7f25bb7ec6433cb083f9135e1f36dbd318dc449a728"),
            "libtriton.cpython-312-x86_64-linux-gnu.so",
            (461_559_216, "e1e17b42f65d04185099e8512cdedf3989355e7e7d3f429022c5302e4833f3d7"),
        ),
    ),
    (
        "3.13",
        triton(
            "triton-3.7.1-cp313-cp313-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
            (197_729_241, "58c0e131da05134a2a4788ccbcc0c1105cf0f54c8e98f19e34cd465396dc15eb"),
            "libtriton.cpython-313-x86_64-linux-gnu.so",
            (461_572_032, "26bead528434db254dad259175e0f96fc805fd15ced1affdbeba65891546713f"),
        ),
    ),
    (
        "3.14",
        triton(
            "triton-3.7.1-cp314-cp314-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
            (197_729_537, "2020153b08280415ec0da6607834e79166442147e78e144df06b508c75b186d2"),
            "libtriton.cpython-314-x86_64-linux-gnu.so",
            (461_571_392, "c53760cb6eb3647bd4109b69b099306f1c524c9edbc400b16ce7797679f7cc72"),
        ),
    ),
];

const fn triton(
    file: &'static str,
    wheel: (u64, &'static str),
    name: &'static str,
    asset: (u64, &'static str),
) -> Tool {
    Tool {
        wheel: Wheel {
            package: "triton",
            version: "3.7.1",
            file,
            bytes: wheel.0,
            sha256: wheel.1,
            command: "cargo xtask tools",
        },
        asset: Asset { name, entry: "triton/_C/libtriton.so", bytes: asset.0, sha256: asset.1 },
        is_program: false,
    }
}

/// Where a tool is, or why it is not there.
pub(crate) type Brought = (&'static str, Result<(PathBuf, Outcome), String>);

/// Brings every tool, or the one whose wheel the user has.
pub(crate) fn bring(from: Option<&str>) -> Vec<Brought> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return vec![("tools", Err("they are pinned for Linux on x86-64 only".to_owned()))];
    }
    let Some(path) = from else {
        return vec![("ptxas", one(&PTXAS, &Origin::Index)), ("Triton", for_this_python())];
    };
    let name = Path::new(path).file_name();
    let all = TRITON.iter().map(|(_, tool)| tool).chain([&PTXAS]);
    match all.into_iter().find(|tool| name.is_some_and(|n| n == tool.wheel.file)) {
        Some(tool) => vec![(tool.asset.name, one(tool, &Origin::Wheel(PathBuf::from(path))))],
        None => vec![("the wheel", Err(format!("`{path}` is not the name of a pinned wheel")))],
    }
}

fn for_this_python() -> Result<(PathBuf, Outcome), String> {
    let ask = ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"];
    let said = Command::new("python3").args(ask).output().map_err(|error| format!("`python3`: {error}"))?;
    let version = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    match TRITON.iter().find(|(python, _)| *python == version) {
        Some((_, tool)) => one(tool, &Origin::Index),
        None => Err(format!("no wheel is pinned for Python {version}")),
    }
}

fn one(tool: &Tool, origin: &Origin) -> Result<(PathBuf, Outcome), String> {
    let dir = dir().map_err(|error| error.to_string())?;
    let outcome = wheel::fetch(&tool.wheel, &[tool.asset], &dir, origin).map_err(|error| error.to_string())?;
    let path = dir.join(tool.asset.name);
    if tool.is_program {
        executable(&path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    }
    Ok((path, outcome))
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

//! A folder for a machine that has a GPU of NVIDIA's or AMD's and its driver, and nothing else: the tests and the benchmark, built here, stripped,
//! and a script that runs them and prints a table. The programs have code for both vendors, and the script sees which GPU there is. Neither
//! cargo nor a toolkit is needed there; the processor and the system must be alike.

use crate::cargo::cargo;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The maximum size of the packed folder in bytes: what is convenient to copy. Unpacked it is several times larger, since every program
/// contains the same libraries.
const MOST: u64 = 64 << 20;

/// The tests that ask for a device.
const TESTS: [&str; 9] = [
    "language",
    "lang_semantics",
    "pipelines",
    "examples",
    "runtime_launch",
    "runtime_order",
    "runtime_await",
    "runtime_lifetimes",
    "differential",
];

/// The tests that ask for the driver, or bring one.
const DRIVER_TESTS: [&str; 6] =
    ["cuda_runtime", "cuda_interop", "cuda_faults", "tensor_launches", "tensor_cases", "tensor_parts"];

const SCRIPT: &str = include_str!("bundle.sh");

/// Builds everything and fills a folder.
#[expect(clippy::print_stdout, reason = "the contents of the folder are printed to the terminal")]
pub(crate) fn run(args: &[String]) -> io::Result<bool> {
    let folder = match args {
        [] => crate::tools::target()?.join("bundle"),
        [folder] => PathBuf::from(folder),
        _ => return Err(io::Error::other("`bundle` takes a folder or nothing")),
    };
    // An earlier bundle goes; anything else stays.
    if folder.join("run.sh").is_file() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let of = |names: &[&'static str]| names.iter().flat_map(|name| ["--test", *name]).collect::<Vec<_>>();
    let tests = ["test", "--release", "--no-run"];
    let groups = [
        [&tests[..], &["-p", "titan-gpu", "--features", "emulator,hip"], &of(&TESTS)].concat(),
        [&tests[..], &["-p", "cuda-emulator"], &of(&DRIVER_TESTS)].concat(),
        vec!["bench", "--no-run", "-p", "benches", "--bench", "gpu"],
    ];
    let mut found = Vec::new();
    for group in &groups {
        let Some(programs) = executables(group)? else { return Ok(false) };
        found.extend(programs);
    }
    let mut total = 0;
    for (name, path) in &found {
        let bytes = fs::copy(path, folder.join(name))?;
        total += bytes;
        println!("{name:20} {:8} KiB", bytes / 1024);
    }
    // Tests of what drivers may answer bring their own.
    if let Some((_, path)) = found.iter().find(|(name, _)| name == "cuda_runtime") {
        let library = path.with_file_name("libcuda_emulator.so");
        total += fs::copy(library, folder.join("libcuda_emulator.so"))?;
    }
    fs::write(folder.join("run.sh"), SCRIPT)?;
    println!("{} in {}", size(total), folder.display());
    let packed = pack(&folder)?;
    let bytes = fs::metadata(&packed)?.len();
    println!("{} in {}: copy it there, `tar xf` it, and `sh run.sh`", size(bytes), packed.display());
    if bytes > MOST {
        println!("that is more than {}", size(MOST));
    }
    Ok(bytes <= MOST && found.len() == TESTS.len() + DRIVER_TESTS.len() + 1)
}

/// Packs the folder with `tar` and `xz`, beside it.
fn pack(folder: &Path) -> io::Result<PathBuf> {
    let folder = folder.canonicalize()?;
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::Error::other("the folder has no name"));
    };
    let mut packed = name.to_owned();
    packed.push(".tar.xz");
    let packed = parent.join(packed);
    let status = Command::new("tar").arg("-cJf").arg(&packed).arg("-C").arg(parent).arg(name).status()?;
    if status.success() { Ok(packed) } else { Err(io::Error::other("`tar -cJf` failed")) }
}

fn size(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Builds targets, stripped; the name and the place of each program.
fn executables(args: &[&str]) -> io::Result<Option<Vec<(String, PathBuf)>>> {
    let output = cargo()
        .args(args)
        .args(["--message-format", "json-render-diagnostics"])
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .env("CARGO_PROFILE_BENCH_STRIP", "symbols")
        .stderr(std::process::Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(Some(text.lines().filter_map(executable).collect()))
}

/// The name and the place of a program that a message of cargo's tells of.
fn executable(message: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = message.get("executable")?.as_str()?;
    let target = message.get("target")?;
    let kind = target.get("kind")?.get(0)?.as_str()?;
    let name = target.get("name")?.as_str()?;
    matches!(kind, "test" | "bench").then(|| (name.to_owned(), Path::new(path).to_owned()))
}

//! NVIDIA's assembler as an oracle, where it is there. `cargo xtask test` brings it; without it tests say so and pass.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The assembler, or `None` after printing that the test is skipped.
pub(crate) fn unless_absent() -> Option<PathBuf> {
    let named = std::env::var_os("TITAN_PTXAS").map(PathBuf::from);
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().map(|target| target.join("tools/ptxas"));
    let found = named.or_else(|| tools.filter(|path| path.is_file())).or_else(|| {
        let path = PathBuf::from("ptxas");
        Command::new(&path).arg("--version").output().is_ok_and(|out| out.status.success()).then_some(path)
    });
    if found.is_none() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let line =
            format!("SKIPPED {test}: there is no ptxas; `cargo xtask tools` brings it, or TITAN_PTXAS names it\n");
        // A test must not fail because stderr is closed.
        drop(std::io::stderr().write_all(line.as_bytes()));
    }
    found
}

/// Tells a reader of the tests something.
pub(crate) fn say(line: &str) {
    // A test must not fail because stdout is closed.
    drop(std::io::stdout().write_all(format!("{line}\n").as_bytes()));
}

/// The resources of a kernel, as the assembler reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub kernel: String,
    pub registers: u32,
    pub spilled: u32,
}

/// Assembles a text; returns the resources of each kernel, or the errors.
pub(crate) fn assemble(ptxas: &Path, arch: &str, text: &str) -> Result<Vec<Usage>, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("emit-{}-{number}.ptx", std::process::id()));
    std::fs::write(&file, text).expect("a file can be made under target");
    let out = Command::new(ptxas)
        .args(["-v", "--warn-on-spills", "-O3", &format!("-arch={arch}"), "-o", "/dev/null"])
        .arg(&file)
        .output()
        .expect("ptxas starts");
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    let ok = out.status.success();
    drop(std::fs::remove_file(&file));
    // What the assembler only remarks on: MMAs of warpgroups that it runs one after the other, ignored `setmaxnreg`.
    let remark = said.lines().any(|line| line.contains("(C75"));
    if ok && !remark { Ok(usages(&said)) } else { Err(said) }
}

/// The lines of `-v`: the kernel, then its spills, then its registers.
fn usages(said: &str) -> Vec<Usage> {
    let number = |line: &str, before: &str| -> u32 {
        let head = line.split(before).next().unwrap_or_default();
        head.split_whitespace().last().and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    let mut all: Vec<Usage> = Vec::new();
    for line in said.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            all.push(Usage { kernel, registers: 0, spilled: 0 });
        } else if let Some(last) = all.last_mut() {
            if line.contains("bytes spill stores") {
                last.spilled = number(line, " bytes spill stores") + number(line, " bytes spill loads");
            } else if line.contains("registers") {
                last.registers = number(line, " registers");
            }
        }
    }
    all
}

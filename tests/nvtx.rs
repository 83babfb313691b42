//! Ranges of NVIDIA's tools: with a library that notes what it is called with, in a process of its own, and without one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::disallowed_methods, reason = "the library is found by the environment of a process")]
#![cfg(target_os = "linux")]

mod runtime_kernels;

use runtime_kernels::{add, fill, trap_at};
use std::path::Path;
use std::process::Command;
use titan::Device;

/// Set in the process that the test starts: the file of the notes.
const NOTES: &str = "TITAN_NVTX_NOTES";

/// A library that appends a line to the file for each call.
const LIBRARY: &str = r#"
use std::io::Write;
fn note(line: &str) {
    let file = std::env::var("TITAN_NVTX_NOTES").unwrap();
    writeln!(std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap(), "{line}").unwrap();
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvtxRangePushA(name: *const std::ffi::c_char) -> i32 {
    note(&format!("push {}", unsafe { std::ffi::CStr::from_ptr(name) }.to_str().unwrap()));
    0
}
#[unsafe(no_mangle)]
pub extern "C" fn nvtxRangePop() -> i32 {
    note("pop");
    0
}
"#;

/// Launches in each way, one of which is an error.
fn launches() {
    let device = Device::cpu();
    let s = device.stream().unwrap();
    let (mut x, mut y) = (device.zeros([4]).unwrap(), device.zeros([5]).unwrap());
    fill(&mut x, 1.0).sync().unwrap();
    fill(&mut x, 2.0).launch(&s).unwrap();
    add(&x, &mut y, 1.0).launch(&s).unwrap_err();
    trap_at(&mut y, 1).sync().unwrap_err();
    let graph = s.capture(|| fill(&mut x, 3.0).launch(&s)).unwrap();
    graph.launch(&s).unwrap();
    assert_eq!(x.to_vec().unwrap(), [3.0; 4]);
}

/// Without the library nothing happens: no machine without CUDA's toolkit has it.
#[test]
fn launches_are_the_same_without_the_library() {
    launches();
}

#[test]
fn every_launch_is_a_range_with_the_name_of_its_kernel() {
    if std::env::var_os(NOTES).is_some() {
        return launches();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nvtx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, notes) = (folder.join("nvtx.rs"), folder.join("notes"));
    std::fs::write(&source, LIBRARY).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "nvtx", "-o"]);
    let built = command.arg(folder.join("libnvToolsExt.so.1")).arg(&source).status().unwrap();
    assert!(built.success());
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "every_launch_is_a_range_with_the_name_of_its_kernel", "--nocapture"]);
    let path = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    child.env(NOTES, &notes).env("LD_LIBRARY_PATH", format!("{}:{path}", folder.display()));
    assert!(child.status().unwrap().success());
    let found = std::fs::read_to_string(&notes).unwrap();
    let ranges = ["fill", "fill", "add", "trap_at", "fill", "a graph of `fill`"];
    let expected: String = ranges.iter().map(|name| format!("push {name}\npop\n")).collect();
    assert_eq!(found, expected);
    std::fs::remove_dir_all(&folder).unwrap();
}

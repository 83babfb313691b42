//! Processes that have the emulated driver.
//!
//! The tests do not name the crate of the emulated driver: its Rust library would be linked into this program and be a second driver, beside the shared
//! library that TITAN loads.

use candle_core::Device;
use std::process::Command;

/// Set in the processes that tests start.
const CHILD: &str = "TITAN_CANDLE_CUDA_TEST";

/// Runs `body` in a process that has the emulated driver with these settings; what the process wrote, or `None` in that process.
pub fn run(test: &str, settings: &[(&str, &str)], body: impl FnOnce()) -> Option<String> {
    let (passed, text) = outcome(test, settings, body)?;
    assert!(passed, "{settings:?}: {text}");
    Some(text)
}

/// As [`run`], with whether the test has passed there.
pub fn outcome(test: &str, settings: &[(&str, &str)], body: impl FnOnce()) -> Option<(bool, String)> {
    if std::env::var_os(CHILD).is_some() {
        body();
        return None;
    }
    let program = std::env::current_exe().unwrap();
    let folder = std::env::temp_dir().join(format!("titan-candle-{}-{}", std::process::id(), test.replace(':', "-")));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(program.with_file_name("libcuda_emulator.so"), folder.join("libcuda.so.1")).unwrap();
    let mut libraries = folder.clone().into_os_string();
    libraries.extend([":".into(), std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default()]);
    let mut child = Command::new(&program);
    child.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    child.envs(settings.iter().copied()).env("LD_LIBRARY_PATH", libraries);
    // Before what is linked as the driver, which has the functions that the emulated one lacks.
    child.env("LD_PRELOAD", folder.join("libcuda.so.1"));
    let done = child.output().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let [passed, failed] = ["1 passed", "1 failed"].map(|part| text.contains(part));
    assert!(done.status.success() == passed && passed != failed, "{settings:?}: {text}");
    Some((passed, text))
}

/// Runs `body` with streams that run as late, as early and as randomly as they may.
pub fn in_every_order(test: &str, body: impl Fn(&Device)) {
    for order in ["late", "early", "random:1"] {
        if run(test, &[("CUDA_EMULATOR_ORDER", order)], || body(&Device::new_cuda(0).unwrap())).is_none() {
            return;
        }
    }
}

//! Tests of the CUDA runtime in processes of their own, with the emulated driver first on the library path and set as the test
//! says. With `TITAN_DEVICE=cuda`, tests without settings run on the real device instead.
#![allow(dead_code, reason = "every test program uses some of it")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use titan::{Device, DeviceKind, Error};

/// Set in the processes that tests start.
pub(crate) const CHILD: &str = "TITAN_CUDA_RUNTIME_TEST";

/// After this, a process is taken to hang.
const LIMIT: Duration = Duration::from_secs(600);

/// The device of a test.
pub(crate) fn device() -> Device {
    let device = Device::best().unwrap();
    assert_eq!(device.kind(), DeviceKind::Cuda);
    device
}

/// Bytes of the device that are free when all that was dropped is freed.
pub(crate) fn free_bytes(device: &Device) -> usize {
    match device.zeros::<u8, 1>([1 << 40]) {
        Err(Error::OutOfMemory { free: Some((free, _)), .. }) => free,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("there is no such device"),
    }
}

/// A new folder, and in it the emulated driver without some functions.
pub(crate) fn driver(missing: &[&str]) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-{}-{number}", std::process::id()));
    let beside = std::env::current_exe().unwrap();
    let library = beside.with_file_name("libcuda_emulator.so");
    cuda_emulator::place::place(&library, &folder, missing).unwrap();
    folder
}

/// Ends a process whose test does not end.
#[expect(clippy::print_stderr, reason = "the process ends here, and this is why")]
fn hangs() {
    std::thread::sleep(LIMIT);
    eprintln!("the test hangs");
    std::process::abort();
}

/// Runs this test program again, with only `test` in it, which runs `body` there.
#[expect(clippy::print_stderr, reason = "no other output can report that the test hangs")]
pub(crate) fn process(test: &str, folder: &Path, settings: &[(&str, &str)], body: impl FnOnce()) {
    if std::env::var(CHILD).is_ok() {
        std::thread::spawn(hangs);
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(CHILD, "1").env("TITAN_DEVICE", "cuda:0").env("LD_LIBRARY_PATH", folder);
    let output = command.envs(settings.iter().copied()).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    std::fs::remove_dir_all(folder).unwrap();
    assert!(output.status.success() && text.contains("1 passed"), "with {settings:?}:\n{text}");
}

/// With the emulated driver and these settings.
pub(crate) fn with(test: &str, settings: &[(&str, &str)], body: impl FnOnce()) {
    let real = std::env::var("TITAN_DEVICE").is_ok_and(|name| name.starts_with("cuda"));
    if real && settings.is_empty() && std::env::var(CHILD).is_err() {
        return body();
    }
    let folder = if std::env::var(CHILD).is_ok() { PathBuf::new() } else { driver(&[]) };
    process(test, &folder, settings, body);
}

/// With streams that run as late, as early and as randomly as they may.
pub(crate) fn in_every_order(test: &str, body: impl Fn()) {
    for order in ["late", "early", "random:1", "random:2", "random:3"] {
        with(test, &[("CUDA_EMULATOR_ORDER", order)], &body);
        if std::env::var(CHILD).is_ok() {
            return;
        }
    }
}

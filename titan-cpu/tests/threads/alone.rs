//! Launches where no thread can be started: the thread that launches runs them by itself.

use super::{ADD_ONE, Vector, program};
use std::process::Command;

/// Set in the process in which no thread can be started.
const ALONE: &str = "TITAN_TEST_NO_THREADS";

/// A stack that no system has room for: starting a thread with it fails.
const STACK: &str = "4611686018427387904";

#[test]
fn launches_without_threads_run_in_their_own() {
    if std::env::var_os(ALONE).is_some() {
        assert!(std::thread::Builder::new().spawn(|| ()).is_err(), "a thread with such a stack");
        let (add, x) = (program(ADD_ONE, 4), Vector::new());
        (0..5).for_each(|_| x.add_one(&add));
        x.is(5);
        return;
    }
    if cfg!(miri) {
        return;
    }
    let test = "alone::launches_without_threads_run_in_their_own";
    // With one test at a time the harness itself needs no thread.
    let child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--test-threads=1"])
        .envs([(ALONE, "1"), ("RUST_MIN_STACK", STACK)])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && told.contains("1 passed"), "{told}\n{}", String::from_utf8_lossy(&child.stderr));
}

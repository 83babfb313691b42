//! `titan schedule`: what it prints of dependence graphs, and its exit status.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// The output of a run in the folder of the files, whose stdin is this text.
fn piped(args: &[&str], text: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_titan"));
    command.args(args).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the tool runs");
    // A run that does not read its input may have ended.
    drop(child.stdin.take().expect("it has an input").write_all(text.as_bytes()));
    child.wait_with_output().expect("it ends")
}

/// The stdout of a run, which must end with this status.
fn stdout(args: &[&str], status: i32) -> String {
    let output = piped(args, "");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(status), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

const GEMM_SCHEDULE: &str = "; units: at least 256 cycles, in which `tensor` is always held
; recurrences: at least 372 cycles, from 1115 in 3 iterations: acquire -> load -> mma -> release -> acquire
; found in 65 steps
schedule gemm ii 372 stages 3 live 0
op acquire stage 0 cycle 0 order 0
op load stage 0 cycle 0 order 1
op mma stage 1 cycle 556 order 2
op release stage 2 cycle 1115 order 3
";

#[test]
fn schedule_prints_bounds_and_a_schedule_that_can_be_checked() {
    assert_eq!(stdout(&["schedule", "gemm.graph"], 0), GEMM_SCHEDULE);
    let checked = |schedule: &str| {
        let output = piped(&["schedule", "gemm.graph", "--check", "-"], schedule);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(checked(GEMM_SCHEDULE), (Some(0), "-: legal, an iteration every 372 cycles\n".to_owned()));
    let (status, early) = checked(&GEMM_SCHEDULE.replace("cycle 556", "cycle 555"));
    assert_eq!(status, Some(1));
    for part in ["error[T1006]: `mma` is issued 1 cycle too early for `load`", "--> -:7:22", "-: 1 error\n"] {
        assert!(early.contains(part), "no `{part}` in\n{early}");
    }
}

#[test]
fn schedule_says_why_a_loop_is_not_overlapped() {
    let limited = stdout(&["schedule", "gemm.graph", "--steps", "10"], 1);
    let parts = [
        "; not overlapped, with 2 slots for each ring: the limit of steps was reached at an interval of 372 cycles\n",
        "schedule gemm ii 1116 stages 1 live 0\n",
    ];
    for part in parts {
        assert!(limited.contains(part), "no `{part}` in\n{limited}");
    }
    // Nothing can be gained: this is not a finding.
    let output = piped(&["schedule", "-"], "graph one\nunit u\nop a unit u 3\n");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("; recurrences: there are none\n; not overlapped"), "{text}");
    assert!(text.contains(": no shorter interval was found\n"), "{text}");
}

#[test]
fn schedule_shows_errors_in_their_lines() {
    let graph = "graph g ii 2\nunit u\nop a unit u 3\nop b\nedge data a -> c\n";
    let output = piped(&["schedule", "-"], graph);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let parts =
        ["error[T1002]: there is no operation `c`", "--> -:5:16", "help: declare it with `op c`", "-: 1 error\n"];
    for part in parts {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    let output = piped(&["schedule", "-"], &graph.replace("-> c", "-> b"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("error[T1005]") && text.contains("--> -:3:13"), "{text}");
    let output = piped(&["schedule", "-"], "graph g\nop a latnecy 3\n");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("error[T1001]") && text.contains("--> -:2:6"), "{text}");
}

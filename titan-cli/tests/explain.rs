//! What `titan explain KERNEL.tir` tells of the code that is compiled for a kernel, and where `titan check` finds that there is none.

use serde_json::{Value, json};
use std::process::Command;

/// The stdout of a run, which must end with this status.
fn stdout(args: &[&str], status: i32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_titan"));
    command.args(args).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files"));
    let output = command.output().expect("the tool runs");
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn explain_gives_the_choices_for_a_kernel() {
    let good = stdout(&["explain", "gemm.tir"], 0);
    for part in [
        "kernel `gemm::<f16, 128, 64, 32>`",
        "  sm_80: 128 threads",
        "if `a` has a tensor map with boxes",
        "    - role",
    ] {
        assert!(good.contains(part), "no `{part}` in\n{good}");
    }
    let none = stdout(&["explain", "ring.tir", "--target", "sm_90a"], 0);
    for part in ["  sm_90a: none; its code would be that for older GPUs\n", "its M is 16", "`sa` is not copied in bulk"]
    {
        assert!(none.contains(part), "no `{part}` in\n{none}");
    }
    assert!(!none.contains("sm_80"), "{none}");
    let amd = stdout(&["explain", "gemm.tir", "--target", "gfx942"], 0);
    let line = amd.lines().find(|line| line.starts_with("  gfx942: ")).expect("a variant");
    assert!(
        line.contains(" threads, ") && line.contains(" VGPRs, ") && line.ends_with(" SGPRs, 0 bytes of scratch"),
        "{amd}"
    );
    assert_eq!(stdout(&["explain", "overlap.tir"], 1), "");
}

/// Locations of the source are no lines of this text: the finding is where the operation is, and says what that states.
#[test]
fn check_finds_operations_that_state_a_location_of_the_source() {
    assert_eq!(stdout(&["check", "stated.tir"], 0), "stated.tir: 2 kernels, no errors\n");
    let text = stdout(&["check", "stated.tir", "--target", "sm_80"], 1);
    for part in [
        "error[T0902]: it needs 525312 bytes of shared memory",
        "--> stated.tir:17:5",
        "store_tile %y[%m, %n], %t @4:7",
        "note: in the kernel's source: line 4 of the kernel, column 7",
        "stated.tir: 1 error\n",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    let found: Value =
        serde_json::from_str(&stdout(&["check", "--json", "stated.tir", "--target", "sm_80"], 1)).expect("JSON");
    let finding = &found["findings"][0];
    assert_eq!(finding["at"], json!({ "line": 17, "column": 5 }));
    assert_eq!(finding["source"], json!({ "line": 4, "column": 7 }));
}

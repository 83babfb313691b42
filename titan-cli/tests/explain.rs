//! What `titan explain KERNEL.tir` tells of the code that is compiled for a kernel.

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
    assert_eq!(stdout(&["explain", "overlap.tir"], 1), "");
}

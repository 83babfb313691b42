//! The tool as people run it: what it prints, and its exit status.

use serde_json::{Value, json};
use std::process::{Command, Output};

fn titan(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_titan"));
    command.args(args).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files"));
    command.output().expect("the tool runs")
}

/// What a run prints on stdout, which must end with this status.
fn stdout(args: &[&str], status: i32) -> String {
    let output = titan(args);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(status), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn check_is_quiet_about_good_kernels() {
    assert_eq!(stdout(&["check", "gemm.tir"], 0), "gemm.tir: 1 kernel, nothing wrong\n");
    assert_eq!(stdout(&["check", "loose.tir"], 0), "loose.tir: 1 kernel, nothing wrong\n");
}

#[test]
fn check_shows_what_the_verifier_finds_in_its_line() {
    let text = stdout(&["check", "overlap.tir"], 1);
    let parts = [
        "error[T0402]: programs of different `program_id(1)` may write the same part of `c`",
        "--> overlap.tir:6:5",
        "6 |     store_tile %c[%m, %zero], %t",
        "^^^^^^^^^^",
        "= help: index `c` by `program_id(1)`",
        "overlap.tir: 1 error\n",
    ];
    for part in parts {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn check_says_the_same_to_programs() {
    let clean: Value = serde_json::from_str(&stdout(&["check", "--json", "gemm.tir"], 0)).expect("JSON");
    assert_eq!(
        clean,
        json!({
            "format": 1, "command": "check", "file": "gemm.tir", "verdict": "clean", "kernels": ["gemm"], "findings": [],
        })
    );
    let wrong: Value = serde_json::from_str(&stdout(&["check", "--json", "overlap.tir"], 1)).expect("JSON");
    assert_eq!(wrong["verdict"], "findings");
    let finding = &wrong["findings"][0];
    assert_eq!((&finding["code"], &finding["at"]), (&json!("T0402"), &json!({ "line": 6, "column": 5 })));
    assert!(finding["title"].as_str().is_some_and(|t| t.contains("`program_id(1)`")), "{finding}");
    assert!(finding["help"].as_array().is_some_and(|h| !h.is_empty()), "{finding}");
    let unreadable: Value = serde_json::from_str(&stdout(&["check", "--json", "unreadable.tir"], 1)).expect("JSON");
    assert_eq!(unreadable["findings"].as_array().map(Vec::len), Some(2));
    assert_eq!(unreadable["findings"][0]["kernel"], Value::Null);
}

#[test]
fn check_shows_every_error_of_a_text() {
    let text = stdout(&["check", "unreadable.tir"], 1);
    assert!(text.contains("--> unreadable.tir:2:"), "{text}");
    assert!(text.contains("--> unreadable.tir:3:"), "{text}");
    assert!(text.contains("`program_id`"), "a near miss is named\n{text}");
    assert!(text.ends_with("unreadable.tir: 2 errors\n"), "{text}");
}

#[test]
fn fmt_prints_the_canonical_text() {
    let canonical = include_str!("files/gemm.tir");
    assert_eq!(stdout(&["fmt", "gemm.tir"], 0), canonical);
    let expected = "; One scalar per program.\n\nkernel @one(\n    %y: mut tensor<f32>[N],\n) grid(N) {\n    \
                    %p = program_id<0> : i32\n    %x = const 1.0 : f32\n    set %y[%p], %x\n    return\n}\n";
    assert_eq!(stdout(&["fmt", "loose.tir"], 0), expected);
    assert!(stdout(&["fmt", "unreadable.tir"], 1).contains("2 errors"));
}

#[test]
fn explain_knows_every_code() {
    assert!(stdout(&["explain", "T0402"], 0).contains("T0402"));
    assert_eq!(stdout(&["explain", "t0402"], 0), stdout(&["explain", "[T0402]"], 0));
    let list = stdout(&["explain"], 0);
    assert!(list.lines().any(|l| l == "T0401  an output that is never stored"), "{list}");
}

#[test]
fn doctor_names_what_it_looks_at() {
    // This workspace builds its macro optimized, so there is nothing to find.
    let text = stdout(&["doctor"], 0);
    for word in ["toolchain", "profiles", "cache", "cpu", "nvidia", "amd"] {
        assert!(text.lines().any(|l| l.starts_with(word)), "no `{word}` in\n{text}");
    }
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    for args in [&[][..], &["check"], &["frobnicate"], &["check", "no_such_file.tir"], &["explain", "T9999"]] {
        let output = titan(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?} says why");
    }
    assert!(stdout(&["--help"], 0).contains("doctor"));
}

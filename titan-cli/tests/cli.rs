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

const SIZES: [&str; 6] = ["--set", "M=16", "--set", "K=160", "--set", "n=5"];

fn sim(file: &str, more: &[&str], status: i32) -> String {
    stdout(&[&["sim", file], &SIZES[..], more].concat(), status)
}

#[test]
fn sim_runs_good_kernels_on_any_schedule() {
    let text = sim("ring.tir", &["--sanitize"], 0);
    assert!(text.starts_with("ring.tir: `ring` with M = 16, K = 160, n = 5: nothing found in 1 run ("), "{text}");
    for complete in ["late", "early", "random"] {
        assert!(sim("ring.tir", &["--complete", complete, "--runs", "20"], 0).contains("nothing found in 20 runs"));
    }
    // What is not set is told.
    let text = stdout(&["sim", "gemm.tir"], 0);
    assert!(text.contains("with M = 64, K = 64, N = 64: nothing found"), "{text}");
}

#[test]
fn sim_shows_what_it_finds_and_how_to_see_it_again() {
    let text = sim("one_missing.tir", &["--seed", "3"], 1);
    let parts = [
        "the verifier refuses `ring` with",
        "error[deadlock]: nobody can go on: `consumer` waits for time 4 of `ring`",
        "--> one_missing.tir:21:13",
        "%stage = ttg.stage.wait_ready %ready",
        "= note: to see it again: titan sim one_missing.tir --kernel ring --set K=160",
    ];
    for part in parts {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    let again = text.lines().find_map(|l| l.split_once("see it again: titan ")).expect("a command").1;
    let words: Vec<&str> = again.split_whitespace().collect();
    let replayed = stdout(&words, 1);
    assert_eq!(replayed.lines().find(|l| l.starts_with("error")), text.lines().find(|l| l.starts_with("error")));
}

#[test]
fn sim_explores_every_order() {
    let text = sim("ring.tir", &["--explore"], 0);
    assert!(text.contains("nothing is wrong in any order ("), "{text}");
    let text = sim("ring.tir", &["--explore", "--max-states", "5"], 1);
    assert!(text.contains("nothing found, but not all was looked at: 5 states"), "{text}");
    let found: Value = serde_json::from_str(&sim("one_missing.tir", &["--explore", "--json"], 1)).expect("JSON");
    assert_eq!((&found["verdict"], &found["findings"][0]["code"]), (&json!("findings"), &json!("deadlock")));
    assert_eq!(found["findings"][0]["sides"][0]["operation"], "ttg.stage.wait_ready");
    let bound: Value =
        serde_json::from_str(&sim("ring.tir", &["--explore", "--max-states", "5", "--json"], 1)).expect("JSON");
    assert_eq!((&bound["verdict"], &bound["runs"][0]["explored"]["states"]), (&json!("bound"), &json!(5)));
}

#[test]
fn sim_draws_a_run() {
    let path = std::env::temp_dir().join(format!("titan-cli-{}.svg", std::process::id()));
    let name = path.to_str().expect("UTF-8");
    sim("ring.tir", &["--seed", "1", "--timeline", name], 0);
    let svg = std::fs::read_to_string(&path).expect("a picture");
    std::fs::remove_file(&path).expect("it can go");
    for part in ["producer", "consumer", "ring slot 2", "waits for", "time 4"] {
        assert!(svg.contains(part), "no `{part}` in the picture");
    }
    assert!(!svg.contains("the program"), "who only waits for the roles has no lane");
}

#[test]
fn opt_places_what_is_missing() {
    assert!(stdout(&["check", "unfenced.tir"], 1).contains("error[T0709]"));
    let output = titan(&["opt", "unfenced.tir", "--passes", "fence"]);
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(told.contains("fence placed before `ttg.nv.cp_async_bulk_tensor.store` at 12:9"), "{told}");
    let fenced = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(!fenced.contains(" @1"), "places of another file\n{fenced}");
    let path = std::env::temp_dir().join(format!("titan-cli-{}.tir", std::process::id()));
    std::fs::write(&path, &fenced).expect("a file");
    let name = path.to_str().expect("UTF-8");
    let (checked, again) = (stdout(&["check", name], 0), stdout(&["opt", name, "--passes", "fence"], 0));
    std::fs::remove_file(&path).expect("it can go");
    assert!(checked.contains("nothing wrong"), "{checked}");
    assert_eq!(again, fenced, "once is enough");
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
    for args in [
        &[][..],
        &["check"],
        &["frobnicate"],
        &["check", "no_such_file.tir"],
        &["explain", "T9999"],
        &["sim", "ring.tir", "--set", "Q=3"],
        &["sim", "ring.tir", "--kernel", "rung"],
        &["sim", "ring.tir", "--grid", "1,x"],
        &["opt", "unfenced.tir"],
        &["opt", "unfenced.tir", "--passes", "fense"],
        &["opt", "unfenced.tir", "--passes", "fuse"],
        &["opt", "unfenced.tir", "--passes", "fence", "--call", "f=sync"],
        &["sim", "ring.tir", "--explore", "--seed", "1"],
        &["sim", "ring.tir", "--schedule", "what"],
    ] {
        let output = titan(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?} says why");
    }
    assert!(stdout(&["--help"], 0).contains("doctor"));
}

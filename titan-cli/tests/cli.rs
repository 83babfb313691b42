//! The command line tool: its output and its exit status.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

fn titan(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_titan"));
    command.args(args).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files"));
    command.output().expect("the tool runs")
}

/// The stdout of a run, which must end with this status.
fn stdout(args: &[&str], status: i32) -> String {
    let output = titan(args);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(status), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn check_is_quiet_about_good_kernels() {
    assert_eq!(stdout(&["check", "gemm.tir"], 0), "gemm.tir: 1 kernel, no errors\n");
    assert_eq!(stdout(&["check", "loose.tir"], 0), "loose.tir: 1 kernel, no errors\n");
    // The kernel that the tests simulate.
    assert_eq!(stdout(&["check", "ring.tir"], 0), "ring.tir: 1 kernel, no errors\n");
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
fn check_shows_elements_that_no_program_writes() {
    let text = stdout(&["check", "gaps.tir"], 1);
    let title = "error[T0411]: with N = 65 no program writes `c` at index 64 along axis 0";
    for part in [title, "--> gaps.tir:7:5", "gaps.tir: 1 error\n"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn check_says_the_same_to_programs() {
    let clean: Value = serde_json::from_str(&stdout(&["check", "--json", "gemm.tir"], 0)).expect("JSON");
    assert_eq!(
        clean,
        json!({
            "format": 1, "command": "check", "file": "gemm.tir", "verdict": "clean",
            "kernels": ["gemm::<f16, 128, 64, 32>"], "findings": [],
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
    // Redirected output contains no errors.
    for args in [&["fmt", "unreadable.tir"][..], &["opt", "unreadable.tir", "--passes", "fence"]] {
        let output = titan(args);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{args:?}: {told}");
        assert!(told.contains("--> unreadable.tir:3:"), "{told}");
    }
}

/// The output of a run whose stdin is this text.
fn piped(args: &[&str], text: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_titan"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the tool runs");
    child.stdin.take().expect("it reads").write_all(text.as_bytes()).expect("a text");
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_dash_is_stdin() {
    let output = piped(&["check", "-"], include_str!("files/overlap.tir"));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("--> -:6:5"), "{output:?}");
    let output = piped(&["fmt", "-"], include_str!("files/unreadable.tir"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("2 errors"), "{output:?}");
}

#[test]
fn a_text_without_kernels_is_not_the_one_that_was_meant() {
    for args in [&["check", "-"][..], &["check", "-", "--json"], &["sim", "-"], &["opt", "-", "--passes", "fence"]] {
        let output = piped(args, "; nothing\n");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("-: the file contains no kernel"), "{output:?}");
    }
}

#[test]
fn a_reader_who_leaves_early_changes_no_verdict() {
    for (args, status) in [(&["check", "overlap.tir"][..], 1), (&["explain"], 0), (&["sim", "one_missing.tir"], 1)] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_titan"));
        command.args(args).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files")).stdout(writer);
        assert_eq!(command.status().expect("the tool runs").code(), Some(status), "{args:?}");
    }
}

const SIZES: [&str; 6] = ["--set", "M=16", "--set", "K=160", "--set", "n=5"];

fn sim(file: &str, more: &[&str], status: i32) -> String {
    stdout(&[&["sim", file], &SIZES[..], more].concat(), status)
}

#[test]
fn sim_runs_good_kernels_on_any_schedule() {
    let text = sim("ring.tir", &["--sanitize"], 0);
    assert!(
        text.starts_with("ring.tir: `ring` with M = 16, K = 160, n = 5: no errors found in 1 run (1 program, "),
        "{text}"
    );
    for complete in ["late", "early", "random"] {
        assert!(sim("ring.tir", &["--complete", complete, "--runs", "20"], 0).contains("no errors found in 20 runs"));
    }
    // Defaults are printed.
    let text = stdout(&["sim", "gemm.tir"], 0);
    assert!(text.contains("with M = 64, K = 64, N = 64: no errors found"), "{text}");
}

#[test]
fn sim_shows_what_it_finds_and_how_to_see_it_again() {
    let text = sim("one_missing.tir", &["--seed", "3"], 1);
    let parts = [
        "the verifier rejects `ring` with",
        "error[deadlock]: `consumer` waits for time 4 of `ring`",
        "--> one_missing.tir:21:13",
        "%stage = ttg.stage.wait_ready %ready",
        "= note: to reproduce: titan sim one_missing.tir ring --set K=160",
    ];
    for part in parts {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    let again = text.lines().find_map(|l| l.split_once("to reproduce: titan ")).expect("a command").1;
    let words: Vec<&str> = again.split_whitespace().collect();
    let replayed = stdout(&words, 1);
    assert_eq!(replayed.lines().find(|l| l.starts_with("error")), text.lines().find(|l| l.starts_with("error")));
}

/// The arguments of the command that reproduces the only finding.
fn again(args: &[&str]) -> Vec<String> {
    let found: Value = serde_json::from_str(&stdout(args, 1)).expect("JSON");
    let words = found["findings"][0]["again"].as_str().expect("a command").replace('\'', "");
    words.split_whitespace().skip(1).map(str::to_owned).collect()
}

#[test]
fn the_command_that_is_named_shows_it_again() {
    let shows = |words: &[String], code: &str| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = stdout(&words, 1);
        assert!(text.contains(&format!("error[{code}]")), "{words:?}\n{text}");
    };
    // A finding of the exploration that depends on the sanitizer.
    let words = again(&["sim", "unfenced.tir", "--explore", "--json"]);
    shows(&words, "fence");
    // The schedule of a long run is not put on a command line.
    let words = again(&["sim", "one_missing.tir", "--set", "n=2000", "--runs", "3", "--json"]);
    assert!(
        words.ends_with(&["--seed".to_owned(), "0".to_owned(), "--complete".to_owned(), "random".to_owned()]),
        "{words:?}"
    );
    shows(&words, "deadlock");
    // Names that shells would take apart are quoted.
    let path = std::env::temp_dir().join(format!("titan 'cli' {}.tir", std::process::id()));
    std::fs::write(&path, include_str!("files/one_missing.tir")).expect("a file");
    let text = stdout(&["sim", path.to_str().expect("UTF-8")], 1);
    std::fs::remove_file(&path).expect("it can go");
    assert!(text.contains(r"titan '\''cli'\'' ") && text.contains(".tir' ring"), "{text}");
}

#[test]
fn a_refused_kernel_is_told_to_programs_too() {
    let found: Value = serde_json::from_str(&stdout(&["sim", "overlap.tir", "--json"], 0)).expect("JSON");
    assert_eq!((&found["verdict"], &found["runs"][0]["refused"]), (&json!("clean"), &json!(1)));
    let found: Value = serde_json::from_str(&stdout(&["sim", "ring.tir", "--json"], 0)).expect("JSON");
    assert_eq!(found["runs"][0]["refused"], 0);
}

#[test]
fn an_element_outside_is_that_of_a_tensor_with_a_name() {
    let text = "kernel @k(%x: in tensor<f32>[N], %y: mut tensor<f32>[N]) grid(N) {\n    %p = program_id<0> : i32\n    \
                %one = const 1 : i32\n    %q = add %p, %one\n    %v = get %x[%q]\n    set %y[%p], %v\n    return\n}\n";
    let output = piped(&["sim", "-", "--set", "N=8"], text);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("error[trap]: `get` at [8] of `x`, whose extents are [8]\n"), "{told}");
}

#[test]
fn what_is_set_for_one_kernel_leaves_the_others() {
    let both = [include_str!("files/one_missing.tir"), include_str!("files/gemm.tir")].concat();
    let output = piped(&["sim", "-", "--set", "n=5", "--json"], &both);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["runs"][0]["arguments"]["n"], "5");
    assert_eq!(found["runs"][1]["kernel"], "gemm::<f16, 128, 64, 32>");
    let output = piped(&["sim", "-", "--set", "Q=5"], &both);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("`--set Q`: kernel `ring` has `M`, `K`, `n`; kernel `gemm` has"), "{told}");
}

#[test]
fn sim_explores_every_order() {
    let text = sim("ring.tir", &["--explore"], 0);
    assert!(text.contains("no errors in any order ("), "{text}");
    let text = sim("ring.tir", &["--explore", "--max-states", "5"], 1);
    assert!(text.contains("no errors found, but not all orders were explored: 5 states"), "{text}");
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
    assert!(!svg.contains("the program"), "an agent that only waits for the roles has no row");
    assert!(!svg.contains("<title>ttg.stage.async_produce ,"), "what uses its token up had one");
}

/// Draws a run of a file, which ends with this status.
fn drawn(args: &[&str], status: i32) -> String {
    let path = std::env::temp_dir().join(format!("titan-cli-{}-{}.svg", std::process::id(), args.join("")));
    let name = path.to_str().expect("UTF-8");
    stdout(&[&["sim"], args, &["--timeline", name]].concat(), status);
    let svg = std::fs::read_to_string(&path).expect("a picture");
    std::fs::remove_file(&path).expect("it can go");
    svg
}

#[test]
fn a_picture_says_what_went_wrong_and_in_which_program() {
    let svg = drawn(&["one_missing.tir"], 1);
    assert!(svg.contains("class=\"e\"") && svg.contains(">deadlock: `consumer` waits"), "{svg}");
    assert!(drawn(&["ring.tir", "--grid", "3"], 0).contains("ring, program 2 of the grid with"));
    let svg = drawn(&["ring.tir", "--grid", "4", "--cluster", "2"], 0);
    assert!(svg.contains("ring, cluster 1 of the grid with"));
    // Steps begin to the right of the longest name.
    let name = "producer of program 1 of the cluster";
    assert!(svg.contains(name), "{svg}");
    let first = svg.split("<line class=\"g\" x1=\"").nth(1).and_then(|l| l.split('"').next()).expect("an axis");
    assert!(first.parse::<f64>().expect("a number") > 16.0 + 7.0 * name.len() as f64, "{first}");
}

#[test]
fn the_picture_of_the_page_is_what_is_drawn() {
    let svg = drawn(&["ring.tir", "--set", "n=9", "--set", "M=16", "--set", "K=160", "--seed", "1"], 0);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/timeline.svg");
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(page, &svg).expect("the page's folder is there");
    }
    assert!(std::fs::read_to_string(page).expect("a picture") == svg, "docs/timeline.svg: TITAN_BLESS=1 draws it anew");
    // Four waits of the producer end with a release by the consumer, two of the consumer with copies.
    assert_eq!(svg.matches("<path class=\"k\"").count(), 6);
}

#[test]
fn opt_places_what_is_missing() {
    assert!(stdout(&["check", "unfenced.tir"], 1).contains("error[T0709]"));
    let output = titan(&["opt", "unfenced.tir", "--passes", "fence"]);
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(told.contains("fence inserted before `ttg.nv.cp_async_bulk_tensor.store` at 14:9"), "{told}");
    let fenced = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(!fenced.contains(" @1"), "places of another file\n{fenced}");
    assert!(!stdout(&["opt", "ring.tir", "--passes", "canonical"], 0).contains(" @2:"), "a ring of another file");
    let path = std::env::temp_dir().join(format!("titan-cli-{}.tir", std::process::id()));
    std::fs::write(&path, &fenced).expect("a file");
    let name = path.to_str().expect("UTF-8");
    let (checked, again) = (stdout(&["check", name], 0), stdout(&["opt", name, "--passes", "fence"], 0));
    std::fs::remove_file(&path).expect("it can go");
    assert!(checked.contains("no errors"), "{checked}");
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
        &["sim", "ring.tir", "rung"],
        &["sim", "ring.tir", "--grid", "1,x"],
        &["opt", "unfenced.tir"],
        &["opt", "unfenced.tir", "--passes", "fense"],
        &["opt", "unfenced.tir", "--passes", "rings"],
        &["opt", "unfenced.tir", "--passes", "fence", "--call", "f=sync"],
        &["sim", "ring.tir", "--explore", "--seed", "1"],
        &["sim", "ring.tir", "--schedule", "what"],
        &["sim", "ring.tir", "--schedule", "3/0:4"],
        &["sim", "ring.tir", "--schedule", "0/9:4"],
        &["sim", "ring.tir", "--schedule", "0/0:3,c7"],
        &["sim", "ring.tir", "--set", "n=2147483648"],
        &["sim", "ring.tir", "--strict"],
        &["sim", "ring.tir", "--max-states", "5"],
        &["sim", "ring.tir", "--explore", "--strict"],
        &["sim", "ring.tir", "--grid", "-1"],
    ] {
        let output = titan(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?} says why");
        assert!(output.stdout.is_empty(), "{args:?} leaves stdout alone");
    }
    assert!(stdout(&["--help"], 0).contains("doctor"));
}

/// Conditions that the verifier adds for launches are checked by a run in the simulator too.
#[test]
fn sim_refuses_arguments_that_a_launch_refuses() {
    let text = "kernel @k(%c: mut tensor<f32>[N], %n: i32) grid(N) pipe(2, \"ring\", tile<16xf32>) role(f, 1) role(r, 1) {\n\
        %zero = const 0 : i32\n%one = const 1 : i32\n%v = const 0.0 : f32\n%p = program_id<0> : i32\n%more = add %n, %one\nttg.roles f {\n\
        for %i = %zero to %more step %one {\n%a = ttg.stage.acquire<0>\nttg.stage.zero %a\ncontinue\n}\nttg.pipeline.finalize\nyield\n} r {\n\
        for %j = %zero to %more step %one {\n%y = ttg.stage.ready<0>\n%w = ttg.stage.wait_ready %y\n%q = ttg.stage.read_perm %w\n\
        %d = ttg.stage.consumed %q\nttg.stage.release %d\ncontinue\n}\nset %c[%p], %v\nttg.pipeline.finalize\nyield\n}\nreturn\n}\n";
    for more in [&[][..], &["--explore"]] {
        let run = |n: &str| piped(&[&["sim", "-", "--set", "N=1", "--set", n], more].concat(), text);
        assert_eq!(run("n=3").status.code(), Some(0), "{:?}", run("n=3"));
        let refused = run("n=2147483647");
        assert_eq!(refused.status.code(), Some(2));
        let told = String::from_utf8_lossy(&refused.stderr);
        assert!(told.contains("the kernel requires `n <= 2147483646`, but n = 2147483647"), "{told}");
    }
}

#[test]
fn sim_runs_the_kernels_that_it_can() {
    let output = titan(&["sim", "needy.tir", "--json", "--sanitize"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`two`"), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(found["runs"][0]["error"].as_str().is_some_and(|e| e.contains("`two`")), "{found}");
    assert_eq!(
        (&found["runs"][1]["kernel"], &found["findings"][0]["code"]),
        (&Value::from("same"), &Value::from("race"))
    );
    // Alone, nothing is left to say.
    let output = titan(&["sim", "needy.tir", "two"]);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true));
    assert!(stdout(&["sim", "needy.tir", "--set", "N=2"], 0).contains("`two` with N = 2: no errors found"));
}

#[test]
fn programs_of_a_grid_race() {
    for how in ["--sanitize", "--explore"] {
        let text = stdout(&["sim", "needy.tir", "same", "--set", "N=2", how], 1);
        assert!(text.contains("error[race]: `c` is written by program [1, 0, 0]"), "{text}");
        let again = text.lines().find_map(|l| l.split_once("to reproduce: titan ")).expect("a command").1;
        assert!(stdout(&again.split(' ').collect::<Vec<_>>(), 1).contains("error[race]"), "{again}");
    }
}

#[test]
fn runs_that_do_not_end_are_told() {
    assert!(sim("ring.tir", &["--max-steps", "10"], 1).contains("error[steps]"));
}

/// A file that is empty, or has comments only, is most likely not the one that was meant: every command says so.
#[test]
fn files_without_kernels_are_errors() {
    let dir = tempfile("empty");
    for text in ["", "\n", "; nothing\n"] {
        let file = dir.join("empty.tir");
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        for args in [&["check", file][..], &["fmt", file], &["sim", file], &["opt", "--passes", "fence", file]] {
            let output = titan(args);
            let told = String::from_utf8(output.stderr).unwrap();
            assert_eq!(told, format!("titan: {file}: the file contains no kernel\n"), "{args:?}");
            assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &[][..]), "{args:?}");
        }
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// A name of a file need not be text.
#[cfg(unix)]
#[test]
fn paths_that_are_no_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let dir = tempfile("bytes");
    let [good, bad, picture] =
        [&b"g\xff.tir"[..], b"b '\xfe.tir", b"p\xff.svg"].map(|n| dir.join(OsStr::from_bytes(n)));
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/gemm.tir"), &good).unwrap();
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/overlap.tir"), &bad).unwrap();
    let run = |args: &[&OsStr]| {
        let output = Command::new(env!("CARGO_BIN_EXE_titan")).args(args).output().unwrap();
        let text = String::from_utf8(output.stdout).expect("what is printed is text");
        (output.status.code(), text, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, text, told) = run(&["check".as_ref(), good.as_os_str()]);
    assert_eq!(status, Some(0), "{told}");
    assert!(text.ends_with("g\u{fffd}.tir: 1 kernel, no errors\n"), "{text}");
    assert_eq!(run(&["fmt".as_ref(), good.as_os_str()]).0, Some(0));
    let (status, text, told) = run(&["check".as_ref(), "--json".as_ref(), bad.as_os_str()]);
    assert_eq!(status, Some(1), "{told}");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(report["file"].as_str().is_some_and(|f| f.ends_with("b '\u{fffd}.tir")), "{report}");
    assert!(run(&["check".as_ref(), bad.as_os_str()]).1.contains("b '\u{fffd}.tir:6:5"));
    let (status, _, told) = run(&["sim".as_ref(), "--timeline".as_ref(), picture.as_os_str(), good.as_os_str()]);
    assert!(status == Some(0) && picture.exists(), "{told}");
    let missing = dir.join(OsStr::from_bytes(b"m\xff"));
    let (status, _, told) = run(&["check".as_ref(), missing.as_os_str()]);
    assert!(status == Some(2) && told.contains("m\u{fffd}: "), "{told}");
    std::fs::remove_dir_all(dir).unwrap();
}

/// Time grows with the text, not with its square: this took minutes.
#[test]
fn a_long_chain_of_operations_is_checked_in_time() {
    let dir = tempfile("long");
    let file = dir.join("long.tir");
    let mut text =
        "kernel @long(%y: mut tensor<f32>[N]) grid unchecked(1) {\n    %zero = const 0 : i32\n    %v0 = const 1.0 : f32\n"
            .to_owned();
    for i in 0..100_000 {
        writeln!(text, "    %v{} = add %v{i}, %v{i}", i + 1).unwrap();
    }
    text.push_str("    set %y[%zero], %v100000\n    return\n}\n");
    std::fs::write(&file, text).unwrap();
    let started = std::time::Instant::now();
    assert!(stdout(&["check", file.to_str().unwrap()], 0).ends_with("1 kernel, no errors\n"));
    let seconds = started.elapsed().as_secs();
    assert!(seconds < 60, "{seconds} s for 100,000 operations");
    std::fs::remove_dir_all(dir).unwrap();
}

/// A folder of this test's.
fn tempfile(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("titan-cli-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

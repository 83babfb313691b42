//! What is read out of the output of tests, and the table.

use crate::defect::{Defect, parse};
use crate::page::{Results, page, results, table};
use crate::verdict::{Reader, Verdict};

/// What a run with this output shows of a defect in titan-core.
fn read(output: &str, success: bool) -> Result<Verdict, String> {
    let mut reader = Reader::new("titan-gpu-core");
    let decided = output.lines().any(|line| reader.line(line));
    assert_eq!(decided, reader.is_decided());
    reader.end(success)
}

fn found(by: &str) -> Result<Verdict, String> {
    Ok(Verdict::Found(by.to_owned()))
}

#[test]
fn tests_that_pass_let_it_survive() {
    let output = "tests, quick depth: samples.\n\nbuilt in 0 min 02 s; 1 test programs run\n[  1/1] ok        0.1 s  titan-core pipes: 20 passed\n";
    assert_eq!(read(output, true), Ok(Verdict::Survived));
    assert!(read(output, false).is_err());
}

/// An error of the command is not a defect that was found.
#[test]
fn a_run_without_tests_is_an_error() {
    assert!(read("xtask: there is no such test program\n", false).is_err());
    assert!(read("", true).is_err());
}

#[test]
fn the_first_failed_test_is_named() {
    let output = "built in 0 min 02 s; 2 test programs run\n[  1/2] ok        0.1 s  titan-core lane: 20 passed\nrunning 2 tests\ntest a::good ... ok\ntest a::bad ... FAILED\ntest a::worse ... FAILED\n\ntest result: FAILED.\n[  2/2] FAILED    0.1 s  titan-core pipes: 1 passed, 2 failed\n";
    assert_eq!(read(output, false), found("titan-core pipes a::bad"));
    let headed =
        output.replace("test a::bad ... FAILED", "test a::bad ... some output\nFAILED\n---- a::bad stdout ----");
    assert_eq!(read(&headed, false), found("titan-core pipes a::bad"));
}

/// A program may print a failed test and yet pass, if its subject are failing tests.
#[test]
fn tests_of_a_program_that_passed_do_not_count() {
    let output = "built in 0 min 02 s; 2 test programs run\ntest a::bad ... FAILED\n[  1/2] ok        0.1 s  titan-core lane: 20 passed\nthe test program ended with signal: 11\n[  2/2] FAILED  120.1 s  titan-gpu language on sm_80: 0 passed\n";
    assert_eq!(read(output, false), found("titan-gpu language on sm_80"));
}

#[test]
fn what_does_not_compile_is_told_apart() {
    let own = "error: could not compile `titan-gpu-core` (lib) due to 1 previous error; 2 warnings emitted\n";
    assert_eq!(read(own, false), Ok(Verdict::NotBuilt));
    let other = "error: could not compile `titan-gpu` (test \"language\") due to 3 previous errors\n";
    assert_eq!(read(other, false), found("titan-gpu (test \"language\") does not compile"));
    let own_test = "error: could not compile `titan-gpu-core` (test \"lane\") due to 1 previous error\n";
    assert_eq!(read(own_test, false), found("titan-gpu-core (test \"lane\") does not compile"));
}

/// Tests of compile errors print such errors.
#[test]
fn what_tests_print_is_no_message_of_the_build() {
    let output = "built in 0 min 02 s; 1 test programs run\nerror: could not compile `titan-gpu-core` (lib) due to 1 previous error\n[  1/1] FAILED    0.1 s  ui-tests ui: 0 passed, 1 failed\n";
    assert_eq!(read(output, false), found("ui-tests ui"));
}

#[test]
fn what_does_not_end_is_named() {
    let hangs = |output: &str| {
        let mut reader = Reader::new("titan-gpu-core");
        assert!(!output.lines().any(|line| reader.line(line)));
        reader.hangs(10).to_string()
    };
    let running = "built in 0 min 02 s; 2 test programs run\n          still running: titan-core pipes (20 s), titan-core lane (3 s)\n";
    assert_eq!(hangs(running), "found: titan-core pipes: no end within 10 minutes");
    assert_eq!(hangs(""), "found: the build of the tests: no end within 10 minutes");
}

fn defects() -> Vec<Defect> {
    let text = "defect a: x | y\nfile f.rs\ntests t u, v\n-x\n+y\n\ndefect b\nfile g.rs\ntests t\n-x\n+y\n";
    parse("area", text).expect("a list")
}

#[test]
fn the_table_is_read_as_it_is_written() {
    let defects = defects();
    let first = Results { quick: Some(Verdict::Survived), full: Some(Verdict::Found("t u a|b".into())) };
    let second = Results { quick: Some(Verdict::NotBuilt), full: None };
    let text = page(&[(&defects[0], first.clone()), (&defects[1], second.clone())]);
    assert!(text.contains("| a: x \\| y | `f.rs` | t u, v | survived | found: t u a\\|b |\n"), "{text}");
    assert!(text.ends_with("| b | `g.rs` | t | does not compile | – |\n"), "{text}");
    assert_eq!(results(&text, "a: x | y"), first);
    assert_eq!(results(&text, "b"), second);
    assert_eq!(results(&text, "c"), Results::default());
    assert_eq!(results("", "b"), Results::default());
    assert_eq!(table(&[]).lines().count(), 2);
}

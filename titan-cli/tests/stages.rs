//! `titan emit`: the stages of kernels, for machines of both back ends.

use std::process::{Command, Output};

fn emit(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_titan"));
    command.arg("emit").args(args).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files"));
    command.output().expect("the tool runs")
}

/// What is printed, which must succeed.
fn printed(args: &[&str]) -> Vec<u8> {
    let output = emit(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn text(args: &[&str]) -> String {
    String::from_utf8(printed(args)).expect("UTF-8")
}

#[test]
fn the_last_stage_is_the_code_of_the_target() {
    assert!(text(&["gemm.tir"]).contains(".target sm_80"));
    assert!(text(&["gemm.tir", "--target", "gfx942"]).contains("s_endpgm"));
}

#[test]
fn each_back_end_has_stages_of_its_own() {
    let amd = |stage| printed(&["gemm.tir", "--target", "gfx942", "--stage", stage]);
    let machine = String::from_utf8(amd("machine")).expect("UTF-8");
    let asm = String::from_utf8(amd("asm")).expect("UTF-8");
    // Waits come with the registers' numbers.
    assert!(!machine.contains("s_waitcnt") && asm.contains("s_waitcnt"), "{asm}");
    assert!(amd("hsaco").starts_with(b"\x7fELF"));
    assert!(String::from_utf8(amd("lanes")).expect("UTF-8").contains("lanes=64"));
    for (target, stage, code) in [("gfx942", "ptx", "asm"), ("sm_80", "hsaco", "ptx"), ("sm_80", "machine", "ptx")] {
        let output = emit(&["gemm.tir", "--target", target, "--stage", stage]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && output.stdout.is_empty());
        assert!(said.contains(&format!("{target} has no stage `{stage}`; its code is `{code}`")), "{said}");
    }
}

#[test]
fn the_scheduler_may_be_chosen() {
    let [rule, swing] = ["rule", "swing"].map(|by| text(&["gemm.tir", "--stage", "schedule", "--schedule", by]));
    assert_eq!(swing, text(&["gemm.tir", "--stage", "schedule"]), "it is the default on sm_80");
    assert_ne!(rule, swing);
}

/// A file with the text, which is removed when it is dropped.
struct Written(std::path::PathBuf);

impl Written {
    fn new(name: &str, text: &str) -> Written {
        let path = std::env::temp_dir().join(format!("titan-{}-{name}.tir", std::process::id()));
        std::fs::write(&path, text).expect("a file");
        Written(path)
    }

    fn name(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// The schedule that was chosen, written to a file, gives the same code; on machines with each way to copy and to multiply.
#[test]
fn a_schedule_from_a_file_is_carried_out() {
    let by_swing = |kernel, target| (kernel, target, "swing");
    let by_rule = |kernel, target| (kernel, target, "rule");
    let gemm = ["sm_80", "sm_90a", "sm_120a", "gfx942"].map(|target| by_rule("gemm.tir", target));
    let attention = ["sm_80", "sm_90a", "gfx942"].map(|target| by_rule("attention.tir", target));
    for (kernel, target, by) in [&gemm[..], &attention, &[by_swing("gemm.tir", "sm_80")]].concat() {
        let with = |more: &[&str]| text(&[&[kernel, "--target", target, "--schedule", by], more].concat());
        let written = Written::new(&format!("{target}-{by}-{kernel}"), &with(&["--stage", "scheduled"]));
        assert_eq!(with(&["--scheduled", written.name()]), with(&[]), "{kernel} for {target} by {by}");
    }
}

/// Which loops are split into iterations without masks and the rest is a part of their schedules.
#[test]
fn a_schedule_from_a_file_says_which_loops_are_split() {
    for target in ["sm_80", "sm_90a"] {
        let with = |more: &[&str]| text(&[&["attention.tir", "--target", target], more].concat());
        let scheduled = with(&["--stage", "scheduled"]);
        let whole = scheduled.replace(" unmasked", "");
        assert_ne!(whole, scheduled, "{target}");
        let written = Written::new(&format!("whole-{target}"), &whole);
        let [split, whole] = [with(&[]), with(&["--scheduled", written.name()])].map(|code| code.lines().count());
        assert!(whole < split, "{target}: {whole} lines for {split}");
    }
}

/// Without stages and places, loops stay as they are written: nothing is copied ahead, and the kernel is another one.
#[test]
fn a_schedule_from_a_file_may_differ() {
    let scheduled = text(&["gemm.tir", "--stage", "scheduled"]);
    let mut plain = String::new();
    for line in scheduled.lines() {
        // ` stage(1, 4)` ends at the parenthesis.
        let (begin, end) =
            line.split_once(" stage(").map_or((line, ""), |(a, b)| (a, b.split_once(')').expect("a place").1));
        plain.push_str(&format!("{begin}{end}\n"));
    }
    assert_ne!(plain, scheduled);
    let written = Written::new("plain", &plain);
    let loops = |more: &[&str]| text(&[&["gemm.tir", "--stage", "loops"], more].concat());
    let as_chosen = loops(&[]);
    assert!(loops(&["--scheduled", written.name()]).lines().count() < as_chosen.lines().count());
    assert_eq!(text(&["gemm.tir", "--stage", "laid-out"]), plain);
}

#[test]
fn mistakes_in_a_schedule_from_a_file_are_told() {
    let scheduled = text(&["gemm.tir", "--stage", "scheduled"]);
    let says = |text: &str, target: &str, what: &str| {
        let written = Written::new("mistake", text);
        let output = emit(&["gemm.tir", "--scheduled", written.name(), "--target", target]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{text}");
        assert!(told.contains(what) && !told.contains("a defect of TITAN"), "`{what}` is not in:\n{told}");
    };
    // The first place that stands in the text is that of the acquire, which is in stage 0.
    let place = scheduled.split_once(" stage(0, ").and_then(|(_, more)| more.split_once(')')).expect("a place").0;
    let acquire = format!(" stage(0, {place})");
    let other = |with: &str| scheduled.replacen(&acquire, with, 1);
    says(&other(""), "sm_80", "error[T0902]: the schedule of the loop has no place for it");
    says(&other(" stage(63, 50)"), "sm_80", "error[T0902]: at stage(63, 50), the schedule reads stages");
    says(&other(" stage(65536, 50)"), "sm_80", "error[T0805]: 65536 is out of range for a stage");
    says(&other(" stage(0, 0)"), "sm_80", "the schedule of the loop has two operations at this place");
    let outside = scheduled.replacen("    return @", "    return stage(0, 0) @", 1);
    assert_ne!(outside, scheduled);
    says(&outside, "sm_80", "it has a place in a schedule, and is directly in the body of no loop");
    says(&scheduled.replace("@gemm", "@other"), "sm_80", "no kernel `gemm::<f16, 128, 64, 32>`; the kernels are");
    says(
        &scheduled,
        "sm_90a",
        "error[T0902]: what is written is not this kernel as it is laid out for sm_90a: `) grid",
    );
    says(&scheduled, "sm_90a", "help: `titan emit --stage scheduled` prints the schedule that is chosen");
    says("kernel @", "sm_80", "error[T0805]: expected the kernel's name");
    // No iteration of the loop is known to be without masks, as the tiles at the ends of the tensors are not the kernel's to split.
    let unmasked = scheduled.replacen("f32, 0> @4:5 {", "f32, 0> unmasked @4:5 {", 1);
    assert_ne!(unmasked, scheduled);
    says(&unmasked, "sm_80", "no iteration of this loop is known to need no masks");
    // A view that is made an iteration later makes all waits for its stage one of iterations ahead.
    let scheduled = text(&["gemm.tir", "--target", "gfx942", "--stage", "scheduled"]);
    let view = scheduled.find("ttg.stage.view<0>").expect("a view");
    let late = scheduled[..view].to_owned() + &scheduled[view..].replacen(" stage(1, ", " stage(2, ", 1);
    says(&late, "gfx942", "a copy out of registers cannot be ahead where waits for its stages are");
}

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

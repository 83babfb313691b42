//! Illegal states: each an error that names the address, the instruction and the wave.

use crate::harness::over_words;

fn told(body: &str) -> String {
    over_words(body, &[1; 64]).map(|w| format!("{w:?}")).unwrap_err().to_string()
}

#[test]
fn errors_name_instruction_and_wave() {
    let error = told("v_mov_b32_e32 v4, v99");
    for want in [
        "error[emu::register]: `v99` is used, and the kernel was given 64 registers of its kind",
        "(`k` + 0x34): v_mov_b32_e32 v4, v99",
        "wave 0 of workgroup (0, 0, 0)",
    ] {
        assert!(error.contains(want), "{want} is not in:\n{error}");
    }
}

#[test]
fn each_illegal_state_has_its_code() {
    for (body, want) in [
        ("v_mov_b32_e32 v4, v99", "emu::register]: `v99` is used, and the kernel was given 64"),
        ("s_mov_b32 s70, 0\nv_mov_b32_e32 v4, 0", "emu::register]: `s70`"),
        ("global_load_dword v4, v[0:1], off\nv_mov_b32_e32 v5, v4", "emu::in-flight]: `v4` is used while"),
        ("global_load_dword v4, v[0:1], off\nv_mov_b32_e32 v4, 0", "emu::in-flight]: `v4` is used while"),
        ("s_load_dword s4, s[0:1], 0x0\nv_mov_b32_e32 v4, s4", "emu::in-flight]: `s4` is used while a scalar load"),
        ("global_load_dword v4, v[0:1], off offset:1024\ns_waitcnt vmcnt(0)", "emu::out-of-bounds]"),
        ("v_mov_b32_e32 v4, 0\nglobal_atomic_add v[0:1], v4, off offset:1", "emu::misaligned]"),
        ("v_mov_b32_e32 v5, 0x1000\nds_write_b32 v5, v3\ns_waitcnt lgkmcnt(0)", "emu::out-of-bounds]"),
        ("v_mov_b32_e32 v4, 0\ns_trap 2", "emu::trap]"),
        ("v_exp_f32_e32 v4, v3\nv_mov_b32_e32 v4, v4", "emu::hazard]"),
        ("v_readfirstlane_b32 s4, v3\nv_mov_b32_e32 v4, s4", "emu::hazard]"),
        ("s_branch 100", "runs outside of the code"),
    ] {
        let error = told(body);
        assert!(error.contains(want), "{body}:\n{error}");
    }
}

//! Undefined bits: what may be done with them, and what is an error, which names where they come from.

use crate::harness::{Bench, ONE_POINTER, over_words, over_words_with, upload};
use titan_amd::emu::{Arg, DevicePtr, Memory, Options, Uninitialised};

fn told(body: &str) -> String {
    over_words(body, &[1; 64]).map(|w| format!("{w:?}")).unwrap_err().to_string()
}

#[test]
fn addresses_branches_and_masks_may_not_depend_on_them() {
    for (body, want) in [
        ("global_load_dword v4, v[20:21], off", "an address depends on `v20`, which was never written"),
        ("global_store_dword v[20:21], v3, off", "an address depends on `v20`"),
        ("v_mov_b32_e32 v20, 0\nglobal_load_dword v4, v20, s[20:21]", "an address depends on `s20`"),
        ("global_atomic_add v[20:21], v3, off", "an address depends on `v20`"),
        ("flat_load_dword v4, v[20:21]", "an address depends on `v20`"),
        ("scratch_load_dword v4, v20, off", "an address depends on `v20`"),
        ("buffer_load_dword v4, v20, s[8:11], 0 offen", "the descriptor of a buffer depends on `s10`"),
        ("ds_read_b32 v4, v20", "an address of the local data share depends on `v20`"),
        ("ds_write_b32 v20, v3", "an address of the local data share depends on `v20`"),
        ("global_load_lds_dword v[0:1], off", "an address of the local data share depends on `m0`"),
        ("s_load_dword s24, s[20:21], 0x0", "an address depends on `s20`"),
        ("s_load_dword s24, s[8:9], s20", "an address depends on `s20`"),
        ("ds_bpermute_b32 v4, v20, v3", "the choice of a lane depends on `v20`"),
        ("v_readlane_b32 s24, v3, s20", "the choice of a lane depends on `s20`"),
        ("v_writelane_b32 v4, 1, s20", "the choice of a lane depends on `s20`"),
        ("s_mov_b64 exec, s[20:21]", "the mask of active lanes depends on `s20`"),
        ("s_mov_b32 exec_hi, s20", "the mask of active lanes depends on `s20`"),
        ("s_and_saveexec_b64 s[24:25], s[20:21]", "the mask of active lanes depends on `s20`"),
        ("v_cmpx_lt_u32_e32 vcc, v20, v3", "the mask of active lanes depends on `v20`"),
        ("v_readfirstlane_b32 exec_lo, v20", "the mask of active lanes depends on `v20`"),
        ("s_cmp_eq_u32 s20, 0\ns_cbranch_scc0 0", "a branch depends on `s20`"),
        ("s_cbranch_scc1 0", "a branch depends on `scc`, which was never set"),
        ("v_cmp_lt_u32_e32 vcc, v20, v3\ns_nop 4\ns_cbranch_vccnz 0", "a branch depends on `v20`"),
        ("s_setpc_b64 s[20:21]", "the target of a branch depends on `s20`"),
        ("s_swappc_b64 s[24:25], s[20:21]", "the target of a branch depends on `s20`"),
        ("s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s20", "the mode depends on `s20`"),
    ] {
        let error = told(body);
        assert!(error.contains(&format!("error[emu::uninitialised]: {want}")), "{body}:\n{error}");
        assert!(error.contains("in wave 0") || error.contains("of wave 0"), "{body}:\n{error}");
        let last = body.lines().last().unwrap();
        assert!(error.contains(last) || last.contains("branch"), "{body}:\n{error}");
    }
}

#[test]
fn memory_that_was_not_written_is_named_by_its_load() {
    for (load, wait, pc) in [
        ("ds_read_b32 v5, v6", "lgkmcnt(0)", "ds_read_b32 v5, v6"),
        ("scratch_load_dword v5, v6, off", "vmcnt(0)", "scratch_load_dword v5, v6, off"),
    ] {
        // The loaded bits are computed with, kept in other registers, and then are an address.
        let body = format!(
            "v_mov_b32_e32 v6, 0\n{load}\ns_waitcnt {wait}\nv_add_u32_e32 v7, v5, v3\nv_lshlrev_b32_e32 v8, 2, v7
            v_mov_b32_e32 v9, 0\nglobal_load_dword v4, v[8:9], off"
        );
        let mut bench = Bench::pointers(1);
        bench.private = 64;
        let text = format!("{ONE_POINTER}global_load_dword v3, v[0:1], off\ns_waitcnt vmcnt(0)\n{body}\ns_endpgm");
        let mut memory = Memory::new();
        let x = upload(&mut memory, "x", &[1; 64]);
        let error =
            bench.run(&text, (1, 64), &[Arg::Ptr(x)], &mut memory, &Options::default()).unwrap_err().to_string();
        for want in [
            "an address depends on memory that was not yet written when it was loaded",
            "global_load_dword v4, v[8:9], off",
            "against the load",
            pc,
        ] {
            assert!(error.contains(want), "{load}: {want} is not in:\n{error}");
        }
    }
}

#[test]
fn they_may_be_copied_and_what_masks_them_is_defined() {
    // `v20` to `v22` and `s20` were never written.
    for (body, want) in [
        ("v_and_b32_e32 v4, 0, v20", 0),
        ("v_mov_b32_e32 v21, v20\nv_or_b32_e32 v4, -1, v21", u32::MAX),
        // Undefined high halves: dropped by a shift, a field, a permutation, a selection, a pack.
        ("s_mov_b32 s21, 0xffff\nv_bfi_b32 v21, s21, v3, v20\nv_and_b32_e32 v4, 0xff, v21", 1),
        ("s_mov_b32 s21, 0xffff\nv_bfi_b32 v21, s21, v3, v20\nv_lshlrev_b32_e32 v4, 16, v21", 1 << 16),
        ("s_mov_b32 s21, 0xffff\nv_bfi_b32 v21, s21, v3, v20\nv_bfe_u32 v4, v21, 0, 16", 1),
        (
            "s_mov_b32 s21, 0xffff\nv_bfi_b32 v21, s21, v3, v20\ns_mov_b32 s22, 0x01000100\nv_perm_b32 v4, v21, v21, s22",
            0x0001_0001,
        ),
        ("s_mov_b32 s21, 0xffff\nv_bfi_b32 v21, s21, v3, v20\nv_add_u16_e32 v4, 1, v21", 2),
        ("s_mov_b32 s21, 0xffff\nv_bfi_b32 v21, s21, v3, v20\nv_pk_add_u16 v4, v21, v21 op_sel_hi:[0,0]", 0x0002_0002),
        // A sum reaches upwards only.
        (
            "s_mov_b32 s21, 0xff\nv_bfi_b32 v21, s21, v3, v20\nv_add_u32_e32 v21, v21, v21\nv_and_b32_e32 v4, 0xff, v21",
            2,
        ),
        // Of a word only the sign is tested; which of two equal values is chosen does not matter.
        (
            "v_and_b32_e32 v21, 0x7fffffff, v20\nv_cmp_gt_i32_e32 vcc, 0, v21\ns_nop 1\nv_cndmask_b32_e64 v4, 5, 6, vcc",
            5,
        ),
        ("v_cmp_gt_i32_e32 vcc, 0, v20\ns_nop 1\nv_cndmask_b32_e64 v4, 7, 7, vcc", 7),
        // A mask that is false in all lanes hides a condition.
        (
            "s_mov_b64 s[22:23], 0\ns_and_b64 s[24:25], s[20:21], s[22:23]\ns_and_saveexec_b64 s[26:27], s[24:25]
          v_mov_b32_e32 v4, 1\ns_mov_b64 exec, s[26:27]\nv_mov_b32_e32 v4, 2",
            2,
        ),
        ("s_and_b32 s22, s20, 0\ns_cmp_eq_u32 s22, 0\ns_cselect_b32 s23, 3, 4\nv_mov_b32_e32 v4, s23", 3),
        // A branch on a mask that has a lane for certain.
        ("s_or_b64 vcc, s[20:21], 1\ns_nop 4\ns_cbranch_vccnz 1\ns_endpgm\nv_mov_b32_e32 v4, 9", 9),
        // Inactive lanes may be anything.
        (
            "v_mov_b32_e32 v4, 8\ns_mov_b64 s[22:23], exec\ns_mov_b64 exec, 0\nglobal_load_dword v5, v[20:21], off
          s_mov_b64 exec, s[22:23]\ns_waitcnt vmcnt(0)",
            8,
        ),
        // Lanes move with what they hold.
        ("v_mov_b32_dpp v4, v3 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1\nv_or_b32_e32 v4, 1, v4", 1),
    ] {
        let got = over_words(body, &[1; 64]).unwrap_or_else(|e| panic!("{body}: {e}"));
        assert_eq!(got, [want; 64], "{body}");
        // And with other contents of what is undefined.
        let options = Options { undefined_seed: 77, ..Options::default() };
        assert_eq!(over_words_with(body, &[1; 64], &options).unwrap(), [want; 64], "{body}");
    }
}

#[test]
fn the_host_is_told_which_store_left_them() {
    let error = told("v_add_f32_e32 v4, v3, v20");
    for want in [
        "error[emu::uninitialised]: byte 0 of `x` has undefined bits",
        "against the store of bits that depend on `v20`, which was never written at 0x",
        "(`k` + 0x38): global_store_dword v[0:1], v4, off",
    ] {
        assert!(error.contains(want), "{want} is not in:\n{error}");
    }
}

/// Runs a kernel with private memory and a local data share over 64 zeros.
fn run(body: &str, options: &Options) -> (Memory, DevicePtr) {
    let mut bench = Bench::pointers(1);
    bench.private = 64;
    let mut memory = Memory::new();
    let x = upload(&mut memory, "x", &[0; 64]);
    let text = format!("{ONE_POINTER}{body}\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_endpgm");
    bench.run(&text, (1, 64), &[Arg::Ptr(x)], &mut memory, options).unwrap_or_else(|e| panic!("{body}: {e}"));
    (memory, x)
}

#[test]
fn memory_keeps_them_bit_by_bit() {
    // A field of three bits is written, then one of five, of a byte that was never written: each reads, changes and writes the byte.
    let fields = |load: &str, store: &str, wait: &str| {
        format!(
            "{load}\ns_waitcnt {wait}\nv_and_b32_e32 v5, 0xf8, v5\nv_or_b32_e32 v5, 3, v5\n{store}\ns_waitcnt {wait}
            {load}\ns_waitcnt {wait}\nv_and_b32_e32 v5, 7, v5\nv_or_b32_e32 v5, 0xa8, v5\n{store}\ns_waitcnt {wait}
            {load}\ns_waitcnt {wait}\nglobal_store_dword v[0:1], v5, off"
        )
    };
    for body in [
        fields("ds_read_u8 v5, v3", "ds_write_b8 v3, v5", "lgkmcnt(0)"),
        fields("scratch_load_ubyte v5, v3, off", "scratch_store_byte v3, v5, off", "vmcnt(0)")
            .replace("v3", "v6")
            .replacen("scratch", "v_mov_b32_e32 v6, 9\nscratch", 1),
        format!(
            "v_mov_b32_e32 v9, v30\nglobal_store_dword v[0:1], v9, off\ns_waitcnt vmcnt(0)\n{}",
            fields(
                "global_load_ubyte v5, v[0:1], off offset:1",
                "global_store_byte v[0:1], v5, off offset:1",
                "vmcnt(0)"
            )
        ),
    ] {
        let (memory, x) = run(&body, &Options::default());
        assert_eq!(memory.read(x, 256).unwrap(), [0xAB, 0, 0, 0].repeat(64), "{body}");
    }
    // Copies of the host keep them as well.
    let (mut memory, x) = run("v_bfi_b32 v5, 15, v2, v30\nglobal_store_dword v[0:1], v5, off", &Options::default());
    let y = memory.alloc("y", 256).unwrap();
    memory.copy(x, y, 256).unwrap();
    assert_eq!(memory.undefined_bits(y, 4).unwrap(), [0xF0, 0xFF, 0xFF, 0xFF]);
    memory.write(y, &[1]).unwrap();
    assert_eq!(memory.undefined_bits(y, 4).unwrap(), [0, 0xFF, 0xFF, 0xFF]);
    // What was never written is undefined as a whole.
    let z = memory.alloc("z", 4).unwrap();
    assert_eq!(memory.undefined_bits(z, 4).unwrap(), [0xFF; 4]);
}

#[test]
fn random_contents_are_those_of_registers_private_memory_and_the_local_data_share() {
    for body in [
        "v_mov_b32_e32 v4, v30",
        "v_accvgpr_read_b32 v4, a9",
        "v_mov_b32_e32 v4, s30",
        "v_mov_b32_e32 v5, 4\nscratch_load_dword v4, v5, off\ns_waitcnt vmcnt(0)",
        "ds_read_b32 v4, v3\ns_waitcnt lgkmcnt(0)",
    ] {
        let text = format!("{body}\nglobal_store_dword v[0:1], v4, off");
        let strict = run(&text, &Options::default());
        assert_eq!(strict.0.undefined_bits(strict.1, 256).unwrap(), [0xFF; 256], "{body}");
        let random = |seed: u64| {
            let options = Options { uninitialised: Uninitialised::Random(seed), ..Options::default() };
            let (memory, x) = run(&text, &options);
            memory.read(x, 256).unwrap_or_else(|e| panic!("{body}: {e}"))
        };
        assert_eq!(random(5), random(5), "{body}");
        let (a, b) = (random(5), random(6));
        assert!(a.iter().zip(&b).filter(|(a, b)| a != b).count() > 3, "{body}: {a:?}");
    }
    // A branch on a random register is no error, and goes both ways.
    let ways: Vec<bool> = (0..40)
        .map(|seed| {
            let body = "v_mov_b32_e32 v4, 1\ns_bitcmp1_b32 s30, 3\ns_cbranch_scc1 1\nv_mov_b32_e32 v4, 2";
            let options = Options { uninitialised: Uninitialised::Random(seed), ..Options::default() };
            over_words_with(body, &[0; 64], &options).unwrap()[0] == 1
        })
        .collect();
    assert!(ways.contains(&true) && ways.contains(&false));
}

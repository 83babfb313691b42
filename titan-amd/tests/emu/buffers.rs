//! Buffers: which offsets are out of range, and what becomes of them. ISA §9.1.5.1.

use crate::harness::{Bench, download, upload};
use titan_amd::emu::{Arg, EmuError, Memory, Options};

/// A wave over a buffer of `records` bytes that begins at the words of memory: lane `l` has its number in `v2` and
/// `4 l` in `v3`; what it leaves in `v4..v7` comes back.
fn run(records: u32, body: &str) -> Result<(Vec<[u32; 4]>, Vec<u32>), EmuError> {
    let text = format!(
        "s_load_dwordx4 s[8:11], s[0:1], 0x0
        v_and_b32_e32 v2, 0x3ff, v0
        v_lshlrev_b32_e32 v3, 2, v2
        v_lshlrev_b32_e32 v8, 4, v2
        v_mov_b32_e32 v4, 0\nv_mov_b32_e32 v5, 0\nv_mov_b32_e32 v6, 0\nv_mov_b32_e32 v7, 0
        s_waitcnt lgkmcnt(0)
        s_mov_b64 s[12:13], s[10:11]
        s_and_b32 s9, s9, 0xffff
        s_mov_b32 s10, {records:#x}
        s_mov_b32 s11, 0x27000
        {body}
        s_waitcnt vmcnt(0) lgkmcnt(0)
        global_store_dwordx4 v8, v[4:7], s[12:13]
        s_endpgm"
    );
    let mut memory = Memory::new();
    let x = upload(&mut memory, "x", &(0..256).map(|i| 1000 + i).collect::<Vec<u32>>());
    let y = upload(&mut memory, "y", &[0; 256]);
    let mut bench = Bench::pointers(2);
    bench.resources.lds_bytes = 1024;
    bench.run(&text, (1, 64), &[Arg::Ptr(x), Arg::Ptr(y)], &mut memory, &Options::default())?;
    let y = download(&memory, y, 256)?.chunks(4).map(|c| c.try_into().unwrap()).collect();
    Ok((y, download(&memory, x, 256)?))
}

#[test]
fn loads_beyond_the_range_are_zero() {
    let (y, _) = run(40, "buffer_load_dword v4, v3, s[8:11], 0 offen").unwrap();
    for (l, y) in y.iter().enumerate() {
        assert_eq!(y[0], if l < 10 { 1000 + l as u32 } else { 0 });
    }
    // Offsets within the instruction count.
    let (y, _) = run(40, "buffer_load_dword v4, v3, s[8:11], 0 offen offset:8").unwrap();
    assert!(y.iter().enumerate().all(|(l, y)| y[0] == if l < 8 { 1002 + l as u32 } else { 0 }));
    // Offsets in a scalar register do not: they move the range.
    let (y, _) = run(40, "s_movk_i32 s20, 0x100\nbuffer_load_dword v4, v3, s[8:11], s20 offen").unwrap();
    assert!(y.iter().enumerate().all(|(l, y)| y[0] == if l < 10 { 1064 + l as u32 } else { 0 }));
}

#[test]
fn words_of_a_lane_are_looked_at_one_by_one() {
    let (y, _) = run(40, "buffer_load_dwordx4 v[4:7], v3, s[8:11], 0 offen").unwrap();
    for (l, y) in y.iter().enumerate() {
        let word = |i: usize| if l + i < 10 { 1000 + (l + i) as u32 } else { 0 };
        assert_eq!(*y, [word(0), word(1), word(2), word(3)], "lane {l}");
    }
}

#[test]
fn stores_beyond_the_range_are_dropped() {
    let (_, x) = run(40, "buffer_store_dword v2, v3, s[8:11], 0 offen").unwrap();
    assert!(x.iter().enumerate().all(|(i, x)| *x == if i < 10 { i as u32 } else { 1000 + i as u32 }));
    let body = "v_mov_b32_e32 v10, 1\nv_mov_b32_e32 v11, 2\nv_mov_b32_e32 v12, 3\nv_mov_b32_e32 v13, 4
        v_cmp_eq_u32_e32 vcc, 8, v2\ns_nop 4\ns_and_saveexec_b64 s[20:21], vcc
        buffer_store_dwordx4 v[10:13], v3, s[8:11], 0 offen\ns_mov_b64 exec, s[20:21]";
    let (_, x) = run(40, body).unwrap();
    assert_eq!(x[7..12], [1007, 1, 2, 1010, 1011]);
    let (_, x) = run(8, "buffer_atomic_add v2, v3, s[8:11], 0 offen").unwrap();
    assert_eq!(x[..4], [1000, 1002, 1002, 1003]);
}

#[test]
fn indices_are_compared_with_the_records_of_a_stride() {
    // Records of eight bytes, four of them.
    let body = "s_or_b32 s9, s9, 0x80000\nbuffer_load_dword v4, v2, s[8:11], 0 idxen offset:4";
    let (y, _) = run(4, body).unwrap();
    assert!(y.iter().enumerate().all(|(l, y)| y[0] == if l < 4 { 1001 + 2 * l as u32 } else { 0 }));
}

#[test]
fn loads_into_the_local_data_share_are_linear_in_the_lane_and_zero_outside() {
    let body = "s_movk_i32 m0, 0x100\nv_sub_u32_e32 v9, 0xfc, v3\ns_nop 0
        buffer_load_dword v9, s[8:11], 0 offen offset:4 lds
        s_waitcnt vmcnt(0)\nds_read_b32 v4, v3 offset:260";
    let (y, _) = run(40, body).unwrap();
    // Lane l loads the word 64 - l, if that is one of ten.
    assert!(y.iter().enumerate().all(|(l, y)| y[0] == if l > 54 { 1000 + 64 - l as u32 } else { 0 }), "{y:?}");
}

#[test]
fn addresses_that_the_range_allows_and_memory_does_not_are_errors() {
    let error = run(0x10000, "buffer_load_dword v4, v3, s[8:11], 0 offen offset:1000").unwrap_err().to_string();
    for want in
        ["emu::out-of-bounds", "`x`", "buffer_load_dword v4, v3, s[8:11], 0 offen offset:1000", "lane 6 of wave 0"]
    {
        assert!(error.contains(want), "{want} is not in:\n{error}");
    }
}

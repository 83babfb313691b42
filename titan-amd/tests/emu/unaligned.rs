//! Accesses at any address: programs of HSA run with unaligned accesses on. Atomic operations need their alignment.

use crate::harness::{Bench, ONE_POINTER, upload};
use titan_amd::emu::{Arg, EmuError, Memory, Options};

/// One wave; each lane has 64 bytes of its own, of 64 in the buffer, of the local data share and of private memory. What `body` makes of
/// the buffer.
fn run(body: &str) -> Result<Vec<u8>, EmuError> {
    let mut bench = Bench::pointers(1);
    bench.private = 64;
    let mut memory = Memory::new();
    let words: Vec<u32> = (0..1024_u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
    let x = upload(&mut memory, "x", &words);
    // `v[0:1]`: the address of the lane's bytes; `v3`: their offset; a descriptor of the buffer in `s[12:15]`.
    let text = format!(
        "{ONE_POINTER}v_lshlrev_b32_e32 v3, 6, v2\nv_mov_b32_e32 v1, s9\nv_add_co_u32_e32 v0, vcc, s8, v3\ns_nop 1
        v_addc_co_u32_e32 v1, vcc, 0, v1, vcc\ns_mov_b64 s[12:13], s[8:9]\ns_mov_b32 s14, 0x1000\ns_mov_b32 s15, 0x27000
        v_mov_b32_e32 v20, 32\n{body}\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_endpgm"
    );
    bench.run(&text, (1, 64), &[Arg::Ptr(x)], &mut memory, &Options::default())?;
    memory.read(x, 4096)
}

/// The bytes from 1 on are moved to those from 33 on, by loads and stores of every memory and width.
#[test]
fn loads_and_stores_of_every_memory_take_any_address() {
    let original = run("s_nop 0").unwrap();
    let wait = "s_waitcnt vmcnt(0) lgkmcnt(0)";
    let from = |bytes: usize| {
        let registers = match bytes {
            16 => "v[8:11]",
            12 => "v[8:10]",
            8 => "v[8:9]",
            _ => "v8",
        };
        let global =
            ["", "byte", "short", "", "dword", "", "", "", "dwordx2", "", "", "", "dwordx3", "", "", "", "dwordx4"]
                [bytes];
        let local = ["", "b8", "b16", "", "b32", "", "", "", "b64", "", "", "", "b96", "", "", "", "b128"][bytes];
        let narrow = |load: &str| if bytes < 4 { format!("u{load}") } else { load.to_owned() };
        let read = if bytes < 4 { local.replace('b', "u") } else { local.to_owned() };
        (registers, global, local, narrow(global), read)
    };
    for bytes in [2, 4, 8, 12, 16] {
        let (r, store, local, load, read) = from(bytes);
        for body in [
            format!("global_load_{load} {r}, v[0:1], off offset:1\n{wait}\nglobal_store_{store} v[0:1], {r}, off offset:33"),
            format!("flat_load_{load} {r}, v[0:1] offset:1\n{wait}\nflat_store_{store} v[0:1], {r} offset:33"),
            format!("buffer_load_{load} {r}, v3, s[12:15], 0 offen offset:1\n{wait}\nbuffer_store_{store} {r}, v3, s[12:15], 0 offen offset:33"),
            // Through the local data share and private memory.
            format!(
                "global_load_{load} {r}, v[0:1], off offset:1\n{wait}\nds_write_{local} v20, {r} offset:3\n{wait}
                ds_read_{read} {r}, v20 offset:3\n{wait}\nglobal_store_{store} v[0:1], {r}, off offset:33"
            )
            .replace("v20", "v21")
            .replacen("global_load", "v_mul_u32_u24_e32 v21, 40, v2\nglobal_load", 1),
            format!(
                "global_load_{load} {r}, v[0:1], off offset:1\n{wait}\nscratch_store_{store} v20, {r}, off offset:5\n{wait}
                scratch_load_{load} {r}, v20, off offset:5\n{wait}\nglobal_store_{store} v[0:1], {r}, off offset:33"
            ),
        ] {
            let got = run(&body).unwrap_or_else(|e| panic!("{body}: {e}"));
            for (lane, (got, was)) in got.chunks(64).zip(original.chunks(64)).enumerate() {
                assert_eq!(got[33..33 + bytes], was[1..1 + bytes], "{body}, lane {lane}");
                assert_eq!((&got[..33], &got[33 + bytes..]), (&was[..33], &was[33 + bytes..]), "{body}, lane {lane}");
            }
        }
    }
}

#[test]
fn atomic_operations_need_their_alignment() {
    for body in [
        "global_atomic_add v[0:1], v2, off offset:2",
        "global_atomic_add_x2 v[0:1], v[2:3], off offset:4",
        "flat_atomic_swap v[0:1], v2 offset:1",
        "buffer_atomic_add v2, v3, s[12:15], 0 offen offset:2",
        "ds_add_u32 v20, v2 offset:2",
        "ds_add_u64 v20, v[2:3] offset:4",
    ] {
        let error = run(body).unwrap_err();
        assert_eq!(error.code().name(), "misaligned", "{body}: {error}");
        assert!(error.to_string().contains("which is no multiple of what they need"), "{body}: {error}");
    }
}

#[test]
fn an_access_over_the_end_is_out_of_bounds() {
    let error = run("global_load_dword v8, v[0:1], off offset:61").unwrap_err();
    assert_eq!(error.code().name(), "out-of-bounds");
    assert!(error.to_string().contains("`x` has 4096 bytes, and they begin at its byte 4093"), "{error}");
    assert!(error.to_string().contains("lane 63"), "{error}");
}

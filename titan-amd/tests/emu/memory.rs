//! Memory operations, early, late and at random.

use crate::harness::{Bench, ONE_POINTER, download, upload};
use titan_amd::emu::{Arg, Args, Completion, Launch, Memory, Options, Schedule};

/// A workgroup of 256 reverses 256 words through the local data share.
const REVERSE: &str = "
    global_load_dword v4, v[0:1], off
    v_lshlrev_b32_e32 v5, 2, v2
    v_sub_u32_e32 v6, 0x3fc, v5
    s_waitcnt vmcnt(0)
    ds_write_b32 v5, v4
    s_waitcnt lgkmcnt(0)
    s_barrier
    ds_read_b32 v7, v6
    s_waitcnt lgkmcnt(0)
    global_store_dword v[0:1], v7, off
    s_endpgm";

fn orders() -> Vec<Options> {
    let random = |s| (Completion::Seeded(s), Schedule::Seeded(s));
    [(Completion::Early, Schedule::InTurn), (Completion::Late, Schedule::InTurn), random(1), random(2)]
        .map(|(completion, schedule)| Options { completion, schedule, ..Options::default() })
        .to_vec()
}

fn reverse(text: &str, options: &Options) -> Result<Vec<u32>, titan_amd::emu::EmuError> {
    let mut memory = Memory::new();
    let words: Vec<u32> = (0..256).map(|i| i * 3).collect();
    let ptr = upload(&mut memory, "x", &words);
    let text = format!("{ONE_POINTER}{text}");
    Bench::pointers(1).run(&text, (1, 256), &[Arg::Ptr(ptr)], &mut memory, options)?;
    download(&memory, ptr, 256)
}

#[test]
fn words_go_through_the_local_data_share() {
    for options in orders() {
        let want: Vec<u32> = (0..256).rev().map(|i| i * 3).collect();
        assert_eq!(reverse(REVERSE, &options).unwrap(), want, "{options:?}");
    }
}

#[test]
fn every_wait_and_barrier_is_needed() {
    for (removed, code) in [
        ("    s_waitcnt vmcnt(0)\n", "in-flight"),
        ("    s_barrier\n", "race"),
        ("    ds_write_b32 v5, v4\n    s_waitcnt lgkmcnt(0)\n", "race"),
        ("    ds_read_b32 v7, v6\n    s_waitcnt lgkmcnt(0)\n", "in-flight"),
    ] {
        let kept = removed.split_inclusive('\n').next().filter(|_| removed.lines().count() > 1).unwrap_or("");
        let text = REVERSE.replacen(removed, kept, 1);
        assert_ne!(text, REVERSE);
        let error = reverse(&text, &Options::default()).unwrap_err();
        assert_eq!(error.code().name(), code, "without {removed}: {error}");
    }
}

#[test]
fn a_missing_barrier_is_a_race_even_when_the_bytes_are_there() {
    // Each wave reads what the wave before it wrote, which runs before it: only order is missing.
    let text = REVERSE
        .replace("v_sub_u32_e32 v6, 0x3fc, v5", "v_subrev_u32_e32 v6, 0x100, v5\n    v_max_i32_e32 v6, 0, v6")
        .replace("    s_barrier\n", "");
    let error = reverse(&text, &Options::default()).unwrap_err();
    assert_eq!(error.code().name(), "race", "{error}");
    for want in ["ds_read_b32 v7, v6", "wave 1", "ds_write_b32 v5, v4", "sanitizer: "] {
        assert!(error.to_string().contains(want), "{want} is not in:\n{error}");
    }
}

#[test]
fn addresses_of_freed_memory_are_given_out_again_when_there_are_no_others() {
    let mut memory = Memory::with_windows(1, 8);
    let kept = upload(&mut memory, "kept", &[7]);
    let mut last = None;
    for i in 0..20_000u32 {
        let ptr = memory.upload("a launch's report", &i.to_le_bytes()).unwrap();
        assert_eq!(memory.read(ptr, 4).unwrap(), i.to_le_bytes());
        memory.free(ptr);
        last = Some(ptr);
    }
    assert_eq!(download(&memory, kept, 1).unwrap(), [7]);
    let late = memory.read(last.unwrap(), 4).unwrap_err();
    assert!(late.to_string().contains("a launch's report"), "{late}");
    // What is not freed is not given out.
    let rest: Vec<_> = (0..7).map(|_| memory.try_alloc("x", 4)).collect();
    assert!(rest.iter().all(Option::is_some), "{rest:?}");
    assert_eq!(memory.try_alloc("one more", 4), None);
}

/// Memories that share no address do not begin to when one of them had an allocation elsewhere.
#[test]
fn a_place_of_the_callers_is_not_given_out_to_others() {
    let mut memory = Memory::with_windows(1, 2);
    for window in [0, 2, 9] {
        let ptr = memory.alloc_at("elsewhere", window << 32 | 0x1000, 4).unwrap();
        memory.free(ptr);
        memory.forget(ptr);
    }
    let all: Vec<_> = (0..2).map(|_| memory.try_alloc("x", 4).map(|ptr| ptr.address() >> 32)).collect();
    assert_eq!(all, [Some(1), Some(2)]);
    assert_eq!(memory.try_alloc("one more", 4), None);
}

#[test]
fn a_kernel_may_be_launched_any_number_of_times_and_loaded_too() {
    let mut memory = Memory::with_windows(1, 6);
    let words: Vec<u32> = (0..256).collect();
    let ptr = upload(&mut memory, "x", &words);
    let text = format!("{ONE_POINTER}{REVERSE}");
    let module = Bench::pointers(1).module(&text);
    for _ in 0..20 {
        let launch = Launch { grid: [1; 3], block: [256, 1, 1], dynamic_lds: 0, args: Args::Each(&[Arg::Ptr(ptr)]) };
        module.kernel("k").unwrap().run(&launch, &mut memory, &Options::default()).unwrap();
        module.unload(&mut memory);
    }
    assert_eq!(download(&memory, ptr, 256).unwrap(), words);
}

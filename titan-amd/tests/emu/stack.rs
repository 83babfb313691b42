//! Private memory: what a kernel is given, and stacks of unknown depth.

use crate::harness::{Bench, ONE_POINTER, download, upload};
use titan_amd::emu::{Arg, EmuError, Memory, Options};

/// Stores the lane's number at an offset of private memory and loads it again.
fn run(private: u32, dynamic_stack: bool, offset: u32, options: &Options) -> Result<Vec<u32>, EmuError> {
    let mut bench = Bench::pointers(1);
    (bench.private, bench.dynamic_stack) = (private, dynamic_stack);
    let text = format!(
        "{ONE_POINTER}v_mov_b32_e32 v5, {offset:#x}\nscratch_store_dword v5, v2, off\nscratch_load_dword v4, v5, off
        s_waitcnt vmcnt(0)\nglobal_store_dword v[0:1], v4, off\ns_endpgm"
    );
    let mut memory = Memory::new();
    let x = upload(&mut memory, "x", &[0; 64]);
    bench.run(&text, (1, 64), &[Arg::Ptr(x)], &mut memory, options)?;
    download(&memory, x, 64)
}

#[test]
fn a_stack_of_unknown_depth_gets_what_the_runtime_gives() {
    let want: Vec<u32> = (0..64).collect();
    let options = Options::default();
    assert_eq!(options.stack_bytes, 1024);
    // A kernel whose need is known gets exactly that.
    assert_eq!(run(64, false, 60, &options).unwrap(), want);
    let error = run(64, false, 64, &options).unwrap_err();
    assert_eq!(error.code().name(), "out-of-bounds");
    assert!(
        error.to_string().contains("4 bytes at 0x40 of private memory, of which the work item was given 64 bytes"),
        "{error}"
    );
    // Otherwise it gets as much as the limit, or what it declares if that is more.
    assert_eq!(run(64, true, 1020, &options).unwrap(), want);
    assert_eq!(run(0, true, 1020, &options).unwrap(), want);
    assert_eq!(run(2048, true, 2044, &options).unwrap(), want);
    let error = run(64, true, 1024, &options).unwrap_err().to_string();
    assert!(error.contains("was given 1024 bytes") && error.contains("`Options::stack_bytes`"), "{error}");
    assert!(error.contains("hipLimitStackSize"), "{error}");
    // The limit can be set, up to what a wave can have.
    let deep = Options { stack_bytes: 1 << 16, ..Options::default() };
    assert_eq!(run(64, true, 0xFFFC, &deep).unwrap(), want);
    let all = Options { stack_bytes: u32::MAX, ..Options::default() };
    assert_eq!(run(64, true, 8191 * 16 - 4, &all).unwrap(), want);
    assert!(run(64, true, 8191 * 16, &all).is_err());
}

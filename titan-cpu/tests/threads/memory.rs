//! Launches where memory is short: tiles that find no room are an error, and the next launch is as it should be.

use super::{ADD_ONE, Vector, program};
use std::fmt::Write as _;
use std::process::Command;
use titan_cpu::memory::Memory;
use titan_cpu::{Arg, RunError};

/// Set in the process that has little memory.
const SHORT: &str = "TITAN_TEST_LITTLE_MEMORY";
/// Tiles of 8 MiB that are alive at once.
const TILES: usize = 400;

/// A kernel that keeps many large tiles.
fn large() -> String {
    let mut text = "kernel @large(%x: in tensor<f64>[N, M], %y: mut tensor<f64>[N, M]) grid(4) {
    %p = program_id<0> : i32
    %zero = const 0 : i32
    %pad = const 0.0 : f64
    %t0 = load_tile %x[%p, %zero] or %pad : tile<1024x1024xf64>\n"
        .to_owned();
    for i in 1..TILES {
        let (axis, before) = (i % 2, i - 1);
        writeln!(text, "    %t{i} = scan_sum<{axis}> %t{before} : tile<1024x1024xf64>").unwrap();
    }
    writeln!(text, "    %s0 = add %t0, %t1").unwrap();
    for i in 1..TILES - 1 {
        writeln!(text, "    %s{i} = add %s{}, %t{}", i - 1, i + 1).unwrap();
    }
    write!(text, "    store_tile %y[%p, %zero], %s{}\n    return\n}}", TILES - 2).unwrap();
    text
}

#[test]
fn tiles_without_room_are_an_error() {
    if std::env::var_os(SHORT).is_some() {
        for threads in [1, 3] {
            let (large, add) = (program(&large(), threads), program(ADD_ONE, threads));
            let memory = || Memory::zeroed(64).unwrap();
            let arg = |memory| Arg::Tensor { memory, offset: 0, extents: vec![2, 4], strides: vec![4, 1] };
            for _ in 0..test_depth::cases(2, 1) {
                let error = large.run(&[arg(memory()), arg(memory())], [4, 1, 1]).unwrap_err();
                assert_eq!(error, RunError::OutOfMemory { bytes: 8 << 20 });
                let x = Vector::new();
                x.add_one(&add);
                x.is(1);
            }
        }
        return;
    }
    let test = "memory::tiles_without_room_are_an_error";
    // In KiB, of addresses: programs, stacks of threads and some of the tiles.
    let child = Command::new("sh")
        .args(["-c", "ulimit -v 1000000 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--test-threads=1"])
        .env(SHORT, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && told.contains("1 passed"), "{told}\n{}", String::from_utf8_lossy(&child.stderr));
}

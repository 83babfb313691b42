//! Products of 8-bit floats with scales per block, on sm_90a: each block's sum begins anew, and is scaled and added in registers, in the
//! layout of the accumulator. What the assembler makes of the loop, and exact results in the emulator.

use super::harness::orders;
use super::lowered::{Tensor, assembles, compiled, encode, launch, upload};
use super::{ptxas, sass};
use sass::{QGMMA, SHARED, UTMALDG, count};
use titan_core::driver::Stages;
use titan_core::ir::Elem;
use titan_core::launch::abi::GpuArg;
use titan_nv::emu::{Memory, Options};
use titan_sim::engine::Rng;

const SCALED: &str = include_str!("kernels/fp8_scaled.tir");

/// Instructions of the loop: 64 multiply-adds for the 64 sums of a thread, and 82 for the copies' barriers, the MMAs and the scales, which lie at
/// offsets of 64 bits.
const IN_LOOP: usize = 146;

#[test]
fn sums_beside_an_mma_stay_in_registers() {
    let made = compiled(SCALED);
    assembles(&made, "sm_90a", 0);
    let Some(ptxas) = ptxas::unless_absent() else { return };
    if !sass::is_measured(&ptxas) {
        return;
    }
    let text = String::from_utf8(made.code.payload).expect("PTX is text");
    let code = sass::assemble(&ptxas, "sm_90a", &text).unwrap_or_else(|said| panic!("{said}"));
    let consumer = code.main_loop(&[QGMMA]).expect("a loop has MMAs of warpgroups");
    assert_eq!(count(consumer, &[QGMMA]), 4, "MMAs of 32 of K");
    assert!(consumer.len() <= IN_LOOP, "{} instructions in the loop", consumer.len());
    assert_eq!(count(consumer, &SHARED), 0, "a conversion through shared memory");
    for (name, opcode) in sass::SLOW {
        assert_eq!(count(consumer, &[opcode]), 0, "{name} in the loop");
    }
    let producer = code.main_loop(&UTMALDG).expect("a loop copies boxes");
    assert_eq!(count(producer, &UTMALDG), 2);
}

/// Runs the kernel on `[m, n, k]`; `Err` says where it differs, or why it did not run.
fn run(made: &Stages, [m, n, k]: [usize; 3], options: &Options) -> Result<(), String> {
    let (rng, mut memory) = (&mut Rng::new(7), Memory::new());
    let [rows, blocks] = [n.div_ceil(128), k.div_ceil(128)];
    let a = upload(&mut memory, "a", Elem::E4m3, [m, k], rng);
    let a_scale = upload(&mut memory, "a_scale", Elem::F32, [blocks, m], rng);
    let b = upload(&mut memory, "b", Elem::E4m3, [n, k], rng);
    let b_scale = upload(&mut memory, "b_scale", Elem::F32, [rows, blocks], rng);
    let c = upload(&mut memory, "c", Elem::Bf16, [m, n], rng);
    let args: Vec<GpuArg> = [&a, &a_scale, &b, &b_scale, &c].map(|t: &Tensor| t.arg.clone()).to_vec();
    launch(made, (&args, [m.div_ceil(128) as u32, rows as u32, 1]), &mut memory, options, |_, _| ())?;
    let GpuArg::Tensor { strides, .. } = &c.arg else { return Err("no tensor".to_owned()) };
    let pitch = strides[0] as usize;
    let bytes = memory.read(c.at, m * pitch * 2).map_err(|e| e.to_string())?;
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let scaled = |i: usize| {
            let scale = a_scale.values[i / 128 * m + row] * b_scale.values[column / 128 * blocks + i / 128];
            a.values[row * k + i] * b.values[column * k + i] * scale
        };
        let wanted = encode(Elem::Bf16, (0..k).map(scaled).sum());
        let found = &bytes[(row * pitch + column) * 2..][..2];
        if found != wanted {
            return Err(format!("row {row}, column {column}: {found:?} instead of {wanted:?}"));
        }
    }
    Ok(())
}

#[test]
fn products_with_scales_are_exact() {
    let made = compiled(SCALED);
    for size in [[128, 128, 128], [72, 136, 304], [128, 40, 16]] {
        for options in test_depth::sample(orders(), 1) {
            run(&made, size, &options).unwrap_or_else(|e| panic!("{size:?}, {:?}: {e}", options.completion));
        }
    }
}

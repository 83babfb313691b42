//! Variants whose outputs have rows of any alignment: which kernels have one. That they are exact is tested with random products.

use super::lowered::{Gemm, kernel};
use super::multicast::{PLAIN, verified};
use titan_core::driver::{Arguments, compile, stages};
use titan_core::ir::Elem;
use titan_nv::Machine;

/// How many variants assume nothing about the output `c`, among those that assume something.
fn of(text: &str, target: &str) -> usize {
    let (kernel, machine) = (verified(text), Machine::from_name(target).expect("it is known"));
    let variants = compile(&kernel, machine, None).expect("it compiles");
    let names_c = |a: &titan_core::artifact::Assumption| a.sentence(&kernel.sig).contains("`c`");
    variants.iter().filter(|v| !v.assumptions.is_empty() && !v.assumptions.iter().any(names_c)).count()
}

#[test]
fn kernels_whose_operands_do_not_tell_of_the_output_have_one() {
    let plain = kernel(&PLAIN);
    let along_n = kernel(&Gemm { transposed: [false, true], ..PLAIN });
    // With a bias of each column; an operand whose rows are those of the output.
    let biased = plain
        .replace("%b: in", "%bias: in tensor<f32>[N], %b: in")
        .replace("%y = cast %out", "%bs = load_tile %bias[%n] or %zb : tile<64xf32>\n%bb = broadcast<0, 64> %bs : tile<64x64xf32>\n%sum = add %out, %bb : tile<64x64xf32>\n%y = cast %sum")
        .replace("%pa =", "%zb = const 0.0 : f32\n%pa =");
    for target in ["sm_80", "sm_90a"] {
        assert_eq!(of(&plain, target), 1, "{target}");
        assert_eq!(of(&along_n, target), 0, "{target}");
        assert_eq!(of(&biased, target), 1, "{target}\n{biased}");
    }
}

/// Results that threads store go through shared memory in slices, as those of bulk copies do, so that as many slots remain for the
/// operands.
#[test]
fn as_many_slots_remain_as_where_copies_store() {
    let tiles = [[128, 256, 64], [128, 256, 128], [128, 128, 64], [256, 128, 64]];
    for tile in test_depth::sample(tiles, 1) {
        for stored in [Elem::F16, Elem::F32] {
            let kernel = verified(&kernel(&Gemm { tile, stored, ..PLAIN }));
            let machine = Machine::from_name("sm_90a").expect("it is known");
            let slots = [Arguments::Aligned, Arguments::AlignedInputs].map(|arguments| {
                let made = stages(&kernel, machine, arguments, None).expect("it compiles");
                assert_eq!(made.lanes.maps.len(), if arguments == Arguments::Aligned { 3 } else { 2 });
                made.schedule.loops.iter().map(|ahead| ahead.slots).collect::<Vec<_>>()
            });
            assert!(slots[0][0] > 1, "{tile:?}");
            assert!(slots[1] >= slots[0], "{tile:?} {stored}: {slots:?}");
        }
    }
}

//! Matrix products: each wait and each wait state of theirs is needed, and the checkers report those that are missing.

use crate::kernels::both::Launch;
use crate::kernels::products::Product;
use crate::launch::{Ready, machine, orders};
use crate::machine::Rng;
use crate::mutants::{NOP, WAIT, bytes, starts, weaker, words};
use titan_amd::codegen::check::{hazards, waits};
use titan_amd::emu::{Completion, Options};
use titan_amd::isa::asm::assemble;
use titan_core::driver::{Stages, stages};
use titan_core::ir::Elem;

/// Products whose loops have many memory operations and matrix instructions in flight, with the extents of a problem.
fn subjects() -> Vec<(Product, Stages, [u32; 3])> {
    let all = [
        (Product::of(Elem::F16, Elem::F32, [64, 64, 64]), [70, 72, 136]),
        (Product::of(Elem::F64, Elem::F64, [32, 32, 16]), [33, 34, 18]),
        (Product::of(Elem::F32, Elem::F32, [32, 32, 16]), [40, 36, 20]),
        (Product { along_k: [true, false], ..Product::of(Elem::I8, Elem::I32, [32, 32, 64]) }, [16, 48, 80]),
    ];
    let stages = |product: Product| {
        stages(&product.kernel(), machine(), true, None).unwrap_or_else(|e| panic!("{product:?}: {e}"))
    };
    all.into_iter().map(|(product, problem)| (product, stages(product), problem)).collect()
}

/// A subject that is ready to be launched.
struct Subject {
    product: Product,
    stages: Stages,
    ready: Ready,
    problem: [u32; 3],
    tensors: Vec<Option<crate::tensor::Tensor>>,
}

impl Subject {
    fn all() -> Vec<Subject> {
        let make = |(product, stages, problem): (Product, Stages, [u32; 3])| {
            let ready = Ready::new(&stages.lanes).unwrap_or_else(|e| panic!("{product:?}: {e}"));
            let tensors = product.tensors(&mut Rng::new(7), problem, true);
            Subject { product, stages, ready, problem, tensors }
        };
        subjects().into_iter().map(make).collect()
    }

    fn launch(&self) -> Launch<'_> {
        let [m, n, _] = self.product.tile;
        let grid = [self.problem[0].div_ceil(m), self.problem[1].div_ceil(n), 1];
        Launch { grid, tensors: &self.tensors, scalar: &|_| 0 }
    }

    /// What is left by other bytes in place of its own.
    fn run(&self, text: &[u32], options: &Options) -> Result<Vec<Vec<u8>>, String> {
        self.launch().emulated_by(&self.stages.lanes, &self.ready.with_text(&bytes(text)), options)
    }
}

#[test]
fn waits_of_products_are_needed() {
    let (mut removed, mut weakened, mut enough) = (0, 0, 0);
    for subject in Subject::all() {
        let text = words(&subject.ready.emitted.text);
        let wanted = subject.launch().evaluated(&subject.stages.lanes).unwrap_or_else(|e| panic!("{e}"));
        for at in starts(&subject.ready.emitted.text).into_iter().filter(|at| text[*at] & 0xffff_0000 == WAIT) {
            let mut mutant = text.clone();
            mutant[at] = NOP;
            assert!(waits::check(&bytes(&mutant)).is_err(), "{:?}: the wait at {at} is needless", subject.product);
            removed += 1;
            let mut mutant = text.clone();
            mutant[at] = weaker(text[at]);
            weakened += 1;
            // One operation more may be in flight: refused, or still enough in the latest order.
            if waits::check(&bytes(&mutant)).is_ok() {
                enough += 1;
                let late = Options { completion: Completion::Late, ..orders()[0].clone() };
                let found = subject.run(&mutant, &late).unwrap_or_else(|e| panic!("{:?}: {e}", subject.product));
                assert_eq!(subject.launch().difference(&found, &wanted), None, "{:?}", subject.product);
            }
        }
    }
    assert!(removed > 20 && enough * 4 < weakened, "{removed}, {weakened}, {enough}");
}

#[test]
fn wait_states_of_products_are_needed() {
    let (mut all, mut reported) = (0, 0);
    for subject in Subject::all() {
        let text = words(&subject.ready.emitted.text);
        assert_eq!(hazards::check(&bytes(&text)), Ok(()));
        let starts = starts(&subject.ready.emitted.text);
        let nops = starts.iter().copied().filter(|at| text[*at] & 0xffff_0000 == NOP);
        for at in nops {
            let removed = hazards::check(&bytes(&without(&text, &starts, at)));
            assert!(removed.is_err(), "{:?}: the states at {at} are needless", subject.product);
            if text[at] == NOP {
                continue;
            }
            let mut mutant = text.clone();
            mutant[at] -= 1;
            all += 1;
            assert!(hazards::check(&bytes(&mutant)).is_err(), "{:?}: the state at {at} is needless", subject.product);
            let found = subject.run(&mutant, &orders()[0]);
            reported += usize::from(found.is_err_and(|e| e.contains("wait states")));
        }
    }
    // Some branches are not taken in these launches.
    assert!(all > 5 && reported * 10 >= all * 8, "{reported} of {all}");
}

/// Code without one of its words, with branches to where they led: ISA §12.5, opcodes 2 and 4 to 9.
fn without(text: &[u32], starts: &[usize], at: usize) -> Vec<u32> {
    let moved = |place: i64| place - i64::from(place > at as i64);
    let mut out = text.to_vec();
    for start in starts {
        let (op, word) = (text[*start] >> 16, text[*start]);
        if matches!(op, 0xbf82 | 0xbf84..=0xbf89) {
            let next = *start as i64 + 1;
            let target = next + i64::from((word as u16).cast_signed());
            let distance = moved(target) - moved(next);
            out[*start] = op << 16 | u32::from((distance as i16).cast_unsigned());
        }
    }
    out.remove(at);
    out
}

/// Two instructions, and the states that they must be apart: ISA tables 11 and 37.
const PAIRS: &[(&str, &str, u32)] = &[
    ("v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[20:23]", "v_mov_b32_e32 v60, v20", 7),
    ("v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[20:23]", "v_mov_b32_e32 v20, 0", 7),
    ("v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[20:23]", "global_store_dword v[0:1], v20, off", 7),
    ("v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[20:23]", "ds_write_b32 v0, v20", 7),
    (
        "v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[20:23]",
        "v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[20:23]",
        0,
    ),
    (
        "v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[20:23]",
        "v_mfma_f32_16x16x16_bf16 v[20:23], v[8:9], v[10:11], v[20:23]",
        5,
    ),
    (
        "v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[20:23]",
        "v_mfma_f32_16x16x16_f16 v[40:43], v[8:9], v[10:11], v[22:25]",
        5,
    ),
    (
        "v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[20:23]",
        "v_mfma_f32_16x16x16_f16 v[40:43], v[20:21], v[10:11], v[40:43]",
        7,
    ),
    ("v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[24:27]", "v_mov_b32_e32 v24, 0", 3),
    ("v_mfma_f32_32x32x8_f16 v[20:35], v[8:9], v[10:11], v[20:35]", "v_mov_b32_e32 v60, v20", 11),
    ("v_mfma_f32_32x32x8_f16 v[20:35], v[8:9], v[10:11], v[36:51]", "v_mov_b32_e32 v36, 0", 7),
    ("v_mfma_f32_4x4x4_16b_f16 v[20:23], v[8:9], v[10:11], v[20:23]", "v_mov_b32_e32 v60, v20", 5),
    ("v_mfma_f32_16x16x4_f32 v[20:23], v8, v10, v[20:23]", "v_mov_b32_e32 v60, v20", 10),
    ("v_mfma_f32_32x32x2_f32 v[20:35], v8, v10, v[20:35]", "v_mov_b32_e32 v60, v20", 18),
    ("v_mfma_f64_16x16x4_f64 v[20:27], v[8:9], v[10:11], v[20:27]", "v_mov_b32_e32 v60, v20", 11),
    ("v_mfma_f64_16x16x4_f64 v[20:27], v[8:9], v[10:11], v[20:27]", "global_store_dword v[0:1], v20, off", 18),
    ("v_mov_b32_e32 v8, 0", "v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[20:23]", 2),
    ("v_accvgpr_write_b32 a8, v1", "v_mfma_f32_16x16x16_f16 a[8:11], v[8:9], v[10:11], a[8:11]", 2),
    ("v_exp_f32_e32 v1, v2", "v_add_f32_e32 v3, v1, v1", 1),
    ("v_mov_b32_e32 v1, v2", "v_readfirstlane_b32 s6, v1", 1),
    ("v_readfirstlane_b32 s6, v1", "v_add_f32_e32 v3, s6, v1", 2),
    ("v_readfirstlane_b32 s6, v1", "global_load_dword v3, v4, s[6:7]", 5),
    ("v_readfirstlane_b32 s6, v1", "v_readlane_b32 s7, v2, s6", 4),
    ("global_store_dwordx4 v[0:1], v[4:7], off", "v_mov_b32_e32 v4, 0", 2),
    ("global_store_dwordx2 v[0:1], v[4:5], off", "v_mov_b32_e32 v4, 0", 0),
];

#[test]
fn pairs_are_as_far_apart_as_the_manual_says() {
    for (first, second, needed) in PAIRS {
        let with = |states: u32| {
            let idle = "s_nop 0\n".repeat(states as usize);
            let text = format!("{first}\n{idle}{second}\ns_endpgm\n");
            hazards::check(&assemble(&text).unwrap_or_else(|e| panic!("{e}")))
        };
        assert_eq!(with(*needed), Ok(()), "{first}; {second}");
        if let Some(fewer) = needed.checked_sub(1) {
            assert!(with(fewer).is_err(), "{first}; {second}: {fewer} states");
        }
        // The same around a loop, whose end the first instruction is.
        let around = format!("loop:\n{second}\n{first}\ns_cbranch_scc1 loop\ns_endpgm\n");
        let around = hazards::check(&assemble(&around).unwrap_or_else(|e| panic!("{e}")));
        let own = format!("{second}\n{first}\ns_endpgm\n");
        let straight = hazards::check(&assemble(&own).unwrap_or_else(|e| panic!("{e}")));
        assert_eq!(around.is_err(), *needed > 1 || straight.is_err(), "{first}; {second} around a loop");
    }
}

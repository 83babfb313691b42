//! Kernels for the targets after sm_90a, in the emulator: bulk copies fill stages, if these fit in shared memory, and store results as on
//! sm_90a, and warps multiply fragments that they load from these stages.

use super::harness::orders;
use super::lowered::{Gemm, assembles, compiled_for, kernel, run};
use titan_core::driver::Stages;
use titan_core::ir::Elem;

const TARGETS: [&str; 3] = ["sm_100a", "sm_103a", "sm_120a"];

fn text(made: &Stages) -> String {
    String::from_utf8(made.code.payload.clone()).expect("PTX is text")
}

/// Products whose operands have boxes: all elements, orders in memory, and widths of rows, hence all swizzles.
fn products() -> Vec<Gemm> {
    let mut cases = Vec::new();
    for elem in [Elem::F16, Elem::Bf16] {
        for transposed in [[false, false], [true, false], [false, true], [true, true]] {
            let elems = (elem, elem, Elem::F32);
            cases.push(Gemm { elems, stored: Elem::F32, transposed, tile: [128, 64, 64], size: [150, 72, 200] });
            cases.push(Gemm { elems, stored: elem, transposed, tile: [64, 128, 32], size: [100, 136, 72] });
            cases.push(Gemm { elems, stored: elem, transposed, tile: [32, 16, 16], size: [40, 24, 72] });
        }
    }
    let bytes =
        [(Elem::I8, Elem::I8, Elem::I32), (Elem::E4m3, Elem::E4m3, Elem::F32), (Elem::E5m2, Elem::E4m3, Elem::F32)];
    for tile in [[64, 96, 128], [64, 64, 64], [32, 32, 32]] {
        cases.extend(bytes.map(|elems| Gemm {
            elems,
            stored: elems.2,
            transposed: [false; 2],
            tile,
            size: [64, 100, 300],
        }));
    }
    let tf32 = (Elem::Tf32, Elem::Tf32, Elem::F32);
    cases.push(Gemm { elems: tf32, stored: Elem::F32, transposed: [false; 2], tile: [64, 48, 32], size: [70, 48, 65] });
    cases
}

#[test]
fn products_of_all_elements_and_orders_are_exact() {
    for (number, gemm) in products().iter().enumerate() {
        for (i, target) in TARGETS.into_iter().enumerate() {
            let made = compiled_for(&kernel(gemm), target);
            let code = text(&made);
            assert!(!made.lanes.maps.is_empty(), "{gemm:?} has no tensor maps for {target}");
            assert!(code.contains("mma.sync") && !code.contains("wgmma"), "{gemm:?}\n{code}");
            assert!(code.contains("mbarrier::complete_tx::bytes"), "{gemm:?}: threads copy for {target}\n{code}");
            // Tensor cores of 10.x multiply FP8 from tensor memory only: the assembler replaces `mma.sync` by conversions and MMAs of f16,
            // which take more registers.
            let replaced = target != "sm_120a" && matches!(gemm.elems.0, Elem::E4m3 | Elem::E5m2);
            assembles(&made, target, if replaced { 64 } else { 0 });
            // The code differs in its target only where tiles fit into the least memory: each order of completion once.
            for options in orders().iter().skip(i).step_by(TARGETS.len()) {
                run(gemm, &made, options, number as u64)
                    .unwrap_or_else(|e| panic!("{gemm:?} for {target}, {:?}: {e}", options.completion));
            }
        }
    }
}

/// Kernels of which sm_90a has clusters: these targets have none, because warps load from the stages, and the notes do not say otherwise. No
/// schedule is given up.
#[test]
fn kernels_with_clusters_on_sm_90a() {
    for source in [include_str!("kernels/gemm.tir"), include_str!("kernels/gemm_ws.tir")] {
        let parsed = titan_core::text::parse_one(source).expect("a kernel");
        let parsed = titan_core::verify::verify(parsed).expect("a right kernel");
        for target in TARGETS {
            let machine = titan_nv::Machine::from_name(target).expect("it is known");
            let variants = titan_core::driver::compile(&parsed, machine, None).expect("it compiles");
            let best = &variants[0];
            let code = String::from_utf8(best.payload.clone()).expect("PTX is text");
            assert!(best.cluster <= 1, "{target}\n{code}");
            for what in ["reqnctapercluster", "barrier.cluster", "multicast::cluster"] {
                assert!(!code.contains(what), "{target}: {what}\n{code}");
            }
            // Bulk copies store the results, and fill the stages; where a program has 99 KiB of shared memory, two stages of 48 KiB do not fit
            // beside the buffers of the stores, and threads copy.
            let fills = code.contains("mbarrier::complete_tx::bytes");
            assert!(fills == (target != "sm_120a") && code.contains("bulk_group"), "{target}\n{code}");
            let given_up = |note: &String| note.starts_with(titan_core::driver::FALLBACK);
            let clusters = |note: &String| note.starts_with("clusters of");
            for variant in &variants {
                assert!(!variant.notes.iter().any(|n| given_up(n) || clusters(n)), "{target}: {:#?}", variant.notes);
            }
        }
    }
}

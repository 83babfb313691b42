//! The stages of the lowering are texts: printed and parsed again, a kernel that is laid out and a barrier program are the same,
//! and lanes that are made of the text are those that are made of the kernel.

use crate::files::VERIFIED;
use crate::launch::target;
use std::path::Path;
use titan_core::complete::{check, complete};
use titan_core::driver::table::REGISTERS;
use titan_core::driver::{barrier_program, lower};
use titan_core::expand::expand;
use titan_core::ir::{FreeBy, Kernel, NvOp, OpKind};
use titan_core::lay_out::lay_out;
use titan_core::lower::lower as lower_barriers;
use titan_core::plan::{Plan, plan};
use titan_core::text::{parse, parse_one, print};
use titan_core::verify::{Verified, verify};

/// A kernel, read from its own text.
#[track_caller]
fn read_back(kernel: &Kernel, name: &str) -> Kernel {
    let text = print(kernel);
    let again = parse_one(&text).unwrap_or_else(|errors| panic!("{name}: {errors:?}\n{text}"));
    assert_eq!(print(&again), text, "{name}");
    again
}

/// Whether an operation is one of rings.
fn of_rings(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Ttg(ttg) if ttg.is_of_rings())
}

#[test]
fn every_stage_is_a_text() {
    let (mut done, mut weaker) = (0, 0);
    for (nth, (name, verified)) in VERIFIED.iter().enumerate() {
        // In the quick depth, kernels take turns.
        let all = [(32, true), (32, false), (64, true)].into_iter().enumerate();
        for (_, (lanes, aligned)) in all.filter(|(turn, _)| test_depth::is_full() || *turn == nth % 3) {
            let plan = plan(verified, &target(lanes), aligned);
            let Ok(direct) = lower(verified, &plan) else { continue };
            let laid_out = read_back(&lay_out(verified, &plan).expect("it was lowered"), name);
            let counted = read_back(&complete(&laid_out, plan.target.lane_copies().is_some()), name);
            assert_eq!(
                check(&counted, plan.target.lane_copies().is_some(), false, 4),
                Ok(()),
                "{name}:\n{}",
                print(&counted)
            );
            weaker += usize::from(is_weaker_refused(&counted, plan.target.lane_copies().is_some()));
            read_back(
                &expand(&counted, &plan.target, REGISTERS, verified.rings_begin_anew()).expect("it was lowered"),
                name,
            );
            let barriers = read_back(&barrier_program(verified, &plan).expect("it was lowered"), name);
            barriers.walk(&mut |_, op| assert!(!of_rings(&op.kind), "{name}: {:?}", op.kind));
            let lanes = lower_barriers(&barriers, &plan.target).expect("it was lowered");
            assert_eq!(lanes.func.to_string(), direct.func.to_string(), "{name}");
            done += 1;
        }
    }
    assert!(done > test_depth::cases(100, 33), "only {done}");
    assert!(weaker > test_depth::cases(20, 5), "only {weaker} kernels have waits that must not be weaker");
}

/// Whether the checker refuses the kernel with one of its waits leaving one more group in flight. (Some waits could be weaker: those that
/// another wait precedes, and those of groups that are only counted as in flight.)
fn is_weaker_refused(kernel: &Kernel, copy_async: bool) -> bool {
    let mut waits = Vec::new();
    kernel.walk(&mut |id, op| {
        if matches!(op.kind, OpKind::Nv(NvOp::WaitGroup { .. })) {
            waits.push(id);
        }
    });
    waits.iter().any(|id| {
        let mut weaker = kernel.clone();
        if let OpKind::Nv(NvOp::WaitGroup { n, .. }) = &mut weaker.ops[id.index()].kind {
            *n += 1;
        }
        check(&weaker, copy_async, false, 4).is_err()
    })
}

/// The kernels of one of the filetests of texts, verified.
fn shown() -> Vec<Verified> {
    let text = include_str!("../../filetests/text/to_lay_out.tir");
    parse(text).expect("kernels").into_iter().map(|k| verify(k).expect("a right kernel")).collect()
}

/// `TITAN_BLESS=1` writes what the stages of small kernels are; that they are read back is tested with the other filetests.
#[test]
fn the_stages_of_small_kernels_are_shown() {
    let mut laid_out = "; test text\n; The kernels of to_lay_out.tir, laid out.\n".to_owned();
    let mut barriers =
        "; test text\n; The kernels of to_lay_out.tir as barrier programs, the one with roles in two ways: mbarriers \
        give slots back, or counters.\n"
            .to_owned();
    for kernel in shown() {
        for free in [FreeBy::Mbarrier, FreeBy::Sequence] {
            if free == FreeBy::Sequence && kernel.roles.is_empty() {
                continue;
            }
            let plan = Plan { free, ..plan(&kernel, &target(32), true) };
            let placed = lay_out(&kernel, &plan).expect("it can be laid out");
            let program = barrier_program(&kernel, &plan).expect("it has barriers");
            if free == FreeBy::Mbarrier {
                laid_out += &format!("{}\n", print(&placed));
            }
            if !kernel.roles.is_empty() {
                barriers += &format!("{}\n", print(&program));
            }
        }
    }
    for (name, text) in [("laid_out", laid_out), ("barrier_programs", barriers)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("filetests/text/{name}.tir"));
        let text = format!("{}\n", text.trim_end());
        if std::env::var_os("TITAN_BLESS").is_some() {
            std::fs::write(&path, &text).expect("the file can be written");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "{name}");
    }
}

/// What is made of a kernel that was accepted is never refused: every wait, arrival and barrier of it is shown to be right.
#[test]
fn every_barrier_program_is_verified() {
    let (mut done, mut refused) = (0, Vec::new());
    for (name, verified) in VERIFIED.iter() {
        for (lanes, aligned, free) in
            [(32, true, FreeBy::Mbarrier), (32, false, FreeBy::Sequence), (64, true, FreeBy::Mbarrier)]
        {
            let plan = Plan { free, ..plan(verified, &target(lanes), aligned) };
            let program = match barrier_program(verified, &plan) {
                Ok(program) => program,
                Err(error) => {
                    // Other kernels are not supported, or do not fit.
                    if error.message.contains("a defect of TITAN") {
                        refused.push(format!("{name} ({lanes} lanes): {}", error.message));
                    }
                    continue;
                }
            };
            done += 1;
            if let Err(errors) = titan_core::verify::barrier_program(&program) {
                refused.push(format!("{name} ({lanes} lanes): {}", errors[0].title));
            }
        }
    }
    assert!(refused.is_empty(), "{} of {done}:\n{}", refused.len(), refused.join("\n"));
    assert!(done > 200, "only {done}");
}

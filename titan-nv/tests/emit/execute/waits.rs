//! Every way to wait, with what is waited for early, late and at random.

use super::{Ready, machine, targets_of};
use crate::waits;
use titan_nv::emu::{Completion, Memory, Options, Param, Schedule};

#[test]
fn who_waits_reads_what_others_have_stored() {
    let threads = crate::cases::THREADS as usize;
    let operands: Vec<u64> = (0..threads as u64).map(|t| 1000 + 7 * t).collect();
    let mut ran = 0;
    for wait in waits::all() {
        for target in targets_of(&wait.case.func, &["sm_80", "sm_90a"]) {
            let ready = Ready::new(&wait.case.func, machine(target));
            for options in modes() {
                let mut memory = Memory::new();
                let from =
                    memory.upload("operands", &operands.iter().flat_map(|o| o.to_le_bytes()).collect::<Vec<_>>());
                let to = memory.alloc_named("results", 8 * threads);
                let params = [Param::Ptr(from), Param::Ptr(to)];
                ready
                    .run(&params, &mut memory, &options)
                    .unwrap_or_else(|e| panic!("{} on {target} with {options:?}: {e}", wait.case.func.name));
                let out = memory.read_any(to, 8 * threads).unwrap();
                let found: Vec<u64> =
                    out.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap()) & 0xffff_ffff).collect();
                let want: Vec<u64> = (0..threads).map(|t| operands[(wait.reads)(t)]).collect();
                assert_eq!(found, want, "{}", wait.case.func.name);
                ran += 1;
            }
        }
    }
    assert!(ran > 150, "{ran}");
}

/// Copies early, late and at random; warps in turn and at random. The sanitizer watches one of them.
pub(super) fn modes() -> Vec<Options> {
    let completions = [Completion::Early, Completion::Late, Completion::Seeded(1), Completion::Seeded(2)];
    let all = completions.into_iter().flat_map(|completion| {
        [Schedule::InTurn, Schedule::Seeded(3), Schedule::Seeded(4)].map(|schedule| Options {
            completion,
            schedule,
            sanitize: completion == Completion::Late && schedule == Schedule::Seeded(3),
            max_steps: 1 << 22,
            ..Options::default()
        })
    });
    all.collect()
}

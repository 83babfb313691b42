//! The driver: schedules are plain data that say all that was decided, and none is carried out that does not fit its kernel.

use super::{loops, tiles::kernels};
use titan_core::artifact::Assumption;
use titan_core::driver::{Ahead, Body, FALLBACK, Roles, Schedule, compile, follow, stages};
use titan_core::text::parse_one;
use titan_core::verify::{Verified, verify};
use titan_nv::Machine;

fn gemm(m: u32, n: u32, k: u32) -> Verified {
    verify(parse_one(&loops::gemm([m, n, k])).unwrap()).unwrap()
}

fn machine() -> &'static Machine {
    Machine::from_name("sm_80").unwrap()
}

/// No kernel of the tree needs a simpler schedule than the rule's; and the simpler ones are proved as well.
#[test]
fn no_kernel_falls_back() {
    let (mut programs, mut simpler) = (0, 0);
    for kernel in kernels() {
        let name = kernel.sig.full_name();
        for machine in [machine(), Machine::from_name("sm_90a").unwrap()] {
            let variants = compile(&kernel, machine, None).unwrap_or_else(|error| {
                assert!(!error.message.contains("defect"), "{}: {error}", machine.name);
                Vec::new()
            });
            for variant in &variants {
                let fallen = variant.notes.iter().find(|note| note.starts_with(FALLBACK));
                assert_eq!(fallen, None, "{name}, {}", machine.name);
                programs += 1;
            }
        }
        if compile(&kernel, machine(), None).is_err() {
            continue;
        }
        let schedule = stages(&kernel, machine(), true, None).unwrap().schedule;
        for less in schedule.simpler() {
            // What cannot be fused has no simpler schedule.
            match follow(&kernel, machine(), &less) {
                Ok(_) => simpler += 1,
                Err(error) => assert!(error.message.contains("not one of this kernel"), "{name}: {error}\n{less}"),
            }
        }
    }
    assert!(programs > 300 && simpler > 20, "{programs}, {simpler}");
}

/// The same schedule results in the same code, independently of the rule's choice.
#[test]
fn a_schedule_says_all_that_was_decided() {
    for kernel in kernels() {
        let name = kernel.sig.full_name();
        for aligned in [true, false] {
            let Ok(made) = stages(&kernel, machine(), aligned, None) else { continue };
            let again = follow(&kernel, machine(), &made.schedule).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(made.code, again.code, "{name}\n{}", made.schedule);
        }
    }
}

#[test]
fn devices_with_more_memory_get_more_slots() {
    let kernel = gemm(128, 256, 64);
    let variants = compile(&kernel, machine(), None).unwrap();
    let of = |v: &titan_core::artifact::Variant| {
        let granted = v.assumptions.iter().find_map(|a| match a {
            Assumption::SharedMemory { bytes } => Some(bytes / 1024),
            _ => None,
        });
        (granted, v.shared_bytes / 1024)
    };
    let all: Vec<_> = variants.iter().map(of).collect();
    assert_eq!(all[..3], [(Some(227), 192), (Some(163), 144), (None, 96)], "a stage takes 48 KiB");
    assert!(variants.last().unwrap().assumptions.is_empty(), "the last one assumes nothing");
    // Four slots of 8 KiB fit everywhere.
    let small = compile(&gemm(64, 64, 32), machine(), None).unwrap();
    assert!(small.iter().all(|v| of(v).0.is_none()));
}

/// Each is rejected with a message, and nothing panics.
#[test]
fn schedules_of_other_kernels_are_refused() {
    let kernel = gemm(64, 64, 32);
    let right = stages(&kernel, machine(), true, None).unwrap().schedule;
    let with = |change: &dyn Fn(&mut Schedule)| {
        let mut wrong = right.clone();
        change(&mut wrong);
        follow(&kernel, machine(), &wrong).map(|made| made.schedule).expect_err("it is wrong").to_string()
    };
    let not = "the schedule is not one of this kernel";
    assert!(with(&|s| s.loops[0].slots = 0).contains(not));
    assert!(with(&|s| s.loops[0].distance = s.loops[0].slots).contains(not));
    assert!(with(&|s| s.loops[0].number = 7).contains(not));
    assert!(with(&|s| s.loops[0].loads = vec![99]).contains(not));
    assert!(with(&|s| s.loops[0].loads = vec![0]).contains(not));
    assert!(with(&|s| s.loops[0].loads.clear()).contains(not));
    assert!(with(&|s| s.loops[0].distance = 0).contains(not), "the copies would come after their wait");
    assert!(with(&|s| s.loops.push(s.loops[0].clone())).contains(not));
    assert!(with(&|s| s.slots.push(2)).contains(not));
    assert!(with(&|s| s.roles = Roles::Fused { distance: 1, carried: false }).contains(not));
    assert!(with(&|s| s.warps = Some(3)).contains("no program has 3 warps"));
    assert!(with(&|s| s.warps = Some(0)).contains("no program has 0 warps"));
    assert!(with(&|s| s.shared_bytes = 1024).contains("shared memory"));
    let order = "operations that do not exist";
    assert!(with(&|s| s.bodies[0].order[..20].reverse()).contains(order));
    assert!(with(&|s| s.bodies[0].order.truncate(3)).contains(order));
    assert!(with(&|s| s.bodies[0].order[0] = s.bodies[0].order[1]).contains(order));
    assert!(with(&|s| s.bodies.push(Body { number: 9, ahead: Vec::new(), order: Vec::new() })).contains(order));
}

/// Copies may run fewer iterations ahead than there are slots.
#[test]
fn slots_and_distance_are_apart() {
    let kernel: Verified = gemm(64, 64, 32);
    let right = stages(&kernel, machine(), true, None).unwrap().schedule;
    for (slots, distance) in [(2, 1), (3, 1), (4, 1), (4, 2), (5, 4)] {
        let ahead = Ahead { slots, distance, ..right.loops[0].clone() };
        let schedule = Schedule { loops: vec![ahead], bodies: Vec::new(), ..right.clone() };
        let made = follow(&kernel, machine(), &schedule).unwrap_or_else(|e| panic!("{slots}, {distance}: {e}"));
        assert_eq!(made.rings.pipes[0].slots, slots);
    }
}

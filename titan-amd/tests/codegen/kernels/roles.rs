//! Kernels with roles: they are fused and give what their lanes say, or are refused with what is in the way and its line.

use super::tree::{compared, kernels_of};
use crate::launch::{Ready, machine};
use titan_core::driver::{Roles, stages};

/// What a refusal says behind this.
const TOGETHER: &str = "gfx942 has no barriers for some of a program's threads, so that all of them execute every role; these roles cannot be \
                        executed together: ";

/// Kernels whose roles cannot be fused, and why.
const REFUSED: [(&str, &str, &str); 9] = [
    ("accepted_rings", "both_leave", "a loop is left early here"),
    ("accepted_rings", "every_second", "the loops of the roles begin at other numbers, or have other steps"),
    ("accepted_rings", "one_loop_and_two", "the other role has no loop that goes with this one"),
    ("accepted_rings", "half_as_often", "what is copied depends on what is computed"),
    ("accepted_rings", "twice_in_one", "what is copied depends on what is computed"),
    ("accepted_rings", "primed", "no role only fills the rings that the other one only reads"),
    ("accepted_rings", "primed_twice", "no role only fills the rings that the other one only reads"),
    ("accepted_barriers", "two_readers", "there are 3 roles"),
    ("accepted_barriers", "by_hand", "no ring is between them"),
];

#[test]
fn roles_that_cannot_be_fused_are_refused_with_the_reason() {
    for (file, name, why) in REFUSED {
        let found = kernels_of(file).into_iter().find(|(own, _)| own == name);
        let (_, kernel) = found.unwrap_or_else(|| panic!("no {name} in {file}"));
        for aligned in [true, false] {
            let error = stages(&kernel, machine(), aligned, None).map(drop).expect_err(name);
            let message = error.message.strip_prefix(TOGETHER).unwrap_or_else(|| panic!("{name}: {}", error.message));
            assert!(message.starts_with(why), "{name}: {message}");
            assert!(error.help.as_deref().is_some_and(|help| help.starts_with("write one role that copies")), "{name}");
            // At the line of what is in the way: inside of the roles, or at their beginning.
            assert!(error.loc.line > 0, "{name}: {:?}", error.loc);
        }
    }
}

/// Copies and sums of stages, products, accumulators, and loops that are in another order in the other role.
const FUSED: [&str; 5] = ["two_halves", "loops_swapped", "products", "the_smaller_one", "named_before_the_roles"];

#[test]
fn fused_roles_leave_what_their_lanes_say() {
    let all = kernels_of("accepted_rings");
    let mut runs = 0;
    for name in FUSED {
        let (_, kernel) = all.iter().find(|(own, _)| own == name).unwrap_or_else(|| panic!("no {name}"));
        for aligned in [true, false] {
            let stages = stages(kernel, machine(), aligned, None).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(matches!(stages.schedule.roles, Roles::Fused { .. }) && stages.rings.roles.is_empty(), "{name}");
            let ready = Ready::new(&stages.lanes).unwrap_or_else(|e| panic!("{name}: {e}"));
            // Each number is another order of completion.
            for seed in 0..3 {
                let done = compared((kernel, &stages.rings), &ready, &stages.lanes, aligned, seed);
                runs += usize::from(done.unwrap_or_else(|e| panic!("{name}, aligned {aligned}, seed {seed}: {e}")));
            }
        }
    }
    assert!(runs >= 20, "{runs} runs");
}

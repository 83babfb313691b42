//! Products whose operands are parts of tensors, by rows: on sm_90a they are copied in bulk by maps for parts. Exact on all completion orders;
//! other coordinates give another result, or a fault.
//!
//! Segments, whose bounds are in memory, and bulk stores to them are compared in `titan-cpu/tests/simulator/grouped.rs`.

use super::harness::orders_of;
use super::lowered::{assembles, compiled};
use super::mixed::{Case, How, PLAIN, plain, run_text, text_of, with_roles};
use super::moved::{Moved, moved_coordinates};
use titan_core::driver::Stages;
use titan_core::launch::abi::PartMap;
use titan_nv::emu::Options;

/// Threads copy nothing, and the operands that are parts have maps for parts.
#[track_caller]
fn is_by_parts(made: &Stages, case: &Case) {
    let text = text_of(made);
    assert!(!text.contains("cp.async.cg") && !text.contains("cp.async.ca"), "{text}");
    for (param, how) in (0..).zip(case.how) {
        let part = if let How::Rows(_) = how { PartMap::Along(0) } else { PartMap::Whole };
        assert!(made.lanes.maps.iter().any(|map| map.param == param && map.part == part), "{:?}", made.lanes.maps);
    }
    assert!(text.contains("cp.async.bulk.tensor.4d.shared"), "{text}");
}

#[test]
fn operands_that_are_parts_of_tensors() {
    let mut cases = Vec::new();
    for how in [[How::Rows(5), How::Box], [How::Box, How::Rows(1)], [How::Rows(0), How::Rows(64)]] {
        cases.push(Case { how, tile: [64, 64, 64], size: [130, 76, 136], ..PLAIN });
        cases.push(Case { how, slots: 2, size: [1, 36, 8], ..PLAIN });
        cases.push(Case { how, size: [70, 72, 104], ..PLAIN });
    }
    let mut clusters = 0;
    for (number, case) in cases.iter().enumerate() {
        // In the quick depth one of them, in turn.
        let texts = [with_roles(case), plain(case)].into_iter().enumerate();
        for (roles, text) in texts.filter(|(roles, _)| test_depth::is_full() || *roles == number % 2) {
            let made = compiled(&text);
            is_by_parts(&made, case);
            clusters += usize::from(made.lanes.cluster > 1);
            assembles(&made, "sm_90a", 0);
            for options in orders_of(number + 2 * roles) {
                run_text(case, &made, &text_of(&made), &options, number as u64)
                    .unwrap_or_else(|e| panic!("{case:?}, {:?}: {e}", options.completion));
            }
        }
    }
    // Their programs share the boxes of the operand that is no part.
    assert!(clusters > 0);
}

/// Copies of parts with each of their coordinates moved by one in either direction: none goes unnoticed.
#[test]
fn every_coordinate_of_a_copy_of_a_part_matters() {
    let case = Case { how: [How::Rows(5), How::Rows(3)], size: [70, 40, 72], ..PLAIN };
    let made = compiled(&with_roles(&case));
    let text = text_of(&made);
    run_text(&case, &made, &text, &Options::default(), 3).unwrap_or_else(|e| panic!("{e}"));
    let mutants = moved_coordinates(&text, "cp.async.bulk.tensor.4d.shared");
    for Moved { what, text } in &mutants {
        let options = Options { max_steps: 1 << 20, ..Options::default() };
        assert!(run_text(&case, &made, text, &options, 3).is_err(), "{what}");
    }
    assert_eq!(mutants.len(), 2 * 4 * 2, "{text}");
}

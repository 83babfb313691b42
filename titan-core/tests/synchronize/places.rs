//! Places: no two regions that hold something at once have bytes in common, and places are used again.

use crate::paths::{Choices, Place, Trace, follow, region_of};
use crate::rng::Rng;
use crate::values::values;
use std::collections::BTreeSet;
use titan_core::allocate::allocate;
use titan_core::ir::{Kernel, OpId, OpKind, RegionOp, TtgOp};

fn range(kernel: &Kernel, region: OpId) -> std::ops::Range<u32> {
    match kernel.op(region).kind {
        OpKind::Region(RegionOp::Place { offset, bytes, .. }) => offset..offset + bytes,
        ref other => panic!("{other:?}"),
    }
}

fn overlap(kernel: &Kernel, a: OpId, b: OpId) -> bool {
    let (a, b) = (range(kernel, a), range(kernel, b));
    a.start < b.end && b.start < a.end
}

/// Whoever writes a place ends what lay there, which must not be read, or still be on its way.
fn look(kernel: &Kernel, trace: &Trace) -> Result<(), String> {
    let mut holds: Vec<OpId> = Vec::new();
    for (i, access) in trace.accesses.iter().enumerate() {
        let Place::Bytes { region, .. } = access.place else { continue };
        let copies = trace.accesses[..i]
            .iter()
            .filter(|c| c.to > access.from && c.code.is_none_or(|c| access.code.is_none_or(|a| a == c)));
        for copy in copies {
            let Place::Bytes { region: other, .. } = copy.place else { continue };
            if other != region && overlap(kernel, other, region) {
                return Err(format!("{region} is touched while a copy to {other} is on its way"));
            }
        }
        if access.write {
            holds.retain(|other| !overlap(kernel, *other, region));
            holds.push(region);
        } else if !holds.contains(&region) {
            return Err(format!("{region} is read, but something else lies there"));
        }
    }
    Ok(())
}

/// What different roles touch lies apart, whenever they touch it; how many pairs there are.
fn at_once(kernel: &Kernel) -> usize {
    let mut pairs = 0;
    kernel.walk(&mut |_, op| {
        if op.kind != OpKind::Ttg(TtgOp::Roles) {
            return;
        }
        let of = |i: usize| {
            let mut named = BTreeSet::new();
            kernel.walk_block(op.regions[i], &mut |_, op| {
                if !matches!(op.kind, OpKind::Region(_)) {
                    named.extend(op.args.iter().filter_map(|v| region_of(kernel, *v)));
                }
            });
            named
        };
        for (a, b) in of(0).into_iter().flat_map(|a| of(1).into_iter().map(move |b| (a, b))).filter(|(a, b)| a != b) {
            assert!(!overlap(kernel, a, b), "{a} and {b}\n{}", titan_core::text::print(kernel));
            pairs += 1;
        }
    });
    pairs
}

#[test]
fn regions_that_hold_something_at_once_do_not_overlap() {
    let (mut regions, mut shared, mut pairs) = (0, 0, 0);
    for seed in 0..500 {
        let text = values(&mut Rng::new(seed));
        let mut kernel = titan_core::text::parse_one(&text).unwrap_or_else(|e| panic!("seed {seed}: {e:#?}\n{text}"));
        let size = allocate(&mut kernel);
        for path in 0..40 {
            let trace = follow(&kernel, &mut Choices::random(seed * 100 + path));
            if let Err(what) = look(&kernel, &trace) {
                panic!("seed {seed}: {what}\n{}", titan_core::text::print(&kernel));
            }
        }
        let (mut end, mut sum) = (0, 0);
        kernel.walk(&mut |id, op| match op.kind {
            OpKind::Region(RegionOp::Place { bytes, .. }) => {
                let is_named = |other: &titan_core::ir::Op| {
                    !matches!(other.kind, OpKind::Region(_))
                        && other.args.iter().any(|v| region_of(&kernel, *v) == Some(id))
                };
                if kernel.ops.iter().any(is_named) {
                    (regions, sum, end) = (regions + 1, sum + bytes, range(&kernel, id).end.max(end));
                }
            }
            OpKind::Region(RegionOp::Tile { .. }) => {
                let region = region_of(&kernel, op.args[0]).expect("a region");
                let align = kernel.encoding(op.results[0]).expect("an encoding").align();
                assert!(range(&kernel, region).start.is_multiple_of(align.max(16)), "seed {seed}: {region}");
            }
            _ => {}
        });
        assert_eq!(size, end, "seed {seed}");
        shared += u32::from(end < sum);
        pairs += at_once(&kernel);
    }
    let few = regions < 1300 || shared < 150 || pairs < 300;
    assert!(!few, "{regions} regions; {shared} programs use a place twice; {pairs} pairs of different roles");
}

/// The places of the regions of a text, and the size of all.
fn offsets(body: &str) -> (Vec<u32>, u32) {
    let text = format!("{}{body}    return\n}}\n", crate::program::HEAD);
    let mut kernel = titan_core::text::parse_one(&text).unwrap_or_else(|e| panic!("{e:#?}\n{text}"));
    let size = allocate(&mut kernel);
    let mut all = Vec::new();
    kernel.walk(&mut |id, op| {
        if matches!(op.kind, OpKind::Region(RegionOp::Place { .. })) {
            all.push(range(&kernel, id).start);
        }
    });
    (all, size)
}

const TWO: &str = "    %r = ttg.region {offset = 0, bytes = 512} : region
    %s = ttg.region {offset = 0, bytes = 512} : region
    %rt = ttg.region.tile %r {offset = 0} : smem<16x16xf16, 0>
    %st = ttg.region.tile %s {offset = 0} : smem<16x16xf16, 0>
    %from = ttg.source_tile %a[%k0, %k0] or %pad : source<16x16xf16, 0>
";

#[test]
fn one_after_the_other_they_take_the_same_place() {
    assert_eq!(offsets(&format!("{TWO}    ttg.local.store %x, %rt\n    ttg.local.store %x, %st\n")), (vec![0, 0], 512));
    assert_eq!(offsets(""), (vec![], 0));
}

#[test]
fn a_copy_keeps_its_place_while_it_may_be_in_flight() {
    let wait = "ttg.nv.cp_async.wait_group {n = 0}";
    for (body, apart) in [
        // Who waits waits on every path, or not.
        (format!("ttg.local.copy_async %from, %rt\n{wait}\nttg.local.store %x, %st\n"), false),
        (
            format!(
                "ttg.local.copy_async %from, %rt\nif %yes {{\n{wait}\nyield\n}} else {{\nyield\n}}\nttg.local.store %x, %st\n"
            ),
            true,
        ),
        (
            format!(
                "ttg.local.copy_async %from, %rt\nif %yes {{\n{wait}\nyield\n}} else {{\n{wait}\nyield\n}}\nttg.local.store %x, %st\n"
            ),
            false,
        ),
        // A loop that never runs does not wait.
        (
            format!(
                "ttg.local.copy_async %from, %rt\nfor %i = %k0 to %n step %k1 {{\n{wait}\ncontinue\n}}\nttg.local.store %x, %st\n"
            ),
            true,
        ),
        // Who leaves a loop before the wait has not waited.
        (
            format!(
                "for %i = %k0 to %n step %k1 {{\nttg.local.copy_async %from, %rt\nif %yes {{\nbreak\n}} else {{\nyield\n}}\n{wait}\ncontinue\n}}\nttg.local.store %x, %st\n"
            ),
            true,
        ),
        (
            format!(
                "for %i = %k0 to %n step %k1 {{\nttg.local.copy_async %from, %rt\n{wait}\ncontinue\n}}\nttg.local.store %x, %st\n"
            ),
            false,
        ),
    ] {
        let (found, _) = offsets(&format!("{TWO}{body}"));
        assert_eq!(found[0] != found[1], apart, "{body}");
    }
}

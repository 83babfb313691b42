//! Products whose bulk stores are in flight while their role computes the next tile: exact on all completion orders, with races looked for,
//! alone and in clusters, with one instance and with two. Changes of the emitted text are found.

use super::harness::{orders, orders_of};
use super::lowered::{self, Gemm, run_on};
use super::multicast::{PLAIN, along, compiled, kernel, line, without};
use titan_core::artifact::{Assumption, Variant};
use titan_core::driver::{Cluster, Stages};
use titan_core::ir::OpKind;

/// A wait after which bulk stores have read shared memory, and one after which they have written too.
const READ: &str = "cp.async.bulk.wait_group.read 0";
const WRITTEN: &str = "cp.async.bulk.wait_group 0";

fn text(made: &Stages) -> String {
    String::from_utf8(made.code.payload.clone()).expect("PTX is text")
}

/// The products: a plain grid, which becomes persistent, and roles with one instance and with two, whose tiles have one slice, two or four.
fn products() -> Vec<(Gemm, Stages)> {
    let mut all = Vec::new();
    for tile in [[64, 64, 64], [64, 128, 64], [64, 256, 32]] {
        let gemm = Gemm { tile, ..PLAIN };
        all.push((gemm, kernel(&gemm, 3, true)));
    }
    let gemm = Gemm { tile: [64, 128, 32], ..PLAIN };
    all.push((gemm, lowered::kernel(&gemm)));
    all.push((gemm, kernel(&gemm, 4, false).replace("role(consumer, 4)", "role(consumer, 4, 2)")));
    // In the quick depth each alone or in clusters, in turn.
    let clusters = [None, Some(along(0, 2))].into_iter().enumerate();
    let both =
        clusters.flat_map(|(turn, cluster)| all.iter().enumerate().map(move |(nth, made)| (turn + nth, made, cluster)));
    let some = both.filter(|(turn, ..)| test_depth::is_full() || turn % 2 == 0);
    some.map(|(_, (gemm, text), cluster)| (*gemm, alone_or_not(text, cluster))).collect()
}

/// A kernel without clusters, or with one.
fn alone_or_not(text: &str, cluster: Option<Cluster>) -> Stages {
    if cluster.is_some() {
        return compiled(text, cluster);
    }
    let chosen = compiled(text, None).schedule;
    let walk = titan_core::driver::Walk { cluster: None, ..chosen.walk };
    let schedule = titan_core::driver::Schedule { walk, bodies: Vec::new(), ..chosen };
    let machine = titan_nv::Machine::from_name("sm_90a").expect("it is known");
    titan_core::driver::follow(&super::multicast::verified(text), machine, &schedule).expect("it compiles")
}

#[test]
fn results_are_exact_on_all_orders() {
    let mut number = 0;
    for (nth, (gemm, made)) in products().into_iter().enumerate() {
        let text = text(&made);
        let roles = made.schedule.walk.instances.unwrap_or(1) as usize;
        // Each role waits before the first slice of a tile, and behind its last tile; never for what is written.
        assert_eq!((text.matches(READ).count(), text.matches(WRITTEN).count()), (2 * roles, 0), "{text}");
        let [bm, bn, _] = gemm.tile.map(|n| n as usize);
        // Many tiles for each program, some of them ragged; no step of the loop over K, few, and more than there are slots.
        // Then one tile for each program, and for some none.
        let many = [([3 * bm, 2 * bn, 72], 1), ([5 * bm - 7, 2 * bn - 8, 264], 2), ([bm, 3 * bn, 8], 1)];
        let few = [([bm, 2 * bn, 40], 2), ([bm + 8, bn, 40], 5)];
        // In the quick depth one of the sizes, in turn.
        let of_quick = |which: usize| test_depth::is_full() || which == nth % 5;
        let sizes = many.into_iter().chain(few).enumerate();
        for (_, (size, programs)) in sizes.filter(|(which, _)| of_quick(*which)) {
            let gemm = Gemm { size, ..gemm };
            for options in orders_of(number as usize) {
                let grid = [programs * made.lanes.cluster.max(1), 1, 1];
                run_on(&gemm, &made, &options, number, grid).unwrap_or_else(|e| {
                    panic!("{gemm:?}, {:?}, {:?}: {e}", made.schedule.walk.cluster, options.completion)
                });
                number += 1;
            }
        }
    }
}

/// The stores of a tile complete after the next tile's first copies have been started.
#[test]
fn stores_are_in_flight_while_the_next_tile_is_computed() {
    let gemm = Gemm { tile: [64, 128, 64], ..PLAIN };
    let text = text(&alone_or_not(&kernel(&gemm, 3, false), None));
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no `{what}`\n{text}"));
    let (first, last) = (at(READ), text.rfind(READ).expect("a second wait"));
    let (stored, mma) = (at("cp.async.bulk.commit_group"), at("wgmma.mma_async"));
    assert!(mma < first && first < at("stmatrix") && at("stmatrix") < stored && stored < last, "{text}");
    // Between the last store of a tile and the jump to the next one, nothing waits for stores.
    let behind = &text[text.rfind("cp.async.bulk.commit_group").expect("a group")..last];
    assert!(behind.contains("bra"), "{behind}");
    assert_eq!(behind.matches("bulk.wait_group").count(), 0, "{behind}");
}

/// A product with other operations between the product and its store, in the place of these two lines.
fn stored_by(gemm: &Gemm, slots: u32, lines: &str) -> String {
    let text = kernel(gemm, slots, false);
    let (before, rest) = text.split_once("%g = cast").expect("the cast");
    let (_, after) = rest.split_once("store_tile %c[%mm, %nn], %g\n").expect("the store");
    format!("{before}{lines}{after}")
}

fn exact(gemm: &Gemm, made: &Stages) {
    // In the quick depth one of the orders, in turn with the widths of tiles.
    let turn = (gemm.tile[1] / 64 + gemm.tile[2] / 32) as usize % 4;
    let all = orders().into_iter().enumerate();
    for (number, options) in all.filter(|(number, _)| test_depth::is_full() || *number == turn) {
        run_on(gemm, made, &options, number as u64, [2, 1, 1])
            .unwrap_or_else(|e| panic!("{:?}: {e}", options.completion));
    }
}

/// Adding the transposed tile takes 16 KiB of shared memory, which can share bytes with the buffer of the store, of 8 KiB. Together they
/// fit beside 12 slots of 16 KiB, but not beside 13.
#[test]
fn buffers_of_stores_in_flight_cost_no_slot() {
    let machine = titan_nv::Machine::from_name("sm_90a").expect("it is known");
    let gemm = Gemm { size: [190, 200, 136], ..PLAIN };
    let lines = "%t = permute<1, 0> %f : tile<64x64xf32>\n%plus = add %f, %t : tile<64x64xf32>\n\
                 %less = sub %plus, %t : tile<64x64xf32>\n%g = cast %less : tile<64x64xf16>\nstore_tile %c[%mm, %nn], %g\n";
    for (slots, waited) in [(12, false), (13, true)] {
        let source = stored_by(&gemm, slots, lines);
        let made = alone_or_not(&source, None);
        assert_eq!(
            (&made.schedule.slots[..], made.schedule.stores_waited),
            (&[slots][..], waited),
            "{}",
            made.schedule
        );
        let text = text(&made);
        let waits = (text.matches(READ).count(), text.matches(WRITTEN).count());
        assert_eq!(waits, if waited { (0, 1) } else { (2, 0) }, "{text}");
        exact(&gemm, &made);
        let mut kernel = titan_core::text::parse_one(&source).expect("a kernel");
        let stores = kernel.ops.iter_mut().filter(|op| matches!(op.kind, OpKind::Store(_)));
        stores.for_each(|op| op.loc.line = 42);
        let kernel = titan_core::verify::verify(kernel).expect("a right kernel");
        let variants = titan_core::driver::compile(&kernel, machine, None).expect("it compiles");
        let note = "the next tile begins when `c` is stored: the buffers of the store and those of the tile would not fit in shared memory \
                    together (line 42 of the kernel)";
        let in_bulk =
            |v: &&Variant| v.assumptions.iter().any(|a| matches!(a, Assumption::TensorMap(map) if map.param == 2));
        assert!(variants.iter().any(|v| in_bulk(&v)));
        for variant in variants.iter().filter(in_bulk) {
            assert_eq!(variant.notes.iter().any(|n| n == note), waited, "{:?}", variant.notes);
        }
    }
}

/// A store in a branch of the loop over tiles, both of whose arms lead to the next tile.
#[test]
fn a_store_in_a_branch_is_in_flight_too() {
    let gemm = Gemm { tile: [64, 128, 64], size: [190, 390, 136], ..PLAIN };
    let lines = "%g = cast %f : tile<64x128xf16>\n%any = ge %j, %zero : bool\nif %any {\n\
                 store_tile %c[%mm, %nn], %g\nyield\n} else {\nyield\n}\n";
    let made = alone_or_not(&stored_by(&gemm, 3, lines), None);
    let text = text(&made);
    assert_eq!((text.matches(READ).count(), text.matches(WRITTEN).count()), (2, 0), "{text}");
    exact(&gemm, &made);
}

/// The stores of a tile to several tensors are in flight together: one wait serves them all.
#[test]
fn several_stores_of_a_tile_are_in_flight_together() {
    for (tile, elem) in [([64, 64, 64], "f16"), ([64, 64, 64], "f32"), ([64, 256, 32], "f16"), ([64, 192, 32], "f32")] {
        let gemm = Gemm { tile, size: [190, 2 * tile[1] as usize - 8, 136], ..PLAIN };
        let by = format!("{}x{}", tile[0], tile[1]);
        let lines = format!(
            "%g = cast %f : tile<{by}xf16>\n%h = cast %f : tile<{by}x{elem}>\n\
             store_tile %c[%mm, %nn], %g\nstore_tile %d[%mm, %nn], %h\n"
        );
        let source = stored_by(&gemm, 3, &lines).replace(") grid", &format!(", %d: mut tensor<{elem}>[M, N]) grid"));
        let made = alone_or_not(&source, None);
        let text = text(&made);
        assert_eq!((text.matches(READ).count(), text.matches(WRITTEN).count()), (2, 0), "{text}");
        exact(&gemm, &made);
    }
}

/// Of two stores in branches, no one wait is before the first: each is waited for.
#[test]
fn stores_in_several_branches_are_waited_for() {
    let gemm = Gemm { size: [190, 200, 136], ..PLAIN };
    let lines = "%g = cast %f : tile<64x64xf16>\n%any = ge %j, %zero : bool\nif %any {\nstore_tile %c[%mm, %nn], %g\n\
                 yield\n} else {\nyield\n}\nstore_tile %d[%mm, %nn], %g\n";
    let source = stored_by(&gemm, 3, lines).replace(") grid", ", %d: mut tensor<f16>[M, N]) grid");
    let made = alone_or_not(&source, None);
    let text = text(&made);
    assert_eq!((text.matches(READ).count(), text.matches(WRITTEN).count()), (0, 2), "{text}");
    exact(&gemm, &made);
}

/// The stores of a tile that threads write otherwise, such as a sum of each row, change nothing.
#[test]
fn stores_of_other_tiles_change_nothing() {
    let gemm = Gemm { tile: [64, 128, 64], size: [190, 390, 136], ..PLAIN };
    let lines = "%g = cast %f : tile<64x128xf16>\nstore_tile %c[%mm, %nn], %g\n%sum = reduce_sum<1> %f : tile<64xf32>\n\
                 %row = index<0> %d, %nn : tensor<f32, 1>\nstore_tile %row[%mm], %sum\n";
    let source = stored_by(&gemm, 3, lines).replace(") grid", ", %d: mut tensor<f32>[T, M]) grid");
    let text = text(&alone_or_not(&source, None));
    assert_eq!((text.matches(READ).count(), text.matches(WRITTEN).count()), (2, 0), "{text}");
}

/// Changes of the emitted text, whose first wait is before the first slice of a tile, and whose last one is behind the last tile.
fn mutants(text: &str) -> Vec<(&'static str, String)> {
    let leaves = |nth: isize, n: u32| line(text, nth, READ, |l| l.replace("read 0", &format!("read {n}")));
    let late = line(&without(text, 0, READ), 0, "cp.async.bulk.tensor.2d.global", |l| format!("{READ};\n{l}"));
    vec![
        ("buffers are not waited for", without(text, 0, READ)),
        ("the last slice of a tile may be read", leaves(0, 1)),
        ("two slices of a tile may be read", leaves(0, 2)),
        ("buffers are waited for when they are written", late),
        ("the last tile is not waited for", without(text, -1, READ)),
        ("the last slice of all is not waited for", leaves(-1, 1)),
        ("a slice is in no group", without(text, -1, "cp.async.bulk.commit_group")),
    ]
}

#[test]
fn changes_of_waits_are_found() {
    for (turn, tile) in [[64, 128, 64], [64, 256, 32]].into_iter().enumerate() {
        let gemm = Gemm { tile, size: [test_depth::cases(190, 120), 2 * tile[1] as usize, 136], ..PLAIN };
        let code = alone_or_not(&kernel(&gemm, 3, true), None);
        let fails = |text: &str| {
            let mut changed = code.clone();
            changed.code.payload = text.as_bytes().to_vec();
            orders().into_iter().find_map(|options| run_on(&gemm, &changed, &options, 7, [1, 1, 1]).err())
        };
        let text = text(&code);
        assert_eq!(fails(&text), None);
        // In the quick depth, each change of one of the two.
        let is_meant = |nth: usize| test_depth::is_full() || nth % 2 == turn;
        for (_, (name, changed)) in mutants(&text).into_iter().enumerate().filter(|(nth, _)| is_meant(*nth)) {
            assert_ne!(changed.trim_end(), text.trim_end(), "{name}");
            let found = fails(&changed);
            assert!(found.is_some(), "{name} is not found\n{changed}");
        }
    }
}

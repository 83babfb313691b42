//! Products whose tiles several instances of a role compute in turn: exact on all completion orders, for fewer tiles than instances, numbers
//! of tiles that are no multiple, and in clusters. Changes of the emitted text are found.

use super::harness::orders;
use super::lowered::{Gemm, run_on};
use super::multicast::{PLAIN, along, compiled, kernel, last, line, verified, without};
use super::{ptxas, sass};
use titan_core::driver::{Cluster, Stages, stages};
use titan_nv::Machine;
use titan_nv::emu::Options;

/// The product with so many slots and instances.
fn text(gemm: &Gemm, slots: u32, instances: u32) -> String {
    kernel(gemm, slots, false).replace("role(consumer, 4)", &format!("role(consumer, 4, {instances})"))
}

/// The same without clusters, or with one.
fn made(gemm: &Gemm, slots: u32, instances: u32, cluster: Option<Cluster>) -> Stages {
    let text = text(gemm, slots, instances);
    let made = match cluster {
        Some(_) => compiled(&text, cluster),
        None => {
            let machine = Machine::from_name("sm_90a").expect("it is known");
            let chosen = stages(&verified(&text), machine, true, None).expect("it compiles").schedule;
            let walk = titan_core::driver::Walk { cluster: None, ..chosen.walk };
            let alone = titan_core::driver::Schedule { walk, bodies: Vec::new(), ..chosen };
            titan_core::driver::follow(&verified(&text), machine, &alone).expect("it compiles without clusters")
        }
    };
    assert_eq!(made.schedule.walk.instances, Some(instances), "{:?}", made.schedule);
    made
}

#[test]
fn any_number_of_tiles_on_any_order() {
    let sizes = [[1, 8, 8], [64, 64, 64], [64, 128, 72], [190, 64, 128], [328, 136, 200], [190, 200, 8]];
    let orders = orders();
    let mut cases = Vec::new();
    for (slots, instances) in [(4, 2), (5, 2), (6, 3)] {
        for (shape, cluster) in [None, Some(along(0, 2)), Some(along(1, 2))].into_iter().enumerate() {
            for size in sizes {
                let number = cases.len();
                cases.push((number, (slots, instances, shape), cluster, size, [1, 2, 3][number % 3]));
            }
        }
    }
    let traits = |(number, code, cluster, size, programs): &(usize, (u32, u32, usize), Option<Cluster>, _, u32)| {
        let is_cluster = cluster.is_some();
        vec![
            format!("{code:?}"),
            format!("{size:?}, {is_cluster}"),
            format!("{programs} programs, {is_cluster}"),
            format!("order {}", number % 4),
        ]
    };
    let mut codes = std::collections::BTreeMap::new();
    for (number, (slots, instances, shape), cluster, size, programs) in test_depth::covering(cases, traits) {
        let code = codes.entry((slots, instances, shape)).or_insert_with(|| made(&PLAIN, slots, instances, cluster));
        let gemm = Gemm { size, ..PLAIN };
        let programs = cluster.map_or(1, |c| c.size) * programs;
        let options = Options { sanitize: number % 4 == 0, ..orders[number % orders.len()].clone() };
        run_on(&gemm, code, &options, number as u64, [programs, 1, 1]).unwrap_or_else(|e| {
            panic!("{gemm:?}, {instances} of {slots}, {cluster:?}, {programs}, {:?}: {e}", options.completion)
        });
    }
}

/// Changes of the emitted text that break turns, or the rings of an instance. The first instance has two slots, and so has the second one.
fn mutants(text: &str) -> Vec<(&'static str, String)> {
    let arrive = "mbarrier.arrive.shared";
    // The producer's, then the first instance's, then the second one's.
    let turn = |nth: isize| line(text, nth, "rem.s32", last("3"));
    let turns: Vec<isize> = (0..text.matches("rem.s32").count() as isize)
        .filter(|nth| {
            text.lines().filter(|l| l.contains("rem.s32")).nth(nth.unsigned_abs()).is_some_and(|l| l.ends_with(", 2;"))
        })
        .collect();
    assert_eq!(turns.len(), 3, "{text}");
    // The comparison behind it says whose turn it is.
    let other = |nth: isize, to: &str| {
        let all: Vec<&str> = text.lines().collect();
        let rem = (0..all.len()).filter(|at| all[*at].contains("rem.s32")).nth(nth.unsigned_abs()).expect("a line");
        assert!(all[rem + 1].contains("setp.eq.s32"), "{}", all[rem + 1]);
        let (before, _) = all[rem + 1].rsplit_once(", ").expect("operands");
        [&all[..=rem], &[&*format!("{before}, {to};")], &all[rem + 2..]].concat().join("\n")
    };
    let registers = |nth: isize, has: &str, to: &str| line(text, nth, has, |_| format!("  setmaxnreg.{to};"));
    let (dec, inc) = ("setmaxnreg.dec", "setmaxnreg.inc");
    vec![
        ("the producer takes turns of three", turn(turns[0])),
        ("the first instance takes turns of three", turn(turns[1])),
        ("the second instance takes turns of three", turn(turns[2])),
        ("the producer fills the first ring for the second instance", other(turns[0], "1")),
        ("the first instance takes the turn of the second one", other(turns[1], "1")),
        // The second one has its tiles in the other branch.
        ("the second instance takes the turn of the first one", other(turns[2], "1")),
        ("the first instance takes no turn", other(turns[1], "2")),
        ("the second instance takes every turn", other(turns[2], "2")),
        ("the producer releases no registers", without(text, 0, dec)),
        ("the producer requests registers", registers(0, dec, "inc.sync.aligned.u32 232")),
        ("an instance requests more registers than there are", registers(0, inc, "inc.sync.aligned.u32 240")),
        ("a number of registers that is not a multiple of 8", registers(-1, inc, "inc.sync.aligned.u32 228")),
        ("the first instance does not release", without(text, 0, arrive)),
        ("the second instance does not release at the end", without(text, -1, arrive)),
        ("a release of the other instance counts", line(text, 2, "mbarrier.init", last("8"))),
        ("the bytes of the first ring", line(text, 0, "expect_tx", last("8192"))),
        ("the bytes of the second ring", line(text, 1, "expect_tx", last("32768"))),
        ("the first ring is not waited for", without(text, 0, "bra $L")),
        ("the barriers of the second ring are not initialised", without(text, 4, "mbarrier.init")),
        ("the last store is not waited for", without(text, -1, "cp.async.bulk.wait_group.read 0")),
        ("one instance stores before the MMAs end", without(text, -1, "wgmma.wait_group.sync.aligned 0")),
    ]
}

#[test]
fn changes_of_turns_are_found() {
    let gemm = Gemm { size: [190, 136, 264], ..PLAIN };
    let code = made(&gemm, 4, 2, None);
    let text = String::from_utf8(code.code.payload.clone()).expect("PTX is text");
    let fails = |text: &str| {
        let mut changed = code.clone();
        changed.code.payload = text.as_bytes().to_vec();
        orders().into_iter().find_map(|options| run_on(&gemm, &changed, &options, 7, [2, 1, 1]).err())
    };
    assert_eq!(fails(&text), None);
    for (name, changed) in mutants(&text) {
        assert_ne!(changed.trim_end(), text.trim_end(), "{name}");
        assert!(fails(&changed).is_some(), "{name} is not found\n{changed}");
    }
}

/// Instructions of a loop with eight MMAs of 64x128x16 elements; the product by hand has 51.
const IN_LOOP: usize = 44;
/// Cycles for which it is stalled; the product by hand has 140.
const STALLED: u32 = 142;

#[test]
fn the_loops_of_both_instances_pass() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    if !sass::is_measured(&ptxas) {
        return;
    }
    let gemm = Gemm { tile: [128, 128, 64], ..PLAIN };
    for cluster in [None, Some(along(0, 2))] {
        let code = made(&gemm, 5, 2, cluster);
        let text = String::from_utf8_lossy(&code.code.payload);
        let usages = ptxas::assemble(&ptxas, "sm_90a", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(usages.iter().all(|usage| usage.spilled == 0), "{usages:?}");
        let code = sass::assemble(&ptxas, "sm_90a", &text).unwrap_or_else(|e| panic!("{e}"));
        let loops = code.shortest(&[sass::HGMMA], 8);
        assert!(loops.len() >= 2, "the loops of both instances");
        for found in &loops[..2] {
            let stalled: u32 = found.iter().map(|i| sass::stall(*i)).sum();
            assert!(found.len() <= IN_LOOP && stalled <= STALLED, "{} instructions, {stalled} cycles", found.len());
            for (name, opcode) in sass::SLOW {
                assert_eq!(sass::count(found, &[opcode]), 0, "{name}");
            }
        }
    }
}

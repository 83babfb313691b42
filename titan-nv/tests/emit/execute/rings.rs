//! Rings run for 0 to 3 D + 1 tiles, with copies early, late and at random; and with mistakes, each of which is reported.

use super::waits::modes;
use super::{Ready, bytes, machine, words};
use crate::rings::{Free, Mutant, THREADS, TILE, program};
use std::collections::BTreeMap;
use titan_core::lane::verify;
use titan_nv::emu::{EmuError, ErrorCode, Memory, Options, Param};

const TARGETS: [&str; 2] = ["sm_80", "sm_90a"];

fn word(tile: usize, i: usize) -> u32 {
    (1000 * tile + 7 * i + 1) as u32
}

/// Runs a ring on so many tiles; the sums.
fn sums(ring: &Ready, n: usize, options: &Options) -> Result<Vec<u32>, EmuError> {
    let all: Vec<u32> = (0..n.max(1)).flat_map(|t| (0..TILE).map(move |i| word(t, i))).collect();
    let mut memory = Memory::new();
    let tiles = memory.upload("tiles", &bytes(&all));
    let out = memory.alloc_named("sums", 4 * THREADS as usize);
    let params = [Param::Ptr(tiles), Param::Ptr(out), Param::I32(n as i32)];
    ring.run(&params, &mut memory, options)?;
    Ok(words(&memory.read(out, 4 * THREADS as usize)?))
}

fn want(n: usize) -> Vec<u32> {
    let sum = |c: usize| (0..n).map(|t| word(t, c) + word(t, c + 64)).sum();
    (0..THREADS as usize).map(|t| t.checked_sub(32).map_or(0, sum)).collect()
}

#[test]
fn rings_of_any_depth_sum_any_number_of_tiles() {
    let mut ran = 0;
    for free in [Free::Mbarrier, Free::Sequence] {
        for slots in 1..=4 {
            let func = program(slots, free, None);
            verify(&func).unwrap_or_else(|e| panic!("{e}\n{func}"));
            for target in TARGETS {
                let ring = Ready::new(&func, machine(target));
                for (n, options) in (0..=3 * slots as usize + 1).flat_map(|n| modes().into_iter().map(move |m| (n, m)))
                {
                    let what = || format!("{n} tiles, {slots} slots, {free:?}, {target}, {options:?}");
                    let found = sums(&ring, n, &options).unwrap_or_else(|e| panic!("{}: {e}", what()));
                    assert_eq!(found, want(n), "{}", what());
                    ran += 1;
                }
            }
        }
    }
    assert_eq!(ran, 2 * (5 + 8 + 11 + 14) * 2 * modes().len());
}

/// What a mistake may be reported as.
fn reported(found: Result<Vec<u32>, EmuError>, n: usize) -> Option<&'static str> {
    match found {
        Ok(sums) => (sums != want(n)).then_some("wrong sums"),
        Err(e) => Some(match e.code() {
            ErrorCode::Race => "race",
            ErrorCode::Deadlock | ErrorCode::Limit => "deadlock",
            ErrorCode::Barrier => "barrier",
            ErrorCode::Uninitialised => "never written",
            _ => panic!("{e}"),
        }),
    }
}

/// As what a mistake was reported, how often; how often it was not.
#[derive(Default)]
struct Tally {
    as_what: BTreeMap<&'static str, u32>,
    missed: u32,
}

/// Runs a ring with a mistake on 3 D + 1 tiles in every way.
fn tally(slots: i32, free: Free, mutant: Mutant, target: &str) -> Tally {
    let ring = Ready::new(&program(slots, free, Some(mutant)), machine(target));
    let n = 3 * slots as usize + 1;
    let mut tally = Tally::default();
    for options in modes() {
        let options = Options { max_steps: 1 << 16, ..options };
        match reported(sums(&ring, n, &options), n) {
            Some(what) => *tally.as_what.entry(what).or_default() += 1,
            None => tally.missed += 1,
        }
    }
    tally
}

/// Every mistake is reported, whatever the target, the order of warps and the time that copies take. One excepted: a slot that
/// may be taken too early is not always, where the consumers are quick.
fn all_are_reported(free: Free, mutants: &[Mutant]) {
    let mut table = String::new();
    for mutant in mutants {
        let mut whole = Tally::default();
        for (slots, target) in [1, 3].into_iter().flat_map(|slots| TARGETS.map(|target| (slots, target))) {
            let one = tally(slots, free, *mutant, target);
            assert!(!one.as_what.is_empty(), "{mutant:?} of {free:?} with {slots} slots on {target} is never reported");
            one.as_what.iter().for_each(|(what, n)| *whole.as_what.entry(what).or_default() += n);
            whole.missed += one.missed;
        }
        table += &format!("{free:?} {mutant:?}: {:?}, missed {}\n", whole.as_what, whole.missed);
        assert!(whole.missed == 0 || *mutant == Mutant::SequenceAhead, "{table}");
    }
    crate::ptxas::say(&table);
}

#[test]
fn mistakes_with_two_mbarriers_are_reported() {
    all_are_reported(
        Free::Mbarrier,
        &[&BOTH[..], &[Mutant::FreeParity, Mutant::FreeCount(-1), Mutant::FreeCount(1)]].concat(),
    );
}

#[test]
fn mistakes_with_a_counter_are_reported() {
    all_are_reported(Free::Sequence, &[&BOTH[..], &[Mutant::WeakStore, Mutant::SequenceAhead]].concat());
}

const BOTH: [Mutant; 8] = [
    Mutant::NoFreeWait,
    Mutant::NoReadyWait,
    Mutant::ReadyParity,
    Mutant::ReadyCount(-1),
    Mutant::ReadyCount(1),
    Mutant::PlainArrive,
    Mutant::NoMeeting,
    Mutant::NoInitBarrier,
];

#[test]
fn rings_are_assembled() {
    let Some(ptxas) = crate::ptxas::unless_absent() else { return };
    for machine in titan_nv::Machine::all() {
        for free in [Free::Mbarrier, Free::Sequence] {
            let text = titan_nv::emit(&program(3, free, None), machine, None).unwrap().text;
            let usages =
                crate::ptxas::assemble(&ptxas, machine.name, &text).unwrap_or_else(|said| panic!("{said}\n{text}"));
            assert!(usages.len() == 1 && usages[0].spilled == 0, "{usages:?}");
        }
    }
}

//! What the verifier and the simulator say of every program, and of every mutant.

use crate::args::make;
use crate::mutants::Mutant;
use crate::{mutants, programs};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use titan_core::diag::Code;
use titan_core::text::parse;
use titan_core::verify::{verify, well_formed};
use titan_sim::engine::Completion;
use titan_sim::sim::{Finding, Kind, Limits, Options, Verdict, explore, run};

/// The numbers of tiles with which programs are simulated: more than there are slots of a ring, an odd and an even one.
const TILES: [i64; 2] = [4, 3];
/// How many states of a program are looked at. There are fewer of all correct programs.
const STATES: u64 = 40_000;

/// The verdicts of both.
struct Judged {
    refused: Option<Code>,
    found: Option<Finding>,
    /// Whether the search ended at its bound.
    bound: bool,
}

/// Judges a program; `None` if it is no program, or has no defined execution.
fn judge(text: &str) -> Option<Judged> {
    let kernel = parse(text).ok()?.pop()?;
    let refused = verify(kernel.clone()).err().map(|errors| errors[0].code);
    let kernel = well_formed(kernel).ok()?;
    let mut bound = false;
    for tiles in TILES {
        let args = make(&kernel.sig, 64, tiles);
        for (completion, seed) in
            [(Completion::Early, None), (Completion::Late, None), (Completion::Seeded(5), Some(5))]
        {
            let options = Options { completion, seed, max_steps: 20_000, ..Options::default() };
            let report = run(&kernel, &mut args.clone(), None, &options).unwrap();
            if let Some(found) = report.findings.into_iter().next() {
                return Some(Judged { refused, found: Some(found), bound });
            }
        }
        match explore(&kernel, &args, None, &Limits { max_states: STATES, ..Limits::default() }).unwrap() {
            Verdict::Finding(found, _) => return Some(Judged { refused, found: Some(*found), bound }),
            Verdict::Bound(..) => bound = true,
            Verdict::Safe(_) => {}
        }
    }
    Some(Judged { refused, found: None, bound })
}

/// What becomes of each item, in their order, on all cores.
fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let all = || {
        let mut made = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else { return made };
            made.push((number, work(item)));
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut made: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(all)).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    made.sort_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn correct_programs_are_accepted_and_clean() {
    let all = programs::all();
    assert!(all.len() >= 130, "{} programs", all.len());
    let family = |program: &programs::Program| program.name.split(':').next().unwrap_or_default().to_owned();
    let all = test_depth::sample_each(all, 8, family);
    let judged = on_all_cores(&all, |program| {
        let judged = judge(&program.text)
            .unwrap_or_else(|| panic!("{}: {:?}\n{}", program.name, parse(&program.text).err(), program.text));
        let found = judged.found.map(|f| f.to_string());
        let right = judged.refused.is_none() && found.is_none() && !judged.bound;
        (!right).then(|| format!("{}: {:?}, {found:?}, bound {}", program.name, judged.refused, judged.bound))
    });
    let wrong: Vec<String> = judged.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// Why the verdicts may differ.
fn reason(judged: &Judged) -> Option<&'static str> {
    match (judged.refused, judged.found.as_ref().map(|f| f.kind)) {
        (None, Some(Kind::Undefined)) => Some(
            "the verifier does not ask what is in memory: an accumulator that is scaled or shifted need not be written",
        ),
        _ => None,
    }
}

#[test]
fn mutants_are_judged_alike() {
    // Programs of one family and one shape differ in numbers only: in the quick depth every seventh is changed.
    let programs = programs::all().into_iter().step_by(test_depth::cases(1, 7));
    let mutants: Vec<(String, Mutant)> =
        programs.flat_map(|p| mutants::of(&p.text).into_iter().map(move |m| (p.name.clone(), m))).collect();
    let mutants = test_depth::sample_each(mutants, 25, |(_, mutant)| mutant.kind);
    let judged = on_all_cores(&mutants, |(_, mutant)| judge(&mutant.text));
    let (mut counts, mut wrong): (BTreeMap<&str, [usize; 2]>, Vec<String>) = Default::default();
    for ((name, mutant), judged) in mutants.iter().zip(judged) {
        let Some(judged) = judged else { continue };
        let refused = judged.refused.is_some();
        counts.entry(mutant.kind).or_default()[usize::from(refused)] += 1;
        if refused != judged.found.is_some() && reason(&judged).is_none() {
            let found = judged.found.map(|f| f.to_string());
            let (kind, line) = (mutant.kind, &mutant.line);
            wrong.push(format!("{kind} | {name} | `{line}`: {:?}, {found:?}, bound {}", judged.refused, judged.bound));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}\n{counts:?}", wrong.len(), wrong.join("\n"));
    let sum = |i: usize| counts.values().map(|c| c[i]).sum::<usize>();
    assert!(sum(1) >= test_depth::cases(8000, 250) && sum(0) >= test_depth::cases(500, 40), "{counts:?}");
    assert!(counts.len() >= 19, "{counts:?}");
}

/// Columns that the program frees when its roles have ended, which the verifier leaves to roles: the end of a role is a synchronization that
/// takes both fences.
#[test]
fn columns_are_freed_after_the_roles() {
    let once = programs::all().into_iter().find(|p| p.name.contains("a third role frees")).unwrap();
    let owner = once.text.find("} owner {").unwrap();
    let end = once.text[owner..].find("return\n").unwrap() + owner;
    let (before, after) = ("ttg.nv.tcgen05.fence_before_thread_sync\n", "ttg.nv.tcgen05.fence_after_thread_sync\n");
    for (loads, frees) in [(true, true), (false, true), (true, false)] {
        let roles = once.text[..owner].replace(" role(owner, 1)", "");
        let roles = if loads { roles } else { roles.replace(before, "") };
        let fence = if frees { after } else { "" };
        let free = "ttg.nv.tcgen05.dealloc %acc {cta_group = 1}";
        let text = format!("{roles}}}\n{fence}{free}\n{}", &once.text[end..]);
        let judged = judge(&text).unwrap_or_else(|| panic!("{:?}\n{text}", parse(&text).err()));
        let expected = (!(loads && frees)).then_some(Kind::Fence);
        assert_eq!(judged.found.as_ref().map(|f| f.kind), expected, "{loads} {frees}: {:?}", judged.found);
    }
}

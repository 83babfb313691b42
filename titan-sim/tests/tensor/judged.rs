//! What the verifier and the simulator say of every program.

use crate::args::make;
use crate::{mutants, programs};
use std::collections::BTreeMap;
use titan_core::diag::Code;
use titan_core::text::parse;
use titan_core::verify::{verify, well_formed};
use titan_sim::engine::Completion;
use titan_sim::sim::{Finding, Limits, Options, Verdict, explore, run};

/// The numbers of tiles with which programs are simulated.
const TILES: [i64; 2] = [3, 1];

/// The verdicts of both.
struct Judged {
    refused: Option<Code>,
    found: Option<Finding>,
    bound: bool,
}

/// Judges a program; `None` if it is no program.
fn judge(text: &str, states: u64) -> Option<Judged> {
    let kernel = parse(text).ok()?.pop()?;
    let refused = verify(kernel.clone()).err().map(|errors| errors[0].code);
    let kernel = well_formed(kernel).ok()?;
    let mut bound = false;
    for tiles in TILES {
        let args = make(&kernel.sig, 64, tiles);
        let limits = Limits { max_states: states, ..Limits::default() };
        match explore(&kernel, &args, None, &limits) {
            Ok(Verdict::Finding(found, _)) => return Some(Judged { refused, found: Some(*found), bound }),
            Ok(Verdict::Bound(..)) => bound = true,
            Ok(Verdict::Safe(_)) => {}
            Err(e) => panic!("{e:?}"),
        }
        for (completion, seed) in
            [(Completion::Early, None), (Completion::Late, None), (Completion::Seeded(5), Some(5))]
        {
            let options = Options { completion, seed, max_steps: 20_000, ..Options::default() };
            let report = run(&kernel, &mut args.clone(), None, &options).unwrap();
            if let Some(found) = report.findings.into_iter().next() {
                return Some(Judged { refused, found: Some(found), bound });
            }
        }
    }
    Some(Judged { refused, found: None, bound })
}

#[test]
fn correct_programs_are_accepted_and_clean() {
    let all = programs::all();
    assert!(all.len() >= 100, "{} programs", all.len());
    let mut wrong = Vec::new();
    for program in &all {
        let judged = judge(&program.text, 20_000)
            .unwrap_or_else(|| panic!("{}: {:?}\n{}", program.name, parse(&program.text).err(), program.text));
        if judged.refused.is_some() || judged.found.is_some() || judged.bound {
            let found = judged.found.map(|f| f.to_string());
            wrong.push(format!("{}: {:?}, {found:?}, bound {}", program.name, judged.refused, judged.bound));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

#[test]
fn mutants_are_judged_alike() {
    let (mut counts, mut wrong): (BTreeMap<&str, [usize; 4]>, Vec<String>) = Default::default();
    for program in programs::all() {
        for mutant in mutants::of(&program.text) {
            let Some(judged) = judge(&mutant.text, 20_000) else { continue };
            let (refused, found) = (judged.refused.is_some(), judged.found.is_some());
            counts.entry(mutant.kind).or_default()[usize::from(refused) * 2 + usize::from(found)] += 1;
            if refused != found {
                let found = judged.found.map(|f| f.to_string());
                wrong.push(format!(
                    "{} | {} | `{}`: {:?}, {found:?}, bound {}",
                    mutant.kind, program.name, mutant.line, judged.refused, judged.bound
                ));
            }
        }
    }
    println!("{counts:#?}");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

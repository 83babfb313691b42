//! Schedules of the dependence graphs of every kernel's loops, with damage: the checker refuses one exactly if its execution breaks a promise.
//! The table of docs/scheduling.md is made here.

#[path = "../../../titan-core/tests/schedule/damage.rs"]
mod damage;
#[path = "../../../titan-core/tests/schedule/execution.rs"]
#[expect(dead_code, reason = "live weights are corrected for random graphs")]
mod execution;
#[path = "../../../titan-core/tests/schedule/random.rs"]
#[expect(dead_code, reason = "the graphs are those of kernels")]
mod random;

use super::documented::told;
use super::rewritten::subjects;
use damage::KINDS;
use random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use titan_core::driver::loop_graphs;
use titan_core::schedule::graph::Graph;
use titan_core::schedule::swing::Options;
use titan_core::schedule::{Schedule, check::check, plan, text};

/// In how many cycles results are live that an execution counts, at most in the quick depth, and at most in any.
const CYCLES: [i64; 2] = [200_000, 20_000_000];

/// The graphs of all loops, each with its schedule, which differ in more than their names.
fn graphs() -> Vec<(String, Graph, Schedule)> {
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    for subject in subjects() {
        let graphs = loop_graphs(&subject.loops.laid_out, &subject.loops.target).expect("loops of a laid-out kernel");
        for found in graphs {
            let schedule = plan(&found.graph, &Options::default()).schedule().clone();
            let most = CYCLES[usize::from(test_depth::is_full())];
            let cycles = schedule.ii * schedule.stages * schedule.stages * found.graph.ops().len() as i64;
            if cycles <= most && seen.insert(text::print(&found.graph.draft())) {
                all.push((subject.name.clone(), found.graph, schedule));
            }
        }
    }
    all
}

#[test]
fn damaged_schedules_of_every_kernel_are_refused_exactly_if_their_execution_is_wrong() {
    let graphs = graphs();
    assert!(graphs.len() > test_depth::cases(30, 8) && KINDS.len() >= 12, "{} graphs", graphs.len());
    let mut rows: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for (number, (name, graph, schedule)) in graphs.iter().enumerate() {
        assert_eq!(check(graph, schedule, None), Ok(()), "{name}");
        assert!(execution::is_legal(graph, schedule, None), "{name}");
        for (nth, (kind, damage)) in KINDS.iter().enumerate() {
            let mut mutant = schedule.clone();
            damage(graph, &mut mutant, &mut Random((number * KINDS.len() + nth) as u64));
            if mutant == *schedule {
                continue;
            }
            let is_legal = execution::is_legal(graph, &mutant, None);
            let found = check(graph, &mutant, None);
            let printed = || format!("{}{}", text::print(&graph.draft()), text::print_schedule(&mutant));
            assert_eq!(found.is_ok(), is_legal, "{name}: {kind}: {found:?}\n{}", printed());
            let row = rows.entry(kind).or_default();
            row[0] += 1;
            row[1] += usize::from(!is_legal);
        }
    }
    println!("{} graphs: {rows:?}", graphs.len());
    let unmet: Vec<&str> =
        KINDS.iter().map(|(kind, _)| *kind).filter(|kind| rows.get(kind).is_none_or(|row| row[1] == 0)).collect();
    assert!(unmet.is_empty(), "no schedule with this damage was refused: {unmet:?}");
    let mut text = "| damage | tried | refused |\n|---|---|---|\n".to_owned();
    for (kind, [tried, refused]) in rows {
        let _ = writeln!(text, "| {kind} | {tried} | {refused} |");
    }
    told("scheduling", ("graphs", "damaged schedules"), &text);
}

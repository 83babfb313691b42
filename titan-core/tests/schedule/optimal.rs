//! The intervals that the search finds, against the least ones.
//!
//! The graphs on which it misses are listed in docs/scheduling.md; `TITAN_BLESS=1` writes the list.

use crate::{exact, execution, random};
use std::fmt::Write as _;
use titan_core::schedule::swing::{Options, Stop};
use titan_core::schedule::{Plan, check::check, plan};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/scheduling.md");
const BEGIN: &str = "<!-- the list of misses, written by the test `optimal` -->\n";

#[test]
fn small_graphs_have_the_least_interval_or_are_listed() {
    let seeds = test_depth::cases(400, 80);
    let (mut equal, mut undecided, mut misses) = (0, 0, String::new());
    for seed in 1..=seeds {
        let graph = random::graph(seed, 12);
        let found = plan(&graph, &Options::default());
        let schedule = found.schedule();
        assert_eq!(check(&graph, schedule, None), Ok(()), "{seed}");
        assert!(execution::is_legal(&graph, schedule, None), "{seed}");
        if let Plan::Sequential { stop, .. } = &found {
            assert_eq!(*stop, Stop::NothingShorter, "{seed}");
        }
        match exact::optimal(&graph) {
            None => undecided += 1,
            Some(least) if least == schedule.ii => equal += 1,
            Some(least) => {
                assert!(least < schedule.ii, "{seed}: {least} is the least interval, and {} was found", schedule.ii);
                let bound = titan_core::schedule::bounds::bounds(&graph).least();
                let (ops, ii) = (graph.ops().len(), schedule.ii);
                writeln!(misses, "| {seed} | {ops} | {bound} | {least} | {ii} |").expect("a string");
            }
        }
    }
    let count = misses.lines().count();
    assert!(equal >= 60, "{equal} of {seeds}");
    assert!(undecided * 10 <= seeds, "{undecided} of {seeds} are undecided");
    let page = std::fs::read_to_string(PAGE).expect("docs/scheduling.md");
    let (before, rest) = page.split_once(BEGIN).expect("the place of the list");
    let (list, after) = rest.split_once("\n\n").expect("an empty line after the list");
    if std::env::var_os("TITAN_BLESS").is_some() {
        let head = "| seed | operations | bound | least interval | found |\n|--:|--:|--:|--:|--:|\n";
        let list = if misses.is_empty() { "None.\n" } else { &format!("{head}{misses}") };
        std::fs::write(PAGE, format!("{before}{BEGIN}{list}\n{after}")).expect("docs/scheduling.md can be written");
        return;
    }
    for miss in misses.lines() {
        assert!(list.lines().any(|line| line == miss), "docs/scheduling.md does not list {miss}; bless it");
    }
    let is_of_these = |line: &str| line.split(' ').nth(1).is_some_and(|n| n.parse().is_ok_and(|n: u64| n <= seeds));
    let listed = list.lines().filter(|line| is_of_these(line)).count();
    assert_eq!(listed, count, "docs/scheduling.md lists misses that are none; bless it");
}

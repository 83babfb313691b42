//! Mistakes in the code of stages that bulk copies and threads fill together (`mixed`), one line each: the emulator finds all of them, with
//! another result, a fault, or a wait that does not end.

use super::harness::orders;
use super::lowered::compiled;
use super::mixed::{Case, How, PLAIN, run_text, text_of, with_roles};
use super::ptxas;
use titan_nv::emu::Options;

/// The text with line `at` replaced by others.
fn with(lines: &[&str], at: usize, by: &[&str]) -> String {
    [&lines[..at], by, &lines[at + 1..]].concat().join("\n")
}

/// The line with its last number changed.
fn with_number(line: &str, change: impl Fn(u32) -> u32) -> String {
    let (before, number) = line.strip_suffix(';').and_then(|l| l.rsplit_once(", ")).expect("it ends in a number");
    format!("{before}, {};", change(number.parse().expect("a number")))
}

/// Every mistake of one line: what is wrong, and the text with it. Half of the barriers are those of full slots.
fn mistakes(text: &str, slots: usize) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    let inits: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].contains("mbarrier.init")).collect();
    for (at, line) in lines.iter().copied().enumerate() {
        let mut say = |what: &str, by: &[&str]| all.push((format!("{what}: {line}"), with(&lines, at, by)));
        let guard = line.split_once("mbarrier").map_or("", |(guard, _)| guard);
        if line.contains("cp.async.mbarrier.arrive.noinc") {
            say("no arrival of copies", &[]);
            say("an arrival of copies that raises the count", &[&line.replace(".noinc", "")]);
            say("an arrival of one thread's copies", &[&format!("@%p0 {}", line.trim())]);
            let at_once = line.replace("cp.async.mbarrier.arrive.noinc.shared.b64 ", "mbarrier.arrive.shared.b64 _, ");
            let at_once = at_once
                .replace("cp.async.mbarrier.arrive.noinc.shared::cta.b64 ", "mbarrier.arrive.shared::cta.b64 _, ");
            assert_ne!(at_once, line);
            say("an arrival that does not wait for copies", &[&at_once]);
            say("copies arrive twice", &[line, line]);
        } else if line.contains("mbarrier.arrive.expect_tx") {
            say("bytes are not announced, nor is their thread counted", &[]);
            say("too many bytes", &[&with_number(line, |n| n + 16)]);
            say("too few bytes", &[&with_number(line, |n| n - 16)]);
            say("all bytes of the stage", &[&with_number(line, |n| 3 * n)]);
            say("bytes by all threads", &[line.strip_prefix(guard).unwrap_or(line)]);
        } else if line.contains("cp.async.bulk.tensor") && line.contains("mbarrier::complete_tx") {
            say("no bulk copy", &[]);
            say("two bulk copies", &[line, line]);
        } else if line.contains("cp.async.cg.shared") {
            say("no copy by threads", &[]);
        } else if line.contains("fence.proxy.async") {
            say("no fence between proxies", &[]);
        } else if line.contains("fence.mbarrier_init") {
            say("initialisation without a fence", &[]);
        } else if line.contains("mbarrier.try_wait") && lines.get(at + 1).is_some_and(|next| next.contains("bra")) {
            let mut gone = lines.clone();
            gone.drain(at..at + 2);
            all.push((format!("no wait: {line}"), gone.join("\n")));
        }
    }
    // The barriers of full slots come first.
    let full = |change: &dyn Fn(u32) -> u32| {
        let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        inits[..slots].iter().for_each(|at| changed[*at] = with_number(lines[*at], change));
        changed.join("\n")
    };
    all.push(("the bytes are not counted".to_owned(), full(&|n| n - 1)));
    all.push(("one arrival too many is counted".to_owned(), full(&|n| n + 1)));
    all.push(("only one thread is counted".to_owned(), full(&|_| 1)));
    all
}

fn all_are_found(case: &Case, least: usize) {
    let made = compiled(&with_roles(case));
    let text = text_of(&made);
    let watched = orders().into_iter().take(3);
    let orders: Vec<Options> = watched.clone().chain(watched.map(|o| Options { sanitize: false, ..o })).collect();
    let fails = |text: &str| {
        orders.iter().find_map(|options| {
            let options = Options { max_steps: 1 << 20, ..options.clone() };
            run_text(case, &made, text, &options, 3).err()
        })
    };
    assert_eq!(fails(&text), None);
    let all = mistakes(&text, case.slots as usize);
    assert!(all.len() >= least, "{}", all.len());
    // In the quick depth, each mistake in one of the lines where it can be made.
    let kind = |(what, _): &(String, String)| what.split(": ").next().unwrap_or_default().to_owned();
    let all = test_depth::sample_each(all, 1, kind);
    let missed: Vec<&str> = all.iter().filter(|(_, text)| fails(text).is_none()).map(|(what, _)| &**what).collect();
    ptxas::say(&format!("{:?}: {} mistakes, {} not found", case.how, all.len(), missed.len()));
    assert!(missed.is_empty(), "of {}:\n{}", all.len(), missed.join("\n"));
}

#[test]
fn mistakes_with_gathered_rows_are_found() {
    all_are_found(&Case { tile: [64, 16, 32], slots: 2, size: [64, 16, 168], ..PLAIN }, 20);
}

#[test]
fn mistakes_with_rows_that_threads_store_are_found() {
    all_are_found(
        &Case { how: [How::Box, How::Columns(3)], tile: [64, 16, 32], slots: 2, size: [64, 16, 168], ..PLAIN },
        12,
    );
}

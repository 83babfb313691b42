//! Waits, barriers and idle states of the two products, removed or weakened one by one: each is reported, by poison, the
//! sanitizer or the distances. None is there that is not needed.

use crate::gemm::{product, reference};
use crate::kernels::{DIRECT, Hand, STAGED, numbers, orders};
use crate::support::depth;
use std::collections::BTreeSet;

/// A kernel with one line changed.
struct Mutant {
    line: usize,
    what: String,
    text: String,
}

fn weakened(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default().trim();
    if code == "s_barrier" {
        return vec![String::new()];
    }
    if let Some(states) = code.strip_prefix("s_nop ") {
        let n: u32 = states.parse().expect("a number of states");
        return vec![if n == 0 { String::new() } else { format!("s_nop {}", n - 1) }];
    }
    let Some(counters) = code.strip_prefix("s_waitcnt ") else { return Vec::new() };
    let parts: Vec<&str> = counters.split_whitespace().collect();
    let one_more = |i: usize| {
        let (name, n) = parts[i].trim_end_matches(')').split_once('(').expect("a counter");
        let changed = format!("{name}({})", n.parse::<u32>().expect("a count") + 1);
        let all: Vec<&str> = parts.iter().enumerate().map(|(j, p)| if i == j { changed.as_str() } else { p }).collect();
        format!("s_waitcnt {}", all.join(" "))
    };
    (0..parts.len()).map(one_more).chain([String::new()]).collect()
}

fn mutants(text: &str) -> Vec<Mutant> {
    let lines: Vec<&str> = text.lines().collect();
    let of = |i: usize| {
        let lines = &lines;
        weakened(lines[i]).into_iter().map(move |new| {
            let mut all = lines.clone();
            all[i] = &new;
            Mutant { line: i + 1, what: format!("`{}` as `{new}`", lines[i].trim()), text: all.join("\n") }
        })
    };
    (0..lines.len()).flat_map(of).collect()
}

/// The mutants that no order of events shows.
fn survivors(hand: &Hand, size: [usize; 3]) -> Vec<String> {
    let (x, y) = (numbers(size[0] * size[2], 7), numbers(size[1] * size[2], 8));
    let want = reference(size, (&x, &y));
    let mut left = Vec::new();
    let all = mutants(hand.text);
    assert!(all.len() >= 25, "{}: {} mutants", hand.name, all.len());
    // In the quick depth, each change of a line is made in one of the lines of that text.
    let mut seen = BTreeSet::new();
    for mutant in all.into_iter().filter(|mutant| depth::full() || seen.insert(mutant.what.clone())) {
        let module = hand.module(&mutant.text);
        let mut reported = false;
        for options in orders() {
            match product(hand, &module, size, (&x, &y), &options) {
                Err(error) => {
                    let code = error.code().name();
                    assert!(
                        ["in-flight", "uninitialised", "race", "hazard"].contains(&code),
                        "{} line {}, {}: {error}",
                        hand.name,
                        mutant.line,
                        mutant.what
                    );
                    reported = true;
                    break;
                }
                // Wrong results without a report would be the worst.
                Ok((got, _)) => assert_eq!(got, want, "{} line {}, {}", hand.name, mutant.line, mutant.what),
            }
        }
        if !reported {
            left.push(format!("line {}: {}", mutant.line, mutant.what));
        }
    }
    left
}

#[test]
fn every_wait_barrier_and_idle_state_of_the_staged_product_is_needed() {
    assert_eq!(survivors(&STAGED, [256, 256, 128]), [] as [String; 0]);
}

#[test]
fn every_wait_barrier_and_idle_state_of_the_direct_product_is_needed() {
    // Three tiles: the first half is loaded again.
    assert_eq!(survivors(&DIRECT, [256, 256, 96]), [] as [String; 0]);
}

//! Leaving out orders changes no verdict: every small pipeline of the filetests, with and without.

use crate::args::make;
use crate::filetests::{File, files};
use titan_sim::sim::{Limits, Verdict, explore};

#[test]
fn verdicts_are_the_same_with_and_without_reduction() {
    let (mut same, mut bounds, mut other) = (0, 0, Vec::new());
    let (mut with_states, mut all_states) = (0, 0);
    let all = [files(&["verify"], "pipe_"), files(&["verify"], "barrier_"), files(&["museum"], "")];
    for File { name, kernels, .. } in all.concat() {
        for (kernel, _) in kernels {
            let args = make(&kernel.sig, 16, 2);
            let limits = Limits { max_states: test_depth::cases(10_000, 200), ..Limits::default() };
            let Ok(with) = explore(kernel, &args, Some([1, 1, 1]), &limits) else { continue };
            let Ok(without) = explore(kernel, &args, Some([1, 1, 1]), &Limits { reduce: false, ..limits }) else {
                continue;
            };
            match (&with, &without) {
                (Verdict::Bound(..), _) | (_, Verdict::Bound(..)) => bounds += 1,
                (Verdict::Safe(a), Verdict::Safe(b)) => {
                    assert_eq!((a.occupied, a.ends), (b.occupied, b.ends), "{name}");
                    (with_states, all_states, same) = (with_states + a.states, all_states + b.states, same + 1);
                }
                (Verdict::Finding(..), Verdict::Finding(..)) => same += 1,
                (a, b) => other.push(format!("{name} @{}: {a:?}\nwithout: {b:?}", kernel.sig.name)),
            }
        }
    }
    println!("{same} verdicts alike, {bounds} not decided without; safe ones: {with_states} states of {all_states}");
    assert!(other.is_empty(), "{}", other.join("\n"));
    assert!(same > test_depth::cases(200, 150), "{same}");
}

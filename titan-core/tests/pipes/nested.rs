//! Loops with schedules in the bodies of loops with schedules, either of which may be peeled.

use super::expanded::{Counts, mutate};
use super::loop_mutants::{KINDS, Kind};
use super::modulo::{kernel, plain, random, random_peeled, written};
use super::random::{Rng, below};
use titan_core::ir::Kernel;
use titan_core::pipeline::modulo::{check, expand};
use titan_core::text::print;

/// The text of a loop whose nested loops have schedules of two stages, if it has any. `writes` says that one of them writes.
fn nested(text: &str, rng: &mut Rng, peeled: bool) -> Option<(String, bool, bool)> {
    let (mut made, mut number, mut inner_peeled) = (String::new(), 0, false);
    let mut writes = peeled && text.matches("set %o").count() == text.matches("set %o[%seven], %r").count();
    let mut of: Option<(String, bool)> = None;
    let may_write = writes;
    writes = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let (true, Some(at)) = (words.get(2) == Some(&"for"), line.find(" to %two step")) {
            number += 1;
            let is_peeled = below(rng, 3) > 0;
            inner_peeled |= is_peeled;
            let until = ["%zero", "%one", "%two", "%n"][below(rng, 4)];
            let rest = &line[at + " to %two".len()..];
            let rest = if is_peeled { rest.replacen(" stage(", " peeled stage(", 1) } else { rest.to_owned() };
            made += &format!("{} to {until}{rest}\n", &line[..at]);
            of = Some((words[3].to_owned(), is_peeled));
            continue;
        }
        if let Some((counter, is_peeled)) = of.take() {
            // `%l = add %k, %b : i32`
            let [result, carried, used] = [words[0], words[3].trim_end_matches(','), words[4]];
            let step = format!("%g{}", &counter[2..]);
            let [first, second] = [[0, 2], [2, 0]][below(rng, 2)];
            let used_first = [counter.as_str(), used][below(rng, 2)];
            made += &format!("{step} = mul {counter}, {used_first} : i32 stage(0, {first})\n");
            made += &format!(
                "{result} = {} {carried}, {step} : i32 stage(1, {second})\n",
                ["add", "mul", "sub"][below(rng, 3)]
            );
            if may_write && !writes && below(rng, 2) == 0 {
                writes = true;
                let written =
                    [(result, 1), (step.as_str(), 1), (step.as_str(), 0)][below(rng, 2 + usize::from(is_peeled))];
                // Only a peeled loop writes ahead.
                made += &format!("set %o[%seven], {} stage({}, 3)\n", written.0, written.1);
            }
            continue;
        }
        made += line;
        made.push('\n');
    }
    (number > 0).then_some((made, inner_peeled, writes))
}

fn random_nested(rng: &mut Rng) -> Option<(String, [bool; 3])> {
    let peeled = below(rng, 2) == 0;
    let made = if peeled { random_peeled(rng) } else { random(rng) };
    if peeled && !made.has_two_stages() {
        return None;
    }
    let (text, inner, writes) = nested(&made.text(), rng, peeled)?;
    Some((text, [peeled, inner, writes]))
}

#[test]
fn loops_in_loops_compute_the_same_if_either_is_peeled() {
    let mut rng = Rng(0x1234_cafe_0bad_5678);
    let (mut all, mut of) = (0, [0; 3]);
    for _ in 0..test_depth::cases(4000, 500) {
        let Some((text, is)) = random_nested(&mut rng) else { continue };
        let expanded = expand(&kernel(&text)).unwrap_or_else(|why| panic!("{why:?}\n{text}"));
        check(&kernel(&text), &expanded).unwrap_or_else(|why| panic!("{why:?}\n{text}\n{}", print(&expanded)));
        all += 1;
        of.iter_mut().zip(is).for_each(|(of, is)| *of += usize::from(is));
        let expanded = kernel(&print(&expanded));
        for n in -1..=6 {
            let (right, found) = (written(&plain(&text), n), written(&expanded, n));
            assert_eq!(right, found, "{n} iterations\n{text}\n{}", print(&expanded));
        }
    }
    println!("{all} loops in loops; the outer one peeled, the inner one, written by the inner one: {of:?}");
    assert!(of.iter().all(|of| *of > test_depth::cases(150, 20)));
}

#[test]
fn what_differs_from_a_loop_in_a_loop_is_refused() {
    let mut rng = Rng(0x1357_0bad_9bdf_cafe);
    let mut counts = Counts::new();
    let behind = [Kind::ShortEnd, Kind::TwiceAfter, Kind::FirstCondition, Kind::Yielded];
    let kinds: Vec<Kind> = KINDS[..19].iter().copied().filter(|kind| *kind != Kind::Constant).chain(behind).collect();
    for turn in 0..test_depth::cases(30_000, 3000) {
        let Some((text, _)) = random_nested(&mut rng) else { continue };
        let right = |mutant: &Kernel| (-1..=8).all(|n| written(&plain(&text), n) == written(mutant, n));
        mutate(&text, kinds[turn % kinds.len()], &mut rng, &mut counts, &right);
    }
    println!("{counts:?}");
    assert!(counts.values().map(|[refused, _]| refused).sum::<usize>() > test_depth::cases(5000, 500));
}

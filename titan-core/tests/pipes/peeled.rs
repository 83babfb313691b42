//! Loops whose first and last iteration stand apart: what is made of them computes the same, and loops that cannot be peeled are refused.

use super::modulo::{kernel, plain, random_peeled, refused_of, written};
use super::random::Rng;
use titan_core::pipeline::modulo::{check, expand};
use titan_core::text::print;

/// Without phantoms, operations with an effect may run ahead.
#[test]
fn peeled_loops_compute_the_same_in_any_number_of_iterations() {
    let mut rng = Rng(0x0dd1_cafe_8765_4321);
    let (mut several, mut early) = (0, 0);
    for _ in 0..test_depth::cases(3000, 400) {
        let made = random_peeled(&mut rng);
        let text = made.text();
        if !made.has_two_stages() {
            continue;
        }
        let expanded = expand(&kernel(&text)).unwrap_or_else(|why| panic!("{why:?}\n{text}"));
        check(&kernel(&text), &expanded).unwrap_or_else(|why| panic!("{why:?}\n{text}\n{}", print(&expanded)));
        several += 1;
        early += usize::from(made.writes_early());
        let expanded = kernel(&print(&expanded));
        for n in -1..=8 {
            let (right, found) = (written(&plain(&text), n), written(&expanded, n));
            assert_eq!(right, found, "{n} iterations\n{text}\n{}", print(&expanded));
        }
    }
    println!("{several} peeled loops, {early} of which write ahead");
    assert!(several > test_depth::cases(1500, 200) && early > test_depth::cases(300, 40));
}

#[test]
fn loops_that_cannot_be_peeled_are_refused_in_words() {
    let two = "%x = add %i, %one : i32 stage(0, 0)\nset %o[%x], %one stage(1, 1)\ncontinue";
    let one = "for %i = %zero to %n step %one peeled";
    let cases = [
        (one, "%x = add %i, %one : i32 stage(0, 0)\nset %o[%x], %one stage(0, 1)\ncontinue", "has not two stages"),
        (one, "%x = add %i, %one : i32 stage(0, 0)\nset %o[%x], %one stage(2, 1)\ncontinue", "has not two stages"),
        (one, "%x = add %i, %one : i32\nset %o[%x], %one\ncontinue", "no place for this operation"),
        ("for %i = %zero to %n step %two peeled", two, "other steps than 1"),
        ("for %i = %zero to %n step %n peeled", two, "other steps than 1"),
        ("for %i = %zero to %n step %one distributed peeled", two, "distributed over programs"),
        (
            one,
            "%x = lt %i, %two : bool stage(0, 0)\nif %x stage(1, 1) {\nbreak\n} else {\nyield\n}\ncontinue",
            "left early",
        ),
    ];
    for (looped, body, expected) in cases {
        let message = refused_of(looped, body);
        assert!(message.contains(expected), "{message}\n{looped}\n{body}");
    }
}

//! The verifier alone: it refuses every wrong mutant, and accepts every harmless one.

use crate::kinds::{Fate, Kind, all};
use crate::sources::{self, Source};
use crate::text::Text;
use titan_core::verify::verify;
use titan_sim::engine::Rng;

/// The mutants of a kind, of the text of one source.
pub(crate) fn mutants(kind: &Kind, source: &Source, text: &Text) -> Vec<Text> {
    candidates(kind, source, text).into_iter().filter(|m| is_mutant(source, m)).collect()
}

fn candidates(kind: &Kind, source: &Source, text: &Text) -> Vec<Text> {
    if kind.level == source.level { (kind.edit)(text) } else { Vec::new() }
}

/// Whether a changed text is that of another kernel.
fn is_mutant(source: &Source, changed: &Text) -> bool {
    changed.kernel().is_some_and(|kernel| kernel != source.kernel)
}

/// In how many sources the quick depth looks for mutants of a kind, if it has found one.
const MOST_SOURCES: usize = 40;

/// The mutants of a kind, the `number`-th, of these texts; in the quick depth only so many, of different sources. For each kind the sources
/// are taken in another order.
pub(crate) fn chosen<'a>(
    (number, kind): (usize, &Kind),
    texts: &[(&'a Source, &'a Text)],
    quick: usize,
) -> Vec<(Text, &'a Source)> {
    if test_depth::is_full() {
        let of = |(source, text): &(&'a Source, &Text)| {
            let source = *source;
            mutants(kind, source, text).into_iter().map(move |mutant| (mutant, source))
        };
        return texts.iter().flat_map(of).collect();
    }
    let (mut rng, mut texts) = (Rng::new(number as u64), texts.to_vec());
    for i in (1..texts.len()).rev() {
        texts.swap(i, rng.below(i + 1));
    }
    let mut found = Vec::new();
    for (tried, (source, text)) in texts.into_iter().filter(|(source, _)| source.level == kind.level).enumerate() {
        if found.len() == quick || !found.is_empty() && tried > MOST_SOURCES {
            break;
        }
        let mut changed = candidates(kind, source, text);
        let first = rng.below(changed.len());
        changed.rotate_left(first);
        found.extend(changed.into_iter().find(|text| is_mutant(source, text)).map(|mutant| (mutant, source)));
    }
    found
}

#[test]
fn the_verifier_knows_right_from_wrong() {
    let sources = sources::all();
    assert!(sources.len() > 150, "{} sources", sources.len());
    let texts: Vec<(&Source, &Text)> = sources.iter().map(|source| (source, &source.text)).collect();
    let (mut wrong, mut all_mutants) = (Vec::new(), 0);
    for (number, kind) in all().into_iter().enumerate() {
        let mutants = chosen((number, &kind), &texts, 5);
        let n = mutants.len();
        for (mutant, source) in mutants {
            let Some(kernel) = mutant.kernel() else { continue };
            let refused = verify(kernel).is_err();
            if refused != (kind.fate != Fate::Same) {
                wrong.push(format!(
                    "{}: {} ({})\n{}",
                    kind.name,
                    if refused { "refused" } else { "accepted" },
                    source.name,
                    mutant.0.join("\n")
                ));
            }
        }
        if n == 0 {
            wrong.push(format!("{}: there is no such mutant", kind.name));
        }
        all_mutants += n;
    }
    let count = |wanted: fn(&Kind) -> bool| all().iter().filter(|k| wanted(k)).count();
    assert!(
        count(|k| k.surface) >= 45 && count(|k| k.fate == Fate::Wrong) >= 90 && count(|k| k.fate == Fate::Same) >= 10
    );
    assert!(
        wrong.is_empty(),
        "{} of {all_mutants}:\n{}",
        wrong.len(),
        wrong.iter().take(400).cloned().collect::<Vec<_>>().join("\n\n")
    );
}

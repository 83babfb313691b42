//! The verifier alone: it refuses every wrong mutant, and accepts every harmless one.

use crate::kinds::{Fate, Kind, all};
use crate::sources::{self, Source};
use crate::text::Text;
use titan_core::verify::verify;

/// The mutants of a kind, of the text of one source.
pub(crate) fn mutants(kind: &Kind, source: &Source, text: &Text) -> Vec<Text> {
    if kind.level != source.level {
        return Vec::new();
    }
    (kind.edit)(text).into_iter().filter(|m| m.kernel().is_some_and(|k| k != source.kernel)).collect()
}

#[test]
fn the_verifier_knows_right_from_wrong() {
    let sources = sources::all();
    assert!(sources.len() > 150, "{} sources", sources.len());
    let (mut wrong, mut all_mutants) = (Vec::new(), 0);
    for kind in all() {
        let mut n = 0;
        for source in &sources {
            for mutant in mutants(&kind, source, &source.text) {
                n += 1;
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

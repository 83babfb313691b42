//! Suggestions for misspelled names.

/// The most similar of the known names, if one is similar enough.
#[must_use]
pub fn closest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = wanted.chars().count().min(64) / 3;
    known
        .into_iter()
        .filter(|name| name.len().abs_diff(wanted.len()) <= 2 && *name != wanted)
        .map(|name| (distance(wanted, name), name))
        .filter(|(d, _)| *d <= limit.clamp(1, 2))
        .min()
        .map(|(_, name)| name)
}

/// The number of characters that must be inserted, removed or replaced.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

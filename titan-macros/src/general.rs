//! Help that is the same in every instance of a kernel but for the values of generic parameters: these are replaced by their names.

use titan_core::ir::InstanceArg;

/// A text in each of several instances, with their generic arguments.
pub(crate) type Samples<'a> = Vec<(&'a str, &'a [InstanceArg])>;

/// The text that has these samples. `None` if they differ in more than the values of generic parameters.
pub(crate) fn general(samples: &Samples<'_>) -> Option<String> {
    let words: Vec<Vec<&str>> = samples.iter().map(|(text, _)| words(text)).collect();
    let first = words.first()?;
    if words.iter().any(|w| w.len() != first.len()) {
        return None;
    }
    let mut text = String::new();
    for (i, word) in first.iter().enumerate() {
        if words.iter().all(|w| w[i] == *word) {
            text.push_str(word);
            continue;
        }
        let is_value = |n: &usize| samples.iter().zip(&words).all(|((_, args), w)| args[*n].value == w[i]);
        let args = samples.first().map_or(&[][..], |(_, args)| args);
        text.push_str(&args[(0..args.len()).find(is_value)?].name);
    }
    Some(text)
}

/// The parts of a text: words, which may be numbers, and what is between them.
fn words(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut rest, mut out) = (text, Vec::new());
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_word(c) != is_word(first)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        out.push(word);
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(values: [&str; 2]) -> Vec<InstanceArg> {
        let arg = |(name, value): (&str, &str)| InstanceArg { name: name.to_owned(), value: value.to_owned() };
        ["BM", "BN"].into_iter().zip(values).map(arg).collect()
    }

    #[test]
    fn values_become_names_where_all_instances_agree() {
        let [a, b] = [args(["64", "64"]), args(["64", "128"])];
        let of = |x, y| general(&vec![(x, &a[..]), (y, &b[..])]);
        assert_eq!(of("cdiv(N, 64) 64", "cdiv(N, 128) 64").as_deref(), Some("cdiv(N, BN) 64"));
        assert_eq!(of("cdiv(N, 32)", "cdiv(N, 64)"), None, "no parameter has these values");
        assert_eq!(of("N", "cdiv(N, 64)"), None);
    }
}

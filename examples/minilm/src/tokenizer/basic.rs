//! Text to words, as uncased BERT models want them.
//!
//! 1. Control, format and private-use characters, NUL and U+FFFD are dropped; white space becomes a space.
//! 2. CJK ideographs become words of their own.
//! 3. Accents are stripped: canonical decomposition, then nonspacing marks dropped.
//! 4. Lower case, character by character.
//! 5. Words end at white space, and every punctuation character is a word of its own.

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// The words of a text, in order.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for c in normalise(text).chars() {
        if c.is_whitespace() || is_punctuation(c) {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            if !c.is_whitespace() {
                words.push(c.to_string());
            }
        } else {
            word.push(c);
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn normalise(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_dropped(*c)) {
        if is_cjk(c) {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(if c.is_whitespace() { ' ' } else { c });
        }
    }
    let is_mark = |c: &char| c.general_category() == GeneralCategory::NonspacingMark;
    spaced.nfd().filter(|c| !is_mark(c)).flat_map(char::to_lowercase).collect()
}

fn is_dropped(c: char) -> bool {
    if matches!(c, '\t' | '\n' | '\r') {
        return false;
    }
    let dropped = [GeneralCategory::Control, GeneralCategory::Format, GeneralCategory::PrivateUse];
    c == '\u{fffd}' || dropped.contains(&c.general_category())
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || c.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// The blocks of CJK ideographs; kana and hangul are written with word-like runs and stay together.
///
/// `2b920` is the reference tokenizer's own number, where Unicode has `2b820`.
fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x4e00..=0x9fff | 0x3400..=0x4dbf | 0x20000..=0x2a6df | 0x2a700..=0x2b73f | 0x2b740..=0x2b81f
        | 0x2b920..=0x2ceaf | 0xf900..=0xfaff | 0x2f800..=0x2fa1f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_spaces_and_punctuation() {
        let cases: [(&str, &[&str]); 6] = [
            ("", &[]),
            (" Hello,\tWorld! ", &["hello", ",", "world", "!"]),
            ("Ångström naïve", &["angstrom", "naive"]),
            ("日本go", &["日", "本", "go"]),
            ("a\u{0}b\u{200b}c\u{fffd}d", &["abcd"]),
            ("$5+«x»", &["$", "5", "+", "«", "x", "»"]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text), expected, "{text:?}");
        }
    }
}

//! Where an item stands. A macro sees only its own tokens, and a kernel in an `impl` would become items that cannot stand there,
//! with an error for each: so the file is read, and the braces around the item are counted.
//!
//! What is not found (a file that cannot be read, an item that another macro made) is left to rustc. Items at the start of a
//! line stand in nothing, and need no look.

use crate::env;
use proc_macro2::Span;

/// `impl` or `trait`, if the item at this place stands in one.
pub(crate) fn inside(item: Span) -> Option<&'static str> {
    let start = item.start();
    if start.column == 0 {
        return None;
    }
    let text = env::source(&item.local_file()?)?;
    let offset: usize = text.split_inclusive('\n').take(start.line.checked_sub(1)?).map(str::len).sum();
    let line = text.get(offset..)?;
    let column = line.char_indices().nth(start.column).map(|(at, _)| at)?;
    let before = text.get(..offset + column)?;
    if before.contains("impl") || before.contains("trait") { enclosing(before) } else { None }
}

/// What the innermost brace that is open at the end of a text belongs to.
fn enclosing(text: &str) -> Option<&'static str> {
    let mut open: Vec<Option<&'static str>> = Vec::new();
    let mut head = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let n = skipped(rest);
        if n > 0 {
            rest = rest.get(n..)?;
            head.push(' ');
            continue;
        }
        match c {
            '{' => {
                open.push(item_of(&head));
                head.clear();
            }
            '}' => {
                open.pop();
                head.clear();
            }
            // `[u8; 2]` ends nothing.
            ';' if head.matches(['(', '[']).count() == head.matches([')', ']']).count() => head.clear(),
            _ => head.push(c),
        }
        rest = rest.get(c.len_utf8()..)?;
    }
    open.pop().flatten()
}

/// `impl` or `trait`, if the tokens before a brace begin such an item.
fn item_of(head: &str) -> Option<&'static str> {
    let mut rest = head.trim_start();
    // Attributes come first.
    while let Some(attribute) = rest.strip_prefix('#') {
        let mut depth = 0usize;
        let end = attribute.char_indices().find_map(|(at, c)| {
            match c {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            (c == ']' && depth == 0).then_some(at + 1)
        })?;
        rest = attribute.get(end..)?.trim_start();
    }
    if !rest.starts_with(char::is_alphabetic) {
        return None;
    }
    let modifier = |w: &str| matches!(w, "pub" | "unsafe" | "default" | "const" | "auto");
    let mut words = rest.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '#').filter(|w| !w.is_empty());
    match words.find(|w| !modifier(w) && !matches!(*w, "crate" | "super" | "self"))? {
        "impl" => Some("impl"),
        "trait" => Some("trait"),
        _ => None,
    }
}

/// The length of the comment or literal at the start of a text; 0 if there is none.
fn skipped(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    let prefix = text.len() - text.trim_start_matches(['b', 'c', 'r']).len();
    let after = text.get(prefix..).unwrap_or_default();
    let hashes = after.len() - after.trim_start_matches('#').len();
    if prefix <= 2
        && text.get(..prefix).is_some_and(|p| p.ends_with('r'))
        && after.get(hashes..).is_some_and(|t| t.starts_with('"'))
    {
        let close = format!("\"{}", "#".repeat(hashes));
        let from = prefix + hashes + 1;
        return text.get(from..).and_then(|t| t.find(&close)).map_or(text.len(), |at| from + at + close.len());
    }
    match text.chars().next() {
        Some('"') => quoted(text, '"'),
        Some('\'') => character(text),
        _ => 0,
    }
}

/// Comments nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(rest) = text.get(at..).filter(|t| !t.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// A literal between quotes, with escapes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// A character; a lifetime is none.
fn character(text: &str) -> usize {
    let mut chars = text.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => quoted(text, '\''),
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::enclosing;

    #[test]
    fn braces_belong_to_items() {
        let inside = [
            ("impl Net { ", Some("impl")),
            (
                "#[allow(dead_code)] unsafe impl<'a, T: Into<[u8; 2]>> Net for &'a T where T: Copy { fn f() {} ",
                Some("impl"),
            ),
            ("pub(crate) trait Net: Sized { ", Some("trait")),
            ("impl Net { fn f() { ", None),
            ("impl Net {} ", None),
            ("mod m { impl Net { } ", None),
            ("mod m { impl Net { const A: u8 = b'{'; const B: &str = r#\"}\"#; ", Some("impl")),
            (
                "impl Net { // }\n /* } /* } */ } */ const A: char = '}'; const B: char = '\\''; const C: &str = \"}\\\"}\"; ",
                Some("impl"),
            ),
            ("fn f() -> impl Fn() { ", None),
            ("fn f<'impl>(x: &'a str) { ", None),
            ("struct Net { ", None),
            ("macro_rules! m { (impl) => { ", None),
            ("fn r#impl() { ", None),
            ("", None),
            ("} } } \u{1F980}", None),
        ];
        for (text, want) in inside {
            assert_eq!(enclosing(text), want, "{text}");
        }
    }
}

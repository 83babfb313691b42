//! Mistakes: changes of a file's text, each with the errors that it must cause.
//!
//! They are written after the kernels of a file, which must be accepted without them:
//!
//! ```text
//! ; mistake: a wait for the wrong parity
//! ; < ttg.nv.mbarrier.wait_parity %24, %25
//! ; > ttg.nv.mbarrier.wait_parity %24, %15
//! ; error[T0712]: waits for
//! ```
//!
//! `; <` states a line, which must occur exactly once, and `; >` the lines that replace it; without these, the line is removed. Of several
//! equal lines, `; < (1 of 2) ..` selects the first. An error is expected on the line that was changed first; ``; error[T0712] at
//! `ttg.claim.ready`: ..`` expects it on the line that contains this text instead, and `; error[T0712] at kernel: ..` on the line of the
//! first kernel.
//!
//! Deliberately absent: changes of several places by one pair, and changes that need not cause an error.

use super::expect::{Expected, compare_with};
use super::verify_errors;

/// The line that begins a mistake.
const MISTAKE: &str = "; mistake: ";

/// Splits a text into the file without its mistakes, and the mistakes.
fn split(text: &str) -> (&str, Vec<&str>) {
    let first = if text.starts_with(MISTAKE) { Some(0) } else { text.find(&format!("\n{MISTAKE}")).map(|at| at + 1) };
    let Some(first) = first else { return (text, Vec::new()) };
    let (base, rest) = text.split_at(first);
    (base, rest.split(MISTAKE).filter(|part| !part.is_empty()).collect())
}

/// The text without its mistakes, which must be accepted.
pub(crate) fn base(text: &str) -> &str {
    split(text).0
}

/// The number of mistakes of a file.
pub(crate) fn count(text: &str) -> usize {
    split(text).1.len()
}

/// Applies the mistakes of a file. Returns a message for each failure.
pub(crate) fn check(name: &str, text: &str) -> Vec<String> {
    let (base, parts) = split(text);
    let mut failures = Vec::new();
    for part in parts {
        let change = match Change::of(base, part) {
            Ok(change) => change,
            Err(why) => {
                failures.push(format!("{name}: {why}"));
                continue;
            }
        };
        let what = format!("{name}, {}", change.name);
        match change.expected(part) {
            Ok(expected) if expected.is_empty() => failures.push(format!("{what}: no error is expected")),
            Ok(expected) => failures.extend(compare_with(&what, expected, &verify_errors(&change.text))),
            Err(why) => failures.push(format!("{what}: {why}")),
        }
    }
    failures
}

/// A mistake that has been applied.
struct Change {
    name: String,
    text: String,
    /// The number of the first changed line.
    line: u32,
}

impl Change {
    fn of(base: &str, part: &str) -> Result<Change, String> {
        let name = part.lines().next().unwrap_or_default().trim().to_owned();
        let mut edits: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in part.lines().skip(1) {
            if let Some(old) = line.strip_prefix("; < ") {
                edits.push((old.trim(), Vec::new()));
            } else if let (Some(new), Some((_, by))) = (line.strip_prefix("; > "), edits.last_mut()) {
                by.push(new.trim());
            }
        }
        let lines: Vec<&str> = base.lines().collect();
        let mut at = Vec::new();
        for (old, _) in &edits {
            let (which, all, old) = one_of(old).unwrap_or((1, 1, old));
            let found: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].trim() == old).collect();
            match found.get(which.wrapping_sub(1)) {
                Some(one) if found.len() == all => at.push(*one),
                _ => return Err(format!("{name}: `{old}` occurs {} times", found.len())),
            }
        }
        let Some(first) = at.iter().min().copied() else { return Err(format!("{name}: nothing is changed")) };
        let mut text = String::new();
        for (i, line) in lines.iter().enumerate() {
            match at.iter().position(|changed| *changed == i) {
                None => text.push_str(line),
                Some(edit) => text.push_str(&edits[edit].1.join("\n")),
            }
            text.push('\n');
        }
        Ok(Change { name, text, line: number(first) })
    }

    /// The errors that the mistake must cause.
    fn expected<'a>(&self, part: &'a str) -> Result<Vec<Expected<'a>>, String> {
        let mut expected: Vec<Expected<'a>> = Vec::new();
        for line in part.lines() {
            if let Some((code, rest)) = line.strip_prefix("; error[").and_then(|rest| rest.split_once(']')) {
                let (line, text) = match rest.strip_prefix(" at kernel: ") {
                    Some(text) => (self.line_with("kernel @")?, text),
                    None => match rest.strip_prefix(" at `").and_then(|rest| rest.split_once("`: ")) {
                        Some((what, text)) => (self.line_with(what)?, text),
                        None => (
                            self.line,
                            rest.strip_prefix(": ").ok_or("`; error[T0712]: ..` or ``; error[T0712] at `..`: ..``")?,
                        ),
                    },
                };
                expected.push(Expected::new(line, code, text.trim_end()));
            } else if let (Some(help), Some(last)) = (line.strip_prefix("; help: "), expected.last_mut()) {
                last.help(help.trim_end());
            } else if let (Some(note), Some(last)) = (line.strip_prefix("; note: "), expected.last_mut()) {
                last.note(note.trim_end());
            }
        }
        Ok(expected)
    }

    fn line_with(&self, what: &str) -> Result<u32, String> {
        let found = self.text.lines().position(|line| line.contains(what));
        found.map(number).ok_or_else(|| format!("no line contains `{what}`"))
    }
}

/// The position of a line among equal lines, their number, and the line.
fn one_of(line: &str) -> Option<(usize, usize, &str)> {
    let (count, line) = line.strip_prefix('(')?.split_once(") ")?;
    let (which, all) = count.split_once(" of ")?;
    Some((which.parse().ok()?, all.parse().ok()?, line))
}

/// The number of a line, from its index.
fn number(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}

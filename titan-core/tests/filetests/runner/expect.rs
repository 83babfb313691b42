//! Compares expected errors, written as comments, with the errors found.

use titan_core::diag::Diagnostic;
use titan_core::text::TextPos;

/// An error that a file expects.
pub(crate) struct Expected<'a> {
    line: u32,
    code: &'a str,
    text: &'a str,
    helps: Vec<&'a str>,
    notes: Vec<&'a str>,
}

impl<'a> Expected<'a> {
    pub(crate) const fn new(line: u32, code: &'a str, text: &'a str) -> Self {
        Expected { line, code, text, helps: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn help(&mut self, text: &'a str) {
        self.helps.push(text);
    }

    pub(crate) fn note(&mut self, text: &'a str) {
        self.notes.push(text);
    }

    fn matches(&self, found: &Diagnostic<TextPos>) -> bool {
        self.line == found.site.line
            && self.code == found.code.number()
            && found.title.contains(self.text)
            && self.helps.iter().all(|text| found.help.iter().any(|h| h.contains(text)))
            && self.notes.iter().all(|text| found.related.iter().any(|(_, what)| what.contains(text)))
    }
}

/// The errors that a text expects, in order.
fn expectations(text: &str) -> Vec<Expected<'_>> {
    let mut expected: Vec<Expected<'_>> = Vec::new();
    let mut code_line = 1;
    for (i, line) in text.lines().enumerate() {
        if !line.trim_start().starts_with(';') {
            code_line = u32::try_from(i + 1).unwrap_or(u32::MAX);
        }
        for part in line.split("; ").skip(1) {
            let part = part.trim_end();
            if let Some((code, text)) = part.strip_prefix("error[").and_then(|rest| rest.split_once("]: ")) {
                expected.push(Expected::new(code_line, code, text));
            } else if let (Some(help), Some(last)) = (part.strip_prefix("help: "), expected.last_mut()) {
                last.help(help);
            } else if let (Some(note), Some(last)) = (part.strip_prefix("note: "), expected.last_mut()) {
                last.note(note);
            }
        }
    }
    expected
}

/// The lines on which a text expects errors.
pub(crate) fn lines(text: &str) -> Vec<u32> {
    expectations(text).iter().map(|e| e.line).collect()
}

/// The failures: one message for each error that is expected and not found, or found and not expected.
pub(crate) fn compare(name: &str, text: &str, found: &[Diagnostic<TextPos>]) -> Vec<String> {
    compare_with(name, expectations(text), found)
}

/// The same for these expected errors.
pub(crate) fn compare_with(name: &str, expected: Vec<Expected<'_>>, found: &[Diagnostic<TextPos>]) -> Vec<String> {
    let mut unexpected: Vec<&Diagnostic<TextPos>> = found.iter().collect();
    let mut failures = Vec::new();
    for e in expected {
        match unexpected.iter().position(|f| e.matches(f)) {
            Some(i) => drop(unexpected.remove(i)),
            None => {
                let helps = e.helps.iter().map(|h| format!("\n  help: {h}"));
                let more: String = helps.chain(e.notes.iter().map(|n| format!("\n  note: {n}"))).collect();
                failures.push(format!("{name}:{}: expected, but not found: [{}] {}{more}", e.line, e.code, e.text));
            }
        }
    }
    for f in unexpected {
        let notes: String = f.related.iter().map(|(at, what)| format!("\n  note: {at}: {what}")).collect();
        failures.push(format!("{name}:{}: found, but not expected: {}{notes}", f.site, f.text()));
    }
    failures
}

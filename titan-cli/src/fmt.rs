//! `titan fmt`: the canonical text of a file, on stdout.
//!
//! The comments at the top are kept. The file itself is not overwritten, because comments inside kernels, which are not part of
//! the IR, would be lost.

use crate::Outcome;
use crate::source::Source;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use titan_core::text::{parse, print};

/// Prints the kernels of a file.
pub(crate) fn run(path: &Path, kernel: Option<&str>, out: &mut dyn Write) -> io::Result<Outcome> {
    let source = Source::read(path, kernel)?;
    let (kernels, unreadable) = source.kernels()?;
    if !unreadable.is_empty() {
        // The output on stdout is tile IR.
        return crate::check::say(&source, &[], false, &mut io::stderr(), io::stderr().is_terminal());
    }
    // Parsed without their places in this text, which would not be those of the text that is printed.
    let parsed = parse(&source.text).unwrap_or_default();
    let selected = parsed.iter().filter(|one| kernels.iter().any(|other| other.kernel.sig == one.sig));
    let texts: Vec<String> = selected.map(print).collect();
    write!(out, "{}{}", header(&source.text), texts.join("\n"))?;
    Ok(Outcome::Clean)
}

/// The comments and empty lines before the first kernel, with the line ends of the text behind them.
fn header(text: &str) -> String {
    let code = |line: &&str| !(line.trim().is_empty() || line.trim_start().starts_with(';'));
    let length: usize = text.split_inclusive('\n').take_while(|l| !code(l)).map(str::len).sum();
    text[..length].replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_windows_gets_the_same_text() {
        const TEXT: &str = include_str!("../tests/files/gemm.tir");
        let canonical = |text: &str| {
            let kernels = parse(text).expect("tile IR");
            (header(text), kernels.iter().map(print).collect::<String>())
        };
        assert!(!header(TEXT).is_empty());
        assert_eq!(canonical(&TEXT.replace('\n', "\r\n")), canonical(TEXT));
    }
}

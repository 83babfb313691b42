//! `titan explain`: the page of an error code, or its entry in the registry; or what is compiled for a kernel, and why.

use crate::{Outcome, choices};
use std::io::{self, Write};
use std::path::Path;
use titan_core::diag::{Code, Reporter};

/// The pages of `docs/errors`, by code.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Explains a code, or the kernels of a file; without either, lists all codes.
pub(crate) fn run(
    asked: Option<&str>,
    kernel: Option<&str>,
    targets: &[String],
    out: &mut dyn Write,
) -> io::Result<Outcome> {
    let Some(asked) = asked else {
        for code in Code::ALL {
            writeln!(out, "{code}  {}", code.title())?;
        }
        return Ok(Outcome::Clean);
    };
    let number = asked.trim_matches(['[', ']']).to_uppercase();
    let path = Path::new(asked);
    let is_code = Code::ALL.iter().any(|code| code.number() == number);
    if asked == "-" || path.extension().is_some_and(|e| e == "tir") || (!is_code && path.is_file()) {
        return choices::run(path, kernel, targets, out);
    }
    let Some(code) = Code::ALL.iter().copied().find(|c| c.number() == number) else {
        return Err(io::Error::other(format!("there is no code `{asked}`; `titan explain` lists all")));
    };
    match PAGES.iter().find(|(n, _)| *n == number) {
        Some((_, page)) => write!(out, "{page}")?,
        None => writeln!(out, "{}", summary(code))?,
    }
    Ok(Outcome::Clean)
}

/// The entry in the registry.
fn summary(code: Code) -> String {
    let reporter = match code.reporter() {
        Reporter::Rustc => {
            "Reported by rustc, which checks the kernel's body as ordinary Rust with the types of `titan::lang`."
        }
        Reporter::TitanInKernels => {
            "Reported by `#[titan::kernel]` in the body of a kernel, and by rustc in the body of a device function."
        }
        Reporter::Titan => "Reported by `#[titan::kernel]` while it compiles the kernel, or by `titan check`.",
    };
    format!("{code}: {}\n\n{reporter}", code.title())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_that_of_a_code() {
        for (number, page) in PAGES {
            assert!(Code::ALL.iter().any(|c| c.number() == *number), "docs/errors/{number}.md has no code");
            assert!(page.contains(number), "docs/errors/{number}.md names its code");
        }
    }

    #[test]
    fn every_code_has_a_summary() {
        for code in Code::ALL {
            assert!(summary(*code).starts_with(&format!("{code}: ")));
        }
    }
}

//! The test `fence`: comments at the end of a file state the kernels after the fence pass, and its report.
//!
//! Comments at the top may state the options of the pass: `; mode tilelang`, `; remove unneeded`, `; no handshake`, and for opaque calls
//! `; call "name" generic`. The test also checks that a second run changes nothing.

use super::Report;
use std::fmt::Write;
use titan_core::collections::SortedSet;
use titan_core::ir::{CallProxy, Kernel};
use titan_core::pipeline::fence::{Mode, Options, fence};
use titan_core::text::{parse, print};
use titan_core::verify::verify;

/// The line that separates the kernels from the result of the pass.
const AFTER: &str = "; after the pass:\n";

fn options(header: &str) -> Options {
    let mut options = Options::default();
    for line in header.lines() {
        match line {
            "; mode tilelang" => options.mode = Mode::Tilelang,
            "; remove unneeded" => options.remove_unneeded = true,
            "; no handshake" => options.handshake = false,
            _ => {}
        }
        let call = line.strip_prefix("; call \"").and_then(|rest| rest.split_once("\" "));
        if let Some((name, proxy)) = call.and_then(|(name, word)| Some((name, CallProxy::from_name(word.trim())?))) {
            options.calls.insert(name.to_owned(), proxy);
        }
    }
    options
}

/// The result of the verifier, as codes.
fn verdict(kernel: &Kernel) -> String {
    match verify(kernel.clone()) {
        Ok(_) => "accepted".to_owned(),
        Err(errors) => {
            let codes: SortedSet<&str> = errors.iter().map(|e| e.code.number()).collect();
            format!("rejected: {}", codes.into_iter().collect::<Vec<_>>().join(", "))
        }
    }
}

fn comment(out: &mut String, text: &str) {
    for line in text.lines() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, ";{}{line}", if line.is_empty() { "" } else { " " });
    }
}

/// Compares the comments at the end of a file with the result of the pass.
pub(crate) fn check(name: &str, text: &str, header: &str, report: &mut Report) {
    let input = text.split_once(AFTER).map_or(text, |(input, _)| input);
    let kernels = match parse(input) {
        Ok(kernels) => kernels,
        Err(errors) => {
            report.failures.extend(errors.iter().map(|e| format!("{name}:{}: {}", e.site, e.text())));
            return;
        }
    };
    let options = options(header);
    let mut wanted = format!("{}\n\n{AFTER}", input.trim_end());
    for kernel in &kernels {
        let fenced = fence(kernel, &options);
        let again = fence(&fenced.kernel, &options);
        if again.kernel != fenced.kernel.canonical() && again.kernel != fenced.kernel {
            report.failures.push(format!("{name}: @{}: a second run changes it", kernel.sig.name));
        }
        let (before, after) = (verdict(kernel), verdict(&fenced.kernel));
        wanted.push_str(";\n");
        comment(&mut wanted, &format!("@{}: {before}, then {after}", kernel.sig.name));
        comment(&mut wanted, &fenced.report.to_string());
        comment(&mut wanted, &print(&fenced.kernel));
    }
    if wanted != text {
        report
            .failures
            .push(format!("{name}: not what the pass gives (TITAN_BLESS=1 rewrites it), which is\n{wanted}"));
        report.blessed = Some(wanted);
    }
}

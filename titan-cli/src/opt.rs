//! `titan opt`: runs passes on the kernels of a file, one after the other; the result goes to stdout, the changes are reported on stderr.

use crate::check::{Fitting, fitting};
use crate::report::{Report, Verdict};
use crate::source::Source;
use crate::{Outcome, cli};
use clap::ArgMatches;
use serde_json::Map;
use std::io::{self, IsTerminal as _, Write};
use titan_core::driver::passes::{self, Options};
use titan_core::ir::{CallProxy, Loc};
use titan_core::pipeline::fence;
use titan_core::text::print;

/// Runs passes and prints the kernels.
pub(crate) fn run(matches: &ArgMatches, out: &mut dyn Write) -> io::Result<Outcome> {
    let path = cli::file(matches);
    let names: Vec<&str> = matches.get_many::<String>("passes").into_iter().flatten().map(String::as_str).collect();
    let options = options(matches)?;
    for name in &names {
        passes::pass(name).map_err(io::Error::other)?;
    }
    let source = Source::read(path, cli::kernel(matches))?;
    let (located, unreadable) = source.kernels()?;
    let (kernels, unfitting) = fitting(located);
    let findings = [unreadable, unfitting].concat();
    if !findings.is_empty() {
        let (verdict, more) = (Verdict::Findings, Map::new());
        // The output on stdout is tile IR.
        return Report { command: "opt", path, text: &source.text, kernels: Vec::new(), verdict, findings, more }
            .snippets(&mut io::stderr(), io::stderr().is_terminal());
    }
    let mut printed = Vec::new();
    for Fitting { kernel, .. } in kernels {
        let kernel = kernel.into_kernel();
        let name = kernel.sig.full_name();
        let mut passed = passes::run(kernel, &names, &options)
            .map_err(|e| io::Error::other(format!("{}: kernel `{name}`: {e}", path.display())))?;
        for note in &passed.notes {
            writeln!(io::stderr(), "`{name}`: {note}")?;
        }
        // Places in the input are not valid in the output.
        passed.kernel.ops.iter_mut().for_each(|op| op.loc = Loc::default());
        passed.kernel.pipes.iter_mut().for_each(|pipe| pipe.loc = Loc::default());
        printed.push(print(&passed.kernel));
    }
    write!(out, "{}", printed.join("\n"))?;
    Ok(Outcome::Clean)
}

/// The options of the passes.
fn options(matches: &ArgMatches) -> io::Result<Options> {
    let mut fence =
        fence::Options { remove_unneeded: matches.get_flag("remove-unneeded"), ..fence::Options::default() };
    for word in matches.get_many::<String>("call").into_iter().flatten() {
        let known = || CallProxy::ALL.iter().map(|p| format!("`{p}`")).collect::<Vec<_>>().join(", ");
        let wrong =
            || io::Error::other(format!("`--call {word}` is not NAME=PROXY, where PROXY is one of {}", known()));
        let (name, proxy) = word.split_once('=').ok_or_else(wrong)?;
        let proxy = *CallProxy::ALL.iter().find(|p| p.to_string() == proxy.trim()).ok_or_else(wrong)?;
        fence.calls.insert(name.trim().to_owned(), proxy);
    }
    let target = matches.get_one::<String>("target").map_or("", String::as_str);
    let target = crate::machine::Machine::from_name(target)?.backend().target();
    Ok(Options { fence, target })
}

/// The list of passes for the help text.
pub(crate) fn listed() -> String {
    passes::PASSES.iter().fold("The passes:\n".to_owned(), |text, p| format!("{text}  {:15} {}\n", p.name, p.about))
}

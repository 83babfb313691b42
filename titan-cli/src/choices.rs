//! `titan explain KERNEL.tir`: the variants of every kernel of a file, by target: their assumptions, the choices of the compiler, and the
//! reasons why there are none.

use crate::Outcome;
use crate::check::in_text;
use crate::machine::Machine;
use crate::report::{Report, Verdict};
use crate::source::Source;
use serde_json::Map;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use titan_core::artifact::Variant;
use titan_core::diag::counted;
use titan_core::driver::{Compiled, explained};
use titan_core::ir::Signature;
use titan_core::text::Located;
use titan_core::verify::{Verified, verify};

/// Explains every kernel for these targets; errors go to stderr.
pub(crate) fn run(path: &Path, wanted: Option<&str>, targets: &[String], out: &mut dyn Write) -> io::Result<Outcome> {
    let source = Source::read(path, wanted)?;
    let (located, mut findings) = source.kernels()?;
    for Located { kernel, at } in located {
        let name = kernel.sig.full_name();
        match verify(kernel) {
            Ok(kernel) => {
                writeln!(out, "kernel `{}`", kernel.sig.full_name())?;
                for target in targets {
                    explain(&kernel, Machine::from_name(target)?, out)?;
                }
            }
            Err(errors) => findings.extend(errors.into_iter().map(|e| in_text(&name, &at, e))),
        }
    }
    if findings.is_empty() {
        return Ok(Outcome::Clean);
    }
    let (verdict, more) = (Verdict::Findings, Map::new());
    Report { command: "explain", path, text: &source.text, kernels: Vec::new(), verdict, findings, more }
        .snippets(&mut io::stderr(), io::stderr().is_terminal())
}

/// The registers of a variant, if the compiler has assigned them: those of AMD's GPUs.
fn registers(variant: &Variant) -> String {
    let number = |asked: &str| variant.config.iter().find(|(name, _)| name == asked).map(|(_, value)| value.as_str());
    match ["vgprs", "agprs", "sgprs", "scratch"].map(number) {
        [Some(vector), Some(accumulation), Some(scalar), Some(scratch)] => {
            format!(
                ", {}, {}, {}, {} of scratch",
                counted(vector, "VGPR"),
                counted(accumulation, "AGPR"),
                counted(scalar, "SGPR"),
                counted(scratch, "byte")
            )
        }
        _ => String::new(),
    }
}

/// The variants of a kernel for a machine, or the reason why there are none.
fn explain(kernel: &Verified, machine: Machine, out: &mut dyn Write) -> io::Result<()> {
    let (target, machine) = (machine.name(), machine.backend());
    let Compiled { variants, not_in_bulk } = match explained(kernel, machine, None) {
        Ok(compiled) => compiled,
        Err(refused) => {
            writeln!(out, "  {target}: refused: {}", refused.message)?;
            return Ok(());
        }
    };
    if variants.is_empty() {
        writeln!(out, "  {target}: none; its code would be that for older GPUs")?;
        for reason in not_in_bulk {
            writeln!(out, "    - {reason}")?;
        }
    }
    variants.iter().try_for_each(|one| variant(&kernel.sig, one, out))
}

/// A variant: what a program of it needs, when it is launched, and what the compiler notes about it.
pub(crate) fn variant(of: &Signature, variant: &Variant, out: &mut dyn Write) -> io::Result<()> {
    // The CPU device decides about both when it runs the kernel.
    let needs = match (variant.threads, variant.shared_bytes) {
        (0, 0) => String::new(),
        (threads, bytes) => {
            let (threads, bytes) = (counted(threads, "thread"), counted(bytes, "byte"));
            format!(": {threads}, {bytes} of shared memory{}", registers(variant))
        }
    };
    writeln!(out, "  {}{needs}", variant.target)?;
    for assumption in &variant.assumptions {
        writeln!(out, "    if {}", assumption.sentence(of))?;
    }
    for note in &variant.notes {
        writeln!(out, "    - {note}")?;
    }
    for conflict in &variant.conflicts {
        writeln!(out, "    - line {}: {conflict}", conflict.loc.line)?;
    }
    Ok(())
}

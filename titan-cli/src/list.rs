//! `titan list`: the kernels of a program, as `cargo build` embedded them: for each target what a program of the code needs, which arguments it
//! assumes, and what the compiler notes; and why a target has no code. Of a text of tile IR, the names.
//!
//! Deliberately absent: compiling anything, as `titan explain` does: what is listed is what is there.

use crate::source::{Content, Source, is_named, missing, read, tile_ir};
use crate::{Outcome, choices};
use std::io::{self, Write};
use std::path::Path;
use titan_core::artifact::Artifact;
use titan_core::diag::counted;
use titan_core::text::parse;

/// Lists the kernels of a file, or those with this name.
pub(crate) fn run(path: &Path, wanted: Option<&str>, out: &mut dyn Write) -> io::Result<Outcome> {
    let artifacts = match read(path)? {
        Content::Artifacts(artifacts) => artifacts,
        Content::Text(text) => return texts(&Source::of_text(path, text, wanted), out),
    };
    let selected = artifacts.iter().filter(|artifact| is_named(&artifact.kernel, wanted));
    let mut count = 0;
    for artifact in selected {
        one(path, artifact, out)?;
        count += 1;
    }
    if count == 0 {
        let names: Vec<String> = artifacts.iter().map(|artifact| format!("`{}`", artifact.kernel)).collect();
        return Err(missing(path, wanted, &names));
    }
    writeln!(out, "{}: {}", path.display(), counted(count, "kernel"))?;
    Ok(Outcome::Clean)
}

/// The names of the kernels of a text.
fn texts(source: &Source<'_>, out: &mut dyn Write) -> io::Result<Outcome> {
    let (kernels, unreadable) = source.kernels()?;
    if !unreadable.is_empty() {
        return crate::check::say(source, &[], false, out, false);
    }
    for one in &kernels {
        writeln!(out, "{}", one.kernel.sig.full_name())?;
    }
    writeln!(out, "{}: {}", source.path.display(), counted(kernels.len(), "kernel"))?;
    Ok(Outcome::Clean)
}

/// A kernel and its variants, in the order in which a launch tries them.
fn one(path: &Path, artifact: &Artifact, out: &mut dyn Write) -> io::Result<()> {
    let kernel = tile_ir(artifact).and_then(|text| parse(text).ok()?.pop());
    let unreadable = || {
        let (path, name) = (path.display(), &artifact.kernel);
        io::Error::other(format!("{path}: the tile IR of `{name}` cannot be read"))
    };
    let of = kernel.ok_or_else(unreadable)?.sig;
    writeln!(out, "{}", artifact.kernel)?;
    artifact.variants.iter().try_for_each(|variant| choices::variant(&of, variant, out))?;
    for (target, why) in &artifact.refused {
        writeln!(out, "  {target}: no code: {why}")?;
    }
    Ok(())
}

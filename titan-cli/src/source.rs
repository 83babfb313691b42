//! What commands read: tile IR from a text, or from the kernels that are embedded in an executable.
//!
//! `cargo build` embeds the tile IR of every kernel beside its code. So an executable, or a library, stands for a text: its kernels one after the
//! other, each behind a comment with its name.
//!
//! Deliberately absent: formats of executables; [`Artifact::embedded`] finds what TITAN put into any file.

use crate::at;
use crate::check::unreadable;
use crate::report::Finding;
use std::io::{self, Read as _};
use std::path::Path;
use titan_core::artifact::{Artifact, Variant};
use titan_core::text::{Located, parse_located};

/// A text of tile IR, and which of its kernels a command is about.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: String,
    wanted: Option<&'a str>,
}

/// What a file contains.
pub(crate) enum Content {
    Text(String),
    Artifacts(Vec<Artifact>),
}

/// The bytes of a file, or of stdin for `-`; an error contains the path.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    bytes.map_err(|e| at(path, &e))
}

/// The text of a file that contains no kernels, such as a dependence graph.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let not_text = |e| at(path, &io::Error::new(io::ErrorKind::InvalidData, e));
    String::from_utf8(bytes(path)?).map_err(not_text)
}

/// What a file contains: the tile IR itself, or artifacts.
pub(crate) fn read(path: &Path) -> io::Result<Content> {
    // An executable is not UTF-8, and neither is an artifact.
    let bytes = match String::from_utf8(bytes(path)?) {
        Ok(text) => return Ok(Content::Text(text)),
        Err(error) => error.into_bytes(),
    };
    let (artifacts, errors) = Artifact::embedded(&bytes);
    let name = path.display();
    if let Some(error) = errors.first() {
        return Err(io::Error::other(format!("{name}: one of its kernels cannot be read: [{}] {error}", error.code())));
    }
    if artifacts.is_empty() {
        let why = "it is neither a text, nor a program with kernels of TITAN; what the linker removed is not in it";
        return Err(io::Error::other(format!("{name}: {why}")));
    }
    Ok(Content::Artifacts(artifacts))
}

/// The tile IR in an artifact, which the CPU and the simulator run.
pub(crate) fn tile_ir(artifact: &Artifact) -> Option<&str> {
    let of_cpu = |variant: &&Variant| variant.target == "cpu";
    artifact.variants.iter().find(of_cpu).and_then(|variant| std::str::from_utf8(&variant.payload).ok())
}

/// The text that stands for some artifacts.
fn joined(path: &Path, artifacts: &[Artifact]) -> io::Result<String> {
    let mut text = String::new();
    for artifact in artifacts {
        let Some(ir) = tile_ir(artifact) else {
            let (path, name) = (path.display(), &artifact.kernel);
            return Err(io::Error::other(format!("{path}: `{name}` is embedded without its tile IR")));
        };
        text.push_str(&format!("; {}\n{}\n", artifact.kernel, ir.trim_end()));
    }
    Ok(text)
}

impl<'a> Source<'a> {
    /// Reads the kernels of a file, or those with this name: that of an instance, such as `gemm::<f16, 64, 64, 32>`, or `gemm` for all its
    /// instances.
    pub(crate) fn read(path: &'a Path, wanted: Option<&'a str>) -> io::Result<Self> {
        let text = match read(path)? {
            Content::Text(text) => text,
            Content::Artifacts(mut artifacts) => {
                // Only they are parsed: a program may have hundreds.
                if artifacts.iter().any(|artifact| is_named(&artifact.kernel, wanted)) {
                    artifacts.retain(|artifact| is_named(&artifact.kernel, wanted));
                }
                joined(path, &artifacts)?
            }
        };
        Ok(Source { path, text, wanted })
    }

    /// A text that was read already.
    pub(crate) fn of_text(path: &'a Path, text: String, wanted: Option<&'a str>) -> Self {
        Source { path, text, wanted }
    }

    /// The kernels, with their places in the text; or what is wrong with the text.
    ///
    /// # Errors
    /// If there is none, or none with the name that is asked for: this is most likely the wrong file, or a mistyped name.
    pub(crate) fn kernels(&self) -> io::Result<(Vec<Located>, Vec<Finding>)> {
        let mut located = match parse_located(&self.text) {
            Ok(located) => located,
            Err(errors) => return Ok((Vec::new(), unreadable(errors))),
        };
        let path = self.path.display();
        if located.is_empty() {
            return Err(io::Error::other(format!("{path}: the file contains no kernel")));
        }
        let full_name = |one: &Located| one.kernel.sig.full_name();
        if !located.iter().any(|one| is_named(&full_name(one), self.wanted)) {
            let names: Vec<String> = located.iter().map(|one| format!("`{}`", full_name(one))).collect();
            return Err(missing(self.path, self.wanted, &names));
        }
        located.retain(|one| is_named(&full_name(one), self.wanted));
        Ok((located, Vec::new()))
    }
}

/// The error of a name that no kernel has; the names of all are given.
pub(crate) fn missing(path: &Path, wanted: Option<&str>, names: &[String]) -> io::Error {
    let (path, wanted) = (path.display(), wanted.unwrap_or_default());
    io::Error::other(format!("{path}: no kernel `{wanted}`; the kernels are {}", names.join(", ")))
}

/// Whether a kernel has the name that is asked for, with its instance or without; spaces do not count.
pub(crate) fn is_named(name: &str, wanted: Option<&str>) -> bool {
    let Some(wanted) = wanted else { return true };
    let bare = |text: &str| text.replace(char::is_whitespace, "");
    let (name, wanted) = (bare(name), bare(wanted));
    name == wanted || name.split_once("::<").is_some_and(|(kernel, _)| kernel == wanted)
}

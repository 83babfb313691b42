//! The cases: the files of `ui/`, and the messages that are stored beside them.

use super::library::workspace;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A program with a mistake.
#[derive(Debug)]
pub(crate) struct Case {
    source: PathBuf,
    /// The path that rustc is given, relative to the workspace if the file is in it.
    pub(crate) given: PathBuf,
    /// The path in the messages of rustc, which is told that `ui-tests/ui` is `ui`.
    pub(crate) shown: String,
}

impl Case {
    pub(crate) fn new(source: PathBuf) -> Case {
        let given = source.strip_prefix(workspace()).unwrap_or(&source).to_path_buf();
        let shown = given.strip_prefix("ui-tests").unwrap_or(&given).display().to_string();
        Case { source, given, shown }
    }

    /// The stored message; `None` if nothing is stored.
    pub(crate) fn expected(&self) -> io::Result<Option<String>> {
        match fs::read_to_string(self.stored()) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn bless(&self, text: &str) -> io::Result<()> {
        fs::write(self.stored(), text)
    }

    fn stored(&self) -> PathBuf {
        self.source.with_extension("stderr")
    }
}

/// Whether what differs is written anew.
pub(crate) fn is_blessing() -> bool {
    std::env::var_os("TITAN_BLESS").is_some()
}

/// All cases, in the order of their names.
pub(crate) fn all() -> Vec<Case> {
    let cases: Vec<Case> = names("rs").iter().map(|name| Case::new(folder().join(format!("{name}.rs")))).collect();
    assert!(!cases.is_empty(), "there are no cases in {}", folder().display());
    cases
}

/// The stored messages without a case.
pub(crate) fn stale() -> Vec<String> {
    let is_stale = |name: &String| !folder().join(format!("{name}.rs")).is_file();
    names("stderr").into_iter().filter(is_stale).map(|name| format!("ui/{name}.stderr")).collect()
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ui")
}

/// The files of this kind, as `family/name`.
fn names(extension: &str) -> Vec<String> {
    let mut names = Vec::new();
    for family in entries(&folder()).into_iter().filter(|path| path.is_dir()) {
        for file in entries(&family).into_iter().filter(|path| path.extension().is_some_and(|e| e == extension)) {
            let part = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            names.push(format!("{}/{}", part(&family), part(&file)));
        }
    }
    names.sort();
    names
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    read.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).iter().map(fs::DirEntry::path).collect()
}

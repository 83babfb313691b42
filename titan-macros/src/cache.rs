//! Artifacts on disk, by content: what was compiled once is not compiled again, in editors least of all.
//!
//! A file is named by a hash of its input and holds the input itself, which is compared on a hit, so that a collision or a
//! stale file is a miss. Files are written under a temporary name and renamed, so that processes in parallel see whole files.
//! A folder that cannot be written makes the cache silent, not the build fail.
//!
//! # Security
//! A cached artifact runs in the user's program, so the cache belongs in a folder that only the user writes.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"titanc02";

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

/// The output for `input`, from the cache in `dir` or from `make`.
pub(crate) fn get_or_make(dir: Option<&Path>, input: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let Some(dir) = dir else { return make() };
    let path = dir.join(file_name(input));
    if let Some(hit) = read(&path, input) {
        return hit;
    }
    let output = make();
    // A cache that cannot be written is no cache.
    let _ = write(dir, &path, input, &output);
    output
}

fn file_name(input: &str) -> PathBuf {
    PathBuf::from(format!("{:016x}.titan", hash(&[input.as_bytes()])))
}

fn read(path: &Path, input: &str) -> Option<Vec<u8>> {
    let bytes = fs::read(path).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?;
    let (len, rest) = rest.split_at_checked(8)?;
    let len = usize::try_from(u64::from_le_bytes(len.try_into().ok()?)).ok()?;
    let (stored, output) = rest.split_at_checked(len)?;
    let (sum, output) = output.split_at_checked(8)?;
    let whole = sum == hash(&[output]).to_le_bytes();
    (whole && stored == input.as_bytes()).then(|| output.to_vec())
}

fn write(dir: &Path, path: &Path, input: &str, output: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    let mut bytes = Vec::with_capacity(input.len() + output.len() + 24);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(input.len() as u64).to_le_bytes());
    bytes.extend_from_slice(input.as_bytes());
    bytes.extend_from_slice(&hash(&[output]).to_le_bytes());
    bytes.extend_from_slice(output);
    let temporary = path.with_extension(format!("tmp{}", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    let done = file.write_all(&bytes).and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("titan-cache-test-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    #[test]
    fn a_second_request_is_answered_from_disk() {
        let dir = dir("hit");
        assert_eq!(get_or_make(Some(&dir), "in", || vec![1, 2]), [1, 2]);
        assert_eq!(get_or_make(Some(&dir), "in", || unreachable!("it is cached")), [1, 2]);
        assert_eq!(get_or_make(Some(&dir), "other", || vec![3]), [3]);
    }

    #[test]
    fn a_damaged_file_is_a_miss() {
        let dir = dir("damage");
        get_or_make(Some(&dir), "in", || vec![1, 2, 3, 4]);
        let path = dir.join(file_name("in"));
        let good = fs::read(&path).unwrap();
        for cut in 0..good.len() {
            fs::write(&path, &good[..cut]).unwrap();
            assert_eq!(read(&path, "in"), None, "cut at {cut}");
        }
        for flip in 0..good.len() {
            let mut bad = good.clone();
            bad[flip] ^= 1;
            fs::write(&path, &bad).unwrap();
            assert_eq!(read(&path, "in"), None, "flipped byte {flip}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        assert_eq!(get_or_make(Some(Path::new("/proc/no/such/place")), "in", || vec![7]), [7]);
        assert_eq!(get_or_make(None, "in", || vec![8]), [8]);
    }
}

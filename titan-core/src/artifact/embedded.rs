//! Finds artifacts in the bytes of a file that contains them, such as an executable.
//!
//! Nothing of the format of executables is needed: an artifact is embedded as it is, and begins with a magic number. That number alone shows
//! nothing, because every program that reads artifacts contains it as well; so a place counts only if what follows is a header. Where it
//! is one and the body does not agree with it, the file is damaged, and that is reported instead of passed over.

use super::decode::decode;
use super::encode::{HEADER, MAGIC};
use super::{Artifact, ArtifactError, VERSION};

/// The greatest version that is taken for one: a number, and not whatever follows the magic number by chance.
const GREATEST_VERSION: u16 = 0xFF;

pub(super) fn embedded(file: &[u8]) -> (Vec<Artifact>, Vec<ArtifactError>) {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(next) = next_magic(file, at) {
        // Behind the magic number, so that the search ends: one that belongs to no artifact is passed.
        at = next + MAGIC.len();
        let Some(len) = length(&file[next..]) else { continue };
        let bytes = &file[next..][..len.min(file.len() - next)];
        match decode(bytes) {
            Ok(artifact) => {
                at = next + len;
                found.push(artifact);
            }
            Err(error) if !errors.contains(&error) => errors.push(error),
            Err(_) => {}
        }
    }
    (found, errors)
}

/// The place of the first magic number from `from` on.
fn next_magic(file: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += file.get(at..)?.iter().position(|byte| *byte == MAGIC[0])?;
        if file[at..].starts_with(&MAGIC) {
            return Some(at);
        }
        at += 1;
    }
}

/// The length of the artifact that begins here according to its header; `None` if this is none. The header of another version may be longer, but
/// begins with the same fields.
fn length(bytes: &[u8]) -> Option<usize> {
    let header: &[u8; HEADER] = bytes.first_chunk()?;
    let version = u16::from_le_bytes([header[8], header[9]]);
    let body = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    let is_header = version != 0 && version <= GREATEST_VERSION && header[10..12] == [0, 0];
    // Those of other versions are not decoded, so that their length does not matter.
    let body = if version == VERSION { usize::try_from(body).ok()? } else { 0 };
    is_header.then(|| HEADER.saturating_add(body))
}

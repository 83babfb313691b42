//! SHA-256 of a stream while it is copied.

use std::fmt::Write as _;
use std::io::{self, Read, Write};

use indicatif::ProgressBar;
use sha2::{Digest, Sha256};

/// Copies everything; gives the number of bytes and their SHA-256 in lower-case hexadecimal.
pub(crate) fn copy(from: &mut dyn Read, to: &mut dyn Write, bar: &ProgressBar) -> io::Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut total = 0;
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..n]);
        to.write_all(&buffer[..n])?;
        bar.inc(n as u64);
        total += n as u64;
    }
    let mut hex = String::with_capacity(64);
    for byte in hasher.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    Ok((total, hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_standards_example() {
        let mut copied = Vec::new();
        let (bytes, hash) = copy(&mut &b"abc"[..], &mut copied, &ProgressBar::hidden()).unwrap();
        assert_eq!((bytes, copied.as_slice()), (3, &b"abc"[..]));
        assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}

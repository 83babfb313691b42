//! Why bytes are no code object, or a program cannot become one.

use std::fmt;

/// What is wrong with a code object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectError {
    /// It is no ELF file, or one of another kind.
    Header {
        /// Which part of the header.
        what: &'static str,
        /// What is there.
        found: u64,
        /// What should be.
        wanted: &'static str,
    },
    /// It ends before something that it says to have.
    Cut {
        /// What.
        what: &'static str,
        /// Where that begins.
        at: u64,
        /// Its length.
        len: u64,
        /// Bytes of the file.
        have: u64,
    },
    /// It is for another machine.
    Machine {
        /// Which, by name or number.
        found: String,
        /// For which it should be.
        wanted: &'static str,
    },
    /// Parts lie over each other.
    Overlap {
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// A part is not as it must be.
    Layout {
        /// A description.
        why: String,
    },
    /// Metadata are not in the format that they should be in, or do not say what they must.
    Metadata {
        /// A description.
        why: String,
    },
    /// A kernel is not as it must be, or its parts contradict each other.
    Kernel {
        /// Its name.
        name: String,
        /// A description.
        why: String,
    },
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectError::Header { what, found, wanted } => {
                write!(f, "not a code object of version 5: {what} is {found:#x}, not {wanted}")
            }
            ObjectError::Cut { what, at, len, have } => {
                write!(f, "the code object is cut off: {what} takes {len} bytes at {at:#x}, and it has {have}")
            }
            ObjectError::Machine { found, wanted } => write!(f, "the code object is for {found}, not for {wanted}"),
            ObjectError::Overlap { first, second } => {
                write!(f, "the code object is broken: {first} and {second} overlap")
            }
            ObjectError::Layout { why } => write!(f, "the code object is broken: {why}"),
            ObjectError::Metadata { why } => write!(f, "the code object's metadata: {why}"),
            ObjectError::Kernel { name, why } => write!(f, "kernel `{name}`: {why}"),
        }
    }
}

impl std::error::Error for ObjectError {}

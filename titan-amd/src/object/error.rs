//! The reasons why bytes are not a code object, or a program cannot be written as one.

use std::fmt;

/// An error in a code object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectError {
    /// The file is not an ELF file, or not one of the right kind.
    Header {
        /// The field of the header.
        what: &'static str,
        /// The value that was found.
        found: u64,
        /// The expected value.
        wanted: &'static str,
    },
    /// The file ends before the end of one of its parts.
    Cut {
        /// The part.
        what: &'static str,
        /// The offset of the part.
        at: u64,
        /// The length of the part.
        len: u64,
        /// The size of the file in bytes.
        have: u64,
    },
    /// The code object is for another machine.
    Machine {
        /// The machine, by name or number.
        found: String,
        /// The expected machine.
        wanted: &'static str,
    },
    /// Two parts of the file overlap.
    Overlap {
        /// One of the parts.
        first: String,
        /// The other part.
        second: String,
    },
    /// A part violates a rule.
    Layout {
        /// A description.
        why: String,
    },
    /// Metadata have the wrong format or contents.
    Metadata {
        /// A description.
        why: String,
    },
    /// A kernel violates a rule, or its parts contradict each other.
    Kernel {
        /// The name of the kernel.
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

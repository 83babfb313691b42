//! The errors of instructions, in bits and in text.

use std::fmt;

/// The reason why bits are not an instruction, or why an instruction cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IsaError {
    /// No row has this encoding.
    Unknown {
        /// The first word.
        word: u32,
    },
    /// The bytes end in the middle of the instruction.
    Cut {
        /// The number of bytes.
        have: usize,
    },
    /// Bits are set that the instruction does not use.
    Reserved {
        /// The mnemonic.
        name: &'static str,
        /// The bits that are set, the second word above the first.
        bits: u64,
    },
    /// An operand does not fit.
    Operand {
        /// The mnemonic.
        name: &'static str,
        /// The index of the operand, from 0.
        index: usize,
        /// The reason why it does not fit.
        why: &'static str,
    },
    /// The number of operands is wrong.
    Count {
        /// The mnemonic.
        name: &'static str,
        /// The number of operands of the instruction.
        wants: usize,
        /// The number of operands that were given.
        got: usize,
    },
    /// The instruction does not have the encoding.
    Form {
        /// The mnemonic.
        name: &'static str,
    },
    /// The instruction has no such modifier, or not with this value.
    Modifier {
        /// The mnemonic.
        name: &'static str,
        /// The modifier.
        modifier: String,
    },
    /// The text is not an instruction.
    Syntax {
        /// The reason.
        why: String,
    },
}

impl fmt::Display for IsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IsaError::Unknown { word } => write!(f, "{word:#010x} begins no instruction of the tables"),
            IsaError::Cut { have } => write!(f, "the instruction is cut off after {have} bytes"),
            IsaError::Reserved { name, bits } => {
                write!(f, "`{name}` has bits set that it does not define: {bits:#x}")
            }
            IsaError::Operand { name, index, why } => write!(f, "operand {} of `{name}`: {why}", index + 1),
            IsaError::Count { name, wants, got } => write!(f, "`{name}` has {wants} operands, not {got}"),
            IsaError::Form { name } => write!(f, "`{name}` has no such encoding"),
            IsaError::Modifier { name, modifier } => write!(f, "`{name}` has no modifier `{modifier}`"),
            IsaError::Syntax { why } => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for IsaError {}

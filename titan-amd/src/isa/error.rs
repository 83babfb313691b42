//! What can be wrong with an instruction, in bits and in text.

use std::fmt;

/// Why bits are no instruction, or why an instruction cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IsaError {
    /// No row has this encoding.
    Unknown {
        /// The first word.
        word: u32,
    },
    /// The bytes end within the instruction.
    Cut {
        /// How many there are.
        have: usize,
    },
    /// Bits are set that the instruction does not have.
    Reserved {
        /// Its mnemonic.
        name: &'static str,
        /// Those bits, the second word above the first.
        bits: u64,
    },
    /// An operand does not fit.
    Operand {
        /// The mnemonic.
        name: &'static str,
        /// Which, from 0.
        index: usize,
        /// Why.
        why: &'static str,
    },
    /// The number of operands is another.
    Count {
        /// The mnemonic.
        name: &'static str,
        /// What it takes.
        wants: usize,
        /// What it was given.
        got: usize,
    },
    /// The instruction has no such encoding.
    Form {
        /// The mnemonic.
        name: &'static str,
    },
    /// The instruction has no such modifier, or not with this value.
    Modifier {
        /// The mnemonic.
        name: &'static str,
        /// What was asked for.
        modifier: String,
    },
    /// The text is no instruction.
    Syntax {
        /// What is wrong.
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

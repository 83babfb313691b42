//! What atomic updates that return what they found do to an element.
//!
//! Deliberately absent: comparison and exchange, which takes two operands.

use super::BinOp;
use crate::named_enum::named_enum;

named_enum! {
    /// The update of an element by an atomic operation that returns what it found.
    FetchOp {
        /// Addition
        Add = "add",
        /// Maximum
        Max = "max",
        /// Minimum
        Min = "min",
        /// Bitwise and
        And = "and",
        /// Bitwise or
        Or = "or",
        /// Bitwise exclusive or
        Xor = "xor",
        /// The new value itself
        Swap = "swap",
    }
}

impl FetchOp {
    /// The function of the element and the operand that gives the new element; none for a swap, whose result is the operand.
    #[must_use]
    pub const fn binary(self) -> Option<BinOp> {
        match self {
            FetchOp::Add => Some(BinOp::Add),
            FetchOp::Max => Some(BinOp::Max),
            FetchOp::Min => Some(BinOp::Min),
            FetchOp::And => Some(BinOp::And),
            FetchOp::Or => Some(BinOp::Or),
            FetchOp::Xor => Some(BinOp::Xor),
            FetchOp::Swap => None,
        }
    }
}

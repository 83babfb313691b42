//! The reasons why an MMA does not use instructions of warpgroups, as messages.
//!
//! Deliberately absent: the decision itself (`super::mma`).

use crate::ir::Elem;
use crate::lane::GroupMma;
use std::fmt;

/// The reason why an MMA does not use instructions of warpgroups; displayed as the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoGroup {
    /// The machine has no such instructions.
    Machine,
    /// The MMA has a batch axis.
    Batched,
    /// There is no instruction for the element types of A, B and the accumulator.
    Elements([Elem; 3]),
    /// The operand is not contiguous along K, as its element type requires.
    Major { operand: char, elem: Elem },
    /// The number of warps that compute it.
    Warps(u32),
    /// M, and M of one instruction.
    Rows(u32, u32),
    /// N, and the number of warpgroups along N.
    Columns(u32, u32),
    /// K, and K of one instruction.
    Depth(u32, u32),
    /// The number of columns of an instruction for integers.
    Integers(u32),
}

impl fmt::Display for NoGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoGroup::Machine => f.write_str("the target has no MMAs of warpgroups"),
            NoGroup::Batched => f.write_str("its operands have a batch axis"),
            NoGroup::Elements([a, b, acc]) => {
                write!(f, "warpgroups do not multiply `{a}` by `{b}` with an accumulator of `{acc}`")?;
                let singles = [a, b].into_iter().all(|e| *e == Elem::F32);
                if singles {
                    f.write_str("; cast the operands to `tf32`, or make the tensors `tf32` for bulk copies too")
                } else {
                    Ok(())
                }
            }
            NoGroup::Major { operand, elem } => {
                write!(f, "K is not the last axis of {operand} in memory, as it must be for elements `{elem}`")
            }
            NoGroup::Warps(n) => {
                write!(
                    f,
                    "the warps that compute it are {n}, and warpgroups have {} each, their number a power of two",
                    GroupMma::WARPS
                )
            }
            NoGroup::Rows(m, of) => write!(f, "its M is {m}: warpgroups multiply {of} rows or a multiple"),
            NoGroup::Columns(n, 1) => write!(f, "its N is {n}: warpgroups multiply 8 columns or a multiple"),
            NoGroup::Columns(n, groups) => {
                write!(
                    f,
                    "its N is {n}, which {groups} warpgroups cannot share: each takes 8, 16, 32, 64, 128 or 256 columns"
                )
            }
            NoGroup::Depth(k, of) => write!(f, "its K is {k}: an instruction multiplies {of}, or a multiple"),
            NoGroup::Integers(n) => {
                write!(f, "its N is {n}: of integers, warpgroups multiply 8, 24, or a multiple of 16 columns")
            }
        }
    }
}

//! tidy: table
//! Control flow, moves, selection, and the unpacking of words.

use super::Slot::{In, Ins, Int, Out, Outs, SharedBase, Special, Target};
use super::{Form, form};
use titan_core::lane::Ty::{self, B16, B32, B64, Pred};

const FLOW: &str = "Control Flow Instructions";
const MOVE: &str = "Data Movement and Conversion Instructions";
const COMPARE: &str = "Comparison and Selection Instructions";

/// A branch at which threads of a warp may diverge.
pub static BRANCH: Form = form("bra", &[Target], FLOW, 10, 10);
/// A branch that all threads of a warp take alike.
pub static BRANCH_UNIFORM: Form = form("bra.uni", &[Target], FLOW, 10, 10);
/// Ends the thread.
pub static RETURN: Form = form("ret", &[], FLOW, 10, 10);

/// `mov` of a register or constant.
pub static MOVE_BITS: &[(Ty, Form)] = &[
    (Pred, form("mov.pred", &[Out(Pred), Int(Pred)], MOVE, 10, 10)),
    (B16, form("mov.b16", &[Out(B16), Int(B16)], MOVE, 10, 10)),
    (B32, form("mov.b32", &[Out(B32), Int(B32)], MOVE, 10, 10)),
    (B64, form("mov.b64", &[Out(B64), Int(B64)], MOVE, 10, 10)),
];

/// `mov` from a special register. "Special Registers": `%tid`, `%ctaid`, `%nctaid` are 32 bits wide since 2.0.
pub static MOVE_SPECIAL: Form = form("mov.u32", &[Out(B32), Special], MOVE, 20, 10);
/// `mov` of the address of the dynamic shared memory.
pub static MOVE_SHARED: Form = form("mov.u32", &[Out(B32), SharedBase], MOVE, 10, 10);

/// Packs parts into a word, by the type of the part.
pub static PACK: &[(Ty, Form)] = &[
    (B16, form("mov.b32", &[Out(B32), Ins(B16, 2)], MOVE, 10, 10)),
    (B32, form("mov.b64", &[Out(B64), Ins(B32, 2)], MOVE, 10, 10)),
];

/// Unpacks a word into its parts, by the type of the word.
pub static UNPACK: &[(Ty, Form)] = &[
    (B32, form("mov.b32", &[Outs(B16, 2), In(B32)], MOVE, 10, 10)),
    (B64, form("mov.b64", &[Outs(B32, 2), In(B64)], MOVE, 10, 10)),
];

/// Selects bytes of two words by four selectors; the top bit of a selector replicates the byte's sign.
pub static PERMUTE: Form = form("prmt.b32", &[Out(B32), In(B32), Int(B32), Int(B32)], MOVE, 20, 20);

/// Selects one of two operands by a condition.
pub static SELECT: &[(Ty, Form)] = &[
    (B16, form("selp.b16", &[Out(B16), Int(B16), Int(B16), In(Pred)], COMPARE, 10, 10)),
    (B32, form("selp.b32", &[Out(B32), Int(B32), Int(B32), In(Pred)], COMPARE, 10, 10)),
    (B64, form("selp.b64", &[Out(B64), Int(B64), Int(B64), In(Pred)], COMPARE, 10, 10)),
];

/// All rows.
#[must_use]
pub fn all() -> Vec<&'static Form> {
    let mut rows = vec![&BRANCH, &BRANCH_UNIFORM, &RETURN, &MOVE_SPECIAL, &MOVE_SHARED, &PERMUTE];
    for table in [MOVE_BITS, PACK, UNPACK, SELECT] {
        rows.extend(table.iter().map(|(_, form)| form));
    }
    rows
}

//! Parallel copies: several registers get new values, each computed from the values before the copy.

use crate::ptx::Reg;

/// The source of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// A register.
    Reg(Reg),
    /// A constant.
    Bits(u64),
}

/// Orders copies so that no register is overwritten before it is read. A cycle costs one additional register, from `fresh`.
///
/// The graph has one edge for each copy. A register that no remaining copy reads may be written; when only cycles are left,
/// one register of a cycle is saved, which turns the cycle into a chain.
pub fn order(copies: &[(Reg, From)], fresh: &mut dyn FnMut(Reg) -> Reg) -> Vec<(Reg, From)> {
    let mut left: Vec<(Reg, From)> = copies.iter().copied().filter(|(to, from)| *from != From::Reg(*to)).collect();
    let mut done = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let free = left.iter().position(|(to, _)| !left.iter().any(|(_, from)| *from == From::Reg(*to)));
        match free {
            Some(at) => done.push(left.swap_remove(at)),
            None => {
                let saved = left[0].0;
                let other = fresh(saved);
                done.push((other, From::Reg(saved)));
                for (_, from) in &mut left {
                    if *from == From::Reg(saved) {
                        *from = From::Reg(other);
                    }
                }
            }
        }
    }
    done
}

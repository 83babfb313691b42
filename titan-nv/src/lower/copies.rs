//! Parallel copies: several registers get new values, each computed from the values before the copy.

use crate::ptx::Reg;

/// The source of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// A register.
    Reg(Reg),
    /// A constant.
    Bits(u64),
}

/// Orders copies so that no register is overwritten before it is read. A cycle costs one additional register, from `fresh`.
///
/// The graph has one edge for each copy. A register that no remaining copy reads may be written; when only cycles are left,
/// one register of a cycle is saved, which turns the cycle into a chain.
pub(super) fn order(copies: &[(Reg, From)], fresh: &mut dyn FnMut(Reg) -> Reg) -> Vec<(Reg, From)> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use titan_core::collections::SortedMap;
    use titan_core::lane::Ty;

    fn reg(number: u32) -> Reg {
        Reg { class: Ty::B32, number }
    }

    /// The contents of registers after ordered copies, where each register starts with its own number.
    fn run(copies: &[(Reg, From)]) -> (SortedMap<u32, u64>, usize) {
        let mut next = 100;
        let ordered = order(copies, &mut |_| {
            next += 1;
            reg(next)
        });
        let mut held: SortedMap<u32, u64> = (0..200).map(|n| (n, u64::from(n))).collect();
        for (to, from) in &ordered {
            let value = match from {
                From::Reg(r) => held[&r.number],
                From::Bits(bits) => *bits,
            };
            held.insert(to.number, value);
        }
        (held, ordered.len())
    }

    #[test]
    fn every_permutation_and_every_function_of_five_registers_is_done_right() {
        for code in 0..5u32.pow(5) {
            let sources: Vec<u32> = (0..5).map(|i| code / 5u32.pow(i) % 5).collect();
            let copies: Vec<(Reg, From)> =
                (0u32..).zip(&sources).map(|(to, from)| (reg(to), From::Reg(reg(*from)))).collect();
            let (held, _) = run(&copies);
            for (to, from) in (0u32..).zip(&sources) {
                assert_eq!(held[&to], u64::from(*from), "{sources:?}");
            }
        }
    }

    #[test]
    fn a_swap_costs_three_copies_and_a_chain_none_more() {
        let swap = [(reg(0), From::Reg(reg(1))), (reg(1), From::Reg(reg(0)))];
        assert_eq!(run(&swap).1, 3);
        let chain = [(reg(0), From::Reg(reg(1))), (reg(1), From::Reg(reg(2))), (reg(2), From::Bits(7))];
        assert_eq!(run(&chain).1, 3);
        let own = [(reg(0), From::Reg(reg(0)))];
        assert_eq!(run(&own).1, 0);
    }
}

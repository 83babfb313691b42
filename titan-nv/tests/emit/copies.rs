//! Parallel copies, of which none overwrites what another one reads.

use titan_core::collections::SortedMap;
use titan_core::lane::Ty;
use titan_nv::lower::copies::{From, order};
use titan_nv::ptx::Reg;

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

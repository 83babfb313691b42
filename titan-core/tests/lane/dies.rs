//! Numbers of programs on several dies: a permutation for every number of programs, in which the programs of a die are adjacent.

use crate::machine::Machine;
use crate::machine::memory::Memory;
use titan_core::ir::Pred;
use titan_core::lane::{Builder, Func, OpKind, Space};
use titan_core::launch::abi::Slot;

/// A kernel whose programs store their number.
fn func(dies: u32) -> Func {
    let mut b = Builder::new("numbers", vec![Slot::Address(0)], 32, 32);
    let number = b.number_on_dies(dies);
    let (base, index, four) = (b.one(OpKind::Slot(0), &[]), b.one(OpKind::ProgramId(0), &[]), b.i32(4));
    let offset = b.one(OpKind::MulWide { signed: false }, &[index, four]);
    let to = b.add(base, offset);
    let (thread, zero) = (b.one(OpKind::ThreadId, &[]), b.i32(0));
    let first = b.cmp_u(Pred::Eq, thread, zero);
    let store = OpKind::Store { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: true };
    b.op(store, &[to, number, first]);
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

fn numbers(func: &Func, programs: u32) -> Vec<u32> {
    let mut memory = Memory::new();
    let at = memory.add("out", vec![0; 4 * programs as usize]);
    let mut machine = Machine::new(func, vec![at], memory);
    machine.grid = [programs, 1, 1];
    (0..programs).for_each(|program| machine.run([program, 0, 0]));
    assert!(machine.wrong.is_empty(), "{:?}", machine.wrong);
    let bytes = &machine.memory.areas[1].bytes;
    bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes"))).collect()
}

#[test]
fn programs_of_a_die_have_adjacent_numbers() {
    for dies in [1, 2, 6, 8] {
        let func = func(dies);
        for programs in 1..200 {
            let numbers = numbers(&func, programs);
            let mut next = 0;
            for die in 0..dies {
                for index in (die..programs).step_by(dies as usize) {
                    assert_eq!(numbers[index as usize], next, "{dies} dies, {programs} programs, program {index}");
                    next += 1;
                }
            }
            assert_eq!(next, programs);
        }
    }
}

/// One die costs nothing.
#[test]
fn programs_of_one_die_have_their_index() {
    let mut b = Builder::new("numbers", Vec::new(), 32, 32);
    let (number, index) = (b.number_on_dies(1), b.one(OpKind::ProgramId(0), &[]));
    assert_eq!(number, index);
}

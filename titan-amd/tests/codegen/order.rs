//! The checker of moved instructions: instructions of compiled kernels that change places with their neighbours.

use crate::kernels::attention::causal_attention;
use crate::launch::{emitted, machine};
use crate::nests::functions;
use titan_amd::codegen::check::order::check;
use titan_amd::codegen::machine_ir::{Code, Inst, Kind, Operand};
use titan_amd::isa::{Access, Implicit, Operand as Isa, Row, Unit};
use titan_core::driver::stages;

/// Which of two neighbours needs the other where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// The second reads a register that the first writes.
    Register,
    /// The first reads a register that the second writes.
    Overwritten,
    /// The second reads the condition code that the first writes.
    Condition,
    /// The second computes in the lanes that the first makes the active ones.
    Lanes,
    /// Both access memory.
    Memory,
    /// Neither: they have no register, nor any part of the implicit state, in common.
    Apart,
}

fn row(inst: &Inst) -> Option<&'static Row> {
    match &inst.kind {
        Kind::Row { row, .. } => Some(row),
        Kind::Start | Kind::Rematerialized => None,
    }
}

/// Whether an operand that `a` writes is read by `b`, as the operands say.
fn flows(a: &Inst, b: &Inst) -> bool {
    let written = a.accesses().filter(|(access, _)| *access != Access::Read).map(|(_, operand)| operand);
    written.into_iter().any(|written| {
        let reads = |(access, read): (Access, &Operand)| {
            let (Operand::Part(x), Operand::Part(y)) = (written, read) else { return false };
            let common = x.reg == y.reg && x.first < y.first + y.words && y.first < x.first + x.words;
            access != Access::Write && common
        };
        b.accesses().any(reads)
    })
}

fn is_memory(row: &Row) -> bool {
    matches!(row.unit, Unit::Load | Unit::Store | Unit::Atomic | Unit::Lds)
}

fn is_vector(row: &Row) -> bool {
    matches!(row.unit, Unit::Valu | Unit::Trans | Unit::Dot | Unit::Load | Unit::Store | Unit::Lds)
}

/// Why two neighbours may not change places; `None` if this does not say it.
fn why(a: &Inst, b: &Inst) -> Option<Why> {
    let (x, y) = (row(a)?, row(b)?);
    let exec = |inst: &Inst| {
        inst.accesses().any(|(access, operand)| access != Access::Read && *operand == Operand::Isa(Isa::EXEC))
    };
    if flows(a, b) {
        Some(Why::Register)
    } else if flows(b, a) {
        Some(Why::Overwritten)
    } else if x.writes.has(Implicit::SCC) && y.reads.has(Implicit::SCC) {
        Some(Why::Condition)
    } else if exec(a) && is_vector(y) {
        Some(Why::Lanes)
    } else if is_memory(x) && is_memory(y) {
        Some(Why::Memory)
    } else {
        let plain = |inst: &Inst, row: &Row| {
            let registers =
                inst.operands.iter().all(|operand| matches!(operand, Operand::Part(_) | Operand::Isa(Isa::Inline(_))));
            registers && matches!(row.unit, Unit::Salu | Unit::Valu) && row.writes == Implicit::NONE
        };
        let common = a.operands.iter().any(|own| {
            b.operands
                .iter()
                .any(|other| matches!((own, other), (Operand::Part(x), Operand::Part(y)) if x.reg == y.reg))
        });
        (plain(a, x) && plain(b, y) && !common && a != b).then_some(Why::Apart)
    }
}

/// The code with an instruction and the next one exchanged.
fn exchanged(code: &Code, block: usize, at: usize) -> Code {
    let mut out = code.clone();
    out.blocks[block].insts.swap(at, at + 1);
    out
}

#[test]
fn neighbours_that_need_each_other_do_not_change_places() {
    let attention = stages(&causal_attention(64, 64), machine(), true, None).unwrap_or_else(|e| panic!("{e}")).lanes;
    let mut funcs: Vec<_> = functions(test_depth::cases(60, 12)).map(|(_, func)| func).collect();
    funcs.push(attention);
    let mut tried = std::collections::BTreeMap::new();
    for func in &funcs {
        let code = emitted(func).unwrap_or_else(|e| panic!("{e}")).selected;
        assert_eq!(check(&code, &code), Ok(()));
        let pairs = code.order.iter().flat_map(|block| (1..code.insts(*block).len()).map(move |at| (*block, at - 1)));
        let pairs: Vec<_> = pairs.collect();
        // In the quick depth, every seventh pair of large kernels.
        let step = if code.len() > 600 { test_depth::cases(1, 7) } else { 1 };
        for (block, at) in pairs.into_iter().step_by(step) {
            let (a, b) = (&code.insts(block)[at], &code.insts(block)[at + 1]);
            let Some(why) = why(a, b) else { continue };
            let accepted = check(&code, &exchanged(&code, block.index(), at)).is_ok();
            assert_eq!(accepted, why == Why::Apart, "{why:?}: {} and {}", a.name(), b.name());
            *tried.entry(why).or_insert(0) += 1;
        }
    }
    for why in [Why::Register, Why::Overwritten, Why::Condition, Why::Lanes, Why::Memory, Why::Apart] {
        assert!(tried.get(&why).is_some_and(|n| *n > 2), "{tried:?}");
    }
}

#[test]
fn other_instructions_are_refused() {
    let (_, func) = functions(4).next().expect("a function");
    let code = emitted(&func).unwrap_or_else(|e| panic!("{e}")).selected;
    let mut fewer = code.clone();
    let block = code.order.iter().copied().find(|block| code.insts(*block).len() > 1).expect("a block");
    fewer.blocks[block.index()].insts.pop();
    assert!(check(&code, &fewer).is_err_and(|why| why.contains("has other instructions")));
    let mut twice = code.clone();
    let insts = &mut twice.blocks[block.index()].insts;
    insts[1] = insts[0].clone();
    assert!(check(&code, &twice).is_err());
    let mut turned = code.clone();
    turned.order.reverse();
    assert_eq!(check(&code, &turned).is_ok(), code.order.len() == 1);
}

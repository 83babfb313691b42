//! The checker of moved instructions: instructions of compiled kernels that change places with their neighbours.

use crate::kernels::attention::causal_attention;
use crate::kernels::both::Launch;
use crate::launch::{Ready, emitted, machine, orders};
use crate::machine::Rng;
use crate::nests::{arguments, functions};
use titan_amd::codegen::check::order::check;
use titan_amd::codegen::machine_ir::{Block, BlockData, Code, Inst, Kind, Operand};
use titan_amd::codegen::{emit_in_given_order, emit_in_order_by};
use titan_amd::isa::{Access, Field, Form, Implicit, Operand as Isa, Row, Unit, by_name};
use titan_core::driver::stages;
use titan_core::ir::Loc;
use titan_core::lane::shared::place;
use titan_core::lane::{Builder, Func, OpKind, Space};
use titan_core::launch::abi::Slot;

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
    /// Both access one memory, and one of them stores.
    Memory,
    /// One accesses memory, and the other one orders accesses.
    Ordered,
    /// Neither: both load.
    Loads,
    /// Neither: they access different memories.
    Memories,
    /// Neither: they have no register, nor any part of the implicit state, in common.
    Apart,
}

impl Why {
    const fn is_allowed(self) -> bool {
        match self {
            Why::Register | Why::Overwritten | Why::Condition | Why::Lanes | Why::Memory | Why::Ordered => false,
            Why::Loads | Why::Memories | Why::Apart => true,
        }
    }
}

/// What an instruction does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    Global { stores: bool },
    Local { stores: bool },
    Orders,
}

fn memory(inst: &Inst) -> Option<Memory> {
    let begins = |all: &[&str]| all.iter().any(|prefix| inst.name().starts_with(prefix));
    if begins(&["global_load", "buffer_load", "s_load"]) {
        Some(Memory::Global { stores: false })
    } else if begins(&["global_store", "buffer_store"]) {
        Some(Memory::Global { stores: true })
    } else if begins(&["ds_read"]) {
        Some(Memory::Local { stores: false })
    } else if begins(&["ds_write"]) {
        Some(Memory::Local { stores: true })
    } else {
        begins(&["global_atomic", "s_barrier", "s_waitcnt", "ds_add", "ds_max", "ds_cmpst"]).then_some(Memory::Orders)
    }
}

/// Whether two accesses of memory may change places.
fn of_memories(a: Memory, b: Memory) -> Why {
    let stores = |memory: Memory| matches!(memory, Memory::Global { stores: true } | Memory::Local { stores: true });
    match (a, b) {
        (Memory::Orders, _) | (_, Memory::Orders) => Why::Ordered,
        (Memory::Global { .. }, Memory::Local { .. }) | (Memory::Local { .. }, Memory::Global { .. }) => Why::Memories,
        (Memory::Global { .. }, Memory::Global { .. }) | (Memory::Local { .. }, Memory::Local { .. }) => {
            if stores(a) || stores(b) { Why::Memory } else { Why::Loads }
        }
    }
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
    } else if let (Some(first), Some(second)) = (memory(a), memory(b)) {
        // Two that write one register are ordered by it.
        let written = |inst: &Inst| inst.accesses().find(|(access, _)| *access != Access::Read).map(|(_, to)| *to);
        let apart = written(a).is_none() || written(a) != written(b);
        Some(of_memories(first, second)).filter(|why| a != b && (apart || !why.is_allowed()))
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

/// Accesses of both memories side by side, and barriers among them.
fn memories() -> Func {
    let mut b = Builder::new("memories", vec![Slot::Address(0), Slot::Address(1)], 64, 64);
    let buffer = b.buffer("words", 1024, 0);
    let base = b.one(OpKind::Buffer(buffer), &[]);
    let (thread, bytes) = (b.one(OpKind::ThreadId, &[]), b.i32(16));
    let offset = b.one(OpKind::MulWide { signed: false }, &[thread, bytes]);
    let local = b.mul(thread, bytes);
    let local = b.add(base, local);
    let [from, to] = [0, 1].map(|slot| {
        let base = b.one(OpKind::Slot(slot), &[]);
        b.add(base, offset)
    });
    let word = |load: bool, space: Space, offset: i32| {
        let (bytes, n, masked) = (4, 1, false);
        if load {
            OpKind::Load { space, bytes, n, offset, masked }
        } else {
            OpKind::Store { space, bytes, n, offset, masked }
        }
    };
    let all = OpKind::Store { space: Space::Shared, bytes: 4, n: 4, offset: 0, masked: false };
    b.op(all, &[local, thread, bytes, thread, local]);
    let mut sums = Vec::new();
    for turn in 0..4 {
        let x = b.one(word(true, Space::Global, 4 * turn), &[from]);
        let y = b.one(word(true, Space::Shared, 4 * turn), &[local]);
        let z = b.one(word(true, Space::Global, 4 * (3 - turn)), &[from]);
        b.op(word(false, Space::Shared, 4 * (3 - turn)), &[local, x]);
        b.op(word(false, Space::Global, 4 * turn), &[to, y]);
        b.op(word(false, Space::Shared, 4 * turn), &[local, z]);
        b.op(OpKind::Barrier, &[]);
        sums.push(b.one(word(true, Space::Shared, 0), &[local]));
    }
    for (sum, turn) in sums.into_iter().zip(0..) {
        b.op(word(false, Space::Global, 4 * turn), &[to, sum]);
    }
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("well typed");
    place(&mut func);
    func
}

#[test]
fn neighbours_that_need_each_other_do_not_change_places() {
    let attention = stages(&causal_attention(64, 64), machine(), true, None).unwrap_or_else(|e| panic!("{e}")).lanes;
    let mut funcs: Vec<_> = functions(test_depth::cases(60, 12)).map(|(_, func)| func).collect();
    funcs.extend([attention, memories()]);
    let mut tried = std::collections::BTreeMap::new();
    let given = funcs.iter().map(|func| emit_in_given_order(func, machine()));
    for emitted in given.chain(funcs.iter().map(emitted)) {
        let code = emitted.unwrap_or_else(|e| panic!("{e}")).selected;
        assert_eq!(check(&code, &code), Ok(()));
        let pairs = code.order.iter().flat_map(|block| (1..code.insts(*block).len()).map(move |at| (*block, at - 1)));
        let pairs: Vec<_> = pairs.collect();
        // In the quick depth, every seventh pair of large kernels.
        let step = if code.len() > 600 { test_depth::cases(1, 7) } else { 1 };
        for (number, (block, at)) in pairs.into_iter().enumerate() {
            let (a, b) = (&code.insts(block)[at], &code.insts(block)[at + 1]);
            let Some(why) = why(a, b) else { continue };
            if number % step > 0 && (memory(a).is_none() || memory(b).is_none()) {
                continue;
            }
            let accepted = check(&code, &exchanged(&code, block.index(), at)).is_ok();
            assert_eq!(accepted, why.is_allowed(), "{why:?}: {} and {}", a.name(), b.name());
            *tried.entry(why).or_insert(0) += 1;
        }
    }
    let registers = [Why::Register, Why::Overwritten, Why::Condition, Why::Lanes, Why::Apart];
    for why in registers.into_iter().chain([Why::Memory, Why::Ordered, Why::Loads, Why::Memories]) {
        assert!(tried.get(&why).is_some_and(|n| *n > 2), "{why:?}: {tried:?}");
    }
}

/// Which of a load from global memory, a store to it, and both for the local data share an instruction of each kind may pass.
const PASSES: [[bool; 4]; 6] = {
    let (all, none) = ([true; 4], [false; 4]);
    let global = [[true, false, true, true], [false, false, true, true]];
    let local = [[true, true, true, false], [true, true, false, false]];
    [all, none, global[0], global[1], local[0], local[1]]
};

/// The kind of an instruction in [`PASSES`], as its name says: what is not known orders everything.
fn kind_by_name(row: &Row, plain: bool) -> usize {
    let begins = |all: &[&str]| all.iter().any(|prefix| row.name.starts_with(prefix));
    let is_one = |of: &str, all: &[&str]| row.name.strip_prefix(of).is_some_and(|rest| all.contains(&rest));
    let to_local = row.name.contains("_lds_") || row.fixed.contains(&(Field::Lds, 1));
    let hidden = ["s_setreg", "s_getreg", "s_getpc", "s_set_gpr_idx", "s_movrel", "v_cmpx"];
    let lanes = ["saveexec", "wrexec"].iter().any(|of| row.name.contains(of));
    match row.unit {
        Unit::Salu | Unit::Valu | Unit::Trans | Unit::Dot | Unit::Xdl | Unit::Sgemm | Unit::Dgemm => {
            usize::from(begins(&hidden) || lanes)
        }
        Unit::Lds if is_one("ds_", &["swizzle_b32", "permute_b32", "bpermute_b32"]) => 0,
        Unit::Lds if is_one("ds_read_", &["u8", "i8", "u16", "i16", "b32", "b64", "b128"]) => 4,
        Unit::Lds if is_one("ds_write_", &["b8", "b16", "b32", "b64", "b128"]) => 5,
        Unit::Smem if is_one("s_load_dword", &["", "x2", "x4", "x8", "x16"]) && plain => 2,
        Unit::Load if begins(&["global_load_", "buffer_load_"]) && !to_local && plain => 2,
        Unit::Store if begins(&["global_store_", "buffer_store_"]) && plain => 3,
        Unit::Smem
        | Unit::Load
        | Unit::Store
        | Unit::Atomic
        | Unit::LoadLds
        | Unit::Cache
        | Unit::Lds
        | Unit::Branch
        | Unit::Control => 1,
    }
}

/// Every instruction of the machine, next to the four accesses.
#[test]
fn each_instruction_passes_the_accesses_of_its_kind() {
    let inst = |row: &'static Row, mods: Vec<(Field, u32)>, added: bool| {
        let kind = Kind::Row { row, form: Form::Base, mods };
        Inst { kind, operands: Vec::new(), loc: Loc::default(), added }
    };
    let accesses = ["global_load_dword", "global_store_dword", "ds_read_b32", "ds_write_b32"];
    let accesses = accesses.map(|name| inst(by_name(name).first().expect("a row"), Vec::new(), true));
    let mut found = [0; PASSES.len()];
    for row in titan_amd::isa::all() {
        for mods in [None, Some(Field::Sc0), Some(Field::Sc1), Some(Field::Nt), Some(Field::Glc)] {
            let mods: Vec<(Field, u32)> = mods.into_iter().map(|field| (field, 1)).collect();
            let kind = kind_by_name(row, mods.is_empty());
            let own = inst(row, mods, false);
            let passes = accesses.each_ref().map(|access| {
                let code = |insts: [&Inst; 2]| {
                    let insts = insts.map(Inst::clone).to_vec();
                    Code {
                        registers: Vec::new(),
                        blocks: vec![BlockData { insts, depth: 0 }],
                        order: vec![Block::new(0)],
                    }
                };
                let both = [
                    check(&code([&own, access]), &code([access, &own])),
                    check(&code([access, &own]), &code([&own, access])),
                ];
                assert_eq!(both[0].is_ok(), both[1].is_ok(), "{}", row.name);
                both[0].is_ok()
            });
            assert_eq!(passes, PASSES[kind], "{}: {:?}", row.name, own.kind);
            found[kind] += 1;
        }
    }
    assert!(found.iter().all(|n| *n > 4), "{found:?}");
}

/// The code with instructions moved at random within their blocks, as far as the checker allows.
fn moved(code: &Code, tries: u32, rng: &mut Rng) -> (Code, u32) {
    let (mut code, mut accepted) = (code.clone(), 0);
    let blocks: Vec<Block> = code.order.iter().copied().filter(|block| code.insts(*block).len() > 2).collect();
    for _ in 0..tries {
        let block = rng.of(&blocks);
        let n = code.insts(block).len();
        let (from, by) = (rng.below(n as u32) as usize, 1 + rng.below(16) as usize);
        let to = if rng.below(2) == 0 { from.saturating_sub(by) } else { (from + by).min(n - 1) };
        let mut other = code.clone();
        let insts = &mut other.blocks[block.index()].insts;
        let inst = insts.remove(from);
        insts.insert(to, inst);
        if other != code && check(&code, &other).is_ok() {
            code = other;
            accepted += 1;
        }
    }
    (code, accepted)
}

/// Whatever the checker accepts computes the same: orders at random, executed with operations that complete late, early and at random.
#[test]
fn orders_that_are_accepted_compute_the_same() {
    let nests = functions(test_depth::cases(400, 24));
    let memories = (0..test_depth::cases(40, 6)).map(|n| (n as u64, memories()));
    let (mut all, mut given) = (0, 0);
    for (seed, func) in nests.chain(memories) {
        let rng = std::cell::RefCell::new(Rng::new(seed));
        let accepted = std::cell::Cell::new(0);
        let order = |code: &Code| {
            let (code, n) = moved(code, 150, &mut rng.borrow_mut());
            accepted.set(n);
            code
        };
        let emitted = emit_in_order_by(&func, machine(), &order).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let ready = Ready::of(emitted, &func);
        let tensors = arguments(&mut Rng::new(seed));
        let launch = Launch { grid: [1, 1, 1], tensors: &tensors, scalar: &|_| 0x1234 };
        let wanted = launch.evaluated(&func).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        for options in orders() {
            let found = launch.emulated_by(&func, &ready, &options);
            let found = found.unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", ready.emitted.code));
            assert_eq!(launch.difference(&found, &wanted), None, "seed {seed}\n{}", ready.emitted.code);
        }
        all += accepted.get();
        given += 1;
    }
    assert!(all > 8 * given, "{all} moves in {given} kernels");
}

/// The order of a caller is checked in every build.
#[test]
fn a_wrong_order_is_an_error() {
    let turned = |code: &Code| {
        let mut code = code.clone();
        code.blocks.iter_mut().for_each(|block| block.insts.reverse());
        code
    };
    let result = emit_in_order_by(&memories(), machine(), &turned);
    assert!(result.is_err_and(|e| e.to_string().contains("reads what another instruction writes")));
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

//! Constants: they stand outside of loops, are computed again where registers are scarce, and the checker refuses wrong ones.

use crate::kernels::attention::attention;
use crate::kernels::both::Launch;
use crate::kernels::products::Product;
use crate::launch::{Ready, emitted, machine};
use crate::machine::Rng;
use crate::tensor::Tensor;
use titan_amd::codegen::check::registers;
use titan_amd::codegen::machine_ir::{Code, Inst, Kind, Operand};
use titan_amd::isa::{Inline, Operand as Isa};
use titan_core::driver::stages;
use titan_core::ir::{Elem, Pred};
use titan_core::lane::{Builder, Func, IntBin, OpKind, Space, Ty, Value};
use titan_core::launch::abi::Slot;

/// Whether an instruction moves a constant to a register.
fn is_constant(inst: &Inst) -> bool {
    let value = |operand: &Operand| matches!(operand, Operand::Isa(Isa::Inline(_) | Isa::Literal(_)));
    matches!(inst.name(), "s_mov_b32" | "v_mov_b32") && inst.operands.get(1).is_some_and(value)
}

fn insts(code: &Code) -> impl Iterator<Item = (u32, &Inst)> {
    code.order.iter().flat_map(|b| code.insts(*b).iter().map(|inst| (code.blocks[b.index()].depth, inst)))
}

/// The number of constants that are moved to registers inside of loops.
fn in_loops(code: &Code) -> usize {
    insts(code).filter(|(depth, inst)| *depth > 0 && is_constant(inst)).count()
}

#[test]
fn loops_of_products_and_of_attention_compute_no_constants() {
    for along_k in [true, false] {
        let product = Product { along_k: [true, along_k], ..Product::of(Elem::Bf16, Elem::F32, [256, 256, 64]) };
        let stages = stages(&product.kernel(), machine(), true, None).unwrap_or_else(|e| panic!("{product:?}: {e}"));
        let emitted = emitted(&stages.lanes).unwrap_or_else(|e| panic!("{product:?}: {e}"));
        assert_eq!(in_loops(&emitted.code), 0, "{product:?}");
    }
    let stages = stages(&attention(Elem::Bf16, 128, 128), machine(), true, None).unwrap_or_else(|e| panic!("{e}"));
    let emitted = emitted(&stages.lanes).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(in_loops(&emitted.code), 0);
}

/// A loop that selects constants, some of them in a branch of some lanes, while each thread needs `live` numbers of its own and as many as
/// `shared` that all lanes have in common, before and after the loop.
fn crowded(live: i32, shared: i32, constants: i32, threads: u32) -> Func {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Scalar { param: 2, wide: false }];
    let mut b = Builder::new("crowded_constants", slots, threads, 64);
    let thread = b.one(OpKind::ThreadId, &[]);
    let at = |b: &mut Builder, slot: u32, bytes: i32| {
        let (base, bytes) = (b.one(OpKind::Slot(slot), &[]), b.i32(bytes));
        let offset = b.one(OpKind::MulWide { signed: false }, &[thread, bytes]);
        b.add(base, offset)
    };
    let (from, to) = (at(&mut b, 0, 4 * live), at(&mut b, 1, 8));
    let scalar = b.one(OpKind::Slot(2), &[]);
    let load = |b: &mut Builder, i: i32| {
        let kind = OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: 4 * i, masked: false };
        b.one(kind, &[from])
    };
    let numbers: Vec<Value> = (0..live).map(|i| load(&mut b, i)).collect();
    let mut uniform = vec![scalar];
    for i in 0..shared {
        let by = b.i32(0x135 + 2 * i);
        let last = uniform[uniform.len() - 1];
        uniform.push(b.mul(last, by));
    }
    let bounds = [0, 3, 1].map(|n| b.i32(n));
    let (open, i, carried) = b.begin_for(bounds, &[thread, scalar]);
    let (mut own, mut common) = (carried[0], carried[1]);
    let constant = |b: &mut Builder, n: i32| b.i32(0x0012_3457 + 0x0101_0101 * (n % 61));
    for n in 0..constants {
        let (x, c) = (numbers[(n % live) as usize], constant(&mut b, n));
        let low = b.cmp_u(Pred::Lt, own, x);
        let mixed = b.int(IntBin::Xor, own, x);
        own = b.select(low, mixed, c);
        let (y, c) = (uniform[(n % (shared + 1)) as usize], constant(&mut b, n + 7));
        let less = b.cmp_u(Pred::Lt, common, y);
        let sum = b.add(common, y);
        common = b.select(less, sum, c);
        if n % 5 == 2 {
            let one = b.i32(1);
            let odd = b.and(own, one);
            let cond = b.cmp_u(Pred::Eq, odd, one);
            let mut open = b.begin_if(cond, &[Ty::B32]);
            let c = constant(&mut b, n);
            let more = b.cmp_u(Pred::Lt, x, own);
            let inner = b.select(more, c, x);
            let inner = b.add(inner, i);
            b.terminate(OpKind::Yield, &[inner]);
            b.begin_else(&mut open);
            b.terminate(OpKind::Yield, &[own]);
            own = b.end(open)[0];
        }
    }
    b.terminate(OpKind::Continue(0), &[own, common]);
    let ended = b.end(open);
    let (mut own, mut common) = (ended[0], ended[1]);
    for x in &numbers {
        own = b.int(IntBin::Xor, own, *x);
    }
    for y in uniform {
        common = b.int(IntBin::Xor, common, y);
    }
    b.op(OpKind::Store { space: Space::Global, bytes: 4, n: 2, offset: 0, masked: false }, &[to, own, common]);
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

/// What makes vector registers scarce, what scalar ones, and both.
fn subjects() -> Vec<(Func, [bool; 2])> {
    [(110, 3, 1024, [true, false]), (4, 86, 64, [false, true]), (112, 86, 1024, [true, true])]
        .map(|(live, shared, threads, scarce)| (crowded(live, shared, 40, threads), scarce))
        .into()
}

#[test]
fn constants_are_computed_again_where_registers_are_scarce() {
    for (func, scarce) in subjects() {
        let ready = Ready::new(&func).unwrap_or_else(|e| panic!("{e}"));
        let allocated = &ready.emitted.allocated;
        let again = |name: &str| insts(allocated).any(|(_, inst)| inst.added && inst.name() == name);
        assert_eq!(["v_mov_b32", "s_mov_b32"].map(again), scarce, "{:?}", ready.emitted.registers);
        assert!(insts(allocated).any(|(_, inst)| inst.kind == Kind::Rematerialized));
        // Constants make room for everything else: nothing is copied.
        let copies = ["v_accvgpr_write_b32", "v_writelane_b32"];
        assert!(insts(allocated).all(|(_, inst)| !copies.contains(&inst.name())));
        let live = (func.threads * 4 * 118) as usize;
        let mut rng = Rng::new(7);
        let tensor = |bytes: Vec<u8>| {
            let extents = vec![bytes.len() as u32 / 4];
            Some(Tensor { elem: Elem::U32, extents, strides: vec![1], bytes, skip: 0 })
        };
        let numbers = (0..live).map(|_| rng.below(256) as u8).collect();
        let tensors = [tensor(numbers), tensor(vec![0; 8 * func.threads as usize]), None];
        let launch = Launch { grid: [1, 1, 1], tensors: &tensors, scalar: &|_| 0x4321 };
        let wanted = launch.evaluated(&func).unwrap_or_else(|e| panic!("{e}"));
        for order in 0..3 {
            let found = launch.emulated(&func, &ready, order).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(launch.difference(&found, &wanted), None);
        }
    }
}

/// The next constant of the same encoding.
fn other(value: Isa) -> Option<Isa> {
    match value {
        Isa::Literal(bits) => Some(Isa::Literal(bits ^ 1)),
        Isa::Inline(Inline::Int(n)) => Some(Isa::Inline(Inline::Int(if n == 64 { 0 } else { n + 1 }))),
        _ => None,
    }
}

#[test]
fn wrong_constants_are_refused() {
    let (mut wrong, mut undefined, mut moved) = (0, 0, 0);
    for (func, _) in subjects() {
        let ready = Ready::new(&func).unwrap_or_else(|e| panic!("{e}"));
        let (selected, allocated) = (&ready.emitted.selected, &ready.emitted.allocated);
        assert_eq!(registers::check(selected, allocated), Ok(()));
        for block in allocated.order.iter().map(|b| b.index()) {
            for i in 0..allocated.blocks[block].insts.len() {
                let inst = &allocated.blocks[block].insts[i];
                let refused = |what: &str, change: &dyn Fn(&mut Vec<Inst>)| {
                    let mut mutant = allocated.clone();
                    change(&mut mutant.blocks[block].insts);
                    let found = registers::check(selected, &mutant);
                    assert!(found.is_err(), "{what}: `{}` {i} of b{block}\n{allocated}", inst.name());
                };
                if !(inst.added && is_constant(inst)) {
                    // A definition that is no constant of one register cannot be left out.
                    if inst.name() == "v_xor_b32" && undefined < 40 {
                        refused("no constant", &|insts| {
                            insts[i].kind = Kind::Rematerialized;
                            insts[i].operands.clear();
                        });
                        undefined += 1;
                    }
                    continue;
                }
                let Some(Operand::Isa(value)) = inst.operands.get(1).copied() else { continue };
                let Some(value) = other(value) else { continue };
                refused("another constant", &|insts| insts[i].operands[1] = value.into());
                wrong += 1;
                // Set before the active lanes change, and read behind that.
                let exec = |inst: &Inst| inst.operands.first() == Some(&Operand::Isa(Isa::EXEC));
                let changes = |inst: &Inst| exec(inst) || inst.name().contains("saveexec");
                let before = allocated.blocks[block].insts[..i].iter().rposition(changes);
                if let (Some(at), "v_mov_b32") = (before, inst.name()) {
                    refused("other lanes", &|insts| insts[at..=i].rotate_right(1));
                    moved += 1;
                }
            }
        }
    }
    assert!(wrong > 60 && undefined == 40 && moved > 5, "{wrong}, {undefined}, {moved}");
}

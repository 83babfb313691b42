//! One kernel for each operation and each width it takes.
//!
//! Every thread reads its operands from cells of 8 bytes at the first address, does the operation, and writes the results
//! to cells at the second: so the same kernels can be assembled, and executed with any values. The tests of other back ends use them too.

use titan_core::ir::{Elem, Pred};
use titan_core::lane::op::AtomicFn;
use titan_core::lane::{
    Builder, FloatBin, FloatTy, FloatUn, Func, IntBin, IntUn, MmaAtom, Num, NvOp, OpKind, Shuffle, Space, Ty, Value,
    Vote,
};
use titan_core::launch::abi::Slot;

/// A kernel, and what it is a case of.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub kind: OpKind,
    pub args: Vec<Ty>,
    pub func: Func,
}

/// The parameters of every case: operands and results.
pub(crate) const SLOTS: [Slot; 2] = [Slot::Address(0), Slot::Address(1)];

/// Threads of a case's program.
pub(crate) const THREADS: u32 = 64;

/// A builder with the addresses of this thread's operands and results.
pub(crate) fn begin(name: &str, args: usize, results: usize) -> (Builder, Value, Value) {
    let mut b = Builder::new(name, SLOTS.to_vec(), THREADS, 32);
    let (program, threads) = (b.one(OpKind::ProgramId(0), &[]), b.i32(THREADS as i32));
    let (first, thread) = (b.mul(program, threads), b.one(OpKind::ThreadId, &[]));
    let index = b.add(first, thread);
    let mut cell = |slot: u32, n: usize| {
        let (base, bytes) = (b.one(OpKind::Slot(slot), &[]), b.i32(8 * n as i32));
        let offset = b.one(OpKind::MulWide { signed: false }, &[index, bytes]);
        b.add(base, offset)
    };
    let (from, to) = (cell(0, args), cell(1, results));
    (b, from, to)
}

fn bytes(ty: Ty) -> u8 {
    match ty {
        Ty::B16 => 2,
        Ty::Pred | Ty::B32 => 4,
        Ty::B64 => 8,
    }
}

pub(crate) fn load(b: &mut Builder, ty: Ty, from: Value, cell: usize) -> Value {
    let kind = OpKind::Load { space: Space::Global, bytes: bytes(ty), n: 1, offset: 8 * cell as i32, masked: false };
    let value = b.one(kind, &[from]);
    if ty != Ty::Pred {
        return value;
    }
    let zero = b.i32(0);
    b.cmp_u(Pred::Ne, value, zero)
}

pub(crate) fn store(b: &mut Builder, value: Value, to: Value, cell: usize) {
    let ty = b.ty(value);
    let value = if ty == Ty::Pred { b.one(OpKind::FromPred, &[value]) } else { value };
    let kind = OpKind::Store { space: Space::Global, bytes: bytes(ty), n: 1, offset: 8 * cell as i32, masked: false };
    b.op(kind, &[to, value]);
}

/// A case, if the operation takes these operands.
fn case(kind: OpKind, args: &[Ty]) -> Option<Case> {
    // A first try tells the number of results.
    let mut func = None;
    for results in [8, 0] {
        let results = func.as_ref().map_or(results, |f: &(Vec<Ty>, Func)| f.0.len());
        let name = format!("{}_{}", titan_core::lane::mnemonic(&kind), types(args));
        let (mut b, from, to) = begin(&name, args.len(), results);
        let operands: Vec<Value> = (0..args.len()).map(|i| load(&mut b, args[i], from, i)).collect();
        let given = b.op(kind.clone(), &operands);
        for (i, value) in given.iter().enumerate() {
            store(&mut b, *value, to, i);
        }
        b.terminate(OpKind::Return, &[]);
        let tys = given.iter().map(|v| b.ty(*v)).collect();
        func = Some((tys, b.finish().ok()?));
    }
    let (_, func) = func?;
    Some(Case { kind, args: args.to_vec(), func })
}

fn types(args: &[Ty]) -> String {
    args.iter().map(|t| t.name()).collect::<Vec<_>>().join("_")
}

/// The matrix instructions that some target has.
pub(crate) fn atoms() -> Vec<MmaAtom> {
    use Elem::{Bf16, E4m3, E5m2, F16, F32, F64, I8, I32, Tf32, U8};
    let atom = |m, n, k, a, b, acc| MmaAtom { m, n, k, a, b, acc };
    let mut all = vec![atom(8, 8, 4, F64, F64, F64)];
    for half in [F16, Bf16] {
        all.extend([8, 16].map(|k| atom(16, 8, k, half, half, F32)));
    }
    all.extend([4, 8].map(|k| atom(16, 8, k, Tf32, Tf32, F32)));
    for (a, b) in [(I8, I8), (I8, U8), (U8, I8), (U8, U8)] {
        all.extend([16, 32].map(|k| atom(16, 8, k, a, b, I32)));
    }
    for (a, b) in [(E4m3, E4m3), (E4m3, E5m2), (E5m2, E4m3), (E5m2, E5m2)] {
        all.push(atom(16, 8, 32, a, b, F32));
    }
    all
}

/// Operations on registers.
pub(crate) fn registers() -> Vec<Case> {
    let mut all: Vec<(OpKind, Vec<Ty>)> = Vec::new();
    for ty in Ty::ALL.iter().copied() {
        all.push((OpKind::Const(ty, 1), vec![]));
        all.extend(IntBin::ALL.iter().map(|op| (OpKind::Int(*op), vec![ty, ty])));
        if ty == Ty::B64 {
            let shifts = [IntBin::Shl, IntBin::ShrS, IntBin::ShrU];
            all.extend(shifts.map(|op| (OpKind::Int(op), vec![ty, Ty::B32])));
        }
        for signed in [true, false] {
            all.extend(Pred::ALL.iter().map(|pred| (OpKind::IntCmp { pred: *pred, signed }, vec![ty, ty])));
            for from in [8, 16, 32] {
                all.extend([Ty::B32, Ty::B64].map(|to| (OpKind::Extend { from, signed, to }, vec![ty])));
            }
        }
        all.extend([Ty::B16, Ty::B32].map(|to| (OpKind::Truncate(to), vec![ty])));
        all.push((OpKind::Select, vec![Ty::Pred, ty, ty]));
        all.push((OpKind::Pack, vec![ty, ty]));
        all.push((OpKind::Unpack, vec![ty]));
    }
    for signed in [true, false] {
        all.push((OpKind::MulWide { signed }, vec![Ty::B32; 2]));
        all.push((OpKind::UnpackBytes { signed }, vec![Ty::B32]));
    }
    all.extend(IntUn::ALL.iter().map(|op| (OpKind::IntUn(*op), vec![Ty::B32])));
    all.push((OpKind::FromPred, vec![Ty::Pred]));
    all.push((OpKind::Pack, vec![Ty::B32; 4]));
    for ty in FloatTy::ALL.iter().copied() {
        all.extend(FloatBin::ALL.iter().map(|op| (OpKind::Float(*op, ty), vec![ty.ty(); 2])));
        all.extend(FloatUn::ALL.iter().map(|op| (OpKind::FloatUn(*op, ty), vec![ty.ty()])));
        all.extend(Pred::ALL.iter().map(|op| (OpKind::FloatCmp(*op, ty), vec![ty.ty(); 2])));
        all.push((OpKind::Fma(ty), vec![ty.ty(); 3]));
    }
    for from in Num::ALL.iter().copied() {
        for to in Num::ALL.iter().copied() {
            all.extend([1, 2].map(|n| (OpKind::Convert { from, to }, vec![from.ty(); n])));
        }
    }
    all.extend(warp());
    let plain = [OpKind::Slot(0), OpKind::ThreadId, OpKind::LaneId, OpKind::WarpId, OpKind::SharedBase];
    all.extend(plain.map(|kind| (kind, vec![])));
    for axis in 0..3 {
        all.push((OpKind::ProgramId(axis), vec![]));
        all.push((OpKind::NumPrograms(axis), vec![]));
    }
    all.into_iter().filter_map(|(kind, args)| case(kind, &args)).collect()
}

fn warp() -> Vec<(OpKind, Vec<Ty>)> {
    let mut all: Vec<(OpKind, Vec<Ty>)> = Vec::new();
    for shuffle in [Shuffle::Xor(5), Shuffle::Up(3), Shuffle::Lane(7)] {
        all.push((OpKind::Shuffle(shuffle), vec![Ty::B32]));
    }
    all.push((OpKind::Shuffle(Shuffle::Index), vec![Ty::B32; 2]));
    all.extend(Vote::ALL.iter().map(|vote| (OpKind::Vote(*vote), vec![Ty::Pred])));
    for atom in atoms() {
        let regs = atom.registers(32);
        let mut args = vec![regs.operand; regs.a + regs.b];
        args.extend(vec![regs.acc; regs.c]);
        all.push((OpKind::Mma(atom), args));
    }
    all
}

/// Atomics: they act on the thread's first result cell, and what they give goes to the second.
pub(crate) fn atomics() -> Vec<Case> {
    let mut all = Vec::new();
    for space in [Space::Global, Space::Shared] {
        for ty in [Ty::B32, Ty::B64] {
            for op in AtomicFn::ALL.iter().copied() {
                all.extend([false, true].map(|masked| (OpKind::Atomic { op, space, masked }, vec![ty])));
            }
        }
        all.extend([Ty::B16, Ty::B32, Ty::B64].map(|ty| (OpKind::CompareSwap(space), vec![ty, ty])));
    }
    all.into_iter().map(|(kind, args)| atomic(kind, &args)).collect()
}

fn atomic(kind: OpKind, args: &[Ty]) -> Case {
    let name = format!("{}_{}", titan_core::lane::mnemonic(&kind), types(args));
    // The operands, what is there before, and the mask; what is there after, and what the operation gives.
    let (mut b, from, to) = begin(&name, 4, 2);
    let shared = matches!(kind, OpKind::Atomic { space: Space::Shared, .. } | OpKind::CompareSwap(Space::Shared));
    let before = load(&mut b, args[0], from, 2);
    let address = if shared {
        let (base, thread, eight) = (b.one(OpKind::SharedBase, &[]), b.one(OpKind::ThreadId, &[]), b.i32(8));
        let offset = b.mul(thread, eight);
        let address = b.add(base, offset);
        let kind = OpKind::Store { space: Space::Shared, bytes: bytes(args[0]), n: 1, offset: 16, masked: false };
        b.op(kind, &[address, before]);
        b.add_const(address, 16)
    } else {
        store(&mut b, before, to, 0);
        to
    };
    let mut operands = vec![address];
    operands.extend((0..args.len()).map(|i| load(&mut b, args[i], from, i)));
    if matches!(kind, OpKind::Atomic { masked: true, .. }) {
        operands.push(load(&mut b, Ty::Pred, from, 3));
    }
    let given = b.one(kind.clone(), &operands);
    store(&mut b, given, to, 1);
    if shared {
        let kind = OpKind::Load { space: Space::Shared, bytes: bytes(args[0]), n: 1, offset: 0, masked: false };
        let after = b.one(kind, &[address]);
        store(&mut b, after, to, 0);
    }
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands are what atomics take");
    func.shared_bytes = if shared { 16 + 8 * THREADS } else { 0 };
    Case { kind, args: args.to_vec(), func }
}

/// Every width of load and store, masked and not: 16 bytes go from the first to the second address, through shared memory for
/// that space, with the mask from the thread's third operand cell.
pub(crate) fn accesses() -> Vec<Case> {
    let mut all = Vec::new();
    for space in [Space::Global, Space::Shared] {
        for bytes in [1, 2, 4, 8] {
            for n in [1, 2, 4] {
                if bytes * n <= 16 {
                    all.extend([false, true].map(|masked| access(space, bytes, n, masked)));
                }
            }
        }
    }
    all
}

fn access(space: Space, bytes: u8, n: u8, masked: bool) -> Case {
    let kind = OpKind::Load { space, bytes, n, offset: 0, masked };
    let (mut b, from, to) = begin(&titan_core::lane::mnemonic(&kind), 4, 2);
    let mask = masked.then(|| load(&mut b, Ty::Pred, from, 2));
    let ty = if bytes == 2 {
        Ty::B16
    } else if bytes == 8 {
        Ty::B64
    } else {
        Ty::B32
    };
    let other: Vec<Value> = (0..n).map(|i| b.one(OpKind::Const(ty, 3 + u64::from(i)), &[])).collect();
    let read = |b: &mut Builder, space, at, offset| {
        let mut args = vec![at];
        if let Some(mask) = mask {
            args.extend(&other);
            args.push(mask);
        }
        b.op(OpKind::Load { space, bytes, n, offset, masked }, &args)
    };
    let write = |b: &mut Builder, space, at, offset, values: &[Value]| {
        let mut args = vec![at];
        args.extend(values);
        args.extend(mask);
        b.op(OpKind::Store { space, bytes, n, offset, masked }, &args);
    };
    let mut values = read(&mut b, Space::Global, from, 0);
    if space == Space::Shared {
        let (base, thread, size) = (b.one(OpKind::SharedBase, &[]), b.one(OpKind::ThreadId, &[]), b.i32(16));
        let offset = b.mul(thread, size);
        let at = b.add(base, offset);
        write(&mut b, space, at, 32, &values);
        values = read(&mut b, space, at, 32);
    }
    write(&mut b, Space::Global, to, 0, &values);
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands are what accesses take");
    func.shared_bytes = if space == Space::Shared { 32 + 16 * THREADS } else { 0 };
    Case { kind, args: vec![ty; usize::from(n)], func }
}

/// Copies of every size, masked and not, then a barrier; each thread reads what its right neighbour copied.
pub(crate) fn copies() -> Vec<Case> {
    let all = [4, 8, 16].into_iter().flat_map(|bytes| [false, true].map(|masked| (bytes, masked)));
    all.map(|(bytes, masked)| copy(bytes, masked)).collect()
}

fn copy(bytes: u8, masked: bool) -> Case {
    let kind = OpKind::Nv(NvOp::CopyAsync { bytes, offset: 64, masked });
    let (mut b, from, to) = begin(&titan_core::lane::mnemonic(&kind), 4, 2);
    let (base, thread, size) = (b.one(OpKind::SharedBase, &[]), b.one(OpKind::ThreadId, &[]), b.i32(16));
    let offset = b.mul(thread, size);
    let at = b.add(base, offset);
    let mut args = vec![at, from];
    if masked {
        args.push(load(&mut b, Ty::Pred, from, 2));
    }
    b.op(kind.clone(), &args);
    b.op(NvOp::CopyCommit, &[]);
    b.op(NvOp::CopyWait(0), &[]);
    b.op(OpKind::Barrier, &[]);
    let next = b.add_const(thread, 1);
    let last = b.i32(THREADS as i32 - 1);
    let next = b.and(next, last);
    let offset = b.mul(next, size);
    let at = b.add(base, offset);
    let n = bytes / 4;
    let values = b.op(OpKind::Load { space: Space::Shared, bytes: 4, n, offset: 64, masked: false }, &[at]);
    let mut args = vec![to];
    args.extend(values);
    b.op(OpKind::Store { space: Space::Global, bytes: 4, n, offset: 0, masked: false }, &args);
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands are what copies take");
    func.shared_bytes = 64 + 16 * THREADS;
    Case { kind, args: vec![Ty::B64; 2], func }
}

/// Matrices from shared memory: each lane first stores 16 bytes of operands as its row.
pub(crate) fn matrices() -> Vec<Case> {
    let all = [1, 2, 4].into_iter().flat_map(|n| [false, true].map(|transposed| (n, transposed)));
    all.map(|(n, transposed)| matrix(n, transposed)).collect()
}

fn matrix(n: u8, transposed: bool) -> Case {
    let kind = OpKind::Nv(NvOp::LoadMatrix { n, transposed, offset: 0 });
    let (mut b, from, to) = begin(&titan_core::lane::mnemonic(&kind), 2, 2);
    let (base, thread, size) = (b.one(OpKind::SharedBase, &[]), b.one(OpKind::ThreadId, &[]), b.i32(16));
    let offset = b.mul(thread, size);
    let at = b.add(base, offset);
    let row = b.op(OpKind::Load { space: Space::Global, bytes: 8, n: 2, offset: 0, masked: false }, &[from]);
    b.op(OpKind::Store { space: Space::Shared, bytes: 8, n: 2, offset: 0, masked: false }, &[at, row[0], row[1]]);
    b.op(OpKind::Barrier, &[]);
    let mut values = b.op(kind.clone(), &[at]);
    let zero = b.i32(0);
    values.resize(4, zero);
    let mut args = vec![to];
    args.extend(values);
    b.op(OpKind::Store { space: Space::Global, bytes: 4, n: 4, offset: 0, masked: false }, &args);
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands are what matrices take");
    func.shared_bytes = 16 * THREADS;
    Case { kind, args: vec![Ty::B64; 2], func }
}

/// `−x + y` and `|x| + y`, where nothing sees the sign of a NaN.
pub(crate) fn signs() -> Vec<Case> {
    let all = [FloatUn::Neg, FloatUn::Abs].into_iter().flat_map(|un| FloatTy::ALL.iter().map(move |ty| (un, *ty)));
    all.map(|(un, ty)| {
        let kind = OpKind::FloatUn(un, ty);
        let (mut b, from, to) = begin(&format!("{}_add", titan_core::lane::mnemonic(&kind)), 2, 1);
        let (x, y) = (load(&mut b, ty.ty(), from, 0), load(&mut b, ty.ty(), from, 1));
        let x = b.one(kind.clone(), &[x]);
        let sum = b.float(FloatBin::Add, ty, x, y);
        store(&mut b, sum, to, 0);
        b.terminate(OpKind::Return, &[]);
        Case { kind, args: vec![ty.ty(); 2], func: b.finish().expect("well typed") }
    })
    .collect()
}

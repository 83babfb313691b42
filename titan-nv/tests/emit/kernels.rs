//! Whole kernels in lane IR: what the lowering of tiles will make.

use titan_core::ir::{Elem, Pred};
use titan_core::lane::{
    Builder, FloatBin, FloatTy, Func, IntBin, MmaAtom, Num, NvOp, OpKind, Shuffle, Space, Ty, Value,
};
use titan_core::launch::abi::Slot;

fn slot(b: &mut Builder, n: u32) -> Value {
    b.one(OpKind::Slot(n), &[])
}

fn load(space: Space, bytes: u8, n: u8, offset: i32, masked: bool) -> OpKind {
    OpKind::Load { space, bytes, n, offset, masked }
}

fn store(space: Space, bytes: u8, n: u8, offset: i32, masked: bool) -> OpKind {
    OpKind::Store { space, bytes, n, offset, masked }
}

/// `base + index · bytes`, in 64 bits.
fn at(b: &mut Builder, base: Value, index: Value, bytes: i32) -> Value {
    let bytes = b.i32(bytes);
    let offset = b.one(OpKind::MulWide { signed: true }, &[index, bytes]);
    b.add(base, offset)
}

/// `c[i] = a[i] + b[i]`, four `f32` a thread, 128 threads, with masks. Parameters: a, b, c, n.
pub(crate) fn vector_add() -> Func {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Address(2), Slot::Scalar { param: 3, wide: false }];
    let mut b = Builder::new("vector_add::<f32, 512>", slots, 128, 32);
    let (program, thread) = (b.one(OpKind::ProgramId(0), &[]), b.one(OpKind::ThreadId, &[]));
    let (per_program, per_thread) = (b.i32(512), b.i32(4));
    let (first, own) = (b.mul(program, per_program), b.mul(thread, per_thread));
    let index = b.add(first, own);
    let n = slot(&mut b, 3);
    let zero = b.f32(0.0);
    let mut addresses = Vec::new();
    for param in 0..3 {
        let base = slot(&mut b, param);
        addresses.push(at(&mut b, base, index, 4));
    }
    for i in 0..4 {
        let element = b.add_const(index, i);
        let inside = b.cmp_s(Pred::Lt, element, n);
        let offset = 4 * i as i32;
        let x = b.one(load(Space::Global, 4, 1, offset, true), &[addresses[0], zero, inside]);
        let y = b.one(load(Space::Global, 4, 1, offset, true), &[addresses[1], zero, inside]);
        let sum = b.float(FloatBin::Add, FloatTy::F32, x, y);
        b.op(store(Space::Global, 4, 1, offset, true), &[addresses[2], sum, inside]);
    }
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

/// `out[program] = Σ x[program · n ..][..n]`: 256 threads stride over a row; shuffles, shared memory, a barrier.
/// Parameters: x, out, n.
pub(crate) fn row_sum() -> Func {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Scalar { param: 2, wide: false }];
    let mut b = Builder::new("row_sum::<f32>", slots, 256, 32);
    let (program, thread) = (b.one(OpKind::ProgramId(0), &[]), b.one(OpKind::ThreadId, &[]));
    let (x, n) = (slot(&mut b, 0), slot(&mut b, 2));
    let first = b.mul(program, n);
    let row = at(&mut b, x, first, 4);
    let (zero, step, none) = (b.i32(0), b.i32(256), b.f32(0.0));
    // The same number of iterations in all lanes, so that they stay together.
    let (open, i, carried) = b.begin_for([zero, n, step], &[none]);
    let index = b.add(i, thread);
    let inside = b.cmp_s(Pred::Lt, index, n);
    let element = at(&mut b, row, index, 4);
    let value = b.one(load(Space::Global, 4, 1, 0, true), &[element, none, inside]);
    let sum = b.float(FloatBin::Add, FloatTy::F32, carried[0], value);
    b.terminate(OpKind::Continue(0), &[sum]);
    let mut sum = b.end(open)[0];
    sum = warp_sum(&mut b, sum);
    let (base, warp, lane) = (b.one(OpKind::SharedBase, &[]), b.one(OpKind::WarpId, &[]), b.one(OpKind::LaneId, &[]));
    let four = b.i32(4);
    let (of_warp, of_lane) = (b.mul(warp, four), b.mul(lane, four));
    let (to, from) = (b.add(base, of_warp), b.add(base, of_lane));
    let leader = b.cmp_u(Pred::Eq, lane, zero);
    b.op(store(Space::Shared, 4, 1, 0, true), &[to, sum, leader]);
    b.op(OpKind::Barrier, &[]);
    let eight = b.i32(8);
    let has_part = b.cmp_u(Pred::Lt, lane, eight);
    let part = b.one(load(Space::Shared, 4, 1, 0, true), &[from, none, has_part]);
    let total = warp_sum(&mut b, part);
    let is_first = b.cmp_u(Pred::Eq, thread, zero);
    let mut arms = b.begin_if(is_first, &[]);
    let out = slot(&mut b, 1);
    let cell = at(&mut b, out, program, 4);
    b.op(store(Space::Global, 4, 1, 0, false), &[cell, total]);
    b.terminate(OpKind::Yield, &[]);
    b.begin_else(&mut arms);
    b.terminate(OpKind::Yield, &[]);
    b.end(arms);
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("well typed");
    func.shared_bytes = 32;
    func
}

fn warp_sum(b: &mut Builder, value: Value) -> Value {
    let mut sum = value;
    for bits in [16, 8, 4, 2, 1] {
        let other = b.one(OpKind::Shuffle(Shuffle::Xor(bits)), &[sum]);
        sum = b.float(FloatBin::Add, FloatTy::F32, sum, other);
    }
    sum
}

/// `C[m, n] = Σ A[m, k] B[n, k]` on `f16` with `f32` sums: a 64×64 tile a program, 4 warps of 32×32 each, k in steps of 32, two
/// stages in shared memory filled by asynchronous copies, `ldmatrix`, `mma`. Extents are multiples of the tile.
/// Parameters: A, B, C, N, K.
pub(crate) fn matmul() -> Func {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Address(2), Slot::Extent(2, 1), Slot::Extent(0, 1)];
    let mut b = Builder::new("matmul::<f16, 64, 64, 32>", slots, 128, 32);
    let thread = b.one(OpKind::ThreadId, &[]);
    let (warp, lane) = (b.one(OpKind::WarpId, &[]), b.one(OpKind::LaneId, &[]));
    let (pm, pn) = (b.one(OpKind::ProgramId(0), &[]), b.one(OpKind::ProgramId(1), &[]));
    let tile = b.i32(64);
    let (m0, n0) = (b.mul(pm, tile), b.mul(pn, tile));
    let (n, k) = (slot(&mut b, 3), slot(&mut b, 4));
    let base = b.one(OpKind::SharedBase, &[]);
    let copier = Copier::new(&mut b, thread, base, [m0, n0], k);
    // Fragments: addresses of rows in shared memory, 64 bytes each, 16-byte chunks rotated by the row against conflicts.
    let rows = Rows::new(&mut b, warp, lane);
    let zero = b.i32(0);
    copier.copy(&mut b, zero, zero);
    let none = b.f32(0.0);
    let init = vec![none; 32];
    let step = b.i32(32);
    let (open, at_k, acc) = b.begin_for([zero, k, step], &init);
    let next = b.add_const(at_k, 32);
    let more = b.cmp_s(Pred::Lt, next, k);
    let stage = stage_of(&mut b, at_k);
    let other = stage_of(&mut b, next);
    let mut arms = b.begin_if(more, &[]);
    copier.copy(&mut b, next, other);
    b.terminate(OpKind::Yield, &[]);
    b.begin_else(&mut arms);
    b.op(NvOp::CopyCommit, &[]);
    b.terminate(OpKind::Yield, &[]);
    b.end(arms);
    b.op(NvOp::CopyWait(1), &[]);
    b.op(OpKind::Barrier, &[]);
    let acc = rows.multiply(&mut b, base, stage, &acc);
    b.op(OpKind::Barrier, &[]);
    b.terminate(OpKind::Continue(0), &acc);
    let acc = b.end(open);
    rows.store(&mut b, [m0, n0], n, &acc);
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("well typed");
    func.shared_bytes = 2 * STAGE as u32;
    func
}

/// Bytes of a stage: A's 64 rows, then B's, 64 bytes each.
const STAGE: i32 = 2 * 64 * 64;

fn stage_of(b: &mut Builder, k: Value) -> Value {
    let (five, one, size) = (b.i32(5), b.i32(1), b.i32(STAGE));
    let step = b.int(IntBin::ShrU, k, five);
    let parity = b.and(step, one);
    b.mul(parity, size)
}

/// The place of a 16-byte chunk in a tile of rows of 64 bytes.
fn chunk(b: &mut Builder, row: Value, column: Value) -> Value {
    let (one, three, size, sixteen) = (b.i32(1), b.i32(3), b.i32(64), b.i32(16));
    let half = b.int(IntBin::ShrU, row, one);
    let key = b.and(half, three);
    let column = b.int(IntBin::Xor, column, key);
    let (of_row, of_column) = (b.mul(row, size), b.mul(column, sixteen));
    b.add(of_row, of_column)
}

/// What a thread copies: of A and of B two chunks each.
struct Copier {
    to: Vec<Value>,
    from: Vec<Value>,
}

impl Copier {
    fn new(b: &mut Builder, thread: Value, base: Value, origin: [Value; 2], k: Value) -> Copier {
        let (two, three) = (b.i32(2), b.i32(3));
        let (row, column) = (b.int(IntBin::ShrU, thread, two), b.and(thread, three));
        let (mut to, mut from) = (Vec::new(), Vec::new());
        for (operand, first) in origin.into_iter().enumerate() {
            let pointer = slot(b, operand as u32);
            for half in [0, 32] {
                let row = b.add_const(row, half);
                let place = chunk(b, row, column);
                let place = b.add(base, place);
                to.push(b.add_const(place, operand as i64 * i64::from(STAGE) / 2));
                let line = b.add(first, row);
                let start = b.mul(line, k);
                let eight = b.i32(8);
                let own = b.mul(column, eight);
                let element = b.add(start, own);
                from.push(at(b, pointer, element, 2));
            }
        }
        Copier { to, from }
    }

    /// Copies the step of k at `k` to the stage at `stage` and closes the group.
    fn copy(&self, b: &mut Builder, k: Value, stage: Value) {
        for (to, from) in self.to.iter().zip(&self.from) {
            let to = b.add(*to, stage);
            let from = at(b, *from, k, 2);
            b.op(NvOp::CopyAsync { bytes: 16, offset: 0, masked: false }, &[to, from]);
        }
        b.op(NvOp::CopyCommit, &[]);
    }
}

/// Where a lane's fragments lie.
struct Rows {
    /// The warp's first row of A, and of B.
    origin: [Value; 2],
    lane: Value,
}

impl Rows {
    fn new(b: &mut Builder, warp: Value, lane: Value) -> Rows {
        let (one, size) = (b.i32(1), b.i32(32));
        let (down, right) = (b.int(IntBin::ShrU, warp, one), b.and(warp, one));
        Rows { origin: [b.mul(down, size), b.mul(right, size)], lane }
    }

    /// Four 8×8 matrices: rows `row ..` and chunks `column ..` by two bits of the lane.
    fn fragment(&self, b: &mut Builder, base: Value, row: Value, column: i64, across: bool) -> Vec<Value> {
        let (seven, three, one) = (b.i32(7), b.i32(3), b.i32(1));
        let in_matrix = b.and(self.lane, seven);
        let matrix = b.int(IntBin::ShrU, self.lane, three);
        let (low, high) = (b.and(matrix, one), b.int(IntBin::ShrU, matrix, one));
        let (down, right) = if across { (high, low) } else { (low, high) };
        let eight = b.i32(8);
        let down = b.mul(down, eight);
        let row = b.add(row, in_matrix);
        let row = b.add(row, down);
        let column = b.add_const(right, column);
        let place = chunk(b, row, column);
        let address = b.add(base, place);
        b.op(NvOp::LoadMatrix { n: 4, transposed: false, offset: 0 }, &[address])
    }

    /// One step of k: 32 × 32 × 32.
    fn multiply(&self, b: &mut Builder, base: Value, stage: Value, acc: &[Value]) -> Vec<Value> {
        let atom = MmaAtom { m: 16, n: 8, k: 16, a: Elem::F16, b: Elem::F16, acc: Elem::F32 };
        let tile_a = b.add(base, stage);
        let tile_b = b.add_const(tile_a, i64::from(STAGE) / 2);
        let mut acc = acc.to_vec();
        for k in [0, 2] {
            let (mut a, mut columns) = (Vec::new(), Vec::new());
            for i in [0, 16] {
                let row = b.add_const(self.origin[0], i);
                a.push(self.fragment(b, tile_a, row, k, false));
                let row = b.add_const(self.origin[1], i);
                let four = self.fragment(b, tile_b, row, k, true);
                columns.extend([[four[0], four[1]], [four[2], four[3]]]);
            }
            for (i, a) in a.iter().enumerate() {
                for (j, column) in columns.iter().enumerate() {
                    let c = &mut acc[16 * i + 4 * j..][..4];
                    let operands = [a.as_slice(), column, c].concat();
                    let d = b.op(OpKind::Mma(atom), &operands);
                    c.copy_from_slice(&d);
                }
            }
        }
        acc
    }

    fn store(&self, b: &mut Builder, origin: [Value; 2], n: Value, acc: &[Value]) {
        let (two, three) = (b.i32(2), b.i32(3));
        let (row, pair) = (b.int(IntBin::ShrU, self.lane, two), b.and(self.lane, three));
        let column = b.mul(pair, two);
        let pointer = slot(b, 2);
        for (register, value) in (0..).zip(acc.chunks(2)) {
            // Registers: 16 rows, 8 columns, then the two halves of 8 rows.
            let (i, j, half) = (register / 8, register / 2 % 4, register % 2);
            let mut coordinates = [row, column];
            for (axis, extra) in [16 * i + 8 * half, 8 * j].into_iter().enumerate() {
                let inner = b.add_const(coordinates[axis], extra);
                let of_warp = b.add(inner, self.origin[axis]);
                coordinates[axis] = b.add(of_warp, origin[axis]);
            }
            let line = b.mul(coordinates[0], n);
            let element = b.add(line, coordinates[1]);
            let cell = at(b, pointer, element, 4);
            b.op(store(Space::Global, 4, 2, 0, false), &[cell, value[0], value[1]]);
        }
    }
}

/// Divergent loops: for each thread, sums of Collatz lengths with ways out of two loops at once.
///
/// ```text
/// total = 0
/// for i in 0..8:                         // number 1 from inside
///     x = seed[thread] + i
///     steps = 0
///     loop:                              // number 0
///         if x == 1: break
///         if steps == limit: break out of both, giving −1
///         if x is odd: x = 3x + 1, steps += 1, continue
///         x = x / 2, steps += 1
///     if steps is even: continue         // of the outer one: only odd lengths count
///     total += steps
/// out[thread] = total
/// ```
///
/// Parameters: seed, out, limit.
pub(crate) fn collatz() -> Func {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Scalar { param: 2, wide: false }];
    let mut b = Builder::new("collatz", slots, 64, 32);
    let thread = b.one(OpKind::ThreadId, &[]);
    let (seeds, outs, limit) = (slot(&mut b, 0), slot(&mut b, 1), slot(&mut b, 2));
    let cell = at(&mut b, seeds, thread, 4);
    let seed = b.one(load(Space::Global, 4, 1, 0, false), &[cell]);
    let (zero, one, two, three, eight) = (b.i32(0), b.i32(1), b.i32(2), b.i32(3), b.i32(8));
    let (outer, i, total) = b.begin_for([zero, eight, one], &[zero]);
    let first = b.add(seed, i);
    let (inner, carried) = b.begin_loop(&[first, zero], &[Ty::B32]);
    let (x, steps) = (carried[0], carried[1]);
    let done = b.cmp_s(Pred::Eq, x, one);
    when(&mut b, done, OpKind::Break(0), &[steps]);
    let late = b.cmp_s(Pred::Eq, steps, limit);
    let minus = b.i32(-1);
    when(&mut b, late, OpKind::Break(1), &[minus]);
    let next = b.add(steps, one);
    let bit = b.and(x, one);
    let odd = b.cmp_s(Pred::Eq, bit, one);
    let mut arms = b.begin_if(odd, &[]);
    let product = b.mul(x, three);
    let up = b.add(product, one);
    b.terminate(OpKind::Continue(0), &[up, next]);
    b.begin_else(&mut arms);
    b.terminate(OpKind::Yield, &[]);
    b.end(arms);
    let down = b.int(IntBin::DivU, x, two);
    b.terminate(OpKind::Continue(0), &[down, next]);
    let length = b.end(inner)[0];
    let parity = b.and(length, one);
    let even = b.cmp_s(Pred::Eq, parity, zero);
    when(&mut b, even, OpKind::Continue(0), &[total[0]]);
    let sum = b.add(total[0], length);
    b.terminate(OpKind::Continue(0), &[sum]);
    let total = b.end(outer)[0];
    let cell = at(&mut b, outs, thread, 4);
    b.op(store(Space::Global, 4, 1, 0, false), &[cell, total]);
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

/// `if cond { terminator }`.
fn when(b: &mut Builder, cond: Value, kind: OpKind, args: &[Value]) {
    let mut arms = b.begin_if(cond, &[]);
    b.terminate(kind, args);
    b.begin_else(&mut arms);
    b.terminate(OpKind::Yield, &[]);
    b.end(arms);
}

/// Carried values that change places: `(x, y, z) ← (y, z, x)`, `n` times. Parameters: in, out, n.
pub(crate) fn rotate() -> Func {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Scalar { param: 2, wide: false }];
    let mut b = Builder::new("rotate", slots, 32, 32);
    let (from, to, n) = (slot(&mut b, 0), slot(&mut b, 1), slot(&mut b, 2));
    let init = b.op(load(Space::Global, 4, 2, 0, false), &[from]);
    let third = b.one(load(Space::Global, 4, 1, 8, false), &[from]);
    let (zero, one) = (b.i32(0), b.i32(1));
    let (open, _, c) = b.begin_for([zero, n, one], &[init[0], init[1], third]);
    b.terminate(OpKind::Continue(0), &[c[1], c[2], c[0]]);
    let given = b.end(open);
    let thread = b.one(OpKind::ThreadId, &[]);
    let is_first = b.cmp_u(Pred::Eq, thread, zero);
    let skip = b.not(is_first);
    when(&mut b, skip, OpKind::Return, &[]);
    for (offset, value) in [0, 4, 8].into_iter().zip(given) {
        b.op(store(Space::Global, 4, 1, offset, false), &[to, value]);
    }
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

/// Values of every width that change places in pairs, `n` times, and a constant that takes the place of one. The pairs are
/// (a, b) of conditions, 16, 32 and 64 bits. Parameters: in and out, of 8 cells of 8 bytes, n.
pub(crate) fn swap() -> Func {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Scalar { param: 2, wide: false }];
    let mut b = Builder::new("swap", slots, 32, 32);
    let (from, to, n) = (slot(&mut b, 0), slot(&mut b, 1), slot(&mut b, 2));
    let (zero, one) = (b.i32(0), b.i32(1));
    let mut init = Vec::new();
    for (pair, bytes) in [4, 2, 4, 8].into_iter().enumerate() {
        for i in 0..2 {
            let cell = 8 * (2 * pair + i) as i32;
            let value = b.one(load(Space::Global, bytes, 1, cell, false), &[from]);
            init.push(if pair == 0 { b.cmp_s(Pred::Ne, value, zero) } else { value });
        }
    }
    let yes = b.pred(true);
    init.push(yes);
    let (open, _, c) = b.begin_for([zero, n, one], &init);
    let no = b.pred(false);
    b.terminate(OpKind::Continue(0), &[c[1], c[0], c[3], c[2], c[5], c[4], c[7], c[6], no]);
    let given = b.end(open);
    let never = given[8];
    for (i, value) in given.into_iter().take(8).enumerate() {
        let (value, bytes) = match b.ty(value) {
            Ty::Pred => (b.int(IntBin::Xor, value, never), 4),
            Ty::B16 => (value, 2),
            Ty::B32 => (value, 4),
            Ty::B64 => (value, 8),
        };
        let value = if i < 2 { b.one(OpKind::FromPred, &[value]) } else { value };
        b.op(store(Space::Global, bytes, 1, 8 * i as i32, false), &[to, value]);
    }
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

/// How often a loop runs, and the sum of its indices. Parameters: lo, hi, step; the two results.
pub(crate) fn count() -> Func {
    let mut b = Builder::new("count", vec![Slot::Address(0), Slot::Address(1)], 32, 32);
    let (from, to) = (slot(&mut b, 0), slot(&mut b, 1));
    let bounds = b.op(load(Space::Global, 4, 4, 0, false), &[from]);
    let (zero, one) = (b.i32(0), b.i32(1));
    let (open, i, c) = b.begin_for([bounds[0], bounds[1], bounds[2]], &[zero, zero]);
    let (n, sum) = (b.add(c[0], one), b.add(c[1], i));
    b.terminate(OpKind::Continue(0), &[n, sum]);
    let given = b.end(open);
    let thread = b.one(OpKind::ThreadId, &[]);
    let is_first = b.cmp_u(Pred::Eq, thread, zero);
    b.op(store(Space::Global, 4, 2, 0, true), &[to, given[0], given[1], is_first]);
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

/// Four elements of one 8-bit format to `f32`, doubled, and to the other format. Parameters: in and out, one word a thread.
pub(crate) fn bytes() -> Func {
    let mut b = Builder::new("bytes", vec![Slot::Address(0), Slot::Address(1)], 64, 32);
    let (from, to, thread) = (slot(&mut b, 0), slot(&mut b, 1), b.one(OpKind::ThreadId, &[]));
    let (from, to) = (at(&mut b, from, thread, 4), at(&mut b, to, thread, 4));
    let word = b.one(load(Space::Global, 4, 1, 0, false), &[from]);
    let parts = b.op(OpKind::UnpackBytes { signed: false }, &[word]);
    let mut made = Vec::new();
    for pair in parts.chunks(2) {
        let wide = b.op(OpKind::Convert { from: Num::E4m3, to: Num::F32 }, pair);
        let doubled: Vec<Value> = wide.iter().map(|x| b.float(FloatBin::Add, FloatTy::F32, *x, *x)).collect();
        made.extend(b.op(OpKind::Convert { from: Num::F32, to: Num::E5m2 }, &doubled));
    }
    let word = b.one(OpKind::Pack, &made);
    b.op(store(Space::Global, 4, 1, 0, false), &[to, word]);
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

/// Every kernel that every target has.
pub(crate) fn all() -> Vec<Func> {
    vec![vector_add(), row_sum(), matmul(), collatz(), rotate(), swap(), count()]
}

//! tidy: table
//! Operations that the lanes of a warp execute together: shuffles, votes, matrices.

use super::Slot::{Const, In, Ins, Int, Memory, Out, Outs};
use super::{Form, Slot, form};
use titan_core::ir::Elem::{self, Bf16, E4m3, E5m2, F16, F32, F64, I8, I32, Tf32, U8};
use titan_core::lane::Space::Shared;
use titan_core::lane::Ty::{B32, B64, Pred};
use titan_core::lane::{MmaAtom, Vote};

const MOVE: &str = "Data Movement and Conversion Instructions";
const SYNC: &str = "Parallel Synchronization and Communication Instructions";
const MATRIX: &str = "Warp Level Matrix Multiply-Accumulate Instructions";

/// The operands of a shuffle: result, value, lane or distance, clamp and segment, members.
const SHUFFLE: &[Slot] = &[Out(B32), In(B32), Int(B32), Const, Const];

/// Shuffles from the lane whose number differs in the given bits.
pub static SHUFFLE_XOR: Form = form("shfl.sync.bfly.b32", SHUFFLE, MOVE, 60, 30);
/// Shuffles from a lane below, at a distance.
pub static SHUFFLE_UP: Form = form("shfl.sync.up.b32", SHUFFLE, MOVE, 60, 30);
/// Shuffles from the lane with a given number.
pub static SHUFFLE_LANE: Form = form("shfl.sync.idx.b32", SHUFFLE, MOVE, 60, 30);

/// Votes, by their function.
pub static VOTE: &[(Vote, Form)] = &[
    (Vote::Any, form("vote.sync.any.pred", &[Out(Pred), In(Pred), Const], SYNC, 60, 30)),
    (Vote::All, form("vote.sync.all.pred", &[Out(Pred), In(Pred), Const], SYNC, 60, 30)),
];

/// Loads matrices from shared memory, by their number and whether they are transposed.
pub static LOAD_MATRIX: &[((u8, bool), Form)] = &[
    ((1, false), form("ldmatrix.sync.aligned.m8n8.x1.shared.b16", &[Outs(B32, 1), Memory(Shared)], MATRIX, 65, 75)),
    (
        (1, true),
        form("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", &[Outs(B32, 1), Memory(Shared)], MATRIX, 65, 75),
    ),
    ((2, false), form("ldmatrix.sync.aligned.m8n8.x2.shared.b16", &[Outs(B32, 2), Memory(Shared)], MATRIX, 65, 75)),
    (
        (2, true),
        form("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", &[Outs(B32, 2), Memory(Shared)], MATRIX, 65, 75),
    ),
    ((4, false), form("ldmatrix.sync.aligned.m8n8.x4.shared.b16", &[Outs(B32, 4), Memory(Shared)], MATRIX, 65, 75)),
    (
        (4, true),
        form("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", &[Outs(B32, 4), Memory(Shared)], MATRIX, 65, 75),
    ),
];

/// Stores matrices to shared memory, by their number and whether they are transposed.
pub static STORE_MATRIX: &[((u8, bool), Form)] = &[
    ((1, false), form("stmatrix.sync.aligned.m8n8.x1.shared.b16", &[Memory(Shared), Ins(B32, 1)], MATRIX, 78, 90)),
    ((1, true), form("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16", &[Memory(Shared), Ins(B32, 1)], MATRIX, 78, 90)),
    ((2, false), form("stmatrix.sync.aligned.m8n8.x2.shared.b16", &[Memory(Shared), Ins(B32, 2)], MATRIX, 78, 90)),
    ((2, true), form("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16", &[Memory(Shared), Ins(B32, 2)], MATRIX, 78, 90)),
    ((4, false), form("stmatrix.sync.aligned.m8n8.x4.shared.b16", &[Memory(Shared), Ins(B32, 4)], MATRIX, 78, 90)),
    ((4, true), form("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16", &[Memory(Shared), Ins(B32, 4)], MATRIX, 78, 90)),
];

const fn atom(m: u32, n: u32, k: u32, a: Elem, b: Elem, acc: Elem) -> MmaAtom {
    MmaAtom { m, n, k, a, b, acc }
}

/// The registers of D, A, B and C.
const R4421: &[Slot] = &[Outs(B32, 4), Ins(B32, 4), Ins(B32, 2), Ins(B32, 4)];
const R4211: &[Slot] = &[Outs(B32, 4), Ins(B32, 2), Ins(B32, 1), Ins(B32, 4)];
const F64X1: &[Slot] = &[Outs(B64, 2), Ins(B64, 1), Ins(B64, 1), Ins(B64, 2)];

/// MMAs of a warp. "Matrix multiply-accumulate operation using mma instruction": versions by shape and type.
pub static MMA: &[(MmaAtom, Form)] = &[
    (atom(16, 8, 8, F16, F16, F32), form("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", R4211, MATRIX, 65, 75)),
    (atom(16, 8, 16, F16, F16, F32), form("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", R4421, MATRIX, 70, 80)),
    (
        atom(16, 8, 8, Bf16, Bf16, F32),
        form("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", R4211, MATRIX, 70, 80),
    ),
    (
        atom(16, 8, 16, Bf16, Bf16, F32),
        form("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", R4421, MATRIX, 70, 80),
    ),
    (
        atom(16, 8, 4, Tf32, Tf32, F32),
        form("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", R4211, MATRIX, 70, 80),
    ),
    (
        atom(16, 8, 8, Tf32, Tf32, F32),
        form("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", R4421, MATRIX, 70, 80),
    ),
    (atom(16, 8, 16, I8, I8, I32), form("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", R4211, MATRIX, 70, 80)),
    (atom(16, 8, 32, I8, I8, I32), form("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", R4421, MATRIX, 70, 80)),
    (atom(16, 8, 16, I8, U8, I32), form("mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32", R4211, MATRIX, 70, 80)),
    (atom(16, 8, 32, I8, U8, I32), form("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", R4421, MATRIX, 70, 80)),
    (atom(16, 8, 16, U8, I8, I32), form("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32", R4211, MATRIX, 70, 80)),
    (atom(16, 8, 32, U8, I8, I32), form("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32", R4421, MATRIX, 70, 80)),
    (atom(16, 8, 16, U8, U8, I32), form("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32", R4211, MATRIX, 70, 80)),
    (atom(16, 8, 32, U8, U8, I32), form("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32", R4421, MATRIX, 70, 80)),
    (atom(8, 8, 4, F64, F64, F64), form("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", F64X1, MATRIX, 70, 80)),
    (
        atom(16, 8, 32, E4m3, E4m3, F32),
        form("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", R4421, MATRIX, 84, 89),
    ),
    (
        atom(16, 8, 32, E4m3, E5m2, F32),
        form("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", R4421, MATRIX, 84, 89),
    ),
    (
        atom(16, 8, 32, E5m2, E4m3, F32),
        form("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32", R4421, MATRIX, 84, 89),
    ),
    (
        atom(16, 8, 32, E5m2, E5m2, F32),
        form("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", R4421, MATRIX, 84, 89),
    ),
];

/// All rows.
#[must_use]
pub fn all() -> Vec<&'static Form> {
    let mut rows = vec![&SHUFFLE_XOR, &SHUFFLE_UP, &SHUFFLE_LANE];
    rows.extend(VOTE.iter().map(|(_, form)| form));
    rows.extend(LOAD_MATRIX.iter().map(|(_, form)| form));
    rows.extend(STORE_MATRIX.iter().map(|(_, form)| form));
    rows.extend(MMA.iter().map(|(_, form)| form));
    rows
}

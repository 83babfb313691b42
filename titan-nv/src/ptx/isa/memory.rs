//! tidy: table
//! Memory: parameters, loads and stores, atomics, asynchronous copies.

use super::Slot::{Const, In, Ins, Int, Memory, Out, Outs, Param};
use super::{Form, form};
use titan_core::lane::Space::{self, Global, Shared};
use titan_core::lane::Ty::{self, B16, B32, B64};
use titan_core::lane::op::AtomicFn::{self, Add, AddF16x2, AddF32, AddF64, And, Exchange, MaxS, MaxU, MinS, MinU, Or};

const MOVE: &str = "Data Movement and Conversion Instructions";
const ATOMIC_: &str = "Parallel Synchronization and Communication Instructions";
const ASYNC: &str = "Data Movement and Conversion Instructions: Non-bulk copy";

/// Loads of a word parameter, by its size in bytes.
pub static LOAD_PARAM: &[(usize, Form)] = &[
    (4, form("ld.param.b32", &[Out(B32), Param], MOVE, 10, 10)),
    (8, form("ld.param.b64", &[Out(B64), Param], MOVE, 10, 10)),
];

/// Loads, by the memory space, the bytes of an element, and the number of elements. A byte is extended with zeros.
pub static LOAD: &[((Space, u8, u8), Form)] = &[
    ((Global, 1, 1), form("ld.global.b8", &[Out(B32), Memory(Global)], MOVE, 10, 10)),
    ((Global, 1, 2), form("ld.global.v2.b8", &[Outs(B32, 2), Memory(Global)], MOVE, 10, 10)),
    ((Global, 1, 4), form("ld.global.v4.b8", &[Outs(B32, 4), Memory(Global)], MOVE, 10, 10)),
    ((Global, 2, 1), form("ld.global.b16", &[Out(B16), Memory(Global)], MOVE, 10, 10)),
    ((Global, 2, 2), form("ld.global.v2.b16", &[Outs(B16, 2), Memory(Global)], MOVE, 10, 10)),
    ((Global, 2, 4), form("ld.global.v4.b16", &[Outs(B16, 4), Memory(Global)], MOVE, 10, 10)),
    ((Global, 4, 1), form("ld.global.b32", &[Out(B32), Memory(Global)], MOVE, 10, 10)),
    ((Global, 4, 2), form("ld.global.v2.b32", &[Outs(B32, 2), Memory(Global)], MOVE, 10, 10)),
    ((Global, 4, 4), form("ld.global.v4.b32", &[Outs(B32, 4), Memory(Global)], MOVE, 10, 10)),
    ((Global, 8, 1), form("ld.global.b64", &[Out(B64), Memory(Global)], MOVE, 10, 10)),
    ((Global, 8, 2), form("ld.global.v2.b64", &[Outs(B64, 2), Memory(Global)], MOVE, 10, 10)),
    ((Shared, 1, 1), form("ld.shared.b8", &[Out(B32), Memory(Shared)], MOVE, 10, 10)),
    ((Shared, 1, 2), form("ld.shared.v2.b8", &[Outs(B32, 2), Memory(Shared)], MOVE, 10, 10)),
    ((Shared, 1, 4), form("ld.shared.v4.b8", &[Outs(B32, 4), Memory(Shared)], MOVE, 10, 10)),
    ((Shared, 2, 1), form("ld.shared.b16", &[Out(B16), Memory(Shared)], MOVE, 10, 10)),
    ((Shared, 2, 2), form("ld.shared.v2.b16", &[Outs(B16, 2), Memory(Shared)], MOVE, 10, 10)),
    ((Shared, 2, 4), form("ld.shared.v4.b16", &[Outs(B16, 4), Memory(Shared)], MOVE, 10, 10)),
    ((Shared, 4, 1), form("ld.shared.b32", &[Out(B32), Memory(Shared)], MOVE, 10, 10)),
    ((Shared, 4, 2), form("ld.shared.v2.b32", &[Outs(B32, 2), Memory(Shared)], MOVE, 10, 10)),
    ((Shared, 4, 4), form("ld.shared.v4.b32", &[Outs(B32, 4), Memory(Shared)], MOVE, 10, 10)),
    ((Shared, 8, 1), form("ld.shared.b64", &[Out(B64), Memory(Shared)], MOVE, 10, 10)),
    ((Shared, 8, 2), form("ld.shared.v2.b64", &[Outs(B64, 2), Memory(Shared)], MOVE, 10, 10)),
];

/// Stores, by the memory space, the bytes of an element, and the number of elements.
pub static STORE: &[((Space, u8, u8), Form)] = &[
    ((Global, 1, 1), form("st.global.b8", &[Memory(Global), In(B32)], MOVE, 10, 10)),
    ((Global, 1, 2), form("st.global.v2.b8", &[Memory(Global), Ins(B32, 2)], MOVE, 10, 10)),
    ((Global, 1, 4), form("st.global.v4.b8", &[Memory(Global), Ins(B32, 4)], MOVE, 10, 10)),
    ((Global, 2, 1), form("st.global.b16", &[Memory(Global), In(B16)], MOVE, 10, 10)),
    ((Global, 2, 2), form("st.global.v2.b16", &[Memory(Global), Ins(B16, 2)], MOVE, 10, 10)),
    ((Global, 2, 4), form("st.global.v4.b16", &[Memory(Global), Ins(B16, 4)], MOVE, 10, 10)),
    ((Global, 4, 1), form("st.global.b32", &[Memory(Global), In(B32)], MOVE, 10, 10)),
    ((Global, 4, 2), form("st.global.v2.b32", &[Memory(Global), Ins(B32, 2)], MOVE, 10, 10)),
    ((Global, 4, 4), form("st.global.v4.b32", &[Memory(Global), Ins(B32, 4)], MOVE, 10, 10)),
    ((Global, 8, 1), form("st.global.b64", &[Memory(Global), In(B64)], MOVE, 10, 10)),
    ((Global, 8, 2), form("st.global.v2.b64", &[Memory(Global), Ins(B64, 2)], MOVE, 10, 10)),
    ((Shared, 1, 1), form("st.shared.b8", &[Memory(Shared), In(B32)], MOVE, 10, 10)),
    ((Shared, 1, 2), form("st.shared.v2.b8", &[Memory(Shared), Ins(B32, 2)], MOVE, 10, 10)),
    ((Shared, 1, 4), form("st.shared.v4.b8", &[Memory(Shared), Ins(B32, 4)], MOVE, 10, 10)),
    ((Shared, 2, 1), form("st.shared.b16", &[Memory(Shared), In(B16)], MOVE, 10, 10)),
    ((Shared, 2, 2), form("st.shared.v2.b16", &[Memory(Shared), Ins(B16, 2)], MOVE, 10, 10)),
    ((Shared, 2, 4), form("st.shared.v4.b16", &[Memory(Shared), Ins(B16, 4)], MOVE, 10, 10)),
    ((Shared, 4, 1), form("st.shared.b32", &[Memory(Shared), In(B32)], MOVE, 10, 10)),
    ((Shared, 4, 2), form("st.shared.v2.b32", &[Memory(Shared), Ins(B32, 2)], MOVE, 10, 10)),
    ((Shared, 4, 4), form("st.shared.v4.b32", &[Memory(Shared), Ins(B32, 4)], MOVE, 10, 10)),
    ((Shared, 8, 1), form("st.shared.b64", &[Memory(Shared), In(B64)], MOVE, 10, 10)),
    ((Shared, 8, 2), form("st.shared.v2.b64", &[Memory(Shared), Ins(B64, 2)], MOVE, 10, 10)),
];

/// Atomic updates; without a scope they are relaxed, at device scope. `atom.add.f32` on global memory flushes
/// subnormals.
pub static ATOMIC: &[((AtomicFn, Space, Ty), Form)] = &[
    ((Add, Global, B32), form("atom.global.add.u32", &[Out(B32), Memory(Global), Int(B32)], ATOMIC_, 11, 12)),
    ((Add, Global, B64), form("atom.global.add.u64", &[Out(B64), Memory(Global), Int(B64)], ATOMIC_, 12, 12)),
    ((MinS, Global, B32), form("atom.global.min.s32", &[Out(B32), Memory(Global), Int(B32)], ATOMIC_, 11, 12)),
    ((MinS, Global, B64), form("atom.global.min.s64", &[Out(B64), Memory(Global), Int(B64)], ATOMIC_, 31, 32)),
    ((MinU, Global, B32), form("atom.global.min.u32", &[Out(B32), Memory(Global), Int(B32)], ATOMIC_, 11, 12)),
    ((MinU, Global, B64), form("atom.global.min.u64", &[Out(B64), Memory(Global), Int(B64)], ATOMIC_, 31, 32)),
    ((MaxS, Global, B32), form("atom.global.max.s32", &[Out(B32), Memory(Global), Int(B32)], ATOMIC_, 11, 12)),
    ((MaxS, Global, B64), form("atom.global.max.s64", &[Out(B64), Memory(Global), Int(B64)], ATOMIC_, 31, 32)),
    ((MaxU, Global, B32), form("atom.global.max.u32", &[Out(B32), Memory(Global), Int(B32)], ATOMIC_, 11, 12)),
    ((MaxU, Global, B64), form("atom.global.max.u64", &[Out(B64), Memory(Global), Int(B64)], ATOMIC_, 31, 32)),
    ((And, Global, B32), form("atom.global.and.b32", &[Out(B32), Memory(Global), Int(B32)], ATOMIC_, 11, 12)),
    ((And, Global, B64), form("atom.global.and.b64", &[Out(B64), Memory(Global), Int(B64)], ATOMIC_, 31, 32)),
    ((Or, Global, B32), form("atom.global.or.b32", &[Out(B32), Memory(Global), Int(B32)], ATOMIC_, 11, 12)),
    ((Or, Global, B64), form("atom.global.or.b64", &[Out(B64), Memory(Global), Int(B64)], ATOMIC_, 31, 32)),
    ((Exchange, Global, B32), form("atom.global.exch.b32", &[Out(B32), Memory(Global), Int(B32)], ATOMIC_, 11, 12)),
    ((Exchange, Global, B64), form("atom.global.exch.b64", &[Out(B64), Memory(Global), Int(B64)], ATOMIC_, 12, 12)),
    ((AddF32, Global, B32), form("atom.global.add.f32", &[Out(B32), Memory(Global), In(B32)], ATOMIC_, 20, 20)),
    ((AddF64, Global, B64), form("atom.global.add.f64", &[Out(B64), Memory(Global), In(B64)], ATOMIC_, 50, 60)),
    (
        (AddF16x2, Global, B32),
        form("atom.global.add.noftz.f16x2", &[Out(B32), Memory(Global), In(B32)], ATOMIC_, 62, 60),
    ),
    ((Add, Shared, B32), form("atom.shared.add.u32", &[Out(B32), Memory(Shared), Int(B32)], ATOMIC_, 11, 12)),
    ((Add, Shared, B64), form("atom.shared.add.u64", &[Out(B64), Memory(Shared), Int(B64)], ATOMIC_, 20, 20)),
    ((MinS, Shared, B32), form("atom.shared.min.s32", &[Out(B32), Memory(Shared), Int(B32)], ATOMIC_, 11, 12)),
    ((MinS, Shared, B64), form("atom.shared.min.s64", &[Out(B64), Memory(Shared), Int(B64)], ATOMIC_, 31, 32)),
    ((MinU, Shared, B32), form("atom.shared.min.u32", &[Out(B32), Memory(Shared), Int(B32)], ATOMIC_, 11, 12)),
    ((MinU, Shared, B64), form("atom.shared.min.u64", &[Out(B64), Memory(Shared), Int(B64)], ATOMIC_, 31, 32)),
    ((MaxS, Shared, B32), form("atom.shared.max.s32", &[Out(B32), Memory(Shared), Int(B32)], ATOMIC_, 11, 12)),
    ((MaxS, Shared, B64), form("atom.shared.max.s64", &[Out(B64), Memory(Shared), Int(B64)], ATOMIC_, 31, 32)),
    ((MaxU, Shared, B32), form("atom.shared.max.u32", &[Out(B32), Memory(Shared), Int(B32)], ATOMIC_, 11, 12)),
    ((MaxU, Shared, B64), form("atom.shared.max.u64", &[Out(B64), Memory(Shared), Int(B64)], ATOMIC_, 31, 32)),
    ((And, Shared, B32), form("atom.shared.and.b32", &[Out(B32), Memory(Shared), Int(B32)], ATOMIC_, 11, 12)),
    ((And, Shared, B64), form("atom.shared.and.b64", &[Out(B64), Memory(Shared), Int(B64)], ATOMIC_, 31, 32)),
    ((Or, Shared, B32), form("atom.shared.or.b32", &[Out(B32), Memory(Shared), Int(B32)], ATOMIC_, 11, 12)),
    ((Or, Shared, B64), form("atom.shared.or.b64", &[Out(B64), Memory(Shared), Int(B64)], ATOMIC_, 31, 32)),
    ((Exchange, Shared, B32), form("atom.shared.exch.b32", &[Out(B32), Memory(Shared), Int(B32)], ATOMIC_, 11, 12)),
    ((Exchange, Shared, B64), form("atom.shared.exch.b64", &[Out(B64), Memory(Shared), Int(B64)], ATOMIC_, 12, 12)),
    ((AddF32, Shared, B32), form("atom.shared.add.f32", &[Out(B32), Memory(Shared), In(B32)], ATOMIC_, 20, 20)),
    ((AddF64, Shared, B64), form("atom.shared.add.f64", &[Out(B64), Memory(Shared), In(B64)], ATOMIC_, 50, 60)),
    (
        (AddF16x2, Shared, B32),
        form("atom.shared.add.noftz.f16x2", &[Out(B32), Memory(Shared), In(B32)], ATOMIC_, 62, 60),
    ),
];

/// The rows of atomic compare-and-swap.
pub static COMPARE_SWAP: &[((Space, Ty), Form)] = &[
    ((Global, B16), form("atom.global.cas.b16", &[Out(B16), Memory(Global), In(B16), In(B16)], ATOMIC_, 63, 70)),
    ((Global, B32), form("atom.global.cas.b32", &[Out(B32), Memory(Global), Int(B32), Int(B32)], ATOMIC_, 11, 12)),
    ((Global, B64), form("atom.global.cas.b64", &[Out(B64), Memory(Global), Int(B64), Int(B64)], ATOMIC_, 12, 12)),
    ((Shared, B16), form("atom.shared.cas.b16", &[Out(B16), Memory(Shared), In(B16), In(B16)], ATOMIC_, 63, 70)),
    ((Shared, B32), form("atom.shared.cas.b32", &[Out(B32), Memory(Shared), Int(B32), Int(B32)], ATOMIC_, 11, 12)),
    ((Shared, B64), form("atom.shared.cas.b64", &[Out(B64), Memory(Shared), Int(B64), Int(B64)], ATOMIC_, 12, 12)),
];

/// Asynchronous copies, by their size in bytes. Copies of 16 bytes bypass the L1 cache.
pub static COPY: &[(u8, Form)] = &[
    (4, form("cp.async.ca.shared.global", &[Memory(Shared), Memory(Global), Const], ASYNC, 70, 80)),
    (8, form("cp.async.ca.shared.global", &[Memory(Shared), Memory(Global), Const], ASYNC, 70, 80)),
    (16, form("cp.async.cg.shared.global", &[Memory(Shared), Memory(Global), Const], ASYNC, 70, 80)),
];

/// Asynchronous copies that read only a given number of bytes; the others become zero.
pub static COPY_PART: &[(u8, Form)] = &[
    (4, form("cp.async.ca.shared.global", &[Memory(Shared), Memory(Global), Const, Int(B32)], ASYNC, 70, 80)),
    (8, form("cp.async.ca.shared.global", &[Memory(Shared), Memory(Global), Const, Int(B32)], ASYNC, 70, 80)),
    (16, form("cp.async.cg.shared.global", &[Memory(Shared), Memory(Global), Const, Int(B32)], ASYNC, 70, 80)),
];

/// Commits a group of copies.
pub static COPY_COMMIT: Form = form("cp.async.commit_group", &[], ASYNC, 70, 80);
/// Waits until at most this number of groups of copies are in flight.
pub static COPY_WAIT: Form = form("cp.async.wait_group", &[Const], ASYNC, 70, 80);

/// All rows.
#[must_use]
pub fn all() -> Vec<&'static Form> {
    let mut rows = vec![&COPY_COMMIT, &COPY_WAIT];
    rows.extend(LOAD_PARAM.iter().map(|(_, form)| form));
    for table in [LOAD, STORE] {
        rows.extend(table.iter().map(|(_, form)| form));
    }
    rows.extend(ATOMIC.iter().map(|(_, form)| form));
    rows.extend(COMPARE_SWAP.iter().map(|(_, form)| form));
    for table in [COPY, COPY_PART] {
        rows.extend(table.iter().map(|(_, form)| form));
    }
    rows
}

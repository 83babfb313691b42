//! tidy: table
//! Bulk copies of boxes, and the MMAs of warpgroups.
//!
//! `wgmma.mma_async` is `D = A·B + D`: the registers of D are read and written, and a predicate says whether D is read. The forms
//! here negate nothing (`1, 1`).

#![expect(clippy::cast_possible_truncation, reason = "half of N is at most 128")]

use super::Slot::{Box, Const, In, Ins, Int, Memory, Out, Outs, ParamName};
use super::{Form, Slot, form, special};
use crate::machine::Feature;
use titan_core::ir::Elem::{self, Bf16, E4m3, E5m2, F16, F32, I8, I32, Tf32, U8};
use titan_core::lane::Space::{Global, Shared};
use titan_core::lane::Ty::{B16, B32, B64, Pred};

const MOVE: &str = "Data Movement and Conversion Instructions";
const REPLACE: &str = "Data Movement and Conversion Instructions: tensormap.replace";
const BULK: &str = "Data Movement and Conversion Instructions: cp.async.bulk.tensor";
const MBARRIER: &str = "Parallel Synchronization and Communication Instructions: mbarrier";
const FENCE: &str = "Parallel Synchronization and Communication Instructions: membar, fence";
const SYNC: &str = "Parallel Synchronization and Communication Instructions: elect.sync";
const GROUP: &str = "Asynchronous Warpgroup Level Matrix Instructions";
const REGISTERS: &str = "Miscellaneous Instructions: setmaxnreg";

/// The address of a parameter, in its own space.
pub static PARAM_ADDRESS: Form = form("mov.b64", &[Out(B64), ParamName], MOVE, 10, 10);
/// The address of a parameter as a generic address.
pub static PARAM_TO_GENERIC: Form = form("cvta.param.u64", &[Out(B64), In(B64)], MOVE, 77, 70);

/// Makes the tensor map at an address, as of its release, the one that this thread's copies use.
pub static MAP_ACQUIRE: Form =
    form("fence.proxy.tensormap::generic.acquire.gpu", &[Memory(Global), Const], FENCE, 83, 90);
/// Releases the changes of tensor maps by this thread.
pub static MAP_RELEASE: Form = form("fence.proxy.tensormap::generic.release.gpu", &[], FENCE, 83, 90);
/// Replaces the extent of a tensor map along a dimension, counted from the innermost.
pub static REPLACE_EXTENT: Form = special(
    "tensormap.replace.tile.global_dim.global.b1024.b32",
    &[Memory(Global), Const, In(B32)],
    REPLACE,
    83,
    Feature::ReplaceMap,
);

/// One arrival at a barrier, and the number of bytes that the phase expects.
pub static EXPECT: Form =
    form("mbarrier.arrive.expect_tx.shared.b64", &[Out(B64), Memory(Shared), Int(B32)], MBARRIER, 80, 90);
/// Makes initialised mbarriers visible to bulk copies.
pub static INIT_FENCE: Form = form("fence.mbarrier_init.release.cluster", &[], FENCE, 80, 90);
/// Orders generic accesses to shared memory before those of the async proxy by the same program.
pub static PROXY_FENCE: Form = form("fence.proxy.async.shared::cta", &[], FENCE, 80, 90);
/// The same for those of all programs of the cluster.
pub static PROXY_FENCE_CLUSTER: Form = form("fence.proxy.async.shared::cluster", &[], FENCE, 80, 90);
/// Elects one lane of the warp.
pub static ELECT: Form = form("elect.sync _|", &[Out(Pred), Const], SYNC, 80, 90);

const fn load(text: &'static str, slots: &'static [Slot]) -> Form {
    form(text, slots, BULK, 80, 90)
}

/// Bulk copies of a box to shared memory, by the number of axes of the tensor.
pub static BULK_LOAD: &[(u8, Form)] = &[
    (
        1,
        load(
            "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
            &[Memory(Shared), Box(1), Memory(Shared)],
        ),
    ),
    (
        2,
        load(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
            &[Memory(Shared), Box(2), Memory(Shared)],
        ),
    ),
    (
        3,
        load(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
            &[Memory(Shared), Box(3), Memory(Shared)],
        ),
    ),
    (
        4,
        load(
            "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
            &[Memory(Shared), Box(4), Memory(Shared)],
        ),
    ),
    (
        5,
        load(
            "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
            &[Memory(Shared), Box(5), Memory(Shared)],
        ),
    ),
];

/// Bulk copies of a box to several programs of the cluster, whose ranks are the bits of the last operand.
pub static BULK_LOAD_MULTICAST: &[(u8, Form)] = &[
    (
        1,
        load(
            "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
            &[Memory(Shared), Box(1), Memory(Shared), Int(B16)],
        ),
    ),
    (
        2,
        load(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
            &[Memory(Shared), Box(2), Memory(Shared), Int(B16)],
        ),
    ),
    (
        3,
        load(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
            &[Memory(Shared), Box(3), Memory(Shared), Int(B16)],
        ),
    ),
    (
        4,
        load(
            "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
            &[Memory(Shared), Box(4), Memory(Shared), Int(B16)],
        ),
    ),
    (
        5,
        load(
            "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
            &[Memory(Shared), Box(5), Memory(Shared), Int(B16)],
        ),
    ),
];

const fn store(text: &'static str, slots: &'static [Slot]) -> Form {
    form(text, slots, BULK, 80, 90)
}

/// Bulk copies of a box from shared memory, by the number of axes of the tensor.
pub static BULK_STORE: &[(u8, Form)] = &[
    (1, store("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group", &[Box(1), Memory(Shared)])),
    (2, store("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group", &[Box(2), Memory(Shared)])),
    (3, store("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group", &[Box(3), Memory(Shared)])),
    (4, store("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group", &[Box(4), Memory(Shared)])),
    (5, store("cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group", &[Box(5), Memory(Shared)])),
];
/// Commits a group of bulk stores.
pub static BULK_COMMIT: Form = form("cp.async.bulk.commit_group", &[], BULK, 80, 90);
/// Waits until at most this number of groups of bulk stores are in flight.
pub static BULK_WAIT: Form = form("cp.async.bulk.wait_group", &[Const], BULK, 80, 90);
/// Waits until all groups of bulk stores, except at most this number of the latest ones, have read shared memory.
pub static BULK_WAIT_READ: Form = form("cp.async.bulk.wait_group.read", &[Const], BULK, 80, 90);

/// Lowers the number of registers of a thread.
pub static FEWER_REGISTERS: Form =
    special("setmaxnreg.dec.sync.aligned.u32", &[Const], REGISTERS, 80, Feature::SetMaxNReg);
/// Raises the number of registers of a thread.
pub static MORE_REGISTERS: Form =
    special("setmaxnreg.inc.sync.aligned.u32", &[Const], REGISTERS, 80, Feature::SetMaxNReg);

/// Orders register accesses before MMAs.
pub static GROUP_FENCE: Form = special("wgmma.fence.sync.aligned", &[], GROUP, 80, Feature::Wgmma);
/// Commits a group of MMAs.
pub static GROUP_COMMIT: Form = special("wgmma.commit_group.sync.aligned", &[], GROUP, 80, Feature::Wgmma);
/// Waits until at most this number of groups of MMAs are in flight.
pub static GROUP_WAIT: Form = special("wgmma.wait_group.sync.aligned", &[Const], GROUP, 80, Feature::Wgmma);

/// N, the elements of A and B, and whether A is in registers.
pub type Key = (u32, Elem, Elem, bool);

/// The operands of a form: those behind the predicate depend on the elements.
macro_rules! slots {
    (halves, $n:literal, [$($a:expr),*]) => { &[Outs(B32, ($n / 2) as u8), $($a,)* In(B64), In(Pred), Const, Const, Const, Const] };
    (halves_a, $n:literal, [$($a:expr),*]) => { &[Outs(B32, ($n / 2) as u8), $($a,)* In(B64), In(Pred), Const, Const, Const] };
    (floats, $n:literal, [$($a:expr),*]) => { &[Outs(B32, ($n / 2) as u8), $($a,)* In(B64), In(Pred), Const, Const] };
    (integers, $n:literal, [$($a:expr),*]) => { &[Outs(B32, ($n / 2) as u8), $($a,)* In(B64), In(Pred)] };
}

/// The rows of one type: its elements, the name from K on, the operands with A in shared memory and in registers, and every N.
macro_rules! rows {
    (every $a:expr, $b:expr, $behind:literal, $kind:ident, $kind_a:ident) => {
        rows!($a, $b, $behind, $kind, $kind_a,
            8 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128
            136 144 152 160 168 176 184 192 200 208 216 224 232 240 248 256)
    };
    (integers $a:expr, $b:expr, $behind:literal) => {
        rows!($a, $b, $behind, integers, integers, 8 16 24 32 48 64 80 96 112 128 144 160 176 192 208 224 240 256)
    };
    ($a:expr, $b:expr, $behind:literal, $kind:ident, $kind_a:ident, $($n:literal)*) => {
        &[$(
            (
                ($n, $a, $b, false),
                special(
                    concat!("wgmma.mma_async.sync.aligned.m64n", $n, $behind),
                    slots!($kind, $n, [In(B64)]),
                    GROUP,
                    80,
                    Feature::Wgmma,
                ),
            ),
            (
                ($n, $a, $b, true),
                special(
                    concat!("wgmma.mma_async.sync.aligned.m64n", $n, $behind),
                    slots!($kind_a, $n, [Ins(B32, 4)]),
                    GROUP,
                    80,
                    Feature::Wgmma,
                ),
            ),
        )*]
    };
}

static MMA: &[&[(Key, Form)]] = &[
    rows!(every F16, F16, "k16.f32.f16.f16", halves, halves_a),
    rows!(every Bf16, Bf16, "k16.f32.bf16.bf16", halves, halves_a),
    rows!(every Tf32, Tf32, "k8.f32.tf32.tf32", floats, floats),
    rows!(every E4m3, E4m3, "k32.f32.e4m3.e4m3", floats, floats),
    rows!(every E4m3, E5m2, "k32.f32.e4m3.e5m2", floats, floats),
    rows!(every E5m2, E4m3, "k32.f32.e5m2.e4m3", floats, floats),
    rows!(every E5m2, E5m2, "k32.f32.e5m2.e5m2", floats, floats),
    rows!(integers I8, I8, "k32.s32.s8.s8"),
    rows!(integers I8, U8, "k32.s32.s8.u8"),
    rows!(integers U8, I8, "k32.s32.u8.s8"),
    rows!(integers U8, U8, "k32.s32.u8.u8"),
];

/// The MMA of a warpgroup of these elements, extents and operands.
#[must_use]
pub fn mma(key: Key) -> Option<&'static Form> {
    MMA.iter().flat_map(|rows| rows.iter()).find(|(k, _)| *k == key).map(|(_, form)| form)
}

/// The type of accumulators for this type of operands.
#[must_use]
pub const fn accumulators(a: Elem) -> Elem {
    if matches!(a, I8 | U8) { I32 } else { F32 }
}

/// Whether there is an MMA for these elements and N.
#[must_use]
pub fn has(a: Elem, b: Elem, n: u32) -> bool {
    mma((n, a, b, false)).is_some()
}

/// All rows.
#[must_use]
pub fn all() -> Vec<&'static Form> {
    let mut rows = vec![
        &PARAM_ADDRESS,
        &PARAM_TO_GENERIC,
        &MAP_ACQUIRE,
        &MAP_RELEASE,
        &REPLACE_EXTENT,
        &EXPECT,
        &INIT_FENCE,
        &PROXY_FENCE,
        &PROXY_FENCE_CLUSTER,
        &ELECT,
        &BULK_COMMIT,
        &BULK_WAIT,
        &BULK_WAIT_READ,
        &FEWER_REGISTERS,
        &MORE_REGISTERS,
        &GROUP_FENCE,
        &GROUP_COMMIT,
        &GROUP_WAIT,
    ];
    rows.extend(BULK_LOAD.iter().chain(BULK_LOAD_MULTICAST).chain(BULK_STORE).map(|(_, form)| form));
    rows.extend(MMA.iter().flat_map(|rows| rows.iter()).map(|(_, form)| form));
    rows
}

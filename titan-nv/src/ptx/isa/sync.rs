//! tidy: table
//! Barriers, mbarriers, and accesses with acquire or release.
//!
//! `mbarrier.arrive` is `.release` and waits are `.acquire` at `.cta` scope unless stated otherwise. Where the manual
//! has a spelling `.shared::cta`, which was added later, `.shared` means the same.

use super::Slot::{Const, In, Int, Memory, Out};
use super::{Form, form};
use titan_core::lane::Space::Shared;
use titan_core::lane::Ty::{B32, B64, Pred};

const MOVE: &str = "Data Movement and Conversion Instructions: ld, st";
const BAR: &str = "Parallel Synchronization and Communication Instructions: bar, barrier";
const CLUSTER: &str = "Parallel Synchronization and Communication Instructions: barrier.cluster";
const MAPA: &str = "Data Movement and Conversion Instructions: mapa";
const BAR_WARP: &str = "Parallel Synchronization and Communication Instructions: bar.warp.sync";
const MBARRIER: &str = "Parallel Synchronization and Communication Instructions: mbarrier";

/// The barrier of all threads of the program.
pub static BARRIER: Form = form("bar.sync", &[Const], BAR, 10, 10);
/// A numbered barrier of a number of threads, which is a multiple of the warp size.
pub static BARRIER_SOME: Form = form("bar.sync", &[Const, Const], BAR, 20, 20);
/// Arrives at a numbered barrier without waiting.
pub static BARRIER_ARRIVE: Form = form("bar.arrive", &[Const, Const], BAR, 20, 20);
/// The barrier of the warp's lanes in a mask.
pub static BARRIER_WARP: Form = form("bar.warp.sync", &[Const], BAR_WARP, 60, 30);

/// Initializes an mbarrier with an arrival count.
pub static INIT: Form = form("mbarrier.init.shared.b64", &[Memory(Shared), Int(B32)], MBARRIER, 70, 80);
/// Invalidates an mbarrier.
pub static INVALIDATE: Form = form("mbarrier.inval.shared.b64", &[Memory(Shared)], MBARRIER, 70, 80);
/// One arrival at an mbarrier; returns the state.
pub static ARRIVE: Form = form("mbarrier.arrive.shared.b64", &[Out(B64), Memory(Shared)], MBARRIER, 70, 80);
/// Several arrivals at an mbarrier. "Support for count argument without the modifier .noComplete".
pub static ARRIVE_MANY: Form =
    form("mbarrier.arrive.shared::cta.b64", &[Out(B64), Memory(Shared), Int(B32)], MBARRIER, 78, 90);
/// Arrives at an mbarrier when the thread's copies are complete.
pub static COPY_ARRIVE: Form = form("cp.async.mbarrier.arrive.noinc.shared.b64", &[Memory(Shared)], MBARRIER, 70, 80);
/// Tests whether a phase is complete.
pub static TEST_WAIT: Form =
    form("mbarrier.test_wait.parity.shared.b64", &[Out(Pred), Memory(Shared), Int(B32)], MBARRIER, 71, 80);
/// Tests whether a phase is complete; may suspend the thread for some time.
pub static TRY_WAIT: Form =
    form("mbarrier.try_wait.parity.shared.b64", &[Out(Pred), Memory(Shared), Int(B32)], MBARRIER, 78, 90);

/// The address in the cluster that corresponds to a shared address, in the program of a given rank.
pub static MAP: Form = form("mapa.shared::cluster.u32", &[Out(B32), In(B32), Int(B32)], MAPA, 78, 90);
/// One arrival at a barrier of any program of the cluster, without a result. The scope is omitted: with `.cluster`, ptxas 12.9 inserts
/// a device-wide fence before it, for memory that the thread has written; here it has only read, by MMAs that are complete.
pub static ARRIVE_CLUSTER: Form = form("mbarrier.arrive.shared::cluster.b64 _,", &[Memory(Shared)], MBARRIER, 80, 90);
/// Arrives at the barrier of the cluster.
pub static CLUSTER_ARRIVE: Form = form("barrier.cluster.arrive", &[], CLUSTER, 78, 90);
/// Waits at the barrier of the cluster.
pub static CLUSTER_WAIT: Form = form("barrier.cluster.wait", &[], CLUSTER, 78, 90);

/// Stores a word to shared memory, with release semantics.
pub static STORE_RELEASE: Form = form("st.release.cta.shared.b32", &[Memory(Shared), In(B32)], MOVE, 60, 70);
/// Loads a word from shared memory, with acquire semantics.
pub static LOAD_ACQUIRE: Form = form("ld.acquire.cta.shared.b32", &[Out(B32), Memory(Shared)], MOVE, 60, 70);

/// All rows.
#[must_use]
pub fn all() -> Vec<&'static Form> {
    vec![
        &BARRIER,
        &BARRIER_SOME,
        &BARRIER_ARRIVE,
        &BARRIER_WARP,
        &INIT,
        &INVALIDATE,
        &ARRIVE,
        &ARRIVE_MANY,
        &COPY_ARRIVE,
        &TEST_WAIT,
        &TRY_WAIT,
        &STORE_RELEASE,
        &LOAD_ACQUIRE,
        &MAP,
        &ARRIVE_CLUSTER,
        &CLUSTER_ARRIVE,
        &CLUSTER_WAIT,
    ]
}

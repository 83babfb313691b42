//! The simulator: executes pipelines and barrier-level programs on the engine, with data, and reports the errors of a run.
//!
//! It is the abstract machine that a kernel is written for, before any target has lowered it: roles are threads of control; copies,
//! MMAs and stores are asynchronous; rings are barriers with phases. What is nondeterministic on hardware is a choice here, made by
//! [`Options`]: which role runs next ([`Options::seed`]), and when asynchronous operations complete ([`Options::completion`]). Every
//! run can be reproduced from its [`Schedule`]. `explore` tries all of them.
//!
//! It runs every [`WellFormed`] kernel, including those that the verifier refuses, to show what such a kernel would do. What it
//! does not model is a [`Finding`] of its own kind, never ignored.
//!
//! | file | part |
//! |---|---|
//! | `plan` | facts known before the run: the addresses of rings, their readers |
//! | `state`, `machine`, `control`, `wait` | agents, one operation at a time, control flow; what an agent waits for |
//! | `ring`, `ledger`, `stage` | operations on rings, the contents of their slots, operations on stages |
//! | `laid`, `group` | laid-out kernels: warps as agents, and which elements of a tile each holds; bulk copies of tiles, MMAs of warpgroups |
//! | `barrier_ops`, `mbarrier`, `join` | operations of the barrier dialect |
//! | `tcgen05` | operations on tensor memory |
//! | `memory`, `indexed`, `access`, `work` | loads and stores; conflicts with operations in flight; effects of those operations |
//! | `tensor`, `store` | arguments, shared memory, and their contents |
//! | `eval`, `arith`, `value` | the results of operations |
//! | `run`, `watch`, `grid`, `trace` | schedules and observers of one run; accesses of programs of other clusters; the activity timeline |
//! | `explore` | the model checker |
//!
//! Deliberately absent: cycles, layouts, banks and descriptors (a target's).

mod access;
mod arith;
mod barrier_ops;
mod control;
mod copied;
mod eval;
pub mod explore;
mod finding;
mod grid;
mod group;
mod indexed;
mod join;
mod laid;
mod ledger;
mod machine;
mod mbarrier;
mod memory;
mod plan;
mod ring;
mod run;
mod stage;
mod state;
mod store;
mod tcgen05;
mod tensor;
mod trace;
mod value;
mod wait;
mod watch;
mod work;

pub use explore::{Explored, Few, Limits, Verdict, explore};
pub use finding::{Choice, Finding, Kind, Schedule, Side};
pub use plan::{
    BULK_LOAD, BULK_STORE, BULK_WRITE, CP_ASYNC, LGKMCNT, RING_COPY, TENSOR_COMMIT, TENSOR_COPY, TENSOR_LOAD,
    TENSOR_MMA, TENSOR_SHIFT, TENSOR_STORE, VMCNT, WGMMA,
};
pub use run::{replay, run};
pub use trace::Interval;

use crate::engine::Completion;
use titan_core::ir::{Const, Elem};
use titan_core::verify::WellFormed;

/// The options of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The policy that decides when asynchronous operations complete.
    pub completion: Completion,
    /// The seed by which roles are interleaved at random; `None`: in turn, and each role runs until it blocks or ends.
    pub seed: Option<u64>,
    /// Whether the sanitizer observes the run: unordered accesses are then found in every run in which they occur.
    pub sanitize: bool,
    /// Whether the sanitizer also reports reads through one proxy after reads through another without a fence.
    pub strict: bool,
    /// The number of programs of a cluster, along axis 0.
    pub cluster: Option<u32>,
    /// Whether tiles are computed. If not, only the synchronization runs, and control flow that depends on data is a finding.
    pub data: bool,
    /// The largest number of operations, of all programs together.
    pub max_steps: u64,
    /// Whether to record the activity timeline.
    pub trace: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            completion: Completion::Late,
            seed: None,
            sanitize: true,
            strict: false,
            cluster: None,
            data: true,
            max_steps: 100_000_000,
            trace: false,
        }
    }
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// A scalar with this value.
    Scalar(Const),
    /// A tensor, whose bytes the run replaces by their final contents.
    Tensor {
        /// The element type.
        elem: Elem,
        /// The extent of each axis.
        shape: Vec<i64>,
        /// The stride of each axis, in elements.
        strides: Vec<i64>,
        /// The elements, little-endian; of two 4-bit elements in a byte, the one with the lower index is in the low half.
        bytes: Vec<u8>,
    },
    /// The value `None` of an optional tensor.
    Absent,
}

impl Arg {
    /// A contiguous tensor in row-major order.
    #[must_use]
    pub fn dense(elem: Elem, shape: &[i64], bytes: Vec<u8>) -> Arg {
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        Arg::Tensor { elem, shape: shape.to_vec(), strides, bytes }
    }
}

/// The statistics of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The number of programs that ran.
    pub programs: u64,
    /// The number of operations of the IR that were executed.
    pub steps: u64,
    /// The number of asynchronous operations that were started.
    pub issued: u64,
    /// The largest number of times that slots of one ring were acquired.
    pub times: u64,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The errors that were found; a run ends with the first.
    pub findings: Vec<Finding>,
    /// The schedule of the last cluster that ran.
    pub schedule: Schedule,
    /// The statistics of the run.
    pub statistics: Statistics,
    /// The activity timeline of the last cluster, if [`Options::trace`].
    pub trace: Vec<Interval>,
    /// The lines that the kernel printed.
    pub printed: Vec<String>,
    /// Whether the schedule to be replayed has choices that are impossible in this run, because it belongs to another kernel or
    /// other arguments.
    pub strayed: bool,
}

/// The kernels that can be run: all that are well formed, verified or not.
pub type Kernel = WellFormed;

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
mod tensor;
mod trace;
mod value;
mod wait;
mod watch;
mod work;

pub use explore::{Explored, Few, Limits, Verdict, explore};
pub use finding::{Choice, Finding, Kind, Schedule, Side};
pub use plan::{BULK_LOAD, BULK_STORE, BULK_WRITE, CP_ASYNC, LGKMCNT, RING_COPY, VMCNT, WGMMA};
pub use run::{replay, run};
pub use trace::Interval;

use crate::engine::Completion;
use titan_core::ir::{Const, Elem};
use titan_core::verify::WellFormed;

/// How to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// When asynchronous operations complete.
    pub completion: Completion,
    /// Roles interleave at random by this seed; `None`: in turn, each as long as it can.
    pub seed: Option<u64>,
    /// Whether an observer of order watches: accesses that nothing orders are found in every run in which they occur.
    pub sanitize: bool,
    /// Whether it also reports reads after reads through another proxy without a fence.
    pub strict: bool,
    /// How many programs a cluster has, along axis 0.
    pub cluster: Option<u32>,
    /// Whether tiles are computed. Without, only the protocol runs; what depends on data is a finding.
    pub data: bool,
    /// The greatest number of operations, of all programs together.
    pub max_steps: u64,
    /// Whether to record who was busy when.
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

/// An argument of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// A scalar.
    Scalar(Const),
    /// A tensor, whose bytes are replaced by what the run makes of them.
    Tensor {
        /// The element type.
        elem: Elem,
        /// One per axis.
        shape: Vec<i64>,
        /// One per axis, in elements.
        strides: Vec<i64>,
        /// The elements, little-endian, the lower index of two 4-bit ones in the low nibble.
        bytes: Vec<u8>,
    },
    /// `None` for an optional tensor.
    Absent,
}

impl Arg {
    /// A tensor in row-major order.
    #[must_use]
    pub fn dense(elem: Elem, shape: &[i64], bytes: Vec<u8>) -> Arg {
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        Arg::Tensor { elem, shape: shape.to_vec(), strides, bytes }
    }
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Programs that ran.
    pub programs: u64,
    /// Operations of the IR.
    pub steps: u64,
    /// Asynchronous operations that were started.
    pub issued: u64,
    /// The most times of a ring that were acquired.
    pub times: u64,
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// What is wrong; a run ends with the first.
    pub findings: Vec<Finding>,
    /// The schedule of the last cluster that ran.
    pub schedule: Schedule,
    /// Counts.
    pub statistics: Statistics,
    /// Who was busy when, of the last cluster, if [`Options::trace`].
    pub trace: Vec<Interval>,
    /// What the kernel printed.
    pub printed: Vec<String>,
    /// Whether the schedule that was to be replayed has choices that this run does not have: it is one of another kernel, or
    /// of other arguments.
    pub strayed: bool,
}

/// The kernel that runs: anything that is well formed.
pub type Kernel = WellFormed;

//! Lowering from tile IR to lane IR: the only place that defines what each thread executes for a tile operation.
//!
//! A tile becomes as many values as its layout assigns to a thread. Elementwise operations act on each; the rest is in these modules:
//!
//! | module | lowers |
//! |---|---|
//! | [`scalar`] | arithmetic, functions and conversions of one element |
//! | `tile` | lowered values, flexible tiles, elementwise operations |
//! | `coords` | coordinates of the elements that a thread holds |
//! | `vector` | packing of elements to words of memory |
//! | `tensor` | parameters and views |
//! | `global` | loads and stores of tiles |
//! | `staging` | loads to shared memory |
//! | `barrier` | regions, mbarriers, commit groups, roles |
//! | `indexed` | single elements, gathers, scatters |
//! | `packed` | 4-bit elements |
//! | `atomic` | atomic updates |
//! | `convert` | conversions between layouts |
//! | `shape` | reshape, transpose, interleave, split |
//! | `reduce`, `scan` | reductions and scans across registers and lanes |
//! | `mma`, `fragment` | MMAs |
//! | `group` | bulk copies, MMAs of warpgroups |
//! | `maker` | tables of tensor maps, and the kernel that makes them |
//! | `local` | operations of laid-out kernels |
//! | `control` | loops and branches |
//! | `distribute` | linear indices and ragged outputs |
//! | `program` | the index of a program |
//! | `report` | traps and prints |
//!
//! After that, shared memory is allocated, barriers are checked, dead code is eliminated, and the function is verified.
//!
//! Deliberately absent: the overlap of copies and MMAs, which the schedule decides; instructions, which the back ends select.

mod atomic;
mod barrier;
mod buffered;
mod control;
mod convert;
mod coords;
mod distribute;
mod fragment;
mod global;
mod group;
mod indexed;
mod local;
mod maker;
mod mma;
mod packed;
mod program;
mod reduce;
mod report;
pub mod scalar;
mod scan;
mod shape;
mod staging;
mod tensor;
mod tile;
mod vector;

use crate::analysis::uses::Tree;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Kernel, LaidOut, Loc, OpId, Value};
use crate::lane::{self, Builder, Func};
use crate::launch::abi;
use crate::launch::report::Site;
pub use crate::plan::LowerError;
use crate::target::{Banks, Target};
use tile::LoweredValue;

/// A value of the lane IR: a register of a thread.
type Reg = lane::Value;

/// A lowered kernel.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The function that each thread executes.
    pub func: Func,
    /// The operations that may trap or print, by their number in reports.
    pub sites: Vec<Site>,
    /// The number of barriers in it.
    pub barriers: usize,
    /// The maximum degree of bank conflicts in shared memory, for each line of the kernel.
    pub conflicts: Vec<(Loc, u32)>,
    /// The tensors of which tiles of these extents are loaded by offsets of 31 bits.
    pub reaches: Vec<(u32, Vec<u32>)>,
    /// The tensors and their axes along which rows are taken not to overlap, and how many of them to lie within 2³¹ bytes.
    pub apart: Vec<(u32, u32, u32)>,
}

/// Lowers a barrier program: a laid-out kernel whose rings were lowered to barriers.
///
/// # Errors
/// Returns an error if the target does not support an operation or has too little shared memory.
pub fn lower(kernel: &Kernel, target: &Target) -> Result<Lowered, LowerError> {
    let Some(laid) = kernel.laid_out.as_deref() else {
        return Err(LowerError::internal(kernel, "a kernel that is not laid out".to_owned()));
    };
    let mut run = Lower::new(kernel, laid, target);
    run.parameters();
    run.block(kernel.body)?;
    let Lower { b, sites, tables, reaches, apart, .. } = run;
    let internal = |message: String| LowerError::internal(kernel, message);
    let mut func = b.finish().map_err(|e| internal(e.to_string()))?;
    func.cluster = laid.cluster;
    lane::shared::place(&mut func);
    let is_barrier =
        |op: &&lane::Op| matches!(op.kind, lane::OpKind::Barrier | lane::OpKind::Nv(lane::NvOp::NamedBarrier { .. }));
    let barriers = func.ops.iter().filter(is_barrier).count();
    if let Some(at) = lane::hazard::check(&mut func) {
        return Err(internal(format!("conflicting accesses of threads without a barrier: {at}")));
    }
    lane::scale(&mut func);
    lane::eliminate_dead(&mut func);
    func.maker = maker::maker(kernel, laid, target, (&func, &tables))?.map(Box::new);
    lane::verify(&func).map_err(|e| internal(e.to_string()))?;
    let conflicts = conflicts(&func, &target.banks);
    Ok(Lowered {
        func,
        sites,
        barriers,
        conflicts,
        reaches: reaches.into_iter().collect(),
        apart: apart.into_iter().collect(),
    })
}

/// The maximum degree of bank conflicts in shared memory, for each line.
fn conflicts(func: &Func, banks: &Banks) -> Vec<(Loc, u32)> {
    let mut worst: SortedMap<u32, (Loc, u32)> = SortedMap::new();
    for conflict in lane::banks::conflicts(func, banks) {
        let loc = func.op(conflict.op).loc;
        let most = worst.entry(loc.line).or_insert((loc, 0));
        if conflict.degree > most.1 {
            *most = (loc, conflict.degree);
        }
    }
    worst.into_values().collect()
}

/// The warps that execute the same code: those of the program, or of a role.
#[derive(Clone, Copy, Debug)]
struct WarpSet {
    first: u32,
    warps: u32,
    role: Option<usize>,
}

/// The lowering of one kernel.
struct Lower<'a> {
    k: &'a Kernel,
    laid: &'a LaidOut,
    target: &'a Target,
    b: Builder,
    /// The lowered form of each value of the tile IR.
    lowered: Vec<Option<LoweredValue>>,
    sites: Vec<Site>,
    tree: Tree,
    /// The operation that is being lowered.
    at: Option<OpId>,
    /// Regions that are accessed by several roles.
    joined: SortedSet<Value>,
    /// The warp set that executes the current code.
    warp_set: WarpSet,
    /// Whether only one elected thread of the warp set executes the current code.
    elected: bool,
    /// The tables of tensor maps, by their number.
    tables: Vec<maker::Table>,
    /// Whether this is the thread that starts the bulk copies of the current role, whose other threads execute its code too.
    copying: Option<Reg>,
    /// The number of dies for which programs are numbered.
    dies: u32,
    /// What copies through registers have loaded and not stored yet.
    held: Vec<staging::Held>,
    /// As [`Lowered::reaches`].
    reaches: SortedSet<(u32, Vec<u32>)>,
    /// As [`Lowered::apart`].
    apart: SortedSet<(u32, u32, u32)>,
}

impl<'a> Lower<'a> {
    fn new(kernel: &'a Kernel, laid: &'a LaidOut, target: &'a Target) -> Self {
        let slots = abi::slots(&kernel.sig);
        let b = Builder::new(&kernel.sig.full_name(), slots, laid.warps * laid.lanes, laid.lanes);
        Lower {
            k: kernel,
            laid,
            target,
            b,
            lowered: vec![None; kernel.values.len()],
            sites: Vec::new(),
            tree: Tree::new(kernel),
            at: None,
            joined: barrier::joined(kernel),
            warp_set: WarpSet { first: 0, warps: laid.warps, role: None },
            elected: false,
            tables: Vec::new(),
            copying: None,
            dies: program::dies(kernel, target, laid.cluster),
            held: Vec::new(),
            reaches: SortedSet::new(),
            apart: SortedSet::new(),
        }
    }

    /// The error that the target does not support something, at the current operation.
    fn unsupported(&self, what: impl Into<String>) -> LowerError {
        LowerError::unsupported(self.k, self.at, self.target.name, &what.into())
    }
}

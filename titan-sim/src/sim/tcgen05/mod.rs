//! Operations on tensor memory (`ttg.nv.tcgen05`).
//!
//! Each program has a tensor memory of 128 lanes and 512 columns. Accesses are modelled by columns, over all lanes: a load or store of a
//! role is that of all its warps. All accesses but the release of columns are asynchronous.
//!
//! | file | part |
//! |---|---|
//! | `allocate` | columns: allocation, release, and the pairs of programs that do this together |
//! | `memory` | the columns and bytes that an operation accesses |
//! | `order` | the classes of operations, and which of them are executed in order |
//! | `effect` | which columns hold a value |
//!
//! *Loads and stores* are in commit groups of two classes of their own; `wait_ld` and `wait_st` commit such a group and wait for all. *MMAs,
//! copies and shifts* complete before the commits that come after them, and in any order but that of the pairs of the manual. A *commit* is
//! an operation in flight that arrives at its barrier. *Fences* are events for the sanitizer alone: without them, barriers order nothing
//! here.
//!
//! Operations of two blocks (`cta_group = 2`) access the memories of both programs of a pair: those whose ranks differ in the last bit.
//!
//! Sources: PTX ISA, "tcgen05", its issue granularity, access restrictions, memory consistency model, and pipelined instructions.
//!
//! Deliberately absent: the values of elements (loads have no results, and regions no contents), lanes, the row that a shift leaves
//! unspecified, laid-out kernels (nothing is lowered to these operations).

mod allocate;
mod effect;
mod memory;
mod order;

pub(super) use allocate::{Allocations, Columns};
pub(super) use effect::Accessed;
pub(super) use memory::COLUMN;
use order::in_order;
pub(super) use order::{MmaUnit, is_tracked as is_pipelined, pipelined, tracked, units};

use super::finding::{Found, Kind};
use super::machine::{Machine, Obs};
use super::plan::{TENSOR_COMMIT, TENSOR_LOAD, TENSOR_STORE};
use super::state::Moved;
use super::work::{Effect, Res, Work};
use crate::engine::{Agent, Class, Event, Place, Signal, SyncSide};
use titan_core::ir::op_table::mnemonic;
use titan_core::ir::{BarrierTy, Kernel, NoMma, NvOp, Op, OpId, OpKind, Tcgen05Op, TensorShape, Ty};

/// The number of warps that together access all lanes.
const QUARTERS: u32 = 4;

/// Whether a kernel has operations on tensor memory.
pub(super) fn is_used(kernel: &Kernel) -> bool {
    kernel.ops.iter().any(|op| matches!(op.kind, OpKind::Nv(NvOp::Tcgen05(_))))
}

impl Machine<'_> {
    /// Executes an operation on tensor memory.
    pub(super) fn tcgen05(&mut self, agent: usize, id: OpId, op: &Op, what: Tcgen05Op, obs: Obs<'_, '_>) -> Res<Moved> {
        if self.kernel().laid_out.is_some() {
            return Err(Found::not_modelled(format_args!("`{}` of single warps", mnemonic(&op.kind))));
        }
        self.check_participants(agent, op, &what)?;
        match what {
            Tcgen05Op::Alloc { columns, cta_group } => {
                return self.allocate(agent, id, op, (columns, cta_group), obs);
            }
            Tcgen05Op::Dealloc { cta_group } => return self.free(agent, id, op, cta_group, obs),
            Tcgen05Op::Relinquish { cta_group } => return self.relinquish(agent, id, cta_group, obs),
            Tcgen05Op::Mma(mma) => {
                let in_tensor_memory = op.args.get(1).map(|a| self.kernel().ty(*a));
                match mma.check(in_tensor_memory == Some(Ty::Barrier(BarrierTy::TensorMemory))) {
                    Ok(()) => {}
                    Err(NoMma::Attributes(title) | NoMma::Shape(title)) => {
                        return Err(Found::new(Kind::TensorMemory, title).side(self.side(agent, id, None, None)));
                    }
                }
                self.start_tensor(agent, id, op, &what, obs)?;
            }
            Tcgen05Op::Load { shape, times } | Tcgen05Op::Store { shape, times } => {
                if !times.is_power_of_two() || times > most_times(shape) {
                    let message =
                        format!("{times} times {shape}: the number is a power of two up to {}", most_times(shape));
                    return Err(Found::new(Kind::Participants, message));
                }
                self.start_tensor(agent, id, op, &what, obs)?;
            }
            Tcgen05Op::Copy { .. } | Tcgen05Op::Shift { .. } => self.start_tensor(agent, id, op, &what, obs)?,
            Tcgen05Op::Commit { .. } => self.commit_tensor(agent, id, op, obs)?,
            Tcgen05Op::WaitLoad => self.wait_moved(agent, TENSOR_LOAD, obs)?,
            Tcgen05Op::WaitStore => self.wait_moved(agent, TENSOR_STORE, obs)?,
            Tcgen05Op::FenceBefore => self.fence_tensor(agent, id, SyncSide::Before, obs)?,
            Tcgen05Op::FenceAfter => self.fence_tensor(agent, id, SyncSide::After, obs)?,
        }
        Ok(Moved::On)
    }

    /// Checks the warps that execute an operation, and the number of programs.
    fn check_participants(&mut self, agent: usize, op: &Op, what: &Tcgen05Op) -> Res<()> {
        let kernel = self.kernel();
        let wrong = |message: String| Err(Found::new(Kind::Participants, message));
        let (name, local) = (mnemonic(&op.kind), self.look(agent)?.local);
        let moves = matches!(what, Tcgen05Op::Load { .. } | Tcgen05Op::Store { .. });
        if let Some(role) = self.plan.role_of(local).and_then(|r| kernel.roles.get(r)) {
            let warps = role.warps;
            if what.is_of_one_warp() && warps != 1 {
                return wrong(format!("one warp executes `{name}`, and `{}` has {warps}", role.name));
            }
            if moves && !warps.is_multiple_of(QUARTERS) {
                return wrong(format!(
                    "{QUARTERS} warps access all lanes by `{name}`, and `{}` has {warps}",
                    role.name
                ));
            }
        }
        if kernel.roles.is_empty() && what.accesses_columns() && shares_columns(kernel) {
            return wrong(format!(
                "`{name}` is one of several operations of one warp and of all warps, which nothing orders"
            ));
        }
        let Some(group) = what.cta_group() else { return Ok(()) };
        if !matches!(group, 1 | 2) {
            return wrong(format!("`cta_group = {group}`: it is 1 or 2"));
        }
        let Some(cta) = self.cta_mut(agent) else { return Ok(()) };
        let first = *cta.tensor.group.get_or_insert(group);
        if first != group {
            return wrong(format!("`{name}` has `cta_group = {group}`, and an operation before it {first}"));
        }
        if group == 2 && !self.has_met(agent) { self.peer(agent).map(drop) } else { Ok(()) }
    }

    /// The other program of the pair.
    pub(super) fn peer(&self, agent: usize) -> Res<usize> {
        let peer = self.cta(agent) ^ 1;
        if peer >= self.ctas.len() {
            let message = format!(
                "an operation of two programs (`cta_group = 2`), in a cluster of {}: there is no other one",
                self.ctas.len()
            );
            return Err(Found::new(Kind::Participants, message));
        }
        self.is_there(peer, "an operation of two programs on the memory of")?;
        Ok(peer)
    }

    /// Starts an asynchronous operation that accesses columns.
    fn start_tensor(&mut self, agent: usize, id: OpId, op: &Op, what: &Tcgen05Op, obs: Obs<'_, '_>) -> Res<()> {
        let Some(class) = order::class_of(&self.plan.mmas, op, what) else { return Ok(()) };
        let (touches, accessed) = self.tensor_accesses(agent, op, what)?;
        let earlier = self.engine.pending().iter().filter(|(_, o)| o.agent.index() == agent);
        let after = earlier.filter(|(_, o)| in_order(o.class, class)).map(|(id, _)| id).collect();
        let work = Work { op: id, time: None, touches, effect: Effect::TensorMemory(accessed.into()) };
        self.start(agent, class, (after, Vec::new()), work, obs).map(drop)
    }

    /// Arrives at a barrier when all earlier MMAs, copies and shifts of the agent are complete.
    fn commit_tensor(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let barrier = self.one_barrier(agent, op, 0)?;
        self.check_fenced(self.cta(agent), barrier)?;
        let earlier =
            self.engine.pending().iter().filter(|(_, o)| o.agent.index() == agent && order::is_tracked(o.class));
        let after = earlier.map(|(id, _)| id).collect();
        let work = Work { op: id, time: None, touches: Vec::new(), effect: Effect::None };
        self.start(agent, TENSOR_COMMIT, (after, vec![Signal::Arrive { barrier }]), work, obs).map(drop)
    }

    /// Waits for all loads, or all stores, of the agent.
    fn wait_moved(&mut self, agent: usize, class: Class, obs: Obs<'_, '_>) -> Res<()> {
        self.commit(agent, class, obs)?;
        self.wait_groups(agent, class, 0, obs)
    }

    fn fence_tensor(&self, agent: usize, id: OpId, side: SyncSide, obs: Obs<'_, '_>) -> Res<()> {
        self.tell(obs, &Event::SyncFence { agent: Agent::new(agent), side, place: Place::new(id.index()) })
    }
}

/// The largest number of repetitions of a load or store: it moves at most 128 registers of each thread.
const fn most_times(shape: TensorShape) -> u32 {
    match shape {
        TensorShape::L32x32b | TensorShape::L16x64b => 128,
        TensorShape::L16x128b => 64,
        TensorShape::L16x256b => 32,
    }
}

/// Whether one warp of a kernel and all of its warps access columns.
fn shares_columns(kernel: &Kernel) -> bool {
    let accesses = |of_one: bool| {
        kernel.ops.iter().any(|op| {
            let OpKind::Nv(NvOp::Tcgen05(tensor)) = &op.kind else { return false };
            tensor.accesses_columns() && tensor.is_of_one_warp() == of_one
        })
    };
    accesses(true) && accesses(false)
}

//! The interpreter: one instruction for the threads of one fragment.
//!
//! | module | instructions |
//! |---|---|
//! | [`scalar`] | instructions that each thread computes by itself, branches |
//! | [`access`] | loads, stores, atomics |
//! | [`sync`] | barriers and fences of a block |
//! | [`exchange`] | shuffles, votes and similar exchanges within a warp |
//! | [`copy`] | `cp.async`, `mbarrier` |
//! | [`bulk`] | `cp.async.bulk`, `st.async` |
//! | [`cluster`] | barriers of clusters, addresses of other blocks, fences between proxies |
//! | [`tensormap`] | `tensormap.replace`, `tensormap.cp_fenceproxy`, fences for tensor maps |
//! | [`warpgroup`] | `wgmma`, `setmaxnreg` |
//! | [`matrix`] | `ldmatrix`, `stmatrix`, `mma` |

mod access;
mod bulk;
mod cluster;
mod copy;
mod events;
mod exchange;
mod matrix;
mod scalar;
mod sync;
mod tensormap;
mod warpgroup;

use super::cluster::Cluster;
use super::error::ErrorCode;
use super::maps::Maps;
use super::memory::{Memory, code_of};
use super::mma::Lanes;
use super::op::{Op, PredSrc, Special, Src};
use super::proxy::Stores;
use super::warp::lanes_of;
use super::watch::Watch;
use titan_sim::engine::{Agent, Fault, Halt, Space as Bytes, Stop};

/// An error at run time, with code positions and agents instead of names.
#[derive(Clone, Debug)]
pub(crate) struct Fail {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    pub(crate) at: Option<(u32, Agent)>,
    /// The other side of a race: code position, thread, and a verb for its access.
    pub(crate) other: Option<(u32, Agent, &'static str)>,
    pub(crate) help: Option<&'static str>,
    /// The lane of the warp at which the error occurred, if it is not the first of the fragment.
    pub(crate) lane: Option<usize>,
    /// If the error is that these threads do not execute the instruction with the others: there is none if they have ended.
    pub(crate) absent: u32,
    /// Whether they need not execute it at the same time, so that they are not held up before.
    pub(crate) anyway: bool,
}

impl Fail {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Fail {
        Fail { code, message: message.into(), at: None, other: None, help: None, lane: None, absent: 0, anyway: false }
    }

    /// The error for a fault of a memory.
    pub(crate) fn of(space: &Bytes, fault: &Fault) -> Fail {
        Fail::new(code_of(fault), space.explain(fault))
    }

    pub(crate) fn lane(mut self, lane: usize) -> Fail {
        self.lane = Some(lane);
        self
    }

    pub(crate) fn help(mut self, help: &'static str) -> Fail {
        self.help = Some(help);
        self
    }

    pub(crate) fn absent(mut self, threads: u32, anyway: bool) -> Fail {
        (self.absent, self.anyway) = (threads, anyway);
        self
    }

    /// Adds the place and the thread, if they are not known yet.
    pub(crate) fn or_at(mut self, pc: u32, agent: Agent) -> Fail {
        self.at.get_or_insert((pc, agent));
        self
    }
}

/// The engine's errors, before the block describes them in the program's terms.
impl From<Halt> for Fail {
    fn from(halt: Halt) -> Fail {
        match halt {
            Halt::Stop => Fail::new(ErrorCode::Race, "unordered accesses"),
            Halt::Barrier(_, fault) => Fail::new(ErrorCode::Barrier, fault.to_string()),
            Halt::Meeting(place, fault) => Fail::new(ErrorCode::Barrier, format!("barrier {}: {fault}", place.index())),
            Halt::Unknown => Fail::new(ErrorCode::Barrier, "there is no such barrier"),
        }
    }
}

impl From<Stop> for Fail {
    fn from(stop: Stop) -> Fail {
        Halt::from(stop).into()
    }
}

/// The error for an instruction that reached a part of the interpreter that does not implement it: a bug of the emulator.
fn misplaced() -> Fail {
    Fail::new(ErrorCode::Unknown, "the emulator has no rule for this instruction")
}

/// The state outside of a block.
pub(crate) struct World<'a> {
    pub(crate) memory: &'a mut Memory,
    pub(crate) watch: &'a mut Watch,
    /// The stores to global memory, and the threads that have fenced them.
    pub(crate) stores: &'a mut Stores,
    /// The stores to tensor maps in global memory, and the maps that threads have acquired.
    pub(crate) maps: &'a mut Maps,
    /// The number of instructions executed so far, over all blocks.
    pub(crate) steps: &'a mut u64,
}

/// The continuation after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Next,
    /// Continue with the next instruction, but let others run first: a poll did not succeed.
    Poll,
    Jump(u32),
    /// The fragment is held; its position is already set.
    Held,
    /// The fragment was split or merged.
    Changed,
}

/// The fragment that executes, and the threads of it that do.
#[derive(Clone, Copy)]
pub(crate) struct Who {
    pub(crate) warp: usize,
    pub(crate) fragment: usize,
    pub(crate) pc: u32,
    /// The threads of the fragment for which the guard holds.
    pub(crate) active: u32,
}

type Run<T> = Result<T, Fail>;

impl<'a> Cluster<'a> {
    /// The bits of a source in all threads of a warp, and a mask of the threads in which it is defined.
    #[inline]
    fn lanes(&self, warp: usize, src: Src) -> (Lanes, u32) {
        match src {
            Src::Reg(r) => {
                let (values, defined) = self.warps[warp].reg(r);
                (*values, defined)
            }
            Src::Imm(x) => ([x; 32], u32::MAX),
            Src::Special(s) => (self.special(warp, s), u32::MAX),
            Src::Symbol(index, offset) => {
                let base = self.env.symbols.get(index as usize).copied().unwrap_or(0);
                ([base.wrapping_add_signed(offset); 32], u32::MAX)
            }
        }
    }

    /// The bits of a source that must be defined in the active threads.
    #[inline]
    fn need(&self, who: Who, src: Src) -> Run<Lanes> {
        let (values, defined) = self.lanes(who.warp, src);
        self.require(who, defined, src)?;
        Ok(values)
    }

    /// Checks that a source is defined in the active threads.
    #[inline]
    fn require(&self, who: Who, defined: u32, src: Src) -> Run<()> {
        let bad = who.active & !defined;
        if bad == 0 { Ok(()) } else { Err(self.undefined(who, bad, src)) }
    }

    /// Checks that sources are defined, unless the options let undefined values propagate.
    #[inline]
    fn strict(&self, who: Who, defined: u32, sources: &[Src]) -> Run<()> {
        if who.active & !defined == 0 || (!self.env.options.strict() && !self.multiplies(who.warp)) {
            return Ok(());
        }
        if !self.env.options.strict() {
            let in_use = sources.iter().find(|s| matches!(s, Src::Reg(r) if self.is_accumulator(who.warp, *r)));
            return in_use.map_or(Ok(()), |src| Err(self.undefined(who, u32::MAX, *src)));
        }
        for src in sources {
            let (_, defined) = self.lanes(who.warp, *src);
            self.require(who, defined, *src)?;
        }
        Ok(())
    }

    #[cold]
    fn undefined(&self, who: Who, bad: u32, src: Src) -> Fail {
        let name = match src {
            Src::Reg(r) => self.env.program.reg_names.get(r as usize).map_or("?", String::as_str),
            Src::Imm(_) | Src::Special(_) | Src::Symbol(..) => "?",
        };
        if let Src::Reg(r) = src
            && self.is_accumulator(who.warp, r)
        {
            let message = format!("register `{name}` is read, and a `wgmma` in flight accumulates into it");
            return Fail::new(ErrorCode::InFlight, message).help("wait by `wgmma.wait_group` before");
        }
        let message = format!("register `{name}` is read and was never written");
        Fail::new(ErrorCode::Uninitialised, message).lane(bad.trailing_zeros() as usize)
    }

    /// The threads in which a predicate holds; it must be defined in the active ones.
    #[inline]
    fn need_pred(&self, who: Who, src: PredSrc) -> Run<u32> {
        match src {
            PredSrc::Const(b) => Ok(if b { u32::MAX } else { 0 }),
            PredSrc::Reg(p, negated) => {
                let (values, defined) = self.warps[who.warp].pred(p);
                let bad = who.active & !defined;
                if bad != 0 {
                    return Err(self.undefined_pred(bad, p));
                }
                Ok(if negated { !values } else { values })
            }
        }
    }

    #[cold]
    fn undefined_pred(&self, bad: u32, p: u32) -> Fail {
        let name = self.env.program.pred_names.get(p as usize).map_or("?", String::as_str);
        let message = format!("predicate `{name}` is read and was never written");
        Fail::new(ErrorCode::Uninitialised, message).lane(bad.trailing_zeros() as usize)
    }

    fn special(&self, warp: usize, s: Special) -> Lanes {
        let env = self.env;
        let first = self.warps[warp].first;
        let [x, y, _] = env.launch.block;
        let pick = |v: [u32; 3], axis: u8| u64::from(v[usize::from(axis.min(2))]);
        let of = |f: &dyn Fn(u32) -> u64| std::array::from_fn(|lane| f(u32::try_from(lane).unwrap_or(0)));
        match s {
            Special::Tid(axis) => of(&|lane| {
                let t = first + lane;
                pick([t % x, t / x % y, t / x / y], axis)
            }),
            Special::Ntid(axis) => [pick(env.launch.block, axis); 32],
            Special::Ctaid(axis) => [pick(self.cta(warp).id, axis); 32],
            Special::ClusterId(axis) => [pick(self.id, axis); 32],
            Special::NClusterId(axis) => [pick(env.clusters(), axis); 32],
            Special::ClusterCtaId(axis) => {
                let (id, extents) = (self.cta(warp).id, env.cluster);
                [pick(std::array::from_fn(|i| id[i] % extents[i].max(1)), axis); 32]
            }
            Special::ClusterNCtaId(axis) => [pick(env.cluster, axis); 32],
            Special::ClusterCtaRank => [self.warps[warp].rank.into(); 32],
            Special::ClusterNCtaRank => [self.ctas.len() as u64; 32],
            Special::IsExplicitCluster => [u64::from(env.is_clustered); 32],
            Special::Nctaid(axis) => [pick(env.launch.grid, axis); 32],
            Special::LaneId => of(&u64::from),
            Special::WarpId => [u64::from(first / 32); 32],
            Special::NWarpId => [u64::from(env.threads.div_ceil(32)); 32],
            Special::SmId | Special::GridId => [0; 32],
            Special::NSmId => [1; 32],
            Special::LaneMask(kind) => of(&|lane| {
                let eq = 1_u32 << lane;
                u64::from(match kind {
                    0 => eq,
                    1 => eq - 1,
                    2 => eq | (eq - 1),
                    3 => !(eq | (eq - 1)),
                    _ => !(eq - 1),
                })
            }),
            Special::Clock => [self.clock & 0xFFFF_FFFF; 32],
            Special::Clock64 => [self.clock; 32],
            Special::ClockHi => [self.clock >> 32; 32],
            Special::DynamicShared => [env.launch.dynamic_shared.into(); 32],
            Special::TotalShared => {
                [u64::from(env.program.shared_end - super::decode::SHARED_BASE + env.launch.dynamic_shared); 32]
            }
        }
    }

    /// Executes one instruction.
    pub(crate) fn step(&mut self, warp: usize, fragment: usize, world: &mut World<'_>) -> Run<Step> {
        let program = self.env.program;
        let (pc, mask) = {
            let f = &self.warps[warp].fragments[fragment];
            (f.pc, f.mask)
        };
        self.clock += 1;
        let inst = &program.code[pc as usize];
        let mut who = Who { warp, fragment, pc, active: mask };
        if let Some((p, negated)) = inst.guard {
            who.active = mask & self.need_pred(who, PredSrc::Reg(p, negated))?;
            if who.active == 0 {
                return Ok(Step::Next);
            }
        }
        match &inst.op {
            Op::Branch { target } => Ok(self.branch(who, mask, *target, inst.meet)),
            Op::BranchIndexed { index, targets } => self.branch_indexed(who, mask, *index, targets, inst.meet),
            Op::Exit => self.exit(who, world.watch),
            Op::Trap => Err(Fail::new(ErrorCode::Trap, "the kernel trapped")),
            Op::Nop => Ok(Step::Next),
            Op::External { name, args } => Err(self.external(who, name, args, world)),
            Op::Lane { .. }
            | Op::Setp { .. }
            | Op::Set { .. }
            | Op::Select { .. }
            | Op::Test { .. }
            | Op::Logic { .. }
            | Op::Carry { .. }
            | Op::Insert { .. }
            | Op::Pack { .. }
            | Op::Unpack { .. }
            | Op::Convert { .. }
            | Op::IsSpace { .. } => self.scalar(who, &inst.op),
            Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => self.access(who, &inst.op, world),
            Op::Barrier { .. } | Op::WarpBarrier { .. } | Op::Fence { .. } => {
                self.synchronise(who, &inst.op, world.watch)
            }
            Op::ClusterArrive { .. }
            | Op::ClusterWait { .. }
            | Op::ProxyFence { .. }
            | Op::InitFence
            | Op::MapAddress { .. }
            | Op::RankOf { .. } => self.across_blocks(who, &inst.op, world),
            Op::Multiply(_)
            | Op::MultiplyFence
            | Op::MultiplyCommit
            | Op::MultiplyWait { .. }
            | Op::SetMaxRegisters { .. } => self.warpgroup(who, &inst.op, world),
            Op::MapReplace { .. } | Op::MapCopy { .. } | Op::MapRelease { .. } | Op::MapAcquire { .. } => {
                self.tensormap(who, &inst.op, world)
            }
            Op::Bulk(_) | Op::BulkCommit | Op::BulkWait { .. } | Op::StoreAsync { .. } => {
                self.bulk(who, &inst.op, world)
            }
            Op::Shuffle { .. }
            | Op::Vote { .. }
            | Op::Match { .. }
            | Op::Redux { .. }
            | Op::Active { .. }
            | Op::Elect { .. } => self.exchange(who, &inst.op),
            Op::CopyAsync { .. }
            | Op::CopyCommit
            | Op::CopyWait { .. }
            | Op::CopyArrive { .. }
            | Op::BarrierInit { .. }
            | Op::BarrierInval { .. }
            | Op::BarrierArrive { .. }
            | Op::BarrierTest { .. }
            | Op::BarrierPending { .. } => self.asynchronous(who, &inst.op, world),
            Op::Ldmatrix { .. } | Op::Stmatrix { .. } | Op::Movmatrix { .. } | Op::Mma(_) => {
                self.matrix(who, &inst.op, world)
            }
        }
    }

    /// The agents of the threads in a mask.
    fn agents(&self, warp: usize, mask: u32) -> Vec<Agent> {
        lanes_of(mask).map(|l| self.agent(warp, l)).collect()
    }

    fn exit(&mut self, who: Who, watch: &mut Watch) -> Run<Step> {
        let agents = self.agents(who.warp, who.active);
        watch.at(&agents, who.pc)?;
        self.leave_group(who)?;
        self.leave_cluster(&agents, watch)?;
        self.engine.exit(&agents, watch)?;
        self.progress += 1;
        let pc = who.pc;
        let w = &mut self.warps[who.warp];
        let rest = w.fragments[who.fragment].mask & !who.active;
        w.exit(who.fragment, who.active);
        // The remaining threads continue; the exit of the others may have completed a `bar.warp.sync`.
        if rest != 0 {
            let at = w.fragments.iter().position(|f| f.mask == rest);
            if let Some(at) = at {
                w.advance(at, pc + 1);
            }
        }
        self.settle(who.warp, watch)?;
        Ok(Step::Changed)
    }
}

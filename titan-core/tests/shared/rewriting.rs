//! The loops of a kernel that have schedules, on their way to a barrier program: what the rewriter makes of them, the same with a mistake,
//! and other legal schedules.
//!
//! Deliberately absent: what programs compute, which the tests ask that use this.

use super::loop_moves::{Stages as OfOps, places, planned, settle, together};
use super::loop_mutants::{Kind, Mutation};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use titan_core::allocate::allocate;
use titan_core::complete::complete;
use titan_core::driver::{Backend, Stages, table};
use titan_core::expand::expand as to_barriers;
use titan_core::ir::{Effect, Kernel, OpId, OpKind};
use titan_core::pipeline::fence::{Options, fence};
use titan_core::pipeline::modulo::{Dependent, check, dependences, expand};
use titan_core::synchronize::synchronize;
use titan_core::target::Target;
use titan_core::verify::well_formed;

/// A generator of random numbers: splitmix64.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// A number below another one, which is positive.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// A kernel whose loops have schedules.
pub(crate) struct Loops {
    pub(crate) laid_out: Kernel,
    pub(crate) scheduled: Kernel,
    /// What the rewriter makes of it.
    pub(crate) made: Kernel,
    /// The loops of that which have stages and places by a schedule.
    pub(crate) steady: Vec<OpId>,
    pub(crate) target: Target,
    anew: Vec<usize>,
}

/// What becomes of another schedule.
pub(crate) enum Moved {
    /// The rewriter cannot carry it out, for this reason; an empty one if the stages leave no order.
    NotCarriedOut(String),
    /// What it makes, whether the checker accepts it, and how many operations are in another stage or place.
    Made(Box<Kernel>, bool, usize),
}

impl Loops {
    /// The loops of a kernel; `None` if none has a schedule.
    pub(crate) fn of(all: &Stages, backend: &dyn Backend) -> Option<Loops> {
        let scheduled = all.scheduled.clone();
        let made = expand(&scheduled).expect("the schedule was carried out");
        assert_eq!(check(&scheduled, &made), Ok(()));
        let mut steady = Vec::new();
        made.walk(&mut |id, op| {
            // Of a kernel without schedules nothing is made anew, and its origins may be those of a text.
            let of = op.origin.and_then(|origin| scheduled.ops.get(origin.op.index()));
            let bodies = of.filter(|of| matches!(of.kind, OpKind::For(_))).into_iter().flat_map(|of| &of.regions);
            let mut ops = bodies.flat_map(|body| &scheduled.block(*body).ops);
            if matches!(op.kind, OpKind::For(_)) && ops.any(|id| scheduled.op(*id).planned.is_some()) {
                steady.push(id);
            }
        });
        let target = Target { shared_bytes: all.schedule.shared_bytes, ..backend.target() };
        // Rings may begin anew in fewer loops: then they continue from one to the next.
        let anew = vec![0; made.pipes.len()];
        let laid_out = all.laid_out.clone();
        (!steady.is_empty()).then_some(Loops { laid_out, scheduled, made, steady, target, anew })
    }

    /// The barrier program of loops, which is not verified; `None` if they cannot be lowered.
    pub(crate) fn program(&self, loops: &Kernel) -> Option<Kernel> {
        let lowered = || {
            let counted = complete(loops, self.target.lane_copies().is_some());
            let mut program = to_barriers(&counted, &self.target, table::REGISTERS, &self.anew).ok()?;
            if allocate(&mut program) > self.target.shared_bytes {
                return None;
            }
            synchronize(&mut program);
            let program = fence(&program, &Options::default()).kernel;
            well_formed(program.clone()).ok().map(|_| program)
        };
        // What has a mistake in it may break what passes take for granted.
        catch_unwind(AssertUnwindSafe(lowered)).ok().flatten()
    }

    /// What the rewriter makes with a mistake of a kind, for one of the loops; `None` if a few attempts find no place for it.
    pub(crate) fn mutant(&self, kind: Kind, numbers: &mut Numbers) -> Option<Kernel> {
        (0..12).find_map(|_| {
            let looped = self.steady[numbers.below(self.steady.len())];
            let mut choose = |n: usize| numbers.below(n);
            let mut mutation = Mutation::new(&self.made, looped, &mut choose);
            mutation.make(kind)?;
            let mutant = mutation.kernel.canonical();
            (mutant != self.made && well_formed(mutant.clone()).is_ok()).then_some(mutant)
        })
    }

    /// Whether a mutant differs only in what nothing uses: a name of a part that is outside of its tile is accepted where nothing is read there.
    pub(crate) fn is_unused(&self, mutant: &Kernel) -> bool {
        used(&self.made) == used(mutant)
    }

    /// Whether the checker takes something for what the rewriter makes.
    pub(crate) fn accepts(&self, mutant: &Kernel) -> bool {
        check(&self.scheduled, mutant).is_ok()
    }

    /// The dependences of all loops that have operations.
    pub(crate) fn dependent(&self) -> Vec<Dependent> {
        let all = dependences(&self.laid_out).expect("loops of a laid-out kernel");
        all.into_iter().filter(|of| of.ops.len() > 1).collect()
    }

    /// Whether an operation is nested in another one.
    fn is_inside(&self, outer: OpId, inner: OpId) -> bool {
        let mut found = false;
        let regions = &self.laid_out.op(outer).regions;
        regions.iter().for_each(|region| self.laid_out.walk_block(*region, &mut |id, _| found |= id == inner));
        found
    }

    /// The kernel with a schedule of a loop of two stages whose first and last iteration stand apart, and what is made of it; `None` if the loop
    /// cannot be peeled.
    fn apart(&self, of: &Dependent, stages: &OfOps, before: &Kernel) -> Option<(Kernel, Kernel)> {
        let (first, last) = (stages.values().min()?, stages.values().max()?);
        let mut before = before.clone();
        before.ops[of.looped.index()].peeled = true;
        let made = if last - first == 1 { expand(&before).ok()? } else { return None };
        Some((before, made))
    }

    /// A random schedule of one loop that keeps its dependences, of three stages before what they ask for; or one that violates one of them.
    pub(crate) fn moved(&self, of: &Dependent, violates: bool, numbers: &mut Numbers) -> Option<Moved> {
        self.moved_by(of, violates, 3, numbers)
    }

    /// The same of so many stages.
    pub(crate) fn moved_by(&self, of: &Dependent, violates: bool, most: usize, numbers: &mut Numbers) -> Option<Moved> {
        let together = together(&self.laid_out, of);
        let peeled = numbers.below(3) == 0;
        let most = if peeled { 2 } else { most };
        let mut stages: OfOps = of.ops.iter().map(|id| (*id, numbers.below(most) as i64)).collect();
        let mut reason = String::new();
        // What has an effect is in the last stage.
        let legal = (0..=of.ops.len()).find_map(|_| {
            settle(of, &together, &mut stages);
            let order = places(of, &stages, &mut |n| numbers.below(n), None)?;
            let before = planned(&self.laid_out, &stages, &order);
            if let Some((before, made)) = self.apart(of, &stages, &before).filter(|_| peeled) {
                return Some((before, made, order));
            }
            match expand(&before) {
                Ok(made) => Some((before, made, order)),
                Err(why) => {
                    reason = why.message;
                    let last = stages.values().copied().max().unwrap_or(0);
                    let held = |id: &&OpId| **id == why.op || self.is_inside(**id, why.op);
                    stages.extend(of.ops.iter().find(held).map(|id| (*id, last)));
                    None
                }
            }
        });
        let Some((before, made, order)) = legal else { return Some(Moved::NotCarriedOut(reason)) };
        if !violates {
            let program_order = of.ops.iter().enumerate();
            let stays =
                program_order.filter(|(at, id)| stages[id] == stages[&of.ops[0]] && usize::from(order[id]) == *at);
            let moved = of.ops.len() - stays.count();
            return Some(Moved::Made(Box::new(made.clone()), check(&before, &made).is_ok(), moved));
        }
        let edges: Vec<_> = of.dependences.iter().filter(|edge| edge.from != edge.to).collect();
        let edge = *edges.get(numbers.below(edges.len().max(1)))?;
        let exchanged = (stages[&edge.from] == stages[&edge.to] + i64::from(edge.distance)).then_some(edge);
        if exchanged.is_none() {
            stages.insert(edge.from, stages[&edge.to] + i64::from(edge.distance) + 1);
        }
        let order = places(of, &stages, &mut |n| numbers.below(n), exchanged)?;
        let before = planned(&self.laid_out, &stages, &order);
        if let Some((before, made)) = self.apart(of, &stages, &before).filter(|_| peeled) {
            return Some(Moved::Made(Box::new(made.clone()), check(&before, &made).is_ok(), 1));
        }
        Some(match expand(&before) {
            Err(why) => Moved::NotCarriedOut(why.message),
            Ok(made) => Moved::Made(Box::new(made.clone()), check(&before, &made).is_ok(), 1),
        })
    }
}

/// The kernel without operations that have no effect and whose results nothing uses.
fn used(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    // This ends: each pass removes an operation.
    loop {
        let mut uses = BTreeSet::new();
        kernel.walk(&mut |_, op| uses.extend(op.args.iter().copied()));
        let (mut kept, mut removed) = (kernel.clone(), false);
        for block in &mut kept.blocks {
            block.ops.retain(|id| {
                let op = kernel.op(*id);
                let is_used = op.results.is_empty() || op.results.iter().any(|result| uses.contains(result));
                let stays = is_used || !op.regions.is_empty() || op.kind.effect() != Effect::Pure;
                removed |= !stays;
                stays
            });
        }
        if !removed {
            return kernel.canonical();
        }
        kernel = kept;
    }
}

/// Those of some kernels that differ in more than their names: other schedulers and targets often make the same.
pub(crate) fn distinct<T>(all: Vec<(T, Loops)>) -> Vec<(T, Loops)> {
    let mut seen = BTreeSet::new();
    let print = |loops: &Loops| {
        let mut kernel = loops.scheduled.clone();
        kernel.sig.scheduler = None;
        titan_core::text::print(&kernel)
    };
    all.into_iter().filter(|(_, loops)| seen.insert((loops.target.name, print(loops)))).collect()
}

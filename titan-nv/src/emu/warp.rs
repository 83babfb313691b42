//! A warp: the registers of 32 threads, and the fragments of threads that run together.
//!
//! Threads that a branch separates become *fragments*, each with its own position; they reconverge at the branch's
//! immediate post-dominator. Fragments run independently of each other, so that one may wait for another; that threads
//! execute an instruction together is checked at that instruction.

use super::mma::Lanes;
use super::op::{Dst, Meet, Reduce};
use super::products::Products;

/// A set of threads of a warp that run together.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// The position in the code.
    pub pc: u32,
    /// The threads, as a bit mask.
    pub mask: u32,
    join: Option<usize>,
    pub(crate) wait: Hold,
    /// The block's progress counter at the time of the last poll that did not succeed.
    pub(crate) polled: Option<u64>,
}

/// The reason why a fragment does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// There is none: the fragment can run.
    None,
    /// Its agents are blocked in the engine.
    Agents,
    /// As [`Hold::Agents`]; then it reads the result of a reduction at this barrier, in the completion `generation`.
    Reduction { barrier: u32, generation: u32, op: Reduce, dst: Dst },
    /// It waits for these threads of the warp at a `bar.warp.sync`.
    Warp(u32),
    /// It waits for this number of registers of the block's pool, for all its threads together.
    Registers(u32),
    /// It waits until these threads of the warp have ended: if they do, it need not execute its instruction with them.
    Ends {
        /// The threads.
        threads: u32,
        /// Whether they go on from loose reconvergence points.
        anyway: bool,
    },
}

/// A reconvergence point of separated threads.
#[derive(Clone, Debug)]
struct Join {
    pc: u32,
    /// As of [`Meet`].
    loose: bool,
    expected: u32,
    arrived: u32,
    parent: Option<usize>,
}

/// A warp of a block.
#[derive(Clone, Debug)]
pub struct Warp {
    regs: Vec<Lanes>,
    defined: Vec<u32>,
    preds: Vec<u32>,
    preds_defined: Vec<u32>,
    /// The carry flag of each thread, as a bit mask.
    pub(crate) carry: u32,
    /// The threads that have not ended, as a bit mask.
    pub live: u32,
    /// The sets of threads that run together.
    pub fragments: Vec<Fragment>,
    joins: Vec<Join>,
    /// The number of its first thread in the block.
    pub(crate) first: u32,
    /// The rank of its block in the cluster.
    pub(crate) rank: u32,
    /// The position of a `try_wait` and the threads that executed it without success.
    pub(crate) tried: Option<(u32, u32)>,
    /// The number of registers that a thread may use, as set by `setmaxnreg`.
    pub(crate) budget: u32,
    /// The registers that `wgmma` uses, if the kernel has any.
    pub(crate) products: Option<Box<Products>>,
}

impl Warp {
    /// The number of places at which threads have met or will.
    #[must_use]
    pub fn joins(&self) -> usize {
        self.joins.len()
    }

    /// Creates a warp of `threads` threads at the start of the program.
    pub fn new(n_regs: usize, n_preds: usize, first: u32, threads: u32) -> Warp {
        let live = if threads >= 32 { u32::MAX } else { (1 << threads) - 1 };
        Warp {
            regs: vec![[0; 32]; n_regs],
            defined: vec![0; n_regs],
            preds: vec![0; n_preds],
            preds_defined: vec![0; n_preds],
            carry: 0,
            live,
            fragments: vec![Fragment { pc: 0, mask: live, join: None, wait: Hold::None, polled: None }],
            joins: Vec::new(),
            first,
            rank: 0,
            tried: None,
            budget: 0,
            products: None,
        }
    }

    /// The values of a register, and a mask of the threads in which it is defined.
    #[inline]
    pub(crate) fn reg(&self, r: u32) -> (&Lanes, u32) {
        (&self.regs[r as usize], self.defined[r as usize])
    }

    /// Sets a register in the threads of `mask`; it becomes defined in those of them that are in `ok`.
    #[inline]
    pub(crate) fn set_reg(&mut self, dst: Dst, mask: u32, values: &Lanes, ok: u32) {
        let Some(r) = dst else { return };
        let r = r as usize;
        if let Some(products) = &mut self.products {
            products.write(r);
        }
        if mask == u32::MAX {
            self.regs[r] = *values;
        } else {
            for (i, (reg, value)) in self.regs[r].iter_mut().zip(values).enumerate() {
                if mask >> i & 1 == 1 {
                    *reg = *value;
                }
            }
        }
        self.defined[r] = self.defined[r] & !mask | mask & ok;
    }

    /// Sets a register of an MMA's accumulator, which must not be read before the wait.
    pub(crate) fn deliver(&mut self, r: u32, values: &Lanes) {
        self.regs[r as usize] = *values;
    }

    /// Marks registers as undefined while they are accumulators of an MMA in flight, or as defined again.
    pub(crate) fn set_defined(&mut self, regs: &[u32], defined: bool) {
        regs.iter().for_each(|r| self.defined[*r as usize] = if defined { u32::MAX } else { 0 });
    }

    /// The values of a predicate, and a mask of the threads in which it is defined.
    #[inline]
    pub(crate) fn pred(&self, p: u32) -> (u32, u32) {
        (self.preds[p as usize], self.preds_defined[p as usize])
    }

    /// Sets a predicate in the threads of `mask`.
    #[inline]
    pub(crate) fn set_pred(&mut self, dst: Dst, mask: u32, values: u32, ok: u32) {
        let Some(p) = dst else { return };
        let p = p as usize;
        self.preds[p] = self.preds[p] & !mask | values & mask;
        self.preds_defined[p] = self.preds_defined[p] & !mask | mask & ok;
    }

    /// Moves a fragment to a position. If that is its reconvergence point, it ends there, and the merged fragment continues.
    pub fn advance(&mut self, f: usize, pc: u32) {
        self.fragments[f].pc = pc;
        let Some(j) = self.fragments[f].join.filter(|j| self.joins[*j].pc == pc) else { return };
        let fragment = self.fragments.swap_remove(f);
        self.joins[j].arrived |= fragment.mask;
        self.release(j);
    }

    /// If all threads have arrived at a join, they continue as one fragment, perhaps only to the next join.
    fn release(&mut self, j: usize) {
        let Join { pc, expected, arrived, parent, .. } = self.joins[j];
        if arrived != expected || expected == 0 {
            return;
        }
        // No further thread arrives there.
        self.joins[j].expected = 0;
        self.joins[j].arrived = 0;
        self.fragments.push(Fragment { pc, mask: expected, join: parent, wait: Hold::None, polled: None });
        self.advance(self.fragments.len() - 1, pc);
    }

    /// Splits a fragment by the positions at which its threads continue: `(position, threads)`, disjoint, and together all threads.
    pub fn split(&mut self, f: usize, meet: Option<Meet>, ways: &[(u32, u32)]) {
        let fragment = self.fragments.swap_remove(f);
        let join = match meet {
            None => fragment.join,
            Some(meet) => {
                let same = fragment.join.filter(|j| self.joins[*j].pc == meet.pc);
                Some(same.unwrap_or_else(|| self.new_join(meet, fragment.mask, fragment.join)))
            }
        };
        // The last fragment runs first: the one at the branch's own successor.
        for (pc, mask) in ways {
            self.fragments.push(Fragment { pc: *pc, mask: *mask, join, wait: Hold::None, polled: None });
        }
        for (pc, mask) in ways {
            let at = self.fragments.iter().position(|f| f.mask == *mask);
            if let Some(at) = at {
                self.advance(at, *pc);
            }
        }
    }

    /// Lets threads of a mask go on that wait at loose reconvergence points for others; returns whether there are any.
    pub fn part_early(&mut self, threads: u32) -> bool {
        let waits = |join: &Join| join.loose && join.expected != 0 && join.arrived & threads != 0;
        let Some(j) = self.joins.iter().position(waits) else { return false };
        let Join { pc, arrived, parent, .. } = self.joins[j];
        self.joins[j].expected &= !arrived;
        self.joins[j].arrived = 0;
        self.fragments.push(Fragment { pc, mask: arrived, join: parent, wait: Hold::None, polled: None });
        self.advance(self.fragments.len() - 1, pc);
        true
    }

    fn new_join(&mut self, Meet { pc, loose }: Meet, expected: u32, parent: Option<usize>) -> usize {
        let join = Join { pc, loose, expected, arrived: 0, parent };
        // A join at which no thread is expected is free, unless an open one continues at it.
        let used = |j: usize| self.joins.iter().any(|o| o.expected != 0 && o.parent == Some(j));
        let named = |j: usize| self.fragments.iter().any(|f| f.join == Some(j)) || parent == Some(j);
        let free = (0..self.joins.len()).find(|j| self.joins[*j].expected == 0 && !used(*j) && !named(*j));
        if let Some(j) = free {
            self.joins[j] = join;
            return j;
        }
        self.joins.push(join);
        self.joins.len() - 1
    }

    /// Ends threads of a fragment.
    pub fn exit(&mut self, f: usize, mask: u32) {
        self.live &= !mask;
        self.fragments[f].mask &= !mask;
        let join = self.fragments[f].join;
        if self.fragments[f].mask == 0 {
            self.fragments.swap_remove(f);
        }
        let mut at = join;
        while let Some(j) = at {
            self.joins[j].expected &= !mask;
            self.joins[j].arrived &= !mask;
            at = self.joins[j].parent;
        }
        // The exiting threads may have been the last that a join waited for, at any level.
        let mut at = join;
        while let Some(j) = at {
            at = self.joins[j].parent;
            self.release(j);
        }
    }

    /// Releases the threads that wait at a `bar.warp.sync` with this mask if all have arrived; returns them.
    pub(crate) fn warp_meeting(&mut self, mask: u32) -> Option<u32> {
        let waits = |f: &&mut Fragment| f.wait == Hold::Warp(mask);
        let here = self.fragments.iter_mut().filter(waits).fold(0, |all, f| all | f.mask);
        if mask & self.live & !here != 0 {
            return None;
        }
        self.fragments.iter_mut().filter(waits).for_each(|f| f.wait = Hold::None);
        Some(here)
    }
}

/// The threads of a mask.
pub(crate) fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            lane
        })
    })
}

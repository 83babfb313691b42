//! The registers of threads: one model, by which the rule estimates, accumulators are refused, the modulo scheduler is limited, and the log
//! says which tiles are too large.
//!
//! A thread has a number of registers ([`OfRole::each`]), of which a tile takes those of its layout ([`registers`]); [`OTHER_REGISTERS`] are for
//! addresses, counters and predicates. What is live at the same time is found once for a program ([`Held`]). The assembler shares and moves
//! values, so this is no bound.
//!
//! | threads | registers of each |
//! |---|---|
//! | of a role that requests a number (`setmaxnreg`) | this number |
//! | others | an equal part of the multiprocessor's, of whole warpgroups, in units of 8 |
//! | all | at most as many as an instruction addresses |
//!
//! Deliberately absent: registers of individual addresses and scalars; the number of warps, which is chosen before there are layouts
//! ([`crate::plan`]).

use super::table::OTHER_REGISTERS;
use crate::collections::SortedSet;
use crate::ir::{Block, Def, Effect, Kernel, LocalOp, NvGroup, NvOp, OpId, OpKind, TtgOp, Value};
use crate::plan::words;
use crate::target::Target;

/// The number of warps up to which threads get equal parts of the registers: those of a warpgroup.
const WHOLE: u32 = 4;

/// The registers that are left for tiles.
pub(super) const fn for_tiles(each: u32) -> u32 {
    each.saturating_sub(OTHER_REGISTERS)
}

/// The registers of a thread whose tiles take so many.
pub(super) const fn with_others(tiles: u32) -> u32 {
    tiles.saturating_add(OTHER_REGISTERS)
}

/// The number of 32-bit registers per thread of a value; 0 if it is no tile in registers.
pub(super) fn registers(program: &Kernel, value: Value) -> u32 {
    let ty = program.ty(value);
    let layout = program.layout(value).filter(|_| ty.is_in_registers());
    let elements = layout.map_or(0, |layout| layout.registers() as u64);
    u32::try_from(words(elements, ty.elem())).unwrap_or(u32::MAX)
}

/// The most registers that tiles take at an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peak {
    pub(super) registers: u32,
    pub(super) at: OpId,
}

/// The tiles of the threads that execute a role, or a program without roles.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfRole {
    pub(super) role: Option<usize>,
    /// The number of registers of a thread.
    pub(super) each: u32,
    /// Accumulators, and tiles that loops carry, at MMAs.
    pub(super) accumulators: Option<Peak>,
    /// Tiles that are not computed again where they are used, at operations that nothing is moved across.
    pub(super) tiles: Option<Peak>,
}

/// The tiles that the threads of a barrier program hold in registers at the same time: a backward liveness analysis.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The registers of all tiles, at most.
    pub(super) most: u32,
    pub(super) of_roles: Vec<OfRole>,
}

impl Held {
    pub(super) fn of(program: &Kernel, target: &Target) -> Held {
        let warps = program.laid_out.as_deref().map_or(1, |laid| laid.warps);
        let each = entry(warps, target).min(target.registers);
        let all = OfRole { role: None, each, accumulators: None, tiles: None };
        let held = Held { most: 0, of_roles: vec![all] };
        let mut walk = Walk { program, small: computed_again(program), role: 0, held };
        walk.block(program.body, SortedSet::new());
        walk.held
    }

    /// The same if all that is fetched is held for a whole iteration, which the order of its schedule makes of it.
    pub(super) fn with_fetched(mut self, laid_out: &Kernel) -> Held {
        let mut fetched = 0u32;
        laid_out.walk(&mut |_, op| {
            if let OpKind::Local(LocalOp::Fetch { .. }) = op.kind {
                let all = op.results.iter().map(|v| registers(laid_out, *v));
                fetched = all.fold(fetched, u32::saturating_add);
            }
        });
        self.most = self.most.saturating_add(fetched);
        for peak in self.of_roles.iter_mut().flat_map(|of| [&mut of.accumulators, &mut of.tiles]).flatten() {
            peak.registers = peak.registers.saturating_add(fetched);
        }
        self
    }
}

/// The analysis of a program.
struct Walk<'k> {
    program: &'k Kernel,
    /// The tiles that take no registers of their own.
    small: SortedSet<Value>,
    /// The place of the role that is walked through, among those of `held`.
    role: usize,
    held: Held,
}

impl Walk<'_> {
    fn keep(&mut self, needed: &SortedSet<Value>) {
        self.held.most = self.sum(needed, |_| true).max(self.held.most);
    }

    fn sum(&self, live: &SortedSet<Value>, counts: impl Fn(&Value) -> bool) -> u32 {
        live.iter().filter(|v| counts(v)).fold(0, |sum, v| sum.saturating_add(registers(self.program, *v)))
    }

    /// Notes an operation behind which these tiles are live, its results included.
    fn meet(&mut self, at: OpId, live: &SortedSet<Value>) {
        let kind = &self.program.op(at).kind;
        let greater = |old: Option<Peak>, registers: u32| match old {
            Some(old) if old.registers >= registers => Some(old),
            Some(_) | None => Some(Peak { registers, at }),
        };
        let mut of = self.held.of_roles[self.role];
        if let OpKind::Nv(NvOp::SetMaxNReg { registers }) = kind {
            of.each = *registers;
        }
        if is_fixed(kind) {
            of.tiles = greater(of.tiles, self.sum(live, |v| !self.small.contains(v)));
        }
        if is_mma(kind) {
            of.accumulators = greater(of.accumulators, self.sum(live, |v| is_kept(self.program, *v)));
        }
        self.held.of_roles[self.role] = of;
    }

    /// Processes a block after which the tiles `needed` are live. Returns the tiles that are live before it.
    fn block(&mut self, block: Block, mut needed: SortedSet<Value>) -> SortedSet<Value> {
        let program = self.program;
        let is_tile = |v: &&Value| registers(program, **v) > 0;
        for id in program.block(block).ops.iter().rev() {
            let op = program.op(*id);
            needed.extend(op.results.iter().filter(is_tile));
            self.keep(&needed);
            self.meet(*id, &needed);
            needed.retain(|v| !op.results.contains(v));
            let (around, mut inside) = (self.role, SortedSet::new());
            for (role, region) in op.regions.iter().enumerate() {
                if op.kind == OpKind::Ttg(TtgOp::Roles) {
                    self.role = self.held.of_roles.len();
                    let of = OfRole { role: Some(role), accumulators: None, tiles: None, ..self.held.of_roles[around] };
                    self.held.of_roles.push(of);
                }
                let mut behind = needed.clone();
                if op.kind.is_loop() {
                    // A value from outside that an iteration uses is live throughout the loop, since the next iteration uses it too.
                    program.walk_block(*region, &mut |_, op| behind.extend(op.args.iter().filter(is_tile)));
                    let mut made: SortedSet<Value> = program.block(*region).args.iter().copied().collect();
                    program.walk_block(*region, &mut |_, op| {
                        made.extend(&op.results);
                        made.extend(op.regions.iter().flat_map(|r| &program.block(*r).args));
                    });
                    behind.retain(|v| !made.contains(v));
                }
                inside.extend(self.block(*region, behind));
            }
            self.role = around;
            needed.extend(inside);
            needed.extend(op.args.iter().filter(is_tile));
            self.keep(&needed);
        }
        needed.retain(|v| !program.block(block).args.contains(v));
        needed
    }
}

/// Whether an operation of a barrier program adds a product to an accumulator.
const fn is_mma(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Nv(NvOp::Wgmma) | OpKind::Local(LocalOp::Mma) | OpKind::Mma)
}

/// Whether the assembler moves no computation across an operation of a barrier program, so that what is live there is in registers or in
/// local memory: MMAs, waits for them, and reductions across lanes.
const fn is_fixed(kind: &OpKind) -> bool {
    let waits = matches!(kind, OpKind::Nv(NvOp::WaitGroup { group: NvGroup::Wgmma, .. }));
    is_mma(kind) || waits || matches!(kind, OpKind::Local(LocalOp::Fold { .. }))
}

/// The number of registers with which each thread of so many warps begins.
pub(super) fn entry(warps: u32, target: &Target) -> u32 {
    target.equal_registers(warps.max(1).next_multiple_of(WHOLE).saturating_mul(target.lanes))
}

/// Whether a tile is an accumulator, or carried by a loop.
fn is_kept(program: &Kernel, value: Value) -> bool {
    match program.value(value).def {
        Def::BlockArg(..) => true,
        Def::Param(_) => false,
        Def::Result(op, _) => {
            let kind = &program.op(op).kind;
            is_mma(kind) || matches!(kind, OpKind::Nv(NvOp::WaitGroup { group: NvGroup::Wgmma, .. }))
        }
    }
}

/// The tiles that take no registers of their own: broadcasts, what is computed from scalars alone, and what is loaded from shared memory, such
/// as the fragments of MMAs of warps, which are loaded one by one.
fn computed_again(program: &Kernel) -> SortedSet<Value> {
    let mut small = SortedSet::new();
    program.walk(&mut |_, op| {
        let from_scalars = || op.args.iter().all(|v| small.contains(v) || program.ty(*v).tile_shape().is_none());
        let pure = op.kind.effect() == Effect::Pure && op.regions.is_empty();
        let moved = matches!(op.kind, OpKind::Broadcast { .. } | OpKind::Local(LocalOp::Load));
        if moved || pure && from_scalars() {
            small.extend(op.results.iter().copied());
        }
    });
    small
}

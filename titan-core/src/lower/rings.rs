//! Rings: stages in shared memory, and how those who fill and those who read them find together.
//!
//! A ring that one crew of warps both fills and reads counts its copies ([`Mode::Counted`]): a stage is there when its commit
//! group is, and a barrier that the hazard analysis places makes what each thread copied visible to the others. Freeing a slot
//! costs nothing: the verifier has shown that a slot is taken again only after its stage was given back, and the barrier in
//! front of the copy orders the threads.
//!
//! A ring between roles has words for each slot ([`Mode::Parted`], in `meet`): one to wait for its bytes, one or more to wait
//! for its readers.
//!
//! The two clocks of a ring are registers: the next slot, and how often the clock has been around. Loops and branches that move
//! a clock carry it.
//!
//! Deliberately absent: whether the protocol is right, which the verifier has shown; tensor maps.

#![expect(clippy::wildcard_enum_match_arm, reason = "only what concerns rings is named")]

mod meet;

use super::staging::{Rows, Tile};
use super::tensor::View;
use super::tile::{Held, Staged};
use super::vector::Place;
use super::{Crew, Lower, LowerError, Moving, Reg};
use crate::ir::{Block, Fill, Kernel, Op, OpId, OpKind, Pipe, Pred, TtgOp, Ty, Unit, Value};
use crate::lane::{self, Region, Role, Space};
use crate::layout::Encoding;
use meet::Words;
use std::collections::BTreeSet;

/// How the sides of a ring find together.
#[derive(Clone, Debug)]
pub(super) enum Mode {
    /// By counting the groups of copies.
    Counted,
    /// By words in shared memory.
    Parted(Words),
}

/// A ring in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// The buffer of all its stages.
    buffer: u32,
    /// Where the tiles of a stage begin, and how they lie.
    fields: Vec<(u32, Encoding)>,
    /// Bytes from stage to stage.
    stride: u32,
    slots: u32,
    mode: Mode,
    /// Of the filling side and of the reading side: the next slot, and the round.
    clocks: [[Reg; 2]; 2],
    /// One word a slot, not 0 if it holds nothing: of rings that may hold nothing.
    poison: Option<u32>,
}

/// A stage: its slot, where it begins, and the round in which it is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    slot: Reg,
    offset: Reg,
    round: Reg,
}

/// A tile that is named for a copy.
#[derive(Clone, Debug)]
pub(super) struct Source {
    view: View,
    what: What,
    pad: Reg,
}

/// Which elements of a tensor a copy names.
#[derive(Clone, Debug)]
enum What {
    /// A tile at coordinates.
    Tile(Unit, Vec<Value>),
    /// Rows by indices, from a column on.
    Rows(Vec<Value>, Value),
}

/// Which clock of which ring, and which of its numbers.
pub(super) type Clock = (usize, usize, usize);

/// Whether a ring is filled by one role and read by another.
pub(super) fn parts_roles(kernel: &Kernel, pipe: Pipe) -> bool {
    let [fill, read] = sides(kernel, pipe);
    !read.is_empty() && fill != read
}

/// The roles that fill a ring, and those that read it.
fn sides(kernel: &Kernel, pipe: Pipe) -> [BTreeSet<usize>; 2] {
    let mut found = [BTreeSet::new(), BTreeSet::new()];
    kernel.walk(&mut |_, op| {
        if op.kind != OpKind::Ttg(TtgOp::Roles) {
            return;
        }
        for (role, region) in op.regions.iter().enumerate() {
            kernel.walk_block(*region, &mut |_, op| match &op.kind {
                OpKind::Ttg(TtgOp::Acquire(p)) if *p == pipe => drop(found[0].insert(role)),
                OpKind::Ttg(TtgOp::Ready(p)) if *p == pipe => drop(found[1].insert(role)),
                _ => {}
            });
        }
    });
    found
}

impl Lower<'_> {
    /// Gives every ring its buffers, and initialises what its sides meet at.
    pub(super) fn rings(&mut self) {
        for index in 0..self.k.pipes.len() {
            let pipe = Pipe::new(index);
            let decl = &self.k.pipes[index];
            let mut fields = Vec::new();
            let (mut bytes, mut align) = (0u32, 16u32);
            for encoding in self.plan.stages.get(index).into_iter().flatten() {
                bytes = bytes.next_multiple_of(encoding.align());
                align = align.max(encoding.align());
                fields.push((bytes, encoding.clone()));
                bytes = bytes.saturating_add(encoding.bytes());
            }
            let (stride, slots) = (bytes.next_multiple_of(align), decl.slots);
            let name = self.k.pipe_name(pipe);
            self.b.set_loc(decl.loc);
            let buffer = self.b.buffer(&name, stride.saturating_mul(slots), align);
            let poison =
                self.may_be_poison(pipe).then(|| self.b.buffer(&format!("{name}, what holds nothing"), 4 * slots, 16));
            let mode = if parts_roles(self.k, pipe) { self.words(pipe) } else { Mode::Counted };
            let zero = self.b.i32(0);
            self.rings.push(Ring { buffer, fields, stride, slots, mode, clocks: [[zero; 2]; 2], poison });
        }
    }

    fn may_be_poison(&self, pipe: Pipe) -> bool {
        let mut found = false;
        self.k.walk(&mut |_, op| {
            let poisons = matches!(
                op.kind,
                OpKind::Ttg(TtgOp::Fill(Fill::Poison) | TtgOp::AsyncProduce { skipped: Some(Fill::Poison), .. })
            );
            found |= poisons && op.args.first().is_some_and(|v| matches!(self.k.ty(*v), Ty::Token(_, p) if p == pipe));
        });
        found
    }

    /// The clocks that move in blocks, in order.
    pub(super) fn moving(&self, blocks: &[Block]) -> Vec<Clock> {
        let mut found = BTreeSet::new();
        for block in blocks {
            self.k.walk_block(*block, &mut |_, op| {
                let (pipe, side) = match &op.kind {
                    OpKind::Ttg(TtgOp::Acquire(pipe)) => (*pipe, 0),
                    OpKind::Ttg(TtgOp::Ready(pipe)) => (*pipe, 1),
                    _ => return,
                };
                found.insert((pipe.index(), side, 0));
                if matches!(self.rings[pipe.index()].mode, Mode::Parted(_)) {
                    found.insert((pipe.index(), side, 1));
                }
            });
        }
        found.into_iter().collect()
    }

    /// What clocks show.
    pub(super) fn clocks(&self, moving: &[Clock]) -> Vec<Reg> {
        moving.iter().map(|(ring, side, part)| self.rings[*ring].clocks[*side][*part]).collect()
    }

    /// Sets clocks.
    pub(super) fn set_clocks(&mut self, moving: &[Clock], regs: &[Reg]) {
        for ((ring, side, part), reg) in moving.iter().zip(regs) {
            self.rings[*ring].clocks[*side][*part] = *reg;
        }
    }

    /// The stage that a clock shows, and the clock goes on.
    fn tick(&mut self, pipe: Pipe, side: usize) -> Stage {
        let ring = &self.rings[pipe.index()];
        let ([slot, round], stride, slots) = (ring.clocks[side], ring.stride, ring.slots);
        let parted = matches!(ring.mode, Mode::Parted(_));
        let stride = self.b.i32(stride.cast_signed());
        let offset = self.b.mul(slot, stride);
        let next = self.b.add_const(slot, 1);
        let end = self.b.i32(slots.cast_signed());
        let zero = self.b.i32(0);
        let around = self.b.cmp_s(Pred::Eq, next, end);
        let next = self.b.select(around, zero, next);
        let further = if parted {
            let further = self.b.add_const(round, 1);
            self.b.select(around, further, round)
        } else {
            round
        };
        self.rings[pipe.index()].clocks[side] = [next, further];
        Stage { slot, offset, round }
    }

    /// A tile of a stage.
    fn field(&self, pipe: Pipe, stage: Stage, field: usize) -> Option<Staged> {
        let ring = self.rings.get(pipe.index())?;
        let (skip, encoding) = ring.fields.get(field)?;
        let ordered = matches!(ring.mode, Mode::Parted(_));
        Some(Staged { buffer: ring.buffer, encoding: encoding.clone(), base: Some((stage.offset, *skip)), ordered })
    }

    fn stage_of(&self, token: Value) -> Result<(Pipe, Stage), LowerError> {
        match (self.k.ty(token), &self.held[token.index()]) {
            (Ty::Token(_, pipe), Some(Held::Stage(stage))) => Ok((pipe, *stage)),
            (_, _) => Err(self.no_stage()),
        }
    }

    fn no_stage(&self) -> LowerError {
        LowerError::internal(self.k, "a token without a stage".to_owned())
    }

    pub(super) fn ring_op(&mut self, id: OpId, op: &Op, ttg: &TtgOp) -> Result<(), LowerError> {
        match ttg {
            TtgOp::Source(unit, _) => {
                let view = self.view(op.args[0])?;
                let rank = view.extents.len();
                let pad = self.scalar(op.args[rank + 1]);
                let source = Source { view, what: What::Tile(*unit, op.args[1..=rank].to_vec()), pad };
                self.hold(op.results[0], Held::Source(Box::new(source)));
            }
            TtgOp::SourceRows { .. } => {
                let view = self.view(op.args[0])?;
                let rank = view.extents.len();
                let pad = self.scalar(op.args[rank + 1]);
                let source = Source { view, what: What::Rows(op.args[1..rank].to_vec(), op.args[rank]), pad };
                self.hold(op.results[0], Held::Source(Box::new(source)));
            }
            TtgOp::Acquire(pipe) => {
                let stage = self.tick(*pipe, 0);
                self.wait_free(*pipe, stage);
                self.hold(op.results[0], Held::Stage(stage));
            }
            TtgOp::Ready(pipe) => {
                let stage = self.tick(*pipe, 1);
                self.hold(op.results[0], Held::Stage(stage));
            }
            TtgOp::AsyncProduce { skipped, .. } => self.fill(id, op, *skipped)?,
            TtgOp::Fill(fill) => self.fill_without(id, op, *fill)?,
            TtgOp::WaitReady => self.wait_ready(id, op)?,
            TtgOp::ReadPerm | TtgOp::Consumed | TtgOp::Join | TtgOp::Split(_) => self.pass_on(op),
            TtgOp::Poisoned => self.ask_poison(op)?,
            TtgOp::View { field, .. } => {
                let (pipe, stage) = self.stage_of(op.args[0])?;
                let Some(staged) = self.field(pipe, stage, usize::from(*field)) else { return Err(self.no_stage()) };
                self.hold(op.results[0], Held::Buffer(staged));
            }
            TtgOp::Read => {
                let Some(Held::Buffer(staged)) = self.held[op.args[0].index()].clone() else {
                    return Err(self.no_stage());
                };
                let home = self.home(op.results[0]);
                let regs = self.read_buffer(&staged, &home, self.k.ty(op.args[0]).elem());
                self.hold(op.results[0], Held::Tile(regs));
            }
            // The machine's matrix products have read their operands when the next instruction begins.
            TtgOp::ComputeIssue => self.product(id, op)?,
            TtgOp::AccMma => {
                self.product(id, op)?;
                let (pipe, stage) = self.stage_of(op.args[1])?;
                self.give_back(pipe, stage);
            }
            TtgOp::ComputeWait | TtgOp::AccStart(_) | TtgOp::AccFinish => self.same_registers(op)?,
            TtgOp::Rematerialize => self.same_value(op)?,
            TtgOp::Release => {
                let (pipe, stage) = self.stage_of(op.args[0])?;
                self.give_back(pipe, stage);
            }
            TtgOp::StoreWait | TtgOp::Fence { .. } => {}
            TtgOp::Write => self.write_stage(op)?,
            TtgOp::StoreIssue(unit) => self.store_stage(op, *unit)?,
            TtgOp::Finalize => self.drain(),
            TtgOp::Roles => self.part(op)?,
        }
        Ok(())
    }

    /// Each role runs its region with its own warps.
    fn part(&mut self, op: &Op) -> Result<(), LowerError> {
        let mut crews = Vec::new();
        let mut roles = Vec::new();
        let mut first = 0;
        for (index, warps) in self.plan.roles.iter().copied().enumerate() {
            if !warps.is_power_of_two() {
                let name = self.k.roles.get(index).map_or_else(String::new, |r| r.name.clone());
                let message = format!("the role `{name}` has {warps} warps; the count must be a power of two");
                return Err(self.refused(message, "give the role 1, 2, 4, 8 or 16 warps"));
            }
            crews.push(Crew { first, warps, role: Some(index) });
            roles.push(Role { warps, barrier: u8::try_from(index + 1).unwrap_or(u8::MAX) });
            first += warps;
        }
        if roles.len() > 15 {
            return Err(
                self.refused(format!("the kernel has {} roles; at most 15 are possible", roles.len()), "join some")
            );
        }
        let all = self.crew;
        let clocks: Vec<[[Reg; 2]; 2]> = self.rings.iter().map(|r| r.clocks).collect();
        let mut open = self.b.begin_roles(&roles, &[]);
        for (i, (crew, region)) in crews.into_iter().zip(&op.regions).enumerate() {
            if i > 0 {
                self.b.begin_else(&mut open);
            }
            // Every role has clocks of its own.
            self.rings.iter_mut().zip(&clocks).for_each(|(ring, start)| ring.clocks = *start);
            self.crew = crew;
            self.copying = false;
            self.moving.push(Moving { is_loop: false, clocks: Vec::new() });
            self.block(*region)?;
            self.moving.pop();
        }
        self.crew = all;
        self.copying = false;
        self.b.end(open);
        Ok(())
    }

    /// The same stage, under another right.
    fn pass_on(&mut self, op: &Op) {
        let held = self.held[op.args[0].index()].clone();
        for result in &op.results {
            self.held[result.index()] = held.clone();
        }
    }

    fn same_registers(&mut self, op: &Op) -> Result<(), LowerError> {
        let home = self.home(op.results[0]);
        let regs = self.tile(op.args[0], &home)?;
        self.hold(op.results[0], Held::Tile(regs));
        Ok(())
    }

    fn same_value(&mut self, op: &Op) -> Result<(), LowerError> {
        if self.k.ty(op.results[0]).is_in_registers() {
            return self.same_registers(op);
        }
        let reg = self.scalar(op.args[0]);
        self.hold(op.results[0], Held::Scalar(reg));
        Ok(())
    }

    /// Copies to a slot.
    fn fill(&mut self, id: OpId, op: &Op, skipped: Option<Fill>) -> Result<(), LowerError> {
        let (pipe, stage) = self.stage_of(op.args[0])?;
        let sources: Vec<Value> =
            op.args[1..].iter().copied().filter(|v| matches!(self.k.ty(*v), Ty::Source(..))).collect();
        let asked = skipped.and_then(|_| op.args.last()).map(|c| self.scalar(*c));
        let zero = self.b.i32(0);
        let word = match (skipped, asked) {
            (Some(Fill::Poison), Some(asked)) => {
                let one = self.b.i32(1);
                self.b.select(asked, zero, one)
            }
            (_, _) => zero,
        };
        let told = self.tell_poison(pipe, stage, word);
        let (mut copied, mut stored) = (false, told);
        for (i, value) in sources.into_iter().enumerate() {
            let (Some(staged), Some(Held::Source(source))) =
                (self.field(pipe, stage, i), self.held[value.index()].clone())
            else {
                return Err(self.no_stage());
            };
            let mut view = source.view.clone();
            // What is skipped is outside: zeros, and nothing is read.
            view.exists = self.both(view.exists, asked);
            let copies = match &source.what {
                What::Tile(unit, coords) => {
                    let tile = Tile { view: &view, unit: *unit, coords, value, pad: source.pad };
                    self.load_to_buffer(&tile, &staged)
                }
                What::Rows(rows, column) => {
                    let rows = Rows { view: &view, rows, column: *column, value, pad: source.pad };
                    self.rows_to_buffer(&rows, &staged)?
                }
            };
            copied |= copies;
            stored |= !copies;
        }
        self.filled(id, (pipe, stage), [copied, stored]);
        Ok(())
    }

    /// A stage without a copy.
    fn fill_without(&mut self, id: OpId, op: &Op, fill: Fill) -> Result<(), LowerError> {
        let (pipe, stage) = self.stage_of(op.args[0])?;
        let word = self.b.i32(i32::from(fill == Fill::Poison));
        self.tell_poison(pipe, stage, word);
        let fields = self.k.pipe(pipe).map(|p| p.fields.clone()).unwrap_or_default();
        for (i, field) in fields.iter().enumerate().filter(|_| fill == Fill::Zero) {
            let Some(staged) = self.field(pipe, stage, i) else { return Err(self.no_stage()) };
            self.clear(&staged, field.elem);
        }
        self.filled(id, (pipe, stage), [false, true]);
        Ok(())
    }

    /// The word of a stage, and what its accesses touch.
    fn poison_place(&mut self, pipe: Pipe, stage: Stage) -> Option<(Region, Place)> {
        let ring = self.rings.get(pipe.index())?;
        let buffer = ring.poison?;
        let region = if let Mode::Parted(_) = ring.mode { Region::Ring(buffer) } else { Region::Buffer(buffer) };
        let base = self.b.one(lane::OpKind::Buffer(buffer), &[]);
        let four = self.b.i32(4);
        let skip = self.b.mul(stage.slot, four);
        let address = self.b.add(base, skip);
        Some((region, Place { space: Space::Shared, address, offset: 0 }))
    }

    /// One thread says whether a stage holds nothing; gives whether there was anything to say.
    fn tell_poison(&mut self, pipe: Pipe, stage: Stage, word: Reg) -> bool {
        let Some((region, place)) = self.poison_place(pipe, stage) else { return false };
        self.touch(region, true);
        let first = self.is_first_thread();
        self.store_vector(place, crate::ir::Elem::I32, &[word], Some(first));
        true
    }

    fn ask_poison(&mut self, op: &Op) -> Result<(), LowerError> {
        let (pipe, stage) = self.stage_of(op.args[0])?;
        let answer = match self.poison_place(pipe, stage) {
            Some((region, place)) => {
                self.touch(region, false);
                let word = self.load_vector(place, crate::ir::Elem::I32, 1, None)[0];
                let zero = self.b.i32(0);
                self.b.cmp_u(Pred::Ne, word, zero)
            }
            None => self.b.one(lane::OpKind::Const(lane::Ty::Pred, 0), &[]),
        };
        self.hold(op.results[0], Held::Scalar(answer));
        Ok(())
    }

    /// Fills a slot of a staging ring from registers.
    fn write_stage(&mut self, op: &Op) -> Result<(), LowerError> {
        let (pipe, stage) = self.stage_of(op.args[0])?;
        for (i, value) in op.args[1..].iter().enumerate() {
            let Some(staged) = self.field(pipe, stage, i) else { return Err(self.no_stage()) };
            let home = self.home(*value);
            let regs = self.tile(*value, &home)?;
            self.write_buffer(&staged, &regs, &home, self.k.ty(*value).elem());
        }
        self.pass_on(op);
        Ok(())
    }

    /// Stores a slot: read in whole lines, and done when the instruction is.
    fn store_stage(&mut self, op: &Op, unit: Unit) -> Result<(), LowerError> {
        let Some(token) = op.args.last().copied() else { return Err(self.no_stage()) };
        let (pipe, stage) = self.stage_of(token)?;
        let field = self.k.pipe(pipe).and_then(|p| p.fields.first().copied());
        let (Some(staged), Some(field)) = (self.field(pipe, stage, 0), field) else { return Err(self.no_stage()) };
        let extents: Vec<u32> = field.shape.into();
        let layout = crate::plan::wide(&extents, field.elem.bits(), self.plan.target.lanes, self.crew.warps);
        let regs = self.read_buffer(&staged, &layout, field.elem);
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        self.store_registers(&view, (unit, &op.args[1..=rank]), &regs, &layout);
        if let Some(result) = op.results.first() {
            self.hold(*result, Held::Stage(stage));
        }
        Ok(())
    }
}

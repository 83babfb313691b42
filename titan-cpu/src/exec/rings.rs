//! Rings during a program: queues of stages, which describe what was copied to them.

use super::rows::fill_rows;
use super::tile::{Data, Tile};
use super::{Machine, Outcome, out_of_memory, trap};
use crate::plan::rings::{RingId, RingPlan, RingStep, Source};
use crate::plan::{ScalarSlot, TileSlot};
use crate::runtime::view::View;
use std::collections::VecDeque;
use std::sync::Arc;
use titan_core::ir::{Fill, Loc};

/// The source of a copy.
#[derive(Clone, Debug)]
pub(super) enum Copied<'m> {
    /// A tile whose first element has these coordinates.
    Tile { view: View<'m>, start: [i64; 4], pad: u64 },
    /// Rows, by their coordinates on the axes before the column.
    Rows { view: View<'m>, rows: Arc<Vec<[i64; 4]>>, col: i64, pad: u64 },
}

/// The contents of a stage.
#[derive(Clone, Debug)]
pub(super) enum Content<'m> {
    /// The stage is not filled yet.
    Nothing,
    Copied(Vec<Copied<'m>>),
    Zero,
    Poison,
}

#[derive(Clone, Debug)]
struct Stage<'m> {
    content: Content<'m>,
    /// The number of readers that have not released it.
    left: usize,
}

/// A ring. Ring times count from the start of the program.
#[derive(Clone, Debug)]
pub(super) struct Ring<'m> {
    plan: RingPlan,
    /// The stages that some reader has not released, and the time of the first.
    stages: VecDeque<Stage<'m>>,
    first: u64,
    /// The next time of each reader.
    clocks: Vec<u64>,
}

impl<'m> Ring<'m> {
    pub(super) fn new(plan: RingPlan) -> Self {
        Ring { plan, stages: VecDeque::new(), first: 0, clocks: vec![0; plan.readers] }
    }

    /// Resets the ring to its state before any program.
    pub(super) fn reset(&mut self) {
        self.stages.clear();
        self.first = 0;
        self.clocks.fill(0);
    }

    pub(super) fn is_full(&self) -> bool {
        self.stages.len() >= self.plan.room
    }

    fn acquire(&mut self) -> u64 {
        self.stages.push_back(Stage { content: Content::Nothing, left: self.plan.readers });
        self.first + self.stages.len() as u64 - 1
    }

    fn index(&self, time: u64) -> Option<usize> {
        usize::try_from(time.checked_sub(self.first)?).ok()
    }

    /// The contents of the stage of a time.
    pub(super) fn content(&self, time: u64) -> &Content<'m> {
        self.index(time).and_then(|i| self.stages.get(i)).map_or(&Content::Nothing, |stage| &stage.content)
    }

    pub(super) fn is_filled(&self, time: u64) -> bool {
        !matches!(self.content(time), Content::Nothing)
    }

    fn fill(&mut self, time: u64, content: Content<'m>) {
        if let Some(stage) = self.index(time).and_then(|i| self.stages.get_mut(i)) {
            stage.content = content;
        }
    }

    /// The next time of a reader.
    pub(super) fn clock(&self, reader: usize) -> u64 {
        self.clocks.get(reader).copied().unwrap_or(u64::MAX)
    }

    /// The next time of a reader, which advances by `count`.
    pub(super) fn claim(&mut self, reader: usize, count: u64) -> u64 {
        let time = self.clock(reader);
        if let Some(clock) = self.clocks.get_mut(reader) {
            *clock += count;
        }
        time
    }

    /// Records that one reader releases a stage.
    pub(super) fn release(&mut self, time: u64) {
        if let Some(stage) = self.index(time).and_then(|i| self.stages.get_mut(i)) {
            stage.left = stage.left.saturating_sub(1);
        }
        while self.stages.front().is_some_and(|stage| stage.left == 0) {
            self.stages.pop_front();
            self.first += 1;
        }
    }
}

impl<'m> Machine<'_, 'm> {
    pub(super) fn ring_step(&mut self, step: &RingStep, loc: Loc) -> Outcome<()> {
        match step {
            RingStep::Acquire { ring, to } => {
                let time = self.rings[*ring].acquire();
                self.set(*to, time);
            }
            RingStep::Produce { ring, time, sources, unless } => {
                let content = match unless {
                    Some((condition, fill)) if self.scalar(*condition) == 0 => filled(*fill),
                    Some(_) | None => {
                        let copied = sources.iter().map(|source| self.copied(source));
                        Content::Copied(copied.collect::<Outcome<_>>()?)
                    }
                };
                let time = self.scalar(*time);
                self.rings[*ring].fill(time, content);
            }
            RingStep::Fill { ring, time, fill } => {
                let time = self.scalar(*time);
                self.rings[*ring].fill(time, filled(*fill));
            }
            RingStep::Ready { ring, reader, to } => {
                let time = self.rings[*ring].claim(*reader, 1);
                self.set(*to, time);
            }
            RingStep::Wait { ring, time } => {
                if !self.is_filled(*ring, *time) {
                    return trap(loc, "a stage is read that is not filled, and no other role can fill it".to_owned());
                }
            }
            RingStep::Poisoned { to, ring, time } => {
                let poisoned = matches!(self.rings[*ring].content(self.scalar(*time)), Content::Poison);
                self.set(*to, poisoned.into());
            }
            RingStep::View { to, ring, time, field } => return self.stage_view(*to, (*ring, *time), *field, loc),
            RingStep::Release { ring, time } => {
                let time = self.scalar(*time);
                self.rings[*ring].release(time);
            }
        }
        Ok(())
    }

    /// Whether the stage of a token is filled.
    pub(super) fn is_filled(&self, ring: RingId, time: ScalarSlot) -> bool {
        self.rings[ring].is_filled(self.scalar(time))
    }

    fn copied(&mut self, source: &Source) -> Outcome<Copied<'m>> {
        Ok(match source {
            Source::Tile { from, shape, pad } => {
                Copied::Tile { view: self.view(from.view), start: self.start(from, *shape), pad: self.scalar(*pad) }
            }
            Source::Rows { view, rows, count, col, pad } => {
                self.dense_rows(rows)?;
                let mut all = Vec::new();
                all.try_reserve_exact(*count).map_err(|_| out_of_memory(*count * size_of::<[i64; 4]>()))?;
                all.extend((0..*count).map(|i| self.row(rows, i)));
                let (view, col, pad) = (self.view(*view), i64::from(self.int(*col)), self.scalar(*pad));
                Copied::Rows { view, rows: Arc::new(all), col, pad }
            }
        })
    }

    /// A tile of a stage: loaded now, or left in the tensor.
    fn stage_view(&mut self, to: TileSlot, (ring, time): (RingId, ScalarSlot), field: usize, loc: Loc) -> Outcome<()> {
        let copied = match self.rings[ring].content(self.scalar(time)) {
            Content::Zero => {
                self.set_tile(to, Tile { data: Data::Splat(0), first: 0, strides: [0; 4], dense: false });
                return Ok(());
            }
            Content::Copied(copied) => copied.get(field),
            Content::Nothing | Content::Poison => None,
        };
        match copied {
            Some(Copied::Tile { view, start, pad }) => {
                if let Some(tile) = self.lazy_tile(to, view, *start) {
                    self.set_tile(to, tile);
                } else {
                    let (view, start, pad) = (*view, *start, *pad);
                    self.load_dense(to, &view, start, pad)?;
                }
            }
            Some(Copied::Rows { view, rows, col, pad }) => {
                let (view, rows, col, pad) = (*view, Arc::clone(rows), *col, *pad);
                let info = self.plan.tiles[to as usize];
                self.make(to, |m, out| {
                    fill_rows(&view, &info, (col, pad), out, m.isa, |i| rows.get(i).copied().unwrap_or([-1; 4]));
                })?;
            }
            None => return trap(loc, "a stage is read that holds nothing".to_owned()),
        }
        Ok(())
    }
}

fn filled<'m>(fill: Fill) -> Content<'m> {
    match fill {
        Fill::Zero => Content::Zero,
        Fill::Poison => Content::Poison,
    }
}

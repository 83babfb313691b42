//! Bulk copies of tiles and MMAs of warpgroups, in laid-out kernels.
//!
//! One thread starts a copy for its role; its bytes arrive at the barrier when it completes. The four warps of a warpgroup start an
//! MMA together: from then until its group is waited for, it reads the rows of A and the columns of B that belong to the part of the
//! accumulator which the warpgroup holds. Each warp waits for its own groups, and computes what it holds.
//!
//! The result of an MMA is in flight: a number, under which the sum will lie. The next MMA on the accumulator takes the number over
//! and begins when the one before is complete; a wait that completes the group gives the sum.
//!
//! Deliberately absent: registers of A and of the accumulator while an MMA is in flight, which values of the IR cannot change.
#![expect(clippy::wildcard_enum_match_arm, reason = "operands that are not what an operation takes are refused alike")]

use super::access::{shared, tensor};
use super::arith::bytes;
use super::barrier_ops::unknown;
use super::finding::{Found, Kind};
use super::laid::{addresses, extents, ranges};
use super::machine::{Machine, Obs, index};
use super::plan::{BULK_LOAD, BULK_STORE, BULK_WRITE, WGMMA};
use super::value::{Local, Named, Num, Source, Tile, Val};
use super::work::{Effect, Operand, Part, Res, Touch, Work};
use crate::engine::{AccessKind, Agent, Signal, Strength};
use std::collections::BTreeSet;
use std::rc::Rc;
use titan_core::ir::{Op, OpId, TileShape, Value};

/// The number of warps of a warpgroup.
const WARPS: usize = 4;

impl Machine<'_> {
    /// Starts the copy of a tile of a tensor to shared memory; elements outside of the tensor become zero.
    ///
    /// For several programs of the cluster, each copies the part of its rank to all of them.
    pub(super) fn copy_tile(
        &mut self,
        agent: usize,
        id: OpId,
        op: &Op,
        (stated, multicast): (u32, u16),
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        if !self.is_first(agent) {
            return Ok(());
        }
        let Val::Source(source) = self.arg(agent, op, 0) else { return Err(unknown("a tile of a tensor")) };
        if matches!(source.what, Named::Rows(..)) {
            return Err(Found::not_modelled("a bulk copy of rows that indices name"));
        }
        let local = self.local_arg(agent, op, 1)?;
        let mut places: Vec<(Option<usize>, u64)> =
            addresses(&local).enumerate().map(|(i, at)| (Some(i), at)).collect();
        let size = bytes::size(local.elem) as u64;
        copied(&ranges(places.iter().map(|(_, at)| *at), size), stated)?;
        let receivers = self.receivers(agent, multicast)?;
        let parts = if multicast == 0 { 1 } else { self.ctas.len() };
        let rows = extents(local.shape).first().map_or(1, |n| *n as usize);
        if !rows.is_multiple_of(parts) {
            return Err(Found::new(Kind::Bounds, format!("{rows} rows are copied in {parts} equal parts")));
        }
        let (own, each) = (if parts == 1 { 0 } else { self.cta(agent) }, places.len() / parts);
        // `places` is in row-major order, so these are the rows of this rank's part.
        places = places.into_iter().skip(own * each).take(each).collect();
        let ranges = ranges(places.iter().map(|(_, at)| *at), size);
        let bytes = u32::try_from(ranges.iter().map(|(lo, hi)| hi - lo).sum::<u64>()).unwrap_or(u32::MAX);
        let pad = if local.elem.is_float() { Num::Float(0.0) } else { Num::Int(0) };
        let (places, source) = (Rc::new(places), Rc::new(Source { pad, ..(*source).clone() }));
        for cta in receivers {
            let (barrier, n) = self.barriers_of(agent, cta, op, 2)?;
            if n != 1 {
                return Err(Found::new(Kind::Barrier, format!("{n} barriers, where one is required")));
            }
            self.check_fenced(cta, barrier)?;
            let mut touches: Vec<Touch> = ranges.iter().map(|(lo, hi)| shared(cta, *lo, *hi, true)).collect();
            if !self.is_input(source.view.param) {
                touches.push(tensor(&source.view, None, None, false, false));
            }
            let (source, places) = (Rc::clone(&source), Rc::clone(&places));
            let effect = Effect::Deal { cta, source, places, elem: local.elem, ranges: ranges.clone() };
            let work = Work { op: id, time: None, touches, effect };
            let signals = vec![Signal::Bytes { barrier, bytes }];
            self.start(agent, BULK_LOAD, (Vec::new(), signals), work, obs)?;
        }
        Ok(())
    }

    /// Starts the copy of a tile in shared memory to a tensor: shared memory is read first, then the tensor is written.
    pub(super) fn store_copy(&mut self, agent: usize, id: OpId, op: &Op, stated: u32, obs: Obs<'_, '_>) -> Res<()> {
        if !self.is_first(agent) {
            return Ok(());
        }
        let Val::Source(to) = self.arg(agent, op, 0) else { return Err(unknown("a tile of a tensor")) };
        let first = match &to.what {
            Named::From(first) => Some(first.clone()),
            Named::Unknown => None,
            Named::Rows(..) => return Err(Found::not_modelled("a bulk copy to rows that indices name")),
        };
        let (local, cta, number) = (self.local_arg(agent, op, 1)?, self.cta(agent), self.number(agent)?);
        let places: Vec<u64> = addresses(&local).collect();
        let ranges = ranges(places.iter().copied(), bytes::size(local.elem) as u64);
        copied(&ranges, stated)?;
        let (kept, elem, shape) = ((agent, number), local.elem, to.shape);
        let touches = ranges.iter().map(|(lo, hi)| shared(cta, *lo, *hi, false)).collect();
        let tile = Operand::Placed { cta, elem, shape: local.shape, places: Rc::new(places), ranges: Rc::new(ranges) };
        let read = Work { op: id, time: None, touches, effect: Effect::KeepTile { id: kept, tile, elem } };
        let read = self.start(agent, BULK_STORE, (Vec::new(), Vec::new()), read, obs)?;
        let view = Rc::clone(&to.view);
        let touches = vec![tensor(&view, first.as_deref(), Some(shape), true, false)];
        let effect = Effect::Put { id: kept, view: Rc::clone(&view), first: first.clone(), shape };
        let put = Work { op: id, time: None, touches, effect };
        let put = self.start(agent, BULK_WRITE, (vec![read], Vec::new()), put, obs)?;
        let Some(first) = first else { return Ok(()) };
        let write = (AccessKind::Write, Strength::Weak);
        self.tell_tensor((agent, id), (&view, &first, shape), write, Self::helper(BULK_WRITE, put), obs)
    }

    /// The rows and columns of an accumulator that some of the warps of a role hold.
    fn lines_held(&self, acc: Value, warps: impl Iterator<Item = usize>) -> Res<Part> {
        let (mut rows, mut columns) = (BTreeSet::new(), BTreeSet::new());
        let extents = self.kernel().ty(acc).tile_shape().map_or_else(Vec::new, extents);
        for warp in warps {
            let Some(held) = self.plan.parts(self.kernel(), acc, warp) else {
                return Err(Found::not_modelled("an MMA of warpgroups without a layout"));
            };
            let inside = held.iter().filter(|part| extents.iter().zip(part.at).all(|(n, i)| i < *n));
            for part in inside {
                rows.insert(part.at[0]);
                columns.insert(part.at[1]);
            }
        }
        Ok(Part { rows: rows.into_iter().collect(), columns: columns.into_iter().collect() })
    }

    /// Starts a step of an MMA of warpgroups.
    pub(super) fn start_step(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let Some(result) = op.results.first().copied() else { return Err(unknown("an MMA without a result")) };
        let Some(set) = self.warp_set(agent) else {
            return Err(Found::not_modelled("an MMA of warpgroups without a layout"));
        };
        if !(set.warps as usize).is_multiple_of(WARPS) {
            let message = format!("an MMA of warpgroups in code of {} warps", set.warps);
            return Err(Found::new(Kind::Participants, message));
        }
        let written = &self.look(agent)?.written_to;
        if let Some(value) = op.args.iter().find(|v| written.contains(&v.index())) {
            let name = self.kernel().display_name(*value);
            let message = format!(
                "an MMA reads the registers of `{name}`, and no `ttg.nv.wgmma.fence` followed the write to them"
            );
            return Err(Found::new(Kind::Fence, message));
        }
        let first = set.index / WARPS * WARPS;
        let own = self.lines_held(result, set.index..=set.index)?;
        let group = self.lines_held(result, first..first + WARPS)?;
        let (mut touches, mut operands) = (Vec::new(), Vec::new());
        for (i, (own, all)) in [(&own.rows, &group.rows), (&own.columns, &group.columns)].into_iter().enumerate() {
            operands.push(match self.arg(agent, op, i) {
                Val::Local(local) => {
                    let lines = placed(&local, i, all)?;
                    touches.extend(lines.1.iter().map(|(lo, hi)| shared(self.cta(agent), *lo, *hi, false)));
                    let (places, ranges, shape) = placed(&local, i, own)?;
                    let (places, ranges) = (Rc::new(places), Rc::new(ranges));
                    Operand::Placed { cta: self.cta(agent), elem: local.elem, shape, places, ranges }
                }
                Val::Tile(tile) => lines_of(&tile, i, own).map_or(Operand::Unknown, |own| Operand::Tile(Rc::new(own))),
                _ => Operand::Unknown,
            });
        }
        let (Some(b), Some(a)) = (operands.pop(), operands.pop()) else { return Err(unknown("an operand")) };
        let from = match self.arg(agent, op, 2) {
            Val::Compute { id: number, .. } => self.taken_over(agent, number)?,
            _ => {
                let number = self.number(agent)?;
                self.keep_tile(agent, number, op, 2)?;
                number
            }
        };
        let number = self.number(agent)?;
        let elem = self.kernel().ty(result).elem();
        let (from, sum, part) = ((agent, from), (agent, number), Rc::new(own));
        let before = self.engine.pending().of(Agent::new(agent), WGMMA).last().copied();
        let work = Work { op: id, time: None, touches, effect: Effect::Step { from, id: sum, a, b, elem, part } };
        self.start(agent, WGMMA, (before.into_iter().collect(), Vec::new()), work, obs)?;
        // The MMA belongs to the group that is committed next.
        let group = self.look(agent)?.groups[usize::from(WGMMA.0)].committed;
        self.thread(agent)?.products.insert(number);
        self.set(agent, &op.results, [Val::Compute { id: number, group }])
    }

    /// Consumes the result of an MMA in flight, which can be used only once.
    fn taken_over(&mut self, agent: usize, number: u32) -> Res<u32> {
        if self.thread(agent)?.products.remove(&number) {
            return Ok(number);
        }
        Err(Found::new(Kind::Token, "the result of an MMA in flight is used twice"))
    }

    /// Defines the results of MMAs after a wait that leaves at most `n` groups in flight.
    pub(super) fn take_sums(&mut self, agent: usize, op: &Op, n: u32) -> Res<()> {
        let mut sums = Vec::new();
        for i in 0..op.results.len() {
            let Val::Compute { id: number, group } = self.arg(agent, op, i) else {
                return Err(unknown("the result of an MMA"));
            };
            let number = self.taken_over(agent, number)?;
            let committed = self.look(agent)?.groups[usize::from(WGMMA.0)].committed;
            if group >= committed {
                return Err(Found::new(Kind::InFlight, "the result of an MMA is used whose group is not committed"));
            }
            if group >= committed.saturating_sub(n) {
                let younger = committed - group - 1;
                return Err(Found::new(
                    Kind::InFlight,
                    format!(
                        "the result of an MMA is used that may be in flight: the wait leaves {n} groups, and {younger} \
                         were committed after its own"
                    ),
                ));
            }
            let sum: Option<Rc<Tile>> = self.store.results.remove(&(agent, number));
            sums.push(sum.map_or(Val::Unknown, Val::Tile));
        }
        self.set(agent, &op.results, sums)
    }
}

/// The number of bytes of a copy, which must be the number that it states.
fn copied(ranges: &[(u64, u64)], stated: u32) -> Res<u32> {
    let copied = u32::try_from(ranges.iter().map(|(lo, hi)| hi - lo).sum::<u64>()).unwrap_or(u32::MAX);
    if copied == stated {
        return Ok(copied);
    }
    let message = format!("a copy is told to have {stated} bytes, but its tile has {copied}");
    Err(Found::new(Kind::Bytes, message))
}

/// Elements in shared memory: their addresses in row-major order, the byte ranges that they cover, and their extents.
type Placed = (Vec<u64>, Vec<(u64, u64)>, TileShape);

/// The addresses of some lines of an operand: rows of A, columns of B.
fn placed(local: &Local, axis: usize, lines: &[u32]) -> Res<Placed> {
    let depth = local.shape.get(1 - axis).map_or(0, |n| u32::try_from(*n).unwrap_or(0));
    let at = |line: u32, k: u32| local.address(if axis == 0 { [line, k, 0, 0] } else { [k, line, 0, 0] });
    let places: Vec<u64> = match axis {
        0 => lines.iter().flat_map(|line| (0..depth).map(move |k| (*line, k))).map(|(l, k)| at(l, k)).collect(),
        _ => (0..depth).flat_map(|k| lines.iter().map(move |line| (*line, k))).map(|(l, k)| at(l, k)).collect(),
    };
    let ranges = ranges(places.iter().copied(), bytes::size(local.elem) as u64);
    let shape = shape_of(axis, lines.len(), depth as usize).ok_or_else(|| unknown("an operand"))?;
    Ok((places, ranges, shape))
}

/// Extracts some lines of an operand in registers.
fn lines_of(tile: &Tile, axis: usize, lines: &[u32]) -> Option<Tile> {
    let extent = |axis: usize| tile.shape.get(axis).and_then(|n| usize::try_from(*n).ok());
    let (depth, columns) = (extent(1 - axis)?, extent(1)?);
    let place = |row: usize, column: usize| row * columns + column;
    let places: Vec<usize> = match axis {
        0 => lines.iter().flat_map(|row| (0..depth).map(move |k| place(*row as usize, k))).collect(),
        _ => (0..depth).flat_map(|k| lines.iter().map(move |column| place(k, *column as usize))).collect(),
    };
    Some(Tile { shape: shape_of(axis, lines.len(), depth)?, cells: tile.cells.pick(places.into_iter()) })
}

fn shape_of(axis: usize, lines: usize, depth: usize) -> Option<TileShape> {
    let (lines, depth) = (index(lines).cast_signed(), index(depth).cast_signed());
    TileShape::new(&if axis == 0 { [lines, depth] } else { [depth, lines] })
}

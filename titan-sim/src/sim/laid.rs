//! Laid-out kernels: the execution of each warp on its part of a tile.
//!
//! A warp is an agent. It computes with whole tiles, in which the elements that its threads do not hold are meaningless: no
//! operation exposes them. Stores, copies and loads touch exactly the bytes of the elements that the layout assigns to the
//! warp's threads, so that a missing barrier between warps shows up as a race, and as stale bytes.
//!
//! Deliberately absent: order among the lanes of a warp, which execute in lockstep; halves of bytes in shared memory.
#![expect(clippy::wildcard_enum_match_arm, reason = "operands that are not what an operation takes are refused alike")]

use super::access::shared;
use super::arith::{bytes, product, reduce};
use super::barrier_ops::unknown;
use super::eval::{apply, value};
use super::finding::{Found, Kind};
use super::machine::{Machine, Obs};
use super::plan::{CP_ASYNC, WarpSet};
use super::value::{Cells, Local, Num, Source, Tile, Val};
use super::work::{Effect, Res, Touch, Work};
use std::rc::Rc;
use titan_core::ir::{Coords, Elem, Fold, LocalOp, Op, OpId, OpKind, RegionOp, TileShape, Ty, Value};

/// An element that a warp holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) at: Coords,
    /// Whether the warp is the first among all warps and lanes that hold the element: each element is written once.
    pub(super) first: bool,
}

/// The row-major number of an element; `None` outside of the tile.
fn index_of(at: Coords, extents: &[u32]) -> Option<usize> {
    let inside = extents.iter().zip(at).all(|(n, i)| i < *n);
    inside.then(|| extents.iter().zip(at).fold(0, |sum, (n, i)| sum * (*n as usize) + i as usize))
}

/// The coordinates of the element with this row-major number.
fn coords_of(i: usize, extents: &[u32]) -> Coords {
    let (mut rest, mut at) = (i, [0u32; 4]);
    for axis in (0..extents.len()).rev() {
        at[axis] = u32::try_from(rest % extents[axis] as usize).unwrap_or(0);
        rest /= extents[axis] as usize;
    }
    at
}

/// The addresses of all elements of a tile, in row-major order.
pub(super) fn addresses(local: &Local) -> impl Iterator<Item = u64> + '_ {
    let dims = extents(local.shape);
    (0..local.shape.len()).map(move |i| local.address(coords_of(i, &dims)))
}

pub(super) fn extents(shape: TileShape) -> Vec<u32> {
    shape.into()
}

/// The maximal contiguous byte ranges that cover these addresses, given in any order.
pub(super) fn ranges(places: impl Iterator<Item = u64>, size: u64) -> Vec<(u64, u64)> {
    let mut starts: Vec<u64> = places.collect();
    starts.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::new();
    for at in starts {
        match out.last_mut() {
            Some((_, end)) if *end >= at => *end = (*end).max(at + size),
            Some(_) | None => out.push((at, at + size)),
        }
    }
    out
}

impl Machine<'_> {
    /// The warp set that an agent belongs to, if the kernel is laid out.
    pub(super) fn warp_set(&self, agent: usize) -> Option<WarpSet> {
        let thread = self.threads.get(agent)?;
        self.plan.warp_set(thread.local, thread.in_role)
    }

    /// Whether an agent executes the operations that one thread performs for its whole role or program.
    pub(super) fn is_first(&self, agent: usize) -> bool {
        self.warp_set(agent).is_none_or(|warp_set| warp_set.index == 0)
    }

    /// The elements of a tile that a warp holds.
    pub(super) fn held(&self, agent: usize, value: Value) -> Option<&[Part]> {
        let warp_set = self.warp_set(agent)?;
        self.plan.parts(self.kernel(), value, warp_set.index)
    }

    /// For each element of a tile, whether the agent is the first to hold it; `None` stands for all elements.
    pub(super) fn owns(&self, agent: usize, value: Value) -> Option<Vec<bool>> {
        let parts = self.held(agent, value)?;
        let extents = extents(self.kernel().ty(value).tile_shape()?);
        let mut mask = vec![false; extents.iter().product::<u32>() as usize];
        for part in parts.iter().filter(|p| p.first) {
            if let Some(slot) = index_of(part.at, &extents).and_then(|i| mask.get_mut(i)) {
                *slot = true;
            }
        }
        Some(mask)
    }

    /// Executes an operation on tiles in a region.
    pub(super) fn tile_in_region(&mut self, agent: usize, op: &Op, what: &RegionOp) -> Res<()> {
        let RegionOp::Tile { offset, elem, shape } = what else { return Err(unknown("a tile")) };
        let (lo, hi) = self.bytes(agent, op, 0)?;
        let Some(encoding) = op.results.first().and_then(|v| self.kernel().encoding(*v)).cloned() else {
            return Err(Found::not_modelled("a tile in shared memory without a layout"));
        };
        let base = lo + u64::from(*offset);
        if base + u64::from(encoding.bytes()) > hi {
            return Err(Found::new(
                Kind::Bounds,
                format!("a tile of {} bytes in a region of {}", encoding.bytes(), hi - lo),
            ));
        }
        let local = Local { base, encoding: Rc::new(encoding), origin: [0; 4], elem: *elem, shape: *shape };
        self.set(agent, &op.results, [Val::Local(Rc::new(local))])
    }

    pub(super) fn local_arg(&self, agent: usize, op: &Op, i: usize) -> Res<Rc<Local>> {
        match self.arg(agent, op, i) {
            Val::Local(local) => Ok(local),
            _ => Err(unknown("a tile in shared memory")),
        }
    }

    /// The addresses of the elements of a tile that an agent touches: those it holds, or only those it is the first to hold.
    fn places(&self, agent: usize, value: Value, local: &Local, only_first: bool) -> Res<Vec<(usize, u64)>> {
        let Some(parts) = self.held(agent, value) else { return Err(unknown("a tile with a layout")) };
        let extents = extents(local.shape);
        let mut out: Vec<(usize, u64)> = Vec::new();
        for part in parts.iter().filter(|p| p.first || !only_first) {
            let Some(i) = index_of(part.at, &extents) else { continue };
            out.push((i, local.address(part.at)));
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    pub(super) fn local(&mut self, agent: usize, id: OpId, op: &Op, local: LocalOp, obs: Obs<'_, '_>) -> Res<()> {
        let result = match local {
            LocalOp::Alloc { .. } => return Err(Found::not_modelled("shared memory without an address")),
            LocalOp::Store => return self.store_local(agent, id, op, obs),
            LocalOp::Load => self.load_local(agent, id, op, obs)?,
            LocalOp::Copy { asynchronous } => return self.copy_local(agent, id, op, asynchronous, obs),
            LocalOp::Fetch { .. } => self.fetch_local(agent, id, op, obs)?,
            LocalOp::Settle { .. } => return Err(unknown("a wait whose groups are not counted")),
            LocalOp::Guard => self.guard_local(agent, op)?,
            LocalOp::Slice { axis, n } => self.slice_local(agent, op, (usize::from(axis), n))?,
            LocalOp::Reshape(shape) => {
                let old = self.local_arg(agent, op, 0)?;
                let encoding = op.results.first().and_then(|v| self.kernel().encoding(*v)).cloned();
                let encoding = encoding.ok_or_else(|| unknown("the layout of a tile in shared memory"))?;
                Val::Local(Rc::new(Local { encoding: Rc::new(encoding), shape, ..(*old).clone() }))
            }
            LocalOp::Stack => self.stack(agent, op),
            LocalOp::Mma => self.fragment_product(agent, op),
            LocalOp::Convert => self.arg(agent, op, 0),
            LocalOp::Fold { f, axis, .. } => return self.fold(agent, op, f, usize::from(axis)),
        };
        self.set(agent, &op.results, [result])?;
        if let (LocalOp::Slice { .. }, [part], [whole, ..]) = (local, &op.results[..], &op.args[..]) {
            // A slice shares the registers of the whole tile, so taking it writes none of them.
            let written = &mut self.thread(agent)?.written_to;
            if !written.contains(&whole.index()) {
                written.remove(&part.index());
            }
        }
        Ok(())
    }

    fn touch_places(&self, agent: usize, id: OpId, ranges: &[(u64, u64)], write: bool, obs: Obs<'_, '_>) -> Res<()> {
        let cta = self.cta(agent);
        ranges.iter().try_for_each(|(lo, hi)| self.touch(agent, id, None, shared(cta, *lo, *hi, write), &mut *obs))
    }

    fn store_local(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let (local, cta) = (self.local_arg(agent, op, 1)?, self.cta(agent));
        let places = self.places(agent, op.args[0], &local, true)?;
        let size = bytes::size(local.elem);
        let ranges = ranges(places.iter().map(|(_, at)| *at), size as u64);
        self.touch_places(agent, id, &ranges, true, obs)?;
        let tile = self.arg(agent, op, 0);
        let Machine { engine, store, .. } = self;
        // Tiles derived from constants are known even where tiles are not computed.
        let (Val::Tile(tile), true) = (tile, store.data) else {
            return ranges.into_iter().try_for_each(|(lo, hi)| store.define(engine, cta, lo, hi));
        };
        for (i, at) in places {
            let one = Cells::collect(local.elem, std::iter::once(tile.cells.get(i)));
            store.write_shared(engine, cta, at, &bytes::encode(local.elem, &one))?;
        }
        Ok(())
    }

    fn load_local(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<Val> {
        let (local, cta) = (self.local_arg(agent, op, 0)?, self.cta(agent));
        let Some(result) = op.results.first() else { return Ok(Val::Unknown) };
        let places = self.places(agent, *result, &local, false)?;
        let size = bytes::size(local.elem) as u64;
        let ranges = ranges(places.iter().map(|(_, at)| *at), size);
        self.touch_places(agent, id, &ranges, false, obs)?;
        if !self.store.data {
            for (lo, hi) in ranges {
                self.store.read_shared(&self.engine, cta, lo, hi - lo)?;
            }
            return Ok(Val::Unknown);
        }
        let mut nums = vec![Num::Int(0); local.shape.len()];
        for (i, at) in places {
            let raw = self.store.read_shared(&self.engine, cta, at, size)?;
            nums[i] = bytes::decode(local.elem, &raw).get(0);
        }
        Ok(value(Ty::Tile(local.elem, local.shape), Cells::collect(local.elem, nums.into_iter())))
    }

    /// Reads all elements of a tile in shared memory.
    pub(super) fn read_all(&self, agent: usize, id: OpId, local: &Local, obs: Obs<'_, '_>) -> Res<Val> {
        let (cta, size) = (self.cta(agent), bytes::size(local.elem) as u64);
        let places: Vec<u64> = addresses(local).collect();
        self.touch_places(agent, id, &ranges(places.iter().copied(), size), false, obs)?;
        let mut nums = Vec::new();
        for at in places {
            let raw = self.store.read_shared(&self.engine, cta, at, size)?;
            nums.push(if self.store.data { bytes::decode(local.elem, &raw).get(0) } else { Num::Int(0) });
        }
        let cells = Cells::collect(local.elem, nums.into_iter());
        Ok(if self.store.data { value(Ty::Tile(local.elem, local.shape), cells) } else { Val::Unknown })
    }

    fn copy_local(&mut self, agent: usize, id: OpId, op: &Op, asynchronous: bool, obs: Obs<'_, '_>) -> Res<()> {
        let (local, cta) = (self.local_arg(agent, op, 1)?, self.cta(agent));
        let Val::Source(source) = self.arg(agent, op, 0) else { return Err(unknown("a tile of a tensor")) };
        let Some(parts) = self.held(agent, op.args[0]) else { return Err(unknown("a copy with a layout")) };
        let tile = extents(source.shape);
        let mut places: Vec<(Option<usize>, u64)> = Vec::new();
        for part in parts.iter().filter(|p| p.first) {
            // Elements of the encoding beyond the tile are padding, which becomes zero.
            if local.encoding.extents.iter().zip(part.at).all(|(n, i)| i < *n) {
                places.push((index_of(part.at, &tile), local.address(part.at)));
            }
        }
        places.sort_unstable_by_key(|(_, at)| *at);
        places.dedup();
        // Nothing writes inputs.
        let of_output = places.iter().filter(|_| !self.is_input(source.view.param));
        let read: Vec<usize> = of_output.filter_map(|(element, _)| *element).collect();
        let reads = self.read_by_copy(&source);
        let from = Rc::clone(&source);
        let ranges = ranges(places.iter().map(|(_, at)| *at), bytes::size(local.elem) as u64);
        let effect = Effect::Deal { cta, source, places: Rc::new(places), elem: local.elem, ranges: ranges.clone() };
        let mut touches: Vec<Touch> = ranges.iter().map(|(lo, hi)| shared(cta, *lo, *hi, true)).collect();
        if asynchronous {
            touches.extend(reads);
            let work = Work { op: id, time: None, touches, effect };
            let copy = self.start(agent, CP_ASYNC, (Vec::new(), Vec::new()), work, &mut *obs)?;
            return self.tell_read_by_copy((agent, id), &from, read, Self::helper(CP_ASYNC, copy), obs);
        }
        if let Some(reads) = reads {
            self.touch(agent, id, None, reads, &mut *obs)?;
        }
        self.tell_read_by_copy((agent, id), &from, read, None, &mut *obs)?;
        self.touch_places(agent, id, &ranges, true, obs)?;
        let Machine { engine, store, .. } = self;
        store.deal(engine, &effect)
    }

    /// Loads the elements of a tile of a tensor that an agent holds.
    fn fetch_local(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<Val> {
        let Val::Source(source) = self.arg(agent, op, 0) else { return Err(unknown("a tile of a tensor")) };
        let there = op.args.len() < 2 || self.int(agent, op, 1)? != 0;
        let source = Rc::new(Source { absent: source.absent || !there, ..(*source).clone() });
        let Some(result) = op.results.first().copied() else { return Ok(Val::Unknown) };
        let Some(parts) = self.held(agent, result) else { return Err(unknown("a tile with a layout")) };
        let tile = extents(source.shape);
        let mut read: Vec<usize> = parts.iter().filter_map(|part| index_of(part.at, &tile)).collect();
        read.sort_unstable();
        read.dedup();
        if let Some(reads) = self.read_by_copy(&source) {
            self.touch(agent, id, None, reads, &mut *obs)?;
        }
        self.tell_read_by_copy((agent, id), &source, read, None, obs)?;
        if !self.store.data {
            return Ok(Val::Unknown);
        }
        let ty = self.kernel().ty(result);
        Ok(value(ty, bytes::decode(ty.elem(), &self.store.source(&self.engine, &source)?)))
    }

    fn guard_local(&self, agent: usize, op: &Op) -> Res<Val> {
        let Val::Source(source) = self.arg(agent, op, 0) else { return Err(unknown("a tile of a tensor")) };
        let there = self.int(agent, op, 1)? != 0;
        Ok(Val::Source(Rc::new(Source { absent: source.absent || !there, ..(*source).clone() })))
    }

    fn slice_local(&self, agent: usize, op: &Op, (axis, n): (usize, i32)) -> Res<Val> {
        let at = self.int(agent, op, 1)?;
        let Some(shape) = op.results.first().and_then(|v| self.kernel().ty(*v).tile_shape()) else {
            return Ok(Val::Unknown);
        };
        match self.arg(agent, op, 0) {
            Val::Local(old) => {
                let mut local = (*old).clone();
                local.shape = shape;
                let at = u32::try_from(at).map_err(|_| Found::new(Kind::Bounds, format!("a part from {at} on")))?;
                local.origin[axis] += at;
                let within = local
                    .encoding
                    .extents
                    .get(axis)
                    .is_some_and(|all| u32::try_from(n).is_ok_and(|n| local.origin[axis] + n <= *all));
                if !within {
                    return Err(Found::new(Kind::Bounds, format!("a part of {n} from {at} on")));
                }
                Ok(Val::Local(Rc::new(local)))
            }
            Val::Tile(tile) => {
                let (from, to) = (extents(tile.shape), extents(shape));
                let pick = |i: usize| {
                    let mut coords = coords_of(i, &to);
                    coords[axis] = coords[axis].saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
                    index_of(coords, &from).unwrap_or(usize::MAX)
                };
                let cells = tile.cells.pick((0..shape.len()).map(pick));
                Ok(Val::Tile(Rc::new(Tile { shape, cells })))
            }
            _ => Ok(Val::Unknown),
        }
    }

    /// Permutes the axes of a tile in shared memory, without moving its elements.
    pub(super) fn permute_local(&mut self, agent: usize, op: &Op, old: &Local, perm: [u8; 4]) -> Res<()> {
        let encoding = op.results.first().and_then(|v| self.kernel().encoding(*v)).cloned();
        let encoding = encoding.ok_or_else(|| unknown("the layout of a tile in shared memory"))?;
        let mut local = Local { encoding: Rc::new(encoding), ..old.clone() };
        for (axis, from) in perm.iter().enumerate().take(old.shape.rank()) {
            local.origin[axis] = old.origin[usize::from(*from)];
        }
        local.shape = op.results.first().and_then(|v| self.kernel().ty(*v).tile_shape()).unwrap_or(old.shape);
        self.set(agent, &op.results, [Val::Local(Rc::new(local))])
    }

    fn stack(&self, agent: usize, op: &Op) -> Val {
        let ty = op.results.first().map_or(Ty::BOOL, |v| self.kernel().ty(*v));
        let tiles: Option<Vec<Rc<Tile>>> =
            op.args.iter().map(|v| if let Val::Tile(t) = self.val(agent, *v) { Some(t) } else { None }).collect();
        let Some(tiles) = tiles else { return Val::Unknown };
        let nums = tiles.iter().flat_map(|t| (0..t.cells.len()).map(|i| t.cells.get(i)));
        value(ty, Cells::collect(ty.elem(), nums))
    }

    fn fragment_product(&self, agent: usize, op: &Op) -> Val {
        let elem = op.results.first().map_or(Elem::F32, |v| self.kernel().ty(*v).elem());
        match (self.arg(agent, op, 0), self.arg(agent, op, 1), self.arg(agent, op, 2)) {
            (Val::Tile(a), Val::Tile(b), Val::Tile(c)) => {
                Val::Tile(Rc::new(Tile { shape: c.shape, cells: product::mma(&a, &b, &c, elem) }))
            }
            (_, _, _) => Val::Unknown,
        }
    }

    /// Reduces the elements of each line that this warp holds.
    fn fold(&mut self, agent: usize, op: &Op, f: Fold, axis: usize) -> Res<()> {
        let tys: Vec<Ty> = op.results.iter().map(|v| self.kernel().ty(*v)).collect();
        let Val::Tile(tile) = self.arg(agent, op, 0) else {
            return self.set(agent, &op.results, tys.iter().map(|_| Val::Unknown));
        };
        let Some(parts) = self.held(agent, op.args[0]) else { return Err(unknown("a tile with a layout")) };
        let from = extents(tile.shape);
        let mut lines: std::collections::BTreeMap<Vec<u32>, std::collections::BTreeSet<usize>> = Default::default();
        for part in parts {
            let Some(i) = index_of(part.at, &from) else { continue };
            let rest = (0..from.len()).filter(|a| *a != axis).map(|a| part.at[a]).collect();
            lines.entry(rest).or_default().insert(i);
        }
        let elem = self.kernel().ty(op.args[0]).elem();
        // A warp that holds no element of a line has the neutral elements of the reduction there.
        let neutral = match f {
            Fold::Plain(f) => vec![reduce::neutral(f, elem)],
            Fold::Arg(f) => vec![reduce::worst(f, elem), Num::Int(i64::from(i32::MAX))],
            Fold::With => match self.arg(agent, op, 1) {
                Val::Num(num) => vec![num],
                _ => return self.set(agent, &op.results, tys.iter().map(|_| Val::Unknown)),
            },
        };
        let of = |(ty, num): (&Ty, &Num)| vec![*num; ty.tile_shape().map_or(1, |s| s.len())];
        let mut out: Vec<Vec<Num>> = tys.iter().zip(&neutral).map(of).collect();
        let places = self.fold_places(agent, op, from.len() - 1);
        for (place, rest) in places {
            let Some(line) = lines.get(&rest) else { continue };
            let cells = tile.cells.pick(line.iter().copied());
            let shape = TileShape::new(&[i32::try_from(line.len()).unwrap_or(0)]).ok_or_else(|| unknown("a line"))?;
            let found = match f {
                Fold::Plain(f) => vec![reduce::reduce(f, elem, &cells, shape, 0).get(0)],
                Fold::Arg(f) => {
                    let Val::Tile(at) = self.arg(agent, op, 1) else { return Err(unknown("an index")) };
                    let at = at.cells.pick(line.iter().copied());
                    let (best, which) = reduce::arg_reduce(f, elem, &cells, shape, 0);
                    vec![best.get(0), at.get(usize::try_from(which.get(0).int()).unwrap_or(0))]
                }
                Fold::With => {
                    // Elements that the warp does not hold count as the neutral element.
                    let scope = self.scope(agent)?;
                    let mut sum = cells.get(0);
                    for i in 1..cells.len() {
                        sum = apply(&scope, op, sum, cells.get(i))?;
                    }
                    vec![sum]
                }
            };
            for (out, num) in out.iter_mut().zip(found) {
                if let Some(slot) = out.get_mut(place) {
                    *slot = num;
                }
            }
        }
        let values: Vec<Val> =
            tys.iter().zip(out).map(|(ty, nums)| value(*ty, Cells::collect(ty.elem(), nums.into_iter()))).collect();
        self.set(agent, &op.results, values)
    }

    /// The elements of a reduction's result that a warp holds, and the line of each.
    fn fold_places(&self, agent: usize, op: &Op, rank: usize) -> Vec<(usize, Vec<u32>)> {
        let Some(result) = op.results.first() else { return Vec::new() };
        let (Some(shape), Some(parts)) = (self.kernel().ty(*result).tile_shape(), self.held(agent, *result)) else {
            return vec![(0, Vec::new())];
        };
        let to = extents(shape);
        // Where the result has partial sums, its first axis numbers them.
        let skip = to.len() - rank.min(to.len());
        let of = |part: &Part| Some((index_of(part.at, &to)?, part.at[skip..to.len()].to_vec()));
        parts.iter().filter_map(of).collect()
    }

    /// For a store of a tile in registers: the elements that the warp is the first to hold.
    pub(super) fn stores_own(&self, agent: usize, op: &Op) -> Option<Vec<bool>> {
        let value = op.args.last()?;
        if matches!(self.kernel().ty(*value), Ty::Smem(..)) { None } else { self.owns(agent, *value) }
    }

    /// Whether one thread executes an operation for its whole role or program.
    pub(super) const fn is_of_one(kind: &OpKind) -> bool {
        matches!(kind, OpKind::Set)
    }
}

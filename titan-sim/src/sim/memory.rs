//! Loads and stores of tensors, by tiles and elements; prints and traps.
#![expect(clippy::wildcard_enum_match_arm, reason = "operands that are not what an operation takes are refused alike")]

use super::access::tensor;
use super::arith::{bytes, shape::extents};
use super::eval::{from_bytes, narrow};
use super::finding::{Found, Kind};
use super::machine::{Machine, Obs};
use super::value::{Named, Num, Source, Val, View};
use super::work::Res;
use crate::engine::{AccessKind, Strength};
use std::rc::Rc;
use titan_core::ir::{Elem, Op, OpId, OpKind, TileShape, TtgOp, Ty, Unit};
use titan_core::launch::report;

/// Kinds and strengths of accesses, as reported to observers.
pub(super) const READ: (AccessKind, Strength) = (AccessKind::Read, Strength::Weak);
const WRITE: (AccessKind, Strength) = (AccessKind::Write, Strength::Weak);

/// An element of a view: the view and the element's coordinates.
type At = (Rc<View>, Vec<i64>);

/// The shape of one element of a view.
pub(super) fn one_element(view: &View) -> Option<TileShape> {
    TileShape::new(&vec![1; view.extents.len()])
}

impl Machine<'_> {
    /// Executes an operation that accesses tensors, prints or traps.
    pub(super) fn memory(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let result = match &op.kind {
            OpKind::Load(unit, shape) => self.load(agent, id, op, (*unit, *shape), obs)?,
            OpKind::Store(unit) => return self.store_tile(agent, id, op, *unit, obs),
            OpKind::Get => self.get(agent, id, op, obs)?,
            OpKind::Set => return self.set_one(agent, id, op, obs),
            OpKind::GatherRows { rows, width } => self.gather_rows(agent, id, op, (*rows, *width), obs)?,
            OpKind::ScatterRows => return self.scatter_rows(agent, id, op, obs),
            OpKind::Gather => self.gather(agent, id, op, obs)?,
            OpKind::Scatter => return self.scatter(agent, id, op, None, obs),
            OpKind::Atomic(atomic) => return self.scatter(agent, id, op, Some(*atomic), obs),
            OpKind::AtomicTile(atomic) => return self.atomic_tile(agent, id, op, *atomic, obs),
            OpKind::Fetch(_) | OpKind::CompareExchange => {
                let found = self.fetch(agent, id, op, obs)?;
                return self.set(agent, &op.results, found);
            }
            OpKind::Segment => {
                self.reads_offsets(agent, id, op, obs)?;
                self.segment(agent, op)?
            }
            OpKind::RaggedCount { rows, cols } => {
                self.reads_offsets(agent, id, op, obs)?;
                self.ragged(agent, op, (*rows, *cols), None)?.into_iter().next().unwrap_or_default()
            }
            OpKind::RaggedTile { rows, cols } => {
                self.reads_offsets(agent, id, op, obs)?;
                let j = self.int(agent, op, 2)?;
                let tile = self.ragged(agent, op, (*rows, *cols), Some(j))?;
                return self.set(agent, &op.results, tile);
            }
            OpKind::Print(text) => return self.print(agent, op, text),
            OpKind::Assert(message) => return self.assert(agent, op, message),
            _ => return Err(Found::not_modelled(titan_core::ir::op_table::mnemonic(&op.kind))),
        };
        self.set(agent, &op.results, [result])
    }

    pub(super) fn view(&self, agent: usize, op: &Op, i: usize) -> Res<Rc<View>> {
        match self.arg(agent, op, i) {
            Val::Tensor(v) => Ok(v),
            _ => Err(Found::new(Kind::Trap, "a tensor is used that was not passed")),
        }
    }

    /// The coordinates of the first element, given by the operands from `from` on; `None` if they are not computed.
    pub(super) fn first(
        &self,
        agent: usize,
        op: &Op,
        (from, rank): (usize, usize),
        unit: Option<TileShape>,
    ) -> Option<Vec<i64>> {
        let scale = |i: usize| unit.and_then(|s| s.get(i).copied()).map_or(1, i64::from);
        (0..rank).map(|i| self.int(agent, op, from + i).ok().map(|v| v * scale(i))).collect()
    }

    pub(super) fn pad(&self, agent: usize, op: &Op) -> Num {
        match op.args.last().map(|v| self.val(agent, *v)) {
            Some(Val::Num(n)) => n,
            _ => Num::Int(0),
        }
    }

    fn load(
        &mut self,
        agent: usize,
        id: OpId,
        op: &Op,
        (unit, shape): (Unit, TileShape),
        obs: Obs<'_, '_>,
    ) -> Res<Val> {
        let view = self.view(agent, op, 0)?;
        let scale = (unit == Unit::Tile).then_some(shape);
        let first = self.first(agent, op, (1, view.extents.len()), scale);
        self.reads(agent, id, (&view, first.as_deref(), Some(shape)), obs)?;
        let Some(first) = first.filter(|_| self.store.data) else { return Ok(Val::Unknown) };
        let raw = self.store.load(&self.engine, &view, &first, shape, self.pad(agent, op))?;
        Ok(from_bytes(view.elem, shape, &raw))
    }

    /// Reads an output: checks the access against operations in flight, and reports it to the observer.
    pub(super) fn reads(
        &self,
        agent: usize,
        id: OpId,
        (view, first, shape): (&View, Option<&[i64]>, Option<TileShape>),
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        if self.is_input(view.param) {
            return Ok(());
        }
        self.touch(agent, id, None, tensor(view, first, shape, false, false), obs)?;
        match (first, shape) {
            (Some(first), Some(shape)) => self.tell_tensor((agent, id), (view, first, shape), READ, None, obs),
            (_, _) => Ok(()),
        }
    }

    /// Reports accesses to single rows or elements of an output.
    pub(super) fn tell_each(
        &self,
        (agent, id): (usize, OpId),
        (view, shape): (&View, Option<TileShape>),
        places: &[Vec<i64>],
        how: (AccessKind, Strength),
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let Some(shape) = shape.filter(|_| !self.is_input(view.param)) else { return Ok(()) };
        places.iter().try_for_each(|at| self.tell_tensor((agent, id), (view, at, shape), how, None, &mut *obs))
    }

    fn store_tile(&mut self, agent: usize, id: OpId, op: &Op, unit: Unit, obs: Obs<'_, '_>) -> Res<()> {
        let view = self.view(agent, op, 0)?;
        let rank = view.extents.len();
        let Some(shape) = op.args.last().and_then(|v| self.kernel().ty(*v).tile_shape()) else { return Ok(()) };
        let first = self.first(agent, op, (1, rank), (unit == Unit::Tile).then_some(shape));
        self.touch(agent, id, None, tensor(&view, first.as_deref(), Some(shape), true, false), obs)?;
        let Some(first) = first else { return Ok(()) };
        if let Some(own) = self.stores_own(agent, op) {
            return self.store_elements((agent, id), op, (&view, &first, shape), &own, obs);
        }
        let value = match self.arg(agent, op, rank + 1) {
            Val::Local(local) => {
                // Any thread may gather the elements; here the first warp does.
                let value = self.read_all(agent, id, &local, &mut *obs)?;
                if !self.is_first(agent) {
                    return Ok(());
                }
                value
            }
            other => other,
        };
        self.tell_tensor((agent, id), (&view, &first, shape), WRITE, None, obs)?;
        let Val::Tile(tile) = value else { return Ok(()) };
        let Machine { engine, store, .. } = self;
        store.put(engine, &view, &first, shape, &bytes::encode(view.elem, &tile.cells))
    }

    /// Stores the elements of a tile that a warp is the first to hold.
    fn store_elements(
        &mut self,
        (agent, id): (usize, OpId),
        op: &Op,
        (view, first, shape): (&Rc<View>, &[i64], TileShape),
        own: &[bool],
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let (dims, tile) = (extents(shape), op.args.last().map(|v| self.val(agent, *v)));
        // Contiguous elements of a row are reported as one access.
        let mut run: Option<(usize, i32, Vec<i64>)> = None;
        for i in (0..own.len()).filter(|i| own[*i]) {
            let (mut rest, mut at) = (i, first.to_vec());
            for axis in (0..dims.len()).rev() {
                at[axis] += (rest % dims[axis]) as i64;
                rest /= dims[axis];
            }
            let Some(element) = self.store.place(view, &at)? else { continue };
            if let Some(Val::Tile(tile)) = &tile {
                let Machine { engine, store, .. } = self;
                store.set(engine, view, element, tile.cells.get(i))?;
            }
            let begins = dims.last().is_none_or(|n| i % n == 0);
            match &mut run {
                Some((last, n, _)) if *last + 1 == i && !begins => (*last, *n) = (i, *n + 1),
                _ => self.tell_run((agent, id), view, run.replace((i, 1, at)), &mut *obs)?,
            }
        }
        self.tell_run((agent, id), view, run, obs)
    }

    /// Reports elements of a row that are written: the row-major number of the last one in its tile, their number, and the coordinates
    /// of the first one.
    fn tell_run(
        &self,
        by: (usize, OpId),
        view: &Rc<View>,
        run: Option<(usize, i32, Vec<i64>)>,
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let Some((_, n, at)) = run else { return Ok(()) };
        let mut shape = vec![1; view.extents.len()];
        shape.last_mut().into_iter().for_each(|last| *last = n);
        match TileShape::new(&shape) {
            Some(shape) => self.tell_tensor(by, (view, &at, shape), WRITE, None, obs),
            None => Ok(()),
        }
    }

    fn get(&self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<Val> {
        let (view, at) = self.at(agent, op)?;
        let Some(element) = self.store.place(&view, &at)? else {
            return Err(self.outside("get", &view, &at));
        };
        self.reads(agent, id, (&view, Some(&at), one_element(&view)), obs)?;
        if !self.store.knows(view.param) {
            return Ok(Val::Unknown);
        }
        self.store.get(&self.engine, &view, element).map(Val::Num)
    }

    fn outside(&self, what: &str, view: &View, at: &[i64]) -> Box<Found> {
        let name = self.kernel().sig.params.get(view.param).map_or("", |p| p.name.as_str());
        Found::new(Kind::Trap, format!("`{what}` at {at:?} of `{name}`, whose extents are {:?}", view.extents))
    }

    fn at(&self, agent: usize, op: &Op) -> Res<At> {
        let view = self.view(agent, op, 0)?;
        let at = (0..view.extents.len()).map(|i| self.int(agent, op, 1 + i)).collect::<Res<Vec<i64>>>()?;
        Ok((view, at))
    }

    fn set_one(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let (view, at) = self.at(agent, op)?;
        let Some(element) = self.store.place(&view, &at)? else {
            return Err(self.outside("set", &view, &at));
        };
        self.touch(agent, id, None, tensor(&view, Some(&at), None, true, false), obs)?;
        if let Some(one) = one_element(&view) {
            self.tell_tensor((agent, id), (&view, &at, one), WRITE, None, obs)?;
        }
        let Val::Num(value) = self.arg(agent, op, at.len() + 1) else { return Ok(()) };
        let Machine { engine, store, .. } = self;
        store.set(engine, &view, element, value)
    }

    /// Reports that all offsets of segments are read.
    fn reads_offsets(&self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let off = self.view(agent, op, 1)?;
        let all = off.extents.first().and_then(|n| TileShape::new(&[i32::try_from(*n).ok()?]));
        self.reads(agent, id, (&off, Some(&[0]), all), obs)
    }

    /// All offsets of segments; `None` if they are not computed.
    fn offsets(&self, view: &View) -> Res<Option<Vec<i64>>> {
        if !self.store.knows(view.param) {
            return Ok(None);
        }
        let n = view.extents.first().copied().unwrap_or(0);
        let one = |i| match self.store.place(view, &[i])? {
            Some(element) => self.store.get(&self.engine, view, element).map(Num::int),
            None => Err(Found::new(Kind::Trap, "offsets outside of their tensor")),
        };
        (0..n).map(one).collect::<Res<Vec<i64>>>().map(Some)
    }

    fn segment(&self, agent: usize, op: &Op) -> Res<Val> {
        let (view, off, e) = (self.view(agent, op, 0)?, self.view(agent, op, 1)?, self.int(agent, op, 2)?);
        let Some(all) = self.offsets(&off)? else { return Ok(Val::Unknown) };
        let at = |i: i64| usize::try_from(i).ok().and_then(|i| all.get(i)).copied();
        let extent = view.extents.first().copied().unwrap_or(0);
        match (at(e), at(e.saturating_add(1))) {
            (Some(lo), Some(hi)) if 0 <= lo && lo <= hi && hi <= extent => {
                let mut v = (*view).clone();
                narrow(&mut v, 0, lo, hi);
                Ok(Val::Tensor(Rc::new(v)))
            }
            (lo, hi) => Err(Found::new(Kind::Trap, format!("segment {e} is {lo:?}..{hi:?} of {extent} rows"))),
        }
    }

    /// The number of tiles of a ragged tensor, or the tile with number `j`.
    fn ragged(&self, agent: usize, op: &Op, (rows, cols): (i32, i32), j: Option<i64>) -> Res<Vec<Val>> {
        let (view, off) = (self.view(agent, op, 0)?, self.view(agent, op, 1)?);
        let Some(all) = self.offsets(&off)? else { return Ok(vec![Val::Unknown; op.results.len()]) };
        let [extent, width] = view.extents[..] else { return Err(Found::not_modelled("segments of another rank")) };
        let ordered = all.windows(2).all(|w| w[0] <= w[1])
            && all.first().is_none_or(|o| *o >= 0)
            && all.last().is_none_or(|o| *o <= extent);
        if !ordered {
            return Err(Found::new(Kind::Trap, format!("offsets {all:?} are not ascending within {extent} rows")));
        }
        let up = |n: i64, d: i32| n.checked_div(d.into()).map_or(0, |q| q + i64::from(n % i64::from(d) != 0));
        let across = up(width, cols);
        let (mut count, num) = (0i64, |v: i64| Val::Num(Num::Int(v)));
        for (e, w) in all.windows(2).enumerate() {
            let here = up(w[1] - w[0], rows) * across;
            if let Some(j) = j
                && (count..count + here).contains(&j)
            {
                let at = j - count;
                return Ok(vec![num(e as i64), num(at / across), num(at % across)]);
            }
            count += here;
        }
        match j {
            None => Ok(vec![num(count)]),
            Some(j) => Err(Found::new(Kind::Trap, format!("tile {j} of {count}"))),
        }
    }

    fn print(&mut self, agent: usize, op: &Op, text: &str) -> Res<()> {
        let types: Vec<Ty> = op.args.iter().map(|arg| self.kernel().ty(*arg)).collect();
        let values: Vec<Val> = (0..op.args.len()).map(|i| self.arg(agent, op, i)).collect();
        let line = report::line_of(text, &types, &mut |out, arg, at| {
            let num = match &values[arg] {
                Val::Num(num) => Some(*num),
                Val::Tile(tile) => Some(tile.cells.get(at)),
                // Contents are not computed, or the value has none.
                _ => None,
            };
            out.push_str(&num.map_or_else(|| "?".to_owned(), |num| shown(types[arg].elem(), num)));
        });
        self.printed.push(line);
        Ok(())
    }

    fn assert(&self, agent: usize, op: &Op, message: &str) -> Res<()> {
        let holds = match self.arg(agent, op, 0) {
            Val::Num(n) => n.int() != 0,
            Val::Tile(t) => (0..t.cells.len()).all(|i| t.cells.get(i).int() != 0),
            _ => return Ok(()),
        };
        if holds { Ok(()) } else { Err(Found::new(Kind::Trap, format!("assertion failed: {message}"))) }
    }

    /// The source of a copy: a tile of a tensor, which is read when the copy completes.
    pub(super) fn source_of(&self, agent: usize, op: &Op, ttg: &TtgOp) -> Res<Val> {
        let view = self.view(agent, op, 0)?;
        let rank = view.extents.len();
        let Some(shape) = op.results.first().and_then(|v| self.kernel().ty(*v).tile_shape()) else {
            return Ok(Val::Unknown);
        };
        let what = match ttg {
            TtgOp::SourceRows { rows, .. } => {
                self.row_indices(agent, op, (rank, *rows)).map(|(r, c)| Named::Rows(r, c))
            }
            TtgOp::Source(unit, _) => {
                self.first(agent, op, (1, rank), (*unit == Unit::Tile).then_some(shape)).map(Named::From)
            }
            _ => None,
        };
        let pad = self.pad(agent, op);
        Ok(Val::Source(Rc::new(Source { view, what: what.unwrap_or(Named::Unknown), shape, pad, absent: false })))
    }
}

/// An element as `tprint!` prints it on every device.
#[expect(clippy::cast_possible_truncation, reason = "each float but f64 is exact in f32")]
fn shown(elem: Elem, num: Num) -> String {
    match (elem, num) {
        (Elem::Bool, num) => (num.int() != 0).to_string(),
        (Elem::U64, Num::Int(v)) => v.cast_unsigned().to_string(),
        (Elem::F64, Num::Float(x)) => x.to_string(),
        (_, Num::Int(v)) => v.to_string(),
        (_, Num::Float(x)) => (x as f32).to_string(),
    }
}

//! Gathers, scatters and atomic updates: of single elements and of rows selected by indices, and of tiles.
#![expect(clippy::wildcard_enum_match_arm, reason = "indices that are not computed are reported in the same way")]

use super::access::tensor;
use super::arith::{binary, bytes, shape::extents};
use super::eval::from_bytes;
use super::machine::{Machine, Obs};
use super::memory::{READ, one_element};
use super::tensor::row_shape;
use super::value::{Cells, Num, Val, View};
use super::work::Res;
use crate::engine::{AccessKind, Strength};
use titan_core::ir::{AtomicOp, BinOp, Elem, Op, OpId, OpKind, TileShape};

/// The kind and strength of a scatter, as reported to observers.
const SCATTER: (AccessKind, Strength) = (AccessKind::Write, Strength::Strong);
const ATOMIC: (AccessKind, Strength) = (AccessKind::Atomic, Strength::Strong);

impl Machine<'_> {
    /// The rows selected by the index operands, from operand 1 on; `None` if they are not computed.
    pub(super) fn row_indices(
        &self,
        agent: usize,
        op: &Op,
        (rank, rows): (usize, i32),
    ) -> Option<(Vec<Vec<i64>>, i64)> {
        let rows = usize::try_from(rows).unwrap_or(0);
        let mut out = vec![Vec::new(); rows];
        for i in 1..rank {
            match self.arg(agent, op, i) {
                Val::Num(n) => out.iter_mut().for_each(|r| r.push(n.int())),
                Val::Tile(t) => out.iter_mut().enumerate().for_each(|(j, r)| r.push(t.cells.get(j).int())),
                _ => return None,
            }
        }
        Some((out, self.int(agent, op, rank).ok()?))
    }

    pub(super) fn gather_rows(
        &mut self,
        agent: usize,
        id: OpId,
        op: &Op,
        (rows, width): (i32, i32),
        obs: Obs<'_, '_>,
    ) -> Res<Val> {
        let view = self.view(agent, op, 0)?;
        self.reads(agent, id, (&view, None, None), obs)?;
        let shape = TileShape::new(&[rows, width]);
        let (Some(shape), Some((rows, column))) = (shape, self.row_indices(agent, op, (view.extents.len(), rows)))
        else {
            return Ok(Val::Unknown);
        };
        let places: Vec<Vec<i64>> = rows.iter().map(|row| [&row[..], &[column]].concat()).collect();
        self.tell_each((agent, id), (&view, row_shape(&view, shape)), &places, READ, obs)?;
        if !self.store.data {
            return Ok(Val::Unknown);
        }
        let raw = self.store.rows(&self.engine, &view, (&rows, column), shape, self.pad(agent, op))?;
        Ok(from_bytes(view.elem, shape, &raw))
    }

    pub(super) fn scatter_rows(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let view = self.view(agent, op, 0)?;
        let rank = view.extents.len();
        self.touch(agent, id, None, tensor(&view, None, None, true, true), obs)?;
        let Val::Tile(tile) = self.arg(agent, op, rank + 1) else { return Ok(()) };
        let Some((rows, column)) = self.row_indices(agent, op, (rank, tile.shape[0])) else { return Ok(()) };
        let width = extents(tile.shape).last().copied().unwrap_or(0);
        let Some(line) = row_shape(&view, tile.shape) else { return Ok(()) };
        let places: Vec<Vec<i64>> = rows.iter().map(|row| [&row[..], &[column]].concat()).collect();
        self.tell_each((agent, id), (&view, Some(line)), &places, SCATTER, obs)?;
        let own = self.stores_own(agent, op);
        for (i, first) in places.into_iter().enumerate() {
            if let Some(own) = &own {
                for column in (0..width).filter(|c| own.get(i * width + c) == Some(&true)) {
                    let mut at = first.clone();
                    at.last_mut().into_iter().for_each(|last| *last += column as i64);
                    if let Some(element) = self.store.place(&view, &at)? {
                        self.update(&view, element, tile.cells.get(i * width + column), None)?;
                    }
                }
                continue;
            }
            let values = tile.cells.pick(i * width..(i + 1) * width);
            let Machine { engine, store, .. } = self;
            store.put(engine, &view, &first, line, &bytes::encode(view.elem, &values))?;
        }
        Ok(())
    }

    /// For each lane, the coordinates selected by its indices; `None` if they are not computed.
    fn lanes(&self, agent: usize, op: &Op, view: &View) -> Option<Vec<Vec<i64>>> {
        let mut axes = Vec::new();
        for i in 0..view.extents.len() {
            let Val::Tile(t) = self.arg(agent, op, 1 + i) else { return None };
            axes.push(t);
        }
        let n = axes.first().map_or(0, |t| t.cells.len());
        Some((0..n).map(|lane| axes.iter().map(|t| t.cells.get(lane).int()).collect()).collect())
    }

    pub(super) fn gather(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<Val> {
        let view = self.view(agent, op, 0)?;
        self.reads(agent, id, (&view, None, None), obs)?;
        let Some(places) = self.lanes(agent, op, &view) else { return Ok(Val::Unknown) };
        self.tell_each((agent, id), (&view, one_element(&view)), &places, READ, obs)?;
        if !self.store.data {
            return Ok(Val::Unknown);
        }
        let pad = self.pad(agent, op);
        let of =
            |at: Vec<i64>| self.store.place(&view, &at)?.map_or(Ok(pad), |e| self.store.get(&self.engine, &view, e));
        let nums = places.into_iter().map(of).collect::<Res<Vec<Num>>>()?;
        let ty = op.results.first().map_or(titan_core::ir::Ty::BOOL, |v| self.kernel().ty(*v));
        Ok(super::eval::value(ty, Cells::collect(view.elem, nums.into_iter())))
    }

    pub(super) fn scatter(
        &mut self,
        agent: usize,
        id: OpId,
        op: &Op,
        atomic: Option<AtomicOp>,
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let view = self.view(agent, op, 0)?;
        self.touch(agent, id, None, tensor(&view, None, None, true, true), obs)?;
        let Some(places) = self.lanes(agent, op, &view) else { return Ok(()) };
        let how = if atomic.is_some() { ATOMIC } else { SCATTER };
        let own = self.stores_own(agent, op);
        let is_own = |lane: usize| own.as_ref().is_none_or(|own| own.get(lane) == Some(&true));
        let mine: Vec<Vec<i64>> =
            places.iter().enumerate().filter(|(lane, _)| is_own(*lane)).map(|(_, at)| at.clone()).collect();
        self.tell_each((agent, id), (&view, one_element(&view)), &mine, how, obs)?;
        let Val::Tile(values) = self.arg(agent, op, view.extents.len() + 1) else { return Ok(()) };
        for (lane, at) in places.into_iter().enumerate().filter(|(lane, _)| is_own(*lane)) {
            if let Some(element) = self.store.place(&view, &at)? {
                self.update(&view, element, values.cells.get(lane), atomic)?;
            }
        }
        Ok(())
    }

    /// Atomic updates that return what they found, one lane after the other. The results are unknown if elements are not computed; elements
    /// that other warps update are meaningless.
    pub(super) fn fetch(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<Vec<Val>> {
        let view = self.view(agent, op, 0)?;
        let rank = view.extents.len();
        self.touch(agent, id, None, tensor(&view, None, None, true, true), obs)?;
        let unknown = vec![Val::Unknown; op.results.len()];
        let Some(places) = self.lanes(agent, op, &view) else { return Ok(unknown) };
        let own = self.stores_own(agent, op);
        let is_own = |lane: usize| own.as_ref().is_none_or(|own| own.get(lane) == Some(&true));
        let mine: Vec<Vec<i64>> =
            places.iter().enumerate().filter(|(lane, _)| is_own(*lane)).map(|(_, at)| at.clone()).collect();
        self.tell_each((agent, id), (&view, one_element(&view)), &mine, ATOMIC, obs)?;
        let (Val::Tile(first), Val::Tile(last)) =
            (self.arg(agent, op, rank + 1), self.arg(agent, op, op.args.len() - 1))
        else {
            return Ok(unknown);
        };
        if !self.store.data {
            return Ok(unknown);
        }
        let nothing = if view.elem.is_float() { Num::Float(0.0) } else { Num::Int(0) };
        let (mut found, mut done) = (vec![nothing; places.len()], vec![Num::Int(0); places.len()]);
        for (lane, at) in places.into_iter().enumerate().filter(|(lane, _)| is_own(*lane)) {
            let Some(element) = self.store.place(&view, &at)? else { continue };
            let old = self.store.get(&self.engine, &view, element)?;
            let (one, other) = (first.cells.get(lane), last.cells.get(lane));
            let new = match &op.kind {
                OpKind::CompareExchange => (one == old).then_some(other),
                OpKind::Fetch(f) => Some(f.binary().map_or(one, |f| binary(f, view.elem, old, one))),
                _ => None,
            };
            found[lane] = old;
            done[lane] = Num::Int(new.is_some().into());
            if let Some(new) = new {
                let Machine { engine, store, .. } = self;
                store.set(engine, &view, element, new)?;
            }
        }
        let values = [(view.elem, found), (Elem::Bool, done)];
        let of = |(result, (elem, nums)): (&titan_core::ir::Value, (Elem, Vec<Num>))| {
            super::eval::value(self.kernel().ty(*result), Cells::collect(elem, nums.into_iter()))
        };
        Ok(op.results.iter().zip(values).map(of).collect())
    }

    fn update(&mut self, view: &View, element: u64, value: Num, atomic: Option<AtomicOp>) -> Res<()> {
        if !self.store.data {
            return Ok(());
        }
        let new = match atomic {
            None => value,
            Some(atomic) => {
                let bin = match atomic {
                    AtomicOp::Add => BinOp::Add,
                    AtomicOp::Max => BinOp::Max,
                    AtomicOp::Min => BinOp::Min,
                };
                binary(bin, view.elem, self.store.get(&self.engine, view, element)?, value)
            }
        };
        let Machine { engine, store, .. } = self;
        store.set(engine, view, element, new)
    }

    pub(super) fn atomic_tile(
        &mut self,
        agent: usize,
        id: OpId,
        op: &Op,
        atomic: AtomicOp,
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let view = self.view(agent, op, 0)?;
        let rank = view.extents.len();
        let Some(shape) = op.args.last().and_then(|v| self.kernel().ty(*v).tile_shape()) else { return Ok(()) };
        let first = self.first(agent, op, (1, rank), Some(shape));
        self.touch(agent, id, None, tensor(&view, first.as_deref(), Some(shape), true, true), obs)?;
        let Some(first) = first else { return Ok(()) };
        self.tell_tensor((agent, id), (&view, &first, shape), ATOMIC, None, obs)?;
        let Val::Tile(tile) = self.arg(agent, op, rank + 1) else { return Ok(()) };
        let (dims, own) = (extents(shape), self.stores_own(agent, op));
        for lane in (0..shape.len()).filter(|i| own.as_ref().is_none_or(|own| own.get(*i) == Some(&true))) {
            let (mut rest, mut at) = (lane, first.clone());
            for axis in (0..rank).rev() {
                at[axis] += (rest % dims[axis]) as i64;
                rest /= dims[axis];
            }
            if let Some(element) = self.store.place(&view, &at)? {
                self.update(&view, element, tile.cells.get(lane), Some(atomic))?;
            }
        }
        Ok(())
    }
}

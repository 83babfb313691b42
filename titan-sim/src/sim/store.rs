//! The contents of memory while a kernel runs: tensors, shared memory, and the pending effects of asynchronous operations on both.
//!
//! Inputs are read from the caller's bytes; outputs lie in a memory of the engine, as shared memory does, so that bytes
//! that were never written are known. Where tiles are not computed, only the ranges of shared memory that were written are kept.

use super::arith::{bytes, product, shape as arrange};
use super::finding::{Found, Kind};
use super::tensor::{Setup, Tensor, element, put_nibbles, row_shape, runs};
use super::value::{Cells, Named, Num, Smem, Source, Tile, View};
use super::work::{Effect, Operand, Res, Work};
use crate::engine::{Engine, Fault, Space, SpaceId};
use std::collections::BTreeMap;
use std::rc::Rc;
use titan_core::ir::TileShape;
use titan_core::num::{pack_nibbles, unpack_nibbles};

/// Access to memories by their index, both for a slice of memories and for an engine.
pub(super) trait Spaces {
    fn space(&self, id: SpaceId) -> Option<&Space>;
    fn space_mut(&mut self, id: SpaceId) -> Option<&mut Space>;
}

impl Spaces for [Space] {
    fn space(&self, id: SpaceId) -> Option<&Space> {
        self.get(id.index())
    }
    fn space_mut(&mut self, id: SpaceId) -> Option<&mut Space> {
        self.get_mut(id.index())
    }
}

impl<X> Spaces for Engine<X> {
    fn space(&self, id: SpaceId) -> Option<&Space> {
        Engine::space(self, id)
    }
    fn space_mut(&mut self, id: SpaceId) -> Option<&mut Space> {
        Engine::space_mut(self, id)
    }
}

/// The memory of a run besides the engine's.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) setup: Rc<Setup>,
    /// Whether tiles are computed.
    pub(super) data: bool,
    pub(super) global: SpaceId,
    /// The shared memory of each program of the cluster.
    pub(super) shared: Vec<SpaceId>,
    /// The ranges of shared memory that are written, where tiles are not computed.
    pub(super) defined: Vec<Ranges>,
    /// The tensor memory of each program, for observers: the machine keeps no values.
    pub(super) tensor: Vec<SpaceId>,
    /// The columns of tensor memory that hold a value.
    pub(super) columns: Vec<Ranges>,
    /// Accumulators and the results of MMAs in flight.
    pub(super) results: BTreeMap<(usize, u32), Rc<Tile>>,
    /// The bytes of stages that were read for a store.
    pub(super) kept: BTreeMap<(usize, u32), Rc<Vec<u8>>>,
}

fn explain(space: &Space, fault: Fault) -> Box<Found> {
    let kind = match fault {
        Fault::Undefined { .. } => Kind::Undefined,
        Fault::OutOfBounds { .. } | Fault::Freed { .. } | Fault::ReadOnly { .. } => Kind::Bounds,
    };
    Found::new(kind, space.explain(&fault))
}

impl Store {
    /// Reads bytes of shared memory, which must be defined.
    pub(super) fn read_shared(&self, spaces: &(impl Spaces + ?Sized), cta: usize, lo: u64, len: u64) -> Res<Vec<u8>> {
        if !self.data {
            let known = self.defined.get(cta).is_some_and(|d| d.holds(lo, lo + len));
            return if known {
                Ok(Vec::new())
            } else {
                Err(Found::new(Kind::Undefined, "bytes are read that were never written"))
            };
        }
        let space = self.shared.get(cta).and_then(|id| spaces.space(*id)).ok_or_else(no_memory)?;
        let mut out = vec![0; usize::try_from(len).unwrap_or(0)];
        space.read(lo, &mut out).map_err(|f| explain(space, f))?;
        Ok(out)
    }

    /// Writes bytes to shared memory.
    pub(super) fn write_shared(
        &mut self,
        spaces: &mut (impl Spaces + ?Sized),
        cta: usize,
        lo: u64,
        bytes: &[u8],
    ) -> Res<()> {
        if !self.data {
            return Ok(());
        }
        let space = self.shared.get(cta).and_then(|id| spaces.space_mut(*id)).ok_or_else(no_memory)?;
        space.write(lo, bytes).map_err(|f| explain(space, f))
    }

    /// Makes bytes of shared memory defined, with zeros.
    pub(super) fn define(&mut self, spaces: &mut (impl Spaces + ?Sized), cta: usize, lo: u64, hi: u64) -> Res<()> {
        if !self.data {
            self.defined.get_mut(cta).ok_or_else(no_memory)?.add(lo, hi);
            return Ok(());
        }
        self.write_shared(spaces, cta, lo, &vec![0; usize::try_from(hi - lo).unwrap_or(0)])
    }

    /// Makes bytes of shared memory undefined.
    pub(super) fn poison(&mut self, spaces: &mut (impl Spaces + ?Sized), cta: usize, lo: u64, hi: u64) -> Res<()> {
        if !self.data {
            self.defined.get_mut(cta).ok_or_else(no_memory)?.remove(lo, hi);
            return Ok(());
        }
        let space = self.shared.get(cta).and_then(|id| spaces.space_mut(*id)).ok_or_else(no_memory)?;
        space.poison_range(lo, usize::try_from(hi - lo).unwrap_or(0)).map_err(|f| explain(space, f))
    }

    fn tensor(&self, param: usize) -> Res<&Tensor> {
        let absent = || Found::new(Kind::Trap, "a tensor is used that was not passed");
        self.setup.tensors.get(param).and_then(Option::as_ref).ok_or_else(absent)
    }

    /// Whether elements of a parameter are known: if tiles are computed, of every parameter; otherwise only of inputs.
    pub(super) fn knows(&self, param: usize) -> bool {
        self.data || self.setup.tensors.get(param).and_then(Option::as_ref).is_some_and(|t| t.bytes.is_some())
    }

    /// Reads bytes of a tensor.
    fn read_tensor(&self, spaces: &(impl Spaces + ?Sized), t: &Tensor, at: u64, out: &mut [u8]) -> Res<()> {
        let Some(bytes) = &t.bytes else {
            let space = spaces.space(self.global).ok_or_else(no_memory)?;
            return space.read(t.base + at, out).map_err(|f| explain(space, f));
        };
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        match start.checked_add(out.len()).and_then(|end| bytes.get(start..end)) {
            Some(part) => out.copy_from_slice(part),
            None => {
                return Err(Found::new(Kind::Bounds, format!("byte {at} of `{}`, which has {}", t.name, bytes.len())));
            }
        }
        Ok(())
    }

    /// Loads the elements of a tile as bytes, 4-bit elements taking one each; elements outside of the tensor are the padding.
    pub(super) fn load(
        &self,
        spaces: &(impl Spaces + ?Sized),
        view: &View,
        first: &[i64],
        shape: TileShape,
        pad: Num,
    ) -> Res<Vec<u8>> {
        let t = self.tensor(view.param)?;
        let size = bytes::size(t.elem);
        let pad = bytes::encode(t.elem, &super::arith::splat(1, pad));
        let mut out = pad.repeat(shape.len());
        for run in runs(t, view, first, shape) {
            let part = &mut out[run.at * size..(run.at + run.n) * size];
            if t.elem.bits() == 4 {
                let mut packed = vec![0; (run.n + usize::from(run.element % 2 == 1)).div_ceil(2)];
                self.read_tensor(spaces, t, run.element / 2, &mut packed)?;
                let odd = usize::from(run.element % 2 == 1);
                part.copy_from_slice(&unpack_nibbles(&packed, run.n + odd)[odd..]);
            } else {
                self.read_tensor(spaces, t, run.element * size as u64, part)?;
            }
        }
        Ok(out)
    }

    /// Stores the elements of a tile; elements outside of the tensor are dropped.
    pub(super) fn put(
        &mut self,
        spaces: &mut (impl Spaces + ?Sized),
        view: &View,
        first: &[i64],
        shape: TileShape,
        values: &[u8],
    ) -> Res<()> {
        if !self.data {
            return Ok(());
        }
        let t = self.tensor(view.param)?;
        if t.bytes.is_some() {
            return Err(Found::new(Kind::Bounds, format!("`{}` is an input, and is stored to", t.name)));
        }
        let size = bytes::size(t.elem);
        if values.len() != shape.len() * size {
            return Err(Found::new(
                Kind::Bounds,
                format!("{} bytes are stored as a tile of {} of `{}`", values.len(), shape.len() * size, t.name),
            ));
        }
        let space = spaces.space_mut(self.global).ok_or_else(no_memory)?;
        for run in runs(t, view, first, shape) {
            let part = &values[run.at * size..(run.at + run.n) * size];
            let done = if t.elem.bits() == 4 {
                put_nibbles(space, t.base + run.element / 2, run.element % 2 == 1, part)
            } else {
                space.write(t.base + run.element * size as u64, part)
            };
            done.map_err(|f| explain(space, f))?;
        }
        Ok(())
    }

    /// Loads the elements of a copy's source.
    pub(super) fn source(&self, spaces: &(impl Spaces + ?Sized), source: &Source) -> Res<Vec<u8>> {
        if source.absent {
            let pad = bytes::encode(source.view.elem, &super::arith::splat(1, source.pad));
            return Ok(pad.repeat(source.shape.len()));
        }
        match &source.what {
            Named::From(first) => self.load(spaces, &source.view, first, source.shape, source.pad),
            Named::Rows(rows, column) => self.rows(spaces, &source.view, (rows, *column), source.shape, source.pad),
            Named::Unknown => Err(Found::not_modelled("a copy of rows that are not computed")),
        }
    }

    /// Loads rows selected by indices; a row whose index is out of range is the padding.
    pub(super) fn rows(
        &self,
        spaces: &(impl Spaces + ?Sized),
        view: &View,
        (rows, column): (&[Vec<i64>], i64),
        shape: TileShape,
        pad: Num,
    ) -> Res<Vec<u8>> {
        let mut out = Vec::new();
        let Some(line) = row_shape(view, shape) else { return Err(Found::not_modelled("rows of this rank")) };
        for row in rows {
            let first: Vec<i64> = row.iter().copied().chain([column]).collect();
            out.extend(self.load(spaces, view, &first, line, pad)?);
        }
        Ok(out)
    }

    /// Applies the effects of an operation at its completion.
    pub(super) fn apply(&mut self, spaces: &mut [Space], work: &Work) -> Res<()> {
        match &work.effect {
            Effect::None => Ok(()),
            Effect::TensorMemory(accessed) => self.access_columns(&*spaces, accessed),
            Effect::Define { cta, lo, hi } => self.define(spaces, *cta, *lo, *hi),
            Effect::Expect { cta, lo, hi } => self.read_shared(spaces, *cta, *lo, hi - lo).map(drop),
            Effect::Copy { cta, address, len, .. } if !self.data => self.define(spaces, *cta, *address, address + len),
            Effect::Copy { cta, address, len, source: None } => self.define(spaces, *cta, *address, address + len),
            Effect::Copy { cta, address, source: Some(source), .. } => {
                let bytes = self.source(&*spaces, source)?;
                let bytes = if source.view.elem.bits() == 4 { pack_nibbles(&bytes) } else { bytes };
                self.write_shared(spaces, *cta, *address, &bytes)
            }
            Effect::Deal { .. } => self.deal(spaces, &work.effect),
            Effect::Mma { id, a, b, elem } => {
                let (a, b) = (self.operand(&*spaces, a)?, self.operand(&*spaces, b)?);
                let (Some(a), Some(b), Some(acc)) = (a, b, self.results.get(id)) else { return Ok(()) };
                let sum = Tile { shape: acc.shape, cells: product::mma(&a, &b, acc, *elem) };
                self.results.insert(*id, Rc::new(sum));
                Ok(())
            }
            Effect::Step { from, id, a, b, elem, part } => {
                let (a, b) = (self.operand(&*spaces, a)?, self.operand(&*spaces, b)?);
                let (Some(a), Some(b), Some(acc)) = (a, b, self.results.remove(from)) else { return Ok(()) };
                let Some(own) = part.of(&acc) else { return Ok(()) };
                let sum = part.put(&acc, &product::mma(&a, &b, &own, *elem));
                self.results.insert(*id, Rc::new(sum));
                Ok(())
            }
            Effect::Keep { id, cta, address, len } => {
                let bytes = self.read_shared(&*spaces, *cta, *address, *len)?;
                if self.data {
                    self.kept.insert(*id, Rc::new(bytes));
                }
                Ok(())
            }
            Effect::KeepTile { id, tile, elem } => {
                if let Some(tile) = self.operand(&*spaces, tile)? {
                    self.kept.insert(*id, Rc::new(bytes::encode(*elem, &tile.cells)));
                }
                Ok(())
            }
            Effect::Put { id, view, first, shape } => match (self.kept.remove(id), first) {
                (Some(bytes), Some(first)) => {
                    let values =
                        if view.elem.bits() == 4 { unpack_nibbles(&bytes, shape.len()) } else { bytes.to_vec() };
                    self.put(spaces, view, first, *shape, &values)
                }
                (_, _) => Ok(()),
            },
        }
    }

    /// Writes each element of a tile, or zero, to its own address.
    pub(super) fn deal(&mut self, spaces: &mut (impl Spaces + ?Sized), effect: &Effect) -> Res<()> {
        let Effect::Deal { cta, source, places, elem, ranges } = effect else { return Ok(()) };
        if !self.data {
            return ranges.iter().try_for_each(|(lo, hi)| self.define(spaces, *cta, *lo, *hi));
        }
        let (all, size) = (self.source(&*spaces, source)?, bytes::size(*elem));
        let zero = vec![0; size];
        for (i, at) in places.iter() {
            let one = i.and_then(|i| all.get(i * size..(i + 1) * size)).unwrap_or(&zero);
            self.write_shared(spaces, *cta, *at, one)?;
        }
        Ok(())
    }

    fn operand(&self, spaces: &[Space], operand: &Operand) -> Res<Option<Rc<Tile>>> {
        match operand {
            Operand::Tile(tile) => Ok(Some(Rc::clone(tile))),
            Operand::Unknown => Ok(None),
            Operand::Shared { cta, address, smem } => {
                let tile = self.stage(spaces, *cta, *address, smem)?;
                Ok(tile.map(Rc::new))
            }
            Operand::Placed { cta, elem, shape, places, ranges } => {
                let mut bytes = Vec::new();
                // The position of each range's first byte among the bytes that were read.
                let mut starts = Vec::new();
                for (lo, hi) in ranges.iter() {
                    starts.push((*lo, bytes.len()));
                    bytes.extend(self.read_shared(spaces, *cta, *lo, hi - lo)?);
                }
                if !self.data {
                    return Ok(None);
                }
                let all = bytes::decode(*elem, &bytes);
                let size = bytes::size(*elem);
                let index = |at: &u64| {
                    let range = starts.partition_point(|(lo, _)| lo <= at).checked_sub(1)?;
                    let (lo, first) = starts.get(range)?;
                    Some((first + usize::try_from(at - lo).ok()?) / size)
                };
                let cells = all.pick(places.iter().map(|at| index(at).unwrap_or(usize::MAX)));
                Ok(Some(Rc::new(Tile { shape: *shape, cells })))
            }
        }
    }

    /// Loads a tile of a stage, with the axes of its view.
    pub(super) fn stage(
        &self,
        spaces: &(impl Spaces + ?Sized),
        cta: usize,
        address: u64,
        smem: &Smem,
    ) -> Res<Option<Tile>> {
        let n = smem.lies.len();
        let bytes = self.read_shared(spaces, cta, address, smem.elem.bytes_for(n) as u64)?;
        if !self.data {
            return Ok(None);
        }
        let bytes = if smem.elem.bits() == 4 { unpack_nibbles(&bytes, n) } else { bytes };
        let cells = bytes::decode(smem.elem, &bytes);
        let dims: Vec<i32> = smem.order.iter().filter_map(|i| smem.lies.get(*i).copied()).collect();
        let shape = TileShape::new(&dims).unwrap_or(smem.lies);
        let in_order = smem.order.iter().enumerate().all(|(i, o)| i == *o);
        let cells = if in_order { cells } else { arrange::permute(&cells, smem.lies, &smem.order) };
        Ok(Some(Tile { shape, cells }))
    }

    /// The position of the element at coordinates given by indices; `None` if they are out of range.
    pub(super) fn place(&self, view: &View, at: &[i64]) -> Res<Option<u64>> {
        let t = self.tensor(view.param)?;
        let inside = !view.outside && at.iter().zip(&view.extents).all(|(i, n)| (0..*n).contains(i));
        Ok(inside.then(|| element(t, view, at)).flatten())
    }

    /// Loads one element.
    pub(super) fn get(&self, spaces: &(impl Spaces + ?Sized), view: &View, element: u64) -> Res<Num> {
        let t = self.tensor(view.param)?;
        let size = bytes::size(t.elem);
        let mut one = vec![0; size];
        if t.elem.bits() == 4 {
            self.read_tensor(spaces, t, element / 2, &mut one)?;
            one = unpack_nibbles(&one, 2)[usize::from(element % 2 == 1)..].to_vec();
            one.truncate(1);
        } else {
            self.read_tensor(spaces, t, element * size as u64, &mut one)?;
        }
        Ok(bytes::decode(t.elem, &one).get(0))
    }

    /// Stores one element.
    pub(super) fn set(
        &mut self,
        spaces: &mut (impl Spaces + ?Sized),
        view: &View,
        element: u64,
        value: Num,
    ) -> Res<()> {
        if !self.data {
            return Ok(());
        }
        let t = self.tensor(view.param)?;
        if t.bytes.is_some() {
            return Err(Found::new(Kind::Bounds, format!("`{}` is an input, and is stored to", t.name)));
        }
        let bytes = bytes::encode(t.elem, &Cells::collect(t.elem, [value].into_iter()));
        let space = spaces.space_mut(self.global).ok_or_else(no_memory)?;
        let done = if t.elem.bits() == 4 {
            put_nibbles(space, t.base + element / 2, element % 2 == 1, &bytes)
        } else {
            space.write(t.base + element * bytes.len() as u64, &bytes)
        };
        done.map_err(|f| explain(space, f))
    }
}

fn no_memory() -> Box<Found> {
    Found::not_modelled("memory of a program outside of the cluster")
}

/// A set of bytes, as sorted ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    pub(super) fn holds(&self, lo: u64, hi: u64) -> bool {
        lo >= hi || self.0.iter().any(|(l, h)| *l <= lo && hi <= *h)
    }

    pub(super) fn add(&mut self, mut lo: u64, mut hi: u64) {
        if self.holds(lo, hi) {
            return;
        }
        self.0.retain(|(l, h)| {
            let touches = *l <= hi && lo <= *h;
            if touches {
                (lo, hi) = (lo.min(*l), hi.max(*h));
            }
            !touches
        });
        let at = self.0.partition_point(|(l, _)| *l < lo);
        self.0.insert(at, (lo, hi));
    }

    pub(super) fn remove(&mut self, lo: u64, hi: u64) {
        let cut = |(l, h): (u64, u64)| [(l, h.min(lo)), (l.max(hi), h)];
        self.0 = self.0.iter().copied().flat_map(cut).filter(|(l, h)| l < h).collect();
    }
}

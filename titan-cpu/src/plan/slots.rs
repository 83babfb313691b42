//! The slots of values: defined with the value, and looked up at its uses. The use of a value that an open group computes
//! closes the group.

use super::lower::{Frame, Lower, Result, number};
use super::{ScalarSlot, Slot, Step, TileInfo, TileSlot, TileStep, ViewSlot, dense_strides, shape4};
use crate::rep;
use titan_core::ir::{Elem, TileShape, Token, Ty, Value};

impl Lower<'_> {
    /// A new slot for a value.
    pub(super) fn define(&mut self, value: Value) -> Result<Slot> {
        let Some(data) = self.kernel.values.get(value.index()) else {
            return self.wrong("a value that does not exist");
        };
        let slot = match data.ty {
            Ty::Scalar(_) => Slot::Scalar(self.scalar_slot(0)),
            Ty::Tensor(..) => Slot::View(self.view_slot()),
            // The token of a written slot is represented by the tile, not by a ring time.
            Ty::Token(Token::Written, ring) => match self.kernel.pipe(ring).and_then(|p| p.fields.first()) {
                Some(field) => Slot::Tile(self.tile_slot(field.elem, field.shape)),
                None => return self.wrong("a ring without contents"),
            },
            Ty::Token(..) => Slot::Scalar(self.scalar_slot(0)),
            Ty::Source(..) => return self.wrong("a tile that is only named"),
            Ty::Barrier(_) => return self.wrong("a barrier or a region of a GPU: the CPU runs rings (`ttg`)"),
            Ty::Tile(elem, shape) | Ty::Smem(elem, shape) | Ty::Compute(elem, shape) | Ty::Acc(elem, shape, _) => {
                if shape.problem().is_some() {
                    return self.wrong("a tile of an illegal shape");
                }
                Slot::Tile(self.tile_slot(elem, shape))
            }
        };
        self.slots[value.index()] = Some(slot);
        Ok(slot)
    }

    pub(super) fn tile_slot(&mut self, elem: Elem, shape: TileShape) -> TileSlot {
        let (len, size) = (shape.len(), rep::size(elem));
        let bytes = len * size;
        let known = self.plan.classes.iter().position(|c| *c == bytes);
        let class = known.unwrap_or_else(|| {
            self.plan.classes.push(bytes);
            self.plan.classes.len() - 1
        });
        let (dims, rank) = (shape4(shape), shape.rank());
        self.plan.tiles.push(TileInfo { elem, shape: dims, strides: dense_strides(dims), rank, len, size, class });
        number(self.plan.tiles.len() - 1)
    }

    pub(super) fn scalar_slot(&mut self, initial: u64) -> ScalarSlot {
        self.plan.scalars.push(initial);
        number(self.plan.scalars.len() - 1)
    }

    fn view_slot(&mut self) -> ViewSlot {
        self.plan.views += 1;
        number(self.plan.views - 1)
    }

    /// The slot of a value that is defined.
    pub(super) fn slot(&self, value: Value) -> Result<Slot> {
        match self.slots.get(value.index()).copied().flatten() {
            Some(slot) => Ok(slot),
            None => self.wrong("a value used before it is defined"),
        }
    }

    /// Lets a value stand for another one.
    pub(super) fn alias(&mut self, value: Value, slot: Slot) {
        self.slots[value.index()] = Some(slot);
    }

    /// The slot of a tile; if an open group computes it, the group is closed.
    pub(super) fn tile(&mut self, frame: &mut Frame, value: Value) -> Result<TileSlot> {
        self.close_group_of(frame, value)?;
        match (self.slot(value)?, self.kernel.ty(value)) {
            (Slot::Tile(tile), _) => Ok(tile),
            (Slot::Scalar(from), Ty::Tile(elem, shape) | Ty::Smem(elem, shape)) => {
                let to = self.tile_slot(elem, shape);
                self.push(frame, Step::Tile(TileStep::Splat { to, from }), &[], &[Slot::Tile(to)]);
                Ok(to)
            }
            (Slot::Scalar(_) | Slot::View(_), _) => self.wrong("a tile is wanted here"),
        }
    }

    /// Whether values of a type are kept as scalars: tiles of one element are, in computations.
    pub(super) fn is_one(&self, ty: Ty) -> bool {
        self.options.fuse && ty.tile_shape().is_some_and(|s| s.len() == 1)
    }

    /// The slot of a scalar, or of a tile of one element as a scalar.
    pub(super) fn one(&mut self, frame: &mut Frame, value: Value) -> Result<ScalarSlot> {
        self.close_group_of(frame, value)?;
        match self.slot(value)? {
            Slot::Scalar(scalar) => Ok(scalar),
            Slot::Tile(from) => {
                let (to, elem) = (self.scalar_slot(0), self.kernel.ty(value).elem());
                self.push(frame, Step::Tile(TileStep::Extract { to, from, elem }), &[Slot::Tile(from)], &[]);
                Ok(to)
            }
            Slot::View(_) => self.wrong("a scalar is wanted here"),
        }
    }

    pub(super) fn scalar(&self, value: Value) -> Result<ScalarSlot> {
        match self.slot(value)? {
            Slot::Scalar(scalar) => Ok(scalar),
            Slot::Tile(_) | Slot::View(_) => self.wrong("a scalar is wanted here"),
        }
    }

    pub(super) fn view(&self, value: Value) -> Result<ViewSlot> {
        match self.slot(value)? {
            Slot::View(view) => Ok(view),
            Slot::Scalar(_) | Slot::Tile(_) => self.wrong("a tensor is wanted here"),
        }
    }

    /// The slot of any value; if it is a tile that an open group computes, the group is closed.
    pub(super) fn any(&mut self, frame: &mut Frame, value: Value) -> Result<Slot> {
        match self.kernel.ty(value) {
            Ty::Tile(..) | Ty::Smem(..) | Ty::Compute(..) | Ty::Acc(..) => Ok(Slot::Tile(self.tile(frame, value)?)),
            Ty::Scalar(_) | Ty::Tensor(..) | Ty::Source(..) | Ty::Token(..) | Ty::Barrier(_) => self.slot(value),
        }
    }

    pub(super) fn scalars(&self, values: &[Value]) -> Result<Vec<ScalarSlot>> {
        values.iter().map(|v| self.scalar(*v)).collect()
    }
}

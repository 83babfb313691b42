//! The contents of a tile slot: a handle of a buffer, or a form without its own buffer.

use super::pool::{BufferId, bytes_mut};
use super::{Machine, Outcome};
use crate::ops::words::{self, Strided};
use crate::plan::TileSlot;

/// The location of the elements of a tile.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Data<'m> {
    /// The slot is empty.
    #[default]
    Nothing,
    /// The elements are in a buffer.
    Buffer(BufferId),
    /// The elements are in a tensor that the launch does not write.
    Memory(&'m [u8]),
    /// Every element has these bits.
    Splat(u64),
}

/// A tile: its data, and the positions of elements in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tile<'m> {
    pub(crate) data: Data<'m>,
    /// The index of the first element.
    pub(crate) first: usize,
    /// The stride of each axis, in elements.
    pub(crate) strides: [isize; 4],
    /// Whether the elements are contiguous in row-major order.
    pub(crate) dense: bool,
}

impl<'m> Machine<'_, 'm> {
    /// Puts a tile into a slot; the tile that was there is released.
    pub(super) fn set_tile(&mut self, slot: TileSlot, tile: Tile<'m>) {
        self.kill(slot);
        self.tiles[slot as usize] = tile;
    }

    /// Empties a slot.
    #[inline]
    pub(super) fn kill(&mut self, slot: TileSlot) {
        if let Data::Buffer(id) = std::mem::take(&mut self.tiles[slot as usize].data) {
            self.work.pool.release(id);
        }
    }

    /// Another handle of the same elements.
    pub(super) fn share(&mut self, slot: TileSlot) -> Tile<'m> {
        let tile = self.tiles[slot as usize];
        if let Data::Buffer(id) = tile.data {
            self.work.pool.share(id);
        }
        tile
    }

    /// Allocates a dense tile for a slot, to be filled; the slot refers to it already.
    pub(super) fn fresh(&mut self, slot: TileSlot) -> Outcome<BufferId> {
        let info = &self.plan.tiles[slot as usize];
        let id = self.work.pool.take(info.class)?;
        self.set_tile(slot, Tile { data: Data::Buffer(id), first: 0, strides: info.strides, dense: true });
        Ok(id)
    }

    /// Computes a dense tile with a function that has access to the machine and fills the bytes.
    pub(super) fn make<R>(&mut self, slot: TileSlot, f: impl FnOnce(&mut Self, &mut [u8]) -> R) -> Outcome<R> {
        let info = &self.plan.tiles[slot as usize];
        let size = info.len * info.size;
        let id = self.fresh(slot)?;
        let mut buffer = self.work.pool.lend(id);
        let result = f(self, bytes_mut(&mut buffer, size));
        self.work.pool.give_back(id, buffer);
        Ok(result)
    }

    /// The data that contains a tile; empty for a splat.
    pub(super) fn data(&self, slot: TileSlot) -> &[u8] {
        match self.tiles[slot as usize].data {
            Data::Buffer(id) => self.work.pool.get(id),
            Data::Memory(data) => data,
            Data::Splat(_) | Data::Nothing => &[],
        }
    }

    /// A tile that is not a splat.
    pub(super) fn strided(&self, slot: TileSlot) -> Option<Strided<'_>> {
        let (tile, info) = (&self.tiles[slot as usize], &self.plan.tiles[slot as usize]);
        let data = match tile.data {
            Data::Buffer(id) => self.work.pool.get(id),
            Data::Memory(data) => data,
            Data::Splat(_) | Data::Nothing => return None,
        };
        Some(Strided { data, first: tile.first, strides: tile.strides, shape: info.shape, size: info.size })
    }

    /// Converts a tile to the dense form, if it has another one.
    pub(super) fn make_dense(&mut self, slot: TileSlot) -> Outcome<()> {
        let tile = self.tiles[slot as usize];
        if tile.dense {
            return Ok(());
        }
        // The old handle is kept alive while the new tile is filled.
        if let Data::Buffer(id) = tile.data {
            self.work.pool.share(id);
        }
        let info = self.plan.tiles[slot as usize];
        self.make(slot, |machine, out| match tile.data {
            Data::Buffer(id) => {
                let data = machine.work.pool.get(id);
                words::gather_run(out, &strided(data, &tile, info.shape, info.size), 0);
            }
            Data::Memory(data) => words::gather_run(out, &strided(data, &tile, info.shape, info.size), 0),
            Data::Splat(bits) => words::fill(out, info.size, bits),
            Data::Nothing => {}
        })?;
        if let Data::Buffer(id) = tile.data {
            self.work.pool.release(id);
        }
        Ok(())
    }

    /// The elements of a tile in dense form.
    pub(super) fn dense(&self, slot: TileSlot) -> &[u8] {
        let info = &self.plan.tiles[slot as usize];
        match self.strided(slot) {
            Some(tile) if self.tiles[slot as usize].dense => {
                &tile.data[tile.first * info.size..(tile.first + info.len) * info.size]
            }
            Some(_) | None => &[],
        }
    }
}

fn strided<'a>(data: &'a [u8], tile: &Tile<'_>, shape: [i32; 4], size: usize) -> Strided<'a> {
    Strided { data, first: tile.first, strides: tile.strides, shape, size }
}

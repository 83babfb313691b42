//! Tile buffers: reference-counted slots that are reused, so that the steady state allocates nothing.

use super::{Outcome, out_of_memory};

/// The unit of buffers: 64 bytes, aligned.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line([u64; 8]);

/// A buffer outside of the pool.
pub(crate) type Buffer = Vec<Line>;

/// Grows a buffer to this number of bytes.
pub(crate) fn reserve(buffer: &mut Buffer, bytes: usize) -> Outcome<()> {
    let lines = bytes.div_ceil(size_of::<Line>());
    if buffer.len() < lines {
        buffer.try_reserve_exact(lines - buffer.len()).map_err(|_| out_of_memory(bytes))?;
        buffer.resize(lines, Line([0; 8]));
    }
    Ok(())
}

/// The first `bytes` bytes of a buffer.
pub(crate) fn bytes(buffer: &Buffer, bytes: usize) -> &[u8] {
    &bytemuck::cast_slice(buffer)[..bytes]
}

/// The first `bytes` bytes of a buffer, mutable.
pub(crate) fn bytes_mut(buffer: &mut Buffer, bytes: usize) -> &mut [u8] {
    &mut bytemuck::cast_slice_mut(buffer)[..bytes]
}

/// The number of a buffer.
pub(crate) type BufferId = u32;

/// The buffers of a thread, by the sizes that a plan needs.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    buffers: Vec<Buffer>,
    refs: Vec<u32>,
    class: Vec<usize>,
    free: Vec<Vec<BufferId>>,
    sizes: Vec<usize>,
}

impl Pool {
    /// Creates a pool for these sizes in bytes.
    pub(crate) fn new(sizes: &[usize]) -> Self {
        Pool { free: vec![Vec::new(); sizes.len()], sizes: sizes.to_vec(), ..Pool::default() }
    }

    /// Takes a buffer that is not shared, with unspecified contents.
    pub(crate) fn take(&mut self, class: usize) -> Outcome<BufferId> {
        if let Some(id) = self.free[class].pop() {
            self.refs[id as usize] = 1;
            return Ok(id);
        }
        let mut buffer = Buffer::new();
        reserve(&mut buffer, self.sizes[class])?;
        self.buffers.push(buffer);
        self.refs.push(1);
        self.class.push(class);
        Ok(BufferId::try_from(self.buffers.len() - 1).unwrap_or(BufferId::MAX))
    }

    /// Adds an owner.
    pub(crate) fn share(&mut self, id: BufferId) {
        self.refs[id as usize] += 1;
    }

    /// Removes an owner.
    pub(crate) fn release(&mut self, id: BufferId) {
        let refs = &mut self.refs[id as usize];
        *refs -= 1;
        if *refs == 0 {
            self.free[self.class[id as usize]].push(id);
        }
    }

    /// Whether a buffer has one owner.
    pub(crate) fn is_unique(&self, id: BufferId) -> bool {
        self.refs[id as usize] == 1
    }

    /// All bytes of a buffer.
    pub(crate) fn get(&self, id: BufferId) -> &[u8] {
        let size = self.sizes[self.class[id as usize]];
        bytes(&self.buffers[id as usize], size)
    }

    /// Moves a buffer out of the pool for a while, so that it can be written while others are read.
    pub(crate) fn lend(&mut self, id: BufferId) -> Buffer {
        std::mem::take(&mut self.buffers[id as usize])
    }

    /// Returns a buffer that [`Pool::lend`] moved out.
    pub(crate) fn give_back(&mut self, id: BufferId, buffer: Buffer) {
        self.buffers[id as usize] = buffer;
    }
}

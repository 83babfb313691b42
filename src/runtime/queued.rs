//! Work of streams that is no kernel: memory that is overwritten in the order of a stream, by the device itself.
//!
//! It is entered in the tables of its buffers like a launch, so that the invariant of `uses.rs` holds for it.

#[cfg(feature = "_remote")]
use super::backend::{Given, Lane, Mark};
use super::buffer::{Access, Buffer};
use super::device::Device;
use super::footprint::Footprint;
use super::launch::Work;
use super::stream::Stream;
use crate::error::Result;

/// Memory that takes the place of other data in the caches of a device when it is overwritten.
#[derive(Debug)]
pub(crate) struct Flush {
    buffer: Buffer,
    bytes: usize,
}

/// The fill of the first bytes of a buffer with zeros.
pub(crate) struct Fill {
    buffer: Buffer,
    bytes: usize,
}

impl Flush {
    /// Memory of so many bytes.
    pub(crate) fn new(device: &Device, bytes: usize) -> Result<Flush> {
        Ok(Flush { buffer: Buffer::unwritten(device, bytes)?, bytes })
    }

    /// Overwrites it after what was launched on the stream before.
    pub(crate) fn enqueue(&self, stream: &Stream) -> Result<()> {
        let Flush { buffer, bytes } = self;
        let access = Access { buffer: buffer.clone(), footprint: Footprint::whole(*bytes), write: true };
        let work = Work::Fill(Fill { buffer: buffer.clone(), bytes: *bytes });
        stream.enqueue("the fill of a cache".into(), &[access], work, false).map(drop)
    }
}

impl Fill {
    /// Fills on this thread.
    pub(crate) fn run(&self) -> Result<()> {
        self.buffer.storage().fill(0, self.bytes, 0)
    }

    /// Enqueues the fill at the end of a lane, after the points `after`. After an error, it has not been enqueued.
    #[cfg(feature = "_remote")]
    pub(crate) fn give(&self, lane: &Lane, after: &[Mark], sleeps: bool) -> Result<Given> {
        lane.follow(after)?;
        self.buffer.storage().fill_in(lane, self.bytes, 0)?;
        Ok(Given { mark: lane.mark(sleeps)?, finish: None })
    }
}

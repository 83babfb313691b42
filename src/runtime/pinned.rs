//! Host memory from which a device copies while the program goes on.
//!
//! An upload takes its memory away until it has ended: the work holds a handle, so that the memory lives as long as the copy reads it, whatever
//! happens to the values that the program has. Nothing depends on a destructor.

#[cfg(feature = "_remote")]
use super::backend::{Given, Lane, Mark};
use super::buffer::Buffer;
use super::device::{Device, DeviceKind};
use super::event;
use super::launch::Work;
use super::stream::Stream;
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::lang::Elem;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use titan_core::diag::counted;

/// Elements in host memory that a device reads by itself: filled like a slice, and copied with [`Tensor::upload`]. See [`Device::pinned`].
pub struct Pinned<T> {
    block: Block,
    len: usize,
    elem: PhantomData<T>,
}

/// Host memory. On devices whose work the host does, it is ordinary memory.
#[derive(Debug)]
pub(crate) enum Block {
    Host(Vec<u64>),
    #[cfg(feature = "cuda")]
    Cuda(titan_nv::runtime::HostMemory),
    #[cfg(feature = "hip")]
    Hip(titan_amd::runtime::HostMemory),
}

/// A copy that is on its way: see [`Tensor::upload`].
#[must_use = "`wait` returns the memory; it is freed if this is dropped"]
pub struct Upload<T> {
    end: event::Event,
    block: Arc<Block>,
    len: usize,
    elem: PhantomData<T>,
}

/// The work of an upload.
pub(crate) struct Transfer {
    buffer: Buffer,
    offset: usize,
    bytes: usize,
    block: Arc<Block>,
}

impl Device {
    /// Host memory for so many elements, which are zeros, from which this device copies while the program goes on. On GPUs it is pinned: there is
    /// less of it than of other memory, and making it takes long, so make it once and use it again.
    ///
    /// # Errors
    /// If elements have another layout on devices than in a slice: those of `tf32`, 8-bit floats and 4-bit types; if the host has no such memory.
    pub fn pinned<T: Elem>(&self, len: usize) -> Result<Pinned<T>> {
        if T::as_bytes(&[]).is_none() {
            let problem = format!("elements of type `{}` have another layout on the device than in a slice", T::ELEM);
            let help = "pin their bytes as `u8`, or copy them with `Device::tensor`";
            return Err(Error::Layout { operation: "pinned", problem, help });
        }
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| Error::TooLarge { shape: vec![len] })?;
        Ok(Pinned { block: Block::new(self, bytes)?, len, elem: PhantomData })
    }
}

impl Block {
    fn new(device: &Device, bytes: usize) -> Result<Block> {
        match device.kind() {
            DeviceKind::Cpu | DeviceKind::Emulator | DeviceKind::Simulator => {
                let mut words = super::transfer::host_vec(bytes.div_ceil(8))?;
                words.resize(bytes.div_ceil(8), 0);
                Ok(Block::Host(words))
            }
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda => super::cuda::pinned(device, bytes).map(Block::Cuda),
            #[cfg(feature = "hip")]
            DeviceKind::Hip => super::hip::pinned(device, bytes).map(Block::Hip),
            #[cfg(not(feature = "cuda"))]
            DeviceKind::Cuda => Err(super::backend::absent(device)),
            #[cfg(not(feature = "hip"))]
            DeviceKind::Hip => Err(super::backend::absent(device)),
        }
    }

    /// The first byte.
    fn start(&self) -> *mut u8 {
        match self {
            Block::Host(words) => words.as_ptr().cast_mut().cast(),
            #[cfg(feature = "cuda")]
            Block::Cuda(memory) => memory.start(),
            #[cfg(feature = "hip")]
            Block::Hip(memory) => memory.start(),
        }
    }

    /// Whether copies of a device read it.
    fn is_for(&self, device: &Device) -> bool {
        match (self, device.kind()) {
            // The thread of the stream reads any memory of the host.
            (_, DeviceKind::Cpu | DeviceKind::Emulator | DeviceKind::Simulator) => true,
            (Block::Host(_), DeviceKind::Cuda | DeviceKind::Hip) => false,
            #[cfg(feature = "cuda")]
            (Block::Cuda(_), kind @ (DeviceKind::Cuda | DeviceKind::Hip)) => kind == DeviceKind::Cuda,
            #[cfg(feature = "hip")]
            (Block::Hip(_), kind @ (DeviceKind::Cuda | DeviceKind::Hip)) => kind == DeviceKind::Hip,
        }
    }
}

impl<T: Elem> Pinned<T> {
    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

#[expect(unsafe_code, reason = "the memory is the driver's")]
impl<T: Elem> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the block has `len` elements of a type whose layout is that of bytes on the device, at an address of a page or of a `u64`, which
        // is aligned for each such type. All of it is initialized: zeros, which are a value of every element type, and what was written as `T`.
        // No copy reads it: those have taken their memory.
        unsafe { std::slice::from_raw_parts(self.block.start().cast(), self.len) }
    }
}

#[expect(unsafe_code, reason = "the memory is the driver's")]
impl<T: Elem> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let start = match &mut self.block {
            Block::Host(words) => words.as_mut_ptr().cast(),
            #[cfg(feature = "cuda")]
            Block::Cuda(memory) => memory.start().cast(),
            #[cfg(feature = "hip")]
            Block::Hip(memory) => memory.start().cast(),
        };
        // SAFETY: as in `deref`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(start, self.len) }
    }
}

impl<T: Elem> AsRef<[T]> for Pinned<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: Elem> AsMut<[T]> for Pinned<T> {
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: Elem> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned({} of `{}`)", counted(self.len, "element"), T::ELEM)
    }
}

impl<T: Elem, const R: usize> Tensor<T, R> {
    /// Copies elements, given in row-major order, to the tensor, in the order of a stream of its device, and returns without waiting. The copy is
    /// ordered with launches on the tensor as a launch on the stream is. [`Upload::wait`] gives the memory back.
    ///
    /// ```
    /// use titan::prelude::*;
    ///
    /// #[titan::kernel]
    /// fn twice(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    ///     y.store_tile([program_id(0)], x.load_tile::<64>([program_id(0)]) * 2.0);
    /// }
    ///
    /// # fn main() -> titan::Result<()> {
    /// let dev = Device::cpu();
    /// let stream = dev.stream()?;
    /// let (mut x, mut y) = (dev.zeros([100])?, dev.zeros([100])?);
    /// let mut staging = dev.pinned::<f32>(100)?;
    /// for step in 0..3 {
    ///     staging.fill(step as f32);
    ///     let upload = x.upload(staging, &stream)?;
    ///     twice(&x, &mut y).launch(&stream)?;
    ///     staging = upload.wait()?; // the copy has ended; the launch may be running
    ///     assert_eq!(y.to_vec()?, [2.0 * step as f32; 100]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the number of elements differs, the tensor is not contiguous, the stream is of another device, or the memory is not pinned for the
    /// device (T1111); if the device does not accept the copy. The memory is freed then.
    pub fn upload(&mut self, from: Pinned<T>, stream: &Stream) -> Result<Upload<T>> {
        const OPERATION: &str = "upload";
        let told = |problem: String, help| Err(Error::Copy { operation: OPERATION, problem, help });
        if from.len != self.len() {
            let (found, expected) = (counted(from.len, "element"), self.len());
            let problem = format!("the memory has {found}, but the tensor of shape {:?} has {expected}", self.shape());
            return told(problem, "upload as many elements");
        }
        if !self.is_contiguous() {
            let problem = format!("the tensor has strides {:?}", self.strides());
            return told(problem, "upload to a contiguous tensor, or copy the elements with `write`");
        }
        if stream.device() != self.device() {
            let problem = format!("the tensor is on {}, but the stream is on {}", self.device(), stream.device());
            return told(problem, "use a stream of the tensor's device");
        }
        if !from.block.is_for(self.device()) {
            let problem = format!("the memory is not pinned for {}", self.device());
            return told(problem, "make it with `pinned` of this device");
        }
        let access = self.access(true);
        let (bytes, len) = (from.bytes(), from.len);
        let block = Arc::new(from.block);
        let offset = T::ELEM.bytes_for(self.layout().offset);
        let copy = Transfer { buffer: access.buffer.clone(), offset, bytes, block: Arc::clone(&block) };
        let end = stream.enqueue("`upload`".into(), &[access], Work::Upload(copy), false)?;
        Ok(Upload { end, block, len, elem: PhantomData })
    }
}

impl<T: Elem> Upload<T> {
    /// Whether the copy has ended, even if by a failure. Does not wait.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.end.is_over()
    }

    /// Blocks until the copy has ended, and returns its memory.
    ///
    /// # Errors
    /// If it failed, or did not run because earlier work that wrote the tensor failed. The memory is freed then.
    pub fn wait(self) -> Result<Pinned<T>> {
        self.end.wait();
        if let Some(error) = self.end.report().or_else(|| self.end.error()) {
            return Err(error);
        }
        let Upload { block, len, .. } = self;
        // The work has given its handle up before its end became visible.
        let block = Arc::try_unwrap(block);
        let message = "the memory is still in use".to_owned();
        let block = block.map_err(|_| Error::Internal { doing: "an upload".to_owned(), message })?;
        Ok(Pinned { block, len, elem: PhantomData })
    }
}

impl<T: Elem> fmt::Debug for Upload<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_over() { "over" } else { "pending" };
        write!(f, "Upload({} of `{}`, {state})", counted(self.len, "element"), T::ELEM)
    }
}

impl Transfer {
    /// Copies on this thread.
    #[expect(unsafe_code, reason = "the memory is the driver's")]
    pub(crate) fn run(&self) -> Result<()> {
        // SAFETY: the block has so many bytes, all initialized, and nothing writes them: the upload has taken the memory away from the program
        // until it has ended.
        let bytes = unsafe { std::slice::from_raw_parts(self.block.start().cast_const(), self.bytes) };
        self.buffer.storage().write(self.offset, bytes)
    }

    /// Enqueues the copy at the end of a lane, after the points `after`. After an error, it has not been enqueued.
    #[cfg(feature = "_remote")]
    pub(crate) fn give(&self, lane: &Lane, after: &[Mark], sleeps: bool) -> Result<Given> {
        lane.follow(after)?;
        self.buffer.storage().copy_in(lane, self.offset, &self.block)?;
        let kept = Arc::clone(&self.block);
        match lane.mark(sleeps) {
            Ok(mark) => {
                self.buffer.storage().tell_owner(&mark);
                let finish = Box::new(move |_| {
                    drop(kept);
                    Ok(())
                });
                Ok(Given { mark, finish: Some(finish) })
            }
            Err(error) => {
                // It is unknown when the copy ends, so its memory is never freed.
                std::mem::forget(kept);
                Err(error)
            }
        }
    }
}

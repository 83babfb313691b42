//! Foreign kernels: code objects, and launches with tensors as arguments.

use super::super::as_tensor::{AsTensor, AsTensorMut};
use super::super::backend::{self, Given, Storage};
use super::super::buffer::Access;
use super::super::device::Device;
use super::super::launch;
use super::super::stream::Stream;
use super::super::tensor::Tensor;
use super::{Lane, Mark, context, error, follow, name};
use crate::error::{Error, Result};
use crate::lang::Elem;
use std::marker::PhantomData;
use std::sync::Arc;
use titan_amd::runtime::{self as amd, Geometry};

/// A code object on a device. It stays loaded until the process ends.
#[derive(Clone, Debug)]
pub struct Module {
    device: Device,
    module: amd::Module,
}

/// A kernel of a code object.
#[derive(Clone, Debug)]
pub struct Kernel {
    device: Device,
    title: Arc<str>,
    function: Arc<amd::Function>,
}

/// An argument of a foreign kernel.
#[derive(Debug)]
pub struct Arg<'a> {
    value: Value,
    borrow: PhantomData<&'a mut ()>,
}

#[derive(Clone, Debug)]
enum Value {
    /// The address of a tensor's first element.
    Tensor {
        access: Access,
        offset: usize,
    },
    Bytes(Vec<u8>),
}

impl<'a> Arg<'a> {
    /// The address of a tensor's first element, for a kernel that reads it.
    #[must_use]
    pub fn input<T: Elem, const R: usize>(tensor: &'a (impl AsTensor<Tensor<T, R>> + ?Sized)) -> Arg<'a> {
        Arg::tensor(tensor.as_tensor(), false)
    }

    /// The address of a tensor's first element, for a kernel that writes it.
    #[must_use]
    pub fn output<T: Elem, const R: usize>(tensor: &'a mut (impl AsTensorMut<Tensor<T, R>> + ?Sized)) -> Arg<'a> {
        Arg::tensor(&tensor.as_tensor_mut(), true)
    }

    /// The bytes of a value as the kernel takes it, as `value.to_le_bytes()` of a number.
    #[must_use]
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Arg<'a> {
        Arg { value: Value::Bytes(bytes.into()), borrow: PhantomData }
    }

    fn tensor<T: Elem, const R: usize>(tensor: &Tensor<T, R>, write: bool) -> Arg<'a> {
        let offset = T::ELEM.bytes_for(tensor.layout().offset);
        Arg { value: Value::Tensor { access: tensor.access(write), offset }, borrow: PhantomData }
    }
}

impl Module {
    /// Loads the bytes of a code object for gfx942.
    ///
    /// # Errors
    /// If they are not a code object, the device is another machine, or the runtime rejects them.
    pub fn load(device: &Device, code_object: &[u8]) -> Result<Module> {
        if device.as_hip().is_none() {
            let (operation, help) = ("titan::hip::Module::load", "use `Device::hip(ordinal)`");
            return Err(Error::Layout { operation, problem: format!("{device} is not an AMD GPU"), help });
        }
        let made = amd::Module::load(context(device)?, code_object);
        let module = made.map_err(|e| error::load(&device.to_string(), "the code object", &e))?;
        Ok(Module { device: device.clone(), module })
    }

    /// The names of its kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.module.object().kernels.iter().map(|k| k.name.as_str())
    }

    /// The kernel with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let made = self.module.function(name);
        let title: Arc<str> = format!("kernel `{name}`").into();
        let function = made.map_err(|e| error::load(&self.device.to_string(), &title, &e))?;
        Ok(Kernel { device: self.device.clone(), title, function: Arc::new(function) })
    }
}

impl Kernel {
    /// Enqueues a launch at the end of a stream and returns. There must be one argument for each that the code object's metadata lists,
    /// except hidden ones. The launch waits for the earlier work on its tensors, and later work waits for it.
    ///
    /// # Errors
    /// If the launch does not match the kernel or the device. Later failures are reported by the next call that needs the
    /// results, or by [`Stream::sync`].
    ///
    /// # Safety
    /// The kernel must access only memory inside of the tensors that are its arguments, write only those that are [`Arg::output`], and
    /// match its descriptor. Addresses in arguments of bytes must be memory of the device as long as the launch runs.
    #[expect(unsafe_code, reason = "the caller answers for the kernel")]
    pub unsafe fn launch(&self, stream: &Stream, geometry: Geometry, args: &[Arg<'_>]) -> Result<()> {
        let device = stream.device();
        if *device != self.device {
            return Err(self.elsewhere("the stream", device));
        }
        let mut accesses: Vec<Access> = Vec::new();
        for arg in args.iter() {
            let Value::Tensor { access, .. } = &arg.value else { continue };
            if *access.buffer.device() != self.device {
                return Err(self.elsewhere("a tensor", access.buffer.device()));
            }
            accesses.push(access.clone());
        }
        let function = Arc::clone(&self.function);
        let args = args.iter().map(|a| a.value.clone()).collect();
        let work = launch::Work::Hip(Box::new(Work { title: Arc::clone(&self.title), function, geometry, args }));
        stream.enqueue(Arc::clone(&self.title), &accesses, work, false).map(drop)
    }

    fn elsewhere(&self, what: &str, other: &Device) -> Error {
        Error::DeviceMismatch {
            kernel: self.function.kernel().name.clone(),
            first: "the code object".to_owned(),
            first_device: self.device.clone(),
            second: what.to_owned(),
            second_device: other.clone(),
        }
    }
}

/// A launch that is being enqueued. It keeps the memory of its tensors alive until it has been enqueued.
pub(crate) struct Work {
    title: Arc<str>,
    function: Arc<amd::Function>,
    geometry: Geometry,
    args: Vec<Value>,
}

impl Work {
    /// Runs the launch without a lane, which is an error: streams of such devices have lanes.
    pub(in super::super) fn run(&self) -> Result<()> {
        Err(Error::Internal { doing: self.title.to_string(), message: "no lane".to_owned() })
    }

    /// Enqueues the grid at the end of a lane, after the points `after`. After an error, it has not been enqueued.
    pub(in super::super) fn give(&self, lane: &backend::Lane, after: &[backend::Mark], sleeps: bool) -> Result<Given> {
        #[cfg_attr(not(feature = "cuda"), expect(irrefutable_let_patterns, reason = "the only kind then"))]
        let backend::Lane::Hip(Lane(stream)) = lane else {
            return Err(Error::Internal {
                doing: self.title.to_string(),
                message: "a lane of another device".to_owned(),
            });
        };
        let device = name(stream.context());
        follow(stream, after).map_err(|e| error::work(&device, &self.title, &e))?;
        let args: Vec<Vec<u8>> = self.args.iter().map(Value::bytes).collect();
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        self.start(stream, &args).map_err(|e| error::misfit(&device, &self.function.kernel().name, &e))?;
        Ok(Given { mark: backend::Mark::Hip(Mark::at_end(stream, sleeps)?), finish: None })
    }

    #[expect(unsafe_code, reason = "the arguments of raw launches cannot be checked")]
    fn start(&self, stream: &amd::Stream, args: &[&[u8]]) -> std::result::Result<(), amd::Misfit> {
        // SAFETY: the caller of `Kernel::launch` guarantees the behaviour of the kernel. Addresses of tensors are in memory in whose
        // buffers this launch is entered until it has ended (`uses.rs`).
        unsafe { self.function.launch(stream, &self.geometry, args) }
    }
}

impl Value {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Value::Bytes(bytes) => bytes.clone(),
            Value::Tensor { access, offset } => match access.buffer.storage() {
                Storage::Hip(memory) => memory.0.address(*offset).to_le_bytes().to_vec(),
                // The devices of arguments have been compared.
                #[cfg(feature = "cpu")]
                Storage::Cpu(_) => Vec::new(),
                #[cfg(feature = "cuda")]
                Storage::Cuda(_) => Vec::new(),
                #[cfg(feature = "emulator")]
                Storage::Emulated(_) => Vec::new(),
            },
        }
    }
}

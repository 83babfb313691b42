//! A GPU, if `TITAN_DEVICE` names one: the same launches through the CUDA runtime, on separate memory.

use crate::devices::{Outcome, Tensors};
use crate::tensor::Tensor as Host;
use std::sync::{Arc, OnceLock};
use titan::__private::{KernelRef, LaunchArg};
use titan::cuda::cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DriverError};
use titan::cuda::{RawTensor, tensor_from_raw};
use titan::prelude::*;
use titan::{DeviceKind, Error, Launch};
use titan_core::ir::{Access, Elem as Kind, ParamKind};
use titan_core::verify::Verified;

/// The device, and a stream for copies.
pub(crate) struct Gpu {
    device: Device,
    stream: Arc<CudaStream>,
}

/// A tensor whose type is forgotten.
trait Argument {
    fn argument(&mut self, write: bool) -> LaunchArg<'_>;
}

impl<T: Elem, const R: usize> Argument for Tensor<T, R> {
    fn argument(&mut self, write: bool) -> LaunchArg<'_> {
        if write { LaunchArg::from(&mut *self) } else { LaunchArg::from(&*self) }
    }
}

/// The GPU that `TITAN_DEVICE` names, if it does.
#[expect(clippy::disallowed_methods, reason = "tests are pointed at devices by the environment")]
pub(crate) fn gpu() -> Option<&'static Gpu> {
    static GPU: OnceLock<Option<Gpu>> = OnceLock::new();
    let find = || {
        if !std::env::var("TITAN_DEVICE").is_ok_and(|name| name.starts_with("cuda")) {
            return None;
        }
        let device = Device::best().expect("the GPU that was asked for");
        assert_eq!(device.kind(), DeviceKind::Cuda);
        let context = CudaContext::new(device.ordinal() as usize).expect("a context");
        Some(Gpu { device, stream: context.new_stream().expect("a stream") })
    };
    GPU.get_or_init(find).as_ref()
}

impl Gpu {
    /// Runs a kernel.
    pub(crate) fn run(&self, kernel: &Verified, tensors: &Tensors, scalar: i32) -> Result<Outcome, String> {
        let text: &'static str = Box::leak(titan_core::text::print(kernel).into_boxed_str());
        let kernel_ref: &'static KernelRef =
            Box::leak(Box::new(KernelRef::new("random", text.as_bytes(), "random.tir", [1, 8])));
        let driver = |e: DriverError| e.to_string();
        let copy = |t: &Option<Host>| t.as_ref().map(|t| self.stream.clone_htod(&t.bytes)).transpose();
        let slices: Vec<Option<CudaSlice<u8>>> = tensors.iter().map(copy).collect::<Result<_, _>>().map_err(driver)?;
        let mut typed = Vec::new();
        for (tensor, slice) in tensors.iter().zip(&slices) {
            let made = tensor.as_ref().zip(slice.as_ref()).map(|(t, s)| self.typed(t, s).map_err(|e| e.to_string()));
            typed.push(made.transpose()?);
        }
        let writes = |i: usize| matches!(kernel.sig.params[i].kind, ParamKind::Tensor { access: Access::Mut, .. });
        let args = typed.iter_mut().enumerate().map(|(i, t)| match t {
            Some(t) => t.argument(writes(i)),
            None => LaunchArg::from(scalar),
        });
        match Launch::new(kernel_ref, args.collect()).sync() {
            Ok(()) => {}
            Err(Error::Unsupported { reason, .. }) => return Ok(Outcome::Refused(reason)),
            Err(error) => return Err(error.to_string()),
        }
        drop(typed);
        let mut after = tensors.clone();
        for (tensor, slice) in after.iter_mut().zip(&slices) {
            if let (Some(tensor), Some(slice)) = (tensor, slice) {
                tensor.bytes = self.stream.clone_dtoh(slice).map_err(driver)?;
            }
        }
        Ok(Outcome::Done(after))
    }

    fn typed(&self, host: &Host, slice: &CudaSlice<u8>) -> titan::Result<Box<dyn Argument>> {
        match host.elem {
            Kind::F64 => self.ranked::<f64>(host, slice),
            Kind::F32 => self.ranked::<f32>(host, slice),
            Kind::Tf32 => self.ranked::<tf32>(host, slice),
            Kind::F16 => self.ranked::<f16>(host, slice),
            Kind::Bf16 => self.ranked::<bf16>(host, slice),
            Kind::E4m3 => self.ranked::<e4m3>(host, slice),
            Kind::E5m2 => self.ranked::<e5m2>(host, slice),
            Kind::I64 => self.ranked::<i64>(host, slice),
            Kind::I32 => self.ranked::<i32>(host, slice),
            Kind::I16 => self.ranked::<i16>(host, slice),
            Kind::I8 => self.ranked::<i8>(host, slice),
            Kind::U64 => self.ranked::<u64>(host, slice),
            Kind::U32 => self.ranked::<u32>(host, slice),
            Kind::U16 => self.ranked::<u16>(host, slice),
            Kind::U8 => self.ranked::<u8>(host, slice),
            Kind::Bool => self.ranked::<bool>(host, slice),
            Kind::I4 | Kind::U4 => panic!("two of them share a byte"),
        }
    }

    fn ranked<T: Elem + 'static>(&self, host: &Host, slice: &CudaSlice<u8>) -> titan::Result<Box<dyn Argument>> {
        Ok(match host.extents.len() {
            1 => Box::new(self.tensor::<T, 1>(host, slice)?),
            2 => Box::new(self.tensor::<T, 2>(host, slice)?),
            3 => Box::new(self.tensor::<T, 3>(host, slice)?),
            rank => panic!("no test has tensors of rank {rank}"),
        })
    }

    #[expect(unsafe_code, reason = "layouts of any kind are made by pointers")]
    fn tensor<T: Elem, const R: usize>(&self, host: &Host, slice: &CudaSlice<u8>) -> titan::Result<Tensor<T, R>> {
        let (pointer, _use) = slice.device_ptr(&self.stream);
        let raw = RawTensor {
            pointer: pointer + host.skip as u64,
            shape: std::array::from_fn(|i| host.extents[i] as usize),
            strides: Some(std::array::from_fn(|i| host.strides[i] as usize)),
            stream: Some(self.stream.cu_stream().cast()),
        };
        // SAFETY: the slice outlives the launch, which is waited for, and it is not used otherwise meanwhile.
        unsafe { tensor_from_raw(&self.device, raw) }
    }
}

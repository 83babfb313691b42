//! Operators made of closures: candle's traits, on the CPU and on CUDA devices.

use crate::{error, host};
#[cfg(feature = "cuda")]
use candle_core::CudaStorage;
use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, CustomOp3, DType, InplaceOp1, InplaceOp2, InplaceOp3, Layout, Result, Shape,
    Tensor,
};
use titan::{Device, DynView, DynViewMut, Launch};

/// Where the launches of an operator run: on the CPU, which waits for each, or on candle's stream.
#[derive(Debug)]
pub struct On {
    device: Device,
    /// `None` on the CPU.
    stream: Option<titan::Stream>,
}

impl On {
    fn cpu() -> On {
        On { device: Device::cpu(), stream: None }
    }

    /// Runs a launch: on the CPU to its end, on a GPU in the order of candle's stream.
    ///
    /// # Errors
    /// If the launch is not valid. On a GPU, [`sync`](crate::sync) reports a failure of its kernel.
    pub fn run(&self, launch: Launch<'_>) -> titan::Result<()> {
        match &self.stream {
            None => launch.sync(),
            Some(stream) => launch.launch(stream),
        }
    }

    /// The device, for tensors between two launches.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// Applies an operator of one to three inputs: `body` gets them as views, and the new output, whose elements are zero, and runs launches.
///
/// # Errors
/// If the inputs are on different devices, or neither on the CPU nor, with the feature `cuda`, on a CUDA device; the error of `body`.
pub fn apply<const N: usize>(
    name: &'static str,
    inputs: [&Tensor; N],
    (shape, dtype): (impl Into<Shape>, DType),
    body: impl Fn(&On, [DynView<'_>; N], DynViewMut<'_>) -> titan::Result<()>,
) -> Result<Tensor> {
    const { assert!(N >= 1 && N <= 3, "operators of candle have one to three inputs") };
    let operator = Operator { name, shape: shape.into(), dtype, body };
    match inputs.as_slice() {
        [x] => x.apply_op1_no_bwd(&operator),
        [x, y] => x.apply_op2_no_bwd(y, &operator),
        [x, y, z] => x.apply_op3_no_bwd(y, z, &operator),
        // The assertion above.
        _ => candle_core::bail!("{name}: an operator has one to three inputs, not {N}"),
    }
}

struct Operator<const N: usize, F> {
    name: &'static str,
    shape: Shape,
    dtype: DType,
    body: F,
}

/// As many views as the closure takes.
fn array<V, const N: usize>(views: Vec<V>) -> Result<[V; N]> {
    let found = views.len();
    views.try_into().map_err(|_| candle_core::Error::Msg(format!("{found} operands for an operator of {N}")).bt())
}

impl<const N: usize, F: Fn(&On, [DynView<'_>; N], DynViewMut<'_>) -> titan::Result<()>> Operator<N, F> {
    fn on_cpu(&self, inputs: &[(&CpuStorage, &Layout)]) -> Result<(CpuStorage, Shape)> {
        let mut out = host::zeros(self.shape.elem_count(), self.dtype)?;
        let layout = Layout::contiguous(&self.shape);
        titan::cpu::scope(|host| {
            let views = inputs.iter().map(|(storage, layout)| host::lend(host, storage, layout));
            let views = array(views.collect::<Result<Vec<_>>>()?)?;
            let out = host::lend_mut(host, &mut out, &layout)?;
            (self.body)(&On::cpu(), views, out).map_err(error)
        })?;
        Ok((out, self.shape.clone()))
    }

    #[cfg(feature = "cuda")]
    fn on_cuda(&self, inputs: &[(&CudaStorage, &Layout)]) -> Result<(CudaStorage, Shape)> {
        let Some((first, _)) = inputs.first() else { candle_core::bail!("{}: no inputs", self.name) };
        let (device, stream) = (crate::cuda::device(&first.device)?, crate::cuda::stream(&first.device)?);
        let mut out = crate::cuda::zeros(&first.device, self.shape.elem_count(), self.dtype)?;
        let layout = Layout::contiguous(&self.shape);
        let views = inputs.iter().map(|(storage, layout)| crate::cuda::lend(storage, layout));
        let views = array(views.collect::<Result<Vec<_>>>()?)?;
        let on = On { device, stream: Some(stream) };
        (self.body)(&on, views, crate::cuda::lend_mut(&mut out, &layout)?).map_err(error)?;
        Ok((out, self.shape.clone()))
    }
}

/// Implements one of candle's traits for operators: the trait, and the names of storages and layouts.
macro_rules! custom_op {
    ($op:ident: $($storage:ident $layout:ident),*) => {
        impl<const N: usize, F: Fn(&On, [DynView<'_>; N], DynViewMut<'_>) -> titan::Result<()>> $op for Operator<N, F> {
            fn name(&self) -> &'static str {
                self.name
            }

            fn cpu_fwd(&self, $($storage: &CpuStorage, $layout: &Layout),*) -> Result<(CpuStorage, Shape)> {
                self.on_cpu(&[$(($storage, $layout)),*])
            }

            #[cfg(feature = "cuda")]
            fn cuda_fwd(&self, $($storage: &CudaStorage, $layout: &Layout),*) -> Result<(CudaStorage, Shape)> {
                self.on_cuda(&[$(($storage, $layout)),*])
            }
        }
    };
}
custom_op!(CustomOp1: a la);
custom_op!(CustomOp2: a la, b lb);
custom_op!(CustomOp3: a la, b lb, c lc);

/// Applies an operator that writes a tensor in place, with up to two inputs: `body` gets the tensor and the inputs as views.
///
/// # Errors
/// As of [`apply`]; if an input shares the storage of the tensor, or the tensor repeats elements.
pub fn apply_inplace<const N: usize>(
    name: &'static str,
    target: &Tensor,
    inputs: [&Tensor; N],
    body: impl Fn(&On, DynViewMut<'_>, [DynView<'_>; N]) -> titan::Result<()>,
) -> Result<()> {
    const { assert!(N <= 2, "operators in place have up to two inputs") };
    let operator = InPlace { name, body };
    match inputs.as_slice() {
        [] => target.inplace_op1(&operator),
        [x] => target.inplace_op2(x, &operator),
        [x, y] => target.inplace_op3(x, y, &operator),
        // The assertion above.
        _ => candle_core::bail!("{name}: an operator in place has up to two inputs, not {N}"),
    }
}

struct InPlace<const N: usize, F> {
    name: &'static str,
    body: F,
}

impl<const N: usize, F: Fn(&On, DynViewMut<'_>, [DynView<'_>; N]) -> titan::Result<()>> InPlace<N, F> {
    fn on_cpu(&self, (target, at): (&mut CpuStorage, &Layout), inputs: &[(&CpuStorage, &Layout)]) -> Result<()> {
        titan::cpu::scope(|host| {
            let views = inputs.iter().map(|(storage, layout)| host::lend(host, storage, layout));
            let views = array(views.collect::<Result<Vec<_>>>()?)?;
            (self.body)(&On::cpu(), host::lend_mut(host, target, at)?, views).map_err(error)
        })
    }

    #[cfg(feature = "cuda")]
    fn on_cuda(&self, (target, at): (&mut CudaStorage, &Layout), inputs: &[(&CudaStorage, &Layout)]) -> Result<()> {
        let on =
            On { device: crate::cuda::device(&target.device)?, stream: Some(crate::cuda::stream(&target.device)?) };
        let views = inputs.iter().map(|(storage, layout)| crate::cuda::lend(storage, layout));
        let views = array(views.collect::<Result<Vec<_>>>()?)?;
        (self.body)(&on, crate::cuda::lend_mut(target, at)?, views).map_err(error)
    }
}

/// Implements one of candle's traits for operators in place: the trait, and the names of storages and layouts of the inputs.
macro_rules! inplace_op {
    ($op:ident: $($storage:ident $layout:ident),*) => {
        impl<const N: usize, F: Fn(&On, DynViewMut<'_>, [DynView<'_>; N]) -> titan::Result<()>> $op for InPlace<N, F> {
            fn name(&self) -> &'static str {
                self.name
            }

            fn cpu_fwd(
                &self,
                target: &mut CpuStorage,
                at: &Layout,
                $($storage: &CpuStorage, $layout: &Layout),*
            ) -> Result<()> {
                self.on_cpu((target, at), &[$(($storage, $layout)),*])
            }

            #[cfg(feature = "cuda")]
            fn cuda_fwd(
                &self,
                target: &mut CudaStorage,
                at: &Layout,
                $($storage: &CudaStorage, $layout: &Layout),*
            ) -> Result<()> {
                self.on_cuda((target, at), &[$(($storage, $layout)),*])
            }
        }
    };
}
inplace_op!(InplaceOp1:);
inplace_op!(InplaceOp2: a la);
inplace_op!(InplaceOp3: a la, b lb);

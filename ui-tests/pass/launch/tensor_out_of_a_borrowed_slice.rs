//! The twin of `ui/launch/tensor_out_of_a_borrowed_slice.rs`: a copy has memory of its own.

use titan::cuda::cudarc::driver::CudaSlice;
use titan::{Device, Result, Tensor};

fn copy(dev: &Device, slice: &mut CudaSlice<f32>) -> Result<Tensor<f32, 1>> {
    let y = titan::cuda::borrow_mut(dev, slice, [4])?;
    y.copy()
}

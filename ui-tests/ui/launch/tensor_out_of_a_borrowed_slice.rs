//! A tensor moved out of what borrows a slice of cudarc's would outlive the slice.

use titan::cuda::cudarc::driver::CudaSlice;
use titan::{Device, Result, Tensor};

fn steal(dev: &Device, slice: &mut CudaSlice<f32>) -> Result<Tensor<f32, 1>> {
    let y = titan::cuda::borrow_mut(dev, slice, [4])?;
    Ok(std::mem::replace(&mut *y, dev.zeros([4])?))
}

fn main() {
    let _ = steal;
}

//! The twin of `ui/launch/own_device_pointer.rs`: parts of slices are cudarc's own types.

use titan::cuda::cudarc::driver::CudaView;

fn read(dev: &titan::Device, part: &CudaView<'_, f32>) -> titan::Result<Vec<f32>> {
    titan::cuda::borrow(dev, part, [4])?.to_vec()
}

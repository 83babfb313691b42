//! A type of one's own with cudarc's traits could answer with any address.

use std::sync::Arc;
use titan::cuda::cudarc::driver::{CudaStream, DevicePtr, DeviceSlice, SyncOnDrop, sys::CUdeviceptr};

struct Mine(Arc<CudaStream>);

impl DeviceSlice<f32> for Mine {
    fn len(&self) -> usize { 4 }
    fn stream(&self) -> &Arc<CudaStream> { &self.0 }
}

impl DevicePtr<f32> for Mine {
    fn device_ptr<'a>(&'a self, _: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        (64, SyncOnDrop::Sync(None))
    }
}

fn main() {
    let _ = |dev: &titan::Device, mine: &Mine| titan::cuda::borrow(dev, mine, [4]);
}

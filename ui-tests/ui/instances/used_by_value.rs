//! What generic code and `dispatch!` do with a kernel that has an error is no error as well.
use titan::dispatch;
use titan::prelude::*;

#[titan::kernel(instances(T in [f32, e8m0], BN in [64]))]
fn copy<T: Float, const BN: i32>(x: &Tensor<T, 1>, z: Option<&Tensor<T, 1>>, y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<BN>([p]);
    y.store_tile([p], if let Some(z) = z { v + z.load_tile::<BN>([p]) } else { v });
}

fn host<T: Float>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) -> titan::Result<()> {
    const { assert!(copy::declares::<T, 64>() || copy::instances().is_empty()) };
    copy::generic::<T, 64>(x, None, y).sync()?;
    copy::generic_reference::<T, 64>(x, None, y)?;
    dispatch!(copy::<_, 64>(x, Some(x), y)).sync()?;
    dispatch!(copy[copy::instances()[0]](x, None, y)).sync()
}

fn main() {}

//! A tensor moved out of an exclusive view would outlive the borrow.

use titan::Device;

fn main() -> titan::Result<()> {
    let dev = Device::cpu();
    let mut y = dev.zeros::<f32, 1>([8])?;
    let mut other = dev.zeros::<f32, 1>([4])?;
    let head = y.slice_mut::<0>(0..4)?;
    std::mem::swap(&mut *head, &mut other);
    Ok(())
}

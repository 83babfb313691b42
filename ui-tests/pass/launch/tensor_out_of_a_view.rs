//! The twin of `ui/launch/tensor_out_of_a_view.rs`: views change places as a whole.

use titan::Device;

fn run() -> titan::Result<()> {
    let dev = Device::cpu();
    let mut y = dev.zeros::<f32, 1>([8])?;
    let (mut head, mut tail) = y.split_at_mut::<0>(4)?;
    std::mem::swap(&mut head, &mut tail);
    head.write(&[1.0; 4])?;
    tail.slice_mut::<0>(1..2)?.write(&[2.0])?;
    Ok(())
}

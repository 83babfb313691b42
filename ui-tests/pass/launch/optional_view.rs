//! The twin of `ui/launch/optional_view.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(by: Option<&Tensor<f32, 1>>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    if let Some(by) = by {
        y.set([p], by.get([p]));
    }
}

pub(crate) fn run() -> titan::Result<()> {
    let dev = Device::cpu();
    let (x, mut y) = (dev.zeros::<f32, 1>([8])?, dev.zeros::<f32, 1>([4])?);
    k(Some(&*x.slice::<0>(0..4)?), &mut y).grid([4]).sync()
}

//! What emulated devices cost: the same launches on the CPU device and on each emulator.
//!
//! Method: a round runs each device once, one after the other, and a launch waits for its result. Printed are the medians of the times of a launch, and
//! of their ratios to the CPU device of the same round. The devices' results are compared before anything is timed.
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

use std::time::Instant;
use titan::bench::Bench;
use titan::prelude::*;

#[titan::kernel]
fn scale(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<1024>([p]) * 2.0 + 1.0);
}

#[titan::kernel]
fn rms_norm(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let at = [program_id(0), 0];
    let v = x.load_tile::<1, 1024>(at);
    let rstd = ((v * v).reduce_sum::<1>() / N as f32 + 1e-5).rsqrt();
    y.store_tile(at, v * rstd.col());
}

#[titan::kernel(instances(T in [f16, f32]))]
fn product<T: Float>(
    #[shape(M, K)] a: &Tensor<T, 2>,
    #[shape(N, K)] b: &Tensor<T, 2>,
    #[shape(M, N)] c: &mut Tensor<f32, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, 64, 64>::zeros();
    for k in pipelined(0..cdiv(K, 32)) {
        acc = mma(a.load_tile::<64, 32>([m, k]), b.load_tile::<64, 32>([n, k]).t(), acc);
    }
    c.store_tile([m, n], acc);
}

const DEVICES: [&str; 4] = ["cpu", "emulator:sm_80", "emulator:sm_90a", "emulator:gfx942"];
const ROUNDS: usize = 9;
/// The extents of the product.
const SIDE: usize = 256;

/// A launch on one device, and what it has computed.
struct Case {
    launch: Box<dyn FnMut() -> titan::Result<()>>,
    result: Box<dyn Fn() -> titan::Result<Vec<f32>>>,
}

/// A case for a kernel that takes one output.
macro_rules! case {
    ($dev:expr, $extents:expr, |$y:ident| $launch:expr) => {{
        let $y = std::rc::Rc::new(std::cell::RefCell::new($dev.zeros::<f32, _>($extents)?));
        let read = std::rc::Rc::clone(&$y);
        Case {
            launch: Box::new(move || {
                let mut output = $y.borrow_mut();
                let $y = &mut *output;
                $launch
            }),
            result: Box::new(move || read.borrow().to_vec()),
        }
    }};
}

fn whole(i: usize) -> f32 {
    ((i * 7919) % 7) as f32 - 3.0
}

fn cases(dev: &Device) -> titan::Result<[(&'static str, Case); 4]> {
    let x = dev.from_fn([1 << 16], |[i]| whole(i))?;
    let scaled = case!(dev, [1 << 16], |y| scale(&x, y).sync());
    let rows = dev.from_fn([64, 1024], |[i, j]| whole(i * 1024 + j))?;
    let normed = case!(dev, [64, 1024], |y| rms_norm(&rows, y).sync());
    let [a, b] = [1, 2].map(|by| move |[i, j]: [usize; 2]| f16::from_f32(whole(by * i * SIDE + j)));
    let (a, b) = (dev.from_fn([SIDE, SIDE], a)?, dev.from_fn([SIDE, SIDE], b)?);
    let half = case!(dev, [SIDE, SIDE], |y| product::<f16>(&a, &b, y).sync());
    let [a, b] = [1, 2].map(|by| move |[i, j]: [usize; 2]| whole(by * i * SIDE + j));
    let (a, b) = (dev.from_fn([SIDE, SIDE], a)?, dev.from_fn([SIDE, SIDE], b)?);
    let single = case!(dev, [SIDE, SIDE], |y| product::<f32>(&a, &b, y).sync());
    Ok([
        ("65,536 elements, f32", scaled),
        ("RMS norm of 64 rows of 1,024, f32", normed),
        ("product of 256³, f16", half),
        ("product of 256³, f32", single),
    ])
}

fn main() -> titan::Result<()> {
    let devices = DEVICES.map(Device::named);
    let mut on: Vec<_> = devices.into_iter().map(|dev| cases(&dev?)).collect::<titan::Result<Vec<_>>>()?;
    println!("{:36} {:18} {:>10} {:>12}", "", "", "ms", "cpu = 1");
    for case in 0..4 {
        for device in &mut on {
            (device[case].1.launch)()?;
        }
        let results = on.iter().map(|device| (device[case].1.result)()).collect::<titan::Result<Vec<_>>>()?;
        for result in &results[1..] {
            let close = result.iter().zip(&results[0]).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0));
            assert!(close, "{}: the devices' results differ", on[0][case].0);
        }
        let compared = Bench::on(&Device::cpu()).rounds(ROUNDS).sample(&DEVICES, |device| {
            let start = Instant::now();
            (on[device][case].1.launch)()?;
            Ok(start.elapsed())
        })?;
        for (nth, way) in compared.cases.iter().enumerate() {
            let name = if nth == 0 { on[0][case].0 } else { "" };
            println!("{name:36} {:18} {:10.3} {:12.0}", way.name, way.seconds.median * 1e3, way.ratio.median);
        }
    }
    Ok(())
}

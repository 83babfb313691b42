//! What it costs to name an instance by values: launches from generic code and by `dispatch!` beside launches of the same instance that is
//! written out.
//!
//! Method: a round times a number of launches of each way, one way after the other, so that all meet the same clock and other processes.
//! The kernel is small, so that little else is measured. Printed are the medians of the times of one launch, of their differences to the
//! direct launch of the same round, and of their ratios, with quartiles of the differences.
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

#[path = "cases/quantile.rs"]
mod quantile;

use quantile::quantile;
use std::hint::black_box;
use std::time::Instant;
use titan::prelude::*;
use titan::{DynTensor, dispatch};

/// Twenty-four instances; the last one is found last.
#[titan::kernel(instances(T in [f64, f16, f32], BN in [8, 16, 32, 64], NEGATE in [false, true]))]
fn copy<T: Float, const BN: i32, const NEGATE: bool>(#[shape(N)] x: &Tensor<T, 1>, #[shape(N)] y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<BN>([p]);
    y.store_tile([p], if NEGATE { -v } else { v });
}

const ROUNDS: usize = 400;
const LAUNCHES: u32 = 500;

/// Nanoseconds of one launch.
fn nanoseconds(launch: &mut dyn FnMut() -> titan::Result<()>) -> titan::Result<f64> {
    let start = Instant::now();
    for _ in 0..LAUNCHES {
        launch()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(LAUNCHES))
}

fn generic<T: Float, const BN: i32>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) -> titan::Result<()> {
    copy::generic::<T, BN, true>(x, y).sync()
}

fn main() -> titan::Result<()> {
    const WAYS: [&str; 6] = [
        "written out",
        "generic code",
        "dispatch!, typed",
        "dispatch!, `_`",
        "dispatch!, run-time type",
        "dispatch!, instance",
    ];
    let dev = Device::best()?;
    let (x, mut y) = (dev.full([64], 1.5f32)?, dev.zeros::<f32, 1>([64])?);
    let (dyn_x, mut dyn_y) = (DynTensor::from(x.copy()?), DynTensor::from(y.copy()?));
    let [.., last] = copy::instances() else { return Ok(()) };
    let mut times: [Vec<f64>; 6] = Default::default();
    for round in 0..ROUNDS + ROUNDS / 5 {
        let (elem, width, negate) = (black_box(x.elem()), black_box(64), black_box(true));
        let of_round = [
            nanoseconds(&mut || copy::<f32, 64, true>(&x, &mut y).sync())?,
            nanoseconds(&mut || generic::<f32, 64>(&x, &mut y))?,
            nanoseconds(&mut || dispatch!(copy::<elem, width, negate>(&x, &mut y)).sync())?,
            nanoseconds(&mut || dispatch!(copy::<_, width, negate>(&x, &mut y)).sync())?,
            nanoseconds(&mut || dispatch!(copy::<_, width, negate>(&dyn_x, &mut dyn_y)).sync())?,
            nanoseconds(&mut || dispatch!(copy[last](&x, &mut y)).sync())?,
        ];
        // The first rounds warm up.
        if round >= ROUNDS / 5 {
            times.iter_mut().zip(of_round).for_each(|(way, time)| way.push(time));
        }
    }
    println!("launches of a kernel with {} instances on {dev}, {ROUNDS} rounds of {LAUNCHES}", copy::instances().len());
    println!("{:26} {:>10} {:>12} {:24} {:>7}", "", "ns", "more by ns", "(quartiles)", "ratio");
    let sorted = |mut list: Vec<f64>| {
        list.sort_by(f64::total_cmp);
        list
    };
    for (name, way) in WAYS.iter().zip(&times) {
        let more = sorted(way.iter().zip(&times[0]).map(|(t, direct)| t - direct).collect());
        let ratios = sorted(way.iter().zip(&times[0]).map(|(t, direct)| t / direct).collect());
        let (time, quartiles) = (quantile(&sorted(way.clone()), 0.5), (quantile(&more, 0.25), quantile(&more, 0.75)));
        let quartiles = format!("({:.0} to {:.0})", quartiles.0, quartiles.1);
        println!("{name:26} {time:10.0} {:12.0} {quartiles:24} {:7.3}", quantile(&more, 0.5), quantile(&ratios, 0.5));
    }
    Ok(())
}

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

/// As many instances as a kernel may have. No GPU is needed for the search.
#[titan::kernel(
    instances(
        A in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
        B in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    ),
    targets(cpu),
)]
fn fill<const A: i32, const B: i32>(#[shape(M, N)] y: &mut Tensor<i32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n], Tile::<i32, A, B>::full(A + B));
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

/// Runs ways of launching alternately, and prints the table. The first way is what the others are compared with.
fn table<const N: usize>(
    title: &str,
    mut round: impl FnMut() -> titan::Result<[(&'static str, f64); N]>,
) -> titan::Result<()> {
    let mut times: [(&str, Vec<f64>); N] = std::array::from_fn(|_| ("", Vec::new()));
    for nth in 0..ROUNDS + ROUNDS / 5 {
        let of_round = round()?;
        // The first rounds warm up.
        if nth >= ROUNDS / 5 {
            for (way, (name, time)) in times.iter_mut().zip(of_round) {
                way.0 = name;
                way.1.push(time);
            }
        }
    }
    println!("{title}, {ROUNDS} rounds of {LAUNCHES} launches");
    println!("{:26} {:>10} {:>12} {:24} {:>7}", "", "ns", "more by ns", "(quartiles)", "ratio");
    let sorted = |mut list: Vec<f64>| {
        list.sort_by(f64::total_cmp);
        list
    };
    for (name, way) in &times {
        let more = sorted(way.iter().zip(&times[0].1).map(|(t, direct)| t - direct).collect());
        let ratios = sorted(way.iter().zip(&times[0].1).map(|(t, direct)| t / direct).collect());
        let quartiles = format!("({:.0} to {:.0})", quantile(&more, 0.25), quantile(&more, 0.75));
        let (time, more, ratio) = (quantile(&sorted(way.clone()), 0.5), quantile(&more, 0.5), quantile(&ratios, 0.5));
        println!("{name:26} {time:10.0} {more:12.0} {quartiles:24} {ratio:7.3}");
    }
    Ok(())
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    let (x, mut y) = (dev.full([64], 1.5f32)?, dev.zeros::<f32, 1>([64])?);
    let (dyn_x, mut dyn_y) = (DynTensor::from(x.copy()?), DynTensor::from(y.copy()?));
    let [.., last] = copy::instances() else { return Ok(()) };
    table(&format!("a kernel with {} instances on {dev}", copy::instances().len()), || {
        let (elem, width, negate) = (black_box(x.elem()), black_box(64), black_box(true));
        Ok([
            ("written out", nanoseconds(&mut || copy::<f32, 64, true>(&x, &mut y).sync())?),
            ("generic code", nanoseconds(&mut || generic::<f32, 64>(&x, &mut y))?),
            ("dispatch!", nanoseconds(&mut || dispatch!(copy::<elem, width, negate>(&x, &mut y)).sync())?),
            ("dispatch!, `_`", nanoseconds(&mut || dispatch!(copy::<_, width, negate>(&x, &mut y)).sync())?),
            (
                "dispatch!, run-time type",
                nanoseconds(&mut || dispatch!(copy::<_, width, negate>(&dyn_x, &mut dyn_y)).sync())?,
            ),
            ("dispatch!, instance", nanoseconds(&mut || dispatch!(copy[last](&x, &mut y)).sync())?),
        ])
    })?;
    let dev = Device::cpu();
    let mut y = dev.zeros::<i32, 2>([16, 16])?;
    table(&format!("a kernel with {} instances on {dev}", fill::instances().len()), || {
        let (a, b) = (black_box(16), black_box(16));
        Ok([
            ("written out", nanoseconds(&mut || fill::<16, 16>(&mut y).sync())?),
            ("dispatch!", nanoseconds(&mut || dispatch!(fill::<a, b>(&mut y)).sync())?),
        ])
    })
}

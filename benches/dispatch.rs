//! What it costs to name an instance by values: launches from generic code and by `dispatch!` beside launches of the same instance that is
//! written out.
//!
//! Method: a round times a number of launches of each way, one way after the other, so that all meet the same clock and other processes.
//! The kernel is small, so that little else is measured. Printed are the medians of the times of one launch, of their differences to the
//! direct launch of the same round, and of their ratios, with quartiles of the differences.
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

use std::hint::black_box;
use std::time::Instant;
use titan::bench::Bench;
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

fn generic<T: Float, const BN: i32>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) -> titan::Result<()> {
    copy::generic::<T, BN, true>(x, y).sync()
}

/// Runs ways of launching alternately, and prints the table. The first way is what the others are compared with; `launch` launches once in the
/// way of an index.
fn table(title: &str, names: &[&str], mut launch: impl FnMut(usize) -> titan::Result<()>) -> titan::Result<()> {
    let compared = Bench::on(&Device::cpu()).rounds(ROUNDS).sample(names, |way| {
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            launch(way)?;
        }
        Ok(start.elapsed())
    })?;
    println!("{title}, {ROUNDS} rounds of {LAUNCHES} launches");
    println!("{:26} {:>10} {:>12} {:24} {:>7}", "", "ns", "more by ns", "(quartiles)", "ratio");
    let one = |seconds: f64| seconds * 1e9 / f64::from(LAUNCHES);
    for way in &compared.cases {
        let more = way.more_than(&compared.cases[0]);
        let quartiles = format!("({:.0} to {:.0})", one(more.lower), one(more.upper));
        let (time, more) = (one(way.seconds.median), one(more.median));
        println!("{:26} {time:10.0} {more:12.0} {quartiles:24} {:7.3}", way.name, way.ratio.median);
    }
    Ok(())
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    let (x, mut y) = (dev.full([64], 1.5f32)?, dev.zeros::<f32, 1>([64])?);
    let (dyn_x, mut dyn_y) = (DynTensor::from(x.copy()?), DynTensor::from(y.copy()?));
    let [.., last] = copy::instances() else { return Ok(()) };
    let (elem, width, negate) = (black_box(x.elem()), black_box(64), black_box(true));
    let names = [
        "written out",
        "generic code",
        "dispatch!",
        "dispatch!, `_`",
        "dispatch!, run-time type",
        "dispatch!, instance",
    ];
    table(&format!("a kernel with {} instances on {dev}", copy::instances().len()), &names, |way| match way {
        0 => copy::<f32, 64, true>(&x, &mut y).sync(),
        1 => generic::<f32, 64>(&x, &mut y),
        2 => dispatch!(copy::<elem, width, negate>(&x, &mut y)).sync(),
        3 => dispatch!(copy::<_, width, negate>(&x, &mut y)).sync(),
        4 => dispatch!(copy::<_, width, negate>(&dyn_x, &mut dyn_y)).sync(),
        _ => dispatch!(copy[last](&x, &mut y)).sync(),
    })?;
    let dev = Device::cpu();
    let mut y = dev.zeros::<i32, 2>([16, 16])?;
    let (a, b) = (black_box(16), black_box(16));
    table(
        &format!("a kernel with {} instances on {dev}", fill::instances().len()),
        &["written out", "dispatch!"],
        |way| match way {
            0 => fill::<16, 16>(&mut y).sync(),
            _ => dispatch!(fill::<a, b>(&mut y)).sync(),
        },
    )
}

//! Kernels on an NVIDIA GPU, compared with the vendor's code for the same work: one table of ratios.
//!
//! Method: each side is a batch of launches that ends in one synchronisation, long enough that launching does not matter; the
//! sides run alternately over the same memory, after a warm-up, and each round gives one ratio of wall-clock times, other by
//! kernel, so that above 1 the kernel is faster. Printed are the best time of one launch, its rate, and the median of the ratios
//! with their quartiles. Matrix multiplications are compared with cuBLAS where its library can be opened, and some of them with the same
//! product by roles that are written by hand (`gemm_ws`); attention and products of 8-bit floats with PyTorch where `python3` has it;
//! memory-bound kernels with the driver's own copy of the same number of bytes. Numbers are normally distributed. Every result of a kernel is checked before it is
//! timed.
//!
//! Arguments: `--small` for sizes that are feasible on an emulated driver, in one round; a word selects the cases that contain it.
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

mod attention;
mod cases;
#[path = "../../examples/flash_attention.rs"]
#[expect(dead_code, reason = "an example has a `main`")]
mod flash_attention;
mod fp8;
#[path = "../../examples/fp8_gemm.rs"]
#[expect(dead_code, clippy::duplicate_mod, reason = "an example has a `main`, and each has the part that all share")]
mod fp8_gemm;
mod kernels;
mod torch;
mod vendor;

use cases::{Case, Work};
use std::time::{Duration, Instant};
use titan::bench::{Bench, Clock, Comparison};
use titan::{Device, DeviceKind};

/// How much is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Sizes for an emulator.
    pub(crate) small: bool,
    rounds: usize,
    /// Seconds that a batch should take.
    batch: f64,
}

/// The time of one launch of a batch of `n`.
fn time(side: &mut cases::Side, n: u32) -> titan::Result<Duration> {
    let start = Instant::now();
    (side.run)(n as usize)?;
    Ok(start.elapsed() / n)
}

/// Times of one launch by side and round. The sides synchronize by themselves, and some are on streams of other libraries.
fn measure(dev: &Device, case: &mut Case, plan: Plan) -> titan::Result<Comparison> {
    let mut batches = Vec::new();
    for side in &mut case.sides {
        let once = time(side, 1)?.min(time(side, 1)?).as_secs_f64();
        let n = if plan.small { 1 } else { (plan.batch / once).clamp(1.0, 10_000.0) as u32 };
        time(side, n)?;
        batches.push(n);
    }
    let names: Vec<&str> = case.sides.iter().map(|side| side.name).collect();
    let bench = Bench::on(dev).clock(Clock::Host).rounds(plan.rounds).warm_up(0);
    bench.sample(&names, |side| time(&mut case.sides[side], batches[side]))
}

fn rate(work: Work, seconds: f64) -> String {
    match work {
        Work::Flops(n) => format!("{:9.1} TFLOP/s", n as f64 / seconds / 1e12),
        Work::Bytes(n) => format!("{:9.1} GB/s", n as f64 / seconds / 1e9),
        Work::Launch => format!("{:9.2} us", seconds * 1e6),
    }
}

fn report(case: &Case, compared: &Comparison) {
    for (i, side) in compared.cases.iter().enumerate() {
        let best = side.seconds.least;
        let title = if i == 0 { case.name.as_str() } else { "" };
        let ratio = if i == 0 { String::new() } else { side.ratio.to_string() };
        println!("{title:42} {:14} {:11.2} us {} {ratio}", side.name, best * 1e6, rate(case.work, best));
    }
}

fn main() -> titan::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let small = args.iter().any(|a| a == "--small");
    let filter = args.iter().find(|a| !a.starts_with('-')).cloned().unwrap_or_default();
    let dev = match Device::named("cuda:0") {
        Ok(dev) if dev.kind() == DeviceKind::Cuda => dev,
        Ok(other) => {
            println!("nothing is measured: {other} is no NVIDIA GPU");
            return Ok(());
        }
        Err(error) => {
            println!("nothing is measured: {error}");
            return Ok(());
        }
    };
    let plan = Plan { small, rounds: if small { 1 } else { 15 }, batch: 0.02 };
    let vendor = vendor::Vendor::open(&dev);
    println!("{dev}; {}; {}", vendor.words(), torch::words());
    println!("{:42} {:14} {:>14} {:>17} ratio (quartiles)", "", "", "best", "rate");
    for make in cases::all() {
        let mut case = make(&dev, &vendor, plan)?;
        if case.name.contains(&filter) {
            let compared = measure(&dev, &mut case, plan)?;
            report(&case, &compared);
        }
    }
    Ok(())
}

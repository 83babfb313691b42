//! Launches of `#[titan::kernel]` functions beside hand-written code for the same work: one table of ratios.
//!
//! Method, the one of `titan-cpu/benches/paired.rs` one layer further up: a case and what it is compared with run
//! alternately over the same data, for a fixed number of rounds after a warm-up. Each round gives a ratio of wall-clock
//! times, other by kernel, so that above 1 the kernel is faster; printed are the medians of the times and of the ratios with
//! the ratios' quartiles, and the best times. Alternation exposes both to the same clock, cache and other processes. The others
//! use rayon's global pool, ours as many threads of its own: `taskset -c 0 cargo bench -p benches --bench paired` is one thread each.
//!
//! An argument selects the cases whose names contain it.
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

mod cases;
#[path = "cases/quantile.rs"]
mod quantile;

use cases::{Case, Work};
use quantile::quantile;
use std::time::Instant;

/// Seconds that a call takes.
fn seconds(f: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64()
}

/// The times of one side of a case, and the ratios to our side of the same round.
#[derive(Default)]
struct Side {
    seconds: Vec<f64>,
    ratios: Vec<f64>,
}

/// Runs all sides alternately: ours first, then the others in order.
fn measure(case: &mut Case) -> Vec<Side> {
    let warm_up = case.rounds / 5 + 1;
    let mut sides: Vec<Side> = (0..=case.others.len()).map(|_| Side::default()).collect();
    for round in 0..warm_up + case.rounds {
        let mut times = vec![seconds(&mut case.ours)];
        times.extend(case.others.iter_mut().map(|(_, other)| seconds(other)));
        for (side, time) in sides.iter_mut().zip(&times).filter(|_| round >= warm_up) {
            side.seconds.push(*time);
            side.ratios.push(time / times[0]);
        }
    }
    for side in &mut sides {
        side.seconds.sort_by(f64::total_cmp);
        side.ratios.sort_by(f64::total_cmp);
    }
    sides
}

fn rate(work: Option<Work>, seconds: f64) -> String {
    match work {
        None => String::new(),
        Some(Work::Flops(n)) => format!("{:.1} GFLOP/s", n as f64 / seconds / 1e9),
        Some(Work::Bytes(n)) => format!("{:.1} GB/s", n as f64 / seconds / 1e9),
    }
}

fn report(case: &Case, sides: &[Side]) {
    for (nth, side) in sides.iter().enumerate() {
        let (name, other) = match nth.checked_sub(1) {
            None => (case.name.as_str(), "titan"),
            Some(n) => ("", case.others[n].0),
        };
        let ratio = |part| quantile(&side.ratios, part);
        let ratios = format!("{:6.3} ({:.3} to {:.3})", ratio(0.5), ratio(0.25), ratio(0.75));
        let ratios = if nth == 0 { "" } else { &ratios };
        let (best, median) = (side.seconds[0], quantile(&side.seconds, 0.5));
        let (best_us, median_us, rate) = (best * 1e6, median * 1e6, rate(case.work, best));
        println!("{name:36} {other:18} {best_us:11.2} {median_us:11.2}   {ratios:24} {rate}");
    }
}

fn main() -> titan::Result<()> {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    println!("{} threads, {} rounds or more", rayon::current_num_threads(), cases::ROUNDS);
    println!("{:36} {:18} {:>11} {:>11}   {:24} at best", "", "", "best us", "median us", "ratio (quartiles)");
    for mut case in cases::all()?.into_iter().filter(|c| c.name.contains(&filter)) {
        let sides = measure(&mut case);
        report(&case, &sides);
    }
    Ok(())
}

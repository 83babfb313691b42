//! Launches of `#[titan::kernel]` functions beside hand-written code for the same work: one table of ratios.
//!
//! Method, the one of `titan-cpu/benches/paired.rs` one layer further up, by `titan::bench`: a case and what it is compared with run
//! alternately over the same data, for a fixed number of rounds after a warm-up. Each round gives a ratio of wall-clock
//! times, other by kernel, so that above 1 the kernel is faster; printed are the medians of the times and of the ratios with
//! the ratios' quartiles, and the best times. The others use rayon's global pool, ours as many threads of its own: `taskset -c 0 cargo bench -p benches --bench paired` is one thread each.
//!
//! An argument selects the cases whose names contain it; `--record FILE` adds the results to a file of records (docs/tuning.md).
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

mod cases;

use cases::{Case, Work};
use std::time::Instant;
use titan::Device;
use titan::bench::{Bench, Comparison};
use titan::records::{Record, Records};

/// Runs all sides alternately; ours is what the others are compared with.
fn measure(case: &mut Case) -> titan::Result<Comparison> {
    let names: Vec<&str> = std::iter::once("titan").chain(case.others.iter().map(|(name, _)| *name)).collect();
    Bench::on(&Device::cpu()).rounds(case.rounds).sample(&names, |side| {
        let call = match side.checked_sub(1) {
            None => &mut case.ours,
            Some(n) => &mut case.others[n].1,
        };
        let start = Instant::now();
        call();
        Ok(start.elapsed())
    })
}

fn rate(work: Option<Work>, seconds: f64) -> String {
    match work {
        None => String::new(),
        Some(Work::Flops(n)) => format!("{:.1} GFLOP/s", n as f64 / seconds / 1e9),
        Some(Work::Bytes(n)) => format!("{:.1} GB/s", n as f64 / seconds / 1e9),
    }
}

fn report(case: &Case, compared: &Comparison) {
    for (nth, side) in compared.cases.iter().enumerate() {
        let name = if nth == 0 { case.name.as_str() } else { "" };
        let ratio = if nth == 0 { String::new() } else { side.ratio.to_string() };
        let (best, median) = (side.seconds.least, side.seconds.median);
        let (best_us, median_us, rate) = (best * 1e6, median * 1e6, rate(case.work, best));
        println!("{name:36} {:18} {best_us:11.2} {median_us:11.2}   {ratio:24} {rate}", side.name);
    }
}

fn main() -> titan::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let file = args.iter().position(|a| a == "--record").and_then(|at| args.get(at + 1));
    let mut words = args.iter().filter(|a| !a.starts_with('-') && Some(*a) != file);
    let filter = words.next_back().cloned().unwrap_or_default();
    let mut records = file.map(Records::open).transpose()?;
    println!("{} threads, {} rounds or more", rayon::current_num_threads(), cases::ROUNDS);
    println!("{:36} {:18} {:>11} {:>11}   {:24} at best", "", "", "best us", "median us", "ratio (quartiles)");
    for mut case in cases::all()?.into_iter().filter(|c| c.name.contains(&filter)) {
        let compared = measure(&mut case)?;
        report(&case, &compared);
        if let Some(records) = &mut records {
            records.insert(Record::of(&compared, &Device::cpu(), "benches/paired", &case.name));
        }
    }
    records.as_ref().map_or(Ok(()), Records::save)
}

//! Times of launches as distributions: criterion on the cases of `cases/`, each beside what it is compared with.
//!
//! `cargo bench -p benches --bench distributions`, with a filter as any criterion benchmark. Cases run one after the other here; ratios
//! of two of them are for `paired.rs`, where they alternate.

mod cases;

use criterion::{Criterion, Throughput};
use std::time::Duration;

fn main() -> titan::Result<()> {
    let mut criterion =
        Criterion::default().sample_size(30).measurement_time(Duration::from_secs(3)).configure_from_args();
    for case in cases::all()? {
        let cases::Case { name, work, mut ours, others, .. } = case;
        let mut group = criterion.benchmark_group(name);
        if let Some(work) = work {
            group.throughput(match work {
                cases::Work::Flops(n) => Throughput::Elements(n),
                cases::Work::Bytes(n) => Throughput::Bytes(n),
            });
        }
        group.bench_function("titan", |b| b.iter(&mut ours));
        for (title, mut other) in others {
            group.bench_function(title, |b| b.iter(&mut other));
        }
        group.finish();
    }
    criterion.final_summary();
    Ok(())
}

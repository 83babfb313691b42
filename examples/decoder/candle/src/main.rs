//! Tokens per second of the decoder with TITAN kernels beside those of the same decoder in candle, with the same weights on the same CPU.
//!
//! Both generate the same number of tokens in turn, round after round. A round's ratio compares what ran one after the other, so that
//! other work of the machine concerns both; the median of the ratios is printed with the least and the greatest. Only single tokens are
//! timed, and not prompts. On a busy machine the CPU time of all rounds, prompts included, says more; it is printed on Linux.

mod model;

use candle_core::DType;
use decoder::weights::Source;
use decoder::{Cache, Config, Weights, generate};
use std::error::Error;
use std::time::Duration;
use titan::prelude::*;

/// The tokens of each sequence, and the time of all but the first of them.
type Generated = Result<(Vec<Vec<i32>>, Duration), Box<dyn Error>>;

const ROUNDS: usize = 7;
const STEPS: usize = 17;

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::cpu();
    println!("decoder of {} weights, on {device}", decoder::weights::weights(&Config::SMALL));
    for batch in [1, 8] {
        let token = |row: usize, i: usize| ((row * 131 + i * 37) % Config::SMALL.vocab) as i32;
        let prompts: Vec<Vec<i32>> = (0..batch).map(|row| (0..24).map(|i| token(row, i)).collect()).collect();
        for w4 in [false, true] {
            let model = decoder::Model::<f16>::load(&device, &mut weights(), w4)?;
            let mut cache = Cache::new(&device, &Config::SMALL, 64, 16)?;
            let mut ours = || -> Generated {
                let generated = generate(&model, &mut cache, &prompts, STEPS, |_| Ok(()))?;
                Ok((generated.tokens, generated.steps))
            };
            let ours_name = if w4 { "TITAN w4a16" } else { "TITAN f16" };
            for (dtype, name) in [(DType::F16, "candle f16"), (DType::F32, "candle f32")] {
                let candle = model::Model::load(&mut weights(), dtype)?;
                compare((ours_name, &mut ours), (name, &mut || Ok(candle.generate(&prompts, STEPS)?)))?;
            }
        }
    }
    Ok(())
}

fn weights() -> Weights<'static> {
    Weights::new(Config::SMALL, Source::Seed(1))
}

type Side<'a> = (&'a str, &'a mut dyn FnMut() -> Generated);

fn compare((one, ours): Side<'_>, (other, theirs): Side<'_>) -> Result<(), Box<dyn Error>> {
    // The first time, kernels are made ready and pages of memory are touched.
    let (a, _) = ours()?;
    let (b, _) = theirs()?;
    let equal = a.iter().flatten().zip(b.iter().flatten()).filter(|(a, b)| a == b).count();
    let (mut rates, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
    let mut cpu = [0.0; 2];
    for _ in 0..ROUNDS {
        let start = cpu_seconds();
        let first = ours()?.1.as_secs_f64();
        let middle = cpu_seconds();
        let second = theirs()?.1.as_secs_f64();
        cpu[0] += middle - start;
        cpu[1] += cpu_seconds() - middle;
        let tokens = (a.len() * (STEPS - 1)) as f64;
        rates[0].push(tokens / first);
        rates[1].push(tokens / second);
        ratios.push(second / first);
    }
    rates.iter_mut().chain([&mut ratios]).for_each(|values| values.sort_by(f64::total_cmp));
    let [ours, theirs] = rates.map(|values| values[ROUNDS / 2]);
    let (least, median, most) = (ratios[0], ratios[ROUNDS / 2], ratios[ROUNDS - 1]);
    println!(
        "{} sequences: {one} {ours:.1} tokens/s, {other} {theirs:.1}: {median:.2} times as fast ({least:.2} to {most:.2}); \
         CPU {:.2} s and {:.2} s; {equal} of {} tokens are equal",
        a.len(),
        cpu[0],
        cpu[1],
        a.len() * STEPS
    );
    Ok(())
}

/// The CPU time of this process in seconds, to a hundredth; 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

//! `decoder --steps 100`: generates tokens and prints how fast; `decoder --help` lists the options.

mod options;

use decoder::compare::Comparison;
use decoder::reference::{Format, Reference};
use decoder::weights::{Progress, Source, weights};
use decoder::{Cache, Config, Model, Weights, generate};
use options::Options;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;
use titan::prelude::*;
use titan::safetensors::SafeTensors;

type Failure = Box<dyn std::error::Error>;

/// Positions of a page of the cache.
const PAGE: usize = 16;
/// A logit of the reference that is less than the greatest one by this share of the greatest absolute value may be chosen too.
const BOUND: f64 = 5e-3;

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)).map_err(Into::into).and_then(|options| start(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Finds the weights, and the element type.
fn start(options: &Options) -> Result<(), Failure> {
    if options.help {
        println!("{}", options::HELP);
        return Ok(());
    }
    let file = options.weights.as_ref().map(std::fs::read).transpose()?;
    let file = file.as_deref().map(SafeTensors::parse).transpose()?;
    let config = match &file {
        None if options.tiny => Config::TINY,
        None => Config::SMALL,
        Some(file) => {
            let Options { head_dim, rope_base, positions, .. } = *options;
            Config { head_dim, rope_base, positions, ..Config::SMALL }.of_file(file)?
        }
    };
    let source = || file.clone().map_or(Source::Seed(1), Source::File);
    let weights = || Weights::new(config.clone(), source());
    if options.bf16 { run::<bf16>(options, weights, Format::BF16) } else { run::<f16>(options, weights, Format::F16) }
}

fn run<'a, T: Float>(options: &Options, weights: impl Fn() -> Weights<'a>, format: Format) -> Result<(), Failure> {
    let device = options.device.as_deref().map_or_else(Device::best, Device::named)?;
    let since = Instant::now();
    let model = Model::<T>::load(&device, &mut weights().with_progress(show), options.w4)?;
    eprintln!("loaded {:64}", ' ');
    let config = model.config().clone();
    let bits = if options.w4 { "4 bits in the layers" } else { "16 bits" };
    println!("{} weights of {bits} in {:.1} s, on {device}", self::weights(&config), since.elapsed().as_secs_f64());

    let prompts = if options.prompts.is_empty() { samples(&config) } else { options.prompts.clone() };
    let pages = prompts.iter().map(|prompt| (prompt.len() + options.steps).div_ceil(PAGE)).sum::<usize>();
    let mut cache = Cache::new(&device, &config, u16::try_from(pages)?, PAGE)?;
    // The first time, kernels are read and made ready.
    generate(&model, &mut cache, &prompts, 2.min(options.steps), |_| Ok(()))?;
    let mut logits: Vec<Vec<Vec<f32>>> = vec![Vec::new(); prompts.len()];
    let generated = generate(&model, &mut cache, &prompts, options.steps, |output| {
        if options.check {
            let rows = output.logits.to_vec()?;
            logits.iter_mut().zip(rows.chunks(config.vocab)).for_each(|(all, row)| all.push(row.to_vec()));
        }
        Ok(())
    })?;
    for (prompt, tokens) in prompts.iter().zip(&generated.tokens) {
        println!("{} tokens, then {tokens:?}", prompt.len());
    }
    let read: usize = prompts.iter().map(Vec::len).sum();
    let made = prompts.len() * options.steps.saturating_sub(1);
    println!("prompts: {read} tokens, {:.1} tokens/s", read as f64 / generated.prompts.as_secs_f64());
    println!("steps: {made} tokens, {:.1} tokens/s", made as f64 / generated.steps.as_secs_f64());
    if options.check {
        check(&Reference::load(&mut weights(), format, options.w4)?, &prompts, &generated.tokens, &logits)?;
    }
    Ok(())
}

fn check(
    reference: &Reference,
    prompts: &[Vec<i32>],
    tokens: &[Vec<i32>],
    logits: &[Vec<Vec<f32>>],
) -> Result<(), Failure> {
    let greatest = logits.iter().flatten().flatten().fold(0.0f32, |most, v| most.max(v.abs()));
    let mut all = Comparison::default();
    for ((prompt, tokens), logits) in prompts.iter().zip(tokens).zip(logits) {
        all.add(reference, prompt, tokens, logits, BOUND * f64::from(greatest));
    }
    let Comparison { steps, equal, near, error, greatest } = all;
    println!(
        "reference: {equal} of {steps} tokens are equal, {near} nearly; logits up to {greatest:.1} differ by {error:.1e}"
    );
    if all.passes() { Ok(()) } else { Err("other tokens than those of the reference".into()) }
}

/// Prompts of 1, 5, 19 and 40 tokens.
fn samples(config: &Config) -> Vec<Vec<i32>> {
    let token = |i: usize| i32::try_from(i * 37 % config.vocab).unwrap_or_default();
    [1, 5, 19, 40].iter().map(|n| (*n..2 * *n).map(token).collect()).collect()
}

fn show(progress: &Progress<'_>) {
    let Progress { name, done, total } = progress;
    let percent = 100 * done / total.max(&1);
    let mut err = std::io::stderr();
    // A terminal shows one line that changes. The display of progress is no reason to stop.
    let end = if err.is_terminal() { '\r' } else { '\n' };
    let _ = write!(err, "{percent:3} % {name:<60}{end}");
}

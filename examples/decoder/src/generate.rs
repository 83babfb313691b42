//! Generation: a ragged batch of prompts, then a token for each sequence in every step.
//!
//! The token of a step is on the device when the next one begins; that the host reads it too is for its display. Deliberately absent: an
//! end-of-text token, and a scheduler of requests. The batches of a server, in which some sequences begin while others continue, are
//! batches like any other.

use crate::batch::Batch;
use crate::cache::Sequence;
use crate::model::Output;
use crate::{Cache, Error, Model};
use std::time::{Duration, Instant};
use titan::prelude::*;

/// What was generated, and how fast.
#[derive(Debug)]
pub struct Generated {
    /// The tokens of each sequence, without its prompt.
    pub tokens: Vec<Vec<i32>>,
    /// The time of the prompts, with the first token of each sequence.
    pub prompts: Duration,
    /// The time of the other tokens.
    pub steps: Duration,
}

/// Generates `steps` tokens for each prompt; `each` sees the results of every step.
///
/// # Errors
/// If a prompt is empty, has a token that is not in the vocabulary, or is too long with the new tokens; if the cache has too few pages.
pub fn generate<T: Float>(
    model: &Model<T>,
    cache: &mut Cache<T>,
    prompts: &[Vec<i32>],
    steps: usize,
    mut each: impl FnMut(&Output) -> Result<(), Error>,
) -> Result<Generated, Error> {
    let known = 0..i32::try_from(model.config().vocab).unwrap_or(i32::MAX);
    if let Some(token) = prompts.iter().flatten().find(|token| !known.contains(token)) {
        return Err(Error::Request(format!("there is no token {token} among {}", known.end)));
    }
    let sequences: Vec<Sequence> = prompts.iter().map(|_| cache.pages.begin()).collect();
    let result = run(model, cache, prompts, &sequences, steps, &mut each);
    sequences.into_iter().for_each(|sequence| cache.pages.end(sequence));
    result
}

/// Generates tokens for sequences of the cache that have no positions yet.
fn run<T: Float>(
    model: &Model<T>,
    cache: &mut Cache<T>,
    prompts: &[Vec<i32>],
    sequences: &[Sequence],
    steps: usize,
    each: &mut impl FnMut(&Output) -> Result<(), Error>,
) -> Result<Generated, Error> {
    let mut counts: Vec<usize> = prompts.iter().map(Vec::len).collect();
    let mut tokens = model.device().tensor(prompts.concat(), [counts.iter().sum()])?;
    let mut all = vec![Vec::new(); prompts.len()];
    let mut times = [Duration::ZERO; 2];
    for step in 0..steps {
        let since = Instant::now();
        let batch = Batch::new(model.config(), &mut cache.pages, sequences, &counts, tokens)?;
        let output = model.forward(&batch, cache)?;
        let next = output.next.to_vec()?;
        times[step.min(1)] += since.elapsed();
        all.iter_mut().zip(next).for_each(|(tokens, token)| tokens.push(token));
        each(&output)?;
        tokens = output.next;
        counts.fill(1);
    }
    Ok(Generated { tokens: all, prompts: times[0], steps: times[1] })
}

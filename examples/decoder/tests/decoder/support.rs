//! A model and its reference with the same weights, and prompts.

use decoder::batch::Batch;
use decoder::cache::Sequence;
use decoder::compare::Comparison;
use decoder::reference::{Format, Reference};
use decoder::weights::Source;
use decoder::{Cache, Config, Model, Weights, generate};
use titan::prelude::*;

/// Positions of a page.
pub(crate) const PAGE: usize = 16;

/// A model, its cache, and what to compare with.
pub(crate) struct Pair<T: Float> {
    pub(crate) model: Model<T>,
    pub(crate) cache: Cache<T>,
    pub(crate) reference: Reference,
    /// The greatest error of a logit of such a model; tokens whose logits are closer than twice that are equally right.
    pub(crate) error: f64,
}

impl Pair<f16> {
    /// A decoder in f16 with the weights of a seed.
    pub(crate) fn f16(device: &Device, config: &Config, w4: bool) -> Self {
        Self::new(device, config, w4, Format::F16, 0.05)
    }
}

impl<T: Float> Pair<T> {
    pub(crate) fn new(device: &Device, config: &Config, w4: bool, format: Format, error: f64) -> Self {
        let weights = || Weights::new(config.clone(), Source::Seed(1));
        let model = Model::load(device, &mut weights(), w4).unwrap();
        let cache = Cache::new(device, config, 128, PAGE).unwrap();
        Self { model, cache, reference: Reference::load(&mut weights(), format, w4).unwrap(), error }
    }

    /// Generates tokens for all prompts in one ragged batch, and compares each with the reference.
    pub(crate) fn compare(&mut self, prompts: &[Vec<i32>], steps: usize) -> (Vec<Vec<i32>>, Comparison) {
        let vocab = self.model.config().vocab;
        let mut logits = vec![Vec::new(); prompts.len()];
        let free = self.cache.pages.free();
        let generated = generate(&self.model, &mut self.cache, prompts, steps, |output| {
            let rows = output.logits.to_vec()?;
            logits.iter_mut().zip(rows.chunks(vocab)).for_each(|(all, row)| all.push(row.to_vec()));
            Ok(())
        });
        let tokens = generated.unwrap().tokens;
        assert_eq!(self.cache.pages.free(), free, "all pages are free again");
        let mut all = Comparison::default();
        for ((prompt, tokens), logits) in prompts.iter().zip(&tokens).zip(&logits) {
            assert_eq!((tokens.len(), logits.len()), (steps, steps));
            all.add(&self.reference, prompt, tokens, logits, 2.0 * self.error);
        }
        (tokens, all)
    }

    /// One forward pass over new tokens of some sequences; what was computed is added to their logs.
    pub(crate) fn step(&mut self, new: &mut [(&mut Log, &[i32])]) {
        let device = self.model.device().clone();
        let tokens: Vec<i32> = new.iter().flat_map(|(_, tokens)| tokens.iter().copied()).collect();
        let sequences: Vec<Sequence> = new.iter().map(|(log, _)| log.sequence).collect();
        let counts: Vec<usize> = new.iter().map(|(_, tokens)| tokens.len()).collect();
        let tokens = device.tensor(&tokens, [tokens.len()]).unwrap();
        let batch = Batch::new(self.model.config(), &mut self.cache.pages, &sequences, &counts, tokens).unwrap();
        let output = self.model.forward(&batch, &mut self.cache).unwrap();
        let (next, logits) = (output.next.to_vec().unwrap(), output.logits.to_vec().unwrap());
        for (((log, _), next), logits) in new.iter_mut().zip(next).zip(logits.chunks(self.model.config().vocab)) {
            log.tokens.push(next);
            log.logits.push(logits.to_vec());
        }
    }

    /// Compares what a sequence has generated with the reference.
    pub(crate) fn expect(&self, log: &Log, prompt: &[i32]) {
        let mut all = Comparison::default();
        all.add(&self.reference, prompt, &log.tokens, &log.logits, 2.0 * self.error);
        assert!(all.passes() && all.error < self.error, "{all:?}");
    }
}

/// What a sequence of the cache has generated.
pub(crate) struct Log {
    pub(crate) sequence: Sequence,
    pub(crate) tokens: Vec<i32>,
    pub(crate) logits: Vec<Vec<f32>>,
}

impl Log {
    pub(crate) fn new(cache: &mut Cache<impl Float>) -> Self {
        Self { sequence: cache.pages.begin(), tokens: Vec::new(), logits: Vec::new() }
    }

    /// The token with which the next step begins.
    pub(crate) fn last(&self) -> [i32; 1] {
        [*self.tokens.last().unwrap()]
    }
}

/// A prompt of `n` tokens.
pub(crate) fn prompt(n: usize, config: &Config) -> Vec<i32> {
    (0..n).map(|i| ((i * i * 7 + 31 * n + i) % config.vocab) as i32).collect()
}

//! A ragged batch: the new tokens of some sequences, one sequence after the other, and where in the cache they belong.

use crate::cache::{Pages, Sequence};
use crate::{Config, Error};
use titan::prelude::*;

/// The new tokens of some sequences, on a device.
#[derive(Debug)]
pub struct Batch {
    /// Tokens, `[tokens]`.
    pub tokens: Tensor<i32, 1>,
    /// The position of each token in its sequence, `[tokens]`.
    pub positions: Tensor<i32, 1>,
    /// The row of each token's sequence in `table`, `[tokens]`.
    pub sequences: Tensor<i32, 1>,
    /// The first token of each sequence, and the end, `[sequences + 1]`.
    pub offsets: Tensor<i32, 1>,
    /// Positions of each sequence, with those of the new tokens, `[sequences]`.
    pub lengths: Tensor<i32, 1>,
    /// The pages of each sequence, `[sequences, most pages]`.
    pub table: Tensor<i32, 2>,
    /// The most new tokens of a sequence.
    pub longest: i32,
}

impl Batch {
    /// Takes positions in the cache for new tokens: `counts[i]` of sequence `sequences[i]`, all of them in `tokens`, which may be what a
    /// forward pass has computed. If it fails, sequences before the one that failed have grown, and must be ended.
    ///
    /// # Errors
    /// If a sequence has no new token or too many positions, the cache has too few pages, or the counts do not fit `tokens`.
    pub fn new(
        config: &Config,
        pages: &mut Pages,
        sequences: &[Sequence],
        counts: &[usize],
        tokens: Tensor<i32, 1>,
    ) -> Result<Self, Error> {
        if sequences.is_empty() || sequences.len() != counts.len() || counts.iter().sum::<usize>() != tokens.len() {
            return Err(Error::Request(format!("{} tokens are not {counts:?} of the sequences", tokens.len())));
        }
        let (mut positions, mut rows, mut offsets, mut lengths) = (Vec::new(), Vec::new(), vec![0], Vec::new());
        for (row, (sequence, n)) in sequences.iter().zip(counts).enumerate() {
            let length = pages.length(*sequence);
            if *n == 0 || length + n > config.positions {
                let most = config.positions;
                return Err(Error::Request(format!("{n} tokens after {length}: from 1 to {most} in all are possible")));
            }
            pages.extend(*sequence, *n)?;
            positions.extend((length..length + n).map(number));
            rows.extend((0..*n).map(|_| number(row)));
            offsets.push(number(positions.len()));
            lengths.push(number(length + n));
        }
        let width = sequences.iter().map(|s| pages.pages(*s).len()).max().unwrap_or_default();
        let page = |row: usize, i: usize| pages.pages(sequences[row]).get(i).copied().unwrap_or(-1);
        let device = tokens.device();
        Ok(Self {
            positions: device.tensor(&positions, [positions.len()])?,
            sequences: device.tensor(&rows, [rows.len()])?,
            offsets: device.tensor(&offsets, [offsets.len()])?,
            lengths: device.tensor(&lengths, [lengths.len()])?,
            table: device.from_fn([sequences.len(), width], |[row, i]| page(row, i))?,
            longest: number(counts.iter().copied().max().unwrap_or_default()),
            tokens,
        })
    }
}

/// A position or a count, which `Config::positions` bounds.
fn number(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

//! The steps of the forward pass, one function a step, as loops over f64.
//!
//! Each takes and gives whole matrices, so that one kernel can be compared with one function.

use crate::weights::{Embeddings, LayerNorm, Linear, Tensor};

/// A row-major matrix, `[rows, cols]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    cols: usize,
    data: Vec<f64>,
}

impl Matrix {
    /// A matrix of zeros.
    #[must_use]
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { cols, data: vec![0.0; rows * cols] }
    }

    /// A matrix of these elements, row after row.
    #[must_use]
    pub fn of(cols: usize, data: &[f32]) -> Self {
        Self { cols, data: data.iter().copied().map(f64::from).collect() }
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All elements, row after row.
    #[must_use]
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// The rows, top-down, each `[cols]`.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.data.chunks_exact(self.cols)
    }

    /// One row, `[cols]`.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f64] {
        &self.data[row * self.cols..][..self.cols]
    }

    fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.data[row * self.cols..][..self.cols]
    }
}

/// Row `t` is `word[ids[t]] + position[t] + token_type[0]`, `[tokens, hidden]`; the norm is not applied.
///
/// The numbers are those of one sentence and within the tables, as [`crate::Batch::check`] assures.
#[must_use]
pub fn lookup(tables: &Embeddings, ids: &[usize]) -> Matrix {
    let hidden = tables.norm.weight.data.len();
    let mut out = Matrix::zeros(ids.len(), hidden);
    for (t, &id) in ids.iter().enumerate() {
        let (word, position) = (table_row(&tables.word, id), table_row(&tables.position, t));
        let token_type = table_row(&tables.token_type, 0);
        for (i, x) in out.row_mut(t).iter_mut().enumerate() {
            *x = f64::from(word[i]) + f64::from(position[i]) + f64::from(token_type[i]);
        }
    }
    out
}

fn table_row(table: &Tensor, row: usize) -> &[f32] {
    let width = table.shape[1];
    &table.data[row * width..][..width]
}

/// Each row less its mean, over the root of its variance plus `eps`, scaled and shifted: shape kept.
#[must_use]
pub fn layer_norm(norm: &LayerNorm, eps: f64, x: &Matrix) -> Matrix {
    let mut out = x.clone();
    let n = x.cols as f64;
    for row in out.data.chunks_exact_mut(x.cols) {
        let mean = row.iter().sum::<f64>() / n;
        let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
        let scale = 1.0 / (variance + eps).sqrt();
        for (i, v) in row.iter_mut().enumerate() {
            *v = (*v - mean) * scale * f64::from(norm.weight.data[i]) + f64::from(norm.bias.data[i]);
        }
    }
    out
}

/// `x` times the transposed weight, plus the bias: `[tokens, in]` to `[tokens, out]`.
#[must_use]
pub fn linear(map: &Linear, x: &Matrix) -> Matrix {
    let outputs = map.bias.data.len();
    let mut out = Matrix::zeros(x.rows().len(), outputs);
    for (t, input) in x.rows().enumerate() {
        for (o, y) in out.row_mut(t).iter_mut().enumerate() {
            let weight = table_row(&map.weight, o);
            let dot: f64 = weight.iter().zip(input).map(|(w, v)| f64::from(*w) * v).sum();
            *y = dot + f64::from(map.bias.data[o]);
        }
    }
    out
}

/// Self-attention over one sentence, all of `[tokens, hidden]`; head `h` owns its `head_dim` columns.
///
/// `out[t] = sum over s of softmax over s (query[t] . key[s] / sqrt(head_dim)) * value[s]`.
#[must_use]
pub fn attention(heads: usize, query: &Matrix, key: &Matrix, value: &Matrix) -> Matrix {
    let tokens = query.rows().len();
    let head_dim = query.cols / heads;
    let scale = 1.0 / (head_dim as f64).sqrt();
    let mut out = Matrix::zeros(tokens, query.cols);
    for head in 0..heads {
        let columns = head * head_dim..(head + 1) * head_dim;
        for t in 0..tokens {
            let q = &query.row(t)[columns.clone()];
            let score = |s| scale * dot(q, &key.row(s)[columns.clone()]);
            let weights = softmax(&(0..tokens).map(score).collect::<Vec<_>>());
            for (s, weight) in weights.iter().enumerate() {
                let v = &value.row(s)[columns.clone()];
                let sums = &mut out.row_mut(t)[columns.clone()];
                sums.iter_mut().zip(v).for_each(|(sum, v)| *sum += weight * v);
            }
        }
    }
    out
}

/// Exponentials that add up to 1; the greatest score is taken off first.
#[must_use]
pub fn softmax(scores: &[f64]) -> Vec<f64> {
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

/// `v / 2 * (1 + erf(v / sqrt 2))` of every element: the exact form, not the tanh approximation.
#[must_use]
pub fn gelu(mut x: Matrix) -> Matrix {
    for v in &mut x.data {
        *v *= 0.5 * (1.0 + libm::erf(*v * std::f64::consts::FRAC_1_SQRT_2));
    }
    x
}

/// Element-wise sum of two matrices of one shape.
#[must_use]
pub fn add(mut x: Matrix, y: &Matrix) -> Matrix {
    debug_assert_eq!((x.cols, x.data.len()), (y.cols, y.data.len()), "the shapes differ");
    x.data.iter_mut().zip(&y.data).for_each(|(v, w)| *v += w);
    x
}

/// The mean of the rows, `[cols]`: every token counts, `[CLS]` and `[SEP]` too.
#[must_use]
pub fn mean_pool(x: &Matrix) -> Vec<f64> {
    let mut mean = vec![0.0; x.cols];
    for row in x.rows() {
        mean.iter_mut().zip(row).for_each(|(sum, v)| *sum += v);
    }
    mean.iter().map(|sum| sum / x.rows().len() as f64).collect()
}

/// The vector over its Euclidean length, or over 1e-12 if it is shorter than that.
#[must_use]
pub fn l2_normalise(x: &[f64]) -> Vec<f64> {
    let length = dot(x, x).sqrt().max(1e-12);
    x.iter().map(|v| v / length).collect()
}

/// Sum of the products of two vectors of one length.
#[must_use]
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(v, w)| v * w).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(cols: usize, data: &[f64]) -> Matrix {
        Matrix { cols, data: data.to_vec() }
    }

    fn close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() < 1e-12, "{found:?} is not {expected:?}");
        }
    }

    #[test]
    fn gelu_is_the_exact_one() {
        // v * Phi(v), from tables of the normal distribution; the tanh form gives 0.841191... at 1.
        close(gelu(matrix(3, &[0.0, 1.0, -2.0])).data(), &[0.0, 0.841_344_746_068_543, -0.045_500_263_896_358_4]);
    }

    #[test]
    fn softmax_survives_large_scores() {
        close(&softmax(&[1000.0, 1000.0]), &[0.5, 0.5]);
        close(&softmax(&[0.0, 3f64.ln()]), &[0.25, 0.75]);
    }

    #[test]
    fn attention_to_equal_keys_is_the_mean_of_the_values() {
        let query = matrix(4, &[5.0, -3.0, 0.5, 2.0, 1.0, 1.0, 1.0, 1.0]);
        let value = matrix(4, &[1.0, 2.0, 3.0, 4.0, 3.0, 4.0, 5.0, 8.0]);
        let mean = [2.0, 3.0, 4.0, 6.0];
        close(attention(2, &query, &Matrix::zeros(2, 4), &value).data(), &[mean, mean].concat());
    }

    #[test]
    fn each_head_sees_only_its_own_columns() {
        // Head 0 is sure of row 0, head 1 of row 1.
        let key = matrix(2, &[1000.0, 0.0, 0.0, 1000.0]);
        let query = matrix(2, &[1.0, 1.0, 1.0, 1.0]);
        let value = matrix(2, &[1.0, 2.0, 3.0, 4.0]);
        close(attention(2, &query, &key, &value).data(), &[1.0, 4.0, 1.0, 4.0]);
    }

    #[test]
    fn pooling_is_the_mean_and_normalising_gives_length_one() {
        close(&mean_pool(&matrix(2, &[1.0, 2.0, 5.0, 6.0])), &[3.0, 4.0]);
        close(&l2_normalise(&[3.0, 4.0]), &[0.6, 0.8]);
        close(&l2_normalise(&[0.0, 0.0]), &[0.0, 0.0]);
    }
}

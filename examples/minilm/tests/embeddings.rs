//! The oracle agrees with the reference on the published weights, where they are present.

mod reference;
mod skip;

use minilm::{Config, Oracle, Tokenizer, Weights, assets};

#[test]
fn embeddings_agree_with_the_reference() {
    let Some(weights) = skip::unless_present(&assets::WEIGHTS) else { return };
    let Some(vocab) = skip::unless_present(&assets::VOCAB) else { return };
    let batch = Tokenizer::load(&vocab).unwrap().batch(&reference::SENTENCES).unwrap();
    let oracle = Oracle::new(Weights::load(&weights, &Config::MINILM_L6).unwrap());
    let found = oracle.embed_f64(&batch).unwrap();
    for (s, (found, expected)) in found.iter().zip(&reference::FIRST).enumerate() {
        assert_eq!(found.len(), Config::MINILM_L6.hidden);
        close(&found[..16], expected, s);
    }
    for (s, expected) in reference::COSINES.iter().enumerate() {
        let cosines: Vec<f64> = found.iter().map(|other| dot(&found[s], other)).collect();
        close(&cosines, expected, s);
    }
}

fn close(found: &[f64], expected: &[f64], sentence: usize) {
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() < 1e-9, "sentence {sentence}: {found:?} is not {expected:?}");
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(v, w)| v * w).sum()
}

//! The kernels agree with the oracle: on random weights always, on the published ones where they are present.

mod reference;
mod skip;

use minilm::{Batch, Config, Encoder, Error, Oracle, TitanEncoder, Tokenizer, Weights, assets, similarity};
use titan::Device;

/// Every embedding points where the oracle's does, and has length 1.
fn check(encoder: &mut TitanEncoder, oracle: &Oracle, batch: &Batch) -> Result<(), Error> {
    let (found, expected) = (encoder.embed(batch)?, oracle.embed_f64(batch)?);
    assert_eq!(found.len(), expected.len());
    for (s, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found.len(), expected.len());
        let distance = similarity::cosine_distance(found, expected);
        assert!(distance.abs() < 1e-10, "sentence {s}: cosine distance {distance:e}");
        let far = similarity::greatest_difference(found, expected);
        assert!(far < 2e-6, "sentence {s}: an element differs by {far:e}");
    }
    Ok(())
}

/// Ordinary, shortest, longest: none fills a tile.
fn sentences() -> [Vec<i32>; 4] {
    [vec![2, 5, 11, 96, 3], vec![2, 3], (0..32).collect(), vec![7]]
}

/// Widths that are no multiples of anything.
fn ragged() -> Config {
    Config { layers: 1, hidden: 66, heads: 6, intermediate: 131, vocab: 97, ..Config::TINY }
}

#[test]
fn kernels_agree_with_the_oracle_on_random_weights() {
    let batch = Batch::pack(&sentences()).unwrap();
    for (config, seed) in [(Config::TINY, 2024), (ragged(), 7)] {
        let oracle = Oracle::new(Weights::random(&config, seed));
        for device in Device::available() {
            check(&mut TitanEncoder::new(&device, oracle.weights()).unwrap(), &oracle, &batch).unwrap();
        }
        check(&mut TitanEncoder::reference(oracle.weights()).unwrap(), &oracle, &batch).unwrap();
    }
}

#[test]
fn an_encoder_takes_batches_of_any_size_one_after_the_other() {
    let oracle = Oracle::new(Weights::random(&Config::TINY, 3));
    let mut encoder = TitanEncoder::new(&Device::best().unwrap(), oracle.weights()).unwrap();
    for part in [1..2, 0..4, 0..0, 2..4, 0..1] {
        check(&mut encoder, &oracle, &Batch::pack(&sentences()[part]).unwrap()).unwrap();
    }
}

#[test]
fn an_embedding_does_not_depend_on_the_rest_of_its_batch() {
    let weights = Weights::random(&Config::TINY, 4);
    let mut encoder = TitanEncoder::new(&Device::best().unwrap(), &weights).unwrap();
    let together = encoder.embed(&Batch::pack(&sentences()).unwrap()).unwrap();
    for (sentence, expected) in sentences().iter().zip(&together) {
        let alone = encoder.embed(&Batch::pack(&[sentence]).unwrap()).unwrap();
        // Products at the edge of a tensor may sum in another order.
        let error = alone[0].iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(error < 1e-6, "{error}");
    }
}

#[test]
fn tokens_the_model_does_not_know_are_refused() {
    let weights = Weights::random(&Config::TINY, 5);
    let mut encoder = TitanEncoder::new(&Device::best().unwrap(), &weights).unwrap();
    let error = encoder.embed(&Batch::pack(&[[2, 97, 3]]).unwrap()).unwrap_err();
    assert!(matches!(error, Error::TokenRange { id: 97, .. }), "{error}");
}

#[test]
fn a_model_too_wide_for_the_tiles_is_refused() {
    let config = Config { layers: 1, hidden: 390, ..Config::TINY };
    let mut encoder = TitanEncoder::new(&Device::best().unwrap(), &Weights::random(&config, 6)).unwrap();
    let text = encoder.embed(&Batch::pack(&[[2, 3]]).unwrap()).unwrap_err().to_string();
    assert!(text.starts_with("kernel `embed::<4, 384>`: the kernel requires `H <= 384`, but H = 390\n"), "{text}");
}

#[test]
fn the_reference_of_the_kernels_agrees_with_the_oracle_on_the_published_weights() {
    let Some(weights) = skip::unless_present(&assets::WEIGHTS) else { return };
    let Some(vocab) = skip::unless_present(&assets::VOCAB) else { return };
    let batch = Tokenizer::load(&vocab).unwrap().batch(&reference::SENTENCES[..2]).unwrap();
    let oracle = Oracle::new(Weights::load(&weights, &Config::MINILM_L6).unwrap());
    check(&mut TitanEncoder::reference(oracle.weights()).unwrap(), &oracle, &batch).unwrap();
}

#[test]
fn kernels_agree_with_the_oracle_and_the_published_embeddings() {
    let Some(weights) = skip::unless_present(&assets::WEIGHTS) else { return };
    let Some(vocab) = skip::unless_present(&assets::VOCAB) else { return };
    let batch = Tokenizer::load(&vocab).unwrap().batch(&reference::SENTENCES).unwrap();
    let oracle = Oracle::new(Weights::load(&weights, &Config::MINILM_L6).unwrap());
    for device in Device::available() {
        let mut encoder = TitanEncoder::new(&device, oracle.weights()).unwrap();
        check(&mut encoder, &oracle, &batch).unwrap();
        check_published(&encoder.embed(&batch).unwrap());
    }
}

/// The embeddings start as published, and their cosines are those published.
fn check_published(found: &[Vec<f32>]) {
    for (s, (found, expected)) in found.iter().zip(&reference::FIRST).enumerate() {
        let far = similarity::greatest_difference(found, expected);
        assert!(far < 2e-6, "sentence {s}: {found:?} does not start with {expected:?}");
    }
    for (cosines, expected) in similarity::matrix(found).iter().zip(&reference::COSINES) {
        let far = similarity::greatest_difference(cosines, expected);
        assert!(far < 1e-5, "{cosines:?} is not {expected:?}");
    }
}

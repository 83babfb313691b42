//! The oracle agrees with the reference on random weights: no download needed.
//!
//! Expected embeddings: Python 3.11.7 with transformers 5.23.0 and torch 2.15.0. `BertModel` of [`Config::TINY`]'s
//! dimensions (`hidden_act="gelu"`, no dropout, eager attention, no pooler) was given the tensors of
//! `Weights::random(&Config::TINY, 2024)`, made in numpy by the same generator, and run in float64; the mean of
//! `last_hidden_state` over the tokens, over its Euclidean length, was printed with 12 digits.

use minilm::{Batch, Config, Encoder, Oracle, Weights};

/// Token numbers of three sentences: ordinary, shortest, longest.
fn sentences() -> [Vec<i32>; 3] {
    [vec![2, 5, 11, 96, 3], vec![2, 3], (0..32).collect()]
}

#[rustfmt::skip]
const EXPECTED: [[f64; 24]; 3] = [
    [0.261467325788, -0.268617931458, 0.0325122659315, -0.318606368438,
     -0.223126179269, 0.0383544104177, -0.018788907075, 0.139836886336,
     0.0110534792277, -0.184699061296, -0.0303509763952, 0.258664718413,
     -0.212155840754, -0.0181317651265, 0.43640007047, 0.160944113626,
     0.0425276872561, -0.187241318691, 0.416065273709, -0.214023636293,
     -0.233423784685, -0.0390796246084, -0.0824380692595, 0.0583331517518],
    [0.311117754925, -0.441545545286, -0.0446316135961, -0.160306696376,
     -0.0619600347408, -0.12925599707, -0.231424326535, 0.132386682995,
     -0.128822989563, -0.154959348511, -0.278580091457, 0.219847600784,
     0.18234361245, 0.284805359968, 0.18505891611, 0.115194811062,
     0.239941661383, -0.165635914222, 0.348474017585, -0.0120186271706,
     -0.179314553972, -0.101647024968, -0.0496748601117, -0.0946395822778],
    [0.212695719301, -0.310739806167, -0.0186619617578, -0.20813868767,
     0.0129203317565, -0.0633322325276, -0.268962422644, 0.119282550397,
     -0.156918951653, -0.221153593875, -0.297504542549, 0.34509774113,
     0.113067344836, 0.193737875542, 0.333406474777, 0.160020072321,
     0.226261949655, -0.310011328174, 0.184230836556, 0.119393637888,
     -0.0495065530718, -0.154688158967, -0.0823017961759, -0.164058812691],
];

fn oracle() -> Oracle {
    Oracle::new(Weights::random(&Config::TINY, 2024))
}

#[test]
fn embeddings_of_random_weights_agree_with_the_reference() {
    let found = oracle().embed_f64(&Batch::pack(&sentences()).unwrap()).unwrap();
    for (found, expected) in found.iter().zip(&EXPECTED) {
        assert_eq!(found.len(), expected.len());
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() < 1e-10, "{found:?} is not {expected:?}");
        }
    }
}

#[test]
fn an_embedding_does_not_depend_on_the_rest_of_its_batch() {
    let mut oracle = oracle();
    let together = oracle.embed(&Batch::pack(&sentences()).unwrap()).unwrap();
    for (sentence, expected) in sentences().iter().zip(&together) {
        let alone = oracle.embed(&Batch::pack(&[sentence]).unwrap()).unwrap();
        assert_eq!(&alone[0], expected);
    }
}

#[test]
fn an_embedding_depends_on_the_order_of_its_tokens() {
    let found = oracle().embed(&Batch::pack(&[[2, 5, 11, 3], [2, 11, 5, 3]]).unwrap()).unwrap();
    let cosine: f32 = found[0].iter().zip(&found[1]).map(|(x, y)| x * y).sum();
    assert!(cosine < 0.999, "{cosine}");
}

#[test]
fn tokens_the_model_does_not_know_are_refused() {
    let error = oracle().embed(&Batch::pack(&[[2, 97, 3]]).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "token number 97 of sentence 0 is not in 0..97; use the model's own vocabulary");
}

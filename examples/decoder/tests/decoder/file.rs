//! Weights of a safetensors file: the same tokens as with the weights that were written to it.

use crate::support::{PAGE, prompt};
use decoder::weights::Source;
use decoder::{Cache, Config, Error, Model, Weights, generate};
use titan::prelude::*;
use titan::safetensors::SafeTensors;

/// The tensors of a Llama of these sizes: name and shape.
fn names(config: &Config, has_head: bool) -> Vec<(String, Vec<usize>)> {
    let Config { vocab, hidden, heads, kv_heads, head_dim, intermediate, .. } = *config;
    let mut all = vec![("model.embed_tokens".to_owned(), vec![vocab, hidden])];
    for i in 0..config.layers {
        let parts = [
            ("input_layernorm", vec![hidden]),
            ("self_attn.q_proj", vec![heads * head_dim, hidden]),
            ("self_attn.k_proj", vec![kv_heads * head_dim, hidden]),
            ("self_attn.v_proj", vec![kv_heads * head_dim, hidden]),
            ("self_attn.o_proj", vec![hidden, heads * head_dim]),
            ("post_attention_layernorm", vec![hidden]),
            ("mlp.gate_proj", vec![intermediate, hidden]),
            ("mlp.up_proj", vec![intermediate, hidden]),
            ("mlp.down_proj", vec![hidden, intermediate]),
        ];
        all.extend(parts.into_iter().map(|(part, shape)| (format!("model.layers.{i}.{part}"), shape)));
    }
    all.push(("model.norm".to_owned(), vec![hidden]));
    all.extend(has_head.then(|| ("lm_head".to_owned(), vec![vocab, hidden])));
    all.into_iter().map(|(name, shape)| (format!("{name}.weight"), shape)).collect()
}

/// The bytes of a file with these tensors of f32, each filled by `values`.
fn file(tensors: &[(String, Vec<usize>)], mut values: impl FnMut(&str, &[usize]) -> Vec<f32>) -> Vec<u8> {
    let (mut header, mut data) = (Vec::new(), Vec::new());
    for (name, shape) in tensors {
        let first = data.len();
        data.extend(values(name, shape).iter().flat_map(|v| v.to_le_bytes()));
        let end = data.len();
        header.push(format!(r#""{name}":{{"dtype":"F32","shape":{shape:?},"data_offsets":[{first},{end}]}}"#));
    }
    let header = format!("{{{}}}", header.join(","));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend(data);
    file
}

/// The weights that a seed gives a tensor.
fn of_seed(weights: &mut Weights<'_>, name: &str, shape: &[usize]) -> Vec<f32> {
    match (name, shape) {
        ("model.embed_tokens.weight", _) => weights.embedding(),
        ("lm_head.weight", _) => weights.head(),
        (_, [rows, columns]) => {
            weights.matrix(name, [*rows, *columns], if name.contains("q_proj") { 3.0 } else { 1.0 })
        }
        _ => weights.norm(name),
    }
    .unwrap()
}

fn tokens(weights: &mut Weights<'_>, w4: bool) -> Result<Vec<Vec<i32>>, Error> {
    let device = Device::cpu();
    let config = weights.config.clone();
    let model = Model::<f16>::load(&device, weights, w4)?;
    let mut cache = Cache::new(&device, &config, 8, PAGE)?;
    let prompts = [prompt(4, &config), prompt(18, &config)];
    Ok(generate(&model, &mut cache, &prompts, 12, |_| Ok(()))?.tokens)
}

#[test]
fn weights_of_a_file_give_the_tokens_of_the_weights_in_it() {
    let config = Config::TINY;
    let mut weights = Weights::new(config.clone(), Source::Seed(5));
    let bytes = file(&names(&config, true), |name, shape| of_seed(&mut weights, name, shape));
    let parsed = SafeTensors::parse(&bytes).unwrap();
    assert_eq!(Config { vocab: 1, hidden: 1, layers: 9, ..config.clone() }.of_file(&parsed).unwrap(), config);
    for w4 in [false, true] {
        let mut seen = Vec::new();
        let mut last = (0, 0);
        let mut read = Weights::new(config.clone(), Source::File(parsed.clone())).with_progress(|progress| {
            seen.push(progress.name.to_owned());
            last = (progress.done, progress.total);
        });
        let found = tokens(&mut read, w4).unwrap();
        drop(read);
        assert_eq!(found, tokens(&mut Weights::new(config.clone(), Source::Seed(5)), w4).unwrap());
        assert_eq!((seen.len(), last.0), (names(&config, true).len(), last.1));
    }
}

#[test]
fn a_file_without_a_matrix_of_logits_uses_that_of_embeddings() {
    let config = Config::TINY;
    let of_embeddings = |name: &str, shape: &[usize]| {
        let name = if name == "lm_head.weight" { "model.embed_tokens.weight" } else { name };
        of_seed(&mut Weights::new(Config::TINY, Source::Seed(6)), name, shape)
    };
    let [short, long] = [false, true].map(|has_head| file(&names(&config, has_head), of_embeddings));
    let found = [&short, &long].map(|bytes| {
        let source = Source::File(SafeTensors::parse(bytes).unwrap());
        tokens(&mut Weights::new(config.clone(), source), false).unwrap()
    });
    assert_eq!(found[0], found[1]);
}

#[test]
fn files_of_other_shapes_are_refused() {
    let config = Config::TINY;
    let mut tensors = names(&config, true);
    tensors[1].1 = vec![config.hidden + 1];
    let zeros = |_: &str, shape: &[usize]| vec![0.0; shape.iter().product()];
    let bytes = file(&tensors, zeros);
    let parsed = SafeTensors::parse(&bytes).unwrap();
    let error = tokens(&mut Weights::new(config.clone(), Source::File(parsed.clone())), false).unwrap_err();
    assert!(error.to_string().contains("`model.layers.0.input_layernorm.weight` has the shape [97]"), "{error}");
    let error = Config { head_dim: 64, ..config.clone() }.of_file(&parsed).unwrap_err();
    assert!(error.to_string().contains("not heads of 64"), "{error}");

    let bytes = file(&tensors[2..], zeros);
    let error = config.of_file(&SafeTensors::parse(&bytes).unwrap()).unwrap_err();
    assert!(error.to_string().contains("no matrix `model.embed_tokens.weight`"), "{error}");
}

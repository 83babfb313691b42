//! Attention: what it computes, with and without NaN among the keys.

use super::both::Launch;
use super::products::value;
use crate::launch::{Ready, machine};
use crate::machine::Rng;
use crate::tensor::Tensor;
use titan_core::driver::stages;
use titan_core::ir::Elem;
use titan_core::text::parse;
use titan_core::verify::{Verified, verify};

/// Attention of so many queries in a program and elements in a head.
pub(crate) fn attention(elem: Elem, queries: u32, head: u32) -> Verified {
    let text = include_str!("attention.tir")
        .replace("ELEM", &elem.to_string())
        .replace("QUERIES", &queries.to_string())
        .replace("HEAD", &head.to_string());
    let kernel = parse(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}")).remove(0);
    verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// Causal attention of `bf16`, 64 keys at a time.
pub(crate) fn causal_attention(queries: u32, head: u32) -> Verified {
    let text = include_str!("../../../../titan-nv/tests/hopper/kernels/attention.tir").replace("f16", "bf16");
    let numbers = [("QUERIES", queries), ("HEAD", head), ("KEYS", 64)];
    let text = numbers.iter().fold(text, |text, (name, n)| text.replace(name, &n.to_string()));
    let kernel = parse(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}")).remove(0);
    verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// A tensor of one head of one batch with multiples of 1/8 between −1 and 1.
fn numbers(rng: &mut Rng, elem: Elem, rows: u32, head: u32) -> Tensor {
    let bits = |x: f64| match elem {
        Elem::F16 => titan_core::num::f16_from_f64(x),
        _ => titan_core::num::bf16_from_f64(x),
    };
    let bytes = (0..rows * head).flat_map(|_| bits(f64::from(rng.below(17)) / 8.0 - 1.0).to_le_bytes()).collect();
    Tensor { elem, extents: vec![1, 1, rows, head], strides: vec![rows * head, rows * head, head, 1], bytes, skip: 0 }
}

fn at(tensor: &Tensor, row: u32, column: u32) -> f64 {
    let flat =
        Tensor { extents: tensor.extents[2..].to_vec(), strides: tensor.strides[2..].to_vec(), ..tensor.clone() };
    value(&flat, [row.into(), column.into()])
}

#[test]
fn attention_is_right() {
    let (queries, head, n, keys, scale) = (64, 64, 70, 150, 0.25f32);
    for (elem, unit) in [(Elem::F16, 2f64.powi(-10)), (Elem::Bf16, 2f64.powi(-7))] {
        let kernel = attention(elem, queries, head);
        let stages = stages(&kernel, machine(), true, None).unwrap_or_else(|e| panic!("{elem}: {e}"));
        let ready = Ready::new(&stages.lanes).unwrap_or_else(|e| panic!("{elem}: {e}"));
        for order in 0..3 {
            let mut rng = Rng::new(order as u64);
            let [q, mut k, v] = [n, keys, keys].map(|rows| numbers(&mut rng, elem, rows, head));
            // A NaN in one key makes all scores of the key, and so all results, NaN. Their sums do that alone: guards.rs has results that show what a
            // conversion makes of a NaN.
            let with_nan = order == 1;
            if with_nan {
                let byte = ((keys - 20) * head * 2) as usize;
                k.bytes[byte..byte + 2].copy_from_slice(&[0xff, 0xff]);
            }
            let out = Tensor { bytes: vec![0; q.bytes.len()], ..q.clone() };
            let tensors = [q, k, v, out].map(Some);
            let launch =
                Launch { grid: [n.div_ceil(queries), 1, 1], tensors: &tensors, scalar: &|_| scale.to_bits().into() };
            let found = launch.emulated(&stages.lanes, &ready, order).unwrap_or_else(|e| panic!("{elem}: {e}"));
            let [Some(q), Some(k), Some(v), Some(out)] = &tensors else { panic!("four tensors") };
            let result = Tensor { bytes: found[3].clone(), ..out.clone() };
            for row in 0..n {
                let score = |key: u32| (0..head).map(|i| at(q, row, i) * at(k, key, i)).sum::<f64>() * f64::from(scale);
                let weights: Vec<f64> = (0..keys).map(|key| score(key).exp2()).collect();
                let total: f64 = weights.iter().sum();
                for column in 0..head {
                    let wanted: f64 =
                        (0..keys).map(|key| weights[key as usize] * at(v, key, column)).sum::<f64>() / total;
                    let found = at(&result, row, column);
                    let right = if with_nan { found.is_nan() } else { (found - wanted).abs() <= 2.0 * unit };
                    assert!(right, "{elem}, order {order}, query {row}, {column}: {found}, not {wanted}");
                }
            }
        }
    }
}

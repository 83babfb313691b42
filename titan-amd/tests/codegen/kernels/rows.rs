//! Sums over the rows of a tensor, in a loop whose buffers end at the last row.

use super::both::Launch;
use crate::launch::{Ready, machine};
use crate::tensor::Tensor;
use titan_core::artifact::{Assumption, TensorFact, TensorFacts};
use titan_core::driver::{compile, stages};
use titan_core::ir::{Elem, HostEnv, Symbol};
use titan_core::launch::abi::MapParam;
use titan_core::text::parse;
use titan_core::verify::verify;

const TEXT: &str = "kernel @rows(
    %x: in tensor<f32>[K, N],
    %y: mut tensor<f32>[64, N],
) grid(cdiv(N, 64)) {
    %K = dim<0> %x : i32
    %n = program_id<0> : i32
    %nothing = const 0.0 : f32
    %acc = splat %nothing : tile<64x64xf32>
    %zero = const 0 : i32
    %step = const 64 : i32
    %whole = div %K, %step : i32
    %rest = rem %K, %step : i32
    %more = gt %rest, %zero : bool
    %last = cast %more : i32
    %steps = add %whole, %last : i32
    %one = const 1 : i32
    %sum = for %k = %zero to %steps step %one carry(%from = %acc) : tile<64x64xf32> {
        %pad = const 0.0 : f32
        %xt = load_tile %x[%k, %n] or %pad : tile<64x64xf32>
        %next = add %xt, %from : tile<64x64xf32>
        continue %next
    }
    store_tile %y[%zero, %n], %sum
    return
}
";

/// What a launch knows of the tensors.
struct Facts<'a>(&'a [([i64; 2], [i64; 2])]);

impl HostEnv for Facts<'_> {
    fn symbol(&self, _: Symbol) -> i64 {
        0
    }

    fn scalar(&self, _: usize) -> i64 {
        0
    }

    fn dim(&self, param: usize, axis: usize) -> i64 {
        self.0[param].0[axis]
    }
}

impl TensorFacts for Facts<'_> {
    fn params(&self) -> u32 {
        self.0.len() as u32
    }

    fn tensor(&self, param: u32) -> Option<TensorFact<'_>> {
        let (extents, strides) = &self.0[param as usize];
        Some(TensorFact { address: 0, elem_bits: 32, extents, strides })
    }

    fn shared_memory(&self) -> u32 {
        1 << 16
    }

    fn tensor_map(&self, _: &MapParam) -> Result<(), String> {
        Err("there are none".to_owned())
    }
}

#[test]
fn rows_with_other_padding_may_overlap() {
    let text = TEXT.replace("%pad = const 0.0", "%pad = const 1.0");
    let kernel = parse(&text).unwrap_or_else(|e| panic!("{e:?}")).remove(0);
    let kernel = verify(kernel).unwrap_or_else(|e| panic!("{e:?}"));
    let variants = compile(&kernel, machine(), None).unwrap_or_else(|e| panic!("{e}"));
    let apart = |assumption: &Assumption| matches!(assumption, Assumption::Apart { .. });
    assert!(!variants.iter().any(|variant| variant.assumptions.iter().any(apart)), "no load is from a buffer");
}

/// Rows outside of the tensor are zeros, however far rows are apart, as long as the assumptions hold under which the code was made. The evaluation of the
/// lane IR counts offsets as the code does, so that it would not tell.
#[test]
fn offsets_do_not_come_round() {
    let kernel = parse(TEXT).unwrap_or_else(|e| panic!("{e:?}")).remove(0);
    let kernel = verify(kernel).unwrap_or_else(|e| panic!("{e:?}"));
    let stages = stages(&kernel, machine(), true, None).unwrap_or_else(|e| panic!("{e}"));
    let ready = Ready::new(&stages.lanes).unwrap_or_else(|e| panic!("{e}"));
    let variants = compile(&kernel, machine(), None).unwrap_or_else(|e| panic!("{e}"));
    let assumptions = &variants.first().expect("a variant").assumptions;
    assert!(
        assumptions.iter().any(|a| matches!(a, Assumption::Apart { param: 0, axis: 0, rows: 64 })),
        "{assumptions:?}"
    );
    let tensor = |rows: u32, pitch: u32, fill: f32| {
        let elements = pitch * (rows - 1) + 64;
        let bytes = (0..elements).flat_map(|i| (fill * (i + 1) as f32).to_le_bytes()).collect();
        Some(Tensor { elem: Elem::F32, extents: vec![rows, 64], strides: vec![pitch, 1], bytes, skip: 0 })
    };
    let mut ran = 0;
    for (rows, pitch) in [(1, 64), (1, 1 << 23), (1, (1 << 23) + 4), (1, 1 << 28), (3, 64), (3, 1 << 20), (70, 128)] {
        let facts = [([rows, 64], [pitch, 1]), ([64, 64], [64, 1])];
        if !assumptions.iter().all(|assumption| assumption.holds(&Facts(&facts))) {
            continue;
        }
        ran += 1;
        let [rows, pitch] = [rows, pitch].map(|n| n as u32);
        let tensors = [tensor(rows, pitch, 1.0), tensor(64, 64, 0.0)];
        let launch = Launch { grid: [1; 3], tensors: &tensors, scalar: &|_| 0 };
        let found = launch.emulated(&stages.lanes, &ready, 0).unwrap_or_else(|e| panic!("{e}"));
        for (at, bytes) in found[1].chunks(4).enumerate() {
            let (row, column) = (at as u32 / 64, at as u32 % 64);
            let wanted: f32 = (row..rows).step_by(64).map(|row| (row * pitch + column + 1) as f32).sum();
            let found = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            assert_eq!(found, wanted, "row {row} of {rows}, {pitch} apart, column {column}");
        }
    }
    assert_eq!(ran, 5);
}

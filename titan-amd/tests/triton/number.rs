//! Elements of the kernels' tensors, and how results are compared.

use titan_core::num;

/// Numbers in -1..1 that look random.
pub(crate) fn noise(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = titan_sim::engine::Rng::new(seed);
    (0..n).map(|_| (rng.next_u64() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum El {
    F16,
    Bf16,
    F32,
    F64,
    I8,
    I32,
    /// 8 bits as this machine has them: a bias of 8, no infinities, one NaN and no negative zero.
    E4m3,
    /// The same with a bias of 16.
    E5m2,
}

impl El {
    pub(crate) fn encode(self, x: f32) -> Vec<u8> {
        match self {
            El::F16 => num::f16_from_f32(x).to_le_bytes().to_vec(),
            El::Bf16 => num::bf16_from_f32(x).to_le_bytes().to_vec(),
            El::F32 => x.to_le_bytes().to_vec(),
            El::F64 => f64::from(x).to_le_bytes().to_vec(),
            El::I8 => ((x * 127.0) as i8).to_le_bytes().to_vec(),
            El::I32 => (x as i32).to_le_bytes().to_vec(),
            // Any bits but those of the NaN are a number.
            El::E4m3 | El::E5m2 => vec![((x * 127.0) as i8).cast_unsigned()],
        }
    }

    pub(crate) fn size(self) -> usize {
        self.encode(0.0).len()
    }

    pub(crate) fn decode(self, b: &[u8]) -> f64 {
        let h = || u16::from_le_bytes([b[0], b[1]]);
        match self {
            El::F16 => num::f16_to_f64(h()),
            El::Bf16 => num::bf16_to_f64(h()),
            El::F32 => f32::from_le_bytes(b.try_into().unwrap()).into(),
            El::F64 => f64::from_le_bytes(b.try_into().unwrap()),
            El::I8 => f64::from(b[0].cast_signed()),
            El::I32 => i32::from_le_bytes(b.try_into().unwrap()).into(),
            El::E4m3 => small(b[0], 3, 8),
            El::E5m2 => small(b[0], 2, 16),
        }
    }
}

/// A number of 8 bits with so many bits of fraction.
fn small(bits: u8, fraction: i32, bias: i32) -> f64 {
    assert_ne!(bits, 0x80, "the NaN");
    let (exponent, rest) = (i32::from(bits & 0x7F) >> fraction, f64::from(i32::from(bits) & ((1 << fraction) - 1)));
    let part = rest / f64::from(1 << fraction);
    let size = if exponent == 0 { part * 2_f64.powi(1 - bias) } else { (1.0 + part) * 2_f64.powi(exponent - bias) };
    if bits & 0x80 == 0 { size } else { -size }
}

pub(crate) fn close(name: &str, got: &[f64], want: &[f64], relative: f64, absolute: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let tolerance = absolute + relative * w.abs();
        assert!((g - w).abs() <= tolerance || g == w, "{name}[{i}]: {g} instead of {w}");
    }
}

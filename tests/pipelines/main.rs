//! Kernels with pipelines in the user's hands, run as the reference and on the device on ragged shapes, against plain loops.

mod attention;
mod gemm;
mod held;
mod large;
#[path = "../../titan-nv/tests/emit/ptxas.rs"]
mod ptxas;
/// Tests that name their devices, and do the same whatever device the others are pointed at.
mod named_devices {
    mod batched;
    mod targets;
}
mod roles;
#[path = "../../titan-nv/tests/emit/sass.rs"]
#[expect(dead_code, reason = "loops of other targets are counted in other tests")]
mod sass;

use titan::prelude::*;

/// The device that the tests are pointed at.
fn device() -> Device {
    Device::best().expect("there is a device")
}

/// Numbers in −1..1, the same on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f64 / f64::from(1 << 23) - 1.0
    }

    fn many<T: Elem>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| self.next().cast()).collect()
    }
}

#[track_caller]
fn close<T: Elem>(got: &[T], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let g: f64 = (*g).cast();
        assert!((g - w).abs() <= tolerance * (1.0 + w.abs()), "element {i}: {g}, but {w} is right");
    }
}

/// `A · Bᵀ`, rows of both of length `k`.
fn product(a: &[f16], b: &[f16], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let at = |x: &[f16], i: usize| f64::from(x[i].to_f32());
    let sum = |i: usize, j: usize| (0..k).map(|t| at(a, i * k + t) * at(b, j * k + t)).sum();
    (0..m * n).map(|i| sum(i / n, i % n)).collect()
}

/// Every pipeline here is compiled under the schedule that was chosen for it, and for Hopper if its tiles are those of bulk copies.
#[test]
fn none_is_compiled_to_barriers_that_cannot_be_verified() {
    let kernels = titan::kernels().unwrap();
    for kernel in &kernels {
        let refused = kernel.refused.iter().map(|(_, why)| why);
        let said: Vec<&String> = kernel.variants.iter().flat_map(|v| &v.notes).chain(refused).collect();
        assert!(said.iter().all(|text| !text.contains("fails verification")), "{}: {said:?}", kernel.name);
        // Roles have no code for AMD's GPUs; nothing else has lost its code.
        let lost = kernel.refused.iter().find(|(target, why)| target != "gfx942" && why.starts_with('['));
        assert_eq!(lost, None, "{}", kernel.name);
    }
    for name in ["twice", "attention_ws::<64, 128, 128>", "attention_in_turn::<64, 64, 128>"] {
        let kernel = kernels.iter().find(|k| k.name == name).unwrap();
        assert!(kernel.variants.iter().any(|v| v.target == "sm_90a"), "{name}: {:?}", kernel.refused);
    }
}

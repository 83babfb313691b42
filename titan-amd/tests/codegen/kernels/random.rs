//! Random kernels on integers, of the tests of the lowering of tiles: nests of loops and branches, loads, stores, reductions, scans,
//! gathers, with and without aligned tensors.

use super::both::Launch;
use crate::launch::{Ready, machine};
use crate::machine::Rng;
use crate::random::{PROGRAMS, kernel};
use crate::tensor::arguments;
use titan_core::driver::{Backend, lower};
use titan_core::plan::plan;
use titan_core::text::print;
use titan_core::verify::{Verified, verify};

/// Runs a kernel in both ways; the complaint, if there is one, and whether anything was compared.
fn compared(kernel: &Verified, aligned: bool, seed: u64) -> Result<bool, String> {
    let lowered = match lower(kernel, &plan(kernel, &machine().target(), aligned)) {
        Ok(lowered) => lowered,
        Err(error) if error.message.contains("of shared memory") => return Ok(false),
        Err(error) => return Err(format!("not lowered: {}", error.message)),
    };
    let ready = Ready::new(&lowered.func).map_err(|e| e.to_string())?;
    let (tensors, scalar) = arguments(&mut Rng::new(seed), kernel, aligned);
    let scalar = |_: u32| u64::from(scalar.cast_unsigned());
    let launch = Launch { grid: [PROGRAMS, 1, 1], tensors: &tensors, scalar: &scalar };
    let wanted = launch.evaluated(&lowered.func)?;
    let found = launch.emulated(&lowered.func, &ready, seed as usize)?;
    match launch.difference(&found, &wanted) {
        Some(what) => Err(what),
        None => Ok(true),
    }
}

#[test]
fn random_kernels_leave_what_their_lanes_say() {
    let (mut runs, mut complaints) = (0, Vec::new());
    for seed in 0..test_depth::cases(600, 24) {
        let made = kernel(&mut Rng::new(seed));
        let text = print(&made);
        let Ok(verified) = verify(made) else { continue };
        for aligned in [true, false] {
            match compared(&verified, aligned, seed) {
                Ok(ran) => runs += usize::from(ran),
                Err(what) => complaints.push((text.len(), format!("seed {seed}, aligned {aligned}: {what}\n{text}"))),
            }
        }
    }
    complaints.sort();
    assert!(complaints.is_empty(), "{} complaints, {runs} runs: {}", complaints.len(), complaints[0].1);
    assert!(runs > 40, "{runs} runs");
}

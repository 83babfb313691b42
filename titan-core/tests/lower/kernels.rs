//! Random kernels.

use crate::launch::{as_tiles, lanes, target};
use crate::machine::Rng;
use crate::random::kernel;
use crate::tensor::arguments;
use std::collections::BTreeMap;
use std::io::Write;
use titan_core::driver::lower;
use titan_core::lane;
use titan_core::plan::plan;
use titan_core::text::print;
use titan_core::verify::{Verified, verify};

/// What comes of lowering and running a kernel: a complaint, if there is one.
pub(crate) fn complaint(kernel: &Verified, warp: u32, aligned: bool, seed: u64) -> Option<String> {
    let lowered = match lower(kernel, &plan(kernel, &target(warp), aligned)) {
        Ok(lowered) => lowered,
        Err(error) => {
            let allowed = error.message.contains("of shared memory, test has");
            return (!allowed).then(|| format!("not lowered: {}", error.message));
        }
    };
    if let Err(error) = lane::verify(&lowered.func) {
        return Some(error.to_string());
    }
    let mut rng = Rng::new(seed);
    let (tensors, scalar) = arguments(&mut rng, kernel, aligned);
    let (after, wrong) = lanes(&lowered.func, &tensors, scalar);
    if let Some(first) = wrong.first() {
        return Some(format!("{} complaints: {first}", wrong.len()));
    }
    let wanted = as_tiles(kernel, &tensors, scalar);
    for (i, (found, wanted)) in after.iter().zip(&wanted).enumerate() {
        if let (Some(found), Some(wanted)) = (found, wanted)
            && let Some(at) = (0..found.bytes.len()).find(|b| found.bytes[*b] != wanted.bytes[*b])
        {
            return Some(format!("parameter {i} of {:?} differs at byte {at}", wanted.extents));
        }
    }
    None
}

#[expect(clippy::disallowed_methods, reason = "how much is tested is settled when the test runs")]
fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn lanes_do_what_tiles_say() {
    let (count, first) = (setting("TITAN_LOWER_CASES", test_depth::cases(60, 16)), setting("TITAN_LOWER_FIRST", 0));
    let (mut accepted, mut runs) = (0, 0);
    let mut complaints: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
    for seed in first..first + count {
        let made = kernel(&mut Rng::new(seed));
        let text = print(&made);
        let Ok(verified) = verify(made) else { continue };
        accepted += 1;
        for (warp, aligned) in [(32, true), (32, false), (64, false)] {
            runs += 1;
            let found = std::panic::catch_unwind(|| complaint(&verified, warp, aligned, seed))
                .unwrap_or_else(|_| Some("a panic".to_owned()));
            if let Some(what) = found {
                // One of a kind is enough to look at: the shortest.
                let kind: String = what.chars().filter(|c| !c.is_ascii_digit()).take(60).collect();
                let of = complaints.entry(kind).or_default();
                of.push((text.len(), format!("seed {seed}, {warp} lanes, aligned {aligned}: {what}\n{text}")));
            }
        }
    }
    let report = format!("of {count} random kernels {accepted} verify; {runs} runs\n");
    std::io::stderr().write_all(report.as_bytes()).expect("written");
    assert!(accepted * 2 > count, "too few verify for this to say much: {report}");
    let shortest = |all: &Vec<(usize, String)>| all.iter().min().map(|(_, text)| text.clone()).unwrap_or_default();
    let worst: Vec<String> = complaints.values().map(|all| format!("{} times: {}", all.len(), shortest(all))).collect();
    assert!(worst.is_empty(), "{} kinds of complaints\n{}", worst.len(), worst.join("\n\n"));
}

//! Random kernels on integers, of many operations each: bytes must agree.

use crate::devices::{Outcome, Tensors, emulated, on_cpu, on_gfx942, on_gpu};
use crate::machine::Rng;
use crate::random::{PROGRAMS, kernel};
use crate::report::{say, setting};
use crate::tensor::arguments;
use crate::tiles;
use titan_core::text::print;
use titan_core::verify::{Verified, verify};

/// The first difference.
fn difference(who: &str, found: &Tensors, wanted: &Tensors) -> Option<String> {
    found.iter().zip(wanted).enumerate().find_map(|(i, (found, wanted))| {
        let (found, wanted) = (found.as_ref()?, wanted.as_ref()?);
        let at = (0..found.bytes.len()).find(|b| found.bytes[*b] != wanted.bytes[*b])?;
        Some(format!("{who}: parameter {i} of {:?} differs at byte {at}", wanted.extents))
    })
}

/// How many launches there were of which kind.
#[derive(Default)]
struct Count {
    kernels: u64,
    aligned: u64,
    general: u64,
    refused: u64,
}

fn complaint(kernel: &Verified, seed: u64, aligned: bool, count: &mut Count) -> Option<String> {
    let (tensors, scalar) = arguments(&mut Rng::new(seed), kernel, aligned);
    let mut wanted = tensors.clone();
    (0..PROGRAMS).for_each(|p| tiles::run(kernel, &mut wanted, scalar, p));
    let executed = match on_cpu(kernel, &tensors, scalar) {
        Ok(after) => difference("executor", &after, &wanted),
        Err(error) => Some(format!("executor: {error}")),
    };
    let emulated = || match emulated(kernel, &tensors, scalar) {
        Ok((Outcome::Done(after), assumes)) => {
            *(if assumes { &mut count.aligned } else { &mut count.general }) += 1;
            difference("emulator", &after, &wanted)
        }
        Ok((Outcome::Refused(reason), _)) => {
            count.refused += 1;
            (!reason.contains("of shared memory")).then(|| format!("refused: {reason}"))
        }
        Err(error) => Some(format!("emulator: {error}")),
    };
    let on_amd = || match on_gfx942(kernel, &tensors, scalar)? {
        Ok((Outcome::Done(after), _)) => difference("gfx942", &after, &wanted),
        // It has less shared memory.
        Ok((Outcome::Refused(reason), _)) => {
            (!reason.contains("of shared memory")).then(|| format!("refused on gfx942: {reason}"))
        }
        Err(error) => Some(format!("gfx942: {error}")),
    };
    executed.or_else(emulated).or_else(on_amd).or_else(|| match on_gpu(kernel, &tensors, scalar)? {
        Ok(Outcome::Done(after)) => difference("GPU", &after, &wanted),
        Ok(Outcome::Refused(_)) => None,
        Err(error) => Some(format!("GPU: {error}")),
    })
}

#[test]
fn devices_leave_what_tiles_say() {
    let (cases, first) =
        (setting("TITAN_DIFFERENTIAL_CASES", test_depth::cases(160, 20)), setting("TITAN_DIFFERENTIAL_FIRST", 10_000));
    let mut count = Count::default();
    for seed in first..first + cases {
        let made = kernel(&mut Rng::new(seed));
        let text = print(&made);
        let Ok(verified) = verify(made) else { continue };
        count.kernels += 1;
        for aligned in [true, false] {
            if let Some(what) = complaint(&verified, seed, aligned, &mut count) {
                panic!("seed {seed}, aligned {aligned}: {what}\n{text}");
            }
        }
    }
    let Count { kernels, aligned, general, refused } = count;
    say(&format!(
        "{kernels} of {cases} random kernels verify; in the emulator {aligned} launches with assumptions, {general} without, \
         {refused} refused"
    ));
    assert!(kernels * 2 > cases && refused * 10 < kernels, "too little was run");
    assert!(aligned * 4 > kernels && general * 4 > kernels, "one kind of variant was hardly run");
}

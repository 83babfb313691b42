//! Every kernel of the filetests that verifies is lowered, or refused in words.

use crate::filetests::kernels;
use crate::launch::target;
use std::sync::LazyLock;
use titan_core::driver::lower;
use titan_core::ir::Kernel;
use titan_core::lane;
use titan_core::plan::plan;
use titan_core::verify::{Verified, verify};

/// The kernels of the filetests that verify, with their names.
pub(crate) static VERIFIED: LazyLock<Vec<(String, Verified)>> = LazyLock::new(|| {
    let named = |(file, kernel): (String, Kernel)| Some((format!("{file}: {}", kernel.sig.name), verify(kernel).ok()?));
    kernels().into_iter().filter_map(named).collect()
});

#[test]
fn kernels_of_the_filetests_are_lowered() {
    let mut lowered = 0;
    for (nth, (name, verified)) in VERIFIED.iter().enumerate() {
        // In the quick depth two of them, in turn; another test has the third one.
        let all = [(32, true), (32, false), (64, true)].into_iter().enumerate();
        for (_, (lanes, aligned)) in all.filter(|(turn, _)| test_depth::is_full() || *turn != nth % 3) {
            match lower(verified, &plan(verified, &target(lanes), aligned)) {
                Ok(done) => {
                    lane::verify(&done.func).unwrap_or_else(|e| panic!("{name}: {e}"));
                    lowered += 1;
                }
                Err(error) => assert!(!error.message.contains("defect"), "{name}: {error}"),
            }
        }
    }
    assert!(lowered > 60, "only {lowered}");
}

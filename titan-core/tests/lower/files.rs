//! Every kernel of the filetests that verifies is lowered, or refused in words.

use crate::filetests::kernels;
use crate::launch::target;
use titan_core::driver::lower;
use titan_core::lane;
use titan_core::plan::plan;
use titan_core::verify::verify;

#[test]
fn kernels_of_the_filetests_are_lowered() {
    let mut lowered = 0;
    for (file, kernel) in kernels() {
        let name = format!("{file}: {}", kernel.sig.name);
        let Ok(verified) = verify(kernel) else { continue };
        for (lanes, aligned) in [(32, true), (32, false), (64, true)] {
            match lower(&verified, &plan(&verified, &target(lanes), aligned)) {
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

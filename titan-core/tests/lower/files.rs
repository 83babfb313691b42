//! Every kernel of the filetests that verifies is lowered, or refused in words.

use crate::launch::target;
use std::path::Path;
use titan_core::lane;
use titan_core::lower::lower;
use titan_core::plan::plan;
use titan_core::text::parse_located;
use titan_core::verify::verify;

#[test]
fn kernels_of_the_filetests_are_lowered() {
    let mut lowered = 0;
    for folder in ["filetests/text", "filetests/verify"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "tir")) {
            let Ok(kernels) = parse_located(&std::fs::read_to_string(path).unwrap()) else { continue };
            for kernel in kernels {
                let name = format!("{}: {}", path.display(), kernel.kernel.sig.name);
                let Ok(verified) = verify(kernel.kernel) else { continue };
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
        }
    }
    assert!(lowered > 60, "only {lowered}");
}

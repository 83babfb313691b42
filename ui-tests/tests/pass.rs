//! The same kernels without the mistakes compile: rules reject no more than they say.
#![expect(dead_code, reason = "nothing is launched: the macro compiles the kernels")]
#![expect(unsafe_code, reason = "one kernel orders its programs itself")]

#[path = "../pass/mod.rs"]
mod pass;

/// What there is to test happened when this program was compiled.
#[test]
fn every_mended_kernel_compiles() {}

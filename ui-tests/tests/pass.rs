//! The same kernels without the mistakes compile: rules reject no more than they say.
#![expect(dead_code, reason = "nothing is launched: the macro compiles the kernels")]
#![expect(unsafe_code, reason = "one kernel orders its programs itself")]
#![expect(
    deprecated,
    reason = "roles that cannot be fused have no code for gfx942; the test below finds what has none for another target"
)]

#[path = "../pass/mod.rs"]
mod pass;

/// The reasons why kernels have no code for gfx942, with the rule: all there are.
const NOT_ON_GFX942: [&str; 2] = [
    "[T0902] gfx942 has no barriers for some of a program's threads, so that all of them execute every role; these roles cannot be executed",
    "bytes of shared memory, but code for gfx942 may use 65536",
];

/// That they compile has been seen when this program was compiled. None has lost its code for a target, or its schedule, but for gfx942.
#[test]
fn every_mended_kernel_compiles() {
    let kernels = titan::kernels().expect("what is embedded can be read");
    let mut without = Vec::new();
    for kernel in &kernels {
        for (target, why) in kernel.refused.iter().filter(|(_, why)| why.starts_with('[')) {
            let known = target == "gfx942" && NOT_ON_GFX942.iter().any(|reason| why.contains(reason));
            assert!(known, "{} has no code for {target}: {why}", kernel.name);
            without.push(kernel.name.as_str());
        }
        let notes = kernel.variants.iter().flat_map(|v| &v.notes);
        let simpler: Vec<&String> = notes.filter(|note| note.starts_with("a simpler schedule was taken")).collect();
        assert!(simpler.is_empty(), "{}: {simpler:?}", kernel.name);
    }
    // Both sorts are there, so that the test means something.
    assert!(without.len() > 3 && without.len() * 4 < kernels.len(), "{} of {}", without.len(), kernels.len());
}

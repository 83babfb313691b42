//! Kernels that clang compiled: every instruction decodes, and each kernel runs in the emulator with the results of the
//! same computation in Rust.
//!
//! The sources are in `tests/kernels`. They were written for these tests; the bytes are LLVM's.

mod build;
mod cases;
#[path = "../support/mod.rs"]
mod support;
mod trial;

use std::collections::BTreeSet;
use titan_amd::emu::{Completion, Module, Options, Schedule, Uninitialised};
use titan_amd::isa::decode;

/// When memory operations complete, and which wave runs next.
fn orders() -> [Options; 4] {
    let random = |s| (Completion::Seeded(s), Schedule::Seeded(s));
    [(Completion::Late, Schedule::InTurn), (Completion::Early, Schedule::InTurn), random(1), random(2)]
        .map(|(completion, schedule)| Options { completion, schedule, ..Options::default() })
}

#[test]
fn every_instruction_decodes() {
    let Some(objects) = build::objects() else { return };
    let (mut kernels, mut instructions, mut names) = (0, 0, BTreeSet::new());
    for (file, bytes) in objects {
        let module = Module::load(bytes).unwrap_or_else(|e| panic!("{file}: {e}"));
        let object = module.object();
        kernels += object.kernels.len();
        for code in &object.code {
            let mut at = code.start;
            while at < code.end {
                let rest = object.bytes(at, code.end - at).expect("code is in the image");
                let (inst, size) = decode(rest).unwrap_or_else(|e| panic!("{file} at {at:#x}: {e}"));
                assert_eq!(inst.bytes().expect("what was decoded has an encoding"), rest[..size], "{file}: {inst}");
                names.insert(inst.row().name);
                instructions += 1;
                at += size as u64;
            }
        }
    }
    assert!(kernels >= 200 && instructions >= 20_000 && names.len() >= 250, "{kernels} {instructions} {}", names.len());
}

#[test]
fn every_kernel_computes_what_it_says() {
    let Some(objects) = build::objects() else { return };
    let mut left: BTreeSet<String> = BTreeSet::new();
    let mut wrong = Vec::new();
    for (file, bytes) in objects {
        let module = Module::load(bytes).unwrap_or_else(|e| panic!("{file}: {e}"));
        left.extend(module.object().kernels.iter().map(|k| k.name.clone()));
        for (name, case) in cases::all().filter(|(n, _)| module.object().kernel(n).is_some()) {
            for mut options in orders() {
                // Without optimization, registers are copied for all lanes when only some were written.
                if file.ends_with("-O0") {
                    options.uninitialised = Uninitialised::Random(7);
                }
                let mut trial = trial::Trial::new(&module, name, &options);
                case(&mut trial);
                wrong.extend(trial.complaints().map(|c| format!("{name} of {file}, {:?}: {c}", options.completion)));
            }
            left.remove(name);
        }
    }
    assert!(wrong.is_empty(), "{} runs are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(left.is_empty(), "kernels without a case: {left:?}");
}

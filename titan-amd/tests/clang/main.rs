//! Kernels that clang compiled: every instruction decodes, each kernel runs in the emulator with the results of the
//! same computation in Rust, and each kernel with a mistake is reported.
//!
//! The sources are in `tests/kernels`. They were written for these tests; the bytes are LLVM's. Everything is tried at
//! every level of optimization and in many orders with `TITAN_TESTS=full`; otherwise each file has one level.
#![expect(clippy::print_stdout, reason = "how much was run")]

mod bad;
mod build;
mod cases;
#[path = "../support/mod.rs"]
mod support;
mod trial;

use std::collections::BTreeSet;
use support::depth;
use titan_amd::emu::{Completion, Module, Options, Schedule, Uninitialised};
use titan_amd::isa::decode;

/// When memory operations complete, and which wave runs next. What undefined registers hold differs as well.
fn orders() -> Vec<Options> {
    let random = |s| (Completion::Seeded(s), Schedule::Seeded(s));
    let fixed = [(Completion::Late, Schedule::InTurn), (Completion::Early, Schedule::InTurn)];
    let orders = fixed.into_iter().chain((1..=depth::tries(1, 5)).map(random));
    let options = |((completion, schedule), undefined_seed)| Options {
        completion,
        schedule,
        undefined_seed,
        ..Options::default()
    };
    orders.zip(0..).map(options).collect()
}

/// The same, and in the full depth one order with bits that look defined, as on hardware, where a mistake that is about undefined bits is not
/// reported; with a stack for functions that are not optimized and call themselves, which a program asks for by `hipDeviceSetLimit`.
fn orders_of_right_kernels() -> Vec<Options> {
    let hardware = Options { uninitialised: Uninitialised::Random(11), ..Options::default() };
    let all = orders().into_iter().chain(depth::full().then_some(hardware));
    all.map(|options| Options { stack_bytes: 1 << 14, ..options }).collect()
}

/// Those of these orders in which a case of many runs: in the sample one of them, in turn.
fn in_turn(all: Vec<Options>, number: usize) -> Vec<Options> {
    if depth::full() { all } else { vec![all[number % all.len()].clone()] }
}

#[test]
fn every_instruction_decodes() {
    let Some(objects) = build::objects() else { return };
    let (mut kernels, mut instructions, mut names) = (0, 0, BTreeSet::new());
    for build::Object { name, bytes } in objects {
        let module = Module::load(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        let object = module.object();
        kernels += object.kernels.len();
        for code in &object.code {
            let mut at = code.start;
            while at < code.end {
                let rest = object.bytes(at, code.end - at).expect("code is in the image");
                let (inst, size) = decode(rest).unwrap_or_else(|e| panic!("{name} at {at:#x}: {e}"));
                assert_eq!(inst.bytes().expect("what was decoded has an encoding"), rest[..size], "{name}: {inst}");
                names.insert(inst.row().name);
                instructions += 1;
                at += size as u64;
            }
        }
    }
    println!("{kernels} kernels, {instructions} instructions, {} different ones", names.len());
    let least = depth::tries((200, 20_000, 250), (1000, 100_000, 350));
    assert!(kernels >= least.0 && instructions >= least.1 && names.len() >= least.2);
}

#[test]
fn every_kernel_computes_what_it_says() {
    let Some(objects) = build::objects() else { return };
    let mut left: BTreeSet<String> = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut runs = 0;
    for build::Object { name: file, bytes } in objects {
        let module = Module::load(bytes).unwrap_or_else(|e| panic!("{file}: {e}"));
        left.extend(module.object().kernels.iter().map(|k| k.name.clone()));
        for (name, case) in cases::all().filter(|(n, _)| module.object().kernel(n).is_some()) {
            for options in &in_turn(orders_of_right_kernels(), runs) {
                let mut trial = trial::Trial::new(&module, name, options);
                case(&mut trial);
                wrong.extend(trial.complaints().map(|c| format!("{name} of {file}, {:?}: {c}", options.completion)));
                runs += 1;
            }
            left.remove(name);
        }
    }
    println!("{runs} runs");
    assert!(wrong.is_empty(), "{} runs are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(left.is_empty(), "kernels without a case: {left:?}");
}

//! Kernels with a mistake, of `tests/kernels/bad.hip`: each is reported in every order, at every level of optimization; and
//! the waits of right kernels, each of which is missed when it is taken out.

use crate::build::{Clang, LEVELS};
use crate::support::{depth, oracle};
use crate::trial::{Trial, u32s};
use crate::{cases, in_turn, orders};
use titan_amd::emu::{Arg, Module, Options};
use titan_amd::isa::decode;

struct Bad {
    kernel: &'static str,
    /// What the report contains.
    says: &'static str,
    run: fn(&mut Trial<'_>),
}

/// 256 elements in, 256 elements out, which the host reads.
fn one(t: &mut Trial<'_>) {
    with(t, 1024, |_| None);
}

/// The same on so many bytes of input, with a third argument.
fn with(t: &mut Trial<'_>, bytes: usize, third: fn(&mut Trial<'_>) -> Option<Arg>) {
    let x = u32s(bytes / 4, 7);
    let (a, b) = (t.put(&x), t.out::<u32>(256));
    let mut args = vec![a.arg(), b.arg()];
    args.extend(third(t));
    t.run(1, 256, &args);
    t.get::<u32>(b);
}

const BAD: &[Bad] = &[
    Bad { kernel: "bad_no_barrier", says: "emu::race", run: one },
    Bad { kernel: "bad_reduce", says: "emu::race", run: one },
    Bad { kernel: "bad_overwrite", says: "emu::race", run: one },
    Bad { kernel: "bad_mixed", says: "emu::race", run: one },
    Bad { kernel: "bad_lds_unwritten", says: "emu::uninitialised", run: one },
    Bad { kernel: "bad_lds_byte", says: "emu::uninitialised", run: one },
    Bad { kernel: "bad_private_unwritten", says: "emu::uninitialised", run: one },
    Bad { kernel: "bad_padding", says: "emu::uninitialised", run: one },
    Bad { kernel: "bad_branch", says: "emu::uninitialised", run: one },
    Bad { kernel: "bad_address", says: "an address", run: one },
    Bad {
        kernel: "bad_memory_unwritten",
        says: "emu::uninitialised",
        run: |t| with(t, 1024, |t| Some(t.out::<u32>(256).arg())),
    },
    Bad { kernel: "bad_load", says: "emu::out-of-bounds", run: one },
    Bad { kernel: "bad_store", says: "emu::out-of-bounds", run: one },
    Bad { kernel: "bad_before", says: "emu::out-of-bounds", run: one },
    Bad { kernel: "bad_null", says: "emu::out-of-bounds", run: |t| with(t, 1024, |_| Some(Arg::U64(0))) },
    Bad {
        kernel: "bad_freed",
        says: "emu::permission",
        run: |t| {
            with(t, 1024, |t| {
                let freed = t.put(&u32s(256, 8));
                t.free(freed);
                Some(freed.arg())
            });
        },
    },
    Bad { kernel: "bad_lds_bounds", says: "emu::out-of-bounds", run: one },
    Bad { kernel: "bad_atomic_alignment", says: "emu::misaligned", run: one },
    Bad { kernel: "bad_constant", says: "emu::permission", run: one },
    Bad { kernel: "bad_called", says: "(`_Z6helperPVjj` +", run: one },
    Bad { kernel: "bad_recursion", says: "stack_bytes", run: one },
    Bad { kernel: "bad_trap", says: "emu::trap", run: |t| run_on(t, &[7; 256]) },
    Bad { kernel: "bad_endless", says: "emu::limit", run: one },
];

fn run_on(t: &mut Trial<'_>, x: &[u32]) {
    let (a, b) = (t.put(x), t.out::<u32>(x.len()));
    t.run(1, 256, &[a.arg(), b.arg()]);
}

#[test]
fn every_mistake_is_reported() {
    let Some(clang) = Clang::find() else { return oracle::skipped("kernels with mistakes that clang compiles") };
    let mut missed = Vec::new();
    for level in depth::tries(&LEVELS[1..2], &LEVELS[..]) {
        let module = Module::load(&clang.compile("bad.hip", level)).expect("a code object");
        let known: Vec<_> = module.object().kernels.iter().map(|k| k.name.clone()).collect();
        assert!(known.iter().all(|k| BAD.iter().any(|b| b.kernel == k)), "{known:?}");
        let runs = BAD.iter().enumerate().flat_map(|(nth, b)| in_turn(orders(), nth).into_iter().map(move |o| (b, o)));
        for (bad, options) in runs {
            let options = Options { max_steps: 200_000, ..options };
            let mut trial = Trial::new(&module, bad.kernel, &options);
            (bad.run)(&mut trial);
            let said: Vec<_> = trial.complaints().cloned().collect();
            if !said.iter().any(|c| c.contains(bad.says)) {
                missed.push(format!("{} {level}, {:?}: {said:?}", bad.kernel, options.completion));
            }
        }
    }
    assert!(missed.is_empty(), "{} are missed:\n{}", missed.len(), missed.join("\n"));
}

/// The place in the file of what is loaded at an address.
fn place(file: &[u8], address: u64) -> usize {
    let number = |at: usize, n: usize| (0..n).fold(0_u64, |v, i| v | u64::from(file[at + i]) << (8 * i));
    let (headers, count) = (number(32, 8) as usize, number(56, 2) as usize);
    let segment = |i: usize| headers + 56 * i;
    let inside = (0..count).map(segment).find(|at| {
        let (start, size) = (number(at + 16, 8), number(at + 32, 8));
        number(*at, 4) == 1 && (start..start + size).contains(&address)
    });
    let at = inside.expect("a segment is loaded there");
    (number(at + 8, 8) + address - number(at + 16, 8)) as usize
}

#[test]
fn every_wait_that_is_taken_out_is_missed() {
    const S_NOP: u32 = 0xBF80_0000;
    let Some(clang) = Clang::find() else { return oracle::skipped("waits that are taken out of kernels") };
    let bytes = clang.compile("elementwise.cl", "-O2");
    let module = Module::load(&bytes).expect("a code object");
    let object = module.object();
    let (mut taken, mut silent) = (0, Vec::new());
    for code in &object.code {
        let mut at = code.start;
        while at < code.end {
            let (inst, size) = decode(object.bytes(at, code.end - at).expect("code")).expect("an instruction");
            let (address, wait) = (at, inst.row().name == "s_waitcnt");
            at += size as u64;
            let Some((name, _)) = object.function_at(address).filter(|_| wait) else { continue };
            let Some((_, case)) = cases::all().find(|(n, _)| *n == name) else { continue };
            let mut changed = bytes.clone();
            changed[place(&bytes, address)..][..4].copy_from_slice(&S_NOP.to_le_bytes());
            let changed = Module::load(&changed).expect("a code object");
            let missed = orders().iter().any(|options| {
                let mut trial = Trial::new(&changed, name, options);
                case(&mut trial);
                trial.complaints().any(|c| c.contains("emu::in-flight"))
            });
            taken += 1;
            if !missed {
                silent.push(format!("{name} at {address:#x}: {inst}"));
            }
        }
    }
    assert!(taken >= 36 && silent.is_empty(), "{} of {taken}:\n{}", silent.len(), silent.join("\n"));
}

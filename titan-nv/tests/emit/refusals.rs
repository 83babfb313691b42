//! Bad input is an error with the kernel's name, and the operation's.

use crate::cases;
use titan_core::ir::Loc;
use titan_core::lane::{AmdOp, Builder, Func, IntBin, MmaAtom, OpKind, Region, Shuffle, Ty};
use titan_nv::{Machine, emit};

fn machine(name: &str) -> &'static Machine {
    Machine::from_name(name).unwrap()
}

fn refused(func: &Func, target: &str) -> String {
    emit(func, machine(target), None).unwrap_err().to_string()
}

/// A function that does one thing.
fn of(kind: OpKind, args: usize) -> Func {
    let (mut b, from, to) = cases::begin("bad::<7>", 1, 1);
    b.set_loc(Loc { line: 3, column: 9 });
    let args: Vec<_> = (0..args).map(|_| cases::load(&mut b, Ty::B32, from, 0)).collect();
    if let Some(value) = b.op(kind, &args).first() {
        cases::store(&mut b, *value, to, 0);
    }
    b.terminate(OpKind::Return, &[]);
    b.finish().unwrap()
}

#[test]
fn limits_of_the_machine_are_said_with_numbers() {
    type Spoil = fn(&mut Func);
    let cases: [(&str, Spoil, &str); 5] = [
        ("sm_80", |f| f.lanes = 64, "kernel `bad::<7>`: sm_80 has warps of 32 lanes, not 64"),
        (
            "sm_80",
            |f| f.threads = 0,
            "kernel `bad::<7>`: sm_80 runs programs of whole warps, at most 1024 threads, not 0",
        ),
        (
            "sm_80",
            |f| f.threads = 48,
            "kernel `bad::<7>`: sm_80 runs programs of whole warps, at most 1024 threads, not 48",
        ),
        (
            "sm_90a",
            |f| f.threads = 2048,
            "kernel `bad::<7>`: sm_90a runs programs of whole warps, at most 1024 threads, not 2048",
        ),
        (
            "sm_86",
            |f| f.shared_bytes = 227 * 1024 + 1,
            "kernel `bad::<7>`: sm_86 and later have at most 232448 bytes of shared memory for a program, not 232449",
        ),
    ];
    for (target, spoil, says) in cases {
        let mut func = of(OpKind::Barrier, 0);
        assert!(emit(&func, machine(target), None).is_ok());
        spoil(&mut func);
        assert_eq!(refused(&func, target), says);
    }
}

#[test]
fn operations_that_no_target_has_are_named() {
    let half = titan_core::ir::Elem::F16;
    let atom = MmaAtom { m: 16, n: 16, k: 16, a: half, b: half, acc: titan_core::ir::Elem::F32 };
    let registers = atom.registers(32);
    let cases = [
        (of(OpKind::Mma(atom), registers.a + registers.b + registers.c), "mma.m16n16k16.f16.f16.f32"),
        (
            of(
                OpKind::Atomic {
                    op: titan_core::lane::AtomicFn::AddF64,
                    space: titan_core::lane::Space::Shared,
                    masked: false,
                },
                2,
            ),
            "atomic.add_f64.shared",
        ),
        (of(OpKind::Buffer(0), 0), "buffer 0"),
        (of(OpKind::Access { region: Region::Tensor(0), write: true }, 0), "writes Tensor(0)"),
    ];
    for (func, op) in cases {
        let said = refused(&func, "sm_90a");
        assert!(said.starts_with("kernel `bad::<7>`, line 3: sm_90a has no `") && said.contains(op), "{said}");
    }
}

#[test]
fn buffers_of_another_vendor_are_refused() {
    let (mut b, from, to) = cases::begin("bad::<7>", 1, 1);
    let address = cases::load(&mut b, Ty::B64, from, 0);
    let size = b.i32(64);
    let words = b.op(OpKind::Amd(AmdOp::Buffer), &[address, size]);
    cases::store(&mut b, words[0], to, 0);
    b.terminate(OpKind::Return, &[]);
    let said = refused(&b.finish().unwrap(), "sm_90a");
    assert!(said.contains("there are no buffers that bound accesses"), "{said}");
}

#[test]
fn lanes_and_axes_that_are_not_there_are_refused() {
    for kind in [OpKind::Shuffle(Shuffle::Xor(32)), OpKind::Shuffle(Shuffle::Lane(99)), OpKind::ProgramId(3)] {
        let (mut b, from, to) = cases::begin("bad::<7>", 1, 1);
        let args =
            if matches!(kind, OpKind::Shuffle(_)) { vec![cases::load(&mut b, Ty::B32, from, 0)] } else { vec![] };
        let value = b.one(kind, &args);
        cases::store(&mut b, value, to, 0);
        b.terminate(OpKind::Return, &[]);
        let said = refused(&b.finish().unwrap(), "sm_80");
        assert!(said.contains("a warp has 32 lanes") || said.contains("grids have three axes"), "{said}");
    }
}

#[test]
fn what_a_newer_target_has_is_said_with_the_instruction() {
    let convert = cases::registers().into_iter().find(|c| c.func.name.starts_with("convert.f32.e4m3")).unwrap();
    let said = refused(&convert.func, "sm_86");
    assert!(said.contains("sm_86 has no `convert.f32.e4m3`: `cvt.rn.satfinite.e4m3x2.f32` needs sm_89"), "{said}");
    assert!(emit(&convert.func, machine("sm_89"), None).is_ok());
}

#[test]
fn a_function_that_breaks_the_lane_ir_is_refused() {
    let mut b = Builder::new("bad::<7>", vec![], 32, 32);
    let one = b.i32(1);
    let sum = b.int(IntBin::Add, one, one);
    b.terminate(OpKind::Break(0), &[sum]);
    let said = refused(&b.finish().unwrap(), "sm_80");
    assert_eq!(said, "lane IR of `bad::<7>`, line 0: break<0>: no such loop");
}

#[test]
fn a_loop_that_yields_is_refused() {
    let mut b = Builder::new("bad::<7>", vec![], 32, 32);
    let (open, _) = b.begin_loop(&[], &[]);
    b.terminate(OpKind::Yield, &[]);
    b.end(open);
    b.terminate(OpKind::Return, &[]);
    let said = refused(&b.finish().unwrap(), "sm_80");
    assert!(said.contains("yield: ends the arms of an `if` only"), "{said}");
}

#[test]
fn a_file_name_that_ptx_cannot_spell_is_refused() {
    let func = of(OpKind::Barrier, 0);
    for file in ["a\"b.rs", "a\nb.rs", "a\\b.rs"] {
        let said = emit(&func, machine("sm_80"), Some((file, 1))).unwrap_err().to_string();
        assert!(said.contains("PTX cannot contain the file name"), "{said}");
    }
    assert!(emit(&func, machine("sm_80"), Some(("src/größe.rs", 1))).is_ok());
}

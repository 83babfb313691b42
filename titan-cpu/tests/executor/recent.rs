//! Launches that repeat an earlier one: arguments that are compared with what was checked, and not checked again, are refused as always.

use crate::common::{K, compile_text};
use titan_core::ir::Elem;
use titan_cpu::memory::Memory;
use titan_cpu::{Arg, Options, Program, RunError, Scalar};

/// `y[p] = x[p]` in tiles of 4 × 4, with a scalar that does nothing.
fn copy() -> Program {
    let mut k = K::new("copy");
    let (x, y) = (k.input("x", Elem::F32, 2), k.output("y", Elem::F32, 2));
    k.0.scalar("n", Elem::I32);
    let at = [k.pid(0), k.pid(1)];
    let t = k.load(x, &at, &[4, 4]);
    k.store(y, &at, t);
    k.compile(Options::default())
}

fn tensor(memory: &Memory, offset: usize, extents: [i32; 2], strides: [i64; 2]) -> Arg {
    Arg::Tensor { memory: memory.clone(), offset, extents: extents.to_vec(), strides: strides.to_vec() }
}

fn n() -> Arg {
    Arg::Scalar(Scalar::Int(1))
}

/// Every case follows a launch of the same program that is valid, and differs from it in one respect.
#[test]
fn what_is_not_valid_is_refused_after_what_is() {
    let program = copy();
    let (x, y) = (Memory::zeroed(128).unwrap(), Memory::zeroed(128).unwrap());
    let (less, more) = (Memory::zeroed(60).unwrap(), Memory::zeroed(64).unwrap());
    let of = |memory: &Memory| tensor(memory, 0, [4, 4], [4, 1]);
    let cases = [
        (vec![of(&y), of(&y), n()], "is written and overlaps"),
        (vec![tensor(&y, 32, [4, 4], [4, 1]), of(&y), n()], "is written and overlaps"),
        (vec![of(&less), of(&y), n()], "a memory of 15 elements"),
        (vec![of(&x), of(&less), n()], "a memory of 15 elements"),
        (vec![tensor(&x, 128, [4, 4], [4, 1]), of(&y), n()], "elements 32 ..= 47"),
        (vec![tensor(&x, 2, [4, 4], [4, 1]), of(&y), n()], "byte 2"),
        (vec![of(&x), tensor(&y, 0, [4, 4], [0, 1]), n()], "not provably distinct"),
        (vec![tensor(&x, 0, [8, 8], [8, 1]), of(&y), n()], "elements 0 ..= 63"),
        (vec![Arg::Absent, of(&y), n()], "not optional"),
        (vec![n(), of(&y), n()], "is a tensor"),
        (vec![of(&x), of(&y), of(&x)], "`n` is an `i32`"),
        (vec![of(&x), of(&y), Arg::Absent], "`n` is an `i32`"),
        (vec![of(&x), of(&y), Arg::Scalar(Scalar::Float(1.0))], "`n` is an `i32`"),
        (vec![of(&x), of(&y)], "2 arguments for 3 parameters"),
    ];
    for (args, part) in cases {
        for memory in [&x, &more, &x] {
            program.run(&[of(memory), of(&y), n()], [1, 1, 1]).unwrap();
        }
        let Err(RunError::BadArguments(message)) = program.run(&args, [1, 1, 1]) else { panic!("accepted: {part}") };
        assert!(message.contains(part), "{message} does not say {part}");
    }
}

/// Two halves of one memory, then the same places in two memories, and back: which arguments share a memory is a part of what was checked.
#[test]
fn arguments_may_share_a_memory_or_not() {
    let program = copy();
    let (one, other) = (Memory::zeroed(128).unwrap(), Memory::zeroed(128).unwrap());
    let ones: Vec<u8> = [1.0f32; 16].iter().flat_map(|v| v.to_le_bytes()).collect();
    one.write(0, &ones).unwrap();
    for to in [&one, &other, &one, &other] {
        to.write(64, &[0; 64]).unwrap();
        program.run(&[tensor(&one, 0, [4, 4], [4, 1]), tensor(to, 64, [4, 4], [4, 1]), n()], [1, 1, 1]).unwrap();
        let mut found = vec![0; 64];
        to.read(64, &mut found).unwrap();
        assert_eq!(found, ones);
    }
}

/// Shapes, grids and requirements that depend on an integer are checked for every other value, however many launches there were.
#[test]
fn integers_and_grids_are_a_part_of_what_was_checked() {
    let text = "kernel @some(%y: mut tensor<i32>[N], %n: i32) grid(%n) require(%n <= N) {
        %p = program_id<0> : i32
        set %y[%p], %n
        return
    }";
    let program = compile_text(text, Options::default());
    let y = Memory::zeroed(40).unwrap();
    let run = |n: i64, grid: u32| {
        let y = Arg::Tensor { memory: y.clone(), offset: 0, extents: vec![10], strides: vec![1] };
        program.run(&[y, Arg::Scalar(Scalar::Int(n))], [grid, 1, 1])
    };
    for n in (0..=10).chain(0..=10) {
        run(n, u32::try_from(n).unwrap()).unwrap();
        assert!(matches!(run(11, 11), Err(RunError::BadArguments(_))), "{n}");
        assert!(run(n, u32::MAX).is_err(), "{n}");
    }
}

/// A memory that another launch writes cannot be leased, and is named as before.
#[test]
fn memories_in_use_are_named() {
    let program = copy();
    let (x, y) = (Memory::zeroed(64).unwrap(), [0u8; 64]);
    // SAFETY: the bytes exist until the end of the test and nothing writes them: the memory is lent for reading.
    #[expect(unsafe_code, reason = "memory that may not be written stands for one that is in use")]
    let lent = unsafe { Memory::lent(&raw const y[..]) };
    let fine = Memory::zeroed(64).unwrap();
    let of = |memory: &Memory| tensor(memory, 0, [4, 4], [4, 1]);
    for _ in 0..2 {
        program.run(&[of(&x), of(&fine), n()], [1, 1, 1]).unwrap();
        let in_use = program.run(&[of(&x), of(&lent), n()], [1, 1, 1]);
        assert_eq!(in_use, Err(RunError::InUse("y".to_owned())));
    }
}

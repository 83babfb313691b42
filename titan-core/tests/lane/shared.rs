//! Places of buffers: no two that hold something at once overlap, and places are used again.

use crate::machine::Rng;
use crate::structure::{Event, paths, values};
use std::collections::BTreeSet;
use titan_core::lane::shared::allocate;
use titan_core::lane::{Block, Builder, Func, IntBin, OpKind, Region, Space};

/// For each path: whoever writes a place ends what lay there, which must not be read, or still be on its way.
fn look(func: &Func, path: &[Event]) -> Result<(), String> {
    let range = |b: u32| {
        let b = &func.buffers[b as usize];
        b.offset..b.offset + b.bytes
    };
    let overlap = |a: u32, b: u32| range(a).start < range(b).end && range(b).start < range(a).end;
    let mut holds: Vec<u32> = Vec::new();
    let mut flying: Vec<u32> = Vec::new();
    let mut last = None;
    for event in path {
        match event {
            Event::Mark(_, Region::Buffer(b), write) => {
                if let Some(other) = flying.iter().find(|f| **f != *b && overlap(**f, *b)) {
                    return Err(format!("buffer {b} is touched while a copy to {other} is on its way"));
                }
                if *write {
                    holds.retain(|other| !overlap(*other, *b));
                    holds.push(*b);
                } else if !holds.contains(b) {
                    return Err(format!("buffer {b} is read, but something else lies there"));
                }
                last = Some(*b);
            }
            Event::Copy(_) => flying.extend(last),
            Event::Wait(_) => flying.clear(),
            Event::Mark(..) | Event::Access(_) | Event::Barrier | Event::Own | Event::Enter(_) | Event::Leave => {}
        }
    }
    Ok(())
}

/// The buffers that are marked in a block and in what is in it.
fn marked(func: &Func, block: Block) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for op in func.block(block).ops.iter().map(|id| func.op(*id)) {
        if let OpKind::Access { region: Region::Buffer(b) | Region::Ring(b), .. } = op.kind {
            all.insert(b);
        }
        all.extend(op.regions.iter().flat_map(|inner| marked(func, *inner)));
    }
    all
}

/// What different roles touch lies apart, whenever they touch it; how many pairs there are.
fn at_once(func: &Func) -> usize {
    let mut pairs = 0;
    func.walk(&mut |_, op| {
        let OpKind::Roles(_) = op.kind else { return };
        let [first, second] = [0, 1].map(|i| marked(func, op.regions[i]));
        for (a, b) in first.iter().flat_map(|a| second.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b) {
            let (x, y) = (&func.buffers[a as usize], &func.buffers[b as usize]);
            assert!(x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset, "buffers {a} and {b}\n{func}");
            pairs += 1;
        }
    });
    pairs
}

#[test]
fn buffers_that_hold_something_at_once_do_not_overlap() {
    let (mut buffers, mut shared, mut pairs) = (0, 0, 0);
    for seed in 0..1500 {
        let before = values(&mut Rng::new(seed));
        let mut func = before.clone();
        allocate(&mut func);
        for path in paths(&func, 400) {
            if let Err(what) = look(&func, &path) {
                panic!("seed {seed}: {what} on {path:?}; {:?}\n{func}", func.buffers);
            }
        }
        let end = func.buffers.iter().map(|b| b.offset + b.bytes).max().unwrap_or(0);
        assert_eq!(func.shared_bytes, end, "seed {seed}");
        for buffer in &func.buffers {
            assert!(buffer.offset.is_multiple_of(buffer.align.max(16)), "seed {seed}: {buffer:?}");
        }
        let sum: u32 = func.buffers.iter().map(|b| b.bytes).sum();
        buffers += func.buffers.len();
        pairs += at_once(&func);
        shared += u32::from(end < sum);
        func.walk(&mut |_, op| assert!(!matches!(op.kind, OpKind::Buffer(_)), "seed {seed}: addresses are known"));
    }
    let few = buffers < 4000 || shared < 400 || pairs < 1000;
    assert!(!few, "{buffers} buffers; {shared} programs use a place twice; {pairs} pairs of different roles");
}

fn line(sizes: &[(u32, u32)]) -> Func {
    let mut b = Builder::new("k", vec![], 64, 32);
    for (bytes, align) in sizes {
        let buffer = b.buffer("b", *bytes, *align);
        for write in [true, false] {
            b.op(OpKind::Access { region: Region::Buffer(buffer), write }, &[]);
            let at = b.one(OpKind::Buffer(buffer), &[]);
            b.op(OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false }, &[at]);
        }
    }
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands fit");
    allocate(&mut func);
    func
}

#[test]
fn one_after_the_other_they_take_the_place_of_the_largest() {
    let func = line(&[(64, 16), (1024, 1024), (100, 16), (4096, 128), (16, 512)]);
    assert_eq!(func.shared_bytes, 4096);
    assert!(func.buffers.iter().all(|b| b.offset == 0));
    assert_eq!(line(&[]).shared_bytes, 0);
}

#[test]
fn addresses_are_the_base_and_the_offset() {
    let mut b = Builder::new("k", vec![], 64, 32);
    let (first, second) = (b.buffer("first", 48, 16), b.buffer("second", 256, 256));
    for buffer in [first, second, first] {
        b.op(OpKind::Access { region: Region::Buffer(buffer), write: buffer == second }, &[]);
    }
    let at = [first, second].map(|buffer| b.one(OpKind::Buffer(buffer), &[]));
    let sum = b.add(at[0], at[1]);
    b.op(OpKind::Store { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false }, &[at[0], sum]);
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands fit");
    allocate(&mut func);
    titan_core::lane::verify(&func).expect("it is right");
    let offsets: Vec<u32> = func.buffers.iter().map(|b| b.offset).collect();
    assert_eq!((offsets.as_slice(), func.shared_bytes), (&[256, 0][..], 304));
    for (value, offset) in at.iter().zip(offsets) {
        let op = func.def_op(*value).expect("an operation");
        assert_eq!(op.kind, OpKind::Int(IntBin::Add));
        assert_eq!(func.def_op(op.args[0]).map(|o| &o.kind), Some(&OpKind::SharedBase));
        assert_eq!(func.constant(op.args[1]), Some(offset.into()));
    }
    // What is never touched has no place.
    let mut b = Builder::new("k", vec![], 64, 32);
    b.buffer("unused", 4096, 16);
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands fit");
    allocate(&mut func);
    assert_eq!(func.shared_bytes, 0);
}

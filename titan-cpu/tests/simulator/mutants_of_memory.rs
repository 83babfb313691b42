//! Barrier programs with one mistake about memory in them: a tile, a region or a copy that is not where it should be, is made twice, not at all, or on
//! one path only, or reads what another role stores.

use super::mutants::{with, with_arg, without};
use titan_core::ir::traffic::{On, traffic};
use titan_core::ir::{
    BlockData, Const, Def, Elem, Kernel, LocalOp, NvOp, Op, OpId, OpKind, Place, RegionOp, TtgOp, Ty, Value, ValueData,
};

/// What a run shows of a kind of mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shows {
    /// The simulator or its sanitizer finds it.
    Always,
    /// It depends on the run or the hardware: an address that only instructions refuse, or bytes that nothing else uses.
    Perhaps,
}

/// The kinds of mistakes, and what shows them.
pub(super) const KINDS: [(&str, Shows); 12] = [
    ("a tile at an odd address", Shows::Perhaps),
    ("a tile beyond its part", Shows::Perhaps),
    ("a region beyond shared memory", Shows::Perhaps),
    ("parts that are not the slots", Shows::Perhaps),
    ("a tile that nothing writes", Shows::Always),
    ("a tile over another one that nothing writes", Shows::Perhaps),
    ("a copy over other tiles that is not made", Shows::Perhaps),
    ("a copy that is not made", Shows::Always),
    ("a copy in one arm of a branch", Shows::Always),
    ("a copy that is made twice", Shows::Always),
    // Another role stores a tile when it has read the stage, so that the copy is over.
    ("a copy from what another role stores", Shows::Perhaps),
    ("a barrier of more threads than its role has", Shows::Always),
];

/// Adds an operation with one result to a program, which is in no block yet.
fn new_op(program: &mut Kernel, kind: OpKind, ty: Ty) -> (OpId, Value) {
    let (id, value) = (OpId::new(program.ops.len()), Value::new(program.values.len()));
    let loc = program.ops[0].loc;
    program.ops.push(Op {
        kind,
        args: Vec::new(),
        results: vec![value],
        regions: Vec::new(),
        planned: None,
        peeled: false,
        unmasked: false,
        origin: None,
        loc,
    });
    program.values.push(ValueData { ty, name: None, def: Def::Result(id, 0), place: Place::None });
    (id, value)
}

/// The program with an operation in the first arm of a branch whose condition does not hold.
fn in_one_arm(program: &Kernel, id: OpId) -> Kernel {
    let mut mutant = program.clone();
    let (condition, value) = new_op(&mut mutant, OpKind::Const(Const::Int(Elem::Bool, 0)), Ty::BOOL);
    let loc = program.op(id).loc;
    let plain = |kind| Op {
        kind,
        args: Vec::new(),
        results: Vec::new(),
        regions: Vec::new(),
        planned: None,
        peeled: false,
        unmasked: false,
        origin: None,
        loc,
    };
    let mut arms = Vec::new();
    for inside in [vec![id], Vec::new()] {
        let end = OpId::new(mutant.ops.len());
        mutant.ops.push(plain(OpKind::Yield));
        arms.push(titan_core::ir::Block::new(mutant.blocks.len()));
        mutant.blocks.push(BlockData { args: Vec::new(), ops: inside.into_iter().chain([end]).collect() });
    }
    let branch = OpId::new(mutant.ops.len());
    mutant.ops.push(Op { args: vec![value], regions: arms.clone(), ..plain(OpKind::If) });
    for (number, block) in mutant.blocks.iter_mut().enumerate() {
        if arms.iter().all(|arm| arm.index() != number)
            && let Some(at) = block.ops.iter().position(|op| *op == id)
        {
            block.ops.splice(at..=at, [condition, branch]);
        }
    }
    mutant.canonical()
}

/// The program with an assertion that fails before an operation: a run in which nothing fails does not come to it.
pub(super) fn trapped(program: &Kernel, id: OpId) -> Kernel {
    let mut mutant = program.clone();
    let (condition, value) = new_op(&mut mutant, OpKind::Const(Const::Int(Elem::Bool, 0)), Ty::BOOL);
    let fails = OpId::new(mutant.ops.len());
    let loc = program.op(id).loc;
    let kind = OpKind::Assert("here".to_owned());
    mutant.ops.push(Op {
        kind,
        args: vec![value],
        results: Vec::new(),
        regions: Vec::new(),
        planned: None,
        peeled: false,
        unmasked: false,
        origin: None,
        loc,
    });
    for block in &mut mutant.blocks {
        if let Some(at) = block.ops.iter().position(|op| *op == id) {
            block.ops.splice(at..at, [condition, fails]);
        }
    }
    mutant.canonical()
}

/// The program with an operation a second time.
fn twice(program: &Kernel, id: OpId) -> Kernel {
    let mut mutant = program.clone();
    let again = OpId::new(mutant.ops.len());
    mutant.ops.push(program.op(id).clone());
    for block in &mut mutant.blocks {
        if let Some(at) = block.ops.iter().position(|op| *op == id) {
            block.ops.insert(at + 1, again);
        }
    }
    mutant.canonical()
}

/// The outputs that a role other than that of an operation stores, tile by tile.
fn stored_elsewhere(program: &Kernel, id: OpId) -> Vec<Value> {
    let mut stored = Vec::new();
    program.walk(&mut |_, op| {
        if op.kind != OpKind::Ttg(TtgOp::Roles) {
            return;
        }
        for role in &op.regions {
            let (mut own, mut found) = (false, Vec::new());
            program.walk_block(*role, &mut |other, op| {
                own |= other == id;
                let to = op.args.first().copied();
                found.extend(to.filter(|_| matches!(op.kind, OpKind::Store(_))));
            });
            stored.extend(found.into_iter().filter(|to| !own && matches!(program.value(*to).def, Def::Param(_))));
        }
    });
    stored
}

/// The region in which a tile in shared memory lies, and its first byte in a part of it.
fn place(program: &Kernel, tile: Value) -> Option<(Value, u32)> {
    let (mut at, mut first) = (tile, 0);
    loop {
        let op = program.def_op(at)?;
        match op.kind {
            OpKind::Region(RegionOp::Place { .. }) => return Some((at, first)),
            OpKind::Region(RegionOp::Tile { offset, .. }) => first = offset,
            _ => {}
        }
        at = *op.args.first()?;
    }
}

/// The operations that write a tile, and whether some operation reads it.
fn users(program: &Kernel, tile: Value) -> (usize, bool) {
    let (mut writes, mut reads) = (0, false);
    program.walk(&mut |_, op| {
        let tiles = op.args.iter().filter(|v| matches!(program.ty(**v), Ty::Smem(..)));
        if !tiles.into_iter().any(|v| place(program, *v) == place(program, tile)) {
            return;
        }
        for access in traffic(&op.kind).accesses.into_iter().flatten().filter(|access| access.on == On::Local) {
            writes += usize::from(access.writes);
            reads |= access.reads;
        }
    });
    (writes, reads)
}

/// Whether the bytes of a tile's region are also those of another one: what is not written there may be what was written through the other.
fn shares_bytes(program: &Kernel, tile: Value) -> bool {
    let bytes = |op: &Op| match op.kind {
        OpKind::Region(RegionOp::Place { offset, bytes, .. }) => Some((offset, offset + bytes)),
        _ => None,
    };
    let Some((region, _)) = place(program, tile) else { return false };
    let Some((first, end)) = program.def_op(region).and_then(bytes) else { return false };
    let others = program.ops.iter().filter(|op| op.results.first() != Some(&region)).filter_map(bytes);
    others.into_iter().any(|(start, last)| start < end && first < last)
}

/// The mistakes about memory that can be made at an operation.
pub(super) fn mutants_of(program: &Kernel, id: OpId) -> Vec<(&'static str, Kernel)> {
    let op = program.op(id);
    let mut all = Vec::new();
    match op.kind {
        OpKind::Region(RegionOp::Tile { offset, elem, shape }) => {
            let moved = |offset| with(program, id, OpKind::Region(RegionOp::Tile { offset, elem, shape }));
            all.push(("a tile at an odd address", moved(offset + 2)));
            let part = program.def_op(op.args[0]).filter(|part| part.kind == OpKind::Region(RegionOp::At));
            let region = part.map_or(op.args[0], |part| part.args[0]);
            if let Some(OpKind::Region(RegionOp::Place { bytes, parts, .. })) =
                program.def_op(region).map(|op| &op.kind)
            {
                all.push(("a tile beyond its part", moved(bytes / parts)));
            }
        }
        OpKind::Region(RegionOp::Place { bytes, parts, .. }) => {
            let place = |offset, parts| OpKind::Region(RegionOp::Place { offset, bytes, parts });
            all.push(("a region beyond shared memory", with(program, id, place(232_448, parts))));
            let region = op.results[0];
            let claimed = program
                .ops
                .iter()
                .any(|op| matches!(op.kind, OpKind::Ttg(TtgOp::Claim(..))) && op.args.first() == Some(&region));
            if claimed {
                let OpKind::Region(RegionOp::Place { offset, .. }) = op.kind else { return all };
                let more = OpKind::Region(RegionOp::Place { offset, bytes: 2 * bytes, parts: 2 * parts });
                all.push(("parts that are not the slots", with(program, id, more)));
            }
        }
        // Where something else writes the tile, its old contents are read.
        OpKind::Local(LocalOp::Store) if users(program, op.args[1]) == (1, true) => {
            let shared = shares_bytes(program, op.args[1]);
            let kind =
                if shared { "a tile over another one that nothing writes" } else { "a tile that nothing writes" };
            all.push((kind, without(program, id)));
        }
        OpKind::Local(LocalOp::Copy { asynchronous }) => {
            // What nobody reads need not be there.
            if users(program, op.args[1]).1 && shares_bytes(program, op.args[1]) {
                all.push(("a copy over other tiles that is not made", without(program, id)));
            } else if users(program, op.args[1]).1 {
                all.push(("a copy that is not made", without(program, id)));
                all.push(("a copy in one arm of a branch", in_one_arm(program, id)));
            }
            if asynchronous {
                all.push(("a copy that is made twice", twice(program, id)));
            }
            if let Def::Result(source, _) = program.value(op.args[0]).def
                && matches!(program.op(source).kind, OpKind::Ttg(TtgOp::Source(..)))
            {
                let like = program.ty(program.op(source).args[0]);
                let output = stored_elsewhere(program, id).into_iter().find(|to| program.ty(*to) == like);
                let read = output.map(|to| with_arg(program, source, 0, to));
                all.extend(read.map(|mutant| ("a copy from what another role stores", mutant)));
            }
        }
        OpKind::Nv(NvOp::BarrierSync { id: number, threads }) => {
            let more = OpKind::Nv(NvOp::BarrierSync { id: number, threads: threads + 32 });
            all.push(("a barrier of more threads than its role has", with(program, id, more)));
        }
        _ => {}
    }
    all
}

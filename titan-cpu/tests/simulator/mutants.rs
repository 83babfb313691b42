//! Barrier programs with one mistake of the lowering in them: a wait, an arrival, a count, a parity, a slot, a barrier or a claim
//! that is gone or not the right one. What the verifier accepts of them computes what the kernel does, without a race, in every
//! order of completion: the simulator finds nothing in it that the verifier does not.

use super::mutants_of_clusters as clusters;
use std::collections::BTreeSet;
use titan_core::ir::traffic::{On, traffic};
use titan_core::ir::{
    BinOp, Claim, Const, Def, Effect, Elem, Kernel, LocalOp, NvGroup, NvOp, Op, OpId, OpKind, Pred, RegionOp, TtgOp,
    Value, ValueData,
};

/// The program without an operation that has no results.
pub(super) fn without(program: &Kernel, id: OpId) -> Kernel {
    let mut mutant = program.clone();
    mutant.blocks.iter_mut().for_each(|block| block.ops.retain(|op| *op != id));
    mutant.canonical()
}

/// The program with another operation in a place.
pub(super) fn with(program: &Kernel, id: OpId, kind: OpKind) -> Kernel {
    let mut mutant = program.clone();
    mutant.ops[id.index()].kind = kind;
    mutant
}

pub(super) fn with_arg(program: &Kernel, id: OpId, at: usize, arg: Value) -> Kernel {
    let mut mutant = program.clone();
    mutant.ops[id.index()].args[at] = arg;
    mutant
}

/// The program with an operand of an operation computed anew, by operations before it; each takes the results of the ones before, and the
/// operand.
pub(super) fn with_computed(program: &Kernel, id: OpId, at: usize, kinds: &[OpKind]) -> Kernel {
    let mut mutant = program.clone();
    let block = mutant.blocks.iter().position(|block| block.ops.contains(&id)).expect("its block");
    let like = program.value(program.op(id).args[at]).clone();
    let mut values = Vec::new();
    for kind in kinds {
        let op = OpId::new(mutant.ops.len());
        let result = Value::new(mutant.values.len());
        let args = if matches!(kind, OpKind::Const(_)) { Vec::new() } else { values.clone() };
        let args = args.into_iter().chain((!matches!(kind, OpKind::Const(_))).then_some(program.op(id).args[at]));
        mutant.ops.push(Op {
            kind: kind.clone(),
            args: args.collect(),
            results: vec![result],
            ..program.op(id).clone()
        });
        mutant.values.push(ValueData { def: Def::Result(op, 0), ..like.clone() });
        let place = mutant.blocks[block].ops.iter().position(|other| *other == id).expect("its place");
        mutant.blocks[block].ops.insert(place, op);
        values.push(result);
    }
    mutant.ops[id.index()].args[at] = *values.last().expect("a new operand");
    mutant
}

/// The programs of a cluster.
pub(super) fn cluster(program: &Kernel) -> u32 {
    program.laid_out.as_deref().map_or(1, |laid| laid.cluster)
}

/// The program with an operation behind the one that follows it.
fn later(program: &Kernel, id: OpId) -> Option<Kernel> {
    let mut mutant = program.clone();
    for block in &mut mutant.blocks {
        let Some(at) = block.ops.iter().position(|op| *op == id) else { continue };
        let next = block.ops.get(at + 1).map(|next| program.op(*next))?;
        let crosses = !matches!(next.kind.effect(), Effect::Pure | Effect::Control)
            && !matches!(next.kind, OpKind::Nv(NvOp::MbarrierAt));
        if !crosses {
            return None;
        }
        block.ops.swap(at, at + 1);
        return Some(mutant);
    }
    None
}

/// The program with an operation behind the next one in its block of which this holds.
pub(super) fn behind(program: &Kernel, id: OpId, holds: impl Fn(&OpKind) -> bool) -> Option<Kernel> {
    let mut mutant = program.clone();
    let block = mutant.blocks.iter_mut().find(|block| block.ops.contains(&id))?;
    let at = block.ops.iter().position(|op| *op == id)?;
    let to = block.ops[at..].iter().position(|op| holds(&program.op(*op).kind))? + at;
    block.ops.remove(at);
    block.ops.insert(to, id);
    Some(mutant)
}

fn copies(program: &Kernel) -> bool {
    program.ops.iter().any(|op| op.kind == OpKind::Local(LocalOp::Copy { asynchronous: true }))
}

fn copies_in_bulk(program: &Kernel) -> bool {
    program.ops.iter().any(|op| matches!(op.kind, OpKind::Nv(NvOp::BulkLoad { .. })))
}

/// Whether a tile in shared memory is part of a slot of a ring.
fn is_of_a_slot(program: &Kernel, tile: Value) -> bool {
    let slots = std::iter::successors(program.def_op(tile), |op| op.args.first().and_then(|arg| program.def_op(*arg)));
    slots.into_iter().any(|op| op.kind == OpKind::Region(RegionOp::At))
}

/// The slot after this one, if the program has it.
fn next_slot(program: &Kernel, slot: Value) -> Option<Value> {
    program.ops.iter().find_map(|op| {
        let [_, _, sum] = op.args[..] else { return None };
        let sum = program.def_op(sum).filter(|_| op.kind == OpKind::Select)?;
        let next = sum.kind == OpKind::Binary(BinOp::Add) && sum.args.first() == Some(&slot);
        op.results.first().copied().filter(|_| next)
    })
}

/// The numbers of named barriers.
fn named_barriers(program: &Kernel) -> BTreeSet<u8> {
    let number = |op: &Op| if let OpKind::Nv(NvOp::BarrierSync { id, .. }) = op.kind { Some(id) } else { None };
    program.ops.iter().filter_map(number).collect()
}

/// Whether a comparison says that a slot begins again.
fn is_end_of_clock(program: &Kernel, compared: Value) -> bool {
    let begins =
        |op: &Op| op.kind == OpKind::Select && op.args[0] == compared && program.int_constant(op.args[1]) == Some(0);
    program.ops.iter().any(begins)
}

/// Whether an operation gives the other parity, for a slot that begins again.
fn flips(program: &Kernel, op: &Op) -> bool {
    let chosen =
        |other: &Op| other.kind == OpKind::Select && other.args[1] == op.results[0] && other.args[2] == op.args[1];
    program.int_constant(op.args[0]) == Some(1) && program.ops.iter().any(chosen)
}

/// Another constant of the program.
fn another(program: &Kernel, than: Value) -> Option<Value> {
    let number = program.int_constant(than)?;
    program.ops.iter().find_map(|op| {
        let value = op.results.first().copied().filter(|_| matches!(op.kind, OpKind::Const(_)))?;
        (program.int_constant(value)? != number).then_some(value)
    })
}

/// The operations whose results something depends on.
pub(super) fn live(program: &Kernel) -> BTreeSet<OpId> {
    let mut live: BTreeSet<OpId> = BTreeSet::new();
    let mut open: Vec<OpId> = Vec::new();
    program.walk(&mut |id, op| {
        if op.kind.effect() != Effect::Pure && !matches!(op.kind, OpKind::Nv(NvOp::MbarrierAt)) {
            open.push(id);
        }
    });
    while let Some(id) = open.pop() {
        if live.insert(id) {
            for arg in &program.op(id).args {
                if let Def::Result(def, _) = program.value(*arg).def {
                    open.push(def);
                }
            }
        }
    }
    live
}

/// What may be wrong at one operation.
pub(super) fn mutants_of(program: &Kernel, id: OpId) -> Vec<(&'static str, Kernel)> {
    let op = program.op(id);
    let mut all = clusters::mutants_of(program, id);
    let gone = |name| (name, without(program, id));
    if traffic(&op.kind).accesses.into_iter().flatten().any(|a| a.on == On::Tensor && a.writes) {
        all.push(gone("a store is gone"));
    }
    match op.kind {
        OpKind::Nv(nv) => match nv {
            NvOp::WaitParity => {
                all.push(gone("a wait for a parity is gone"));
                let parity = program.def_op(op.args[1]);
                if let Some(minus) = parity.filter(|p| p.kind == OpKind::Binary(BinOp::Sub)) {
                    all.push(("a wait for the other parity", with_arg(program, id, 1, minus.args[1])));
                }
                if let Some(rem) = parity.filter(|p| p.kind == OpKind::Binary(BinOp::Rem)) {
                    all.push(("a wait for a round, not its parity", with_arg(program, id, 1, rem.args[0])));
                }
                let number = |n| OpKind::Const(Const::Int(Elem::I32, n));
                if parity.is_none_or(|p| p.kind != OpKind::Binary(BinOp::Sub)) {
                    let other = [number(1), OpKind::Binary(BinOp::Sub)];
                    all.push(("a wait for the other parity", with_computed(program, id, 1, &other)));
                }
                if program.int_constant(op.args[1]).is_none() {
                    all.push(("a wait for a parity that never changes", with_computed(program, id, 1, &[number(0)])));
                }
                all.extend(later(program, id).map(|mutant| ("a wait for a parity after its claim", mutant)));
            }
            NvOp::SequenceWait => {
                all.push(gone("a wait for a counter is gone"));
                all.extend(later(program, id).map(|mutant| ("a wait for a counter after its claim", mutant)));
                let slot = program.def_op(op.args[0]).map(|at| at.args[1]);
                let slot = slot.filter(|slot| program.int_constant(*slot).is_none());
                all.extend(slot.map(|slot| ("a wait for a slot, not a round", with_arg(program, id, 1, slot))));
            }
            NvOp::SequenceStore => {
                all.push(gone("a counter is not stored"));
                let before = program.def_op(op.args[1]).filter(|sum| sum.kind == OpKind::Binary(BinOp::Add));
                all.extend(before.map(|sum| ("a counter one too low", with_arg(program, id, 1, sum.args[0]))));
            }
            NvOp::SequenceInit => all.push(gone("counters are not initialised")),
            NvOp::Arrive { arrivals } => {
                all.push(gone("an arrival is gone"));
                if cluster(program) > 1 {
                    let kind = OpKind::Nv(NvOp::ArriveCluster { arrivals });
                    all.push(("an arrival in all programs of the cluster", with(program, id, kind)));
                }
                all.push((
                    "an arrival of fewer",
                    with(program, id, OpKind::Nv(NvOp::Arrive { arrivals: arrivals - 1 })),
                ));
                all.push((
                    "an arrival of more",
                    with(program, id, OpKind::Nv(NvOp::Arrive { arrivals: arrivals + 1 })),
                ));
                all.extend(later(program, id).map(|mutant| ("an arrival after its claim", mutant)));
            }
            NvOp::ArriveCluster { arrivals } => {
                all.push(gone("an arrival in the cluster is gone"));
                let alone = OpKind::Nv(NvOp::Arrive { arrivals });
                all.push(("an arrival in the cluster only in the own program", with(program, id, alone)));
                let kind = |arrivals| OpKind::Nv(NvOp::ArriveCluster { arrivals });
                all.push(("an arrival of fewer in the cluster", with(program, id, kind(arrivals - 1))));
                all.push(("an arrival of more in the cluster", with(program, id, kind(arrivals + 1))));
                all.extend(later(program, id).map(|mutant| ("an arrival in the cluster after its claim", mutant)));
            }
            NvOp::ClusterArrive => all.push(gone("an arrival at the cluster barrier is gone")),
            NvOp::ClusterWait => {
                all.push(gone("a wait at the cluster barrier is gone"));
                let is_arrival = |kind: &OpKind| *kind == OpKind::Nv(NvOp::ClusterArrive);
                let both = program.block(program.body).ops.iter().position(|o| *o == id).and_then(|at| {
                    let before = *program.block(program.body).ops.get(at.checked_sub(1)?)?;
                    is_arrival(&program.op(before).kind).then_some(before)
                });
                let both = both.map(|before| without(&without(program, id), before));
                let name = if clusters::is_before_roles(program, id) {
                    "a rendezvous of the cluster before the roles is gone"
                } else {
                    "a rendezvous of the cluster behind the roles is gone"
                };
                all.extend(both.map(|mutant| (name, mutant)));
            }
            NvOp::ClusterRank => {
                let same = OpKind::Const(Const::Int(Elem::I32, 0));
                all.push(("all programs of a cluster take one tile", with(program, id, same)));
                let sums = program.ops.iter().enumerate().filter(|(_, sum)| sum.args.get(1) == Some(&op.results[0]));
                for (sum, args) in sums.map(|(i, sum)| (OpId::new(i), &sum.args)) {
                    all.push(("a coordinate that is a rank", with_arg(program, sum, 0, args[1])));
                    let cluster = program.def_op(args[0]).map(|product| product.args[0]);
                    let close = cluster.map(|cluster| with_arg(program, sum, 0, cluster));
                    all.extend(close.map(|mutant| ("tiles of clusters that overlap", mutant)));
                }
            }
            NvOp::CpAsyncArrive { arrivals, noinc } => {
                all.push(gone("an arrival of copies is gone"));
                let kind = |noinc, arrivals| OpKind::Nv(NvOp::CpAsyncArrive { noinc, arrivals });
                all.push(("an arrival of copies that raises the count", with(program, id, kind(!noinc, arrivals))));
                all.push(("an arrival of copies of fewer", with(program, id, kind(noinc, arrivals - 1))));
                all.push((
                    "copies that threads arrive for at once",
                    with(program, id, OpKind::Nv(NvOp::Arrive { arrivals })),
                ));
            }
            NvOp::MbarrierInit { count } => {
                all.push(gone("a barrier is not initialised"));
                all.push(("a count too high", with(program, id, OpKind::Nv(NvOp::MbarrierInit { count: count + 1 }))));
                all.push(("a count too low", with(program, id, OpKind::Nv(NvOp::MbarrierInit { count: count - 1 }))));
            }
            NvOp::MbarrierAt => {
                let next = next_slot(program, op.args[1]);
                all.extend(next.map(|next| ("the barrier of the next slot", with_arg(program, id, 1, next))));
                let other = program.ops.iter().find_map(|o| {
                    let alloc = o.results.first().copied().filter(|v| *v != op.args[0])?;
                    matches!(o.kind, OpKind::Nv(NvOp::MbarrierAlloc { .. })).then_some(alloc)
                });
                all.extend(other.map(|other| ("a barrier of another kind or ring", with_arg(program, id, 0, other))));
            }
            NvOp::ArriveExpectTx { bytes } => {
                all.push(gone("an arrival that expects bytes is gone"));
                let kind = |bytes| OpKind::Nv(NvOp::ArriveExpectTx { bytes });
                all.push(("fewer bytes are expected", with(program, id, kind(bytes - 16))));
                all.push(("more bytes are expected", with(program, id, kind(bytes + 16))));
                all.push((
                    "an arrival that expects nothing",
                    with(program, id, OpKind::Nv(NvOp::Arrive { arrivals: 1 })),
                ));
                let is_copy = |kind: &OpKind| matches!(kind, OpKind::Nv(NvOp::BulkLoad { .. }));
                all.extend(behind(program, id, is_copy).map(|mutant| ("bytes expected after the copy", mutant)));
            }
            NvOp::BulkLoad { tensor, bytes, multicast, strided } => {
                all.push(gone("a bulk copy is gone"));
                let kind = |bytes| OpKind::Nv(NvOp::BulkLoad { tensor, bytes, multicast, strided });
                if multicast != 0 {
                    let to = |multicast| OpKind::Nv(NvOp::BulkLoad { tensor, bytes, multicast, strided });
                    all.push(("a copy for all that is for the own program", with(program, id, to(0))));
                    all.push(("a copy for all that is for the first program", with(program, id, to(1))));
                    let more = (2 << cluster(program)) - 1;
                    all.push(("a copy for more programs than there are", with(program, id, to(more))));
                } else if cluster(program) > 1 {
                    let all_of_them = (1 << cluster(program)) - 1;
                    let to = OpKind::Nv(NvOp::BulkLoad { tensor, bytes, multicast: all_of_them, strided });
                    all.push(("a copy of different tiles for all", with(program, id, to)));
                }
                all.push(("a bulk copy of fewer bytes", with(program, id, kind(bytes - 16))));
                all.push(("a bulk copy of more bytes", with(program, id, kind(bytes + 16))));
                let is_claim = |kind: &OpKind| matches!(kind, OpKind::Ttg(TtgOp::Claim(..)));
                all.extend(behind(program, id, is_claim).map(|mutant| ("a bulk copy after its claim", mutant)));
            }
            NvOp::FenceMbarrierInit => all.push(gone("a fence of initialised barriers is gone")),
            NvOp::WgmmaFence => all.push(gone("a fence of registers is gone")),
            NvOp::Wgmma => {
                let acc = program.def_op(op.args[2]).filter(|op| op.kind == OpKind::Nv(NvOp::Wgmma));
                all.extend(acc.map(|acc| ("an accumulator that was used", with_arg(program, id, 2, acc.args[2]))));
            }
            NvOp::Commit { group: NvGroup::Wgmma, .. } => {
                all.push(gone("a group of MMAs is not committed"));
                let is_wait = |kind: &OpKind| matches!(kind, OpKind::Nv(NvOp::WaitGroup { .. }));
                all.extend(behind(program, id, is_wait).map(|mutant| ("MMAs committed after the wait", mutant)));
            }
            NvOp::WaitGroup { group: group @ NvGroup::Wgmma, n, read } => {
                if op.results.is_empty() {
                    all.push(gone("a wait for MMAs is gone"));
                }
                let more = OpKind::Nv(NvOp::WaitGroup { group, n: n + 1, read });
                all.push(("a wait that leaves one more group of MMAs", with(program, id, more)));
                let is_release = |kind: &OpKind| matches!(kind, OpKind::Ttg(TtgOp::Claim(Claim::Released, _)));
                all.extend(behind(program, id, is_release).map(|mutant| ("MMAs waited for after the release", mutant)));
            }
            NvOp::Commit { group: NvGroup::BulkStore, .. } => all.push(gone("a group of bulk stores is not committed")),
            NvOp::WaitGroup { group: group @ NvGroup::BulkStore, n, read } => {
                all.push(gone("a wait for bulk stores is gone"));
                let kind = |n, read| OpKind::Nv(NvOp::WaitGroup { group, n, read });
                all.push(("a wait that leaves one more group of bulk stores", with(program, id, kind(n + 1, read))));
                let only_read = "a wait for what bulk stores read, not for what they write";
                all.extend((!read).then(|| (only_read, with(program, id, kind(n, true)))));
                all.extend(later(program, id).map(|mutant| ("a wait for bulk stores, one later", mutant)));
            }
            NvOp::BulkStore { tensor, bytes } => {
                let kind = |bytes| OpKind::Nv(NvOp::BulkStore { tensor, bytes });
                all.push(("a bulk store of fewer bytes", with(program, id, kind(bytes - 16))));
                all.push(("a bulk store of more bytes", with(program, id, kind(bytes + 16))));
            }
            NvOp::SetMaxNReg { registers } => {
                all.push(gone("the number of registers is not set"));
                let kind = |registers| OpKind::Nv(NvOp::SetMaxNReg { registers });
                all.push(("more registers than there are", with(program, id, kind(256))));
                all.push(("registers that are not a multiple of 8", with(program, id, kind(registers + 4))));
            }
            // Groups matter where something is copied.
            NvOp::Commit { .. } | NvOp::WaitGroup { .. } if !copies(program) => {}
            NvOp::Commit { .. } => all.push(gone("a group is not committed")),
            NvOp::WaitGroup { group, n, read } => {
                all.push(gone("a wait for groups is gone"));
                all.push((
                    "a wait that leaves one more group",
                    with(program, id, OpKind::Nv(NvOp::WaitGroup { group, n: n + 1, read })),
                ));
                all.extend(later(program, id).map(|mutant| ("a wait for groups, one later", mutant)));
            }
            NvOp::BarrierSync { id: named, threads } => {
                all.push(gone("a barrier between warps is gone"));
                let fewer = NvOp::BarrierSync { id: named, threads: threads - 32 };
                let at = id;
                let other = |id| OpKind::Nv(NvOp::BarrierSync { id, threads });
                if named > 0 {
                    let numbers = named_barriers(program);
                    let used = numbers.iter().find(|number| **number != 0 && **number != named);
                    all.extend(used.map(|id| ("a named barrier of another role", with(program, at, other(*id)))));
                    let free = (1..16).find(|id| !numbers.contains(id));
                    all.extend(free.map(|id| ("a named barrier that is not used", with(program, at, other(id)))));
                    all.push(("the barrier of the program in a role", with(program, at, other(0))));
                }
                all.push(("a barrier between fewer warps", with(program, id, OpKind::Nv(fewer))));
                all.extend(later(program, id).map(|mutant| ("a barrier between warps, one later", mutant)));
            }
            NvOp::WarpSync => {
                all.push(gone("a barrier within a warp is gone"));
                all.extend(later(program, id).map(|mutant| ("a barrier within a warp, one later", mutant)));
            }
            _ => {}
        },
        OpKind::Local(LocalOp::Copy { asynchronous })
            if copies_in_bulk(program) && is_of_a_slot(program, op.args[1]) =>
        {
            all.push(gone("a copy by threads is gone"));
            let other = OpKind::Local(LocalOp::Copy { asynchronous: !asynchronous });
            all.push(("a copy by threads of the other kind", with(program, id, other)));
            let is_claim = |kind: &OpKind| matches!(kind, OpKind::Ttg(TtgOp::Claim(..)));
            all.extend(behind(program, id, is_claim).map(|mutant| ("a copy by threads after its claim", mutant)));
        }
        OpKind::Ttg(TtgOp::Fence { .. }) => {
            all.push(gone("a fence between proxies is gone"));
            all.extend(later(program, id).map(|mutant| ("a fence between proxies, one later", mutant)));
        }
        OpKind::Region(RegionOp::At) => {
            let next = next_slot(program, op.args[1]);
            all.extend(next.map(|next| ("the part of the next slot", with_arg(program, id, 1, next))));
        }
        OpKind::Ttg(TtgOp::Claim(..)) => {
            all.push(gone("a claim is gone"));
            let next = next_slot(program, op.args[1]);
            all.extend(next.map(|next| ("a claim of the next slot", with_arg(program, id, 1, next))));
        }
        OpKind::Select if op.args.len() == 3 && program.int_constant(op.args[1]) == Some(0) => {
            all.push(("a slot that does not wrap", with_arg(program, id, 1, op.args[2])));
        }
        OpKind::Unflatten | OpKind::UnflattenGrouped(_) if cluster(program) > 1 && op.args.len() == 3 => {
            let swapped = with_arg(&with_arg(program, id, 1, op.args[2]), id, 2, op.args[1]);
            all.push(("tiles of a cluster in another order", swapped));
        }
        OpKind::Binary(BinOp::Sub) if flips(program, op) => {
            all.push(("a round that counts, and not its parity", with(program, id, OpKind::Binary(BinOp::Add))));
        }
        OpKind::Cmp(Pred::Eq) if is_end_of_clock(program, op.results[0]) => {
            let other = another(program, op.args[1]);
            all.extend(other.map(|other| ("a number compared with another constant", with_arg(program, id, 1, other))));
        }
        _ => {}
    }
    all
}

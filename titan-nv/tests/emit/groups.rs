//! Cases of bulk copies, of the MMAs of warpgroups, and of what these need.

use crate::cases::{Case, begin, load, store};
use titan_core::ir::{Elem, Swizzle};
use titan_core::lane::{Builder, GroupMma, GroupOperand, IntBin, MmaAtom, NvOp, OpKind, Ty, Value};
use titan_core::launch::abi::{MapParam, PartMap};
use titan_nv::Machine;
use titan_nv::machine::Feature;

/// The elements of A and B.
const PAIRS: [(Elem, Elem); 11] = [
    (Elem::F16, Elem::F16),
    (Elem::Bf16, Elem::Bf16),
    (Elem::Tf32, Elem::Tf32),
    (Elem::E4m3, Elem::E4m3),
    (Elem::E4m3, Elem::E5m2),
    (Elem::E5m2, Elem::E4m3),
    (Elem::E5m2, Elem::E5m2),
    (Elem::I8, Elem::I8),
    (Elem::I8, Elem::U8),
    (Elem::U8, Elem::I8),
    (Elem::U8, Elem::U8),
];

/// What a target must have for a case.
pub(crate) fn needs(kind: &OpKind) -> Option<Feature> {
    match kind {
        OpKind::Nv(NvOp::MbarrierExpect { .. }) => Some(Feature::TransactionBarrier),
        OpKind::Nv(NvOp::MbarrierFence | NvOp::BulkLoad { .. })
        | OpKind::Nv(NvOp::BulkStore { .. } | NvOp::BulkCommit)
        | OpKind::Nv(NvOp::BulkWait { .. } | NvOp::ProxyFence { .. })
        | OpKind::Nv(NvOp::MapEntry(_))
        | OpKind::Nv(NvOp::Elect) => Some(Feature::Tma),
        OpKind::Nv(NvOp::MakeMap { .. }) => Some(Feature::ReplaceMap),
        OpKind::Nv(NvOp::MapCluster | NvOp::MbarrierArriveCluster { .. })
        | OpKind::Nv(NvOp::ClusterArrive | NvOp::ClusterWait) => Some(Feature::Cluster),
        OpKind::Nv(NvOp::StoreMatrix { .. }) => Some(Feature::StMatrix),
        OpKind::Nv(NvOp::SetMaxRegisters { .. }) => Some(Feature::SetMaxNReg),
        OpKind::Nv(NvOp::GroupFence)
        | OpKind::Nv(NvOp::GroupMma(_))
        | OpKind::Nv(NvOp::GroupCommit)
        | OpKind::Nv(NvOp::GroupWait(_)) => Some(Feature::Wgmma),
        _ => None,
    }
}

/// The first operation of a case that a machine without them refuses: MMAs stand behind a fence.
pub(crate) fn first(kind: &OpKind) -> OpKind {
    match kind {
        OpKind::Nv(NvOp::GroupMma(_)) | OpKind::Nv(NvOp::GroupCommit) | OpKind::Nv(NvOp::GroupWait(_)) => {
            OpKind::Nv(NvOp::GroupFence)
        }
        kind => kind.clone(),
    }
}

/// Whether a machine refuses a case.
pub(crate) fn refuses(kind: &OpKind, machine: &Machine) -> bool {
    needs(kind).is_some_and(|feature| !machine.has(feature))
}

fn case(name: &str, kind: OpKind, args: &[Ty], fill: impl FnOnce(&mut Builder, &[Value]) -> Vec<Value>) -> Case {
    let (mut b, from, to) = begin(name, args.len().max(1), 1);
    let operands: Vec<Value> = (0..args.len()).map(|i| load(&mut b, args[i], from, i)).collect();
    let given = fill(&mut b, &operands);
    let mut sum = b.i32(0);
    for value in given {
        sum = b.int(IntBin::Xor, sum, value);
    }
    store(&mut b, sum, to, 0);
    b.terminate(OpKind::Return, &[]);
    Case { kind, args: args.to_vec(), func: b.finish().expect("the operands fit") }
}

/// One operation without results.
fn plain(kind: OpKind, args: &[Ty]) -> Case {
    let name = titan_core::lane::mnemonic(&kind);
    case(&name, kind.clone(), args, |b, operands| {
        b.op(kind, operands);
        Vec::new()
    })
}

/// A map of a whole tensor, and two of which there are tables.
fn tables(b: &mut Builder) {
    let ending = |table| PartMap::Ending { table, axes: vec![0, 1], entries: Some(0) };
    for part in [PartMap::Whole, ending(0), ending(1)] {
        b.map_number(MapParam { param: 0, elem: Elem::F16, extents: vec![8, 64], swizzle: Swizzle::B128, part });
    }
}

fn bulk_load(rank: u8, multicast: u16, masked: bool) -> Case {
    let kind = OpKind::Nv(NvOp::BulkLoad { rank, multicast, masked });
    let mut args = vec![Ty::B32; 2 + usize::from(rank)];
    args.extend(masked.then_some(Ty::Pred));
    let name = titan_core::lane::mnemonic(&kind);
    case(&name, kind.clone(), &args, |b, operands| {
        let extents = vec![16; usize::from(rank)];
        let map =
            b.tensor_map(MapParam { param: 0, elem: Elem::F32, extents, swizzle: Swizzle::B64, part: PartMap::Whole });
        b.op(kind, &[&[map][..], operands].concat());
        Vec::new()
    })
}

fn bulk_store(rank: u8) -> Case {
    let kind = OpKind::Nv(NvOp::BulkStore { rank });
    let name = titan_core::lane::mnemonic(&kind);
    case(&name, kind.clone(), &vec![Ty::B32; 1 + usize::from(rank)], |b, operands| {
        let extents = vec![16; usize::from(rank)];
        let map =
            b.tensor_map(MapParam { param: 0, elem: Elem::F32, extents, swizzle: Swizzle::B64, part: PartMap::Whole });
        b.op(kind, &[&[map][..], operands].concat());
        b.op(NvOp::BulkCommit, &[]);
        b.op(NvOp::BulkWait { n: 0, read: false }, &[]);
        Vec::new()
    })
}

fn group_mma((a, b): (Elem, Elem), n: u32, from: GroupOperand, fresh: bool) -> Option<Case> {
    let acc = if a.is_float() { Elem::F32 } else { Elem::I32 };
    let atom = MmaAtom { m: 64, n, k: 256 / a.bits(), a, b, acc };
    let mma = GroupMma { atom, a: from, b_transposed: false, fresh };
    titan_nv::ptx::isa::group::mma((n, a, b, from == GroupOperand::Registers))?;
    let kind = OpKind::Nv(NvOp::GroupMma(mma));
    let (words, registers) = mma.registers();
    let mut args = if words > 0 { vec![Ty::B32; words] } else { vec![Ty::B64] };
    args.push(Ty::B64);
    let name = titan_core::lane::mnemonic(&kind);
    Some(case(&name, kind.clone(), &args, |b, operands| {
        b.op(NvOp::GroupFence, &[]);
        let zero = b.i32(0);
        let c = vec![zero; if fresh { 0 } else { registers }];
        let given = b.op(kind, &[operands, &c[..]].concat());
        b.op(NvOp::GroupCommit, &[]);
        b.op(NvOp::GroupWait(0), &given)
    }))
}

pub(crate) fn all() -> Vec<Case> {
    let mut cases = vec![
        plain(OpKind::Nv(NvOp::MbarrierExpect { bytes: 4096, masked: false }), &[Ty::B32]),
        plain(OpKind::Nv(NvOp::MbarrierExpect { bytes: 1 << 17, masked: true }), &[Ty::B32, Ty::Pred]),
        plain(OpKind::Nv(NvOp::MbarrierFence), &[]),
        plain(OpKind::Nv(NvOp::ClusterArrive), &[]),
        plain(OpKind::Nv(NvOp::ClusterWait), &[]),
        plain(OpKind::Nv(NvOp::MbarrierArriveCluster { masked: false }), &[Ty::B32]),
        plain(OpKind::Nv(NvOp::MbarrierArriveCluster { masked: true }), &[Ty::B32, Ty::Pred]),
        case("map_cluster", OpKind::Nv(NvOp::MapCluster), &[Ty::B32, Ty::B32], |b, operands| {
            vec![b.one(NvOp::MapCluster, operands)]
        }),
        plain(OpKind::Nv(NvOp::ProxyFence { cluster: false }), &[]),
        plain(OpKind::Nv(NvOp::ProxyFence { cluster: true }), &[]),
        plain(OpKind::Nv(NvOp::BulkCommit), &[]),
        plain(OpKind::Nv(NvOp::GroupFence), &[]),
        plain(OpKind::Nv(NvOp::SetMaxRegisters { registers: 40, more: false }), &[]),
        plain(OpKind::Nv(NvOp::SetMaxRegisters { registers: 232, more: true }), &[]),
        case("elect", OpKind::Nv(NvOp::Elect), &[], |b, _| {
            let elected = b.one(NvOp::Elect, &[]);
            vec![b.one(OpKind::FromPred, &[elected])]
        }),
        case("tensor_map", OpKind::Nv(NvOp::TensorMap(0)), &[], |b, _| {
            let map = MapParam {
                param: 0,
                elem: Elem::F16,
                extents: vec![8, 64],
                swizzle: Swizzle::B128,
                part: PartMap::Whole,
            };
            let address = b.tensor_map(map);
            vec![b.one(OpKind::Truncate(Ty::B32), &[address])]
        }),
        case("map_entry", OpKind::Nv(NvOp::MapEntry(1)), &[Ty::B32], |b, operands| {
            tables(b);
            let address = b.one(NvOp::MapEntry(1), operands);
            vec![b.one(OpKind::Truncate(Ty::B32), &[address])]
        }),
        case("make_map", OpKind::Nv(NvOp::MakeMap { map: 1, axes: vec![0, 1] }), &[Ty::B32; 3], |b, operands| {
            tables(b);
            b.op(NvOp::MakeMap { map: 1, axes: vec![0, 1] }, operands);
            Vec::new()
        }),
    ];
    cases.extend((1..=5).flat_map(|rank| [false, true].map(|masked| bulk_load(rank, 0, masked))));
    cases.extend((1..=5).flat_map(|rank| [false, true].map(|masked| bulk_load(rank, 0b11, masked))));
    cases.extend((1..=5).map(bulk_store));
    for read in [false, true] {
        cases.extend([0, 1, 7].map(|n| plain(OpKind::Nv(NvOp::BulkWait { n, read }), &[])));
    }
    for n in [1, 2, 4] {
        for (transposed, offset) in [(false, 0), (true, 16)] {
            cases.push(plain(
                OpKind::Nv(NvOp::StoreMatrix { n, transposed, offset }),
                &vec![Ty::B32; 1 + usize::from(n)],
            ));
        }
    }
    let straight = GroupOperand::Shared { transposed: false };
    // A group without an MMA is none to the assembler.
    let with = |kind: &OpKind| group_mma(PAIRS[0], 8, straight, true).map(|case| Case { kind: kind.clone(), ..case });
    cases.extend([OpKind::Nv(NvOp::GroupCommit), OpKind::Nv(NvOp::GroupWait(0))].iter().filter_map(with));
    for pair in PAIRS {
        for n in (8..=256).step_by(8) {
            cases.extend(
                [straight, GroupOperand::Registers].into_iter().filter_map(|from| group_mma(pair, n, from, true)),
            );
        }
        cases.extend(group_mma(pair, 64, straight, false));
    }
    cases
}

/// PTX ISA, "tensormap.replace": the ordinal 0 is the innermost dimension, which is the last axis of a shape.
#[test]
fn extents_of_tensor_maps_are_replaced_in_the_dimensions_of_their_axes() {
    let machine = Machine::from_name("sm_90a").unwrap();
    let made = all().into_iter().find(|case| matches!(case.kind, OpKind::Nv(NvOp::MakeMap { .. }))).unwrap();
    let text = titan_nv::emit(&made.func, machine, None).unwrap().text;
    let of = |line: &str| line.split(',').nth(1).map(|ordinal| ordinal.trim().to_owned());
    let dimensions: Vec<Option<String>> =
        text.lines().filter(|line| line.contains("tensormap.replace")).map(of).collect();
    // Of `axes: [0, 1]` of a matrix.
    assert_eq!(dimensions, [Some("1".to_owned()), Some("0".to_owned())], "{text}");
}

//! A compiled kernel as a variant of an artifact: its code and its assumptions.

use super::backend::Code;
use super::{Made, notes};
use crate::artifact::{Assumption, BankConflict, GridRule, Variant};
use crate::ir::{HostExpr, Kernel, ParamKind};
use crate::pipeline::walk::Tiles;
use crate::plan::Plan;

/// The variant of a kernel, for devices that allow a program at least `granted`
/// bytes of shared memory; 0 for all devices.
pub(super) fn of(kernel: &Kernel, made: Made, code: Code, granted: u32) -> Variant {
    let notes = notes::notes(kernel, &made);
    let Made { schedule, rings, plan, lowered, pays, .. } = made;
    let more = [
        ("warps", plan.warps.to_string()),
        ("barriers", lowered.barriers.to_string()),
        ("access", schedule.arguments.name().to_owned()),
    ];
    let mut config = code.config;
    config.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let asked = kernel.sig.requires.len();
    let of_arguments = if schedule.arguments.aligned() { assumptions(&rings, &plan, asked) } else { Vec::new() };
    let reach = |(param, tile): (u32, Vec<u32>)| Assumption::Reach { param, tile };
    let apart = |(param, axis, rows): (u32, u32, u32)| Assumption::Apart { param, axis, rows };
    let of_tiles = lowered.reaches.into_iter().map(reach).chain(lowered.apart.into_iter().map(apart));
    let on_device = (granted > 0).then_some(Assumption::SharedMemory { bytes: granted });
    let of_launch = pays.map(Assumption::Holds);
    let maps = lowered.func.maps.iter().cloned().map(Assumption::TensorMap);
    let grid = match schedule.walk.tiles {
        Tiles::Persistent(_) => GridRule::Persistent,
        Tiles::Grouped(_) => GridRule::Flat,
        Tiles::Declared => GridRule::Declared,
    };
    Variant {
        target: plan.target.name.to_owned(),
        config,
        assumptions: on_device.into_iter().chain(of_launch).chain(of_arguments).chain(of_tiles).chain(maps).collect(),
        shared_bytes: lowered.func.shared_bytes,
        threads: lowered.func.threads,
        cluster: if lowered.func.cluster > 1 { lowered.func.cluster } else { 0 },
        grid,
        notes,
        conflicts: lowered.conflicts.into_iter().map(|(loc, degree)| BankConflict { loc, degree }).collect(),
        sites: lowered.sites,
        payload: code.payload,
    }
}

/// The assumptions of wide accesses: rows that are aligned to 16 bytes and a multiple of 16 bytes long; offsets that fit in 32 bits; and the
/// additional conditions of prefetching, the first `checked` of which a launch checks anyway.
fn assumptions(kernel: &Kernel, plan: &Plan, checked: usize) -> Vec<Assumption> {
    let more = kernel.sig.requires.iter().skip(checked).cloned();
    let mut out: Vec<Assumption> = more.map(Assumption::Holds).collect();
    for (index, param) in kernel.sig.params.iter().enumerate() {
        let (ParamKind::Tensor { elem, shape, .. }, true) = (&param.kind, plan.vectored.get(index) == Some(&true))
        else {
            continue;
        };
        let (Ok(number), Some(last)) = (u32::try_from(index), shape.len().checked_sub(1)) else { continue };
        out.push(Assumption::UnitStride { param: number, axis: u32::try_from(last).unwrap_or(0) });
        out.push(Assumption::Aligned { param: number, bytes: 16 });
        out.extend((0u32..).zip(&shape[..last]).map(|(axis, _)| Assumption::StrideMultiple {
            param: number,
            axis,
            bytes: 16,
        }));
        out.push(Assumption::Divisible { expr: HostExpr::Dim(index, last), by: i64::from(128 / elem.bits()) });
    }
    if plan.index32() {
        out.push(Assumption::Index32);
    }
    out
}

//! The text form of layouts and encodings; printer and parser share the names.

use crate::ir::{Bit, Encoding, LaidOut, Layout, Swizzle};
use std::fmt::Write;

/// The axes of a tile, from the slowest to the fastest.
pub(super) const AXES: [&str; 4] = ["i", "j", "k", "l"];

const SWIZZLES: [(Swizzle, &str); 4] =
    [(Swizzle::None, "none"), (Swizzle::B32, "b32"), (Swizzle::B64, "b64"), (Swizzle::B128, "b128")];

/// The swizzle with this name.
pub(super) fn swizzle_from_name(name: &str) -> Option<Swizzle> {
    SWIZZLES.iter().find(|(_, n)| *n == name).map(|(swizzle, _)| *swizzle)
}

/// The lines of a laid-out kernel before its body.
pub(super) fn lines(plan: &LaidOut) -> Vec<String> {
    let mut head = format!("plan({}, {}, {}", plan.warps, plan.lanes, plan.free);
    head.push_str(if plan.index32 { ", index32" } else { "" });
    let aligned: Vec<String> =
        plan.aligned.iter().enumerate().filter(|(_, aligned)| **aligned).map(|(i, _)| i.to_string()).collect();
    if !aligned.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(head, ", aligned({})", aligned.join(", "));
    }
    if plan.cluster != 1 {
        let _ = write!(head, ", cluster({})", plan.cluster);
    }
    for stage in &plan.stages {
        let fields: Vec<String> = stage.iter().map(|e| e.index().to_string()).collect();
        let _ = write!(head, ", stages({})", fields.join(", "));
    }
    head.push(')');
    let layouts = plan.layouts.iter().map(layout);
    std::iter::once(head).chain(layouts).chain(plan.encodings.iter().map(encoding)).collect()
}

fn layout(layout: &Layout) -> String {
    let bits = |bits: &[Bit]| {
        let one = |bit: &Bit| match bit {
            Bit::Copy => "copy".to_owned(),
            Bit::Step { axis, by } => format!("{}{by}", AXES.get(usize::from(*axis)).unwrap_or(&"?")),
        };
        bits.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let [regs, lanes, warps] = [layout.register_bits(), layout.lane_bits(), layout.warp_bits()].map(bits);
    format!("layout({}, reg({regs}), lane({lanes}), warp({warps}))", by(layout.extents()))
}

fn encoding(e: &Encoding) -> String {
    let order: Vec<String> = e.order.iter().map(ToString::to_string).collect();
    let swizzle = SWIZZLES.iter().find(|(swizzle, _)| *swizzle == e.swizzle).map_or("?", |(_, name)| name);
    let order = order.join(", ");
    format!("encoding({}, {}, order({order}), row({}, {}), {swizzle})", by(&e.extents), e.bits, e.row, e.pitch)
}

fn by(extents: &[u32]) -> String {
    extents.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

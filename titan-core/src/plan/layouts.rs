//! Chooses the layouts of classes.
use super::Target;
use super::classes::{Classes, is_elementwise};
use super::mma::MmaPlan;
use crate::analysis::uses::Tree;
use crate::collections::SortedMap;
use crate::ir::{Kernel, OpId, OpKind, TtgOp, Value};
use crate::layout::{Bit, Layout};

pub(super) fn choose(
    kernel: &Kernel,
    target: &Target,
    warps: u32,
    classes: &Classes,
    mmas: &SortedMap<OpId, MmaPlan>,
) -> Vec<Option<Layout>> {
    let tree = Tree::new(kernel);
    let mut run = Run { kernel, target, warps, classes, tree, by_class: SortedMap::new() };
    for (id, mma) in mmas {
        run.by_class.entry(classes.class(kernel.op(*id).results[0])).or_insert_with(|| mma.acc.clone());
    }
    let mut members: SortedMap<usize, Vec<Value>> = SortedMap::new();
    for i in 0..kernel.values.len() {
        let value = Value::new(i);
        if classes.has_layout(kernel, value) {
            members.entry(classes.class(value)).or_default().push(value);
        }
    }
    let mut order: Vec<(usize, Vec<Value>)> = members.into_iter().collect();
    let size = |v: &[Value]| v.first().and_then(|v| kernel.ty(*v).tile_shape()).map_or(0, |s| s.len());
    order.sort_by_key(|(class, values)| (std::cmp::Reverse(size(values)), *class));
    for (class, values) in &order {
        if !run.by_class.contains_key(class) {
            let layout = values.iter().find_map(|v| run.beside(*v)).unwrap_or_else(|| run.wide(values));
            run.by_class.insert(*class, layout);
        }
    }
    let mut layouts = vec![None; kernel.values.len()];
    for (class, values) in order {
        for value in values {
            layouts[value.index()] = run.by_class.get(&class).cloned();
        }
    }
    layouts
}

struct Run<'a> {
    kernel: &'a Kernel,
    target: &'a Target,
    warps: u32,
    classes: &'a Classes,
    tree: Tree,
    by_class: SortedMap<usize, Layout>,
}

impl Run<'_> {
    /// The layout of a tile, if its class has one already.
    fn known(&self, value: Value) -> Option<Layout> {
        if !self.classes.has_layout(self.kernel, value) {
            return None;
        }
        self.by_class.get(&self.classes.class(value)).cloned()
    }

    /// The layout that an adjacent operation between shapes (reduction, broadcast, transpose) suggests.
    fn beside(&self, value: Value) -> Option<Layout> {
        self.made(value).or_else(|| self.asked(value))
    }

    /// The layout that the defining operation produces without moving data.
    fn made(&self, value: Value) -> Option<Layout> {
        let op = self.kernel.def_op(value)?;
        if let OpKind::Reduce(_, axis) | OpKind::ArgReduce(_, axis) | OpKind::ReduceWith(axis) = op.kind {
            return Some(self.known(op.args[0])?.without(usize::from(axis)));
        }
        let OpKind::Permute(perm) = op.kind else { return None };
        let rank = self.kernel.ty(value).tile_shape()?.rank();
        Some(self.known(op.args[0])?.permuted(&perm[..rank]))
    }

    /// The layout that a user of the tile requests.
    fn asked(&self, value: Value) -> Option<Layout> {
        self.tree.users(value).iter().find_map(|id| {
            let op = self.kernel.op(*id);
            if let OpKind::Broadcast { axis, .. } = op.kind {
                return Some(self.wanted(op.results[0])?.without(usize::from(axis)));
            }
            if let OpKind::GatherRows { .. } | OpKind::ScatterRows = op.kind {
                let rows = if op.kind == OpKind::ScatterRows { *op.args.last()? } else { op.results[0] };
                return Some(self.known(rows)?.without(1));
            }
            // The layout by which threads copy, so that no iteration of a loop of copies converts the indices.
            if let OpKind::Ttg(TtgOp::SourceRows { .. }) = op.kind {
                let rows = op.results[0];
                let extents: Vec<u32> = self.kernel.ty(rows).tile_shape()?.into();
                let bits = self.kernel.ty(rows).elem().bits().max(8);
                return Some(wide(&extents, bits, self.target.lanes, self.warps).without(1));
            }
            let OpKind::Permute(perm) = op.kind else { return None };
            let rank = self.kernel.ty(value).tile_shape()?.rank();
            let mut back = [0u8; 4];
            for (i, p) in (0u8..).zip(&perm[..rank]) {
                back[usize::from(*p)] = i;
            }
            Some(self.known(op.results[0])?.permuted(&back[..rank]))
        })
    }

    /// The first requested layout of a flexible tile.
    fn wanted(&self, value: Value) -> Option<Layout> {
        if !self.classes.is_flexible(value) {
            return self.known(value);
        }
        self.tree.users(value).iter().find_map(|id| {
            let op = self.kernel.op(*id);
            if is_elementwise(&op.kind) {
                return self.wanted(op.results[0]);
            }
            if let OpKind::Broadcast { axis, .. } = op.kind {
                return Some(self.wanted(op.results[0])?.without(usize::from(axis)));
            }
            let accumulates = op.kind == OpKind::Mma && op.args[2] == value;
            if accumulates { self.known(op.results[0]) } else { None }
        })
    }

    /// A layout with wide accesses: each thread accesses up to 16 bytes of the widest element type.
    fn wide(&self, values: &[Value]) -> Layout {
        let shape = values.first().and_then(|v| self.kernel.ty(*v).tile_shape());
        let bits = values.iter().map(|v| self.kernel.ty(*v).elem().bits()).min().unwrap_or(32);
        let extents: Vec<u32> = shape.map(Into::into).unwrap_or_else(|| vec![1]);
        if values.iter().any(|v| self.is_turned(*v)) {
            return wide_to_turn(&extents, bits, self.target.lanes, self.warps);
        }
        wide(&extents, bits, self.target.lanes, self.warps)
    }

    /// Whether a transpose makes the last axis of the tile another axis.
    fn is_turned(&self, value: Value) -> bool {
        let rank = self.kernel.ty(value).tile_shape().map_or(0, |shape| shape.rank());
        self.tree.users(value).iter().any(|id| {
            let OpKind::Permute(perm) = self.kernel.op(*id).kind else { return false };
            rank > 0 && usize::from(perm[rank - 1]) != rank - 1
        })
    }
}

/// The layout for reads and writes of whole lines: adjacent elements along the last axis in a thread, then lanes along it, then lanes and
/// warps along the other axes.
#[must_use]
pub fn wide(extents: &[u32], bits: u32, lanes: u32, warps: u32) -> Layout {
    wide_within(extents, bits, lanes, warps, lanes)
}

/// The same for tiles that are transposed through shared memory: a warp has at most 128 bytes of each line, and as many lines as that
/// allows. It therefore accesses elements of many rows and columns, which are in different banks on both sides.
#[must_use]
pub fn wide_to_turn(extents: &[u32], bits: u32, lanes: u32, warps: u32) -> Layout {
    let (_, others) = extents.split_last().unwrap_or((&1, &[]));
    let lines = others.iter().fold(1u32, |n, extent| n.saturating_mul(extent.next_power_of_two()));
    let vector = wide(extents, bits, lanes, warps).vector(extents.len() - 1);
    let along = (128 * 8 / (vector * bits)).max(lanes.div_ceil(lines)).max(1);
    wide_within(extents, bits, lanes, warps, along)
}

/// The layout for copies of a matrix through registers to a buffer in which the elements of a column are adjacent: each thread has a block of
/// rows and columns, of which it reads rows and writes columns, up to 16 bytes at once. Adjacent lanes have adjacent blocks of a column, up
/// to 128 bytes, which are all banks.
///
/// **Example.** 64 × 64 elements of 16 bits by a warp of 64 lanes: a thread has 8 × 8 elements. It reads 8 times 16 bytes, of which eight lanes
/// have 128 adjacent bytes, and writes 8 times 16 bytes, of which eight lanes have 64 rows of a column.
#[must_use]
pub(crate) fn wide_through_registers([rows, columns]: [u32; 2], bits: u32, lanes: u32, warps: u32) -> Layout {
    let (warps, spare) = split_warps(warps);
    let pow2 = |n: u32| 1u32 << n.max(1).trailing_zeros();
    let fair = 1 << (rows * columns / (lanes * warps)).max(1).ilog2();
    let most = (128 / bits.max(8)).max(1);
    let down = pow2(rows).min(most).min(fair);
    let across = pow2(columns).min(most).min((fair / down).max(1));
    let steps = |axis: u8, from: u32, n: u32| (0..n.trailing_zeros()).map(move |i| Bit::Step { axis, by: from << i });
    // The remaining lanes and warps have copies.
    let deal = |extent: u32, taken: u32, most: u32| extent.div_ceil(taken).next_power_of_two().min(most.max(1));
    let lanes_down = deal(rows, down, (128 * 8 / (down * bits.max(8))).min(lanes));
    let lanes_across = deal(columns, across, lanes / lanes_down);
    let more_down = deal(rows, down * lanes_down, lanes / (lanes_down * lanes_across));
    let warps_across = deal(columns, across * lanes_across, warps);
    let warps_down = deal(rows, down * lanes_down * more_down, warps / warps_across);
    let copies = |all: u32, used: u32| std::iter::repeat_n(Bit::Copy, (all / used).trailing_zeros() as usize);
    let regs = steps(1, 1, across).chain(steps(0, 1, down)).collect();
    let at_lanes = steps(0, down, lanes_down)
        .chain(steps(1, across, lanes_across))
        .chain(steps(0, down * lanes_down, more_down))
        .chain(copies(lanes, lanes_down * lanes_across * more_down))
        .collect();
    let at_warps = steps(1, across * lanes_across, warps_across)
        .chain(steps(0, down * lanes_down * more_down, warps_down))
        .chain(copies(warps, warps_across * warps_down))
        .collect();
    Layout::new(&[rows, columns], regs, at_lanes, at_warps).with_spare_copies(1, spare)
}

/// The number of warps over which a tile is laid out, the largest power of two, and how many times as many the layout covers: twice, if the
/// other warps are to hold copies.
pub(crate) fn split_warps(warps: u32) -> (u32, u32) {
    let used = 1 << warps.max(1).ilog2();
    (used, warps.next_power_of_two() / used)
}

/// The same with at most `along` lanes along the last axis.
fn wide_within(extents: &[u32], bits: u32, lanes: u32, warps: u32, along: u32) -> Layout {
    let rank = extents.len();
    let last = rank - 1;
    let total: u32 = extents.iter().product();
    let (warps, spare) = split_warps(warps);
    let pow2 = |x: u32| 1u32 << x.trailing_zeros();
    let fair = (total / (lanes * warps)).max(1);
    // Elements that share a byte are held by the same thread.
    let whole = if bits < 8 { 8 / bits } else { 1 };
    let vector = pow2(extents[last]).min(128 / bits.clamp(8, 128)).min(whole.max(1 << fair.ilog2()));
    let mut per_thread = vec![1; rank];
    per_thread[last] = vector;
    let mut left = lanes;
    let deal = |axis: usize, taken: u32, left: &mut u32, most: u32| {
        let n = extents[axis].div_ceil(taken).next_power_of_two().min(*left).min(most);
        *left /= n;
        n
    };
    let mut lane = vec![1; rank];
    for axis in (0..rank).rev() {
        lane[axis] = deal(axis, per_thread[axis], &mut left, if axis == last { along } else { lanes });
    }
    // Remaining lanes go beyond the tile, so that they hold copies.
    lane[last] *= left;
    let mut warp = vec![1; rank];
    let mut left = warps;
    for axis in 0..rank {
        warp[axis] = deal(axis, per_thread[axis] * lane[axis], &mut left, warps);
    }
    warp[last] *= left;
    let order: Vec<usize> = (0..rank).rev().collect();
    Layout::blocked(extents, &per_thread, &lane, &warp, &order).with_spare_copies(1, spare)
}

//! Tensors: the arguments of a run, the positions of a view's elements in them, and the memories of a run.

use super::arith::shape as arrange;
use super::plan::Plan;
use super::value::{Num, View};
use super::work::Work;
use crate::engine::{self, Completion, Engine, Fault, Space};
use titan_core::ir::{Elem, Pipe, TileShape};

/// A tensor argument.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) elem: Elem,
    pub(super) extents: Vec<i64>,
    pub(super) strides: Vec<i64>,
    /// For an input: the caller's bytes.
    pub(super) bytes: Option<Vec<u8>>,
    /// For an output: the address of its first byte in the engine's memory.
    pub(super) base: u64,
}

/// The arguments of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Setup {
    /// For each parameter, its tensor; `None` for a scalar or an absent tensor.
    pub(super) tensors: Vec<Option<Tensor>>,
    pub(super) scalars: Vec<Option<Num>>,
    pub(super) grid: [u32; 3],
}

/// The shape of one row of a tile of rows, with the rank of the view.
pub(super) fn row_shape(view: &View, shape: TileShape) -> Option<TileShape> {
    let mut dims = vec![1; view.extents.len().checked_sub(1)?];
    dims.push(*shape.last()?);
    TileShape::new(&dims)
}

/// Elements that are contiguous both in a tensor and in a tile.
pub(super) struct Run {
    /// The number of the first one in the tile.
    pub(super) at: usize,
    /// The number of the first one in the tensor.
    pub(super) element: u64,
    pub(super) n: usize,
}

/// The position in its tensor of the element of a view at these coordinates.
pub(super) fn element(t: &Tensor, view: &View, at: &[i64]) -> Option<u64> {
    let fixed: i64 = view.start.iter().zip(&t.strides).map(|(s, d)| s * d).sum();
    let moved: i64 = view.axes.iter().zip(at).map(|(axis, i)| i * t.strides.get(*axis).copied().unwrap_or(0)).sum();
    u64::try_from(fixed + moved).ok()
}

/// The part of a tile that lies inside a view, as runs.
pub(super) fn runs(t: &Tensor, view: &View, first: &[i64], shape: TileShape) -> Vec<Run> {
    let (mut out, dims) = (Vec::new(), arrange::extents(shape));
    let Some((width, outer)) = dims.split_last() else { return out };
    if view.outside || first.len() != dims.len() || view.extents.len() != dims.len() {
        return out;
    }
    let last = dims.len() - 1;
    let lo = (-first[last]).clamp(0, *width as i64);
    let hi = (view.extents[last] - first[last]).clamp(lo, *width as i64);
    let step = view.axes.get(last).and_then(|a| t.strides.get(*a)).copied().unwrap_or(1);
    let (lo, hi) = (usize::try_from(lo).unwrap_or(0), usize::try_from(hi).unwrap_or(0));
    for row in 0..outer.iter().product::<usize>() {
        let (mut rest, mut at) = (row, first.to_vec());
        for axis in (0..last).rev() {
            at[axis] += (rest % outer[axis]) as i64;
            rest /= outer[axis];
        }
        let inside = (0..last).all(|a| (0..view.extents[a]).contains(&at[a]));
        let pieces = if step == 1 { vec![(lo, hi - lo)] } else { (lo..hi).map(|i| (i, 1)).collect() };
        for (i, n) in pieces.into_iter().filter(|(_, n)| inside && *n > 0) {
            at[last] = first[last] + i as i64;
            out.extend(element(t, view, &at).map(|element| Run { at: row * width + i, element, n }));
        }
    }
    out
}

/// The byte ranges of a tensor that a tile covers, for events.
pub(super) fn bytes_of(t: &Tensor, view: &View, first: &[i64], shape: TileShape) -> Vec<(u64, u32)> {
    let bits = u64::from(t.elem.bits());
    let range =
        |r: Run| (t.base + r.element * bits / 8, u32::try_from((r.n as u64 * bits).div_ceil(8)).unwrap_or(u32::MAX));
    runs(t, view, first, shape).into_iter().map(range).collect()
}

/// Writes 4-bit values; the first one goes to the upper half of its byte if `odd`.
pub(super) fn put_nibbles(space: &mut Space, at: u64, odd: bool, values: &[u8]) -> Result<(), Fault> {
    let odd = usize::from(odd);
    for (i, value) in values.iter().enumerate() {
        let (address, high) = (at + ((i + odd) / 2) as u64, (i + odd) % 2 == 1);
        let mut byte = [0];
        space.read_any(address, &mut byte)?;
        let byte = if high { byte[0] & 0xF | value << 4 } else { byte[0] & 0xF0 | value & 0xF };
        space.write(address, &[byte])?;
    }
    Ok(())
}

/// The memory of the outputs, with the caller's initial contents.
pub(super) fn outputs(setup: &Setup, initial: &[Option<&[u8]>]) -> Space {
    let mut global = Space::new("device");
    for (t, bytes) in setup.tensors.iter().zip(initial) {
        let (Some(t), Some(bytes)) = (t, bytes) else { continue };
        if global.allocate(t.name.clone(), t.base, bytes.len()).is_some() {
            // The allocation has just been made with this length, so the write succeeds.
            let _ = global.write(t.base, bytes);
        }
    }
    global
}

/// The memories of a cluster: that of the outputs, and the shared memory and the tensor memory of each program. Kernels that do not use
/// tensor memory have none.
pub(super) struct Memories {
    pub(super) global: engine::SpaceId,
    pub(super) shared: Vec<engine::SpaceId>,
    pub(super) tensor: Vec<engine::SpaceId>,
}

/// Creates the engine with the memories of a cluster.
pub(super) fn engine_of(
    plan: &Plan<'_>,
    global: Space,
    ctas: usize,
    data: bool,
    completion: Completion,
) -> (Engine<Work>, Memories) {
    let mut engine = Engine::new(ctas * plan.agents(), completion);
    let global = engine.add_space(global);
    let shared = (0..ctas).map(|_| {
        let mut shared = Space::new("shared");
        if data {
            for (i, ring) in plan.rings.iter().enumerate() {
                let len = usize::try_from(ring.stride * ring.slots).unwrap_or(0);
                shared.allocate(plan.kernel.pipe_name(Pipe::new(i)), ring.base, len);
            }
            let raw = plan.rings.first().map_or(plan.words, |r| r.base);
            shared.allocate("shared memory", 0, usize::try_from(raw).unwrap_or(0));
        }
        engine.add_space(shared)
    });
    let shared = shared.collect();
    let programs = if plan.tensor_memory { ctas } else { 0 };
    let tensor = (0..programs).map(|_| engine.add_space(Space::new("tensor"))).collect();
    (engine, Memories { global, shared, tensor })
}

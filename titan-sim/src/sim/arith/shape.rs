//! Rearrangements of the elements of tiles.

use crate::sim::value::Cells;
use titan_core::ir::TileShape;

/// The extents of a shape.
pub(in crate::sim) fn extents(shape: TileShape) -> Vec<usize> {
    shape.iter().map(|d| usize::try_from(*d).unwrap_or(0)).collect()
}

/// The strides of each axis in elements, row-major.
fn steps(extents: &[usize]) -> Vec<usize> {
    let mut steps = vec![1; extents.len()];
    for i in (1..extents.len()).rev() {
        steps[i - 1] = steps[i] * extents[i];
    }
    steps
}

/// For each element of a result, in row-major order, the number of the source element that `steps`, the strides of the source, lead to.
fn places(result: &[usize], steps: &[usize]) -> impl Iterator<Item = usize> {
    let (result, steps) = (result.to_vec(), steps.to_vec());
    (0..result.iter().product::<usize>()).map(move |i| {
        let (mut rest, mut place) = (i, 0);
        for (extent, step) in result.iter().zip(&steps).rev() {
            place += rest % extent * step;
            rest /= extent;
        }
        place
    })
}

/// Permutes axes: axis `i` of the result is axis `order[i]` of `from`.
pub(in crate::sim) fn permute(cells: &Cells, from: TileShape, order: &[usize]) -> Cells {
    let (extents, all) = (extents(from), steps(&extents(from)));
    let of = |from: &[usize]| -> Vec<usize> { order.iter().filter_map(|p| from.get(*p).copied()).collect() };
    cells.pick(places(&of(&extents), &of(&all)))
}

/// Inserts a new axis of extent `n` before `axis`, along which elements repeat.
pub(in crate::sim) fn broadcast(cells: &Cells, from: TileShape, axis: usize, n: usize) -> Cells {
    let (mut extents, mut steps) = (extents(from), steps(&extents(from)));
    extents.insert(axis.min(extents.len()), n);
    steps.insert(axis.min(steps.len()), 0);
    cells.pick(places(&extents, &steps))
}

/// The part `to` of a tile from element `from` of an axis on.
pub(in crate::sim) fn cut(cells: &Cells, shape: TileShape, to: TileShape, axis: usize, from: usize) -> Cells {
    let steps = steps(&extents(shape));
    let skipped = steps.get(axis).map_or(0, |step| step * from);
    cells.pick(places(&extents(to), &steps).map(|place| place + skipped))
}

/// The elements of one tile and then those of another, along an axis.
pub(in crate::sim) fn concat(cells: [&Cells; 2], shapes: [TileShape; 2], axis: usize) -> Cells {
    let lines = shapes.map(|shape| {
        let (_, n, inner) = along(shape, axis);
        n * inner
    });
    let width = lines[0] + lines[1];
    let outer = cells[0].len() / lines[0].max(1);
    // The number of the tile, and of the element in it, for each element of the result.
    let place = |i: usize| {
        let (line, at) = (i / width, i % width);
        if at < lines[0] { (0, line * lines[0] + at) } else { (1, line * lines[1] + at - lines[0]) }
    };
    match cells {
        [Cells::Int(a), Cells::Int(b)] => {
            let both = [a, b];
            Cells::Int((0..outer * width).map(place).map(|(t, i)| both[t].get(i).copied().unwrap_or(0)).collect())
        }
        [Cells::Float(a), Cells::Float(b)] => {
            let both = [a, b];
            Cells::Float((0..outer * width).map(place).map(|(t, i)| both[t].get(i).copied().unwrap_or(0.0)).collect())
        }
        [a, _] => a.clone(),
    }
}

/// Interleaves two tiles: their elements alternate.
pub(in crate::sim) fn interleave(a: &Cells, b: &Cells) -> Cells {
    match (a, b) {
        (Cells::Int(a), Cells::Int(b)) => Cells::Int(a.iter().zip(b).flat_map(|(a, b)| [*a, *b]).collect()),
        (Cells::Float(a), Cells::Float(b)) => Cells::Float(a.iter().zip(b).flat_map(|(a, b)| [*a, *b]).collect()),
        (a, _) => a.clone(),
    }
}

/// The elements with even numbers (`odd` = 0) or odd numbers (`odd` = 1).
pub(in crate::sim) fn half(cells: &Cells, odd: usize) -> Cells {
    cells.pick((odd..cells.len()).step_by(2))
}

/// A shape along one axis: the number of lines before it, its extent, and the stride of its elements.
pub(in crate::sim) fn along(shape: TileShape, axis: usize) -> (usize, usize, usize) {
    let extents = extents(shape);
    let product = |e: &[usize]| e.iter().product::<usize>();
    let axis = axis.min(extents.len().saturating_sub(1));
    (product(&extents[..axis]), extents[axis], product(&extents[axis + 1..]))
}

//! Random schedules, and what they mean: by counting, not by reasoning.

use titan_nv::tma::{Dim, Direction, Domains, Element, Guard, Id, Lowering, Memory, Step, TensorMap, tma};
use titan_sim::engine::Rng;

/// A number in a range.
pub(crate) fn pick(rng: &mut Rng, range: std::ops::RangeInclusive<i64>) -> i64 {
    let (low, high) = range.into_inner();
    low + rng.below((high - low + 1) as usize) as i64
}

/// The iterations of all leaves together that are still quick to count.
const MOST: i64 = 6000;

fn extent(domains: &Domains, id: Id) -> i64 {
    domains.extent(id).unwrap()
}

fn iterations(domains: &Domains) -> i64 {
    domains.loops().chain(domains.tile()).fold(1, |all, id| i64::saturating_mul(all, extent(domains, id)))
}

/// A schedule of 1 to 3 dimensions with up to 6 steps.
pub(crate) fn schedule(rng: &mut Rng) -> Domains {
    let rank = pick(rng, 1..=3) as usize;
    let dim = |rng: &mut Rng, d: usize| Dim {
        size: Some(pick(rng, 1..=12)),
        boxed: pick(rng, 1..=5),
        stride: if d == 0 { 1 } else { pick(rng, 1..=4) },
    };
    let dims: Vec<Dim> = (0..rank).map(|d| dim(rng, d)).collect();
    let mut domains = Domains::new(&dims).unwrap();
    for _ in 0..pick(rng, 0..=6) {
        let mut next = domains.clone();
        step(&mut next, rng);
        if iterations(&next) <= MOST {
            domains = next;
        }
    }
    domains
}

fn step(domains: &mut Domains, rng: &mut Rng) {
    let loops: Vec<Id> = domains.loops().collect();
    let any = |rng: &mut Rng| loops[rng.below(loops.len())];
    let (a, b) = (any(rng), any(rng));
    // Steps that are not possible leave the schedule as it is.
    let _ = match rng.below(6) {
        0 | 1 => domains.split(a, pick(rng, 1..=4)).map(|_| ()),
        2 | 3 => domains.merge(a, b).map(|_| ()),
        4 => domains.resize(a, pick(rng, -2..=2), pick(rng, -2..=2)).map(|_| ()),
        _ => domains.swizzle(a, b).map(|_| ()),
    };
}

/// Runs through all indices of some domains.
pub(crate) fn every(domains: &Domains, ids: &[Id], mut body: impl FnMut(&[i64])) {
    let extents: Vec<i64> = ids.iter().map(|id| extent(domains, *id)).collect();
    let mut at = vec![0; ids.len()];
    loop {
        body(&at);
        let Some(dim) = (0..ids.len()).rev().find(|dim| at[*dim] + 1 < extents[*dim]) else { return };
        at[dim] += 1;
        at[dim + 1..].fill(0);
    }
}

/// Where an element of the tensor is in the schedule: the indices of all domains. `None` if a resize has cut it off.
pub(crate) fn forwards(domains: &Domains, element: &[i64]) -> Option<Vec<i64>> {
    let mut at = vec![0; domains.len()];
    let of = Id::number;
    for (axis, p) in domains.axes().iter().zip(element) {
        at[of(axis.partitioned)] = *p;
    }
    for step in domains.steps() {
        match *step {
            Step::Split { input, outer, inner, factor } => {
                (at[of(outer)], at[of(inner)]) = (at[of(input)] / factor, at[of(input)] % factor);
            }
            Step::Merge { outer, inner, output } => {
                at[of(output)] = at[of(outer)] * extent(domains, inner) + at[of(inner)];
            }
            Step::Resize { input, output, left, .. } => {
                let moved = at[of(input)] + left;
                if moved < 0 || moved >= extent(domains, output) {
                    return None;
                }
                at[of(output)] = moved;
            }
            Step::Swizzle { x, y, out_x, out_y } => {
                at[of(out_x)] = at[of(x)];
                at[of(out_y)] = at[of(y)] ^ (at[of(x)] % extent(domains, y));
            }
        }
    }
    Some(at)
}

/// The index of every domain, from those of the leaves: the opposite way.
pub(crate) fn backwards(domains: &Domains, leaf: impl Fn(Id) -> i64) -> Vec<i64> {
    let mut at = vec![0; domains.len()];
    let of = Id::number;
    domains.loops().chain(domains.tile()).for_each(|id| at[of(id)] = leaf(id));
    for step in domains.steps().iter().rev() {
        match *step {
            Step::Split { input, outer, inner, factor } => at[of(input)] = at[of(outer)] * factor + at[of(inner)],
            Step::Merge { outer, inner, output } => {
                let length = extent(domains, inner);
                at[of(outer)] = at[of(output)].div_euclid(length);
                at[of(inner)] = at[of(output)].rem_euclid(length);
            }
            Step::Resize { input, output, left, .. } => at[of(input)] = at[of(output)] - left,
            Step::Swizzle { x, y, out_x, out_y } => {
                at[of(x)] = at[of(out_x)];
                at[of(y)] = at[of(out_y)] ^ at[of(out_x)].rem_euclid(extent(domains, y));
            }
        }
    }
    at
}

/// A tensor of 16-bit elements, its map, and shared memory with one tile for each iteration of the program's loops.
pub(crate) struct World {
    pub(crate) global: Vec<u16>,
    pub(crate) shared: Vec<u16>,
    map: TensorMap,
    tile: usize,
}

/// The value of the first element; all others differ, and none is zero.
const FIRST: u16 = 1;
/// What is in shared memory before: no element's value.
pub(crate) const DIRT: u16 = 0x8000;

impl World {
    pub(crate) fn new(domains: &Domains, lowering: &Lowering) -> World {
        let sizes: Vec<u64> = domains.dims().iter().map(|d| d.size.unwrap() as u64).collect();
        let elements: u64 = sizes.iter().product();
        let strides: Vec<u64> = (1..sizes.len()).map(|d| 2 * sizes[..d].iter().product::<u64>()).collect();
        let mut map = TensorMap::tiled(Element::U16, 0, &sizes, &strides, &lowering.box_extents);
        map.element_strides[..sizes.len()].copy_from_slice(&lowering.element_strides);
        let tile = (map.box_bytes() / 2) as usize;
        let slots: i64 = domains.loops().map(|id| extent(domains, id)).product();
        World {
            global: (0..elements as u16).map(|i| FIRST + i).collect(),
            shared: vec![DIRT; tile * slots as usize],
            map,
            tile,
        }
    }

    /// Where an iteration of the loops has its tile.
    fn slot(&self, domains: &Domains, at: &[i64]) -> usize {
        let slot = domains.loops().zip(at).fold(0, |slot, (id, i)| slot * extent(domains, id) + i);
        slot as usize * self.tile
    }

    /// Runs the copies of a schedule as they were lowered.
    pub(crate) fn run(&mut self, domains: &Domains, lowering: &Lowering, direction: Direction) {
        let loops: Vec<Id> = domains.loops().collect();
        let mut global: Vec<u8> = self.global.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut shared: Vec<u8> = self.shared.iter().flat_map(|v| v.to_le_bytes()).collect();
        every(domains, &loops, |at| {
            let leaf = |id: Id| at[loops.iter().position(|l| *l == id).unwrap()];
            let values = lowering.values.eval(leaf);
            let value = |v: titan_nv::tma::Value| values[v.number()];
            let holds =
                |checks: &[titan_nv::tma::Check]| checks.iter().all(|c| (0..c.extent).contains(&value(c.value)));
            let own = || lowering.coordinates.iter().map(|c| i32::try_from(value(*c)).unwrap()).collect();
            let x: Option<Vec<i32>> = match &lowering.guard {
                Guard::Always => Some(own()),
                Guard::Skip(checks) => holds(checks).then(own),
                Guard::OutOfBounds(checks, before) => Some(if holds(checks) { own() } else { before.clone() }),
            };
            let sa = 2 * self.slot(domains, at) as u64;
            if let Some(x) = x {
                let memory = Memory { global: &mut global, shared: &mut shared };
                tma(&x, sa, &self.map, direction, memory).unwrap();
            }
        });
        let halves = |bytes: Vec<u8>| bytes.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
        (self.global, self.shared) = (halves(global), halves(shared));
    }

    /// Where in shared memory each element of the tensor belongs; `None` if the schedule has cut it off.
    pub(crate) fn places(&self, domains: &Domains) -> Vec<Option<usize>> {
        let mut places = Vec::new();
        // The innermost dimension runs fastest.
        let mut ids: Vec<Id> = domains.axes().iter().map(|axis| axis.partitioned).collect();
        ids.reverse();
        every(domains, &ids, |element| {
            let element: Vec<i64> = element.iter().rev().copied().collect();
            places.push(forwards(domains, &element).map(|at| {
                let loops: Vec<i64> = domains.loops().map(|id| at[id.number()]).collect();
                let axes = domains.axes().iter().enumerate().rev();
                let position = axes.fold(0, |position, (dim, axis)| {
                    position * self.map.tile(dim) as usize + at[axis.tile.number()] as usize
                });
                self.slot(domains, &loops) + position
            }));
        });
        places
    }

    /// Whether every element is where it belongs, and whether all other places hold zero.
    pub(crate) fn judged(&self, domains: &Domains) -> (bool, bool) {
        let mut hole = vec![true; self.shared.len()];
        let mut weak = true;
        for (value, place) in self.global.iter().zip(self.places(domains)) {
            if let Some(place) = place {
                assert!(std::mem::replace(&mut hole[place], false), "two elements in one place");
                weak &= self.shared[place] == *value;
            }
        }
        let zeros = self.shared.iter().zip(&hole).all(|(value, hole)| !hole || *value == 0);
        (weak, weak && zeros)
    }
}

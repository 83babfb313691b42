//! Random extents of `unflatten` and of its grouped form, right and wrong ones, with random grids: the parts that programs write are
//! enumerated. An error must be true for its own example, and a mistake that leaves elements unwritten for small extents is found.

use crate::unwritten::{Numbers, places};
use titan_core::analysis::cover::{short, unwritten};
use titan_core::analysis::partition::Partition;
use titan_core::ir::grouped;
use titan_core::text::parse_one;

const KERNELS: usize = 3000;

/// An extent, as text, and its value for the extents of the output.
#[derive(Clone, Copy, Debug)]
enum Extent {
    /// The extent of an axis in parts of so many elements.
    Parts(usize, i64),
    /// The extent of an axis in elements.
    Elements(usize),
    Constant(i64),
}

impl Extent {
    fn value(self, of: [i64; 2]) -> i64 {
        match self {
            Extent::Parts(axis, tile) => (of[axis] + tile - 1) / tile,
            Extent::Elements(axis) => of[axis],
            Extent::Constant(n) => n,
        }
    }

    fn expr(self) -> String {
        let name = |axis: usize| ["M", "N"][axis];
        match self {
            Extent::Parts(axis, tile) => format!("cdiv({}, {tile})", name(axis)),
            Extent::Elements(axis) => name(axis).to_owned(),
            Extent::Constant(n) => n.to_string(),
        }
    }

    /// The operations that compute it as `%e{i}`.
    fn text(self, i: usize) -> String {
        match self {
            // (x + (tile - 1)) / tile is not recognised as what `cdiv` is compiled to, and is the same for extents.
            Extent::Parts(axis, tile) => format!(
                "%x{i} = dim<{axis}> %c\n%u{i} = const {} : i32\n%w{i} = const {tile} : i32\n%v{i} = add %x{i}, %u{i}\n\
                 %e{i} = div %v{i}, %w{i}\n",
                tile - 1
            ),
            Extent::Elements(axis) => format!("%e{i} = dim<{axis}> %c\n"),
            Extent::Constant(n) => format!("%e{i} = const {n} : i32\n"),
        }
    }
}

#[derive(Debug)]
struct Model {
    tile: [i64; 2],
    extents: [Extent; 2],
    /// Rows in a group.
    rows: Option<i32>,
    grid: [Extent; 2],
}

impl Model {
    fn random(n: &mut Numbers) -> Model {
        let size = |n: &mut Numbers| [1, 2, 4][usize::try_from(n.below(3)).expect("an index")];
        let tile = [size(n), size(n)];
        let extent = |n: &mut Numbers, axis: usize| match n.below(8) {
            0 => Extent::Parts(1 - axis, tile[1 - axis]),
            1 => Extent::Parts(axis, size(n)),
            2 => Extent::Elements(axis),
            3 => Extent::Constant(1 + n.below(4)),
            _ => Extent::Parts(axis, tile[axis]),
        };
        let extents = [extent(n, 0), extent(n, 1)];
        let rows = (n.below(2) == 0).then(|| i32::try_from(1 + n.below(4)).expect("small"));
        let right = [Extent::Parts(0, tile[0]), Extent::Parts(1, tile[1])];
        let grid = if n.below(3) == 0 { extents } else { right };
        Model { tile, extents, rows, grid }
    }

    fn text(&self) -> String {
        let how = self.rows.map_or("unflatten".to_owned(), |rows| format!("unflatten_grouped<{rows}>"));
        let [a, b] = self.grid.map(Extent::expr);
        let [h, w] = self.tile;
        format!(
            "kernel @k(%c: mut tensor<f32>[M, N]) grid({a} * {b}) {{\n%p = program_id<0>\n%z = const 0.0 : f32\n\
             %t = splat %z : tile<{h}x{w}xf32>\n{}{}%i, %j = {how} %p, %e0, %e1\nstore_tile %c[%i, %j], %t\nreturn\n}}\n",
            self.extents[0].text(0),
            self.extents[1].text(1),
        )
    }

    fn programs(&self, of: [i64; 2]) -> i64 {
        self.grid.iter().map(|e| e.value(of)).product()
    }

    /// The parts that programs write.
    fn written(&self, of: [i64; 2]) -> Vec<[i64; 2]> {
        let [height, width] = self.extents.map(|e| e.value(of));
        let narrow = |v: i64| i32::try_from(v).expect("small");
        let place = |p: i64| {
            let at = [p / width, p % width].map(narrow);
            let at = self.rows.map_or(at, |rows| grouped(at, [narrow(height), narrow(width)], rows));
            at.map(i64::from)
        };
        (0..self.programs(of)).map(place).collect()
    }

    /// A part that no program writes.
    fn missing(&self, of: [i64; 2]) -> Option<[i64; 2]> {
        let written = self.written(of);
        let count = |axis: usize| Extent::Parts(axis, self.tile[axis]).value(of);
        (0..count(0)).flat_map(|i| (0..count(1)).map(move |j| [i, j])).find(|part| !written.contains(part))
    }
}

/// The value of a name in the example of a message.
fn value(title: &str, name: &str) -> i64 {
    let (_, rest) = title.split_once(&format!("{name} = ")).unwrap_or_else(|| panic!("{title}"));
    rest.split([' ', ',']).next().and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{title}"))
}

#[test]
fn wrong_extents_are_found_and_right_ones_are_not() {
    let mut numbers = Numbers(5);
    let (mut rejected, mut complete, mut grids) = (0, 0, 0);
    for _ in 0..KERNELS {
        let model = Model::random(&mut numbers);
        let text = model.text();
        let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let Ok(partition) = Partition::of(&kernel) else { continue };
        let all = || (1..=10).flat_map(|m| (1..=10).map(move |n| [m, n]));
        if short(&kernel, &partition).is_some() {
            grids += 1;
            continue;
        }
        match &unwritten(&kernel, &partition)[..] {
            [] => {
                assert_eq!(all().find_map(|of| Some((of, model.missing(of)?))), None, "{text}");
                complete += 1;
            }
            [error] => {
                let of = ["M", "N"].map(|name| {
                    if error.title.contains(&format!("{name} = ")) { value(&error.title, name) } else { 1 }
                });
                let places = places(&error.title);
                let covers = |part: &[i64; 2]| {
                    places.iter().all(|(axis, at)| {
                        (part[*axis] * model.tile[*axis]..)
                            .take(usize::try_from(model.tile[*axis]).expect("small"))
                            .any(|x| x == *at)
                    })
                };
                assert!(
                    !places.is_empty() && places.iter().all(|(axis, at)| *at < of[*axis]),
                    "{}\n{text}",
                    error.title
                );
                assert!(!model.written(of).iter().any(covers), "{}\n{text}", error.title);
                rejected += 1;
            }
            several => panic!("{several:?}"),
        }
    }
    assert!(rejected > 300 && complete > 500 && grids > 50, "{rejected} {complete} {grids}");
}

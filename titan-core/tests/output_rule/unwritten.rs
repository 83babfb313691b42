//! Random kernels with small strides, offsets, loops and guards: the elements that they write are enumerated. An error must be true for its
//! own example, so that no kernel is rejected that writes all elements for all arguments that it accepts.

use std::collections::BTreeSet;
use std::fmt::Write;
use titan_core::analysis::cover::{needs, unwritten};
use titan_core::analysis::partition::Partition;
use titan_core::ir::{HostEnv, Kernel, Symbol};
use titan_core::text::parse_one;

/// The number of programs.
const PROGRAMS: i64 = 48;
/// The maximum extent for which kernels without an error are enumerated.
const LONGEST: i64 = 48;
const KERNELS: u64 = 4000;

/// A deterministic generator of numbers (splitmix64).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, n: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        i64::try_from((x ^ (x >> 31)) >> 1).expect("63 bits") % n
    }

    fn of(&mut self, list: &[i64]) -> i64 {
        list[usize::try_from(self.below(i64::try_from(list.len()).expect("short"))).expect("an index")]
    }
}

/// What differs between the programs along the axis that is examined.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// `size · p`
    Program { size: i64 },
    /// `size · (p % 4)`; each quotient has a row.
    Parts { size: i64 },
    /// Nothing: each program has a row.
    Row,
}

impl Source {
    fn start(self, program: i64) -> i64 {
        match self {
            Source::Program { size } => size * program,
            Source::Parts { size } => size * (program % 4),
            Source::Row => 0,
        }
    }
}

/// The number of iterations of a loop.
#[derive(Clone, Copy, Debug)]
enum Count {
    Times(i64),
    /// As often as the axis is long.
    Extent,
    /// The same, but at most so often.
    AtMost(i64),
}

impl Count {
    fn of(self, extent: i64) -> i64 {
        match self {
            Count::Times(n) => n,
            Count::Extent => extent,
            Count::AtMost(n) => extent.min(n),
        }
    }
}

/// A store to `start + i * by + offset` for each iteration `i`, in elements or in tiles.
#[derive(Clone, Copy, Debug)]
struct Store {
    first: i64,
    count: Count,
    by: i64,
    offset: i64,
    extent: i64,
    in_tiles: bool,
    /// Whether elements outside of the output trap, instead of being dropped.
    traps: bool,
    /// Only the programs below this number execute it.
    guard: Option<i64>,
}

#[derive(Debug)]
struct Model {
    source: Source,
    stores: Vec<Store>,
    require: &'static str,
}

impl Model {
    fn random(n: &mut Numbers) -> Model {
        let size = n.of(&[1, 2, 4, 6, 8, 8, 16, 16]);
        let source = match n.below(4) {
            0 => Source::Row,
            1 => Source::Parts { size },
            _ => Source::Program { size },
        };
        let stores = (0..1 + n.below(3)).map(|_| {
            let extent = n.of(&[1, 2, 4, 4, 8]);
            let count = match n.below(5) {
                0 => Count::Extent,
                1 => Count::AtMost(n.of(&[1, 2, 4])),
                _ => Count::Times(n.of(&[1, 1, 2, 4])),
            };
            let by = if n.below(3) == 0 { n.below(9) } else { extent };
            let offset = n.of(&[0, 0, 0, 1, 2, 4, 8, -1, -4]);
            let (in_tiles, first) = (n.below(4) == 0, n.of(&[0, 0, 0, 1]));
            let guard = (n.below(6) == 0).then(|| n.below(4));
            let traps = extent == 1 && n.below(2) == 0;
            Store { first, count, by, offset, extent, in_tiles, traps, guard }
        });
        let stores = stores.collect();
        let require = ["", "", "", " require(N <= 8)", " require(N % 4 == 0)", " require(N <= 4 || N % 2 == 0)"];
        Model { source, stores, require: require[usize::try_from(n.below(6)).expect("an index")] }
    }

    fn kernel(&self) -> Kernel {
        let mut text = String::from("kernel @k(%c: mut tensor<f32>[");
        let (shape, axis, row) = match self.source {
            Source::Program { .. } => ("N", 0, None),
            Source::Parts { .. } => ("12, N", 1, Some("%row")),
            Source::Row => ("48, N", 1, Some("%p")),
        };
        let mut line = |s: String| text.push_str(&s);
        line(format!("{shape}]) grid({PROGRAMS}){} {{\n%p = program_id<0>\n%n = dim<{axis}> %c\n", self.require));
        line("%zero = const 0 : i32\n%one = const 1 : i32\n%z = const 0.0 : f32\n".to_owned());
        match self.source {
            Source::Program { size } => line(format!("%size = const {size} : i32\n%base = mul %p, %size\n")),
            Source::Parts { size } => line(format!(
                "%rows = const 12 : i32\n%four = const 4 : i32\n%row, %part = unflatten %p, %rows, %four\n\
                %size = const {size} : i32\n%base = mul %part, %size\n"
            )),
            Source::Row => line("%base = const 0 : i32\n".to_owned()),
        }
        for (i, store) in self.stores.iter().enumerate() {
            store.write(&mut text, i, row);
        }
        text.push_str("return\n}\n");
        parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
    }

    /// The indices below an extent that some program writes; `None` if a program traps.
    fn written(&self, extent: i64) -> Option<BTreeSet<i64>> {
        let mut all = BTreeSet::new();
        for program in 0..PROGRAMS {
            for s in self.stores.iter().filter(|s| s.guard.is_none_or(|below| program < below)) {
                for i in s.first..s.count.of(extent) {
                    let at = self.source.start(program) + i * s.by + s.offset;
                    let from = if s.in_tiles { at * s.extent } else { at };
                    if s.traps && !(0..extent).contains(&from) {
                        return None;
                    }
                    all.extend((from..from + s.extent).filter(|x| (0..extent).contains(x)));
                }
            }
        }
        Some(all)
    }
}

impl Store {
    fn write(&self, text: &mut String, i: usize, row: Option<&str>) {
        let Store { first, count, by, offset, extent, in_tiles, traps, guard } = *self;
        let times = match count {
            Count::Times(n) => format!("%times{i} = const {n} : i32\n"),
            Count::Extent => format!("%times{i} = add %n, %zero\n"),
            Count::AtMost(n) => format!("%most{i} = const {n} : i32\n%times{i} = min %n, %most{i}\n"),
        };
        let shape = row.map_or_else(|| extent.to_string(), |_| format!("1x{extent}"));
        let row = row.map(|row| format!("{row}, ")).unwrap_or_default();
        let (unit, stored) = match (traps, in_tiles) {
            (true, _) => ("set", "%z".to_owned()),
            (false, true) => ("store_tile", format!("%t{i}")),
            (false, false) => ("store_at", format!("%t{i}")),
        };
        let store = format!(
            "{times}%first{i} = const {first} : i32\nfor %i{i} = %first{i} to %times{i} step %one {{\n\
            %by{i} = const {by} : i32\n%o{i} = const {offset} : i32\n%x{i} = mul %i{i}, %by{i}\n%y{i} = add %base, %x{i}\n\
            %at{i} = add %y{i}, %o{i}\n%t{i} = splat %z : tile<{shape}xf32>\n{unit} %c[{row}%at{i}], {stored}\ncontinue\n}}\n"
        );
        let guarded = match guard {
            Some(below) => format!(
                "%below{i} = const {below} : i32\n%is{i} = lt %p, %below{i}\nif %is{i} {{\n{store}yield\n}} else {{\nyield\n}}\n"
            ),
            None => store,
        };
        text.write_str(&guarded).expect("a string takes everything");
    }
}

/// The shape name N.
struct Extent(i64);

impl HostEnv for Extent {
    fn symbol(&self, _: Symbol) -> i64 {
        self.0
    }

    fn scalar(&self, _: usize) -> i64 {
        unreachable!("no kernel has scalars")
    }

    fn dim(&self, _: usize, _: usize) -> i64 {
        unreachable!("the extents have names")
    }
}

/// Whether a launch with this extent is accepted.
fn is_accepted(kernel: &Kernel, partition: &Partition, extent: i64) -> bool {
    let enough =
        needs(kernel, partition).iter().all(|need| need.programs.eval(&Extent(extent)).is_ok_and(|n| n <= PROGRAMS));
    enough && kernel.sig.requires.iter().all(|e| e.eval(&Extent(extent)).is_ok_and(|v| v != 0))
}

/// The number after a word in a message.
pub(crate) fn after(title: &str, word: &str) -> i64 {
    let (_, rest) = title.split_once(word).unwrap_or_else(|| panic!("{title}"));
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or_else(|_| panic!("{title}"))
}

/// The axes and indices of the elements that a message names: those with all of these indices.
pub(crate) fn places(title: &str) -> Vec<(usize, i64)> {
    let all = title.match_indices("index ").filter(|(at, _)| title[*at..].contains(" along axis "));
    let place = |(at, _)| {
        let rest = &title[at..];
        (usize::try_from(after(rest, "along axis ")).expect("an axis"), after(rest, "index "))
    };
    all.map(place).collect()
}

#[test]
fn every_error_is_true_of_its_example() {
    let mut numbers = Numbers(1);
    let (mut rejected, mut complete, mut missed) = (0, 0, 0);
    for _ in 0..KERNELS {
        let model = Model::random(&mut numbers);
        let kernel = model.kernel();
        let Ok(partition) = Partition::of(&kernel) else { continue };
        match &unwritten(&kernel, &partition)[..] {
            [] => {
                let is_whole = |n: i64| {
                    let count = |all: BTreeSet<i64>| i64::try_from(all.len()).is_ok_and(|written| written == n);
                    model.written(n).is_none_or(count)
                };
                let mut accepted = (1..=LONGEST).filter(|n| is_accepted(&kernel, &partition, *n));
                if accepted.all(is_whole) { complete += 1 } else { missed += 1 }
            }
            [error] => {
                let (extent, index) = (after(&error.title, "N = "), after(&error.title, "at index "));
                let text = format!("{}\n{model:?}", error.title);
                assert!(index < extent && is_accepted(&kernel, &partition, extent), "{text}");
                let written = model.written(extent);
                assert!(written.is_some_and(|all| !all.contains(&index)), "{text}");
                rejected += 1;
            }
            several => panic!("{several:?}"),
        }
    }
    // The test means something only if there are many of each.
    assert!(rejected > 500 && complete > 100 && missed < rejected, "{rejected} {complete} {missed}");
}

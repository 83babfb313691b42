//! Random kernels with roles whose stages GPUs with bulk copies and MMAs of warpgroups fill and multiply so: the elements and extents
//! that these instructions have, both orders of the operands in memory, tensors of rank 3, extents that end within a tile, loops of
//! no step, one, and fewer than there are slots. And the same with an operand whose tiles are no boxes, so that threads copy them
//! ([`mixed`]).

use super::random::whole;
use super::rng::Rng;
use std::fmt::Write as _;
use titan_core::ir::Elem;
use titan_sim::sim;

/// A kernel as text, with the arguments of a launch.
pub(super) struct Random {
    pub(super) text: String,
    pub(super) args: Vec<sim::Arg>,
}

/// Elements of the operands, of sums, and how many of the former one instruction takes along K.
const ELEMS: [(Elem, Elem, i32); 6] = [
    (Elem::F16, Elem::F32, 16),
    (Elem::Bf16, Elem::F32, 16),
    (Elem::Tf32, Elem::F32, 8),
    (Elem::I8, Elem::I32, 32),
    (Elem::E4m3, Elem::F32, 32),
    (Elem::E5m2, Elem::F32, 32),
];

/// How a role multiplies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// With so many MMAs in flight across the loop.
    Accumulator(u32),
    /// One MMA after the other, on stages.
    Stages,
    /// The same, of twice A, which is in registers.
    Registers,
}

/// Why threads copy the tiles of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Odd {
    /// Its rows are given by index.
    Gathered,
    /// It is a view of so many rows or columns less, along M or N.
    Across(i64),
    /// The same along K.
    Deep(i64),
    /// It is padded with ones.
    Ones,
}

/// A factor: its tensor `rows x K`, or `K x rows` if it is turned.
struct Factor {
    name: &'static str,
    /// Extents of its tiles and of the tensor.
    tile: i32,
    all: i64,
    turned: bool,
}

struct Writer {
    out: String,
    fresh: usize,
    elem: Elem,
    sum: Elem,
    depth: i32,
    factors: [Factor; 2],
    /// The number of the matrix of a tensor of rank 3.
    matrix: Option<i64>,
    apart: bool,
    repeated: bool,
    persistent: bool,
    /// The factor that threads copy, and why.
    odd: Option<(usize, Odd)>,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.out += line;
        self.out += "\n";
    }

    /// An operation with one result.
    fn op(&mut self, what: &str, op: &str) -> String {
        self.fresh += 1;
        let name = format!("%{what}{}", self.fresh);
        self.line(&format!("{name} = {op}"));
        name
    }

    /// The extents of a factor's tile, in the order of the tensor.
    fn tile(&self, factor: usize) -> String {
        let Factor { tile, turned, .. } = self.factors[factor];
        let depth = self.depth;
        if turned { format!("{depth}x{tile}x{}", self.elem) } else { format!("{tile}x{depth}x{}", self.elem) }
    }

    fn bytes(&self, factor: usize) -> i32 {
        self.factors[factor].tile * self.depth * self.elem.bits().cast_signed() / 8
    }

    /// The index tile of gathered rows, for a tile of the output.
    fn indices(&mut self, at: [&str; 2]) {
        if let Some((i, Odd::Gathered)) = self.odd {
            let rows = self.factors[i].tile;
            self.line(&format!(
                "%minus = const -1 : i32\n%rows = load_tile %i[{}] or %minus : tile<{rows}xi32>",
                at[i]
            ));
        }
    }

    /// The view that the odd factor is of its tensor.
    fn view(&mut self) {
        let Some((i, odd)) = self.odd else { return };
        let Factor { name, turned, .. } = self.factors[i];
        let (first, axis, extent) = match odd {
            Odd::Across(first) => (first, usize::from(turned), format!("dim<{i}> %c0 : i32")),
            Odd::Deep(first) => (first, usize::from(!turned), "add %k, %zero : i32".to_owned()),
            Odd::Gathered | Odd::Ones => return,
        };
        let elem = self.elem;
        self.line(&format!(
            "%first = const {first} : i32\n%extent = {extent}\n%last = add %first, %extent\n\
             %view = slice<{axis}> {name}, %first, %last : tensor<{elem}, 2>"
        ));
        self.factors[i].name = "%view";
    }

    fn head(&mut self) {
        let depth = self.depth;
        // The extent along K is that of a factor that is no view.
        let whole = usize::from(self.odd.is_some_and(|(i, _)| i == 0));
        let k = usize::from(!self.factors[whole].turned);
        let zero = |elem: Elem| if elem.is_float() { "0.0" } else { "0" };
        if let Some(matrix) = self.matrix {
            self.line(&format!("%g = const {matrix} : i32\n%x = index<0> %a, %g\n%y = index<0> %b, %g"));
        }
        let [a, b] = if self.matrix.is_some() { ["%x", "%y"] } else { ["%a", "%b"] };
        (self.factors[0].name, self.factors[1].name) = (a, b);
        let (elem, sum, of) = (self.elem, self.sum, self.factors[whole].name);
        self.line(&format!(
            "%zero = const 0 : i32\n%one = const 1 : i32\n%pad = const {} : {elem}\n%none = const {} : {sum}\n\
             %k = dim<{k}> {of}\n%ck = const {depth} : i32\n%ce = const {} : i32\n%up = add %k, %ce\n%steps = div %up, %ck",
            zero(elem),
            zero(sum),
            depth - 1
        ));
        if self.odd.is_some() {
            self.line(&format!("%ones = const {} : {elem}", if elem.is_float() { "1.0" } else { "1" }));
        }
        self.view();
        if !self.persistent {
            return self.line("%m = program_id<0>\n%n = program_id<1>");
        }
        for (what, tensor, axis, tile) in [("m", "%c0", 0, self.factors[0].tile), ("n", "%c0", 1, self.factors[1].tile)]
        {
            self.line(&format!(
                "%r{what} = dim<{axis}> {tensor}\n%c{what} = const {tile} : i32\n%d{what} = div %r{what}, %c{what}\n\
                 %l{what} = rem %r{what}, %c{what}\n%u{what} = ne %l{what}, %zero\n%o{what} = cast %u{what} : i32\n\
                 %g{what} = add %d{what}, %o{what}"
            ));
        }
        self.line("%tiles = mul %gm, %gn");
    }

    /// The tiles of the output that a program computes.
    fn tiles(&mut self, body: impl Fn(&mut Self, [&str; 2])) {
        if !self.persistent {
            return body(self, ["%m", "%n"]);
        }
        self.fresh += 1;
        let n = self.fresh;
        self.line(&format!(
            "for %i{n} = %zero to %tiles step %one distributed {{\n%m{n}, %n{n} = unflatten %i{n}, %gm, %gn"
        ));
        body(self, [&format!("%m{n}"), &format!("%n{n}")]);
        self.line("continue\n}");
    }

    /// A loop over all steps, or two of them one after the other; the body is told the step and what the loop carries.
    fn steps(&mut self, carried: &str, body: &dyn Fn(&mut Self, &str, &str) -> String) -> String {
        let mut end = carried.to_owned();
        for _ in 0..1 + usize::from(self.repeated) {
            self.fresh += 1;
            let n = self.fresh;
            let (bind, carry, inside) = match &end[..] {
                "" => (String::new(), String::new(), String::new()),
                sum => (format!("%e{n} = "), format!(" carry(%u{n} = {sum})"), format!("%u{n}")),
            };
            self.line(&format!("{bind}for %t{n} = %zero to %steps step %one{carry} {{"));
            let next = body(self, &format!("%t{n}"), &inside);
            self.line(&format!("continue {next}\n}}"));
            end = if end.is_empty() { end } else { format!("%e{n}") };
        }
        end
    }

    fn fill(&mut self, t: &str, at: [&str; 2]) {
        let mut sources = Vec::new();
        for (i, at) in at.into_iter().enumerate() {
            let (name, turned, tile) = (self.factors[i].name, self.factors[i].turned, self.tile(i));
            let place = if turned { format!("{t}, {at}") } else { format!("{at}, {t}") };
            let odd = self.odd.filter(|(odd, _)| *odd == i).map(|(_, odd)| odd);
            if odd == Some(Odd::Gathered) {
                let column = self.op("c", &format!("mul {t}, %ck : i32"));
                sources
                    .push(self.op("q", &format!("ttg.source_rows {name}[%rows, {column}] or %pad : source<{tile}>")));
                continue;
            }
            let pad = if odd == Some(Odd::Ones) { "%ones" } else { "%pad" };
            sources.push(self.op("q", &format!("ttg.source_tile {name}[{place}] or {pad} : source<{tile}>")));
        }
        let bytes = [self.bytes(0), self.bytes(1)];
        if self.apart {
            for (ring, (source, bytes)) in sources.iter().zip(bytes).enumerate() {
                let slot = self.op("f", &format!("ttg.stage.acquire<{ring}>"));
                self.line(&format!("ttg.stage.async_produce {slot}, {source} {{bytes = {bytes}, proxy = generic}}"));
            }
            return;
        }
        let (slot, both) = (self.op("f", "ttg.stage.acquire<0>"), sources.join(", "));
        let bytes = bytes[0] + bytes[1];
        self.line(&format!("ttg.stage.async_produce {slot}, {both} {{bytes = {bytes}, proxy = generic}}"));
    }

    /// The stages of a step as `[M, K]` and `[K, N]`, and the rights to read them.
    fn take(&mut self) -> ([String; 2], Vec<String>) {
        let mut rights = Vec::new();
        for ring in 0..=usize::from(self.apart) {
            let ready = self.op("y", &format!("ttg.stage.ready<{ring}>"));
            let stage = self.op("g", &format!("ttg.stage.wait_ready {ready}"));
            rights.push(self.op("p", &format!("ttg.stage.read_perm {stage}")));
        }
        let views = [0, 1].map(|i| {
            let (field, right) = if self.apart { (0, rights[i].clone()) } else { (i, rights[0].clone()) };
            let tile = self.tile(i);
            let view = self.op("v", &format!("ttg.stage.view<{field}> {right} : smem<{tile}>"));
            let straight = self.factors[i].turned == (i == 1);
            if straight { view } else { self.op("t", &format!("permute<1, 0> {view}")) }
        });
        (views, rights)
    }

    fn consume(&mut self, style: Style) -> String {
        let [m, n] = [self.factors[0].tile, self.factors[1].tile];
        let zero = self.op("z", &format!("splat %none : tile<{m}x{n}x{}>", self.sum));
        if let Style::Accumulator(keep) = style {
            let begin = self.op("h", &format!("ttg.acc.start<{keep}> {zero}"));
            let chain = self.steps(&begin, &|w, _, acc| {
                let ([a, b], rights) = w.take();
                w.op("s", &format!("ttg.acc.mma {acc}, {}, {a}, {b}", rights[0]))
            });
            return self.op("s", &format!("ttg.acc.finish {chain}"));
        }
        self.steps(&zero, &|w, _, acc| {
            let ([a, b], rights) = w.take();
            let a = if style == Style::Registers {
                let read = w.op("r", &format!("ttg.stage.read {a}"));
                w.op("w", &format!("add {read}, {read}"))
            } else {
                a
            };
            let sum = w.op("s", &format!("mma {a}, {b}, {acc}"));
            for right in rights.iter().rev() {
                let over = w.op("o", &format!("ttg.stage.consumed {right}"));
                w.line(&format!("ttg.stage.release {over}"));
            }
            sum
        })
    }
}

/// An extent of some tiles, the last of which may be cut off; in whole units.
fn extent(rng: &mut Rng, tile: i32, tiles: u32, unit: i64, ragged: bool) -> i64 {
    let all = i64::from(tile) * i64::from(tiles);
    let cut = i64::from(rng.below(tile.cast_unsigned())) / unit * unit;
    if ragged && all > 0 { all - cut } else { all }
}

/// A role that copies, and one or two that multiply.
pub(super) fn roles(rng: &mut Rng) -> Random {
    let kind = rng.of(&ELEMS);
    let bits = kind.0.bits();
    let bm = rng.of(&[64, 64, 64, 128]);
    let bn = if bits == 16 && rng.below(12) == 0 { 192 } else { rng.of(&[8, 16, 24, 32, 48, 64]) };
    let tile = [bm, bn, kind.2 * rng.of(&[1, 2, 2, 4])];
    let steps = rng.below(6);
    kernel(rng, kind, tile, steps)
}

/// The same with small tiles of f16, and more steps than slots.
pub(super) fn small(rng: &mut Rng) -> Random {
    let tile = [64, rng.of(&[8, 16]), rng.of(&[16, 32])];
    kernel(rng, ELEMS[0], tile, 5)
}

/// The same as [`roles`], where the tiles of one factor are no boxes.
pub(super) fn mixed(rng: &mut Rng) -> Random {
    let kind = rng.of(&ELEMS);
    let tile = [64, rng.of(&[8, 16, 32, 64]), kind.2 * rng.of(&[1, 2, 4])];
    let steps = rng.below(6);
    mixed_of(rng, kind, tile, steps)
}

/// The same with small tiles of f16, and more steps than slots.
pub(super) fn small_mixed(rng: &mut Rng) -> Random {
    let tile = [64, rng.of(&[8, 16]), rng.of(&[16, 32])];
    mixed_of(rng, ELEMS[0], tile, 5)
}

/// The same with as many steps as the model checker can follow.
pub(super) fn tiny_mixed(rng: &mut Rng) -> Random {
    mixed_of(rng, ELEMS[0], [64, 8, 16], 1)
}

fn mixed_of(rng: &mut Rng, kind: (Elem, Elem, i32), tile: [i32; 3], steps: u32) -> Random {
    let less = i64::from(1 + rng.below(20));
    let odd = rng.of(&[Odd::Gathered, Odd::Gathered, Odd::Across(less), Odd::Deep(less), Odd::Ones]);
    let odd = (rng.below(2) as usize, odd);
    kernel_with(rng, kind, tile, (steps, Some(odd)))
}

fn kernel(rng: &mut Rng, kind: (Elem, Elem, i32), tile: [i32; 3], steps: u32) -> Random {
    kernel_with(rng, kind, tile, (steps, None))
}

fn kernel_with(
    rng: &mut Rng,
    (elem, sum, _): (Elem, Elem, i32),
    [bm, bn, depth]: [i32; 3],
    (steps, odd): (u32, Option<(usize, Odd)>),
) -> Random {
    let bits = elem.bits();
    let mut turned = [rng.below(3), rng.below(3)].map(|n| bits == 16 && n == 0);
    if let Some((i, Odd::Gathered)) = odd {
        turned[i] = false;
    }
    let (ragged, apart) = (rng.below(3) > 0, rng.below(4) == 0);
    let (slots, readers) = (1 + rng.below(4), 1 + usize::from(rng.below(4) == 0));
    // Rows of a tensor begin at multiples of 16 bytes: else there are no bulk copies.
    let unit = i64::from(128 / bits);
    let inner = |turned: bool| if turned { unit } else { 1 };
    let tiles = 1 + u32::from(bm == 64 && bn < 64 && rng.below(4) == 0);
    let m = extent(rng, bm, tiles, inner(turned[0]), ragged);
    // The rows of the outputs too.
    let across = inner(turned[1]).max(4);
    let n = extent(rng, bn, 1, across, ragged);
    // Indices of rows are read in pieces of 16 bytes.
    let [m, n] = if matches!(odd, Some((_, Odd::Gathered))) { [m, n].map(|n| (n + 3) / 4 * 4) } else { [m, n] };
    let deep = extent(rng, depth, steps, unit, ragged);
    let matrix = (rng.below(5) == 0).then(|| i64::from(rng.below(3)));
    let factor = |i: usize, tile, all| Factor { name: "", tile, all, turned: turned[i] };
    let factors = [factor(0, bm, m), factor(1, bn, n)];
    let (repeated, persistent) = (rng.below(4) == 0, rng.below(3) == 0);
    let mut w =
        Writer { out: String::new(), fresh: 0, elem, sum, depth, factors, matrix, apart, repeated, persistent, odd };
    let warps: Vec<u32> = (0..readers).map(|_| if bm == 128 { rng.of(&[4, 8]) } else { 4 }).collect();
    let style = |rng: &mut Rng| match rng.below(4) {
        0 | 1 if !apart => Style::Accumulator(rng.below(slots)),
        // Bytes are not added as f8 and tf32 are.
        2 if bits == 16 && !turned[0] => Style::Registers,
        _ => Style::Stages,
    };
    w.head();
    w.line("ttg.roles copy {");
    w.tiles(|w, at| {
        w.indices(at);
        w.steps("", &|w, t, _| {
            w.fill(t, at);
            String::new()
        });
    });
    w.line("ttg.pipeline.finalize\nyield");
    for reader in 0..readers {
        let style = style(rng);
        w.line(&format!("}} reader{reader} {{"));
        w.tiles(|w, [m, n]| {
            let end = w.consume(style);
            w.line(&format!("store_tile %c{reader}[{m}, {n}], {end}"));
        });
        w.line("ttg.pipeline.finalize\nyield");
    }
    w.line("}");
    finish(&w, &warps, slots, deep)
}

fn finish(w: &Writer, warps: &[u32], slots: u32, deep: i64) -> Random {
    let (elem, sum) = (w.elem, w.sum);
    let [bm, bn] = [w.factors[0].tile, w.factors[1].tile];
    let [a, b] = [0, 1].map(|i| {
        // A tensor that is viewed in part, or gathered from, has extents of its own.
        let odd = w.odd.filter(|(odd, _)| *odd == i).map(|(_, odd)| odd);
        let [letter, deep] = match odd {
            Some(Odd::Gathered | Odd::Across(_)) => ["T", "K"],
            Some(Odd::Deep(_)) => [["M", "N"][i], "L"],
            Some(Odd::Ones) | None => [["M", "N"][i], "K"],
        };
        let shape = if w.factors[i].turned { format!("{deep}, {letter}") } else { format!("{letter}, {deep}") };
        if w.matrix.is_some() { format!("tensor<{elem}>[G, {shape}]") } else { format!("tensor<{elem}>[{shape}]") }
    });
    let pipes = if w.apart {
        format!("pipe({slots}, \"left\", tile<{}>) pipe({slots}, \"right\", tile<{}>)", w.tile(0), w.tile(1))
    } else {
        format!("pipe({slots}, \"ring\", tile<{}>, tile<{}>)", w.tile(0), w.tile(1))
    };
    let (mut outs, mut roles) = (String::new(), "role(copy, 1)".to_owned());
    let index = if let Some((i, Odd::Gathered)) = w.odd {
        let _ = write!(outs, ", %i: in tensor<i32>[{}]", ["M", "N"][i]);
        Some(indices(w.factors[i].all))
    } else {
        None
    };
    for (r, warps) in warps.iter().enumerate() {
        let _ = write!(outs, ", %c{r}: mut tensor<{sum}>[M, N]");
        let _ = write!(roles, " role(reader{r}, {warps})");
    }
    let grid = if w.persistent { "grid persistent".to_owned() } else { format!("grid(cdiv(M, {bm}), cdiv(N, {bn}))") };
    let text = format!("kernel @random(%a: in {a}, %b: in {b}{outs}) {grid} {pipes} {roles} {{\n{}return\n}}\n", w.out);
    let input = |i: usize| {
        let Factor { mut all, turned, .. } = w.factors[i];
        let mut deep = deep;
        // Rows of a tensor begin at multiples of 16 bytes.
        match w.odd.filter(|(odd, _)| *odd == i) {
            Some((_, Odd::Gathered)) => all = ROWS,
            Some((_, Odd::Across(first))) => all = whole_rows(all + first + 3),
            Some((_, Odd::Deep(first))) => deep = whole_rows(deep + first + 3),
            Some((_, Odd::Ones)) | None => {}
        }
        let mut shape = if turned { vec![deep, all] } else { vec![all, deep] };
        if w.matrix.is_some() {
            shape.insert(0, 3);
        }
        sim::Arg::dense(elem, &shape, whole(elem, shape.iter().product(), i + 1))
    };
    let shape = [w.factors[0].all, w.factors[1].all];
    let output = |_| sim::Arg::dense(sum, &shape, whole(sum, shape.iter().product(), 3));
    Random { text, args: [input(0), input(1)].into_iter().chain(index).chain(warps.iter().map(output)).collect() }
}

/// Rows of a tensor whose rows are gathered.
const ROWS: i64 = 24;

/// Indices of rows, of which some are outside of the tensor.
fn indices(n: i64) -> sim::Arg {
    let bytes = (0..n).flat_map(|i| i32::try_from((7 * i + 3) % (ROWS + 2) - 1).unwrap_or(0).to_le_bytes()).collect();
    sim::Arg::dense(Elem::I32, &[n], bytes)
}

/// So many elements or more, of rows of whole pieces of 16 bytes.
const fn whole_rows(n: i64) -> i64 {
    (n + 15) / 16 * 16
}

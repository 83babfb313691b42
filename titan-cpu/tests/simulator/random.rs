//! Random kernels whose loops become rings, or state them: copies that run ahead, one role that copies and one or two that
//! compute, products, reductions, transposes, atomic updates, staging. All numbers are whole and small, so that every way of
//! computing them gives the same bytes.

use super::rng::Rng;
use std::fmt::Write as _;
use titan_core::ir::Elem;
use titan_core::num;
use titan_sim::sim;

/// A kernel as text, with the extents of a launch.
pub(super) struct Random {
    pub(super) text: String,
    m: i64,
    n: i64,
    k: i64,
    elem: Elem,
    sum: Elem,
    /// Extents of the outputs.
    outputs: Vec<Vec<i64>>,
}

/// What a role computes with: a tile in registers, or in a stage.
struct Factor {
    tile: Option<String>,
    view: Option<String>,
}

struct Writer<'r> {
    rng: &'r mut Rng,
    out: String,
    fresh: usize,
    /// Tiles of A are `bm` by `bk`, tiles of B `bn` by `bk`.
    bm: i32,
    bn: i32,
    bk: i32,
    elem: &'static str,
    sum: &'static str,
    /// Whether tiles are only multiplied: then the compiler makes a ring of their loop.
    products: bool,
}

/// How the iterations of the loop over k are nested.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nest {
    One,
    /// Again and again, so often.
    Repeated(u32),
    /// One loop after the other.
    Two,
    /// The loop over the tiles of a persistent program.
    Persistent,
}

const ELEMS: [(Elem, &str, Elem, &str, i32); 4] = [
    (Elem::F16, "f16", Elem::F32, "f32", 2),
    (Elem::I8, "i8", Elem::I32, "i32", 1),
    (Elem::Bf16, "bf16", Elem::F32, "f32", 2),
    (Elem::F32, "f32", Elem::F32, "f32", 4),
];

impl Writer<'_> {
    fn name(&mut self, what: &str) -> String {
        self.fresh += 1;
        format!("%{what}{}", self.fresh)
    }

    fn line(&mut self, line: &str) {
        self.out += line;
        self.out += "\n";
    }

    /// An operation with one result.
    fn op(&mut self, what: &str, op: &str) -> String {
        let name = self.name(what);
        self.line(&format!("{name} = {op}"));
        name
    }

    fn tile_of(&mut self, factor: &mut Factor) -> String {
        if factor.tile.is_none() {
            let view = factor.view.clone().unwrap_or_default();
            factor.tile = Some(self.op("r", &format!("ttg.stage.read {view}")));
        }
        factor.tile.clone().unwrap_or_default()
    }

    /// The tile in the type of sums.
    fn wide(&mut self, factor: &mut Factor, rows: i32) -> String {
        let (tile, bk, sum) = (self.tile_of(factor), self.bk, self.sum);
        if self.elem == sum { tile } else { self.op("w", &format!("cast {tile} : tile<{rows}x{bk}x{sum}>")) }
    }

    /// What one iteration adds to a sum.
    fn step(&mut self, a: &mut Factor, b: &mut Factor, sum: &str) -> String {
        let (bm, bn) = (self.bm, self.bn);
        let what = if self.products { 0 } else { self.rng.below(5) };
        match what {
            0 | 1 => {
                let (a, b) = match (&a.view, &b.view) {
                    (Some(a), Some(b)) => (a.clone(), b.clone()),
                    (_, _) => (self.tile_of(a), self.tile_of(b)),
                };
                let bt = self.op("t", &format!("permute<1, 0> {b}"));
                self.op("s", &format!("mma {a}, {bt}, {sum}"))
            }
            2 => {
                let (a, b) = (self.tile_of(a), self.tile_of(b));
                let twice = self.op("x", &format!("add {a}, {a}"));
                let bt = self.op("t", &format!("permute<1, 0> {b}"));
                self.op("s", &format!("mma {twice}, {bt}, {sum}"))
            }
            3 => {
                let a = self.wide(a, bm);
                let f = self.rng.of(&["sum", "max", "min"]);
                let rows = self.op("f", &format!("reduce_{f}<1> {a}"));
                let rows = self.op("x", &format!("broadcast<1, {bn}> {rows}"));
                self.op("s", &format!("add {sum}, {rows}"))
            }
            _ => {
                let b = self.wide(b, bn);
                let bt = self.op("t", &format!("permute<1, 0> {b}"));
                let columns = self.op("f", &format!("reduce_sum<0> {bt}"));
                let columns = self.op("x", &format!("broadcast<0, {bm}> {columns}"));
                self.op("s", &format!("add {sum}, {columns}"))
            }
        }
    }

    fn steps(&mut self, a: &mut Factor, b: &mut Factor, sum: &str) -> String {
        let mut sum = sum.to_owned();
        for _ in 0..if self.products { 1 } else { 1 + self.rng.below(2) } {
            sum = self.step(a, b, &sum);
        }
        sum
    }

    /// Loops over tiles of k, nested as asked for; the body is told the counter and the sum so far, and gives the next one.
    fn nest(
        &mut self,
        nest: Nest,
        how: &str,
        sum: &str,
        body: &mut dyn FnMut(&mut Self, &str, &str) -> String,
    ) -> String {
        match nest {
            Nest::One | Nest::Persistent => self.looped(how, sum, body),
            Nest::Two => {
                let first = self.looped(how, sum, body);
                self.looped(how, &first, body)
            }
            Nest::Repeated(n) => {
                let reps = self.op("l", &format!("const {n} : i32"));
                let (w, carried, end) = (self.name("w"), self.name("u"), self.name("e"));
                let (carry, bind, _) = carried_as(&carried, sum, &end);
                self.line(&format!("{bind}for {w} = %zero to {reps} step %one{carry} {{"));
                let inner = self.looped(how, if sum.is_empty() { "" } else { &carried }, body);
                self.line(&format!("continue {inner}\n}}"));
                if sum.is_empty() { String::new() } else { end }
            }
        }
    }

    fn looped(&mut self, how: &str, sum: &str, body: &mut dyn FnMut(&mut Self, &str, &str) -> String) -> String {
        let (t, carried, end) = (self.name("t"), self.name("u"), self.name("e"));
        let (carry, bind, inside) = carried_as(&carried, sum, &end);
        self.line(&format!("{bind}for {t} = %zero to %steps step %one{how}{carry} {{"));
        let next = body(self, &t, &inside);
        self.line(&format!("continue {next}\n}}"));
        if sum.is_empty() { String::new() } else { end }
    }

    fn head(&mut self, persistent: bool) {
        let (bk, zero) = (self.bk, if self.sum == "i32" { "0" } else { "0.0" });
        let (elem, sum, bm, bn) = (self.elem, self.sum, self.bm, self.bn);
        if !persistent {
            self.line("%m = program_id<0>\n%n = program_id<1>");
        }
        self.line(&format!(
            "%k = dim<1> %a\n%ck = const {bk} : i32\n%ce = const {} : i32\n%up = add %k, %ce\n%steps = div %up, %ck\n\
             %zero = const 0 : i32\n%one = const 1 : i32\n%pad = const {zero} : {elem}\n%none = const {zero} : {sum}",
            bk - 1
        ));
        if persistent {
            self.line(&format!(
                "%rows = dim<0> %a\n%cm = const {bm} : i32\n%dm = const {} : i32\n%ru = add %rows, %dm\n%gm = div %ru, %cm\n\
                 %cols = dim<0> %b\n%cn = const {bn} : i32\n%dn = const {} : i32\n%cu = add %cols, %dn\n%gn = div %cu, %cn\n\
                 %tiles = mul %gm, %gn",
                bm - 1,
                bn - 1
            ));
        }
    }

    /// Adds sums of the first tile of the program's rows to a tensor.
    fn sums_of_rows(&mut self, to: &str) {
        let (bm, bk, elem, sum) = (self.bm, self.bk, self.elem, self.sum);
        let tile = self.op("a", &format!("load_tile %a[%m, %zero] or %pad : tile<{bm}x{bk}x{elem}>"));
        let wide = if elem == sum { tile } else { self.op("w", &format!("cast {tile} : tile<{bm}x{bk}x{sum}>")) };
        let running = self.op("x", &format!("scan_sum<0> {wide}"));
        let rows = self.op("f", &format!("reduce_sum<1> {running}"));
        self.line(&format!("atomic_add_tile {to}[%m], {rows}"));
    }

    fn start(&mut self) -> String {
        let (bm, bn, sum) = (self.bm, self.bn, self.sum);
        self.op("z", &format!("splat %none : tile<{bm}x{bn}x{sum}>"))
    }
}

/// How a loop carries a sum, if there is one: what stands behind its bounds, and before it; and its name inside.
fn carried_as(carried: &str, sum: &str, end: &str) -> (String, String, String) {
    match sum {
        "" => (String::new(), String::new(), String::new()),
        _ => (format!(" carry({carried} = {sum})"), format!("{end} = "), carried.to_owned()),
    }
}

fn writer(rng: &mut Rng) -> (Writer<'_>, (Elem, Elem), i32) {
    let (elem, name, sum, sum_name, size) = rng.of(&ELEMS);
    let (bm, bn) = rng.of(&[(16, 16), (16, 32), (32, 16), (16, 16), (32, 32)]);
    let bk = if elem == Elem::I8 { 32 } else { rng.of(&[16, 32]) };
    let products = rng.below(2) == 0;
    let w = Writer { rng, out: String::new(), fresh: 0, bm, bn, bk, elem: name, sum: sum_name, products };
    (w, (elem, sum), size)
}

/// Extents of a launch: a few tiles, whole or not.
fn extents(rng: &mut Rng, [bm, bn, bk]: [i32; 3], whole: bool) -> [i64; 3] {
    let tall = rng.below(3) == 0;
    let steps = rng.below(5);
    let mut one = |tile: i32, tiles: u32| {
        let n = tiles as i32 * tile;
        i64::from(if whole || n == 0 { n } else { n - rng.below(tile as u32) as i32 })
    };
    [one(bm, 1 + u32::from(tall)), one(bn, 1 + u32::from(!tall && whole)), one(bk, steps)]
}

/// A loop of which the compiler makes a ring.
pub(super) fn implicit(rng: &mut Rng, whole: bool) -> Random {
    let nest = rng.of(&[Nest::One, Nest::One, Nest::Repeated(2), Nest::Repeated(0), Nest::Two]);
    let (atomic, turned) = (rng.below(3) == 0, rng.below(4) == 0);
    let (mut w, elems, _) = writer(rng);
    let (bm, bn, bk, elem, sum) = (w.bm, w.bn, w.bk, w.elem, w.sum);
    w.head(false);
    let zero = w.start();
    let mut body = |w: &mut Writer<'_>, t: &str, acc: &str| {
        let a = w.op("a", &format!("load_tile %a[%m, {t}] or %pad : tile<{bm}x{bk}x{elem}>"));
        let b = w.op("b", &format!("load_tile %b[%n, {t}] or %pad : tile<{bn}x{bk}x{elem}>"));
        let of = |tile| Factor { tile: Some(tile), view: None };
        w.steps(&mut of(a), &mut of(b), acc)
    };
    let end = w.nest(nest, " pipelined", &zero, &mut body);
    if atomic {
        let rows = w.op("f", &format!("reduce_sum<1> {end}"));
        w.line(&format!("atomic_add_tile %d[%m], {rows}"));
    }
    if turned {
        let out = w.op("t", &format!("permute<1, 0> {end}"));
        w.line(&format!("store_tile %c[%n, %m], {out}"));
    } else {
        w.line(&format!("store_tile %c[%m, %n], {end}"));
    }
    let lines = std::mem::take(&mut w.out);
    let [m, n, k] = extents(rng, [bm, bn, bk], whole);
    let mut outputs = vec![if turned { vec![n, m] } else { vec![m, n] }];
    let c = if turned { "[N, M]" } else { "[M, N]" };
    let mut more = String::new();
    if atomic {
        outputs.push(vec![m]);
        let _ = write!(more, ", %d: mut tensor<{sum}>[M]");
    }
    let text = format!(
        "kernel @random(%a: in tensor<{elem}>[M, K], %b: in tensor<{elem}>[N, K], %c: mut tensor<{sum}>{c}{more}) \
         grid(cdiv(M, {bm}), cdiv(N, {bn})) {{\n{lines}return\n}}\n"
    );
    Random { text, m, n, k, elem: elems.0, sum: elems.1, outputs }
}

/// The rings of a kernel with roles: one for both tensors, or one for each.
struct Rings {
    apart: bool,
    slots: Vec<u32>,
    bytes: [i32; 2],
}

impl Rings {
    fn fill(&self, w: &mut Writer<'_>, t: &str, [m, n]: [&str; 2]) {
        let (bm, bn, bk, elem) = (w.bm, w.bn, w.bk, w.elem);
        let source = |w: &mut Writer<'_>, tensor: &str, at: &str, rows: i32| {
            w.op("q", &format!("ttg.source_tile {tensor}[{at}, {t}] or %pad : source<{rows}x{bk}x{elem}>"))
        };
        let sources = [source(w, "%a", m, bm), source(w, "%b", n, bn)];
        if self.apart {
            for (ring, (source, bytes)) in sources.iter().zip(self.bytes).enumerate() {
                let slot = w.op("f", &format!("ttg.stage.acquire<{ring}>"));
                w.line(&format!("ttg.stage.async_produce {slot}, {source} {{bytes = {bytes}, proxy = generic}}"));
            }
        } else {
            let (slot, bytes) = (w.op("f", "ttg.stage.acquire<0>"), self.bytes[0] + self.bytes[1]);
            let both = sources.join(", ");
            w.line(&format!("ttg.stage.async_produce {slot}, {both} {{bytes = {bytes}, proxy = generic}}"));
        }
    }

    /// The stages of an iteration as factors, and the rights to read them.
    fn take(&self, w: &mut Writer<'_>) -> ([Factor; 2], Vec<String>) {
        let mut rights = Vec::new();
        for ring in 0..=u32::from(self.apart) {
            let ready = w.op("y", &format!("ttg.stage.ready<{ring}>"));
            let stage = w.op("g", &format!("ttg.stage.wait_ready {ready}"));
            rights.push(w.op("p", &format!("ttg.stage.read_perm {stage}")));
        }
        let view = |w: &mut Writer<'_>, i: usize, rows: i32| {
            let (field, right) = if self.apart { (0, &rights[i]) } else { (i, &rights[0]) };
            let view = format!("ttg.stage.view<{field}> {right} : smem<{rows}x{}x{}>", w.bk, w.elem);
            Factor { tile: None, view: Some(w.op("v", &view)) }
        };
        let (bm, bn) = (w.bm, w.bn);
        ([view(w, 0, bm), view(w, 1, bn)], rights)
    }

    fn release(w: &mut Writer<'_>, rights: &[String]) {
        for right in rights.iter().rev() {
            let over = w.op("o", &format!("ttg.stage.consumed {right}"));
            w.line(&format!("ttg.stage.release {over}"));
        }
    }

    /// What a reading role makes of all stages.
    fn consume(&self, w: &mut Writer<'_>, nest: Nest) -> String {
        let zero = w.start();
        let keep = self.slots[0] - 1;
        if !self.apart && keep > 0 && nest != Nest::Persistent && w.rng.below(4) == 0 {
            let begin = w.op("h", &format!("ttg.acc.start<{keep}> {zero}"));
            let chain = w.nest(nest, "", &begin, &mut |w, _, acc| {
                let ([a, b], rights) = self.take(w);
                let (a, b) = (a.view.unwrap_or_default(), b.view.unwrap_or_default());
                let bt = w.op("t", &format!("permute<1, 0> {b}"));
                w.op("s", &format!("ttg.acc.mma {acc}, {}, {a}, {bt}", rights[0]))
            });
            return w.op("s", &format!("ttg.acc.finish {chain}"));
        }
        let early = w.rng.below(3) == 0;
        w.nest(nest, "", &zero, &mut |w, _, acc| {
            let ([mut a, mut b], rights) = self.take(w);
            if early {
                // Read to registers and released before anything is computed.
                w.tile_of(&mut a);
                w.tile_of(&mut b);
                (a.view, b.view) = (None, None);
                Rings::release(w, &rights);
                return w.steps(&mut a, &mut b, acc);
            }
            let sum = w.steps(&mut a, &mut b, acc);
            Rings::release(w, &rights);
            sum
        })
    }
}

/// A role that copies, and one or two that compute.
pub(super) fn roles(rng: &mut Rng, whole: bool) -> Random {
    let nest = rng.of(&[Nest::One, Nest::One, Nest::Repeated(2), Nest::Two, Nest::Persistent]);
    let (apart, readers, staged) = (rng.below(3) == 0, 1 + rng.below(2), rng.below(4) == 0);
    let slots: Vec<u32> = (0..=u32::from(apart)).map(|_| 1 + rng.below(4)).collect();
    let warps: Vec<u32> = (0..=readers).map(|_| rng.of(&[1, 1, 2, 4])).collect();
    let (mut w, elems, size) = writer(rng);
    let (bm, bn, bk, elem, sum) = (w.bm, w.bn, w.bk, w.elem, w.sum);
    let rings = Rings { apart, slots, bytes: [bm * bk * size, bn * bk * size] };
    let persistent = nest == Nest::Persistent;
    // All warps together compute sums of the first tile of a row, before the roles or after them.
    let around = if persistent { 0 } else { w.rng.below(4) };
    w.head(persistent);
    if around & 1 != 0 {
        w.sums_of_rows("%before");
    }
    w.line("ttg.roles copy {");
    tiles(&mut w, persistent, |w, at| {
        w.nest(nest, "", "", &mut |w, t, _| {
            rings.fill(w, t, at);
            String::new()
        });
    });
    w.line("ttg.pipeline.finalize\nyield");
    for reader in 0..readers {
        w.line(&format!("}} reader{reader} {{"));
        tiles(&mut w, persistent, |w, [m, n]| {
            let end = rings.consume(w, nest);
            let to = format!("%c{reader}[{m}, {n}]");
            if staged && reader == 0 {
                let slot = w.op("f", &format!("ttg.stage.acquire<{}>", rings.slots.len()));
                let written = w.op("i", &format!("ttg.stage.write {slot}, {end}"));
                let store = w.op("j", &format!("ttg.store.issue_tile {to}, {written}"));
                w.line(&format!("ttg.store.wait {store}"));
            } else {
                w.line(&format!("store_tile {to}, {end}"));
            }
        });
        w.line("ttg.pipeline.finalize\nyield");
    }
    w.line("}");
    if around & 2 != 0 {
        w.sums_of_rows("%after");
    }
    let lines = std::mem::take(&mut w.out);
    let [m, n, k] = extents(rng, [bm, bn, bk], whole);
    let mut outs: String = (0..readers).map(|r| format!(", %c{r}: mut tensor<{sum}>[M, N]")).collect();
    let mut outputs = vec![vec![m, n]; readers as usize];
    for (bit, name) in [(1, "before"), (2, "after")] {
        if around & bit != 0 {
            let _ = write!(outs, ", %{name}: mut tensor<{sum}>[M]");
            outputs.push(vec![m]);
        }
    }
    let [ta, tb] = [format!("tile<{bm}x{bk}x{elem}>"), format!("tile<{bn}x{bk}x{elem}>")];
    let mut pipes = match &rings.slots[..] {
        [one] => format!("pipe({one}, \"ring\", {ta}, {tb})"),
        both => format!("pipe({}, \"left\", {ta}) pipe({}, \"right\", {tb})", both[0], both[both.len() - 1]),
    };
    if staged {
        let _ = write!(pipes, " pipe(1, \"staged\", tile<{bm}x{bn}x{sum}>)");
    }
    let mut parts = format!("role(copy, {})", warps[0]);
    for (r, warps) in warps[1..].iter().enumerate() {
        let _ = write!(parts, " role(reader{r}, {warps})");
    }
    let grid = if persistent { "grid persistent".to_owned() } else { format!("grid(cdiv(M, {bm}), cdiv(N, {bn}))") };
    let text = format!(
        "kernel @random(%a: in tensor<{elem}>[M, K], %b: in tensor<{elem}>[N, K]{outs}) {grid} {pipes} {parts} {{\n{lines}return\n}}\n"
    );
    Random { text, m, n, k, elem: elems.0, sum: elems.1, outputs }
}

/// The tiles of the output of which a role computes: that of the program, or those that a persistent one comes to.
fn tiles(w: &mut Writer<'_>, persistent: bool, body: impl FnOnce(&mut Writer<'_>, [&str; 2])) {
    if !persistent {
        return body(w, ["%m", "%n"]);
    }
    let [i, m, n] = ["i", "m", "n"].map(|what| w.name(what));
    w.line(&format!("for {i} = %zero to %tiles step %one distributed {{\n{m}, {n} = unflatten {i}, %gm, %gn"));
    body(w, [&m, &n]);
    w.line("continue\n}");
}

/// Whole numbers from −3 to 3.
pub(super) fn whole(elem: Elem, n: i64, salt: usize) -> Vec<u8> {
    let value = |i: usize| ((i * 7 + salt * 13 + i / 5) % 7) as f64 - 3.0;
    let code = |i: usize| -> u64 {
        match elem {
            Elem::F32 | Elem::Tf32 => (value(i) as f32).to_bits().into(),
            Elem::E4m3 => num::e4m3_from_f64(value(i)).into(),
            Elem::E5m2 => num::e5m2_from_f64(value(i)).into(),
            Elem::F16 => num::f16_from_f64(value(i)).into(),
            Elem::Bf16 => num::bf16_from_f64(value(i)).into(),
            _ => (value(i) as i64).cast_unsigned(),
        }
    };
    (0..n as usize).flat_map(|i| code(i).to_le_bytes()[..elem.bits() as usize / 8].to_vec()).collect()
}

impl Random {
    /// The arguments of a launch.
    pub(super) fn arguments(&self) -> Vec<sim::Arg> {
        let input =
            |rows: i64, salt| sim::Arg::dense(self.elem, &[rows, self.k], whole(self.elem, rows * self.k, salt));
        let output = |shape: &Vec<i64>| sim::Arg::dense(self.sum, shape, whole(self.sum, shape.iter().product(), 3));
        [input(self.m, 1), input(self.n, 2)].into_iter().chain(self.outputs.iter().map(output)).collect()
    }
}

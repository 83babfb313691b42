//! Random kernels with a loop that a scheduler has something to choose for: several products, also of what other products and threads
//! compute; what the loop carries in registers, in accumulators and as numbers; branches and loops in it; tiles that are added to, masked and
//! reduced; operands that the loop carries, or does not change. All numbers are whole and small, so that every way of computing them
//! gives the same bytes: operands are kept between −8 and 8, and rows between −64 and 64.
//!
//! Deliberately absent: rings and roles that the kernel states (`random`, `random_groups`), and loops that are left early (`exits`).

use super::random::whole;
use super::rng::Rng;
use titan_core::ir::Elem;
use titan_sim::sim;

/// A kernel as text, with the arguments of a launch.
pub(super) struct Random {
    pub(super) text: String,
    pub(super) args: Vec<sim::Arg>,
}

/// What an iteration may use, by name.
#[derive(Clone, Default)]
struct Scope {
    /// The number of the iteration, and other numbers.
    numbers: Vec<String>,
    /// Operands A, `m` by `k`.
    lefts: Vec<String>,
    /// Operands B, `k` by `n`.
    rights: Vec<String>,
    /// Tiles of sums, `m` by `n`: the first are those that the loop carries.
    sums: Vec<String>,
    /// A number for each row.
    rows: String,
    /// The operand A that is carried; none if none is.
    kept: Option<String>,
    /// How deep branches and loops are nested.
    depth: u32,
    /// Whether a loop around is pipelined, in which none may be.
    pipelined: bool,
}

impl Scope {
    /// What a loop or a branch passes on.
    fn passed(&self) -> Vec<String> {
        let own = [self.rows.clone()].into_iter().chain(self.kept.clone());
        self.sums.iter().cloned().chain(own).chain([self.numbers[1].clone()]).collect()
    }

    /// The same scope with other names for these.
    fn renamed(&self, names: &[String]) -> Scope {
        let mut names = names.iter().cloned();
        let mut next = || names.next().unwrap_or_default();
        let mut scope = self.clone();
        scope.sums.iter_mut().for_each(|sum| *sum = next());
        scope.rows = next();
        scope.kept = self.kept.as_ref().map(|_| next());
        scope.numbers[1] = next();
        scope
    }
}

struct Writer<'r> {
    rng: &'r mut Rng,
    out: String,
    fresh: usize,
    m: i32,
    n: i32,
    k: i32,
    elem: &'static str,
}

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

    fn pick(&mut self, all: &[String]) -> Option<String> {
        let at = self.rng.below(all.len().max(1) as u32) as usize;
        all.get(at).cloned()
    }

    fn left(&self) -> String {
        format!("tile<{}x{}x{}>", self.m, self.k, self.elem)
    }

    fn right(&self) -> String {
        format!("tile<{}x{}x{}>", self.k, self.n, self.elem)
    }

    /// The types of what is passed on.
    fn types(&self, scope: &Scope) -> String {
        let (m, n) = (self.m, self.n);
        let sums = scope.sums.iter().map(|_| format!("tile<{m}x{n}xf32>"));
        let more = [format!("tile<{m}xf32>")].into_iter().chain(scope.kept.as_ref().map(|_| self.left()));
        sums.chain(more).chain(["i32".to_owned()]).collect::<Vec<_>>().join(", ")
    }

    /// An operand between −8 and 8.
    fn bounded(&mut self, tile: &str) -> String {
        let below = self.op("x", &format!("min {tile}, %most"));
        self.op("x", &format!("max {below}, %least"))
    }

    /// Rows between −64 and 64.
    fn bounded_rows(&mut self, rows: &str) -> String {
        let below = self.op("r", &format!("min {rows}, %high"));
        self.op("r", &format!("max {below}, %low"))
    }

    /// The number of a tile along K: that of the iteration, the next one's, another number, or 0.
    fn place(&mut self, scope: &Scope) -> String {
        match self.rng.below(16) {
            0 => self.op("i", &format!("add {}, %one", scope.numbers[0])),
            1 => scope.numbers[1].clone(),
            2 => "%zero".to_owned(),
            _ => scope.numbers[0].clone(),
        }
    }

    fn load_left(&mut self, scope: &mut Scope) {
        let (place, left) = (self.place(scope), self.left());
        let tile = self.op("a", &format!("load_tile %a[%m, {place}] or %pad : {left}"));
        scope.lefts.push(tile);
    }

    /// A tile of B as it is stored, or of its transpose.
    fn load_right(&mut self, scope: &mut Scope) {
        let (place, right) = (self.place(scope), self.right());
        let tile = if self.rng.below(3) == 0 {
            let turned = format!("tile<{}x{}x{}>", self.n, self.k, self.elem);
            let tile = self.op("d", &format!("load_tile %d[%n, {place}] or %pad : {turned}"));
            self.op("d", &format!("permute<1, 0> {tile}"))
        } else {
            self.op("b", &format!("load_tile %b[{place}, %n] or %pad : {right}"))
        };
        scope.rights.push(tile);
    }

    /// A product that adds to one of the sums.
    fn product(&mut self, scope: &mut Scope) {
        if scope.lefts.is_empty() || self.rng.below(3) == 0 {
            self.load_left(scope);
        }
        if scope.rights.is_empty() || self.rng.below(2) == 0 {
            self.load_right(scope);
        }
        // Mostly what was computed last.
        let latest = self.rng.below(2) == 0;
        let left = if latest { scope.lefts.last().cloned() } else { self.pick(&scope.lefts.clone()) };
        let right = self.pick(&scope.rights.clone());
        let at = self.rng.below(scope.sums.len() as u32) as usize;
        let [left, right] = [left, right].map(Option::unwrap_or_default);
        scope.sums[at] = self.op("s", &format!("mma {left}, {right}, {}", scope.sums[at]));
    }

    /// Scores: the product of an operand and a tile of C, of which rows and another operand are computed.
    fn scores(&mut self, scope: &mut Scope) {
        if scope.lefts.is_empty() {
            self.load_left(scope);
        }
        let (place, k, m, elem) = (self.place(scope), self.k, self.m, self.elem);
        let left = self.pick(&scope.lefts.clone()).unwrap_or_default();
        let tile = self.op("c", &format!("load_tile %c[{place}, %zero] or %pad : tile<{k}x{k}x{elem}>"));
        let turned = self.op("c", &format!("permute<1, 0> {tile}"));
        let mut scores = self.op("s", &format!("mma {left}, {turned}, %none : tile<{m}x{k}xf32>"));
        if self.rng.below(2) == 0 {
            let f = self.rng.of(&["max", "sum", "min"]);
            let of = self.op("r", &format!("reduce_{f}<1> {scores}"));
            let g = self.rng.of(&["max", "add", "sub"]);
            let rows = self.op("r", &format!("{g} {}, {of}", scope.rows));
            scope.rows = self.bounded_rows(&rows);
            if self.rng.below(2) == 0 {
                let wide = self.op("w", &format!("broadcast<1, {k}> {}", scope.rows));
                scores = self.op("s", &format!("sub {scores}, {wide}"));
            }
        }
        let below = self.op("s", &format!("min {scores}, %most32"));
        let bounded = self.op("s", &format!("max {below}, %least32"));
        let tile = self.op("p", &format!("cast {bounded} : {}", self.left()));
        scope.lefts.push(tile);
    }

    /// Threads compute an operand of another one.
    fn operand(&mut self, scope: &mut Scope) {
        if self.rng.below(3) == 0 && !scope.rights.is_empty() {
            let tile = self.pick(&scope.rights.clone()).unwrap_or_default();
            let negative = self.op("x", &format!("neg {tile}"));
            scope.rights.push(negative);
            return;
        }
        if scope.lefts.is_empty() {
            self.load_left(scope);
        }
        let [x, y] = [(); 2].map(|()| self.pick(&scope.lefts.clone()).unwrap_or_default());
        let f = self.rng.of(&["add", "sub", "max"]);
        let tile = self.op("x", &format!("{f} {x}, {y}"));
        let tile = self.bounded(&tile);
        scope.lefts.push(tile);
    }

    /// Threads change a sum.
    fn change(&mut self, scope: &mut Scope) {
        let at = self.rng.below(scope.sums.len() as u32) as usize;
        let (sum, n) = (scope.sums[at].clone(), self.n);
        scope.sums[at] = match self.rng.below(4) {
            0 => self.op("s", &format!("neg {sum}")),
            1 => {
                let wide = self.op("w", &format!("broadcast<1, {n}> {}", scope.rows));
                self.op("s", &format!("add {sum}, {wide}"))
            }
            2 => {
                // As attention scales its sum, by 1 or −1.
                let is_low = self.op("y", &format!("lt {}, %low0", scope.rows));
                let sign = self.op("r", &format!("select {is_low}, %minus, %plus"));
                let wide = self.op("w", &format!("broadcast<1, {n}> {sign}"));
                self.op("s", &format!("mul {sum}, {wide}"))
            }
            _ => {
                let other = self.pick(&scope.sums.clone()).unwrap_or_default();
                let below = self.op("s", &format!("max {sum}, {other}"));
                self.op("s", &format!("min {below}, %wide"))
            }
        };
    }

    fn rows(&mut self, scope: &mut Scope) {
        match self.rng.below(3) {
            0 => {
                let sum = self.pick(&scope.sums.clone()).unwrap_or_default();
                let of = self.op("r", &format!("reduce_max<1> {sum}"));
                scope.rows = self.bounded_rows(&of);
            }
            1 => self.line(&format!("atomic_add_tile %u[%m], {}", scope.rows)),
            _ => {
                let next = self.op("r", &format!("add {}, %plus", scope.rows));
                scope.rows = self.bounded_rows(&next);
            }
        }
    }

    fn number(&mut self, scope: &mut Scope) {
        let (counter, number) = (scope.numbers[0].clone(), scope.numbers[1].clone());
        let next = match self.rng.below(3) {
            0 => self.op("i", &format!("add {number}, %one")),
            1 => self.op("i", &format!("sub {counter}, {number}")),
            _ => self.op("i", &format!("rem {counter}, %two")),
        };
        scope.numbers[1] = self.op("i", &format!("max {next}, %zero"));
    }

    fn keep(&mut self, scope: &mut Scope) {
        let Some(kept) = scope.kept.clone() else { return };
        if scope.lefts.is_empty() || self.rng.below(2) == 0 {
            let next = self.op("x", &format!("add {kept}, %ones"));
            scope.kept = Some(self.bounded(&next));
        } else {
            scope.kept = self.pick(&scope.lefts.clone());
        }
        scope.lefts.extend(scope.kept.clone());
    }

    fn branch(&mut self, scope: &mut Scope) {
        let two = self.rng.of(&["%one", "%two", "%three"]);
        let (number, types) = (self.pick(&scope.numbers.clone()).unwrap_or_default(), self.types(scope));
        let rest = self.op("i", &format!("rem {number}, {two}"));
        let is = self.op("y", &format!("lt {rest}, %one"));
        let names: Vec<String> = scope.passed().iter().map(|_| self.name("v")).collect();
        self.line(&format!("{} = if {is} : {types} {{", names.join(", ")));
        for arm in 0..2 {
            let mut inner = Scope { depth: scope.depth + 1, ..scope.clone() };
            if arm == 0 || self.rng.below(2) == 0 {
                self.statements(&mut inner, 2);
            }
            self.line(&format!("yield {}", inner.passed().join(", ")));
            self.line(if arm == 0 { "} else {" } else { "}" });
        }
        *scope = scope.renamed(&names);
    }

    fn nested(&mut self, scope: &mut Scope) {
        let most = self.rng.of(&["%zero", "%one", "%two", "%two", "%three"]);
        let pipelined = scope.pipelined || self.rng.below(2) == 0;
        let (how, types) = (if pipelined && !scope.pipelined { " pipelined" } else { "" }, self.types(scope));
        let passed = scope.passed();
        let [outside, inside] = [(); 2].map(|()| passed.iter().map(|_| self.name("v")).collect::<Vec<_>>());
        let carried: Vec<String> = inside.iter().zip(&passed).map(|(new, old)| format!("{new} = {old}")).collect();
        let counter = self.name("j");
        self.line(&format!(
            "{} = for {counter} = %zero to {most} step %one{how} carry({}) : {types} {{",
            outside.join(", "),
            carried.join(", ")
        ));
        let mut inner = Scope { depth: scope.depth + 1, pipelined, ..scope.renamed(&inside) };
        inner.numbers[0] = counter;
        self.statements(&mut inner, 2);
        self.line(&format!("continue {}\n}}", inner.passed().join(", ")));
        *scope = scope.renamed(&outside);
    }

    fn statements(&mut self, scope: &mut Scope, most: u32) {
        for _ in 0..1 + self.rng.below(most) {
            match self.rng.below(if scope.depth < 2 { 14 } else { 11 }) {
                0..3 => self.product(scope),
                3 | 4 => self.scores(scope),
                5 => self.operand(scope),
                6 | 7 => self.change(scope),
                8 => self.rows(scope),
                9 => self.number(scope),
                10 => self.keep(scope),
                11 => self.nested(scope),
                _ => self.branch(scope),
            }
        }
    }

    fn head(&mut self) {
        let (m, n, k, elem) = (self.m, self.n, self.k, self.elem);
        self.line(&format!(
            "%m = program_id<0>\n%n = program_id<1>\n%k = dim<1> %a\n%ck = const {k} : i32\n%ce = const {} : i32\n\
             %up = add %k, %ce\n%steps = div %up, %ck\n%zero = const 0 : i32\n%one = const 1 : i32\n%two = const 2 : i32\n\
             %three = const 3 : i32\n%pad = const 0.0 : {elem}\n%zero32 = const 0.0 : f32",
            k - 1
        ));
        let mut constant = |name: &str, value: &str, elem: &str, shape: &str| {
            self.line(&format!("{name}c = const {value} : {elem}\n{name} = splat {name}c : tile<{shape}x{elem}>"));
        };
        for (name, value) in [("%most", "8.0"), ("%least", "-8.0"), ("%ones", "1.0")] {
            constant(name, value, elem, &format!("{m}x{k}"));
        }
        for (name, value) in [("%most32", "8.0"), ("%least32", "-8.0"), ("%none", "0.0")] {
            constant(name, value, "f32", &format!("{m}x{k}"));
        }
        for (name, value) in
            [("%high", "64.0"), ("%low", "-64.0"), ("%low0", "0.0"), ("%minus", "-1.0"), ("%plus", "1.0")]
        {
            constant(name, value, "f32", &m.to_string());
        }
        constant("%wide", "4096.0", "f32", &format!("{m}x{n}"));
    }
}

/// A kernel with a loop of 0 to 8 iterations, 1 to 3 sums, and an operand that it carries or not.
pub(super) fn kernel(rng: &mut Rng) -> Random {
    let of_groups = rng.below(3) > 0;
    let m = if of_groups { rng.of(&[64, 64, 128]) } else { rng.of(&[16, 32]) };
    let (n, k) = (rng.of(&[16, 32, 64]), rng.of(&[16, 16, 32, 64]));
    let (elem, bits) = rng.of(&[("f16", Elem::F16), ("f16", Elem::F16), ("bf16", Elem::Bf16)]);
    let mut w = Writer { rng, out: String::new(), fresh: 0, m, n, k, elem };
    w.head();
    let sums: Vec<String> =
        (0..1 + w.rng.below(2)).map(|_| w.op("s", &format!("splat %zero32 : tile<{m}x{n}xf32>"))).collect();
    let mut scope = Scope { sums, rows: "%low0".to_owned(), numbers: vec!["%zero".to_owned(); 2], ..Scope::default() };
    // An operand from before the loop.
    match w.rng.below(3) {
        0 => w.load_left(&mut scope),
        1 => w.scores(&mut scope),
        _ => {}
    }
    scope.kept =
        if w.rng.below(3) == 0 { Some(scope.lefts.last().map_or("%ones".to_owned(), String::clone)) } else { None };
    let passed = scope.passed();
    let [outside, inside] = [(); 2].map(|()| passed.iter().map(|_| w.name("v")).collect::<Vec<_>>());
    let carried: Vec<String> = inside.iter().zip(&passed).map(|(new, old)| format!("{new} = {old}")).collect();
    let (types, counter) = (w.types(&scope), w.name("t"));
    let pipelined = w.rng.below(4) > 0;
    let how = if pipelined { " pipelined" } else { "" };
    w.line(&format!(
        "{} = for {counter} = %zero to %steps step %one{how} carry({}) : {types} {{",
        outside.join(", "),
        carried.join(", ")
    ));
    let mut inner = Scope { pipelined, ..scope.renamed(&inside) };
    inner.numbers[0] = counter;
    inner.lefts.extend(inner.kept.clone());
    // Mostly as a product of matrices, of which copies can be made ahead.
    if w.rng.below(4) > 0 {
        w.load_left(&mut inner);
        w.load_right(&mut inner);
        w.product(&mut inner);
    }
    let most = 1 + w.rng.below(4);
    w.statements(&mut inner, most);
    w.line(&format!("continue {}\n}}", inner.passed().join(", ")));
    let end = scope.renamed(&outside);
    for (nth, sum) in end.sums.iter().enumerate() {
        w.line(&format!("store_tile %o{nth}[%m, %n], {sum}"));
    }
    w.line(&format!("atomic_add_tile %u[%m], {}", end.rows));
    if let Some(kept) = &end.kept {
        let wide = w.op("w", &format!("cast {kept} : tile<{m}x{k}xf32>"));
        let rows = w.op("r", &format!("reduce_sum<1> {wide}"));
        w.line(&format!("atomic_add_tile %u[%m], {rows}"));
    }
    let lines = std::mem::take(&mut w.out);
    let outputs: String = (0..end.sums.len()).map(|nth| format!(", %o{nth}: mut tensor<f32>[M, N]")).collect();
    let text = format!(
        "kernel @random(%a: in tensor<{elem}>[M, K], %b: in tensor<{elem}>[K, N], %c: in tensor<{elem}>[K, {k}], \
         %d: in tensor<{elem}>[N, K], %u: mut tensor<f32>[M]{outputs}) grid(cdiv(M, {m}), cdiv(N, {n})) {{\n{lines}return\n}}\n"
    );
    let args = arguments(rng, (bits, end.sums.len()), [m, n, k]);
    Random { text, args }
}

/// The arguments of a launch of one or two programs.
fn arguments(rng: &mut Rng, (elem, sums): (Elem, usize), [m, n, k]: [i32; 3]) -> Vec<sim::Arg> {
    let is_whole = rng.below(2) == 0;
    let (tall, steps) = (rng.below(4) == 0, rng.of(&[0, 1, 1, 2, 2, 3, 3, 4, 5, 8]));
    let mut extent = |tile: i32, tiles: i32| {
        let all = tile * tiles;
        i64::from(if is_whole || all == 0 { all } else { all - rng.below(tile as u32) as i32 })
    };
    let [m, n, k_all] = [extent(m, 1 + i32::from(tall)), extent(n, 1), extent(k, steps)];
    let input = |shape: [i64; 2], salt| sim::Arg::dense(elem, &shape, whole(elem, shape[0] * shape[1], salt));
    let output = |shape: &[i64]| sim::Arg::dense(Elem::F32, shape, whole(Elem::F32, shape.iter().product(), 5));
    let inputs = [input([m, k_all], 1), input([k_all, n], 2), input([k_all, k.into()], 3), input([n, k_all], 4)];
    inputs.into_iter().chain([output(&[m])]).chain((0..sums).map(|_| output(&[m, n]))).collect()
}

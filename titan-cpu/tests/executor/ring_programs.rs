//! Random programs of roles: each stage that is read holds what was copied to it, whoever waits for whom. What is read where
//! is known from lists of what each role does, made without any notion of turns or queues.

use crate::common::{Rng, Tensor, compile_text, data, run};
use std::fmt::Write;
use titan_core::ir::Elem;
use titan_cpu::{Options, Program};

/// What a role does.
#[derive(Clone, Debug)]
enum Item {
    /// Copies to slots of a ring, which are taken first and filled in the opposite order.
    Fill(usize, usize),
    /// Reads stages of a ring, which are released when all of them are read.
    Read(usize, usize),
    /// So often, or as often as the extent says.
    Loop(Option<i32>, Vec<Item>),
    /// If the counter of the loop around is not below this.
    From(i32, Vec<Item>),
}

/// Elements of a tile.
const TILE: i32 = 4;
/// Iterations at most, of each of two loops around an item.
const MOST: i32 = 8;

/// Both sides of rings, in one structure, so that nearly all programs are good.
fn sides(rng: &mut Rng, depth: u64, rings: &[usize], out: [&mut Vec<Item>; 2], looped: bool) {
    let [fill, read] = out;
    for _ in 0..=rng.below(2) {
        let ring = rng.below(rings.len() as u64) as usize;
        let (mut a, mut b) = (Vec::new(), Vec::new());
        match rng.below(if depth == 0 { 3 } else { 6 }) {
            0 | 1 => {
                let n = 1 + rng.below(rings[ring] as u64) as usize;
                fill.push(Item::Fill(ring, n));
                // The reader need not take them as they were filled.
                if rng.below(2) == 0 {
                    read.push(Item::Read(ring, n))
                } else {
                    read.extend(vec![Item::Read(ring, 1); n])
                }
            }
            2 if looped => {
                let from = rng.below(3) as i32;
                sides(rng, 0, rings, [&mut a, &mut b], looped);
                fill.push(Item::From(from, a));
                read.push(Item::From(from, b));
            }
            2 => {}
            _ => {
                let count = if rng.below(2) == 0 { None } else { Some(rng.below(4) as i32) };
                sides(rng, depth - 1, rings, [&mut a, &mut b], true);
                fill.push(Item::Loop(count, a));
                read.push(Item::Loop(count, b));
            }
        }
    }
}

/// One event of each item: where it copies from, or stores to, in tiles; items have numbers.
fn events(items: &[Item], number: &mut i32, at: [i32; 2], n: i32, out: &mut Vec<(usize, i32)>) {
    for item in items {
        let first = *number;
        match item {
            Item::Fill(ring, count) | Item::Read(ring, count) => {
                for i in 0..*count as i32 {
                    out.push((*ring, ((first + i) * MOST + at[0]) * MOST + at[1]));
                }
                *number += *count as i32;
            }
            Item::Loop(count, body) => {
                let mut end = first;
                numbers(body, &mut end);
                for j in 0..count.unwrap_or(n) {
                    *number = first;
                    events(body, number, [at[1], j], n, out);
                }
                *number = end;
            }
            Item::From(from, body) if at[1] >= *from => events(body, number, at, n, out),
            Item::From(_, body) => numbers(body, number),
        }
    }
}

fn numbers(items: &[Item], number: &mut i32) {
    for item in items {
        match item {
            Item::Fill(_, count) | Item::Read(_, count) => *number += *count as i32,
            Item::Loop(_, body) | Item::From(_, body) => numbers(body, number),
        }
    }
}

struct Writer {
    out: String,
    fresh: usize,
    number: i32,
    /// The tensor that the role stores to.
    output: usize,
}

impl Writer {
    fn name(&mut self, what: &str) -> String {
        self.fresh += 1;
        format!("%{what}{}", self.fresh)
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.out, "{line}");
    }

    fn constant(&mut self, value: i32) -> String {
        let c = self.name("c");
        self.line(&format!("{c} = const {value} : i32"));
        c
    }

    /// The tile of an event: its item's number, and the counters around it.
    fn place(&mut self, number: i32, at: &[String; 2]) -> String {
        let [base, most] = [number * MOST, MOST].map(|v| self.constant(v));
        let [x, y, z] = ["x", "y", "z"].map(|w| self.name(w));
        self.line(&format!("{x} = add {base}, {}\n{y} = mul {x}, {most}\n{z} = add {y}, {}", at[0], at[1]));
        z
    }

    fn items(&mut self, items: &[Item], at: &[String; 2]) {
        for item in items {
            match item {
                Item::Fill(ring, count) => self.fill(*ring, *count, at),
                Item::Read(ring, count) => self.read(*ring, *count, at),
                Item::Loop(count, body) => {
                    let hi = count.map_or_else(|| "%n".to_owned(), |n| self.constant(n));
                    let j = self.name("j");
                    self.line(&format!("for {j} = %zero to {hi} step %one {{"));
                    self.items(body, &[at[1].clone(), j]);
                    self.line("continue\n}");
                }
                Item::From(from, body) => {
                    let (c, b) = (self.constant(*from), self.name("b"));
                    self.line(&format!("{b} = ge {}, {c}\nif {b} {{", at[1]));
                    self.items(body, at);
                    self.line("yield\n} else {\nyield\n}");
                }
            }
        }
    }

    fn fill(&mut self, ring: usize, count: usize, at: &[String; 2]) {
        let slots: Vec<String> = (0..count).map(|_| self.name("f")).collect();
        for slot in &slots {
            self.line(&format!("{slot} = ttg.stage.acquire<{ring}>"));
        }
        for (i, slot) in slots.iter().enumerate().rev() {
            let (place, s) = (self.place(self.number + i as i32, at), self.name("s"));
            self.line(&format!("{s} = ttg.source_tile %a[{place}] or %pad : source<{TILE}xf32>"));
            self.line(&format!("ttg.stage.async_produce {slot}, {s} {{bytes = {}, proxy = generic}}", 4 * TILE));
        }
        self.number += count as i32;
    }

    fn read(&mut self, ring: usize, count: usize, at: &[String; 2]) {
        let mut held = Vec::new();
        for _ in 0..count {
            let [r, s, p, v, x] = ["r", "s", "p", "v", "x"].map(|w| self.name(w));
            self.line(&format!("{r} = ttg.stage.ready<{ring}>\n{s} = ttg.stage.wait_ready {r}"));
            self.line(&format!("{p} = ttg.stage.read_perm {s}\n{v} = ttg.stage.view<0> {p} : smem<{TILE}xf32>"));
            let (place, o) = (self.place(self.number, at), self.output);
            self.line(&format!("{x} = ttg.stage.read {v}\nstore_tile %o{o}[{place}], {x}"));
            self.number += 1;
            held.push(p);
        }
        for p in held.iter().rev() {
            let k = self.name("k");
            self.line(&format!("{k} = ttg.stage.consumed {p}\nttg.stage.release {k}"));
        }
    }
}

/// Roles over rings with these slots; the first fills.
struct Roles {
    slots: Vec<usize>,
    roles: Vec<Vec<Item>>,
}

impl Roles {
    fn random(rng: &mut Rng) -> Self {
        let slots: Vec<usize> = (0..1 + rng.below(2)).map(|_| 1 + rng.below(4) as usize).collect();
        let (mut fill, mut read) = (Vec::new(), Vec::new());
        sides(rng, 2, &slots, [&mut fill, &mut read], false);
        let mut roles = vec![fill, read.clone()];
        if rng.below(3) == 0 {
            roles.push(read);
        }
        Roles { slots, roles }
    }

    fn text(&self, turned: bool) -> String {
        let mut out = "kernel @p(%e: in tensor<f32>[N], %a: in tensor<f32>[A]".to_owned();
        for r in 1..self.roles.len() {
            let _ = write!(out, ", %o{r}: mut tensor<f32>[O{r}]");
        }
        out.push_str(") grid(1)");
        for slots in &self.slots {
            let _ = write!(out, " pipe({slots}, tile<{TILE}xf32>)");
        }
        let mut order: Vec<usize> = (0..self.roles.len()).collect();
        if turned {
            order.reverse();
        }
        for r in &order {
            let _ = write!(out, " role(r{r}, 1)");
        }
        out.push_str(
            " {\n%n = dim<0> %e\n%zero = const 0 : i32\n%one = const 1 : i32\n%pad = const 0.0 : f32\nttg.roles",
        );
        let mut writer = Writer { out, fresh: 0, number: 0, output: 0 };
        for r in order {
            (writer.number, writer.output) = (0, r);
            writer.line(&format!(" r{r} {{"));
            writer.items(&self.roles[r], &["%zero".to_owned(), "%zero".to_owned()]);
            writer.out.push_str("ttg.pipeline.finalize\nyield\n}");
        }
        writer.out + "\nreturn\n}\n"
    }

    /// Which tile each role stores where, for this extent.
    fn stored(&self, n: i32) -> Vec<Vec<(i32, i32)>> {
        let of = |role: &[Item]| {
            let mut all = Vec::new();
            events(role, &mut 0, [0, 0], n, &mut all);
            all
        };
        let filled = of(&self.roles[0]);
        let ring = |all: &[(usize, i32)], ring: usize| {
            all.iter().filter(|(r, _)| *r == ring).map(|(_, at)| *at).collect::<Vec<_>>()
        };
        let stores = |role: &Vec<Item>| {
            let read = of(role);
            (0..self.slots.len()).flat_map(|r| ring(&filled, r).into_iter().zip(ring(&read, r))).collect()
        };
        self.roles[1..].iter().map(stores).collect()
    }
}

fn is_whole(text: &str, rings: usize) -> bool {
    (0..rings).all(|r| text.contains(&format!("acquire<{r}>")) && text.contains(&format!("ready<{r}>")))
}

/// Runs a program for an extent.
fn check(roles: &Roles, program: &Program, n: i32, text: &str) {
    let tiles = 40 * MOST * MOST;
    let values = data(Elem::F32, (tiles * TILE) as usize, 11);
    let (extent, a) = (Tensor::zeros(Elem::F32, &[n]), Tensor::new(Elem::F32, &[tiles * TILE], &values));
    let outs: Vec<Tensor> = (1..roles.roles.len()).map(|_| Tensor::zeros(Elem::F32, &[tiles * TILE])).collect();
    let args: Vec<_> = [&extent, &a].into_iter().chain(&outs).map(Tensor::arg).collect();
    run(program, &args, [1, 1, 1]);
    for (out, stored) in outs.iter().zip(roles.stored(n)) {
        let mut want = vec![0.0; values.len()];
        for (from, to) in stored {
            let [from, to] = [from, to].map(|tile| (tile * TILE) as usize);
            want[to..to + TILE as usize].copy_from_slice(&values[from..from + TILE as usize]);
        }
        assert!(out.values() == want, "for {n}\n{text}");
    }
}

#[test]
fn stages_hold_what_was_copied_to_them() {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let (mut good, mut refused) = (0, 0);
    while good < test_depth::cases(150, 40) {
        let roles = Roles::random(&mut rng);
        let text = roles.text(rng.below(2) == 0);
        let mut items = 0;
        roles.roles.iter().for_each(|role| numbers(role, &mut items));
        if !is_whole(&text, roles.slots.len()) || items > 40 {
            continue;
        }
        let kernel = titan_core::text::parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        if titan_core::verify::verify(kernel).is_err() {
            refused += 1;
            assert!(refused < 100, "nearly all programs should be good");
            continue;
        }
        good += 1;
        let options = Options { lazy: rng.below(2) == 0, fuse: rng.below(2) == 0, ..Options::default() };
        let program = compile_text(&text, options);
        (0..MOST - 1).for_each(|n| check(&roles, &program, n, &text));
    }
}

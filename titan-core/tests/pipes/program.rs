//! Programs of roles that fill and read rings: their text for the verifier, and a run of their steps with numbers for the
//! extents. The run knows nothing of how the verifier reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use titan_core::diag::Code;

/// How often a loop runs: an extent and a constant, or a constant alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// `n` or `m`.
    pub extent: Option<usize>,
    pub more: i64,
}

/// When something happens, by the counter of the innermost loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Guard {
    /// `j + by < count`
    Below(i64, Count),
    /// `j >= from`
    From(i64),
    /// What an input says of `j + by`.
    Data(usize, i64),
}

impl Guard {
    pub(crate) fn holds(self, j: i64, args: Args) -> bool {
        match self {
            Guard::Below(by, count) => j + by < value(count, args.extents),
            Guard::From(from) => j >= from,
            Guard::Data(input, by) => args.flags[input] >> (j + by) & 1 == 1,
        }
    }
}

/// How many inputs there are that say something.
pub(crate) const FLAGS: usize = 2;

/// What programs are run with: extents, and for each input a bit for each counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Args {
    pub extents: [i64; 2],
    pub flags: [u64; FLAGS],
}

#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// Takes a slot of a ring and fills it.
    Fill(usize),
    /// Takes a slot into a variable, to be filled later.
    Grab(usize, usize),
    Put(usize),
    /// Reads a stage of a ring and gives it back.
    Read(usize),
    /// Reads a stage into a variable, to be released later.
    Take(usize, usize),
    Give(usize),
    Loop(Count, Vec<Item>),
    If(Guard, Vec<Item>),
}

/// Roles over rings with these slots.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub slots: Vec<usize>,
    pub roles: Vec<Vec<Item>>,
}

impl Program {
    /// The kernel as text. With one role, nothing parts.
    pub(crate) fn text(&self) -> String {
        let mut out = "kernel @p(%a: in tensor<f32>[N], %b: in tensor<f32>[M], %c: mut tensor<f32>[K], ".to_owned();
        out += "%flags0: in tensor<i32>[F], %flags1: in tensor<i32>[F]) grid(1) ";
        for slots in &self.slots {
            let _ = write!(out, "pipe({slots}, tile<16xf32>) ");
        }
        if self.roles.len() > 1 {
            for r in 0..self.roles.len() {
                let _ = write!(out, "role(r{r}, 1) ");
            }
        }
        out.push_str("{\n  %n = dim<0> %a\n  %m = dim<0> %b\n  %zero = const 0 : i32\n  %one = const 1 : i32\n");
        out.push_str("  %v = const 0.0 : f32\n");
        let mut writer = Writer { out, fresh: 0, vars: BTreeMap::new() };
        if self.roles.len() > 1 {
            writer.out.push_str("  ttg.roles");
            for (r, items) in self.roles.iter().enumerate() {
                let _ = writeln!(writer.out, " r{r} {{");
                writer.items(items, None);
                let store = if r == 0 { "  set %c[%zero], %v\n" } else { "" };
                let _ = write!(writer.out, "{store}  ttg.pipeline.finalize\n  yield\n  }}");
            }
            writer.out.push_str("\n  return\n}\n");
        } else {
            writer.items(&self.roles[0], None);
            writer.out.push_str("  set %c[%zero], %v\n  return\n}\n");
        }
        writer.out
    }

    /// What the verifier says: nothing, or the first code.
    pub(crate) fn verdict(&self) -> Option<Code> {
        let text = self.text();
        let kernel = titan_core::text::parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        titan_core::verify::verify(kernel).err().map(|errors| errors[0].code)
    }

    /// Whether all roles reach their ends with empty rings, with these arguments.
    pub(crate) fn runs(&self, args: Args) -> bool {
        let mut run = Steps {
            program: self,
            filled: vec![BTreeSet::new(); self.slots.len()],
            acquired: vec![0; self.slots.len()],
            readers: vec![Vec::new(); self.slots.len()],
        };
        let mut roles: Vec<(usize, Vec<Step>)> = Vec::new();
        for (r, items) in self.roles.iter().enumerate() {
            let mut steps = Vec::new();
            flatten(items, 0, args, &mut steps);
            for step in &steps {
                if let Step::Take(ring, _) = step
                    && !run.readers[*ring].iter().any(|(role, ..)| *role == r)
                {
                    run.readers[*ring].push((r, 0, BTreeSet::new()));
                }
            }
            roles.push((0, steps));
        }
        // A reader reads a ring even if it never comes to it.
        for (r, items) in self.roles.iter().enumerate() {
            for ring in 0..self.slots.len() {
                if reads(items, ring) && !run.readers[ring].iter().any(|(role, ..)| *role == r) {
                    run.readers[ring].push((r, 0, BTreeSet::new()));
                }
            }
        }
        let mut vars: Vec<BTreeMap<usize, (usize, i64)>> = vec![BTreeMap::new(); roles.len()];
        loop {
            let mut moved = false;
            for (r, (at, steps)) in roles.iter_mut().enumerate() {
                while *at < steps.len() && run.step(r, &steps[*at], &mut vars[r]) {
                    *at += 1;
                    moved = true;
                }
            }
            if roles.iter().all(|(at, steps)| *at == steps.len()) {
                return run.filled.iter().zip(&run.readers).all(|(f, readers)| {
                    readers.iter().all(|(_, claimed, given)| given == f && *claimed as usize == f.len())
                });
            }
            if !moved {
                return false;
            }
        }
    }
}

fn reads(items: &[Item], ring: usize) -> bool {
    items.iter().any(|item| match item {
        Item::Read(r) | Item::Take(r, _) => *r == ring,
        Item::Loop(_, body) | Item::If(_, body) => reads(body, ring),
        Item::Fill(_) | Item::Grab(..) | Item::Put(_) | Item::Give(_) => false,
    })
}

enum Step {
    Grab(usize, usize),
    Put(usize),
    Take(usize, usize),
    Give(usize),
}

const TEMPORARY: usize = usize::MAX;

pub(crate) fn value(count: Count, extents: [i64; 2]) -> i64 {
    count.extent.map_or(0, |e| extents[e]) + count.more
}

fn flatten(items: &[Item], j: i64, args: Args, out: &mut Vec<Step>) {
    for item in items {
        match item {
            Item::Fill(r) => out.extend([Step::Grab(*r, TEMPORARY), Step::Put(TEMPORARY)]),
            Item::Grab(r, v) => out.push(Step::Grab(*r, *v)),
            Item::Put(v) => out.push(Step::Put(*v)),
            Item::Read(r) => out.extend([Step::Take(*r, TEMPORARY), Step::Give(TEMPORARY)]),
            Item::Take(r, v) => out.push(Step::Take(*r, *v)),
            Item::Give(v) => out.push(Step::Give(*v)),
            Item::Loop(count, body) => (0..value(*count, args.extents)).for_each(|j| flatten(body, j, args, out)),
            Item::If(guard, body) => {
                if guard.holds(j, args) {
                    flatten(body, j, args, out);
                }
            }
        }
    }
}

struct Steps<'p> {
    program: &'p Program,
    filled: Vec<BTreeSet<i64>>,
    acquired: Vec<i64>,
    /// Role, clock, what was released.
    readers: Vec<Vec<(usize, i64, BTreeSet<i64>)>>,
}

impl Steps<'_> {
    fn step(&mut self, role: usize, step: &Step, vars: &mut BTreeMap<usize, (usize, i64)>) -> bool {
        match step {
            Step::Grab(ring, var) => {
                let t = self.acquired[*ring];
                let free = t - self.program.slots[*ring] as i64;
                if free >= 0 && !self.readers[*ring].iter().all(|(_, _, given)| given.contains(&free)) {
                    return false;
                }
                self.acquired[*ring] += 1;
                vars.insert(*var, (*ring, t));
            }
            Step::Put(var) => {
                let (ring, t) = vars[var];
                self.filled[ring].insert(t);
            }
            Step::Take(ring, var) => {
                let reader = self.readers[*ring].iter_mut().find(|(r, ..)| *r == role).expect("a reader");
                if !self.filled[*ring].contains(&reader.1) {
                    return false;
                }
                vars.insert(*var, (*ring, reader.1));
                reader.1 += 1;
            }
            Step::Give(var) => {
                let (ring, t) = vars[var];
                let reader = self.readers[ring].iter_mut().find(|(r, ..)| *r == role).expect("a reader");
                reader.2.insert(t);
            }
        }
        true
    }
}

struct Writer {
    out: String,
    fresh: usize,
    /// What variables are called now.
    vars: BTreeMap<usize, String>,
}

impl Writer {
    fn name(&mut self, what: &str) -> String {
        self.fresh += 1;
        format!("%{what}{}", self.fresh)
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.out, "  {line}");
    }

    fn count(&mut self, count: Count) -> String {
        let c = self.name("c");
        self.line(&format!("{c} = const {} : i32", count.more));
        let Some(extent) = count.extent else { return c };
        let sum = self.name("s");
        self.line(&format!("{sum} = add {}, {c}", ["%n", "%m"][extent]));
        sum
    }

    fn take(&mut self, ring: usize) -> String {
        let [r, s, p] = ["r", "s", "p"].map(|w| self.name(w));
        self.line(&format!("{r} = ttg.stage.ready<{ring}>"));
        self.line(&format!("{s} = ttg.stage.wait_ready {r}"));
        self.line(&format!("{p} = ttg.stage.read_perm {s}"));
        p
    }

    fn give(&mut self, perm: &str) {
        let c = self.name("k");
        self.line(&format!("{c} = ttg.stage.consumed {perm}"));
        self.line(&format!("ttg.stage.release {c}"));
    }

    fn items(&mut self, items: &[Item], counter: Option<&str>) {
        for item in items {
            match item {
                Item::Fill(ring) => {
                    let slot = self.name("f");
                    self.line(&format!("{slot} = ttg.stage.acquire<{ring}>"));
                    self.line(&format!("ttg.stage.zero {slot}"));
                }
                Item::Grab(ring, var) => {
                    let slot = self.name("g");
                    self.line(&format!("{slot} = ttg.stage.acquire<{ring}>"));
                    self.vars.insert(*var, slot);
                }
                Item::Put(var) => {
                    let slot = self.vars[var].clone();
                    self.line(&format!("ttg.stage.zero {slot}"));
                }
                Item::Read(ring) => {
                    let perm = self.take(*ring);
                    self.give(&perm);
                }
                Item::Take(ring, var) => {
                    let perm = self.take(*ring);
                    self.vars.insert(*var, perm);
                }
                Item::Give(var) => {
                    let perm = self.vars[var].clone();
                    self.give(&perm);
                }
                Item::Loop(count, body) => {
                    let hi = self.count(*count);
                    let j = self.name("j");
                    self.line(&format!("for {j} = %zero to {hi} step %one {{"));
                    self.items(body, Some(&j));
                    self.line("continue\n  }");
                }
                Item::If(guard, body) => {
                    let j = counter.unwrap_or("%zero").to_owned();
                    let condition = match guard {
                        Guard::Below(by, count) => {
                            let (hi, c) = (self.count(*count), self.name("c"));
                            let sum = self.name("s");
                            self.line(&format!("{c} = const {by} : i32"));
                            self.line(&format!("{sum} = add {j}, {c}"));
                            format!("lt {sum}, {hi}")
                        }
                        Guard::From(from) => {
                            let c = self.name("c");
                            self.line(&format!("{c} = const {from} : i32"));
                            format!("ge {j}, {c}")
                        }
                        Guard::Data(input, by) => {
                            let [c, i, x] = ["c", "i", "x"].map(|w| self.name(w));
                            self.line(&format!("{c} = const {by} : i32"));
                            self.line(&format!("{i} = add {j}, {c}"));
                            self.line(&format!("{x} = get %flags{input}[{i}]"));
                            format!("ne {x}, %zero")
                        }
                    };
                    let b = self.name("b");
                    self.line(&format!("{b} = {condition}"));
                    self.line(&format!("if {b} {{"));
                    self.items(body, counter);
                    self.line("yield\n  } else {\n  yield\n  }");
                }
            }
        }
    }
}

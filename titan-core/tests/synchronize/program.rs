//! Random barrier programs, as text: rings whose clocks loops carry, copies in groups, loads, stores, outputs, roles.

use crate::rng::Rng;
use std::fmt::Write as _;

/// The text in front of the body. Tiles of a ring lie in encoding 0.
pub(crate) const HEAD: &str = "kernel @random(
    %a: in tensor<f16>[M, K],
    %c: mut tensor<f16>[M, K],
    %d: mut tensor<f16>[M, K],
    %n: i32,
    %q1: i32,
    %q2: i32,
    %q3: i32,
    %q4: i32,
    %yes: bool,
) grid(1) role(load, 1) role(work, 3)
    plan(4, 32, mbarrier, index32, aligned(0, 1, 2))
    layout(16x16, reg(j1, j2, j4), lane(j8, i1, i2, i4, i8), warp())
    layout(16x64, reg(j1, j2, j4, j8, j16), lane(j32, i1, i2, i4, i8), warp())
    encoding(16x16, 16, order(0, 1), row(16, 32), b32)
    encoding(16x64, 16, order(0, 1), row(64, 128), b128)
{
    %k0 = const 0 : i32
    %k1 = const 1 : i32
    %k2 = const 2 : i32
    %k3 = const 3 : i32
    %k4 = const 4 : i32
    %pad = const 0.0 : f16
    %x = load_tile %a[%k0, %k0] or %pad : tile<16x16xf16, 0>
    %wide = load_tile %a[%k0, %k0] or %pad : tile<16x64xf16, 1>
";

/// Bytes of a tile of 16 by 16.
const TILE: u32 = 512;

/// A region: how many parts, and how many tiles each has.
#[derive(Clone, Debug)]
struct Region {
    name: String,
    parts: u32,
    tiles: u32,
}

/// A loop around: the parts of the rings whose clocks it carries, and the carried values.
#[derive(Clone)]
struct Around {
    clocks: Vec<(String, u32)>,
}

struct Gen<'r> {
    rng: &'r mut Rng,
    text: String,
    names: u32,
    groups: u32,
    regions: Vec<Region>,
    /// What may be touched here.
    pool: Vec<usize>,
    /// Slots in scope, with how many there are.
    clocks: Vec<(String, u32)>,
    loops: Vec<Around>,
    depth: u32,
    in_role: bool,
    /// What the code of each role touches, if the program has roles.
    roles: Option<[Vec<usize>; 2]>,
}

/// A program; small ones have few steps.
pub(crate) fn rings(rng: &mut Rng, small: bool, with_roles: bool) -> String {
    let mut g = Gen {
        rng,
        text: HEAD.to_owned(),
        names: 0,
        groups: 0,
        regions: vec![],
        pool: vec![],
        clocks: vec![],
        loops: vec![],
        depth: 0,
        in_role: false,
        roles: None,
    };
    g.make_regions(with_roles);
    for k in 0..4 {
        g.clocks.extend((k + 1..=4).map(|parts| (format!("%k{k}"), parts)));
    }
    g.clocks.extend((1..=4).map(|parts| (format!("%q{parts}"), parts)));
    let steps = if small { 3 } else { 6 };
    g.steps(steps);
    if g.roles.is_some() {
        g.split();
        g.steps(3);
    }
    g.line("return");
    g.text.push_str("}\n");
    g.text
}

impl Gen<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "    {line}");
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }

    /// Regions that overlap, but those that roles touch.
    fn make_regions(&mut self, with_roles: bool) {
        let count = 1 + self.rng.below(3) + 3 * u32::from(with_roles);
        for i in 0..count {
            let (parts, tiles) = (1 + self.rng.below(4), 1 + self.rng.below(2));
            let of_roles = with_roles && i < 3;
            let offset = if of_roles { 8192 * i } else { 256 * self.rng.below(12) };
            let name = format!("%r{i}");
            self.line(&format!(
                "{name} = ttg.region {{offset = {offset}, bytes = {}, parts = {parts}}} : region",
                parts * tiles * TILE
            ));
            self.regions.push(Region { name, parts, tiles });
        }
        self.pool = (0..count as usize).collect();
        if with_roles {
            // One of both, and one of each.
            self.roles = Some([vec![0, 1], vec![0, 2]]);
        }
    }

    fn slot(&mut self, parts: u32) -> String {
        let of: Vec<String> = self.clocks.iter().filter(|(_, p)| *p == parts).map(|(name, _)| name.clone()).collect();
        // The latest are those that loops carry.
        let at = if self.rng.below(4) > 0 {
            of.len().saturating_sub(1 + self.rng.below(3) as usize)
        } else {
            self.rng.below(of.len() as u32) as usize
        };
        of[at].clone()
    }

    /// A tile of a part of a region.
    fn tile(&mut self) -> String {
        let near: Vec<usize> = match self.loops.last() {
            Some(around) if self.rng.below(4) > 0 => {
                let parts: Vec<u32> = around.clocks.iter().map(|(_, p)| *p).collect();
                self.pool.iter().copied().filter(|r| parts.contains(&self.regions[*r].parts)).collect()
            }
            _ => vec![],
        };
        let region = self.rng.of(if near.is_empty() { &self.pool } else { &near });
        let Region { name, parts, tiles } = self.regions[region].clone();
        let slot = self.slot(parts);
        let (part, tile) = (self.name(), self.name());
        let offset = TILE * self.rng.below(tiles);
        self.line(&format!("{part} = ttg.region.at {name}, {slot} : region"));
        self.line(&format!("{tile} = ttg.region.tile {part} {{offset = {offset}}} : smem<16x16xf16, 0>"));
        tile
    }

    /// The slot behind one, as rings say it.
    fn next(&mut self, slot: &str, parts: u32) -> String {
        let [next, wraps, to] = [self.name(), self.name(), self.name()];
        self.line(&format!("{next} = add {slot}, %k1 : i32"));
        if self.rng.below(8) == 0 {
            self.line(&format!("{to} = rem {next}, %k{parts} : i32"));
            return to;
        }
        self.line(&format!("{wraps} = eq {next}, %k{parts} : bool"));
        self.line(&format!("{to} = select {wraps}, %k0, {next} : i32"));
        to
    }

    fn steps(&mut self, most: u32) {
        for _ in 0..1 + self.rng.below(most) {
            self.step();
        }
    }

    fn step(&mut self) {
        match self.rng.below(20) {
            0..=2 => {
                let (tile, v) = (self.tile(), self.name());
                self.line(&format!("{v} = ttg.local.load {tile} : tile<16x16xf16, 0>"));
            }
            3 | 4 => {
                let tile = self.tile();
                self.line(&format!("ttg.local.store %x, {tile}"));
            }
            5..=7 => self.copy(),
            8 => self.commit(),
            9 | 10 => {
                self.commit();
                let n = self.rng.of(&[0, 0, 0, 1, 1, 2]);
                self.line(&format!("ttg.nv.cp_async.wait_group {{n = {n}}}"));
            }
            11 => {
                let (kind, v) = (self.rng.below(4), self.name());
                match kind {
                    0 => self.line("store_tile %c[%k0, %k0], %x"),
                    1 => self.line(&format!("{v} = load_tile %c[%k0, %k0] or %pad : tile<16x16xf16, 0>")),
                    2 => self.line("store_tile %d[%k0, %k0], %x"),
                    _ if self.rng.below(2) == 0 => {
                        let threads = if self.in_role { 96 } else { self.rng.of(&[128, 128, 64]) };
                        let id = if self.in_role { 2 } else { 0 };
                        self.line(&format!("ttg.nv.barrier.sync {{id = {id}, threads = {threads}}}"));
                    }
                    _ => {}
                }
            }
            12 | 13 if self.depth < 3 => self.branch(),
            14..=17 if self.depth < 3 => self.looped(),
            18 if !self.loops.is_empty() => self.leave(),
            19 if self.roles.is_some() && !self.in_role && self.loops.len() == 1 && self.depth == 1 => self.split(),
            _ => {}
        }
    }

    fn copy(&mut self) {
        let (tile, source) = (self.tile(), self.name());
        let of = self.rng.of(&["%a", "%a", "%a", "%c"]);
        self.line(&format!("{source} = ttg.source_tile {of}[%k0, %k0] or %pad : source<16x16xf16, 0>"));
        self.line(&format!("ttg.local.copy_async {source}, {tile}"));
    }

    fn commit(&mut self) {
        let (v, n) = (self.name(), self.groups);
        self.groups += 1;
        self.line(&format!("{v} = ttg.nv.cp_async.commit_group : vtok<cp_async, {n}>"));
    }

    /// What is defined inside is forgotten behind.
    fn scoped(&mut self, f: impl FnOnce(&mut Self)) {
        let seen = self.clocks.len();
        self.depth += 1;
        f(self);
        self.depth -= 1;
        self.clocks.truncate(seen);
    }

    /// A branch that may move a clock in one arm.
    fn branch(&mut self) {
        let parts = 1 + self.rng.below(4);
        let (before, result) = (self.slot(parts), self.name());
        self.line(&format!("{result} = if %yes {{"));
        self.scoped(|g| {
            g.steps(3);
            let moved = if g.rng.below(2) == 0 { g.next(&before, parts) } else { before.clone() };
            g.line(&format!("yield {moved}"));
        });
        self.line("} else {");
        self.scoped(|g| {
            g.steps(2);
            g.line(&format!("yield {before}"));
        });
        self.line("}");
        self.clocks.push((result, parts));
    }

    fn looped(&mut self) {
        let parts = self.rng.of(&[1, 2, 2, 3, 3, 3, 4]);
        let mut init = Vec::new();
        for _ in 0..1 + self.rng.below(3) {
            let of = if self.rng.below(6) == 0 { 1 + self.rng.below(4) } else { parts };
            init.push((self.slot(of), of));
        }
        let clocks: Vec<(String, u32)> = init.iter().map(|(_, of)| (self.name(), *of)).collect();
        let results: Vec<(String, u32)> = init.iter().map(|(_, of)| (self.name(), *of)).collect();
        let list = |all: &[(String, u32)]| all.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>().join(", ");
        let pairs: Vec<String> = clocks.iter().zip(&init).map(|((c, _), (i, _))| format!("{c} = {i}")).collect();
        let types = vec!["i32"; clocks.len()].join(", ");
        let counted = self.rng.below(4) > 0;
        let kind = if counted { format!("for {} = %k0 to %n step %k1", self.name()) } else { "loop".to_owned() };
        self.line(&format!("{} = {kind} carry({}) : {types} {{", list(&results), pairs.join(", ")));
        self.loops.push(Around { clocks: clocks.clone() });
        self.scoped(|g| {
            g.clocks.extend(clocks.iter().cloned());
            g.steps(3);
            if !counted {
                g.leave_by("break", 0);
            }
            g.steps(3);
            let next = g.carried(&clocks);
            g.line(&format!("continue {next}"));
        });
        self.loops.pop();
        self.line("}");
        self.clocks.extend(results);
    }

    /// What a loop goes on with: mostly all clocks one further.
    fn carried(&mut self, clocks: &[(String, u32)]) -> String {
        let all: Vec<String> = clocks
            .iter()
            .map(|(clock, parts)| match self.rng.below(12) {
                0 => clock.clone(),
                1 => self.slot(*parts),
                2 => {
                    let once = self.next(clock, *parts);
                    self.next(&once, *parts)
                }
                _ => self.next(clock, *parts),
            })
            .collect();
        all.join(", ")
    }

    fn leave(&mut self) {
        let n = self.rng.below(self.loops.len() as u32) as usize;
        let how = self.rng.of(&["break", "continue"]);
        self.leave_by(how, n);
    }

    fn leave_by(&mut self, how: &str, n: usize) {
        let around = self.loops[self.loops.len() - 1 - n].clone();
        self.line("if %yes {");
        self.scoped(|g| {
            let values = if how == "break" && g.rng.below(2) == 0 {
                around.clocks.iter().map(|(c, _)| c.as_str()).collect::<Vec<_>>().join(", ")
            } else {
                g.carried(&around.clocks)
            };
            let number = if n == 0 { String::new() } else { format!("<{n}>") };
            g.line(&format!("{how}{number} {values}"));
        });
        self.line("} else {");
        self.line("yield");
        self.line("}");
    }

    fn split(&mut self) {
        let Some(roles) = self.roles.clone() else { return };
        // What a role's threads wait for, others have not: copies from before must be over.
        self.commit();
        self.line("ttg.nv.cp_async.wait_group {n = 0}");
        let around = (std::mem::take(&mut self.loops), self.pool.clone());
        for (i, pool) in roles.into_iter().enumerate() {
            self.line(["ttg.roles load {", "} work {"][i]);
            self.in_role = true;
            self.pool = pool;
            self.scoped(|g| {
                g.steps(4);
                if g.rng.below(4) > 0 {
                    g.commit();
                    g.line("ttg.nv.cp_async.wait_group {n = 0}");
                }
                g.line("yield");
            });
        }
        self.in_role = false;
        (self.loops, self.pool) = around;
        self.line("}");
    }
}

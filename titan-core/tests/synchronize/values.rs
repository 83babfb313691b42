//! Random programs in which regions hold values: written where they are made, read below and inside.

use crate::program::HEAD;
use crate::rng::Rng;
use std::fmt::Write as _;

struct Gen<'r> {
    rng: &'r mut Rng,
    text: String,
    names: u32,
    groups: u32,
    depth: u32,
    loops: u32,
    in_role: bool,
}

/// A tile in shared memory, and its type.
type Tile = (String, &'static str);

pub(crate) fn values(rng: &mut Rng) -> String {
    let mut g = Gen { rng, text: HEAD.to_owned(), names: 0, groups: 0, depth: 0, loops: 0, in_role: false };
    g.block(&[], 8);
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

    /// A region of a size, with a tile in it.
    fn make(&mut self) -> Tile {
        let (region, tile) = (self.name(), self.name());
        let (ty, bytes) = self.rng.of(&[("16x16xf16, 0", 512), ("16x64xf16, 1", 2048)]);
        let bytes = bytes + 16 * self.rng.below(20);
        self.line(&format!("{region} = ttg.region {{offset = 0, bytes = {bytes}}} : region"));
        self.line(&format!("{tile} = ttg.region.tile {region} {{offset = 0}} : smem<{ty}>"));
        (tile, ty)
    }

    fn read(&mut self, (tile, ty): &Tile) {
        let v = self.name();
        self.line(&format!("{v} = ttg.local.load {tile} : tile<{ty}>"));
    }

    fn wait(&mut self, n: u32) {
        let (v, group) = (self.name(), self.groups);
        self.groups += 1;
        self.line(&format!("{v} = ttg.nv.cp_async.commit_group : vtok<cp_async, {group}>"));
        self.line(&format!("ttg.nv.cp_async.wait_group {{n = {n}}}"));
    }

    /// Definitions and uses, of what is visible and what is defined here. Copies are read behind a wait in the same block, and
    /// some are never waited for.
    fn block(&mut self, visible: &[Tile], most: u32) {
        let (mut own, mut flying) = (visible.to_vec(), Vec::new());
        for _ in 0..1 + self.rng.below(most) {
            match self.rng.below(12) {
                0..=2 => {
                    let (tile, ty) = self.make();
                    self.line(&format!(
                        "ttg.local.store {}, {tile}",
                        if ty.starts_with("16x16") { "%x" } else { "%wide" }
                    ));
                    own.push((tile, ty));
                }
                3 | 4 => {
                    let ((tile, ty), source) = (self.make(), self.name());
                    self.line(&format!("{source} = ttg.source_tile %a[%k0, %k0] or %pad : source<{ty}>"));
                    self.line(&format!("ttg.local.copy_async {source}, {tile}"));
                    flying.push((tile, ty));
                }
                5 => {
                    self.wait(0);
                    own.append(&mut flying);
                }
                6 | 7 if !own.is_empty() => {
                    let tile = own[self.rng.below(own.len() as u32) as usize].clone();
                    self.read(&tile);
                }
                8 if self.depth < 2 && !self.in_role => self.split(&own),
                8 | 9 if self.depth < 3 => {
                    self.line("if %yes {");
                    self.nested(&own, "yield");
                    self.line("} else {");
                    self.nested(&own, "yield");
                    self.line("}");
                }
                10 if self.depth < 3 => {
                    let index = self.name();
                    self.line(&format!("for {index} = %k0 to %n step %k1 {{"));
                    self.loops += 1;
                    self.nested(&own, "continue");
                    self.loops -= 1;
                    self.line("}");
                }
                11 if self.loops > 0 => {
                    let (how, n) = (self.rng.of(&["break", "continue"]), self.rng.below(self.loops));
                    let number = if n == 0 { String::new() } else { format!("<{n}>") };
                    self.line("if %yes {");
                    self.line(&format!("{how}{number}"));
                    self.line("} else {");
                    self.line("yield");
                    self.line("}");
                }
                _ => {}
            }
        }
        if self.rng.below(3) > 0 {
            let n = self.rng.below(2);
            self.wait(n);
        }
    }

    fn split(&mut self, own: &[Tile]) {
        let loops = std::mem::take(&mut self.loops);
        for opening in ["ttg.roles load {", "} work {"] {
            self.line(opening);
            self.in_role = true;
            self.nested(own, "yield");
        }
        self.in_role = false;
        self.loops = loops;
        self.line("}");
    }

    fn nested(&mut self, visible: &[Tile], end: &str) {
        self.depth += 1;
        self.block(visible, 5);
        self.depth -= 1;
        self.line(end);
    }
}

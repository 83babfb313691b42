//! Random kernels without roles that state their rings: each ring is filled and read at any place, in nested loops that iterations leave
//! or skip, and in branches, as long as it holds as many stages at the end of a path as at its beginning. A stage may stay in flight across
//! all of that.

use super::random::whole;
use super::rng::Rng;
use std::fmt::Write as _;
use titan_core::ir::{Const, Elem};
use titan_sim::sim;

/// The extents of the tensors, in elements: two programs, and positions of tiles from 0 to 3.
const EXTENTS: [i64; 2] = [32, 64];

struct Writer<'r> {
    rng: &'r mut Rng,
    out: String,
    fresh: usize,
    /// The slots of each ring.
    slots: Vec<usize>,
}

/// The numbers of stages that the rings hold.
type Held = Vec<usize>;

/// The text of a kernel and its arguments.
pub(super) fn kernel(rng: &mut Rng) -> (String, Vec<sim::Arg>) {
    let slots: Vec<usize> = (0..1 + rng.below(2)).map(|_| 1 + rng.below(4) as usize).collect();
    let mut w = Writer { rng, out: String::new(), fresh: 0, slots };
    let mut held = vec![0; w.slots.len()];
    let length = 2 + w.rng.below(6);
    w.sequence(&mut held, "%i0", 0, length, None);
    let empty = vec![0; w.slots.len()];
    w.change_to(&mut held, &empty, "%i0");
    let (mut tensors, mut pipes, mut args) = (String::new(), String::new(), Vec::new());
    for (ring, slots) in w.slots.iter().enumerate() {
        let _ = write!(tensors, "%a{ring}: in tensor<f16>[M, K], %c{ring}: mut tensor<f16>[M, K], ");
        let _ = write!(pipes, "pipe({slots}, \"r{ring}\", tile<16x16xf16>) ");
        let n = EXTENTS.iter().product();
        args.extend([ring, 7].map(|salt| sim::Arg::dense(Elem::F16, &EXTENTS, whole(Elem::F16, n, salt))));
    }
    args.extend([0, 0].map(|_| sim::Arg::Scalar(Const::Int(Elem::I32, w.rng.below(4).into()))));
    let head =
        "%p = program_id<0>\n%pad = const 0.0 : f16\n%i0 = const 0 : i32\n%i1 = const 1 : i32\n%i2 = const 2 : i32\n";
    let text =
        format!("kernel @random({tensors}%m: i32, %n: i32) grid(cdiv(M, 16)) {pipes}{{\n{head}{}return\n}}\n", w.out);
    (text, args)
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn number(&mut self) -> usize {
        self.fresh += 1;
        self.fresh
    }

    fn fill(&mut self, ring: usize, at: &str) {
        let n = self.number();
        self.line(&format!(
            "%f{n} = ttg.stage.acquire<{ring}>\n%q{n} = ttg.source_tile %a{ring}[%p, {at}] or %pad : source<16x16xf16>\n\
             ttg.stage.async_produce %f{n}, %q{n} {{bytes = 512, proxy = generic}}"
        ));
    }

    fn read(&mut self, ring: usize, at: &str) {
        let n = self.number();
        self.line(&format!(
            "%y{n} = ttg.stage.ready<{ring}>\n%g{n} = ttg.stage.wait_ready %y{n}\n%p{n} = ttg.stage.read_perm %g{n} : rperm<{ring}>\n\
             %v{n} = ttg.stage.view<0> %p{n} : smem<16x16xf16>\n%x{n} = ttg.stage.read %v{n} : tile<16x16xf16>\n\
             %o{n} = ttg.stage.consumed %p{n}\nttg.stage.release %o{n}\nstore_tile %c{ring}[%p, {at}], %x{n}"
        ));
    }

    /// A stage that is read in some iterations of a loop, or in a branch, before it is released.
    fn hold(&mut self, ring: usize, at: &str) {
        let n = self.number();
        self.line(&format!(
            "%y{n} = ttg.stage.ready<{ring}>\n%g{n} = ttg.stage.wait_ready %y{n}\n%p{n} = ttg.stage.read_perm %g{n} : rperm<{ring}>\n\
             %v{n} = ttg.stage.view<0> %p{n} : smem<16x16xf16>"
        ));
        let looped = self.rng.below(2) == 0;
        if looped {
            self.line(&format!("for %q{n} = %i0 to %n step %i1 {{"));
        }
        let condition = if looped { self.condition(&format!("%q{n}")) } else { self.condition(at) };
        self.line(&format!(
            "if {condition} {{\n%x{n} = ttg.stage.read %v{n} : tile<16x16xf16>\nstore_tile %c{ring}[%p, {at}], %x{n}\nyield\n}} else {{\nyield\n}}"
        ));
        if looped {
            self.line("continue\n}");
        }
        self.line(&format!("%o{n} = ttg.stage.consumed %p{n}\nttg.stage.release %o{n}"));
    }

    fn condition(&mut self, at: &str) -> String {
        let n = self.number();
        let (how, bound) = (self.rng.of(&["eq", "ge", "lt", "ne"]), self.rng.of(&["%n", "%m", "%i0", "%i1", "%i2"]));
        self.line(&format!("%b{n} = {how} {at}, {bound}"));
        format!("%b{n}")
    }

    /// Fills and reads the rings until they hold these numbers of stages.
    fn change_to(&mut self, held: &mut Held, wanted: &Held, at: &str) {
        for ring in self.rng.permutation(self.slots.len()) {
            while held[ring] < wanted[ring] {
                self.fill(ring, at);
                held[ring] += 1;
            }
            while held[ring] > wanted[ring] {
                self.read(ring, at);
                held[ring] -= 1;
            }
        }
    }

    /// A few steps; `head` is what the rings hold at the head of the loop around them.
    fn sequence(&mut self, held: &mut Held, at: &str, depth: u32, length: u32, head: Option<&Held>) {
        for _ in 0..length {
            match (self.rng.below(20), head) {
                (0..12, _) => {
                    let ring = self.rng.below(self.slots.len() as u32) as usize;
                    let fills = held[ring] == 0 || held[ring] < self.slots[ring] && self.rng.below(2) == 0;
                    match (fills, self.rng.below(3)) {
                        (true, _) => self.fill(ring, at),
                        (false, 0) => self.hold(ring, at),
                        (false, _) => self.read(ring, at),
                    }
                    if fills { held[ring] += 1 } else { held[ring] -= 1 }
                }
                (12..15, _) if depth < 2 => self.a_loop(held, depth + 1),
                (15..18, Some(head)) => {
                    let condition = self.condition(at);
                    self.line(&format!("if {condition} {{"));
                    self.change_to(&mut held.clone(), head, at);
                    let leaves = self.rng.of(&["break", "continue"]);
                    self.line(&format!("{leaves}\n}} else {{\nyield\n}}"));
                }
                _ if depth < 3 => self.branch(held, at),
                _ => {}
            }
        }
    }

    /// A branch after which the rings hold what they held before it.
    fn branch(&mut self, held: &Held, at: &str) {
        let condition = self.condition(at);
        self.line(&format!("if {condition} {{"));
        for other in ["yield\n} else {", "yield\n}"] {
            let length = self.rng.below(4);
            let mut own = held.clone();
            self.sequence(&mut own, at, 3, length, None);
            self.change_to(&mut own, held, at);
            self.line(other);
        }
    }

    fn a_loop(&mut self, held: &Held, depth: u32) {
        let n = self.number();
        let bound = self.rng.of(&["%n", "%m", "%n", "%i1", "%i2"]);
        self.line(&format!("for %j{n} = %i0 to {bound} step %i1 {{"));
        let (at, length) = (format!("%j{n}"), 1 + self.rng.below(5));
        let mut own = held.clone();
        self.sequence(&mut own, &at, depth, length, Some(held));
        self.change_to(&mut own, held, &at);
        self.line("continue\n}");
    }
}

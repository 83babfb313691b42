//! Random barrier-level programs, as text.

use std::fmt::Write;

/// A generator that is the same everywhere.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// A program that is being written.
struct Text {
    out: String,
    depth: usize,
    names: usize,
    /// Loop counters in sight.
    counters: Vec<String>,
    cp_tokens: usize,
    mma_tokens: usize,
    /// Bulk stores, which only some programs have.
    stores: bool,
    st_tokens: usize,
}

impl Text {
    fn line(&mut self, line: &str) {
        for _ in 0..=self.depth {
            self.out.push_str("    ");
        }
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }

    /// A region: a whole one, or a part of the ring.
    fn region(&mut self, rng: &mut Rng) -> String {
        let whole = ["%low", "%high", "%middle"];
        match rng.below(6) {
            i @ 0..3 => whole[i as usize].to_owned(),
            3 => {
                let part = self.name();
                self.line(&format!("{part} = ttg.region.at %ring, %c{}", rng.below(4)));
                part
            }
            _ => {
                let base = if self.counters.is_empty() {
                    "%x".to_owned()
                } else {
                    self.counters[rng.below(self.counters.len() as u64) as usize].clone()
                };
                let (sum, index, part) = (self.name(), self.name(), self.name());
                self.line(&format!("{sum} = add {base}, %c{}", rng.below(4)));
                self.line(&format!("{index} = rem {sum}, %c4"));
                self.line(&format!("{part} = ttg.region.at %ring, {index}"));
                part
            }
        }
    }

    fn statement(&mut self, rng: &mut Rng, nest: usize, bar: &str) {
        match rng.below(if nest > 0 { 15 } else { 11 }) {
            0 | 1 => {
                let r = self.region(rng);
                self.line(&format!("ttg.region.write {r}"));
            }
            2 => {
                let r = self.region(rng);
                self.line(&format!("ttg.region.read {r}"));
            }
            3 | 4 => {
                let r = self.region(rng);
                let token = self.name();
                self.line(&format!("ttg.nv.wgmma.mma_async {r}"));
                self.line(&format!("{token} = ttg.nv.wgmma.commit_group : vtok<wgmma, {}>", self.mma_tokens));
                self.mma_tokens += 1;
                self.line("ttg.nv.wgmma.wait_group {n = 0}");
            }
            5 => {
                let (r, state) = (self.region(rng), self.name());
                self.line(&format!("{state} = ttg.nv.mbarrier.arrive_expect_tx {bar} {{bytes = 256}}"));
                self.line(&format!("ttg.nv.cp_async_bulk.load %a[%c0, %c0], {r}, {bar} {{bytes = 256}}"));
                self.line(&format!("ttg.nv.mbarrier.wait {bar}, {state}"));
            }
            6 => {
                let (r, token) = (self.region(rng), self.name());
                self.line(&format!("ttg.nv.cp_async %a[%c0, %c0], {r} {{bytes = 256}}"));
                self.line(&format!("{token} = ttg.nv.cp_async.commit_group : vtok<cp_async, {}>", self.cp_tokens));
                self.cp_tokens += 1;
                if rng.below(3) == 0 {
                    let r = self.region(rng);
                    self.line(&format!("ttg.region.read {r}"));
                }
                self.line("ttg.nv.cp_async.wait_group {n = 0}");
            }
            7 => {
                let r = self.region(rng);
                let access = ["r", "w", "rw"][rng.below(3) as usize];
                let proxy = ["generic", "async", "none"][rng.below(3) as usize];
                self.line(&format!("ttg.region.call \"f\", {r} {{access = {access}, proxy = {proxy}}}"));
            }
            8 => self.line("ttg.fence.proxy {from = generic, to = async, scope = cta, space = shared}"),
            9 | 10 if self.stores => {
                let r = self.region(rng);
                self.line(&format!("ttg.nv.cp_async_bulk.store %open[%c0, %c0], {r} {{bytes = 256}}"));
                if rng.below(3) == 0 {
                    let token = self.name();
                    self.line(&format!("{token} = ttg.nv.bulk_group.commit : vtok<bulk_store, {}>", self.st_tokens));
                    self.st_tokens += 1;
                    if rng.below(2) == 0 {
                        self.line(&format!("ttg.nv.bulk_group.wait {{n = {}, read = true}}", rng.below(2)));
                    }
                }
            }
            9 | 10 => {
                let r = self.region(rng);
                self.line(&format!("ttg.region.write {r}"));
            }
            11 | 12 => {
                let cond = self.name();
                self.line(&format!("{cond} = gt %{}, %c0", ["p", "q"][rng.below(2) as usize]));
                self.line(&format!("if {cond} {{"));
                self.inside(rng, nest, bar, "yield");
                self.line("} else {");
                self.inside(rng, nest, bar, "yield");
                self.line("}");
            }
            _ => {
                let counter = self.name();
                self.line(&format!("for {counter} = %c0 to %n step %c1 {{"));
                self.counters.push(counter);
                self.inside(rng, nest, bar, "continue");
                self.counters.pop();
                self.line("}");
            }
        }
    }

    fn inside(&mut self, rng: &mut Rng, nest: usize, bar: &str, end: &str) {
        self.depth += 1;
        self.statements(rng, nest - 1, bar);
        self.line(end);
        self.depth -= 1;
    }

    fn statements(&mut self, rng: &mut Rng, nest: usize, bar: &str) {
        for _ in 0..rng.below(3) + u64::from(nest > 0) {
            self.statement(rng, nest, bar);
        }
    }

    fn begin(roles: &str, stores: bool) -> Text {
        let mut out = format!(
            "kernel @k(%a: in tensor<f16>[M, K], %c: mut tensor<f16>[M, K], %n: i32, %p: i32, %q: i32, %x: i32){roles} {{\n"
        );
        for i in 0..5 {
            let _ = writeln!(out, "    %c{i} = const {i} : i32");
        }
        let mut text =
            Text { out, depth: 0, names: 0, counters: Vec::new(), cp_tokens: 0, mma_tokens: 0, stores, st_tokens: 0 };
        for line in [
            "%open = shared %c : tensor<f16, 2>",
            "%low = ttg.region {offset = 0, bytes = 256}",
            "%high = ttg.region {offset = 256, bytes = 256}",
            "%middle = ttg.region {offset = 128, bytes = 256}",
            "%ring = ttg.region {offset = 512, bytes = 1024, parts = 4}",
            "%words = ttg.region {offset = 4096, bytes = 64}",
        ] {
            text.line(line);
        }
        for (i, (bar, count)) in ["%own0", "%own1", "%there", "%back"].into_iter().zip([1, 1, 1, 1]).enumerate() {
            text.line(&format!("{bar} = ttg.nv.mbarrier.alloc %words {{at = {}, n = 1}}", 8 * i));
            text.line(&format!("ttg.nv.mbarrier.init {bar} {{count = {count}}}"));
        }
        text.line("ttg.nv.fence.mbarrier_init");
        text
    }
}

/// A program without roles.
pub(crate) fn alone(rng: &mut Rng, stores: bool) -> String {
    let mut text = Text::begin("", stores);
    for _ in 0..3 {
        text.statements(rng, 2, "%own0");
    }
    text.line("return");
    text.out.push_str("}\n");
    text.out
}

/// Two roles that meet again and again, in a loop of equal length.
pub(crate) fn together(rng: &mut Rng) -> String {
    let mut text = Text::begin(" role(one, 4) role(two, 4)", false);
    // How they meet in an iteration: both at a named barrier, or one tells the other.
    let meets: Vec<u64> = (0..1 + rng.below(3)).map(|_| rng.below(3)).collect();
    text.line("ttg.roles one {");
    for role in 0..2 {
        text.depth += 1;
        (text.cp_tokens, text.mma_tokens) = (0, 0);
        let (counter, parity) = (text.name(), text.name());
        text.statements(rng, 1, ["%own0", "%own1"][role]);
        text.line(&format!("for {counter} = %c0 to %n step %c1 {{"));
        text.depth += 1;
        text.line(&format!("{parity} = rem {counter}, %c2"));
        text.counters.push(counter);
        let mut used = [false; 2];
        for meet in &meets {
            text.statements(rng, 1, ["%own0", "%own1"][role]);
            let way = usize::from(*meet == 1);
            match *meet {
                0 => text.line("ttg.nv.barrier.sync {id = 1, threads = 256}"),
                // Each barrier once in an iteration.
                _ if used[way] => {}
                _ => {
                    used[way] = true;
                    let bar = ["%there", "%back"][way];
                    if way == role {
                        let state = text.name();
                        text.line(&format!("{state} = ttg.nv.mbarrier.arrive {bar} {{arrivals = 1}}"));
                    } else {
                        text.line(&format!("ttg.nv.mbarrier.wait_parity {bar}, {parity}"));
                    }
                }
            }
        }
        text.statements(rng, 1, ["%own0", "%own1"][role]);
        text.counters.pop();
        text.line("continue");
        text.depth -= 1;
        text.line("}");
        text.line("ttg.pipeline.finalize");
        text.line("yield");
        text.depth -= 1;
        text.line(if role == 0 { "} two {" } else { "}" });
    }
    text.line("return");
    text.out.push_str("}\n");
    text.out
}

//! Correct programs that use tensor memory: rings of stages for MMAs of several kinds, accumulators that are used in turn, statistics that
//! warps exchange, operands and scales in tensor memory, shifts, and accumulators that warps initialise.

use std::fmt::Write as _;

/// A correct program: its name, and its text.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// An MMA: its attributes, and what it takes.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    attributes: &'static str,
    /// The rows of A and of B.
    rows: [u32; 2],
    columns: u32,
}

/// MMAs without scales, with A in shared memory.
const SHAPES: [Shape; 9] = [
    shape("f16", "kind = f16, a = f16, b = f16, d = f32, m = 128, n = 64, k = 16", [128, 64], 64),
    shape("f16 of 64 rows", "kind = f16, a = f16, b = f16, d = f32, m = 64, n = 64, k = 16", [64, 64], 64),
    shape("bf16", "kind = f16, a = bf16, b = bf16, d = f32, m = 128, n = 128, k = 16", [128, 128], 128),
    shape("f16 result", "kind = f16, a = f16, b = f16, d = f16, m = 128, n = 32, k = 16", [128, 32], 32),
    shape("tf32", "kind = tf32, a = tf32, b = tf32, d = f32, m = 128, n = 32, k = 8", [128, 32], 32),
    shape("f8f6f4", "kind = f8f6f4, a = e4m3, b = e2m1, d = f32, m = 128, n = 16, k = 32", [128, 16], 32),
    shape("i8", "kind = i8, a = i8, b = u8, d = i32, m = 128, n = 48, k = 32", [128, 48], 64),
    shape("ws", "kind = f16, a = f16, b = f16, d = f32, m = 32, n = 128, k = 16, ws = true", [32, 128], 32),
    shape("ws of 64 rows", "kind = f16, a = f16, b = f16, d = f32, m = 64, n = 128, k = 16, ws = true", [64, 128], 64),
];

/// MMAs with scales.
const SCALED: [Shape; 3] = [
    shape("mxf8f6f4", "kind = mxf8f6f4, a = e4m3, b = e5m2, d = f32, m = 128, n = 64, k = 32", [128, 64], 64),
    shape("mxf4", "kind = mxf4, a = e2m1, b = e2m1, d = f32, m = 128, n = 32, k = 64", [128, 32], 32),
    shape(
        "mxf4nvf4",
        "kind = mxf4nvf4, a = e2m1, b = e2m1, d = f32, m = 128, n = 128, k = 64, scale_vec = 4",
        [128, 128],
        128,
    ),
];

/// Loads and stores: their attributes, and the columns that they access.
const MOVES: [(&str, u32); 5] = [
    ("shape = \"32x32b\", times = 2", 32),
    ("shape = \"32x32b\", times = 64", 64),
    ("shape = \"16x64b\", times = 16", 32),
    ("shape = \"16x128b\", times = 8", 32),
    ("shape = \"16x256b\", times = 8", 64),
];

const fn shape(name: &'static str, attributes: &'static str, rows: [u32; 2], columns: u32) -> Shape {
    Shape { name, attributes, rows, columns }
}

/// A kernel: the roles of its head, what comes before them, and the lines of each, without their ends.
struct Kernel {
    roles: Vec<(&'static str, u32, String)>,
    before: String,
    /// The next free byte of shared memory, and of the words of barriers.
    bytes: u32,
    words: u32,
    barriers: String,
}

impl Kernel {
    fn new() -> Kernel {
        Kernel { roles: Vec::new(), before: String::new(), bytes: 1024, words: 0, barriers: String::new() }
    }

    /// A region in parts.
    fn region(&mut self, name: &str, bytes: u32, parts: u32) {
        let (at, all) = (self.bytes, bytes * parts);
        let parts = if parts == 1 { String::new() } else { format!(", parts = {parts}") };
        let _ = writeln!(self.before, "%{name} = ttg.region {{offset = {at}, bytes = {all}{parts}}}");
        self.bytes = (at + all).next_multiple_of(1024);
    }

    /// Barriers with an arrival count.
    fn barrier(&mut self, name: &str, n: u32, count: u32) {
        let at = self.words;
        let _ = writeln!(self.before, "%{name} = ttg.nv.mbarrier.alloc %words {{at = {at}, n = {n}}}");
        let _ = writeln!(self.barriers, "ttg.nv.mbarrier.init %{name} {{count = {count}}}");
        self.words += 8 * n;
    }

    fn columns(&mut self, name: &str, n: u32) {
        let _ = writeln!(self.barriers, "%{name} = ttg.nv.tcgen05.alloc {{columns = {n}, cta_group = 1}}");
    }

    fn role(&mut self, name: &'static str, warps: u32, lines: &str) {
        self.roles.push((name, warps, lines.to_owned()));
    }

    fn text(self) -> String {
        let heads: Vec<String> = self.roles.iter().map(|(name, warps, _)| format!("role({name}, {warps})")).collect();
        // Barriers are initialised and published before columns are allocated.
        let (inits, allocs): (Vec<&str>, Vec<&str>) = self.barriers.lines().partition(|l| !l.contains("tcgen05"));
        let mut text = format!(
            "kernel @program(%a: in tensor<f16>[M, K], %b: in tensor<f16>[N, K], %tiles: i32) {} {{\n%zero = const 0 : i32\n%one = \
             const 1 : i32\n%two = const 2 : i32\n%words = ttg.region {{offset = 0, bytes = 256}}\n{}{}\nttg.nv.fence.mbarrier_init\n{}\n",
            heads.join(" "),
            self.before,
            inits.join("\n"),
            allocs.join("\n"),
        );
        for (i, (name, _, lines)) in self.roles.iter().enumerate() {
            let _ = write!(
                text,
                "{} {name} {{\n{lines}ttg.pipeline.finalize\nyield\n",
                if i == 0 { "ttg.roles" } else { "}" }
            );
        }
        text + "}\nreturn\n}\n"
    }
}

const LOAD: &str = "ttg.nv.tcgen05.wait_ld\nttg.nv.tcgen05.fence_before_thread_sync\n";
const STORE: &str = "ttg.nv.tcgen05.wait_st\nttg.nv.tcgen05.fence_before_thread_sync\n";
const AFTER: &str = "ttg.nv.tcgen05.fence_after_thread_sync\n";

/// Copies of A and B into the stages of a ring.
fn copies(depth: u32, [a, b]: [u32; 2]) -> String {
    let (slot, names) = slots(depth, "i");
    format!(
        "for %i = %zero to %tiles step %one {{\n{slot}ttg.nv.mbarrier.wait_parity {e}, %qi\n%st = ttg.nv.mbarrier.arrive_expect_tx {f} \
         {{bytes = {all}}}\nttg.nv.cp_async_bulk_tensor.load %a[%i, %zero], {sa}, {f} {{bytes = {a}}}\nttg.nv.cp_async_bulk_tensor.load \
         %b[%i, %zero], {sb}, {f} {{bytes = {b}}}\ncontinue\n}}\n",
        all = a + b,
        sa = names[0],
        sb = names[1],
        f = names[2],
        e = names[3],
    )
}

/// The lines that select the slot of an iteration, with its parities, and the names of the slot: A, B, full, empty.
fn slots(depth: u32, i: &str) -> (String, [String; 4]) {
    if depth == 1 {
        let lines = format!("%p{i} = rem %{i}, %two\n%q{i} = sub %one, %p{i}\n");
        return (lines, ["%sa", "%sb", "%full", "%empty"].map(str::to_owned));
    }
    let mut lines = format!(
        "%s{i} = rem %{i}, %depth\n%e{i} = div %{i}, %depth\n%p{i} = rem %e{i}, %two\n%q{i} = sub %one, %p{i}\n"
    );
    let names = ["sa", "sb", "full", "empty"].map(|n| {
        let op = if n.starts_with('s') { "ttg.region.at" } else { "ttg.nv.mbarrier.at" };
        let _ = writeln!(lines, "%{n}{i} = {op} %{n}, %s{i}");
        format!("%{n}{i}")
    });
    (lines, names)
}

fn mma(acc: &str, a: &str, b: &str, shape: &Shape) -> String {
    format!("ttg.nv.tcgen05.mma %{acc}, {a}, {b} {{{}, cta_group = 1}}\n", shape.attributes)
}

fn load(acc: &str, moves: &str) -> String {
    format!("ttg.nv.tcgen05.ld %{acc} {{{moves}}}\n{LOAD}")
}

/// A kernel with the ring of A and B.
fn ring(depth: u32, shape: &Shape) -> Kernel {
    let mut k = Kernel::new();
    let bytes = shape.rows.map(|rows| 32 * rows);
    if depth > 1 {
        let _ = writeln!(k.before, "%depth = const {depth} : i32");
    }
    k.region("sa", bytes[0], depth);
    k.region("sb", bytes[1], depth);
    k.barrier("full", depth, 1);
    k.barrier("empty", depth, 1);
    let lines = copies(depth, bytes);
    k.role("copy", 1, &lines);
    k
}

/// A product of many steps: each tile of A and B is multiplied into an accumulator, which warps load after each.
fn gemm(depth: u32, mmas: usize, warps: u32, shape: &Shape) -> Program {
    let mut k = ring(depth, shape);
    k.barrier("done", 1, 1);
    k.barrier("taken", 1, warps);
    k.columns("acc", shape.columns);
    let (slot, names) = slots(depth, "j");
    let math = format!(
        "%next = for %j = %zero to %tiles step %one carry(%q = %one) {{\n{slot}%p = xor %q, %one\nttg.nv.mbarrier.wait_parity {full}, \
         %pj\nttg.nv.mbarrier.wait_parity %taken, %q\n{AFTER}{mmas}ttg.nv.tcgen05.commit {empty} {{cta_group = 1}}\nttg.nv.tcgen05.commit \
         %done {{cta_group = 1}}\ncontinue %p\n}}\nttg.nv.mbarrier.wait_parity %taken, %next\n{AFTER}ttg.nv.tcgen05.dealloc %acc \
         {{cta_group = 1}}\n",
        mmas = mma("acc", &names[0], &names[1], shape).repeat(mmas),
        full = names[2],
        empty = names[3],
    );
    k.role("math", 1, &math);
    k.role("epilogue", warps, &epilogue("acc", "t", warps));
    Program { name: format!("gemm: {}, {depth} stages, {mmas} MMAs, {warps} warps", shape.name), text: k.text() }
}

/// Warps that load an accumulator in each iteration.
fn epilogue(acc: &str, t: &str, warps: u32) -> String {
    format!(
        "for %{t} = %zero to %tiles step %one {{\n%p{t} = rem %{t}, %two\nttg.nv.mbarrier.wait_parity %done, %p{t}\n{AFTER}{}%u{t} = \
         ttg.nv.mbarrier.arrive %taken {{arrivals = {warps}}}\ncontinue\n}}\n",
        load(acc, MOVES[0].0)
    )
}

/// Two accumulators that are filled in turn, each of them loaded while the other one is filled.
fn two_accumulators(shape: &Shape) -> Program {
    let mut k = ring(1, shape);
    for acc in ["x", "y"] {
        k.barrier(&format!("done{acc}"), 1, 1);
        k.barrier(&format!("taken{acc}"), 1, 4);
        k.columns(acc, shape.columns);
    }
    let turn = |acc: &str| {
        format!(
            "ttg.nv.mbarrier.wait_parity %taken{acc}, %q\n{AFTER}{}ttg.nv.tcgen05.commit %done{acc} {{cta_group = 1}}\n",
            mma(acc, "%sa", "%sb", shape)
        )
    };
    let math = format!(
        "%next = for %j = %zero to %tiles step %one carry(%q = %one) {{\n%p = xor %q, %one\nttg.nv.mbarrier.wait_parity %full, \
         %p\n{}{}ttg.nv.tcgen05.commit %empty {{cta_group = 1}}\ncontinue %p\n}}\nttg.nv.mbarrier.wait_parity %takenx, \
         %next\nttg.nv.mbarrier.wait_parity %takeny, %next\n{AFTER}ttg.nv.tcgen05.dealloc %x {{cta_group = 1}}\nttg.nv.tcgen05.dealloc %y \
         {{cta_group = 1}}\n",
        turn("x"),
        turn("y")
    );
    let read = |acc: &str| {
        format!(
            "ttg.nv.mbarrier.wait_parity %done{acc}, %pt\n{AFTER}{}%s{acc} = ttg.nv.mbarrier.arrive %taken{acc} {{arrivals = 4}}\n",
            load(acc, MOVES[0].0)
        )
    };
    let loads =
        format!("for %t = %zero to %tiles step %one {{\n%pt = rem %t, %two\n{}{}continue\n}}\n", read("x"), read("y"));
    k.role("math", 1, &math);
    k.role("epilogue", 4, &loads);
    Program { name: format!("two accumulators: {}", shape.name), text: k.text() }
}

/// Statistics that one set of warps stores and another one loads.
fn statistics((moves, columns): (&str, u32), warps: u32) -> Program {
    let mut k = Kernel::new();
    k.barrier("stored", 1, warps);
    k.barrier("taken", 1, 4);
    k.barrier("over", 1, warps);
    k.columns("stats", columns);
    k.role(
        "softmax",
        warps,
        &format!(
            "%next = for %i = %zero to %tiles step %one carry(%q = %one) {{\n%p = xor %q, %one\nttg.nv.mbarrier.wait_parity %taken, \
             %q\n{AFTER}ttg.nv.tcgen05.st %stats {{{moves}}}\n{STORE}%s1 = ttg.nv.mbarrier.arrive %stored {{arrivals = \
             {warps}}}\ncontinue %p\n}}\nttg.nv.mbarrier.wait_parity %taken, %next\n%s2 = ttg.nv.mbarrier.arrive %over {{arrivals = \
             {warps}}}\n"
        ),
    );
    k.role(
        "correction",
        4,
        &format!(
            "for %j = %zero to %tiles step %one {{\n%pj = rem %j, %two\nttg.nv.mbarrier.wait_parity %stored, %pj\n{AFTER}{}%s3 = \
             ttg.nv.mbarrier.arrive %taken {{arrivals = 4}}\ncontinue\n}}\n",
            load("stats", moves)
        ),
    );
    k.role(
        "owner",
        1,
        &format!("ttg.nv.mbarrier.wait_parity %over, %zero\n{AFTER}ttg.nv.tcgen05.dealloc %stats {{cta_group = 1}}\n"),
    );
    Program { name: format!("statistics: {moves}, {warps} warps"), text: k.text() }
}

/// A is stored to tensor memory by warps, as the probabilities of attention, and perhaps shifted; B is in shared memory.
fn attention(shape: &Shape, shifted: bool) -> Program {
    let mut k = Kernel::new();
    let bytes = 32 * shape.rows[1];
    k.region("sb", bytes, 1);
    k.barrier("full", 1, 1);
    k.barrier("stored", 1, 4);
    k.barrier("done", 1, 1);
    k.barrier("taken", 1, 4);
    k.columns("acc", shape.columns);
    k.columns("p", 32);
    k.role(
        "copy",
        1,
        &format!(
            "%st = ttg.nv.mbarrier.arrive_expect_tx %full {{bytes = {bytes}}}\nttg.nv.cp_async_bulk_tensor.load %b[%zero, %zero], %sb, %full \
             {{bytes = {bytes}}}\n"
        ),
    );
    k.role(
        "softmax",
        4,
        &format!(
            "for %i = %zero to %tiles step %one {{\n%pi = rem %i, %two\n%qi = sub %one, %pi\nttg.nv.mbarrier.wait_parity %taken, \
             %qi\n{AFTER}ttg.nv.tcgen05.st %p {{shape = \"32x32b\", times = 32}}\n{STORE}%s1 = ttg.nv.mbarrier.arrive %stored {{arrivals = \
             4}}\ncontinue\n}}\n"
        ),
    );
    let shift = if shifted { "ttg.nv.tcgen05.shift %p {cta_group = 1}\n" } else { "" };
    k.role(
        "math",
        1,
        &format!(
            "ttg.nv.mbarrier.wait_parity %full, %zero\n%next = for %j = %zero to %tiles step %one carry(%q = %one) {{\n%pj = xor %q, \
             %one\nttg.nv.mbarrier.wait_parity %stored, %pj\n{AFTER}{shift}{}ttg.nv.tcgen05.commit %done {{cta_group = 1}}\ncontinue \
             %pj\n}}\nttg.nv.mbarrier.wait_parity %taken, %next\n{AFTER}ttg.nv.tcgen05.dealloc %acc {{cta_group = 1}}\n\
             ttg.nv.tcgen05.dealloc %p {{cta_group = 1}}\n",
            mma("acc", "%p", "%sb", shape)
        ),
    );
    k.role("epilogue", 4, &epilogue("acc", "t", 4));
    Program { name: format!("attention: {}{}", shape.name, if shifted { ", shifted" } else { "" }), text: k.text() }
}

/// Scales are copied to tensor memory before each MMA.
fn scales(depth: u32, shape: &Shape) -> Program {
    let mut k = ring(depth, shape);
    k.barrier("done", 1, 1);
    k.barrier("taken", 1, 4);
    for (name, n) in [("acc", shape.columns), ("fa", 32), ("fb", 32)] {
        k.columns(name, n);
    }
    let (slot, names) = slots(depth, "j");
    let math = format!(
        "%next = for %j = %zero to %tiles step %one carry(%q = %one) {{\n{slot}%p = xor %q, %one\nttg.nv.mbarrier.wait_parity {full}, \
         %pj\nttg.nv.mbarrier.wait_parity %taken, %q\n{AFTER}ttg.nv.tcgen05.cp %fa, {a} {{cta_group = 1}}\nttg.nv.tcgen05.cp %fb, {b} \
         {{cta_group = 1}}\nttg.nv.tcgen05.mma %acc, {a}, {b}, %fa, %fb {{{attributes}, cta_group = 1}}\nttg.nv.tcgen05.commit {empty} \
         {{cta_group = 1}}\nttg.nv.tcgen05.commit %done {{cta_group = 1}}\ncontinue %p\n}}\nttg.nv.mbarrier.wait_parity %taken, \
         %next\n{AFTER}ttg.nv.tcgen05.dealloc %acc {{cta_group = 1}}\nttg.nv.tcgen05.dealloc %fa {{cta_group = 1}}\nttg.nv.tcgen05.dealloc %fb \
         {{cta_group = 1}}\n",
        a = names[0],
        b = names[1],
        full = names[2],
        empty = names[3],
        attributes = shape.attributes,
    );
    k.role("math", 1, &math);
    k.role("epilogue", 4, &epilogue("acc", "t", 4));
    Program { name: format!("scales: {}, {depth} stages", shape.name), text: k.text() }
}

/// One tile, without loops; the columns are freed by `owner`: the role that multiplies, or a third one.
fn once(shape: &Shape, third: bool, shifted: bool) -> Program {
    let mut k = Kernel::new();
    let bytes = shape.rows.map(|rows| 32 * rows);
    k.region("sa", bytes[0], 1);
    k.region("sb", bytes[1], 1);
    for (name, count) in [("full", 1), ("done", 1), ("taken", 4)] {
        k.barrier(name, 1, count);
    }
    k.columns("acc", shape.columns);
    k.role(
        "copy",
        1,
        &format!(
            "%st = ttg.nv.mbarrier.arrive_expect_tx %full {{bytes = {}}}\nttg.nv.cp_async_bulk_tensor.load %a[%zero, %zero], %sa, %full \
             {{bytes = {}}}\nttg.nv.cp_async_bulk_tensor.load %b[%zero, %zero], %sb, %full {{bytes = {}}}\n",
            bytes[0] + bytes[1],
            bytes[0],
            bytes[1]
        ),
    );
    let free =
        format!("ttg.nv.mbarrier.wait_parity %taken, %zero\n{AFTER}ttg.nv.tcgen05.dealloc %acc {{cta_group = 1}}\n");
    let shift = if shifted { "ttg.nv.tcgen05.shift %acc {cta_group = 1}\n" } else { "" };
    let math = format!(
        "ttg.nv.mbarrier.wait_parity %full, %zero\n{}{shift}ttg.nv.tcgen05.commit %done {{cta_group = 1}}\n{}",
        mma("acc", "%sa", "%sb", shape),
        if third { "" } else { &free }
    );
    k.role("math", 1, &math);
    let loads = format!(
        "ttg.nv.mbarrier.wait_parity %done, %zero\n{AFTER}{}%s = ttg.nv.mbarrier.arrive %taken {{arrivals = 4}}\n",
        load("acc", MOVES[0].0)
    );
    k.role("epilogue", 4, &loads);
    if third {
        k.role("owner", 1, &free);
    }
    let name = format!(
        "once: {}{}{}",
        shape.name,
        if third { ", a third role frees" } else { "" },
        if shifted { ", shifted" } else { "" }
    );
    Program { name, text: k.text() }
}

/// Warps initialise the accumulator, to which MMAs add, and load it afterwards.
fn initialised(shape: &Shape, moves: &str) -> Program {
    let mut k = ring(1, shape);
    k.barrier("ready", 1, 4);
    k.barrier("done", 1, 1);
    k.barrier("over", 1, 4);
    k.columns("acc", shape.columns.max(64));
    let math = format!(
        "for %j = %zero to %tiles step %one {{\n%pj = rem %j, %two\nttg.nv.mbarrier.wait_parity %full, \
         %pj\nttg.nv.mbarrier.wait_parity %ready, %pj\n{AFTER}{}ttg.nv.tcgen05.commit %empty {{cta_group = 1}}\nttg.nv.tcgen05.commit %done \
         {{cta_group = 1}}\ncontinue\n}}\nttg.nv.mbarrier.wait_parity %over, %zero\n{AFTER}ttg.nv.tcgen05.dealloc %acc {{cta_group = 1}}\n",
        mma("acc", "%sa", "%sb", shape)
    );
    let epilogue = format!(
        "for %t = %zero to %tiles step %one {{\n%pt = rem %t, %two\nttg.nv.tcgen05.st %acc {{{moves}}}\n{STORE}%s1 = \
         ttg.nv.mbarrier.arrive %ready {{arrivals = 4}}\nttg.nv.mbarrier.wait_parity %done, %pt\n{AFTER}{}continue\n}}\n%s2 = \
         ttg.nv.mbarrier.arrive %over {{arrivals = 4}}\n",
        load("acc", MOVES[0].0)
    );
    k.role("math", 1, &math);
    k.role("epilogue", 4, &epilogue);
    Program { name: format!("initialised: {}, {moves}", shape.name), text: k.text() }
}

/// All programs.
pub(crate) fn all() -> Vec<Program> {
    let mut all = Vec::new();
    for shape in &SHAPES {
        for depth in 1..=3 {
            all.extend([1, 2].map(|mmas| gemm(depth, mmas, 4, shape)));
        }
        all.push(gemm(1, 3, 8, shape));
        all.push(two_accumulators(shape));
        all.push(once(shape, false, false));
        all.push(once(shape, true, false));
        all.push(initialised(shape, MOVES[1].0));
    }
    for moves in MOVES {
        all.extend([4, 8].map(|warps| statistics(moves, warps)));
    }
    for shape in &SHAPES[..7] {
        all.extend([false, true].map(|shifted| attention(shape, shifted)));
    }
    for shape in &SCALED {
        all.extend([1, 2].map(|depth| scales(depth, shape)));
    }
    all.extend([0, 2, 4].map(|i| once(&SHAPES[i], false, true)));
    all.push(initialised(&SHAPES[0], MOVES[4].0));
    all
}

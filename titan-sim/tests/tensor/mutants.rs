//! How programs are changed: waits, fences, commits, arrivals and releases that are left out, doubled, moved or exchanged, and attributes that
//! are wrong.

/// A changed program.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    /// The kind of the change.
    pub(crate) kind: &'static str,
    /// The line that is changed, as it was.
    pub(crate) line: String,
    pub(crate) text: String,
}

/// Operations that order others.
const SYNC: [&str; 8] = [
    "ttg.nv.tcgen05.wait_ld",
    "ttg.nv.tcgen05.wait_st",
    "ttg.nv.tcgen05.fence_before_thread_sync",
    "ttg.nv.tcgen05.fence_after_thread_sync",
    "ttg.nv.tcgen05.commit",
    "ttg.nv.mbarrier.wait_parity",
    "ttg.nv.mbarrier.arrive",
    "ttg.nv.fence.mbarrier_init",
];
/// Operations that may be moved past others.
const MOVED: [&str; 13] = [
    "ttg.nv.tcgen05.wait_ld",
    "ttg.nv.tcgen05.wait_st",
    "ttg.nv.tcgen05.fence_before_thread_sync",
    "ttg.nv.tcgen05.fence_after_thread_sync",
    "ttg.nv.tcgen05.commit",
    "ttg.nv.tcgen05.mma",
    "ttg.nv.tcgen05.cp",
    "ttg.nv.tcgen05.shift",
    "ttg.nv.tcgen05.ld",
    "ttg.nv.tcgen05.st",
    "ttg.nv.tcgen05.dealloc",
    "ttg.nv.mbarrier.wait_parity",
    "ttg.nv.mbarrier.arrive",
];
/// Attributes and what they are changed to.
const ATTRIBUTES: [(&str, &str, &[&str]); 14] = [
    ("ttg.nv.tcgen05.alloc", "columns", &["16", "32", "96", "1024"]),
    ("ttg.nv.tcgen05.alloc", "cta_group", &["2", "3"]),
    ("ttg.nv.tcgen05.dealloc", "cta_group", &["2"]),
    ("ttg.nv.tcgen05.mma", "cta_group", &["2"]),
    ("ttg.nv.tcgen05.commit", "cta_group", &["2"]),
    ("ttg.nv.tcgen05.mma", "m", &["96", "256"]),
    ("ttg.nv.tcgen05.mma", "n", &["20", "256"]),
    ("ttg.nv.tcgen05.mma", "k", &["24"]),
    ("ttg.nv.tcgen05.mma", "d", &["e4m3"]),
    ("ttg.nv.tcgen05.mma", "a", &["i8", "f32"]),
    ("ttg.nv.tcgen05.ld", "times", &["3", "128"]),
    ("ttg.nv.tcgen05.st", "times", &["3", "128"]),
    ("ttg.nv.mbarrier.init", "count", &["2", "5"]),
    ("ttg.nv.mbarrier.arrive", "arrivals", &["1", "5"]),
];
/// Attributes that are added to MMAs.
const ADDED: [&str; 5] = ["ws = true", "ashift = true", "scale_input = true", "scale_vec = 1", "collector = use"];
/// Operations that are exchanged.
const EXCHANGED: [(&str, &str); 3] = [
    ("ttg.nv.tcgen05.wait_ld", "ttg.nv.tcgen05.wait_st"),
    ("ttg.nv.tcgen05.wait_st", "ttg.nv.tcgen05.wait_ld"),
    ("ttg.nv.tcgen05.fence_before_thread_sync", "ttg.nv.tcgen05.fence_after_thread_sync"),
];

/// The name of a line's operation.
fn op(line: &str) -> &str {
    let rest = if line.starts_with('%') { line.split_once(" = ").map_or(line, |(_, rest)| rest) } else { line };
    rest.split(' ').next().unwrap_or_default()
}

/// The value that a line defines.
fn result(line: &str) -> Option<&str> {
    line.starts_with('%').then(|| line.split_once(" = ").map(|(name, _)| name)).flatten()
}

/// The words of a line that name values.
fn names(line: &str) -> Vec<&str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '%' || c == '_')).filter(|w| w.starts_with('%')).collect()
}

/// A line with another value for an attribute.
fn with_attribute(line: &str, name: &str, value: &str) -> Option<String> {
    let at = [format!("{{{name} = "), format!(", {name} = ")].iter().find_map(|w| Some(line.find(w)? + w.len()))?;
    let end = at + line[at..].find([',', '}'])?;
    (&line[at..end] != value).then(|| format!("{}{value}{}", &line[..at], &line[end..]))
}

/// A program that is changed, and its mutants.
struct Changes<'t> {
    text: &'t str,
    lines: Vec<&'t str>,
    all: Vec<Mutant>,
}

impl Changes<'_> {
    /// Adds the program with other lines in place of one.
    fn add(&mut self, kind: &'static str, at: usize, new: &[String]) {
        let mut changed: Vec<String> = self.lines.iter().map(|l| (*l).to_owned()).collect();
        changed.splice(at..=at, new.iter().cloned());
        self.all.push(Mutant { kind, line: self.lines[at].to_owned(), text: changed.join("\n") });
    }

    /// What orders other operations is left out, doubled or exchanged.
    fn order(&mut self, at: usize) {
        let line = self.lines[at];
        let (own, name) = (line.to_owned(), op(line));
        let is_used = |r: &str| self.lines.iter().filter(|l| names(l).contains(&r)).count() > 1;
        if SYNC.contains(&name) && !result(line).is_some_and(is_used) {
            self.add("left out", at, &[]);
        }
        if name == "ttg.nv.tcgen05.dealloc" {
            self.add("never freed", at, &[]);
            self.add("freed twice", at, &[own.clone(), own.clone()]);
        }
        if name == "ttg.nv.tcgen05.commit" {
            self.add("committed twice", at, &[own.clone(), own.clone()]);
        }
        if name == "ttg.nv.mbarrier.arrive" {
            self.add("arrives twice", at, &[own.clone(), own.replacen('%', "%again_", 1)]);
        }
        if matches!(name, "ttg.nv.tcgen05.wait_ld" | "ttg.nv.tcgen05.wait_st") {
            let before = self.lines[at - 1].to_owned();
            self.add("another access after the wait", at, &[own, before]);
        }
        for (from, to) in EXCHANGED {
            if name == from {
                self.add("exchanged", at, &[to.to_owned()]);
            }
        }
    }

    /// Barriers are waited for by another parity, or others are waited for and arrived at.
    fn barriers(&mut self, at: usize) {
        let line = self.lines[at];
        let name = op(line);
        if name == "ttg.nv.mbarrier.wait_parity" {
            for parity in ["%zero", "%one"] {
                if let Some((head, old)) = line.rsplit_once(", ")
                    && old != parity
                {
                    self.add("another parity", at, &[format!("{head}, {parity}")]);
                }
            }
        }
        for (from, to) in [("%done", "%taken"), ("%taken", "%done"), ("%stored", "%taken"), ("%empty", "%full")] {
            let uses =
                matches!(name, "ttg.nv.tcgen05.commit" | "ttg.nv.mbarrier.arrive" | "ttg.nv.mbarrier.wait_parity");
            if uses && names(line).contains(&from) && self.text.contains(&format!("{to} = ")) {
                self.add("another barrier", at, &[line.replacen(from, to, 1)]);
            }
        }
    }

    /// Attributes are others, and roles have other numbers of warps.
    fn attributes(&mut self, at: usize) {
        let line = self.lines[at];
        let name = op(line);
        for (wanted, attribute, values) in ATTRIBUTES {
            let new = values.iter().filter(|_| name == wanted).filter_map(|v| with_attribute(line, attribute, v));
            new.for_each(|new| self.add("another attribute", at, &[new]));
        }
        if name == "ttg.nv.tcgen05.alloc" {
            let give_up = "ttg.nv.tcgen05.relinquish_alloc_permit {cta_group = 1}".to_owned();
            self.add("given up before", at, &[give_up.clone(), line.to_owned()]);
            self.add("given up after", at, &[line.to_owned(), give_up]);
        }
        if line.starts_with("kernel ") {
            for (from, to) in
                [("(math, 1)", "(math, 4)"), ("(epilogue, 4)", "(epilogue, 2)"), ("(owner, 1)", "(owner, 2)")]
            {
                if line.contains(from) {
                    self.add("other warps", at, &[line.replacen(from, to, 1)]);
                }
            }
        }
    }

    /// MMAs have an attribute more, or other operations beside them.
    fn mmas(&mut self, at: usize) {
        let line = self.lines[at];
        if op(line) != "ttg.nv.tcgen05.mma" {
            return;
        }
        let own = line.to_owned();
        for attribute in ADDED {
            self.add("an attribute more", at, &[line.replacen("cta_group", &format!("{attribute}, cta_group"), 1)]);
        }
        if let Some(other) = with_attribute(line, "n", "16") {
            self.add("an MMA of another shape", at, &[own.clone(), other]);
        }
        let [acc, a, ..] = names(line)[..] else { return };
        self.add("shifted after it", at, &[own.clone(), format!("ttg.nv.tcgen05.shift {acc} {{cta_group = 1}}")]);
        if a != "%p" {
            let copy = format!("ttg.nv.tcgen05.cp {acc}, {a} {{cta_group = 1}}");
            self.add("copied after it", at, &[own.clone(), copy.clone()]);
            self.add("copied before it", at, &[copy, own]);
        }
    }
}

/// All changes of a program.
pub(crate) fn of(text: &str) -> Vec<Mutant> {
    let mut changes = Changes { text, lines: text.lines().collect(), all: Vec::new() };
    for at in 0..changes.lines.len() {
        changes.order(at);
        changes.barriers(at);
        changes.attributes(at);
        changes.mmas(at);
    }
    let moved = moved(&changes.lines);
    changes.all.extend(moved);
    changes.all
}

/// Lines that are exchanged with their neighbours.
fn moved(lines: &[&str]) -> Vec<Mutant> {
    let mut all = Vec::new();
    for at in 1..lines.len() {
        let (first, second) = (lines[at - 1], lines[at]);
        let is_plain = |l: &str| l.starts_with("ttg.") || l.starts_with('%');
        let ends =
            |l: &str| l.ends_with('{') || l.starts_with('}') || matches!(op(l), "ttg.pipeline.finalize" | "ttg.roles");
        let depends = result(first).is_some_and(|r| names(second).contains(&r));
        let is_moved = MOVED.contains(&op(first)) || MOVED.contains(&op(second));
        if !is_plain(first)
            || !is_plain(second)
            || ends(first)
            || ends(second)
            || depends
            || !is_moved
            || first == second
        {
            continue;
        }
        let mut changed = lines.to_vec();
        changed.swap(at - 1, at);
        all.push(Mutant { kind: "moved", line: format!("{first} / {second}"), text: changed.join("\n") });
    }
    all
}

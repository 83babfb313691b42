//! Kernels as lines, to be changed a little.

use titan_core::ir::Kernel;
use titan_core::text::{parse, print};

/// The text of one kernel, an operation a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Vec<String>);

/// The mark of what no run comes to. It is a comment.
const NEVER: &str = " ; never";

/// A change of some lines that may leave another program.
pub(crate) type Edit = fn(&Text) -> Vec<Text>;

impl Text {
    pub(crate) fn of(kernel: &Kernel) -> Text {
        Text(print(kernel).lines().map(inferred).collect())
    }

    /// The kernel, if there is one of this text.
    pub(crate) fn kernel(&self) -> Option<Kernel> {
        parse(&self.0.join("\n")).ok()?.pop()
    }

    pub(crate) fn line(&self, at: usize) -> &str {
        &self.0[at]
    }

    /// The lines of an operation; a name that ends in a dot stands for all that begin with it. What never runs is left out where it
    /// is marked: no order shows what is changed there.
    pub(crate) fn ops(&self, name: &str) -> Vec<usize> {
        let is = |line: &String| {
            let op = op(line);
            (op == name || (name.ends_with('.') && op.starts_with(name))) && !line.ends_with(NEVER)
        };
        (0..self.0.len()).filter(|i| is(&self.0[*i])).collect()
    }

    pub(crate) fn any(&self, names: &[&str]) -> Vec<usize> {
        let mut all: Vec<usize> = names.iter().flat_map(|n| self.ops(n)).collect();
        all.sort_unstable();
        all
    }

    pub(crate) fn without(&self, at: usize) -> Text {
        let mut new = self.clone();
        new.0.remove(at);
        new
    }

    pub(crate) fn with(&self, at: usize, line: &str) -> Text {
        let mut new = self.clone();
        new.0[at] = line.to_owned();
        new
    }

    pub(crate) fn before(&self, at: usize, lines: &[&str]) -> Text {
        let mut new = self.clone();
        new.0.splice(at..at, lines.iter().map(|l| (*l).to_owned()));
        new
    }

    pub(crate) fn after(&self, at: usize, lines: &[&str]) -> Text {
        self.before(at + 1, lines)
    }

    /// With something said in every block of a loop or a condition, and what is said in each: the line that opens it.
    pub(crate) fn speaking(&self) -> Text {
        let opens = |i: &usize| {
            self.line(*i).ends_with('{')
                && (["for", "if"].contains(&op(self.line(*i))) || self.line(*i).trim() == "} else {")
        };
        let blocks: Vec<usize> = (0..self.0.len()).filter(opens).collect();
        let carries = |text: Text, i: &usize| text.after(*i, &[&format!("print \"{i}\"")]);
        blocks.iter().rev().fold(self.clone(), carries)
    }

    /// With a mark on every operation of the blocks that say nothing.
    pub(crate) fn marked(&self, said: &[String]) -> Text {
        let mut new = self.clone();
        let speaking = self.speaking();
        let sayings = speaking.0.iter().filter_map(|l| l.trim().strip_prefix("print \"")?.strip_suffix('"'));
        for (i, saying) in sayings.filter_map(|s| Some((s.parse::<usize>().ok()?, s))) {
            if said.iter().any(|s| s == saying) {
                continue;
            }
            for inner in &mut new.0[i + 1..self.end(i)] {
                if !inner.ends_with('{') && !inner.trim().starts_with('}') && !inner.ends_with(NEVER) {
                    inner.push_str(NEVER);
                }
            }
        }
        new
    }

    /// Without marks.
    pub(crate) fn plain(&self) -> String {
        self.0.join("\n").replace(NEVER, "")
    }

    /// A line twice; what the second one gives has other names.
    pub(crate) fn doubled(&self, at: usize) -> Text {
        let mut again = self.line(at).to_owned();
        for name in results(self.line(at)) {
            again = renamed(&again, &name, &format!("{name}_again"));
        }
        self.after(at, &[&again])
    }

    /// A line at another place, counted in the text as it is.
    pub(crate) fn moved(&self, from: usize, to: usize) -> Text {
        let mut new = self.clone();
        let line = new.0.remove(from);
        new.0.insert(if to > from { to - 1 } else { to }, line);
        new
    }

    /// Another name for a value from a line on.
    pub(crate) fn named(&self, from: usize, old: &str, name: &str) -> Text {
        let mut new = self.clone();
        for line in &mut new.0[from..] {
            *line = renamed(line, old, name);
        }
        new
    }

    /// The lines of the innermost loop around a line: its head and its end.
    pub(crate) fn around(&self, at: usize) -> Option<(usize, usize)> {
        let mut depth = indent(self.line(at));
        for head in (0..at).rev() {
            let here = indent(self.line(head));
            if here < depth && !self.line(head).trim().is_empty() {
                depth = here;
                if op(self.line(head)) == "for" {
                    return Some((head, self.end(head)));
                }
            }
        }
        None
    }

    /// The line that closes the block that a line opens.
    pub(crate) fn end(&self, head: usize) -> usize {
        let depth = indent(self.line(head));
        (head + 1..self.0.len()).find(|i| indent(self.line(*i)) <= depth).unwrap_or(self.0.len() - 1)
    }

    /// The role that a line stands in; `None` outside of all.
    pub(crate) fn role(&self, at: usize) -> Option<String> {
        self.0[..at].iter().rev().find_map(|l| role_head(l)).filter(|_| indent(self.line(at)) > 4)
    }

    /// The lines of a role.
    pub(crate) fn lines_of(&self, role: Option<&str>) -> Vec<usize> {
        (0..self.0.len()).filter(|i| self.role(*i).as_deref() == role).collect()
    }

    /// Where a value is defined.
    pub(crate) fn def(&self, name: &str) -> Option<usize> {
        (0..self.0.len()).find(|i| results(self.line(*i)).iter().any(|r| r == name))
    }

    /// Where scalars may be made that everything may use.
    pub(crate) fn top(&self) -> usize {
        (0..self.0.len()).find(|i| self.line(*i).ends_with('{')).map_or(1, |i| i + 1)
    }

    /// With constants at the top that no text has by itself: `%unit`, `%nil` and `%pair`.
    pub(crate) fn with_constants(&self) -> Text {
        self.before(self.top(), &["    %nil = const 0 : i32", "    %unit = const 1 : i32", "    %pair = const 2 : i32"])
    }
}

/// A line that leaves types to be inferred where they can be.
fn inferred(line: &str) -> String {
    let op = op(line);
    let named = ["ttg.source_tile", "ttg.source_rows", "ttg.stage.view"].contains(&op)
        || op.ends_with("commit_group")
        || op.ends_with(".commit");
    match line.split_once(" : ") {
        Some((left, _)) if op == "for" => format!("{left} {{"),
        Some((left, _)) if op.starts_with("ttg.") && !op.starts_with("ttg.amd.") && !named => left.to_owned(),
        _ => line.to_owned(),
    }
}

/// The name of an operation, without what it has in angle brackets.
pub(crate) fn op(line: &str) -> &str {
    let line = line.trim();
    let rest = if line.starts_with('%') { line.split_once(" = ").map_or(line, |(_, rest)| rest) } else { line };
    rest.split([' ', '<']).next().unwrap_or_default()
}

/// The values that a line defines.
pub(crate) fn results(line: &str) -> Vec<String> {
    let line = line.trim();
    if !line.starts_with('%') {
        return Vec::new();
    }
    let Some((left, _)) = line.split_once(" = ") else { return Vec::new() };
    left.split(',').map(|n| n.trim().to_owned()).filter(|n| n.starts_with('%')).collect()
}

/// The values that a line uses.
pub(crate) fn uses(line: &str) -> Vec<String> {
    let line = line.trim();
    let right = if line.starts_with('%') { line.split_once(" = ").map_or("", |(_, r)| r) } else { line };
    right
        .split(|c: char| !(c.is_alphanumeric() || c == '%' || c == '_' || c == '.'))
        .filter(|w| w.starts_with('%'))
        .map(str::to_owned)
        .collect()
}

pub(crate) fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A line in which a value has another name.
pub(crate) fn renamed(line: &str, old: &str, new: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(old) {
        let after = rest[at + old.len()..].chars().next();
        let whole = !after.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.');
        out.push_str(&rest[..at]);
        out.push_str(if whole { new } else { old });
        rest = &rest[at + old.len()..];
    }
    out + rest
}

/// The number of an attribute of a line.
pub(crate) fn attribute(line: &str, name: &str) -> Option<i64> {
    let at = line.find(&format!("{name} = "))? + name.len() + 3;
    let digits: String = line[at..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// A line with another number for an attribute.
pub(crate) fn with_attribute(line: &str, name: &str, value: i64) -> String {
    let old = attribute(line, name).map_or_else(String::new, |v| v.to_string());
    line.replacen(&format!("{name} = {old}"), &format!("{name} = {value}"), 1)
}

/// The name of the role whose lines follow.
fn role_head(line: &str) -> Option<String> {
    let rest = line.strip_prefix("    ")?;
    let name = rest.strip_prefix("ttg.roles ").or_else(|| rest.strip_prefix("} "))?.strip_suffix(" {")?;
    (name != "else").then(|| name.to_owned())
}

//! A planted defect: one line of a file that is changed as a programmer might change it by mistake, and the tests that concern it.
//!
//! Defects are text in `xtask/defects/*.txt`, one file for each area. In such a file, lines that begin with `#` are comments, and
//! blank lines separate the defects. A defect is:
//!
//! ```text
//! defect fences: a fence is only looked for behind the first wait
//! file titan-core/src/pipeline/fence/place.rs
//! tests titan-core filetests, titan-core fences, titan-nv
//!      for wait in waits {
//! -        if fenced(wait) {
//! +        if fenced(waits[0]) {
//! ```
//!
//! * `defect` is its name, unique among all files: what is wrong, in plain words.
//! * `file` is the path from the root of the repository.
//! * `tests` are the test programs that concern it, each as `PACKAGE PROGRAM`, as `cargo xtask test -p PACKAGE --test PROGRAM` takes
//!   them, or `PACKAGE` for all programs of a package. Cheap ones come first: the first that fails ends the trial.
//! * Then lines as in a diff: `-` is removed, `+` is added, a space stands before lines that stay. Behind this character, a line is
//!   exactly as in the file. At most one line is removed and at most one added; lines that stay make the place unique.
//!
//! Deliberately absent: numbers of lines. They would change with every edit, and the text must occur exactly once anyway.

/// The program of a package, or all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tests {
    pub(crate) package: String,
    pub(crate) program: Option<String>,
}

impl std::fmt::Display for Tests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.program {
            Some(program) => write!(f, "{} {program}", self.package),
            None => write!(f, "{}", self.package),
        }
    }
}

/// A change of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Defect {
    pub(crate) name: String,
    /// The name of the file that it is written in, without its extension.
    pub(crate) area: String,
    pub(crate) file: String,
    pub(crate) tests: Vec<Tests>,
    old: Vec<String>,
    new: Vec<String>,
}

/// The defects of a file. An error begins with the number of the line.
pub(crate) fn parse(area: &str, text: &str) -> Result<Vec<Defect>, String> {
    let mut defects = Vec::new();
    let mut draft: Option<Draft> = None;
    for (index, line) in text.lines().enumerate() {
        let at = |why: String| format!("line {}: {why}", index + 1);
        match (line.chars().next(), line.split_once(' ')) {
            (None, _) => defects.extend(draft.take().map(|d| d.finish(area)).transpose().map_err(at)?),
            (Some('#'), _) => {}
            (Some('-' | '+' | ' '), _) => draft.as_mut().ok_or(at(BEFORE.into()))?.body(line).map_err(at)?,
            (_, Some(("defect", name))) => {
                defects.extend(draft.take().map(|d| d.finish(area)).transpose().map_err(at)?);
                draft = Some(Draft { name: name.trim().to_owned(), ..Draft::default() });
            }
            (_, Some((key, value))) => draft.as_mut().ok_or(at(BEFORE.into()))?.field(key, value).map_err(at)?,
            (Some(_), None) => return Err(at(format!("`{line}` has no value"))),
        }
    }
    defects.extend(draft.map(|d| d.finish(area)).transpose().map_err(|why| format!("last line: {why}"))?);
    Ok(defects)
}

const BEFORE: &str = "a defect begins with a line `defect NAME`";

/// A defect that is being read.
#[derive(Default)]
struct Draft {
    name: String,
    file: String,
    tests: Vec<Tests>,
    old: Vec<String>,
    new: Vec<String>,
    removed: usize,
    added: usize,
}

impl Draft {
    fn field(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "file" if self.file.is_empty() => value.trim().clone_into(&mut self.file),
            "tests" if self.tests.is_empty() => {
                self.tests = value.split(',').map(tests).collect::<Result<_, _>>()?;
            }
            "file" | "tests" => return Err(format!("`{key}` is given twice")),
            _ => return Err(format!("`{key}` is not one of `defect`, `file`, `tests`")),
        }
        Ok(())
    }

    fn body(&mut self, line: &str) -> Result<(), String> {
        let (mark, text) = line.split_at(1);
        if mark != "+" {
            self.old.push(text.to_owned());
        }
        if mark != "-" {
            self.new.push(text.to_owned());
        }
        self.removed += usize::from(mark == "-");
        self.added += usize::from(mark == "+");
        if self.removed > 1 || self.added > 1 {
            return Err("a defect changes one line".into());
        }
        Ok(())
    }

    fn finish(self, area: &str) -> Result<Defect, String> {
        let Draft { name, file, tests, old, new, .. } = self;
        let missing = [("a name", name.is_empty()), ("`file`", file.is_empty()), ("`tests`", tests.is_empty())];
        if let Some((what, _)) = missing.iter().find(|(_, is_missing)| *is_missing) {
            return Err(format!("the defect `{name}` before this line has no {what}"));
        }
        if old.is_empty() || old == new {
            return Err(format!("the defect `{name}` before this line changes nothing"));
        }
        Ok(Defect { name, area: area.to_owned(), file, tests, old, new })
    }
}

fn tests(text: &str) -> Result<Tests, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (package, program) = match words[..] {
        [package] => (package, None),
        [package, program] => (package, Some(program.to_owned())),
        _ => return Err(format!("`{}` is not `PACKAGE` or `PACKAGE PROGRAM`", text.trim())),
    };
    Ok(Tests { package: package.to_owned(), program })
}

impl Defect {
    /// The text of the file with the defect. The old lines must occur exactly once.
    pub(crate) fn plant(&self, text: &str) -> Result<String, String> {
        let lines: Vec<&str> = text.lines().collect();
        let places: Vec<usize> = lines
            .windows(self.old.len())
            .enumerate()
            .filter_map(|(at, window)| window.iter().zip(&self.old).all(|(a, b)| *a == b).then_some(at))
            .collect();
        let [at] = places[..] else {
            let times =
                if places.is_empty() { "do not occur".to_owned() } else { format!("occur {} times", places.len()) };
            let old = self.old.join("\n");
            return Err(format!("`{}`: these lines {times} in {}:\n{old}", self.name, self.file));
        };
        let mut changed: Vec<&str> = lines[..at].to_vec();
        changed.extend(self.new.iter().map(String::as_str));
        changed.extend(&lines[at + self.old.len()..]);
        let end = if text.ends_with('\n') { "\n" } else { "" };
        Ok(changed.join("\n") + end)
    }

    /// Whether it is asked for: by the name of its area or by a part of its own.
    pub(crate) fn is_asked_for(&self, names: &[String]) -> bool {
        names.is_empty() || names.iter().any(|name| self.area == *name || self.name.contains(name.as_str()))
    }
}

/// An error for names that two defects have.
pub(crate) fn expect_unique(defects: &[Defect]) -> Result<(), String> {
    let mut names: Vec<&str> = defects.iter().map(|defect| defect.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two defects are called `{}`", pair[0])),
        None => Ok(()),
    }
}

//! What became of a planted defect, read from what `cargo xtask test` prints.
//!
//! Deliberately absent: running anything.

/// What became of a defect in one depth of the tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Something failed: the test program and the first test of it, or what did not build or did not end.
    Found(String),
    /// All tests passed.
    Survived,
    /// The package with the defect does not compile: nobody would send that, and it shows nothing.
    NotBuilt,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Found(by) => write!(f, "found: {by}"),
            Verdict::Survived => write!(f, "survived"),
            Verdict::NotBuilt => write!(f, "does not compile"),
        }
    }
}

impl Verdict {
    /// Reads what [`Display`](std::fmt::Display) writes.
    pub(crate) fn parse(text: &str) -> Option<Verdict> {
        match text {
            "survived" => Some(Verdict::Survived),
            "does not compile" => Some(Verdict::NotBuilt),
            _ => text.strip_prefix("found: ").map(|by| Verdict::Found(by.to_owned())),
        }
    }
}

/// Reads the output of a run line by line, as it comes.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The package that has the defect, as cargo calls it.
    package: String,
    /// Whether the tests are built and run now.
    pub(crate) is_running: bool,
    /// The first test that failed in the program whose output is printed at the moment.
    failing: Option<String>,
    /// The programs that ran when nothing had ended for some time.
    waiting: Option<String>,
    verdict: Option<Verdict>,
}

impl Reader {
    pub(crate) fn new(package: &str) -> Reader {
        Reader { package: package.to_owned(), ..Reader::default() }
    }

    /// Takes a line; whether it decides what became of the defect, so that the rest need not be waited for.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        if !self.is_running {
            self.is_running = line.starts_with("built in ");
            if let Some(what) = not_compiled(line) {
                let own = [format!("`{}` (lib)", self.package), format!("`{}` (bin", self.package)];
                self.verdict.get_or_insert(if own.iter().any(|own| what.starts_with(own)) {
                    Verdict::NotBuilt
                } else {
                    Verdict::Found(format!("{} does not compile", what.replace('`', "")))
                });
            }
        } else if let Some((success, label)) = ended(line) {
            if !success {
                let test = self.failing.take().map_or(String::new(), |test| format!(" {test}"));
                self.verdict.get_or_insert(Verdict::Found(format!("{label}{test}")));
            }
            self.failing = None;
        } else if let Some(list) = line.trim_start().strip_prefix("still running: ") {
            self.waiting = Some(list.to_owned());
        } else if let Some(test) = failed(line) {
            self.failing.get_or_insert(test.to_owned());
        }
        self.verdict.is_some()
    }

    /// Whether a line has decided.
    pub(crate) fn is_decided(&self) -> bool {
        self.verdict.is_some()
    }

    /// The verdict at the end, if the run ended by itself: `success` is whether it said that all passed.
    pub(crate) fn end(self, success: bool) -> Result<Verdict, String> {
        match (self.verdict, success) {
            (Some(verdict), _) => Ok(verdict),
            (None, true) if self.is_running => Ok(Verdict::Survived),
            (None, _) => Err("the tests ended without a result".to_owned()),
        }
    }

    /// The verdict if the run did not end within its time: what did not end, and the limit in minutes.
    pub(crate) fn hangs(self, minutes: u64) -> Verdict {
        let what = match (self.is_running, self.waiting) {
            (true, Some(list)) => list.split(" (").next().unwrap_or_default().to_owned(),
            (true, None) => "the tests".to_owned(),
            (false, _) => "the build of the tests".to_owned(),
        };
        self.verdict.unwrap_or(Verdict::Found(format!("{what}: no end within {minutes} minutes")))
    }
}

/// What did not compile, as cargo says: the package and, in parentheses, the target.
fn not_compiled(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("error: could not compile ")?;
    Some(rest.find(')').map_or(rest, |end| &rest[..=end]))
}

/// How a test program ended: `[  1/3] FAILED    1.2 s  titan-core pipes: 3 passed, 1 failed`.
fn ended(line: &str) -> Option<(bool, &str)> {
    let (_, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let success = rest.starts_with("ok ");
    let (_, label) = rest.strip_prefix("ok ").or(rest.strip_prefix("FAILED "))?.split_once(" s  ")?;
    let (label, counts) = label.rsplit_once(": ")?;
    counts.contains(" passed").then_some((success, label))
}

/// The test that failed: `test programs::all_agree ... FAILED`, or, if something was printed in between, the heading of its output,
/// `---- programs::all_agree stdout ----`.
fn failed(line: &str) -> Option<&str> {
    let summary = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"));
    let heading = || line.strip_prefix("---- ")?.strip_suffix(" stdout ----");
    summary.or_else(heading).map(|test| test.trim_end_matches(" - should panic"))
}

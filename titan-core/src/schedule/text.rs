//! The text form of graphs and of schedules: one line for each item, words separated by spaces, comments after `;`.
//!
//! ```text
//! graph gemm                                   ; or: graph gemm ii 256
//! unit tma
//! unit tensor
//! op load unit tma 96 latency 556 weight 32
//! op mma unit tensor 256 latency 559
//! edge data load -> mma
//! edge carried mma -> mma latency 256 distance 1
//! ```
//!
//! An operation holds its unit for the number of cycles that follows. Latency, weight and distance are 0 if they are not written; an
//! edge has the latency of its first operation. A schedule is:
//!
//! ```text
//! schedule gemm ii 256 stages 3 live 96
//! op load stage 0 cycle 0 order 0
//! op mma stage 2 cycle 556 order 1
//! ```
//!
//! Both readers report everything that is wrong, each with its line and column, and never panic. What they accept prints back to a
//! text that reads as the same.
//!
//! Deliberately absent: what the numbers mean, which `graph` and `check` know.

use super::graph::{Draft, DraftEdge, DraftOp, Field, Graph, Kind, Site};
use super::placed::{Entry, Schedule};
use crate::collections::SortedMap;
use crate::diag::{Code, Diagnostic};
use std::fmt::Write as _;

/// A place in a text: line and column count from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// The places of what a text contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(SortedMap<Site, Place>);

impl Places {
    /// The place of a site, or that of the item to which it belongs, or the beginning.
    #[must_use]
    pub fn of(&self, site: Site) -> Place {
        let item = match site {
            Site::Op(i, _) => Site::Op(i, Field::Name),
            Site::Edge(i, _) => Site::Edge(i, Field::From),
            Site::Whole | Site::Unit(_) | Site::Interval | Site::Stages | Site::Live => Site::Whole,
        };
        let found = [site, item, Site::Whole].iter().find_map(|site| self.0.get(site).copied());
        found.unwrap_or(Place { line: 1, column: 1 })
    }
}

/// The errors of a text.
pub type Errors = Vec<Diagnostic<Place>>;

/// The valid graph of a text.
///
/// # Errors
///
/// T1001 if it is not a graph, otherwise what [`Draft::check`] reports.
pub fn graph(text: &str) -> Result<Graph, Errors> {
    let (draft, places) = draft(text)?;
    draft.check().map_err(|errors| errors.into_iter().map(|error| error.map_site(|site| places.of(site))).collect())
}

/// The graph of a text, valid or not, and its places.
///
/// # Errors
///
/// T1001 if the text is not a graph.
pub fn draft(text: &str) -> Result<(Draft, Places), Errors> {
    let mut reader = Reader::default();
    let mut draft = Draft::default();
    for mut line in lines(text) {
        let Some(first) = line.next() else { continue };
        let is_begun = reader.places.0.contains_key(&Site::Whole);
        let done = match first.text {
            "graph" if !is_begun => reader.graph(first, &mut line, &mut draft),
            "unit" if is_begun => reader.unit(&mut line, &mut draft),
            "op" if is_begun => reader.op(&mut line, &mut draft),
            "edge" if is_begun => reader.edge(&mut line, &mut draft),
            _ if is_begun => Err(first.unexpected("`unit`, `op` or `edge`")),
            _ => Err(first.unexpected("`graph`")),
        };
        reader.errors.extend(done.and_then(|()| line.end()).err());
    }
    reader.finish(text, "graph").map(|places| (draft, places))
}

/// The schedule of a text, legal or not, and its places.
///
/// # Errors
///
/// T1001 if the text is not a schedule.
pub fn schedule(text: &str) -> Result<(Schedule, Places), Errors> {
    let mut reader = Reader::default();
    let mut schedule = Schedule::default();
    for mut line in lines(text) {
        let Some(first) = line.next() else { continue };
        let is_begun = reader.places.0.contains_key(&Site::Whole);
        let done = match first.text {
            "schedule" if !is_begun => reader.schedule(first, &mut line, &mut schedule),
            "op" if is_begun => reader.entry(&mut line, &mut schedule),
            _ if is_begun => Err(first.unexpected("`op`")),
            _ => Err(first.unexpected("`schedule`")),
        };
        reader.errors.extend(done.and_then(|()| line.end()).err());
    }
    reader.finish(text, "schedule").map(|places| (schedule, places))
}

/// A word of a text.
#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    place: Place,
}

impl Word<'_> {
    fn unexpected(self, expected: &str) -> Diagnostic<Place> {
        let title = format!("expected {expected}, found `{}`", self.text.escape_debug());
        Diagnostic::new(Code::ScheduleText, self.place, title).help("docs/scheduling.md describes the text form")
    }
}

/// The words of a line that are not read yet.
struct Line<'t> {
    words: std::vec::IntoIter<Word<'t>>,
    end: Place,
}

/// The lines of a text, without comments.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    (1..).zip(text.lines()).map(|(line, text)| {
        let text = text.split(';').next().unwrap_or_default();
        let mut words = Vec::new();
        let mut column = 1;
        let mut word: Option<(usize, u32)> = None;
        for (i, c) in text.char_indices().chain([(text.len(), ' ')]) {
            match word {
                Some((start, column)) if c.is_whitespace() => {
                    words.push(Word { text: &text[start..i], place: Place { line, column } });
                    word = None;
                }
                None if !c.is_whitespace() => word = Some((i, column)),
                Some(_) | None => {}
            }
            column += 1;
        }
        Line { words: words.into_iter(), end: Place { line, column: column.max(2) - 1 } }
    })
}

impl<'t> Line<'t> {
    fn next(&mut self) -> Option<Word<'t>> {
        self.words.next()
    }

    fn need(&mut self, expected: &str) -> Result<Word<'t>, Diagnostic<Place>> {
        let end = self.end;
        self.words.next().ok_or_else(|| {
            let title = format!("expected {expected}, found the end of the line");
            Diagnostic::new(Code::ScheduleText, end, title).help("docs/scheduling.md describes the text form")
        })
    }

    /// A name: letters, digits, `_` and `.`, not beginning with a digit.
    fn name(&mut self, what: &str) -> Result<Word<'t>, Diagnostic<Place>> {
        let word = self.need(what)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let is_word = word.text.chars().all(is_name) && !word.text.starts_with(|c: char| c.is_ascii_digit());
        if is_word { Ok(word) } else { Err(word.unexpected(what)) }
    }

    fn number(&mut self) -> Result<(i64, Place), Diagnostic<Place>> {
        let word = self.need("a number")?;
        let digits = word.text.strip_prefix('-').unwrap_or(word.text);
        // A sign of plus would not print back.
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit());
        let value = word.text.parse().ok().filter(|_| is_number);
        value.map(|value| (value, word.place)).ok_or_else(|| word.unexpected("a number of at most 63 bits"))
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), Diagnostic<Place>> {
        let expected = format!("`{keyword}`");
        let word = self.need(&expected)?;
        if word.text == keyword { Ok(()) } else { Err(word.unexpected(&expected)) }
    }

    /// Whether this keyword comes next; it is read then.
    fn has(&mut self, keyword: &str) -> bool {
        let is_next = self.words.as_slice().first().is_some_and(|word| word.text == keyword);
        is_next && self.words.next().is_some()
    }

    fn end(mut self) -> Result<(), Diagnostic<Place>> {
        self.words.next().map_or(Ok(()), |word| Err(word.unexpected("the end of the line")))
    }
}

/// What has been read.
#[derive(Default)]
struct Reader {
    places: Places,
    errors: Errors,
}

type Done = Result<(), Diagnostic<Place>>;

impl Reader {
    fn finish(mut self, text: &str, what: &str) -> Result<Places, Errors> {
        if self.errors.is_empty() && !self.places.0.contains_key(&Site::Whole) {
            let line = u32::try_from(text.lines().count()).unwrap_or(u32::MAX).max(1);
            let title = format!("the text contains no {what}");
            let error = Diagnostic::new(Code::ScheduleText, Place { line, column: 1 }, title);
            self.errors.push(error.help(format!("begin with `{what} NAME`")));
        }
        if self.errors.is_empty() { Ok(self.places) } else { Err(self.errors) }
    }

    fn graph(&mut self, first: Word<'_>, line: &mut Line<'_>, draft: &mut Draft) -> Done {
        // Also if the rest of the line is wrong: the lines that follow are those of a graph.
        self.places.0.insert(Site::Whole, first.place);
        line.name("the name of the graph")?.text.clone_into(&mut draft.name);
        if line.has("ii") {
            let (ii, place) = line.number()?;
            draft.ii = Some(ii);
            self.places.0.insert(Site::Interval, place);
        }
        Ok(())
    }

    fn unit(&mut self, line: &mut Line<'_>, draft: &mut Draft) -> Done {
        let word = line.name("the name of a unit")?;
        self.places.0.insert(Site::Unit(draft.units.len()), word.place);
        draft.units.push(word.text.to_owned());
        Ok(())
    }

    fn op(&mut self, line: &mut Line<'_>, draft: &mut Draft) -> Done {
        let index = draft.ops.len();
        let mut mark = |field, place| self.places.0.insert(Site::Op(index, field), place);
        let word = line.name("the name of an operation")?;
        mark(Field::Name, word.place);
        let mut op = DraftOp { name: word.text.to_owned(), ..DraftOp::default() };
        if line.has("unit") {
            let unit = line.name("the name of a unit")?;
            mark(Field::Unit, unit.place);
            let (cycles, place) = line.number()?;
            mark(Field::Occupancy, place);
            op.unit = Some((unit.text.to_owned(), cycles));
        }
        if line.has("latency") {
            let (latency, place) = line.number()?;
            mark(Field::Latency, place);
            op.latency = latency;
        }
        if line.has("weight") {
            let (weight, place) = line.number()?;
            mark(Field::Weight, place);
            op.weight = weight;
        }
        draft.ops.push(op);
        Ok(())
    }

    fn edge(&mut self, line: &mut Line<'_>, draft: &mut Draft) -> Done {
        let index = draft.edges.len();
        let mut mark = |field, place| self.places.0.insert(Site::Edge(index, field), place);
        let kinds = "`data`, `carried`, `ring` or `memory`";
        let word = line.need(kinds)?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == word.text).ok_or_else(|| word.unexpected(kinds))?;
        let from = line.name("the name of an operation")?;
        mark(Field::From, from.place);
        line.keyword("->")?;
        let to = line.name("the name of an operation")?;
        mark(Field::To, to.place);
        let mut edge =
            DraftEdge { kind, from: from.text.to_owned(), to: to.text.to_owned(), latency: None, distance: 0 };
        if line.has("latency") {
            let (latency, place) = line.number()?;
            mark(Field::Latency, place);
            edge.latency = Some(latency);
        }
        if line.has("distance") {
            let (distance, place) = line.number()?;
            mark(Field::Distance, place);
            edge.distance = distance;
        }
        draft.edges.push(edge);
        Ok(())
    }

    fn schedule(&mut self, first: Word<'_>, line: &mut Line<'_>, schedule: &mut Schedule) -> Done {
        self.places.0.insert(Site::Whole, first.place);
        line.name("the name of the graph")?.text.clone_into(&mut schedule.name);
        let sites = [("ii", Site::Interval), ("stages", Site::Stages), ("live", Site::Live)];
        for ((keyword, site), value) in
            sites.into_iter().zip([&mut schedule.ii, &mut schedule.stages, &mut schedule.live])
        {
            line.keyword(keyword)?;
            let (number, place) = line.number()?;
            self.places.0.insert(site, place);
            *value = number;
        }
        Ok(())
    }

    fn entry(&mut self, line: &mut Line<'_>, schedule: &mut Schedule) -> Done {
        let index = schedule.ops.len();
        let word = line.name("the name of an operation")?;
        self.places.0.insert(Site::Op(index, Field::Name), word.place);
        let mut entry = Entry { name: word.text.to_owned(), stage: 0, cycle: 0, order: 0 };
        let fields = [("stage", Field::Stage), ("cycle", Field::Cycle), ("order", Field::Order)];
        for ((keyword, field), value) in fields.into_iter().zip([&mut entry.stage, &mut entry.cycle, &mut entry.order])
        {
            line.keyword(keyword)?;
            let (number, place) = line.number()?;
            self.places.0.insert(Site::Op(index, field), place);
            *value = number;
        }
        schedule.ops.push(entry);
        Ok(())
    }
}

/// The text of a graph.
#[must_use]
pub fn print(draft: &Draft) -> String {
    let mut out = format!("graph {}", draft.name);
    let mut put = |text: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = out.write_fmt(text);
    };
    draft.ii.iter().for_each(|ii| put(format_args!(" ii {ii}")));
    put(format_args!("\n"));
    draft.units.iter().for_each(|unit| put(format_args!("unit {unit}\n")));
    for op in &draft.ops {
        put(format_args!("op {}", op.name));
        op.unit.iter().for_each(|(unit, cycles)| put(format_args!(" unit {unit} {cycles}")));
        for (keyword, value) in [("latency", op.latency), ("weight", op.weight)] {
            if value != 0 {
                put(format_args!(" {keyword} {value}"));
            }
        }
        put(format_args!("\n"));
    }
    for edge in &draft.edges {
        put(format_args!("edge {} {} -> {}", edge.kind.name(), edge.from, edge.to));
        edge.latency.iter().for_each(|latency| put(format_args!(" latency {latency}")));
        if edge.distance != 0 {
            put(format_args!(" distance {}", edge.distance));
        }
        put(format_args!("\n"));
    }
    out
}

/// The text of a schedule.
#[must_use]
pub fn print_schedule(schedule: &Schedule) -> String {
    let Schedule { name, ii, stages, live, ops } = schedule;
    let lines = ops.iter().map(|op| {
        let Entry { name, stage, cycle, order } = op;
        format!("op {name} stage {stage} cycle {cycle} order {order}\n")
    });
    format!("schedule {name} ii {ii} stages {stages} live {live}\n") + &lines.collect::<String>()
}

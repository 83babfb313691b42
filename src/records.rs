//! Records of measurements: JSON files to commit, the one format of records of [`bench`](crate::bench) and [`tune`](crate::tune).
//!
//! ```json
//! {
//!   "format": "titan measurements 1",
//!   "records": [
//!     {
//!       "what": "softmax",
//!       "class": "rows of 4096",
//!       "device": "cuda (NVIDIA H200)",
//!       "source": "6c62272e07bb014262b821756295c58d",
//!       "clock": "device",
//!       "rounds": 20,
//!       "fastest": "softmax::<4, 1024>",
//!       "cases": [
//!         {"name": "softmax::<1, 1024>", "ns": [812.0, 820.1, 824.4, 830.9], "ratio": [1.0000, 1.0000, 1.0000, 1.0000]},
//!         {"name": "softmax::<4, 1024>", "ns": [640.2, 644.8, 650.0, 655.3], "ratio": [0.7756, 0.7844, 0.7881, 0.7921]},
//!         {"name": "softmax::<8, 1024>", "left_out": "element 3 of its result is 0.5 instead of 0.25"}
//!       ]
//!     }
//!   ]
//! }
//! ```
//!
//! A record is found by what was measured, the class and the device; there is one for each. `ns` and `ratio` are least value, lower quartile,
//! median and upper quartile, of the times of a run and of their ratios to the first case. `source` is a fingerprint of the embedded code of
//! all instances, empty for comparisons of other things. Files are sorted, so that the same records are the same text, and a change of
//! one record is a change of its lines.

use crate::bench::{Clock, Comparison, Spread};
use crate::json::{Read, Reader, quoted};
use crate::runtime::Device;
use crate::{Error, Result};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The name and version of the format.
const FORMAT: &str = "titan measurements 1";

/// The help for files that are not of the format.
const DAMAGED: &str = "restore the file from version control, or delete it and measure again";

/// The records of a file or a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    file: Option<PathBuf>,
    /// By what, class and device.
    list: Vec<Record>,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// What was measured: the name of a kernel, or any other one.
    pub what: String,
    /// The class of shapes, in the words of whoever measured.
    pub class: String,
    /// The device, without its number.
    pub device: String,
    /// The fingerprint of the measured code; empty if there is none.
    pub source: String,
    /// The clock that measured.
    pub clock: Clock,
    /// The number of rounds.
    pub rounds: usize,
    /// The name of the case with the least median of ratios.
    pub fastest: String,
    /// The cases, in the order in which they were given.
    pub cases: Vec<RecordedCase>,
}

/// A case of a [`Record`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RecordedCase {
    /// Its name.
    pub name: String,
    /// Its times.
    pub outcome: Outcome,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// It was measured.
    #[non_exhaustive]
    Measured {
        /// Nanoseconds of a run.
        nanoseconds: Spread,
        /// Ratios to the first measured case.
        ratio: Spread,
    },
    /// It was not, for this reason.
    LeftOut(String),
}

impl Record {
    /// A record of a comparison on a device. Cases that were left out are added with [`Record::leaving_out`].
    #[must_use]
    pub fn of(compared: &Comparison, device: &Device, what: impl Into<String>, class: impl Into<String>) -> Record {
        let case = |case: &crate::bench::Case| RecordedCase {
            name: case.name.clone(),
            outcome: Outcome::Measured { nanoseconds: case.seconds.scaled(1e9), ratio: case.ratio },
        };
        let fastest = compared.cases.iter().min_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median));
        Record {
            what: what.into(),
            class: class.into(),
            device: device.type_name(),
            source: String::new(),
            clock: compared.clock,
            rounds: compared.rounds,
            fastest: fastest.map_or_else(String::new, |case| case.name.clone()),
            cases: compared.cases.iter().map(case).collect(),
        }
    }

    /// The same with a case that was not measured, at this place.
    #[must_use]
    pub fn leaving_out(mut self, place: usize, name: impl Into<String>, reason: impl Into<String>) -> Record {
        let case = RecordedCase { name: name.into(), outcome: Outcome::LeftOut(reason.into()) };
        self.cases.insert(place.min(self.cases.len()), case);
        self
    }

    pub(crate) fn with_source(self, source: String) -> Record {
        Record { source, ..self }
    }

    fn key(&self) -> (&str, &str, &str) {
        (&self.what, &self.class, &self.device)
    }

    /// The lines of the record in a file.
    fn write(&self, out: &mut String) -> fmt::Result {
        let Record { what, class, device, source, clock, rounds, fastest, cases } = self;
        writeln!(out, "    {{")?;
        for (name, value) in [("what", what), ("class", class), ("device", device), ("source", source)] {
            writeln!(out, "      \"{name}\": {},", quoted(value))?;
        }
        writeln!(out, "      \"clock\": {},\n      \"rounds\": {rounds},", quoted(clock.name()))?;
        writeln!(out, "      \"fastest\": {},\n      \"cases\": [", quoted(fastest))?;
        for (i, RecordedCase { name, outcome }) in cases.iter().enumerate() {
            write!(out, "        {{\"name\": {}, ", quoted(name))?;
            match outcome {
                Outcome::Measured { nanoseconds: ns, ratio } => {
                    let [a, b, c, d] = ns.all();
                    write!(out, "\"ns\": [{a:.1}, {b:.1}, {c:.1}, {d:.1}], ")?;
                    let [a, b, c, d] = ratio.all();
                    write!(out, "\"ratio\": [{a:.4}, {b:.4}, {c:.4}, {d:.4}]}}")?;
                }
                Outcome::LeftOut(reason) => write!(out, "\"left_out\": {}}}", quoted(reason))?,
            }
            writeln!(out, "{}", if i + 1 < cases.len() { "," } else { "" })?;
        }
        write!(out, "      ]\n    }}")
    }
}

impl fmt::Display for Record {
    /// A table of the cases.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.cases.iter().map(|case| case.name.chars().count()).max().unwrap_or(0);
        write!(f, "{}, {}, on {}, {} rounds by {}", self.what, self.class, self.device, self.rounds, self.clock)?;
        for RecordedCase { name, outcome } in &self.cases {
            let mark = if *name == self.fastest { "*" } else { " " };
            match outcome {
                Outcome::Measured { nanoseconds, ratio } => {
                    write!(f, "\n{mark} {name:width$} {:12.2} us   {ratio}", nanoseconds.median / 1e3)?;
                }
                Outcome::LeftOut(reason) => write!(f, "\n{mark} {name:width$} left out: {reason}")?,
            }
        }
        Ok(())
    }
}

impl Records {
    /// The records of a file; none if there is no such file yet.
    ///
    /// # Errors
    /// If it cannot be read, or is not a file of records (T1121).
    pub fn open(file: impl AsRef<Path>) -> Result<Records> {
        let file = file.as_ref();
        let told = |problem: String, help| Error::Records { file: Some(file.to_owned()), problem, help };
        let text = match std::fs::read(file) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Records { file: Some(file.to_owned()), list: Vec::new() });
            }
            Err(e) => return Err(told(format!("they cannot be read: {e}"), "check the path and its permissions")),
        };
        let list = parse(&text).map_err(|problem| told(problem, DAMAGED))?;
        Ok(Records { file: Some(file.to_owned()), list })
    }

    /// The records of a text, such as `include_str!("tuning.json")`.
    ///
    /// # Errors
    /// If it is not the text of records (T1121).
    pub fn parse(text: &str) -> Result<Records> {
        let list = parse(text.as_bytes()).map_err(|problem| Error::Records { file: None, problem, help: DAMAGED })?;
        Ok(Records { file: None, list })
    }

    /// The records, by what was measured, class and device.
    #[must_use]
    pub fn all(&self) -> &[Record] {
        &self.list
    }

    /// The record with this key.
    #[must_use]
    pub fn get(&self, what: &str, class: &str, device: &Device) -> Option<&Record> {
        let device = device.type_name();
        self.list.iter().find(|record| record.key() == (what, class, &device))
    }

    /// Adds a record, in the place of that with the same key.
    pub fn insert(&mut self, record: Record) {
        match self.list.binary_search_by(|other| other.key().cmp(&record.key())) {
            Ok(at) => self.list[at] = record,
            Err(at) => self.list.insert(at, record),
        }
    }

    /// Writes the file that was opened, completely or not at all.
    ///
    /// # Errors
    /// If the records are of no file, or it cannot be written (T1121).
    pub fn save(&self) -> Result<()> {
        let told = |problem: String, help| Error::Records { file: self.file.clone(), problem, help };
        let Some(file) = &self.file else {
            return Err(told(
                "they are of no file".to_owned(),
                "open a file with `Records::open`, or write `to_string()`",
            ));
        };
        // What could not be read again is not written.
        parse(self.to_string().as_bytes())
            .map_err(|problem| told(problem, "give each case another name, or leave one of them out"))?;
        // Another name for each call, so that threads do not write to one file.
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let mut new = file.clone().into_os_string();
        new.push(format!(".{}.{}.new", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed)));
        let written = std::fs::write(&new, self.to_string()).and_then(|()| std::fs::rename(&new, file));
        written.map_err(|e| {
            // What is left of an attempt; the error is that of the attempt.
            let _ = std::fs::remove_file(&new);
            told(format!("they cannot be written: {e}"), "check the path and its permissions")
        })
    }
}

impl Extend<Record> for Records {
    /// Adds records as [`Records::insert`] does.
    fn extend<I: IntoIterator<Item = Record>>(&mut self, records: I) {
        records.into_iter().for_each(|record| self.insert(record));
    }
}

impl FromIterator<Record> for Records {
    /// Records of no file: of those with one key, the last one.
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Self {
        let mut all = Records::default();
        all.extend(records);
        all
    }
}

impl fmt::Display for Records {
    /// The text of the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = format!("{{\n  \"format\": {},\n  \"records\": [", quoted(FORMAT));
        for (i, record) in self.list.iter().enumerate() {
            out.push_str(if i > 0 { ",\n" } else { "\n" });
            record.write(&mut out)?;
        }
        out.push_str(if self.list.is_empty() { "]\n}\n" } else { "\n  ]\n}\n" });
        f.write_str(&out)
    }
}

/// The records of a text; or what is wrong with it, as a clause.
fn parse(text: &[u8]) -> Read<Vec<Record>> {
    let mut reader = Reader::new(text);
    let (mut format, mut list) = (None, None);
    reader.object(|reader, member| match member.as_str() {
        "format" => once(&mut format, "format", reader.string()?),
        "records" => {
            let mut found = Vec::new();
            reader.array(|reader| {
                found.push(record(reader)?);
                Ok(())
            })?;
            once(&mut list, "records", found)
        }
        _ => Err(unknown(&member)),
    })?;
    reader.end_of("the end of the file")?;
    match format {
        Some(format) if format == FORMAT => {}
        Some(other) => return Err(format!("their format is `{other}`, and this version reads `{FORMAT}`")),
        None => return Err(lacks("the file", "format")),
    }
    let mut list: Vec<Record> = list.ok_or_else(|| lacks("the file", "records"))?;
    list.sort_by(|a, b| a.key().cmp(&b.key()));
    match list.windows(2).find(|pair| pair[0].key() == pair[1].key()) {
        Some(pair) => Err(format!("there are two records of {} for `{}`", named(&pair[0]), pair[0].device)),
        None => Ok(list),
    }
}

/// Stores the value of a member that must occur once.
fn once<T>(place: &mut Option<T>, name: &str, value: T) -> Read<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("the member `{name}` occurs twice")),
    }
}

fn unknown(member: &str) -> String {
    format!("the member `{member}` is not of the format")
}

fn lacks(what: &str, member: &str) -> String {
    format!("{what} lacks the member `{member}`")
}

fn named(record: &Record) -> String {
    format!("`{}`, `{}`", record.what, record.class)
}

fn record(reader: &mut Reader<'_>) -> Read<Record> {
    let (mut what, mut class, mut device, mut source) = (None, None, None, None);
    let (mut clock, mut rounds, mut fastest, mut cases) = (None, None, None, None);
    reader.object(|reader, member| match member.as_str() {
        "what" => once(&mut what, "what", reader.string()?),
        "class" => once(&mut class, "class", reader.string()?),
        "device" => once(&mut device, "device", reader.string()?),
        "source" => once(&mut source, "source", reader.string()?),
        "clock" => once(&mut clock, "clock", reader.string()?),
        "rounds" => once(&mut rounds, "rounds", reader.number()?),
        "fastest" => once(&mut fastest, "fastest", reader.string()?),
        "cases" => {
            let mut found = Vec::new();
            reader.array(|reader| {
                found.push(case(reader)?);
                Ok(())
            })?;
            once(&mut cases, "cases", found)
        }
        _ => Err(unknown(&member)),
    })?;
    let of = |member: &'static str| move || lacks("a record", member);
    let clock = clock.ok_or_else(of("clock"))?;
    let record = Record {
        what: what.ok_or_else(of("what"))?,
        class: class.ok_or_else(of("class"))?,
        device: device.ok_or_else(of("device"))?,
        source: source.ok_or_else(of("source"))?,
        clock: [Clock::Device, Clock::Host]
            .into_iter()
            .find(|c| c.name() == clock)
            .ok_or_else(|| format!("`{clock}` is no clock"))?,
        rounds: rounds.ok_or_else(of("rounds"))?,
        fastest: fastest.ok_or_else(of("fastest"))?,
        cases: cases.ok_or_else(of("cases"))?,
    };
    agrees(&record).map(|()| record)
}

/// Rejects a record that contradicts itself.
fn agrees(record: &Record) -> Read<()> {
    let Record { fastest, cases, .. } = record;
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("the record of {} has the case `{}` twice", named(record), twice[0]));
    }
    let median = |case: &RecordedCase| match &case.outcome {
        Outcome::Measured { ratio, .. } => Some(ratio.median),
        Outcome::LeftOut(_) => None,
    };
    let own = cases.iter().find(|case| case.name == *fastest).and_then(median);
    let Some(own) = own else {
        return Err(format!("the record of {} has no times of its fastest case, `{fastest}`", named(record)));
    };
    match cases.iter().find(|case| median(case).is_some_and(|other| other < own)) {
        Some(faster) => Err(format!(
            "in the record of {}, `{}` has a smaller ratio than the fastest case, `{fastest}`",
            named(record),
            faster.name
        )),
        None => Ok(()),
    }
}

fn case(reader: &mut Reader<'_>) -> Read<RecordedCase> {
    let (mut name, mut ns, mut ratio, mut left_out) = (None, None, None, None);
    reader.object(|reader, member| match member.as_str() {
        "name" => once(&mut name, "name", reader.string()?),
        "ns" => once(&mut ns, "ns", spread(reader)?),
        "ratio" => once(&mut ratio, "ratio", spread(reader)?),
        "left_out" => once(&mut left_out, "left_out", reader.string()?),
        _ => Err(unknown(&member)),
    })?;
    let name = name.ok_or_else(|| lacks("a case", "name"))?;
    let outcome = match (ns, ratio, left_out) {
        (Some(nanoseconds), Some(ratio), None) => Outcome::Measured { nanoseconds, ratio },
        (None, None, Some(reason)) => Outcome::LeftOut(reason),
        (Some(_) | None, Some(_) | None, Some(_) | None) => {
            return Err(format!("case `{name}` must have `ns` and `ratio`, or else `left_out`"));
        }
    };
    Ok(RecordedCase { name, outcome })
}

/// Four numbers in order, none of them negative.
fn spread(reader: &mut Reader<'_>) -> Read<Spread> {
    let mut numbers = Vec::new();
    reader.array(|reader| {
        numbers.push(reader.float()?);
        Ok(())
    })?;
    let [least, lower, median, upper] = numbers[..] else {
        return Err(format!("times and ratios are four numbers, not {}", numbers.len()));
    };
    if least < 0.0 || !numbers.is_sorted() {
        return Err("times and ratios are four numbers in ascending order, none below 0".to_owned());
    }
    Ok(Spread { least, lower, median, upper })
}

//! The layers after the verifier: the model checker, which tries every order, and the sanitizer, which looks at some runs.

use crate::args::make;
use crate::kinds::{Fate, Kind, all};
use crate::sources::{self, Level, Source};
use crate::text::Text;
use crate::verifier::{chosen, mutants};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use titan_core::launch::BindError;
use titan_core::verify::{WellFormed, verify, well_formed};
use titan_sim::engine::Completion;
use titan_sim::sim::{self, Limits, Options, Verdict};

/// Extents and scalars: fewer tiles than slots, more of them, one, none, and a count below zero; last an extent that is odd, and
/// below the scalars.
const SIZES: [(i64, i64); 6] = [(32, 3), (48, 6), (16, 1), (16, 0), (16, -1), (3, 6)];

/// What the layers say of the mutants of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) mutants: usize,
    pub(crate) refused: usize,
    pub(crate) tried: usize,
    pub(crate) ill_formed: usize,
    pub(crate) explored: usize,
    pub(crate) sanitized: usize,
    pub(crate) missed: Vec<String>,
}

/// How many mutants of a kind run in the quick depth, if they are wrong; of others one does.
const OF_A_KIND: usize = 2;

/// How many states of a program that is wrong are looked at, until one shows it.
const STATES: u64 = 30_000;

/// How many states of a program that is right are looked at. Nothing may be found in them; most such programs have fewer.
const STATES_OF_RIGHT: u64 = 4_000;

/// The sizes with which a mutant runs that is right: in the quick depth two of them, in turn.
fn sizes_of_right(number: usize) -> Vec<(i64, i64)> {
    let is_meant = |size: usize| test_depth::is_full() || size % 3 == number % 3;
    SIZES.into_iter().enumerate().filter(|(size, _)| is_meant(*size)).map(|(_, size)| size).collect()
}

/// The largest constant that an extent exceeds.
const LARGEST_PLACE: i64 = 1024;

/// The sizes with which a mutant runs that is wrong. If it has constants that are no place in tensors of the other sizes, one is added in
/// whose tensors they are.
fn sizes_of_wrong(mutant: &Text) -> Vec<(i64, i64)> {
    let constant = |line: &String| line.split_once(" = const ")?.1.strip_suffix(" : i32")?.parse().ok();
    let largest = mutant.0.iter().filter_map(constant).filter(|place| *place <= LARGEST_PLACE).max();
    let reached = SIZES.iter().map(|(extent, _)| *extent).max();
    let further = largest.filter(|place| Some(*place) >= reached).map(|place| (place + 16, 3));
    SIZES.into_iter().chain(further).collect()
}

/// Whether something is wrong in some order, for some sizes.
fn explored(kernel: &WellFormed, sizes: &[(i64, i64)], max_states: u64) -> Result<Option<sim::Finding>, String> {
    let mut bound = None;
    for &(extent, scalar) in sizes {
        let args = make(&kernel.sig, extent, scalar);
        match sim::explore(kernel, &args, None, &Limits { max_states, ..Limits::default() }) {
            Ok(Verdict::Finding(f, _)) if f.kind == sim::Kind::NotModelled => bound = Some(f.message),
            Ok(Verdict::Finding(f, _)) if f.kind != sim::Kind::Trap => return Ok(Some(*f)),
            Ok(Verdict::Bound(b, _)) => bound = Some(b),
            _ => {}
        }
    }
    bound.map_or(Ok(None), Err)
}

/// What one of some runs shows, if any does.
fn sanitized(kernel: &WellFormed, sizes: &[(i64, i64)]) -> Option<sim::Finding> {
    let shown = |(extent, scalar): &(i64, i64), seed: u64| {
        let completion = match seed {
            0 => Completion::Late,
            1 => Completion::Early,
            _ => Completion::Seeded(seed),
        };
        // What is wrong with the order of accesses shows without their data, too.
        let data = test_depth::is_full();
        let seed = (seed > 1).then_some(seed);
        let options = Options { completion, seed, max_steps: 50_000, data, ..Options::default() };
        let mut args = make(&kernel.sig, *extent, *scalar);
        let report = sim::run(kernel, &mut args, None, &options);
        let wrong = |f: &sim::Finding| !matches!(f.kind, sim::Kind::Trap | sim::Kind::Steps | sim::Kind::NotModelled);
        report.ok()?.findings.into_iter().find(wrong)
    };
    sizes.iter().find_map(|size| (0..8).find_map(|seed| shown(size, seed)))
}

/// A source that can run, with marks on what never does.
struct Running<'a> {
    source: &'a Source,
    text: Text,
}

/// Raw stores beside other accesses of the same tensor: which bytes they write is unspecified, and so not modelled.
const UNSAID: [&str; 3] = [
    "barrier_fence_before_a_store_outside@passes",
    "barrier_output_read_under_a_store@passes",
    "barrier_output_written_under_a_store@passes",
];

/// The sources that can run. What an opaque call computes and leaves in memory is not known, so no run is right or wrong: programs
/// with such calls are for the verifier alone, which takes their word for what they touch.
fn running() -> &'static [Running<'static>] {
    static RUNNING: OnceLock<Vec<Running<'static>>> = OnceLock::new();
    RUNNING.get_or_init(|| marked(sources::all()))
}

fn marked(sources: &[Source]) -> Vec<Running<'_>> {
    let known = |s: &&Source| s.text.ops("ttg.region.call").is_empty() && !UNSAID.contains(&s.name.as_str());
    sources.iter().filter(known).map(|source| Running { source, text: source.text.marked(&said(source)) }).collect()
}

/// What the blocks of a source say in runs of all sizes, which every size runs to its end; in the quick depth without the one with most tiles,
/// in which other blocks run only of the loop whose ring has most slots.
fn said(source: &Source) -> Vec<String> {
    let kernel = source.text.speaking().kernel().and_then(|k| well_formed(k).ok());
    let kernel = kernel.unwrap_or_else(|| panic!("{} cannot be observed", source.name));
    let (mut all, mut ran) = (Vec::new(), false);
    let is_meant = |size: &(i64, i64)| test_depth::is_full() || *size != SIZES[1] || source.name == "pipelined D=4";
    for (extent, scalar) in SIZES.into_iter().filter(is_meant) {
        let run = |data| {
            let options = Options { max_steps: 50_000, data, ..Options::default() };
            match sim::run(&kernel, &mut make(&kernel.sig, extent, scalar), None, &options) {
                Ok(report) => Some(report),
                // A launch that the kernel refuses runs nothing.
                Err(BindError::Requirement { .. }) => None,
                Err(e) => panic!("{}: {e:?}", source.name),
            }
        };
        // What is said is the same without data, unless it depends on what was computed.
        let Some(bare) = run(false) else { continue };
        let decides = bare.findings.iter().any(|found| found.kind == sim::Kind::NotModelled);
        ran = true;
        all.extend(if decides { run(true).map(|report| report.printed).unwrap_or_default() } else { bare.printed });
    }
    assert!(ran, "{} runs with no size", source.name);
    all
}

/// Whether this may be wrong with what has such a fate. Of what does no harm, a run tells which rule of tokens it breaks.
fn may_be_found(fate: Fate, found: sim::Kind) -> bool {
    match fate {
        Fate::Wrong => true,
        Fate::Idle => found == sim::Kind::Token,
        Fate::Same => false,
    }
}

/// What the layers say of the mutants of a kind, the `number`-th; in the quick depth, of a few of those that run.
fn row((number, kind): (usize, &Kind), sources: &[Source], running: &[Running<'_>]) -> Row {
    let texts: Vec<(&Source, &Text)> = running.iter().map(|r| (r.source, &r.text)).collect();
    let quick = if kind.fate == Fate::Same { 1 } else { OF_A_KIND };
    let found = chosen((number, kind), &texts, quick);
    let all: Vec<Text> = if test_depth::is_full() {
        sources.iter().flat_map(|s| mutants(kind, s, &s.text)).collect()
    } else {
        let of_its_source = |(mutant, source): &(Text, &Source)| {
            let mutants = mutants(kind, source, &source.text);
            mutants.into_iter().find(|m| m.plain() == mutant.plain())
        };
        found.iter().filter_map(of_its_source).collect()
    };
    let known: BTreeSet<String> = all.iter().map(Text::plain).collect();
    let mut row = Row { mutants: all.len(), ..Row::default() };
    row.refused = all.iter().filter(|m| m.kernel().is_some_and(|k| verify(k).is_err())).count();
    for (mutant, source) in &found {
        let Some(kernel) = mutant.kernel() else { continue };
        row.tried += 1;
        let mut missed = |what: &str| row.missed.push(format!("{}: {what}\n{}", source.name, mutant.0.join("\n")));
        if !known.contains(&mutant.plain()) {
            missed("the verifier has not seen it");
        }
        let Ok(kernel) = well_formed(kernel) else {
            row.ill_formed += 1;
            continue;
        };
        let (states, sizes) = match kind.fate {
            Fate::Same => (STATES_OF_RIGHT, sizes_of_right(number)),
            Fate::Wrong | Fate::Idle => (STATES, sizes_of_wrong(mutant)),
        };
        match explored(&kernel, &sizes, states) {
            Ok(Some(what)) if !may_be_found(kind.fate, what.kind) => missed(&what.to_string()),
            Ok(Some(_)) => row.explored += 1,
            Ok(None) if kind.fate != Fate::Same => missed("the model checker finds nothing"),
            Err(bound) if kind.fate != Fate::Same => missed(&bound),
            // What is right need not be shown to be: the sizes are small enough for most.
            Ok(None) | Err(_) => {}
        }
        match sanitized(&kernel, &sizes) {
            Some(what) if !may_be_found(kind.fate, what.kind) => missed(&format!("in a run: {what}")),
            found => row.sanitized += usize::from(found.is_some()),
        }
    }
    row
}

/// The rows of all kinds, made on all cores.
fn rows() -> Vec<(Kind, Row)> {
    let (sources, running) = (sources::all(), running());
    let (kinds, next) = (all(), AtomicUsize::new(0));
    let work = || {
        let mut made = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(kind) = kinds.get(number) else { return made };
            made.push((kind.name, kind.level, row((number, kind), sources, running)));
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut made: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|t| t.join().expect("a thread that ends")).collect()
    });
    let mut of = |kind: &Kind| {
        made.iter()
            .position(|(name, level, _)| (*name, *level) == (kind.name, kind.level))
            .map(|i| made.swap_remove(i).2)
    };
    kinds.iter().map(|kind| (*kind, of(kind).expect("a row"))).collect()
}

/// The table of `docs/mutations.md`.
fn table(rows: &[(Kind, Row)]) -> String {
    let mut text = header(rows);
    for (level, title) in [(Level::Rings, "Rings and tokens"), (Level::Barriers, "Barriers and groups")] {
        let _ = write!(
            text,
            "\n## {title}\n\n| change | in Rust | mutants | verifier | tried | not well formed | model checker | runs |\n|---|---|---|---|---|---|---|---|\n"
        );
        let mut part: Vec<&(Kind, Row)> = rows.iter().filter(|(k, _)| k.level == level).collect();
        part.sort_by_key(|(k, _)| k.fate as u8);
        let mut last = None;
        for (kind, row) in part {
            if last != Some(kind.fate) {
                let _ = writeln!(text, "| **{}** | | | | | | | |", heading(kind.fate));
                last = Some(kind.fate);
            }
            let surface = if kind.surface { "✓" } else { "" };
            let verdict = |n: usize| if kind.fate == Fate::Same { "passes".to_owned() } else { n.to_string() };
            let ill_formed = if row.ill_formed == 0 { String::new() } else { row.ill_formed.to_string() };
            let (found, runs) = match kind.fate {
                Fate::Wrong | Fate::Idle => (row.explored.to_string(), row.sanitized.to_string()),
                Fate::Same => ("safe".to_owned(), "clean".to_owned()),
            };
            let _ = writeln!(
                text,
                "| {} | {surface} | {} | {} | {} | {ill_formed} | {found} | {runs} |",
                kind.name,
                row.mutants,
                verdict(row.refused),
                row.tried
            );
        }
    }
    text
}

const fn heading(fate: Fate) -> &'static str {
    match fate {
        Fate::Wrong => "wrong on some schedule",
        Fate::Idle => "against the rules of tokens, otherwise harmless",
        Fate::Same => "still correct",
    }
}

/// What came of all mutants: for each fate, how many were tried, are not well formed, the model checker and runs found.
fn sums(rows: &[(Kind, Row)]) -> [[usize; 4]; 3] {
    let mut sums = [[0; 4]; 3];
    for (kind, row) in rows {
        let counts = [row.tried, row.ill_formed, row.explored, row.sanitized];
        sums[kind.fate as usize].iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
    }
    sums
}

fn header(rows: &[(Kind, Row)]) -> String {
    let [[wrong, ill, explored, run], [idle, idle_ill, idle_explored, idle_run], [same, ..]] = sums(rows);
    let (all, meant) = (wrong + idle + same, wrong - ill);
    format!(
        "# Mutations

<!-- Made by `TITAN_BLESS=1 cargo test -p titan-gpu-sim --test mutation`. -->

Every correct pipeline of the tree is changed in every way of this table: the kernels of the filetests, of the corpus of published bugs, of the tests of
the fence pass and of the command, and families of rings with 1 to 4 slots, one and two readers, with and without roles, MMAs that are
waited for and MMAs in flight, parts, poison, stores, copies that run 0 to 3 tiles ahead, rings made from `pipelined` loops and from fused
roles. The expected verdict is part of the definition of a change; changes that would sometimes be harmless are restricted to cases where
they are not.

* *mutants*: the number of different programs that a change produces. *verifier*: how many of them the verifier refuses; it sees all.
* *tried*: how many were given to the layers that execute programs. Excluded are changes in code that is never executed, as in the arm of
  a condition that never holds, and programs with opaque calls, whose effect on memory is unknown.
* *not well formed*: how many of those tried have no defined execution, as when a token crosses from role to role. The two columns that
  follow do not count these.
* *model checker*: in how many it finds an error, in every order, with 0, 1, 3 and 6 tiles, with a count below zero, with an odd extent below the counts, and
  with extents beyond the constants of the program, up to {LARGEST_PLACE}. *runs*: in how many the simulator with its sanitizer finds an error in one of 8
  schedules for each size.
* *in Rust*: whether a kernel in Rust can express the change. Such a kernel is never executed: rustc or the verifier refuses it at the user's line.

A mutant that only breaks the rules of tokens reads and writes the right data. A run reports the rule that is broken, such as a token that
is used twice, and nothing else.

Of {all} mutants that were tried, {wrong} are wrong. Of these, {ill} are not well formed; in the other
{meant}, the model checker finds something in {explored} and runs do in {run}. Of {idle} that only break a rule of tokens, {idle_ill} are not well
formed, the model checker finds {idle_explored} and runs find {idle_run}, each by its rule. In {same} that are still correct, nothing is found.

The model checker and the runs share no code with the verifier.
"
    )
}

/// Whether the page has the rows of a sample, in their order, and no other ones.
fn is_page_of_sample(sample: &str, page: &str) -> bool {
    let [some, all] = [sample, page].map(|text| text.lines().filter(|line| line.starts_with('|')).collect::<Vec<_>>());
    some.len() == all.len() && some.iter().zip(&all).all(|(some, all)| test_depth::is_row_of_sample(some, all))
}

/// What is kept from the layers that run is little, and known.
#[test]
fn few_places_are_never_run() {
    let (sources, running) = (sources::all(), running());
    let kept: Vec<&str> =
        sources.iter().map(|s| s.name.as_str()).filter(|name| running.iter().all(|r| r.source.name != *name)).collect();
    let calls = [
        "calls@calls_that_only_read_and_a_read",
        "calls@asynchronous_by_name",
        "tilelang@calls_that_only_read",
        "barrier_call_may_write@passes",
        "barrier_call_of_other_regions@passes",
        "barrier_call_during_an_mma@passes",
        "barrier_call_before_a_read@passes",
    ];
    let same = |a: &[&str], b: &[&str]| a.iter().collect::<BTreeSet<_>>() == b.iter().collect::<BTreeSet<_>>();
    assert!(same(&kept, &[&calls[..], &UNSAID].concat()), "{kept:?}");
    let marked: Vec<&str> =
        running.iter().filter(|r| r.text != r.source.text).map(|r| r.source.name.as_str()).collect();
    let never = [
        // In turn, what a loop asks for has happened when it asks.
        "barrier_polled_in_a_loop@passes",
        // Conditions that do not hold for any of the sizes.
        "pipe_constants_wrap@passes",
        "pipe_guard_of_a_new_number@passes",
        "pipe_left_early_by_one_role@passes",
        "pipe_returns_with_a_stage_left@passes",
        // In groups of rows, the seven tiles are of the first two columns.
        "pipe_conditions_of_a_place@passes_in_groups",
        // Extents are never 0: the arm without work is not taken.
        "accepted_rings@primed_if_there_is_work",
        // Every copy is poison, or none is.
        "pipe_poison_not_asked@passes",
        "pipe_poison_wrong_arm@passes",
        "skipped D=1",
        "skipped D=2",
        "skipped D=3",
        "skipped D=4",
        // What no run needs: a part of an arm that is never taken, and a wait after a poll that has said yes, or no.
        "barrier_part_that_is_never_used@never",
        "barrier_polled_for_the_wrong_answer@passes",
        "barrier_polled_for_the_wrong_answer@inverted",
        "barrier_polled_for_the_wrong_answer@earlier",
        // Copies run no tile ahead: every tile is old when it is copied.
        "no roles D=1 P=0",
        "no roles D=2 P=0",
        "no roles D=3 P=0",
        "no roles D=4 P=0",
    ];
    assert!(same(&marked, &never), "{marked:?}");
}

#[test]
fn every_layer_knows_right_from_wrong() {
    let rows = rows();
    let missed: Vec<String> =
        rows.iter().flat_map(|(k, r)| r.missed.iter().map(move |m| format!("{}: {m}", k.name))).collect();
    assert!(
        missed.is_empty(),
        "{} mutants:\n{}",
        missed.len(),
        missed.iter().take(20).cloned().collect::<Vec<_>>().join("\n\n")
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mutations.md");
    let text = table(&rows);
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(&path, &text).expect("the page is written");
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let is_current = if test_depth::is_full() { page == text } else { is_page_of_sample(&text, &page) };
    assert!(is_current, "docs/mutations.md is not what the layers report now: run with TITAN_BLESS=1");
}

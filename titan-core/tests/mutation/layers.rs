//! The layers after the verifier: the model checker, which tries every order, and the sanitizer, which looks at some runs.

use crate::args::make;
use crate::kinds::{Fate, Kind, all};
use crate::sources::{self, Level, Source};
use crate::text::Text;
use crate::verifier::mutants;
use std::fmt::Write as _;
use std::path::Path;
use titan_core::engine::Completion;
use titan_core::sim::{self, Limits, Options, Verdict};
use titan_core::verify::{WellFormed, verify, well_formed};

/// Extents and scalars: fewer tiles than slots, more of them, none.
const SIZES: [(i64, i64); 4] = [(32, 3), (48, 6), (16, 1), (16, 0)];

/// How many mutants of a kind are given to the slow layers.
const SAMPLE: usize = 8;

/// What the layers say of the mutants of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) mutants: usize,
    pub(crate) refused: usize,
    pub(crate) sampled: usize,
    pub(crate) ill_formed: usize,
    pub(crate) explored: usize,
    pub(crate) sanitized: usize,
    pub(crate) missed: Vec<String>,
}

/// Whether something is wrong in some order, for some sizes.
fn explored(kernel: &WellFormed) -> Result<Option<String>, String> {
    let mut bound = None;
    for (extent, scalar) in SIZES {
        let args = make(&kernel.sig, extent, scalar);
        match sim::explore(kernel, &args, None, &Limits { max_states: 30_000, ..Limits::default() }) {
            Ok(Verdict::Finding(f, _)) if f.kind == sim::Kind::NotModelled => bound = Some(f.message),
            Ok(Verdict::Finding(f, _)) if f.kind != sim::Kind::Trap => return Ok(Some(f.to_string())),
            Ok(Verdict::Bound(b, _)) => bound = Some(b),
            _ => {}
        }
    }
    bound.map_or(Ok(None), Err)
}

/// Whether one of some runs shows something.
fn sanitized(kernel: &WellFormed) -> bool {
    let shows = |(extent, scalar): &(i64, i64), seed: u64| {
        let completion = match seed {
            0 => Completion::Late,
            1 => Completion::Early,
            _ => Completion::Seeded(seed),
        };
        let options = Options { completion, seed: (seed > 1).then_some(seed), max_steps: 50_000, ..Options::default() };
        let mut args = make(&kernel.sig, *extent, *scalar);
        let report = sim::run(kernel, &mut args, None, &options);
        report.is_ok_and(|r| r.findings.iter().any(|f| !matches!(f.kind, sim::Kind::Trap | sim::Kind::Steps | sim::Kind::NotModelled)))
    };
    SIZES.iter().any(|size| (0..8).any(|seed| shows(size, seed)))
}

/// Some of the mutants, from all sources.
fn sample(all: &[(Text, &Source)]) -> Vec<(Text, String)> {
    let step = all.len().div_ceil(SAMPLE).max(1);
    all.iter().step_by(step).map(|(t, s)| (t.clone(), s.name.clone())).collect()
}

pub(crate) fn row(kind: &Kind, sources: &[Source]) -> Row {
    let found: Vec<(Text, &Source)> = sources.iter().flat_map(|s| mutants(kind, s).into_iter().map(move |m| (m, s))).collect();
    let mut row = Row { mutants: found.len(), ..Row::default() };
    row.refused = found.iter().filter(|(m, _)| m.kernel().is_some_and(|k| verify(k).is_err())).count();
    for (mutant, source) in sample(&found) {
        let Some(kernel) = mutant.kernel() else { continue };
        row.sampled += 1;
        let Ok(kernel) = well_formed(kernel) else {
            row.ill_formed += 1;
            continue;
        };
        match explored(&kernel) {
            Ok(Some(what)) => {
                row.explored += 1;
                if kind.fate == Fate::Same {
                    row.missed.push(format!("{source}: {what}\n{}", mutant.0.join("\n")));
                }
            }
            Ok(None) if kind.fate == Fate::Wrong => row.missed.push(format!("{source}\n{}", mutant.0.join("\n"))),
            Ok(None) => {}
            // A call that does not say what it does is nothing for a run.
            Err(bound) if bound.starts_with("not modelled") => {
                row.sampled -= 1;
                continue;
            }
            // What is right need not be shown to be: the sizes are small enough for most.
            Err(bound) if kind.fate == Fate::Wrong => row.missed.push(format!("{source}: {bound}\n{}", mutant.0.join("\n"))),
            Err(_) => {}
        }
        let found = sanitized(&kernel);
        row.sanitized += usize::from(found);
        if found && kind.fate == Fate::Same {
            row.missed.push(format!("{source}: a run finds something\n{}", mutant.0.join("\n")));
        }
    }
    row
}

/// The table of `docs/mutations.md`.
fn table(rows: &[(Kind, Row)]) -> String {
    let mut text = HEADER.to_owned();
    for (level, title) in [(Level::Rings, "Rings and tokens"), (Level::Barriers, "Barriers and groups")] {
        let _ = write!(text, "\n## {title}\n\n| change | in Rust | mutants | verifier | tried | model checker | runs |\n|---|---|---|---|---|---|---|\n");
        let mut part: Vec<&(Kind, Row)> = rows.iter().filter(|(k, _)| k.level == level).collect();
        part.sort_by_key(|(k, _)| k.fate as u8);
        let mut last = None;
        for (kind, row) in part {
            if last != Some(kind.fate) {
                let _ = writeln!(text, "| **{}** | | | | | | |", heading(kind.fate));
                last = Some(kind.fate);
            }
            let surface = if kind.surface { "✓" } else { "" };
            let verdict = |n: usize| if kind.fate == Fate::Same { "passes".to_owned() } else { n.to_string() };
            let (found, runs) = (row.explored + row.ill_formed, row.sanitized + row.ill_formed);
            let (found, runs) = match kind.fate {
                Fate::Wrong => (found.to_string(), runs.to_string()),
                Fate::Idle => ("".to_owned(), "".to_owned()),
                Fate::Same => ("safe".to_owned(), "clean".to_owned()),
            };
            let _ = writeln!(text, "| {} | {surface} | {} | {} | {} | {found} | {runs} |", kind.name, row.mutants, verdict(row.refused), row.sampled);
        }
    }
    text
}

const fn heading(fate: Fate) -> &'static str {
    match fate {
        Fate::Wrong => "wrong on some schedule",
        Fate::Idle => "against the rules, and harmless in every run",
        Fate::Same => "as right as before",
    }
}

const HEADER: &str = "# Mutations

<!-- Made by `TITAN_BLESS=1 cargo test -p titan-gpu-core --test mutation`. -->

Every good pipeline of the tree is changed in every way of this table: the kernels of the filetests and of the museum, families
of rings with 1 to 4 slots, one and two readers, with and without roles, products that are waited for and that are not, parts,
poison, stores, copies that run 0 to 3 tiles ahead, rings made of `pipelined` loops and of fused roles. What becomes of a program is
stated for a kind beforehand; kinds that would sometimes be harmless are made so narrow that they are not.

* *mutants*: different programs that a kind makes. *verifier*: how many of them the verifier refuses; it sees all.
* *tried*: how many were given to the layers that run. *model checker*: of these, in how many it finds something, in every order, with 0, 1, 3
  and 6 tiles. *runs*: of these, in how many the simulator with its sanitizer finds something in one of 8 schedules for each size.
* *in Rust*: what a kernel in Rust can say. It never comes to a run: rustc or the verifier refuses it at the user's line.

The model checker and the runs share no code with the verifier.
";

#[test]
fn every_layer_knows_right_from_wrong() {
    let sources = sources::all();
    let rows: Vec<(Kind, Row)> = all().into_iter().map(|kind| (kind, row(&kind, &sources))).collect();
    let missed: Vec<String> = rows.iter().flat_map(|(k, r)| r.missed.iter().map(move |m| format!("{}: {m}", k.name))).collect();
    assert!(missed.is_empty(), "{} mutants:\n{}", missed.len(), missed.iter().take(20).cloned().collect::<Vec<_>>().join("\n\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mutations.md");
    let text = table(&rows);
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(&path, &text).expect("the page is written");
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(page == text, "docs/mutations.md is not what the layers say now: run with TITAN_BLESS=1");
}

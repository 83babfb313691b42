//! The barrier programs of all examples for sm_90a in the model checker, with data erased: with at most three slots a ring, or as few as
//! the program allows, for as few times of a ring as there can be and for as many as D + 2 allows. docs/simulator.md lists them, and what is
//! cut off.
#![expect(clippy::duplicate_mod, dead_code, reason = "each example carries the common part and a `main`")]
#![expect(clippy::print_stdout, reason = "how long each exploration takes")]

#[path = "shared/examples.rs"]
mod all;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use titan::KernelInfo;
use titan_core::driver::{Ahead, Schedule, Stages, follow, stages};
use titan_core::ir::op_table::mnemonic;
use titan_core::ir::{Const, DimSpec, Elem, HostEnv, Kernel, OpKind, ParamKind, Signature, Symbol};
use titan_core::text::parse_one;
use titan_core::verify::{Verified, WellFormed, verify, well_formed};
use titan_nv::Machine;
use titan_sim::sim::{self, Kind, Limits, Options, Verdict};

/// States of one exploration.
const STATES: u64 = 100_000;
/// How many slots a ring has at most, if the program can do with so few.
const SLOTS: u32 = 3;
/// Steps of a run that looks for arguments.
const STEPS: u64 = 8_000;
/// Bytes of the tensors of a run that looks for arguments: with more, it would only fill memory.
const BYTES: usize = 1 << 25;
/// Extents of one shape name, while the others have the same one.
const EXTENTS: [i64; 9] = [8, 320, 160, 80, 20, 128, 1, 3, 16];
/// The examples, each a file.
const EXAMPLES: usize = 16;

fn hopper() -> &'static Machine {
    Machine::from_name("sm_90a").expect("it is known")
}

/// The stages of a kernel for sm_90a with few slots in each ring.
fn small(kernel: &Verified) -> Stages {
    let made = stages(kernel, hopper(), true, None).unwrap_or_else(|e| panic!("{}: {}", kernel.sig.name, e.message));
    let chosen = &made.schedule;
    let most = chosen.loops.iter().map(|ahead| ahead.slots).chain(chosen.slots.iter().copied()).max().unwrap_or(0);
    let with = |slots: u32| {
        let fewer = |ahead: &Ahead| {
            let slots = ahead.slots.min(slots);
            Ahead { slots, distance: ahead.distance.min(slots.saturating_sub(1)), ..ahead.clone() }
        };
        let loops = chosen.loops.iter().map(fewer).collect();
        let rings = chosen.slots.iter().map(|all| (*all).min(slots)).collect();
        let schedule = Schedule { loops, slots: rings, bodies: Vec::new(), ..chosen.clone() };
        follow(kernel, hopper(), &schedule).ok()
    };
    (SLOTS..most).find_map(with).unwrap_or(made)
}

/// The operations of a program in the order of its text, without the numbers in them: programs for which these are equal have the same
/// protocol, for tiles of other sizes and elements.
fn protocol(program: &Kernel) -> Vec<&'static str> {
    let mut all = Vec::new();
    program.walk(&mut |_, op| {
        if matches!(op.kind, OpKind::Nv(_) | OpKind::Ttg(_) | OpKind::Local(_) | OpKind::For(_) | OpKind::If) {
            all.push(mnemonic(&op.kind));
        }
    });
    all
}

/// Extents of shape names, the same for all but one of them, and the value of all whole numbers.
struct Env<'a> {
    extents: &'a [i64],
    scalar: i64,
}

impl HostEnv for Env<'_> {
    fn symbol(&self, symbol: Symbol) -> i64 {
        self.extents.get(symbol.index()).copied().unwrap_or(1)
    }
    fn scalar(&self, _: usize) -> i64 {
        self.scalar
    }
    fn dim(&self, _: usize, _: usize) -> i64 {
        1
    }
}

/// Arguments of these extents, if they are not too large; tensors of whole numbers have ascending ones, as offsets of segments have.
fn arguments(sig: &Signature, env: &Env<'_>) -> Option<Vec<sim::Arg>> {
    let dim = |dim: &DimSpec| match dim {
        DimSpec::Any => env.extents.first().copied().unwrap_or(1),
        DimSpec::Bind(symbol) => env.symbol(*symbol),
        DimSpec::Equals(expr) => expr.eval(env).unwrap_or(1).max(0),
    };
    let mut left = BYTES;
    let mut one = |kind: &ParamKind| match kind {
        ParamKind::Scalar(elem) if elem.is_float() => Some(sim::Arg::Scalar(Const::Float(*elem, 1.0))),
        ParamKind::Scalar(elem) => Some(sim::Arg::Scalar(Const::Int(*elem, env.scalar))),
        ParamKind::Tensor { elem, shape, .. } => {
            let shape: Vec<i64> = shape.iter().map(dim).collect();
            let elements = usize::try_from(shape.iter().product::<i64>()).expect("a size");
            left = left.checked_sub((elements * elem.bits() as usize).div_ceil(8))?;
            let bytes = if *elem == Elem::I32 {
                (0..elements).flat_map(|i| i32::try_from(i).expect("few elements").to_le_bytes()).collect()
            } else {
                vec![0; (elements * elem.bits() as usize).div_ceil(8)]
            };
            Some(sim::Arg::dense(*elem, &shape, bytes))
        }
    };
    sig.params.iter().map(|param| one(&param.kind)).collect()
}

/// The number of times that some ring is filled in a run, or why there is none: the launch refuses these arguments, or it traps or is long.
fn times(program: &WellFormed, env: &Env<'_>, grid: [u32; 3]) -> Result<u64, String> {
    let options = Options { data: false, sanitize: false, max_steps: STEPS, ..Options::default() };
    let mut args = arguments(&program.sig, env).ok_or("they are too large")?;
    let report = sim::run(program, &mut args, Some(grid), &options).map_err(|_| "a launch refuses them".to_owned())?;
    match report.findings.iter().find(|f| matches!(f.kind, Kind::Steps | Kind::Trap)) {
        Some(found) => Err(found.message.clone()),
        None => Ok(report.statistics.times),
    }
}

/// Arguments with which rings are filled as few times as they can be, and as many as D + 2 allows, with the numbers of times; or why there
/// are none.
fn sizes(program: &WellFormed, grid: [u32; 3]) -> Result<Vec<(u64, Vec<sim::Arg>)>, String> {
    let deepest = u64::from(program.pipes.iter().map(|pipe| pipe.slots).max().unwrap_or(0));
    let mut found: BTreeMap<u64, Vec<sim::Arg>> = BTreeMap::new();
    let (symbols, mut why) = (program.sig.symbols.len().max(1), BTreeSet::new());
    'all: for base in [8, 64, 1] {
        for (long, symbol) in EXTENTS.into_iter().flat_map(|long| (0..symbols).map(move |s| (long, s))) {
            let mut extents = vec![base; symbols];
            extents[symbol] = long;
            let env = Env { extents: &extents, scalar: 1 };
            match times(program, &env, grid) {
                Ok(times) if times <= deepest + 2 => {
                    found.entry(times).or_insert_with(|| arguments(&program.sig, &env).expect("as before"));
                }
                Ok(times) => {
                    why.insert(format!("a ring is filled {times} times"));
                }
                Err(other) => {
                    why.insert(other);
                }
            }
            // Without rings, one size says as much as another.
            let without = program.pipes.is_empty() && !found.is_empty();
            let both = found.contains_key(&(deepest + 2)) && found.keys().next().is_some_and(|least| *least < 2);
            if without || both {
                break 'all;
            }
        }
    }
    let first = found.pop_first().ok_or_else(|| why.pop_first().unwrap_or_default())?;
    Ok([first].into_iter().chain(found.pop_last()).collect())
}

/// What the model checker says of a program, as the row of a table, and why it was cut off, if it was.
fn explored(name: &str, made: &Stages, cut: &mut BTreeSet<String>) -> String {
    let program = well_formed(made.barriers.clone()).expect("a barrier program");
    let cluster = program.laid_out.as_deref().map_or(1, |laid| laid.cluster);
    let (grid, slots) = ([cluster, 1, 1], program.pipes.iter().map(|pipe| pipe.slots).max().unwrap_or(0));
    let sizes = sizes(&program, grid).unwrap_or_else(|why| {
        cut.insert(format!("`{name}`: no arguments that were tried lead to so few times: {why}"));
        Vec::new()
    });
    let (mut most, mut all) = (0, Vec::new());
    for (times, args) in sizes {
        let limits = Limits { max_states: STATES, ..Limits::default() };
        let verdict = sim::explore(&program, &args, Some(grid), &limits).expect("arguments that a launch takes");
        let explored = verdict.explored();
        most = most.max(explored.states);
        match verdict {
            Verdict::Safe(_) => {
                assert!(explored.occupied <= slots.into(), "{name}: {} times of a ring at once", explored.occupied);
                all.push(times.to_string());
            }
            Verdict::Bound(bound, _) => {
                cut.insert(format!("`{name}`, {times} times: {bound}"));
            }
            Verdict::Finding(found, _) if matches!(found.kind, Kind::NotModelled) => {
                cut.insert(format!("`{name}`, {times} times: {}", found.message));
            }
            Verdict::Finding(found, _) => panic!("{name}, {times} times: {found} [{}]", found.schedule),
        }
    }
    let roles = if program.roles.is_empty() { String::new() } else { program.roles.len().to_string() };
    let cluster = if cluster > 1 { cluster.to_string() } else { String::new() };
    let slots = if slots > 0 { slots.to_string() } else { String::new() };
    format!("| `{name}` | {roles} | {cluster} | {slots} | {} | {most} |", all.join(", "))
}

/// In the quick depth, instances that the page names: some of each example, with every number of roles and of programs of a cluster, and
/// where there are some, of those whose rings are filled as often as D + 2 allows.
fn sampled(kernels: &[KernelInfo]) -> Vec<&KernelInfo> {
    if test_depth::is_full() {
        return kernels.iter().collect();
    }
    let page = std::fs::read_to_string(page_path()).expect("the page");
    let rows: BTreeMap<&str, Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, cells)| (name, cells.split('|').map(str::trim).collect()))
        .collect();
    // Roles, cluster, slots, times.
    let is_deep = |name: &str| {
        let (slots, times) = (rows[name][2], rows[name][3].rsplit(", ").next().unwrap_or_default());
        let number = |text: &str| text.parse::<u64>().unwrap_or(0);
        slots.is_empty() || number(times) == number(slots) + 2
    };
    let named: Vec<&KernelInfo> = kernels.iter().filter(|info| rows.contains_key(&*info.name)).collect();
    let deep: BTreeSet<&str> =
        named.iter().filter(|info| is_deep(&info.name)).map(|info| &*info.location.file).collect();
    let best = named.into_iter().filter(|info| is_deep(&info.name) || !deep.contains(&*info.location.file));
    test_depth::covering(best, |info| {
        let row = &rows[&*info.name];
        vec![info.location.file.to_string(), format!("{} roles", row[0]), format!("clusters of {}", row[1])]
    })
}

#[test]
fn barrier_programs_of_all_examples_are_safe_in_every_order() {
    let kernels = titan::kernels().expect("what is embedded can be read");
    let (mut seen, mut files) = (BTreeSet::new(), BTreeSet::new());
    let (mut rows, mut cut) = (BTreeMap::new(), BTreeSet::new());
    for info in sampled(&kernels) {
        let Some((_, file)) = info.location.file.rsplit_once("examples") else { continue };
        files.insert(file.to_owned());
        let text = info.variants.iter().find(|v| v.target == "cpu").and_then(|v| v.text()).expect("tile IR");
        let kernel = parse_one(text).unwrap_or_else(|e| panic!("{}: {e:?}", info.name));
        let kernel = verify(kernel).unwrap_or_else(|e| panic!("{}: {e:?}", info.name));
        let made = small(&kernel);
        let of = info.name.split("::<").next().unwrap_or_default();
        let like: Vec<String> = protocol(&made.barriers).into_iter().map(str::to_owned).collect();
        if seen.insert((of.to_owned(), like)) {
            let begin = std::time::Instant::now();
            let row = explored(&info.name, &made, &mut cut);
            println!("{row} {:.1} s", begin.elapsed().as_secs_f64());
            rows.insert(info.name.clone(), row);
        }
    }
    assert_eq!(files.len(), EXAMPLES, "{files:?}");
    let mut page = format!(
        "{} of the {} instances differ in more than sizes and elements.\n\n\
         | program | roles | cluster | slots | times | states |\n|---|---|---|---|---|---|\n",
        rows.len(),
        kernels.len()
    );
    rows.values().for_each(|row| {
        let _ = writeln!(page, "{row}");
    });
    let _ = writeln!(page, "\nCut off: {}.\n", cut.len());
    cut.iter().for_each(|why| {
        let _ = writeln!(page, "* {why}");
    });
    told(&page);
}

fn page_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/simulator.md")
}

/// What docs/simulator.md says between two comments; `TITAN_BLESS=1` writes it. In the quick depth it has more rows and reasons than were
/// found.
fn told(text: &str) {
    let path = page_path();
    let old = std::fs::read_to_string(&path).expect("the page");
    let begin =
        "<!-- examples are explored: made by `TITAN_BLESS=1 cargo test --features simulator --test explored`. -->\n";
    let (before, rest) = old.split_once(begin).expect("a place for it");
    let (_, after) = rest.split_once("<!-- end -->").expect("its end");
    let new = format!("{before}{begin}\n{}\n\n<!-- end -->{after}", text.trim_end());
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(&path, &new).expect("the page can be written");
    } else if !test_depth::is_full() {
        let told: BTreeSet<&str> = old.lines().collect();
        let facts = text.lines().filter(|line| line.starts_with("| `") || line.starts_with("* "));
        let missing: Vec<&str> = facts.filter(|line| !told.contains(line)).collect();
        assert!(missing.is_empty(), "docs/simulator.md is not current: {missing:#?}");
        return;
    }
    assert!(new == old || std::env::var_os("TITAN_BLESS").is_some(), "docs/simulator.md is not current:\n{text}");
}

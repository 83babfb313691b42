//! Loops over rings whose fills and waits run ahead of the steady loop: for every number of iterations, they store what the loops store that
//! they were made of, in their order, and whatever is filled is waited for and released.

use super::random::{Rng, below};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use titan_core::ir::{BinOp, Block, Fill, Kernel, OpId, OpKind, Pred, TtgOp, Ty, Value};
use titan_core::pipeline::modulo::{check, expand};
use titan_core::text::{parse_one, print};

/// What a run shows: what is stored at which iteration; and for each ring, what was filled (nothing: zeros), how often it was waited for,
/// and how often it was released.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    stored: Vec<(i64, i64)>,
    filled: [Vec<Option<i64>>; 2],
    acquired: [i64; 2],
    pending: [i64; 2],
    waited: [i64; 2],
    released: [i64; 2],
}

/// An interpreter of one role that fills and reads rings with any number of slots. A tile is the number of the iteration that it is copied
/// for, and a token the time of its stage; a tile in
/// shared memory is twice the time plus the ring.
struct Run<'k> {
    kernel: &'k Kernel,
    n: i64,
    known: BTreeMap<Value, i64>,
    shown: Shown,
}

/// The number that a tile of zeros is, where nothing was copied because the iteration does not exist, and where the loop itself says so.
const ZERO: i64 = -1;
const ZEROED: i64 = -2;

/// What coordinates that are loaded differ in from the place that they are loaded from.
const PAGE: i64 = 64;

impl Run<'_> {
    fn get(&self, value: Value) -> i64 {
        *self.known.get(&value).unwrap_or_else(|| panic!("{value} is not defined yet:\n{}", print(self.kernel)))
    }

    fn ring(&self, op: OpId) -> usize {
        let op = self.kernel.op(op);
        let pipe = op.args.iter().chain(&op.results).find_map(|v| match self.kernel.ty(*v) {
            Ty::Token(_, pipe) => Some(pipe.index()),
            _ => None,
        });
        pipe.expect("a token")
    }

    /// The values that the end of the block passes on.
    fn block(&mut self, block: Block) -> Vec<i64> {
        let (end, ops) = self.kernel.block(block).ops.split_last().expect("an end");
        for id in ops {
            let results = self.kernel.op(*id).results.clone();
            let made = self.op(*id);
            self.known.extend(results.into_iter().zip(made));
        }
        self.kernel.op(*end).args.iter().map(|v| self.get(*v)).collect()
    }

    fn op(&mut self, id: OpId) -> Vec<i64> {
        let op = self.kernel.op(id).clone();
        let args: Vec<i64> = op.args.iter().map(|v| self.get(*v)).collect();
        match (&op.kind, &args[..]) {
            (OpKind::Const(_), _) => vec![self.kernel.int_constant(op.results[0]).unwrap_or(0)],
            (OpKind::Dim(_), _) => vec![self.n],
            (OpKind::Splat(_), [all]) => vec![*all],
            (OpKind::Binary(BinOp::Add), [a, b]) => vec![i64::from((*a as i32).wrapping_add(*b as i32))],
            (OpKind::Binary(BinOp::Sub), [a, b]) => vec![i64::from((*a as i32).wrapping_sub(*b as i32))],
            (OpKind::Binary(BinOp::Mul), [a, b]) => vec![i64::from((*a as i32).wrapping_mul(*b as i32))],
            (OpKind::Binary(BinOp::Xor), [a, b]) => vec![a ^ b],
            (OpKind::Cmp(Pred::Lt), [a, b]) => vec![i64::from(a < b)],
            (OpKind::Get, [_, at]) => {
                assert!(*at < self.n, "a coordinate is loaded for an iteration that does not exist");
                vec![at ^ PAGE]
            }
            (OpKind::If, [condition]) => self.block(op.regions[usize::from(*condition == 0)]),
            (OpKind::For(_), [lo, hi, step, carried @ ..]) => {
                let inside = self.kernel.block(op.regions[0]).args.clone();
                let (mut at, mut carried) = (*lo, carried.to_vec());
                while at < *hi {
                    let all = [&[at], &carried[..]].concat();
                    self.known.extend(inside.iter().copied().zip(all));
                    carried = self.block(op.regions[0]);
                    at += step;
                }
                carried
            }
            (OpKind::Store(..), [_, row, _, tile]) => {
                self.shown.stored.push((*row, *tile));
                vec![]
            }
            (OpKind::Ttg(ttg), _) => self.ttg(id, ttg, &args),
            other => panic!("{other:?} is not interpreted"),
        }
    }

    fn ttg(&mut self, id: OpId, op: &TtgOp, args: &[i64]) -> Vec<i64> {
        if let (TtgOp::Source(..), [_, _, column, ..]) = (op, args) {
            return vec![*column];
        }
        if let (TtgOp::Read, [view]) = (op, args) {
            let (time, ring) = (view / 2, (view % 2) as usize);
            assert!(time >= self.shown.released[ring], "a stage is read that was released");
            return vec![self.shown.filled[ring][time as usize].unwrap_or(ZERO)];
        }
        let ring = self.ring(id);
        let next = |clock: &mut [i64; 2]| {
            clock[ring] += 1;
            vec![clock[ring] - 1]
        };
        let shown = &mut self.shown;
        match (op, args) {
            (TtgOp::Acquire(_), _) => next(&mut shown.acquired),
            (TtgOp::AsyncProduce { skipped, .. }, [slot, source, rest @ ..]) => {
                assert_eq!(*slot, shown.filled[ring].len() as i64, "slots are filled in order");
                let copies = match (skipped, rest) {
                    (None, []) => true,
                    (Some(Fill::Zero), [condition]) => *condition != 0,
                    other => panic!("{other:?}"),
                };
                shown.filled[ring].push(copies.then_some(*source));
                vec![]
            }
            (TtgOp::Fill(Fill::Zero), [slot]) => {
                assert_eq!(*slot, shown.filled[ring].len() as i64, "slots are filled in order");
                shown.filled[ring].push(Some(ZEROED));
                vec![]
            }
            (TtgOp::Ready(_), _) => next(&mut shown.pending),
            (TtgOp::WaitReady, [time]) => {
                assert!((*time as usize) < shown.filled[ring].len(), "a wait for a stage that is not filled yet");
                shown.waited[ring] += 1;
                vec![*time]
            }
            (TtgOp::ReadPerm | TtgOp::Consumed, [time]) => vec![*time],
            (TtgOp::View { .. }, [time]) => vec![2 * time + ring as i64],
            (TtgOp::Release, [time]) => {
                assert_eq!(*time, shown.released[ring], "stages are released in order");
                shown.released[ring] += 1;
                vec![]
            }
            other => panic!("{other:?} is not interpreted"),
        }
    }
}

fn shown(kernel: &Kernel, n: i64) -> Shown {
    let mut run = Run { kernel, n, known: BTreeMap::new(), shown: Shown::default() };
    for (at, param) in kernel.sig.params.iter().enumerate() {
        let _ = param;
        run.known.insert(Value::new(at), 0);
    }
    run.block(kernel.body);
    run.shown
}

/// The operations on a ring in a body, and the order in which one iteration executes them.
const PARTS: [&str; 12] =
    ["acquire", "source", "produce", "ready", "wait", "perm", "view", "read", "store", "consumed", "release", "page"];
/// What each of them must follow: data, the copy before its wait, and reads before the end of reading.
const AFTER: [&[usize]; 12] = [&[], &[PAGE_PART], &[0, 1], &[], &[3, 2], &[4], &[5], &[6], &[7], &[5, 6, 7], &[9], &[]];
const PAGE_PART: usize = 11;

/// Where copies of a ring are from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// The number of the iteration.
    Counter,
    /// A coordinate that is loaded for it.
    Page,
    /// The one that is loaded for the first ring.
    PageOfFirst,
}

pub(super) struct RingLoop {
    rings: usize,
    /// For each ring, the stage and the place of each of [`PARTS`].
    places: Vec<[(u64, u64); 12]>,
    /// For each ring, where copies are from, and whether they are made under a condition, and zeros written otherwise.
    from: Vec<(From, bool)>,
    stages: u64,
    lo: i64,
    step: i64,
}

pub(super) fn random(rng: &mut Rng) -> RingLoop {
    let (rings, stages) = (1 + below(rng, 2), 1 + below(rng, 5) as u64);
    // Loads and conditions can be ahead if only fills are.
    let is_guarded = rng.one_in(3);
    let mut places: Vec<[(u64, u64); 12]> = Vec::new();
    let mut from: Vec<(From, bool)> = Vec::new();
    for _ in 0..rings {
        // Fills, waits, reads, and the rest in stages that do not fall.
        let mut ladder: Vec<u64> = (0..4).map(|_| below(rng, stages as usize) as u64).collect();
        ladder.sort_unstable();
        if is_guarded || rng.one_in(2) {
            // Only fills run ahead.
            ladder[1..].fill(stages - 1);
        }
        let [fill, wait, read, done] = ladder[..] else { panic!("four") };
        let mut of_ring =
            [fill, fill, fill, wait, wait, wait, read, read, stages - 1, done, done, fill].map(|stage| (stage, 0));
        let shared = from.first().is_some_and(|(first, _)| *first == From::Page) && places[0][0].0 == fill;
        let own = match below(rng, 3) {
            // Two loads that may fail are not exchanged either.
            0 if is_guarded && from.is_empty() => From::Page,
            1 if is_guarded && shared => From::PageOfFirst,
            _ => From::Counter,
        };
        from.push((own, is_guarded && rng.one_in(3)));
        if own == From::Counter {
            // Names may be made at any time before they are used.
            of_ring[1].0 = below(rng, fill as usize + 1) as u64;
        }
        places.push(of_ring);
    }
    let mut open: Vec<(usize, usize)> =
        (0..rings).flat_map(|ring| (0..PARTS.len()).map(move |part| (ring, part))).collect();
    let mut order = 0;
    while !open.is_empty() {
        let ready: Vec<usize> = (0..open.len())
            .filter(|at| {
                let (ring, part) = open[*at];
                let waits =
                    |before: &usize| places[ring][*before].0 == places[ring][part].0 && open.contains(&(ring, *before));
                let page_of_first = part == 1 && from[ring].0 == From::PageOfFirst && open.contains(&(0, PAGE_PART));
                !page_of_first && !AFTER[part].iter().any(waits)
            })
            .collect();
        let (ring, part) = open.remove(ready[below(rng, ready.len())]);
        places[ring][part].1 = order;
        order += 1;
    }
    RingLoop { rings, places, from, stages, lo: [0, 0, 3, -4][below(rng, 4)], step: [1, 1, 2][below(rng, 3)] }
}

impl RingLoop {
    /// The bound of the loop up to which it is tried.
    pub(super) fn most(&self) -> i64 {
        2 * self.stages as i64 * self.step + self.lo + 4
    }

    /// Whether a fill runs ahead.
    fn runs_ahead(&self) -> bool {
        self.places.iter().any(|of_ring| of_ring[0].0 < self.stages - 1)
    }

    pub(super) fn text(&self) -> String {
        let pipes = ["pipe(9, \"a\", tile<16x16xf16>) ", "pipe(9, \"b\", tile<16x16xf16>) "][..self.rings].concat();
        // Loads that may fail are not exchanged with stores. So with these, tiles are subtracted from each other, and the results are stored.
        let carries = self.from.iter().any(|(from, _)| *from != From::Counter);
        let names = |of: &str| (0..self.rings).map(|ring| format!("%{of}{ring}")).collect::<Vec<String>>();
        let begin: Vec<String> = names("sum").iter().map(|sum| format!("{sum} = %z")).collect();
        let types = vec!["tile<16x16xf16>"; self.rings];
        let mut text = format!(
            "kernel @k(%a: in tensor<f16>[M, K], %tab: in tensor<i32>[T], %c: mut tensor<f16>[P, Q], %d: mut tensor<f16>[R, S]) grid(1) {pipes}{{\n\
             %n = dim<1> %a\n%zero = const 0 : i32\n%two = const 2 : i32\n%lo = const {} : i32\n%step = const {} : i32\n%h = const 0.0 : f16\n\
             %z = splat %h : tile<16x16xf16>\n{}for %i = %lo to %n step %step{} {{\n",
            self.lo,
            self.step,
            if carries { format!("{} = ", names("all").join(", ")) } else { String::new() },
            if carries { format!(" carry({}) : {}", begin.join(", "), types.join(", ")) } else { String::new() },
        );
        for (ring, (places, (from, is_conditional))) in self.places.iter().zip(&self.from).enumerate() {
            let out = ["c", "d"][ring];
            let at = match from {
                From::Counter => "%i".to_owned(),
                From::Page => format!("%page{ring}"),
                From::PageOfFirst => "%page0".to_owned(),
            };
            // The load of a coordinate comes first in the text.
            for part in [PAGE_PART].into_iter().chain(0..PAGE_PART) {
                let (part, (stage, order)) = (&PARTS[part], places[part]);
                let op = match *part {
                    "acquire" => format!("%slot{ring} = ttg.stage.acquire<{ring}> : slot<{ring}>"),
                    "source" => format!("%src{ring} = ttg.source_tile %a[%zero, {at}] or %h : source<16x16xf16>"),
                    "page" if *from == From::Page => format!("{at} = get %tab[%i] : i32"),
                    "page" => continue,
                    "produce" if *is_conditional => {
                        let _ = writeln!(
                            text,
                            "%few{ring} = lt %i, %two : bool stage({}, {ring})\nif %few{ring} stage({stage}, {}) {{\n\
                             ttg.stage.async_produce %slot{ring}, %src{ring} {{bytes = 512, proxy = generic}}\nyield\n\
                             }} else {{\nttg.stage.zero %slot{ring}\nyield\n}}",
                            self.stages - 1,
                            order + 2
                        );
                        continue;
                    }
                    "produce" => {
                        format!("ttg.stage.async_produce %slot{ring}, %src{ring} {{bytes = 512, proxy = generic}}")
                    }
                    "ready" => format!("%ready{ring} = ttg.stage.ready<{ring}> : ready<{ring}>"),
                    "wait" => format!("%stage{ring} = ttg.stage.wait_ready %ready{ring} : stage<{ring}>"),
                    "perm" => format!("%perm{ring} = ttg.stage.read_perm %stage{ring} : rperm<{ring}>"),
                    "view" => format!("%view{ring} = ttg.stage.view<0> %perm{ring} : smem<16x16xf16>"),
                    "read" => format!("%tile{ring} = ttg.stage.read %view{ring} : tile<16x16xf16>"),
                    "store" if carries => format!("%next{ring} = sub %tile{ring}, %sum{ring} : tile<16x16xf16>"),
                    "store" => format!("store_tile %{out}[%i, %zero], %tile{ring}"),
                    "consumed" => format!("%done{ring} = ttg.stage.consumed %perm{ring} : consumed<{ring}>"),
                    _ => format!("ttg.stage.release %done{ring}"),
                };
                // The first two places are those of conditions.
                let _ = writeln!(text, "{op} stage({stage}, {})", order + 2);
            }
        }
        if carries {
            let _ = writeln!(text, "continue {}\n}}", names("next").join(", "));
            for (out, all) in ["c", "d"].iter().zip(names("all")) {
                let _ = writeln!(text, "store_tile %{out}[%zero, %zero], {all}");
            }
        } else {
            text.push_str("continue\n}\n");
        }
        text + "return\n}\n"
    }
}

pub(super) fn kernel(text: &str) -> Kernel {
    parse_one(text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

/// The stores of each ring are to a tensor of its own, so their order matters for each ring only.
fn by_ring(shown: &Shown) -> Vec<(i64, i64)> {
    let mut stored = shown.stored.clone();
    stored.sort_unstable();
    stored
}

/// What is wrong with what was made of a loop, for some number of iterations.
pub(super) fn difference(before: &Kernel, made: &Kernel, most: i64) -> Option<String> {
    let mut plain = before.clone();
    plain.ops.iter_mut().for_each(|op| op.planned = None);
    (-2..=most).find_map(|n| {
        let (right, found) = (shown(&plain, n), shown(made, n));
        for ring in 0..2 {
            let filled = found.filled[ring].len() as i64;
            let clocks = [found.acquired[ring], found.pending[ring], found.waited[ring], found.released[ring]];
            let real: Vec<Option<i64>> = found.filled[ring].iter().copied().filter(Option::is_some).collect();
            if clocks != [filled; 4] || real != right.filled[ring] {
                return Some(format!("n = {n}, ring {ring}: {found:?}\nnot {right:?}"));
            }
        }
        (by_ring(&right) != by_ring(&found)).then(|| format!("n = {n}: {found:?}\nnot {right:?}"))
    })
}

#[test]
fn what_is_filled_ahead_is_read_in_its_iteration() {
    let mut rng = Rng(0x0f1e_2d3c_4b5a_6978);
    let (mut guarded, mut drained, mut rolled, mut loaded, mut branches) = (0, 0, 0, 0, 0);
    for _ in 0..test_depth::cases(3000, 300) {
        let made = random(&mut rng);
        let before = kernel(&made.text());
        let expanded = expand(&before).unwrap_or_else(|why| panic!("{why:?}\n{}", made.text()));
        let text = print(&expanded);
        assert_eq!(check(&before, &expanded), Ok(()), "{}\n{text}", made.text());
        let wrong = difference(&before, &kernel(&text), made.most());
        assert!(wrong.is_none(), "{}\n{}\n{text}", wrong.unwrap_or_default(), made.text());
        guarded += usize::from(text.contains("if "));
        loaded += usize::from(text.contains("get ") && made.runs_ahead());
        branches += usize::from(text.contains("stage.zero") && made.runs_ahead());
        drained += usize::from(text.contains("skipped = zero"));
        rolled += usize::from(text.matches("for ").count() > 1);
    }
    println!(
        "{guarded} loops with guards, {drained} with stages beyond the last one, {rolled} with a loop before the loop, {loaded} with loads \
         ahead, {branches} with branches ahead"
    );
    assert!([guarded, drained, rolled].iter().all(|n| *n > test_depth::cases(300, 30)));
    assert!([loaded, branches].iter().all(|n| *n > test_depth::cases(150, 15)));
}

//! Times that are written in nested loops, random ones: what is accepted is the time of the ring in a run with numbers, for all
//! small extents, and a time that counts everything is accepted.

use super::random::Rng;
use std::fmt::Write;
use titan_core::diag::Code;
use titan_core::text::parse_one;
use titan_core::verify::verify;

/// How often a loop runs: an extent, `n` or `m`, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Extent(usize),
    Constant(i64),
}

/// What is written as a time: a constant, and for each loop around how often its counter is added.
#[derive(Clone, Debug)]
struct Time {
    factors: Vec<Vec<Count>>,
    more: i64,
}

/// Loops in each other. In the innermost one a ring is filled at a written time and read; `early` says in which loop it is filled
/// and read once before the next loop.
#[derive(Clone, Debug)]
struct Program {
    counts: Vec<Count>,
    early: Option<usize>,
    time: Time,
    reads: bool,
}

fn value(count: Count, extents: [i64; 2]) -> i64 {
    match count {
        Count::Extent(e) => extents[e],
        Count::Constant(c) => c,
    }
}

impl Program {
    /// Whether each written time is the time of the ring.
    fn runs(&self, extents: [i64; 2]) -> bool {
        let (mut clock, mut good) = (0, true);
        self.walk(extents, &mut Vec::new(), &mut clock, &mut good);
        good
    }

    fn walk(&self, extents: [i64; 2], at: &mut Vec<i64>, clock: &mut i64, good: &mut bool) {
        let Some(count) = self.counts.get(at.len()) else {
            let one = |(factors, i): (&Vec<Count>, &i64)| -> i64 {
                if factors.is_empty() { 0 } else { factors.iter().map(|f| value(*f, extents)).product::<i64>() * i }
            };
            let time: i64 = self.time.factors.iter().zip(at.iter()).map(one).sum::<i64>() + self.time.more;
            *good &= time == *clock;
            *clock += 1;
            return;
        };
        for i in 0..value(*count, extents) {
            at.push(i);
            *clock += i64::from(self.early == Some(at.len()));
            self.walk(extents, at, clock, good);
            at.pop();
        }
    }

    fn text(&self) -> String {
        let mut out = "kernel @p(%a: in tensor<f32>[N], %b: in tensor<f32>[M], %c: mut tensor<f32>[K]) grid(1) pipe(2, tile<16xf32>) {\n\
             %n = dim<0> %a\n%m = dim<0> %b\n%zero = const 0 : i32\n%one = const 1 : i32\n%v = const 0.0 : f32\n"
            .to_owned();
        let mut fresh = 0;
        self.open(0, &mut out, &mut fresh);
        out.push_str("set %c[%zero], %v\nreturn\n}\n");
        out
    }

    fn operand(out: &mut String, fresh: &mut usize, count: Count) -> String {
        match count {
            Count::Extent(e) => ["%n", "%m"][e].to_owned(),
            Count::Constant(c) => {
                *fresh += 1;
                let _ = writeln!(out, "%k{fresh} = const {c} : i32");
                format!("%k{fresh}")
            }
        }
    }

    fn both(out: &mut String, fresh: &mut usize, acquire: &str, ready: &str) {
        *fresh += 1;
        let f = *fresh;
        let _ = writeln!(
            out,
            "%s{f} = ttg.stage.acquire<0>{acquire}\nttg.stage.zero %s{f}\n%r{f} = ttg.stage.ready<0>{ready}"
        );
        let _ = writeln!(out, "%w{f} = ttg.stage.wait_ready %r{f}\n%p{f} = ttg.stage.read_perm %w{f}");
        let _ = writeln!(out, "%d{f} = ttg.stage.consumed %p{f}\nttg.stage.release %d{f}");
    }

    fn open(&self, depth: usize, out: &mut String, fresh: &mut usize) {
        let Some(count) = self.counts.get(depth) else {
            let mut sum = Self::operand(out, fresh, Count::Constant(self.time.more));
            for (i, factors) in self.time.factors.iter().enumerate().filter(|(_, f)| !f.is_empty()) {
                let mut term = format!("%i{i}");
                for factor in factors {
                    let by = Self::operand(out, fresh, *factor);
                    *fresh += 1;
                    let _ = writeln!(out, "%x{fresh} = mul {term}, {by}");
                    term = format!("%x{fresh}");
                }
                *fresh += 1;
                let _ = writeln!(out, "%x{fresh} = add {sum}, {term}");
                sum = format!("%x{fresh}");
            }
            let time = format!(" {sum}");
            let (fill, read) = if self.reads { ("", time.as_str()) } else { (time.as_str(), "") };
            return Self::both(out, fresh, fill, read);
        };
        let hi = Self::operand(out, fresh, *count);
        let _ = writeln!(out, "for %i{depth} = %zero to {hi} step %one {{");
        if self.early == Some(depth + 1) {
            Self::both(out, fresh, "", "");
        }
        self.open(depth + 1, out, fresh);
        out.push_str("continue\n}\n");
    }
}

fn count(rng: &mut Rng) -> Count {
    match rng.below(4) {
        0 => Count::Constant(1 + rng.below(3) as i64),
        1 => Count::Extent(1),
        _ => Count::Extent(0),
    }
}

/// A program whose time counts all loops, or all but some.
fn program(rng: &mut Rng) -> (Program, bool) {
    let counts: Vec<Count> = (0..=rng.below(3)).map(|_| count(rng)).collect();
    // The counter of a loop counts as often as everything inside of it passes.
    let mut factors: Vec<Vec<Count>> =
        (0..counts.len()).map(|i| [&[Count::Constant(1)], &counts[i + 1..]].concat()).collect();
    let mut right = true;
    let mut more = 0;
    match rng.below(6) {
        0 => {
            factors[rng.below(counts.len() as u64) as usize].clear();
            right = false;
        }
        1 => {
            more = 1;
            right = false;
        }
        2 if counts.len() > 1 => {
            factors[0].pop();
            right = false;
        }
        _ => {}
    }
    let early = rng.one_in(4).then(|| 1 + rng.below(counts.len() as u64) as usize);
    let program = Program { counts, early, time: Time { factors, more }, reads: rng.one_in(3) };
    let whole = right && program.early.is_none();
    (program, whole)
}

#[test]
fn written_times_in_nested_loops_are_those_of_the_ring() {
    let mut rng = Rng(0x0123_4567_89ab_cdef);
    let (mut accepted, mut wrong) = (0, 0);
    for _ in 0..600 {
        let (program, whole) = program(&mut rng);
        let text = program.text();
        let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let code = verify(kernel).err().map(|errors| errors[0].code);
        let failing = (0..5).flat_map(|n| (0..5).map(move |m| [n, m])).find(|e| !program.runs(*e));
        match (code, failing) {
            (None, Some(extents)) => panic!("accepted, but a time is wrong for {extents:?}\n{text}"),
            (Some(code), None) => {
                assert_eq!(code, Code::WrongTime, "{text}");
                assert!(!whole, "a time that counts everything is refused\n{text}");
            }
            (None, None) => accepted += 1,
            (Some(code), Some(_)) => {
                assert_eq!(code, Code::WrongTime, "{text}");
                wrong += 1;
            }
        }
    }
    assert!(accepted > 150 && wrong > 150, "{accepted} accepted, {wrong} wrong");
}

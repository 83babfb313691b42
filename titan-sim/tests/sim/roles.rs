//! Two roles that touch one output, in every pair of ways: the verifier refuses what nothing orders, the model checker finds it
//! in some order, and the sanitizer in every run in which both accesses occur. With random places, no layer reports
//! accesses that do not overlap.

use crate::args::make;
use titan_core::diag::Code;
use titan_core::text::parse_one;
use titan_core::verify::{WellFormed, verify, well_formed};
use titan_sim::engine::Completion;
use titan_sim::sim::{Kind, Limits, Options, Verdict, explore, run};

/// A way to touch an output, as text, at an element and a row; and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Read,
    Write,
    Scatter,
    Atomic,
}

/// Name, class, and text for view `%v`, elements from 16 times `at` on; `n` keeps names apart.
type Way = (&'static str, Is, fn(&str, i64) -> String);

const WAYS: [Way; 12] = [
    ("load", Is::Read, |n, at| format!("%k{n} = const {at} : i32\n%x{n} = load_tile %v[%k{n}] or %f : tile<16xf32>")),
    ("get", Is::Read, |n, at| format!("%k{n} = const {} : i32\n%x{n} = get %v[%k{n}]", at * 16 + 3)),
    ("gather", Is::Read, |n, at| format!("{}\n%x{n} = gather %v[%i{n}] or %f", indices(n, at))),
    ("store", Is::Write, |n, at| format!("%k{n} = const {at} : i32\nstore_tile %v[%k{n}], %t")),
    ("set", Is::Write, |n, at| format!("%k{n} = const {} : i32\nset %v[%k{n}], %f", at * 16 + 3)),
    ("scatter", Is::Scatter, |n, at| format!("{}\nscatter %v[%i{n}], %t", indices(n, at))),
    ("atomic_add", Is::Atomic, |n, at| format!("{}\natomic_add %v[%i{n}], %t", indices(n, at))),
    ("atomic_max", Is::Atomic, |n, at| format!("{}\natomic_max %v[%i{n}], %t", indices(n, at))),
    ("fetch_add", Is::Atomic, |n, at| format!("{}\n%x{n} = fetch_add %v[%i{n}], %t", indices(n, at))),
    ("atomic_swap", Is::Atomic, |n, at| format!("{}\n%x{n} = atomic_swap %v[%i{n}], %t", indices(n, at))),
    ("compare_exchange", Is::Atomic, |n, at| {
        format!("{}\n%x{n}, %y{n} = compare_exchange %v[%i{n}], %t, %t", indices(n, at))
    }),
    ("atomic_add_tile", Is::Atomic, |n, at| format!("%k{n} = const {at} : i32\natomic_add_tile %v[%k{n}], %t")),
];

fn indices(n: &str, at: i64) -> String {
    format!(
        "%j{n} = iota<16>\n%o{n} = const {} : i32\n%s{n} = splat %o{n} : tile<16xi32>\n%i{n} = add %j{n}, %s{n}",
        at * 16
    )
}

/// Updates by different operations depend on their order, as their result does not show.
fn conflicts(a: Way, b: Way) -> bool {
    let operation = |way: Way| way.0.trim_end_matches("_tile").replace("fetch_", "atomic_");
    a.1 != b.1 || a.1 == Is::Write || a.1 == Is::Atomic && operation(a) != operation(b)
}

/// One role does this at `x`, the other that at `y`.
fn text(a: Way, x: i64, b: Way, y: i64) -> String {
    let role = |name: &str, body: String| format!("{name} {{\n{body}\nttg.pipeline.finalize\nyield\n}}");
    format!(
        "kernel @pair(%c: mut tensor<f32>[M]) grid(1) role(one, 1) role(two, 1) {{\n%f = const 0.5 : f32\n%z = const 0 : i32\n\
         %t = splat %f : tile<16xf32>\n%v = shared %c : tensor<f32, 1>\nttg.roles {} {}\nreturn\n}}\n",
        role("one", (a.2)("a", x)),
        role("two", (b.2)("b", y)),
    )
}

fn kernel(text: &str) -> (WellFormed, Option<Code>) {
    let kernel = parse_one(text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let code = verify(kernel.clone()).err().map(|e| e[0].code);
    (well_formed(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}")), code)
}

fn explored(kernel: &WellFormed) -> bool {
    match explore(kernel, &make(&kernel.sig, 32, 0), None, &Limits::default()).unwrap() {
        Verdict::Safe(_) => false,
        Verdict::Finding(found, _) => {
            assert_eq!(found.kind, Kind::Race, "{found}");
            true
        }
        Verdict::Bound(what, _) => panic!("{what}"),
    }
}

/// On how many of so many schedules the sanitizer finds a race.
fn sampled(kernel: &WellFormed, seeds: u64) -> u64 {
    let races = |seed: &u64| {
        let options =
            Options { completion: Completion::Seeded(*seed), seed: (*seed > 0).then_some(*seed), ..Options::default() };
        let report = run(kernel, &mut make(&kernel.sig, 32, 0), None, &options).unwrap();
        report.findings.iter().any(|f| f.kind == Kind::Race)
    };
    (0..seeds).filter(races).count() as u64
}

#[test]
fn every_pair_of_accesses_is_judged_alike() {
    let mut pairs = 0;
    for a in WAYS {
        for b in WAYS {
            let text = text(a, 1, b, 1);
            let (kernel, code) = kernel(&text);
            let never_written = a.1 == Is::Read && b.1 == Is::Read;
            if never_written {
                assert_eq!(code, Some(Code::NeverStored), "{} and {}", a.0, b.0);
                continue;
            }
            let conflict = conflicts(a, b);
            assert_eq!(code, conflict.then_some(Code::TwoWriters), "{} and {}\n{text}", a.0, b.0);
            // Whether a scatter or an update comes first, each element has one of the two results.
            let strong = matches!(a.1, Is::Scatter | Is::Atomic) && matches!(b.1, Is::Scatter | Is::Atomic);
            assert_eq!(explored(&kernel), conflict && !strong, "the model checker on {} and {}", a.0, b.0);
            assert_eq!(sampled(&kernel, 4), if conflict && !strong { 4 } else { 0 }, "runs of {} and {}", a.0, b.0);
            pairs += usize::from(conflict && !strong);
        }
    }
    assert!(pairs > 40, "{pairs}");
}

#[test]
fn what_does_not_overlap_is_no_race() {
    for a in WAYS {
        for b in WAYS.into_iter().filter(|b| a.1 != Is::Read || b.1 != Is::Read) {
            let (kernel, code) = kernel(&text(a, 0, b, 1));
            // The verifier does not ask where.
            assert_eq!(code, conflicts(a, b).then_some(Code::TwoWriters), "{} and {}", a.0, b.0);
            assert_eq!(sampled(&kernel, 2), 0, "{} and {}", a.0, b.0);
        }
    }
}

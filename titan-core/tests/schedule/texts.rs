//! The text forms: what is read prints back to the same, errors have places, and nothing panics.

use crate::random::{self, Random};
use titan_core::diag::Code;
use titan_core::schedule::graph::{Draft, Site};
use titan_core::schedule::swing::Options;
use titan_core::schedule::{Schedule, check, plan, text};

const GRAPH: &str = "; a comment
graph gemm ii 256
unit copy
unit tensor
op load unit copy 96 latency 556 weight 32
op view
op mma unit tensor 256 latency 559 ; another one
edge data load -> view
edge data view -> mma
edge carried mma -> mma latency 256 distance 1
edge ring mma -> load distance 4
edge memory load -> load latency 0 distance 1
";

const SCHEDULE: &str = "schedule gemm ii 256 stages 3 live 96
op load stage 0 cycle 0 order 0
op view stage 2 cycle 556 order 1
op mma stage 2 cycle 556 order 2
";

fn reads_back(draft: &Draft) {
    let printed = text::print(draft);
    assert_eq!(text::draft(&printed).expect("it reads").0, *draft, "{printed}");
}

fn schedule_reads_back(schedule: &Schedule) {
    let printed = text::print_schedule(schedule);
    assert_eq!(text::schedule(&printed).expect("it reads").0, *schedule, "{printed}");
}

#[test]
fn what_is_read_prints_back() {
    let (draft, places) = text::draft(GRAPH).expect("it reads");
    assert_eq!((draft.name.as_str(), draft.ii), ("gemm", Some(256)));
    reads_back(&draft);
    let canonical: String =
        GRAPH.lines().skip(1).map(|line| line.split(" ;").next().unwrap_or_default().to_owned() + "\n").collect();
    assert_eq!(text::print(&draft), canonical);
    assert_eq!(draft.check().expect("it is valid").draft(), draft);
    let at = places.of(Site::Interval);
    assert_eq!((at.line, at.column), (2, 15));
    let (schedule, _) = text::schedule(SCHEDULE).expect("it reads");
    assert_eq!(text::print_schedule(&schedule), SCHEDULE);
    for seed in 1..=200 {
        let graph = random::graph(seed, 12);
        reads_back(&graph.draft());
        assert_eq!(graph.draft().check().as_ref(), Ok(&graph), "{seed}");
        schedule_reads_back(plan(&graph, &Options::default()).schedule());
    }
}

/// The first error of a text of either form.
fn error(read: Result<(), text::Errors>) -> (Code, u32, u32, String) {
    let error = read.expect_err("it does not read").remove(0);
    assert!(!error.help.is_empty());
    (error.code, error.site.line, error.site.column, error.title)
}

#[test]
fn errors_have_places() {
    for (text, line, column, title) in [
        ("", 1, 1, "the text contains no graph"),
        ("; only\n\n", 2, 1, "the text contains no graph"),
        ("unit u\n", 1, 1, "expected `graph`, found `unit`"),
        ("graph\n", 1, 6, "expected the name of the graph, found the end of the line"),
        ("graph 7\n", 1, 7, "expected the name of the graph, found `7`"),
        ("graph g ii\n", 1, 11, "expected a number, found the end of the line"),
        ("graph g\ngraph h\n", 2, 1, "expected `unit`, `op` or `edge`, found `graph`"),
        ("graph g\n  op  é latency 3\n", 2, 7, "expected the name of an operation, found `é`"),
        ("graph g\nop a latency +3\n", 2, 14, "expected a number of at most 63 bits, found `+3`"),
        ("graph g\nop a latency 9223372036854775808\n", 2, 14, "expected a number of at most 63 bits"),
        ("graph g\nop a weight 1 latency 1\n", 2, 15, "expected the end of the line, found `latency`"),
        ("graph g\nedge flow a -> b\n", 2, 6, "expected `data`, `carried`, `ring` or `memory`, found `flow`"),
        ("graph g\nedge data a b\n", 2, 13, "expected `->`, found `b`"),
    ] {
        let found = error(text::draft(text).map(|_| ()));
        assert_eq!((found.0, found.1, found.2), (Code::ScheduleText, line, column), "{text:?}: {found:?}");
        assert!(found.3.starts_with(title), "{text:?}: {found:?}");
    }
    for (text, line, column) in [
        ("graph g", 1, 1),
        ("schedule g ii 3 live 0 stages 1", 1, 17),
        ("schedule g ii 3 stages 1 live 0\nop a stage 0 order 1", 2, 14),
        ("schedule g ii 3 stages 1 live 0\nunit a", 2, 1),
    ] {
        let found = error(text::schedule(text).map(|_| ()));
        assert_eq!((found.0, found.1, found.2), (Code::ScheduleText, line, column), "{text:?}: {found:?}");
    }
    // Every line is read, whatever is wrong with the others.
    let all = text::draft("graph 1\nop\nunit 2\nedge data\n").expect_err("nothing is right");
    assert_eq!(all.iter().map(|error| error.site.line).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

/// Reads a text in both forms; what is accepted must print back, and what is valid can be scheduled and checked.
fn read_anything(text: &str) -> bool {
    if let Ok((schedule, _)) = text::schedule(text) {
        schedule_reads_back(&schedule);
        let graph = text::graph(GRAPH).expect("it is valid");
        drop(check::check(&graph, &schedule, None));
        return true;
    }
    let Ok((draft, places)) = text::draft(text) else { return false };
    reads_back(&draft);
    match draft.check() {
        Ok(graph) => {
            assert_eq!(graph.draft().check(), Ok(graph.clone()));
            let plan = plan(&graph, &Options { steps: 3000, ..Options::default() });
            assert_eq!(check::check(&graph, plan.schedule(), None).err().map(|e| e[0].code), None, "{text}");
        }
        Err(errors) => assert!(errors.iter().all(|error| places.of(error.site).line >= 1)),
    }
    true
}

#[test]
fn random_texts_never_panic() {
    let mut random = Random(1);
    for _ in 0..test_depth::cases(20_000, 2_000) {
        let length = random.index(80);
        let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        read_anything(&String::from_utf8_lossy(&bytes));
    }
    let words = [
        "graph",
        "schedule",
        "unit",
        "op",
        "edge",
        "data",
        "ring",
        "carried",
        "memory",
        "->",
        "ii",
        "stages",
        "live",
        "stage",
        "cycle",
        "order",
        "latency",
        "weight",
        "distance",
        "a",
        "b",
        "\n",
        "\n",
        "\n",
        ";",
        "0",
        "1",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "4294967296",
    ];
    let accepted = (0..test_depth::cases(100_000, 10_000)).filter(|_| {
        let mut text = String::new();
        if random.chance(50) {
            text.push_str("graph g\nop a\nop b\n");
        }
        for _ in 0..random.index(24) {
            text.push_str(words[random.index(words.len())]);
            text.push(' ');
        }
        read_anything(&text)
    });
    assert!(accepted.count() > 50);
}

#[test]
fn damaged_texts_never_panic() {
    let numbers = ["0", "1", "-1", "255", "2147483648", "9223372036854775807", "-9223372036854775808"];
    let mut random = Random(2);
    let mut accepted = 0;
    for case in 0..test_depth::cases(40_000, 4_000) {
        let mut text: Vec<char> = if case % 2 == 0 { GRAPH } else { SCHEDULE }.chars().collect();
        for _ in 0..=random.index(3) {
            let at = random.index(text.len());
            match random.below(5) {
                0 => drop(text.remove(at)),
                1 => text.insert(at, char::from(random.below(128) as u8)),
                2 => text[at] = char::from(random.below(128) as u8),
                3 => {
                    let end = (at + random.index(40)).min(text.len());
                    let part: Vec<char> = text[at..end].to_vec();
                    let to = random.index(text.len());
                    text.splice(to..to, part);
                }
                _ => {
                    // A number in place of another.
                    let Some(start) = (at..text.len()).find(|i| text[*i].is_ascii_digit()) else { continue };
                    let end = (start..text.len()).find(|i| !text[*i].is_ascii_digit()).unwrap_or(text.len());
                    text.splice(start..end, numbers[random.index(numbers.len())].chars());
                }
            }
            if text.is_empty() {
                break;
            }
        }
        accepted += usize::from(read_anything(&text.iter().collect::<String>()));
    }
    assert!(accepted > 100, "{accepted}");
}

//! What is wrong with a graph: codes and places.

use titan_core::diag::Code;
use titan_core::schedule::text;

const VALID: &str = "graph g
unit u
op a unit u 2 latency 3 weight 1
op b latency 4
edge data a -> b
edge carried b -> a distance 1
edge ring b -> a distance 2
edge memory a -> b
edge memory b -> a latency 0 distance 1
";

#[test]
fn a_valid_graph_is_accepted() {
    let graph = text::graph(VALID).expect("it is valid");
    assert_eq!((graph.name(), graph.ops().len(), graph.edges().len()), ("g", 2, 5));
    // The latency of an edge is that of its first operation, unless it is written.
    let latencies: Vec<i64> = graph.edges().iter().map(|edge| edge.latency).collect();
    assert_eq!(latencies, [3, 4, 4, 3, 0]);
}

/// The errors of a text: code, line, column and title.
fn errors(text: &str) -> Vec<(Code, u32, u32, String)> {
    let errors = text::graph(text).expect_err("it is not valid");
    for error in &errors {
        assert!(!error.help.is_empty() && !error.title.ends_with('.'), "{error:?}");
    }
    errors.into_iter().map(|e| (e.code, e.site.line, e.site.column, e.title)).collect()
}

/// The only error of the valid text with one line replaced.
fn error(old: &str, new: &str) -> (Code, u32, u32, String) {
    assert!(VALID.contains(old), "{old}");
    let mut all = errors(&VALID.replace(old, new));
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn names_are_known_and_unique() {
    let unknown = error("edge data a -> b", "edge data a -> c");
    assert_eq!(unknown, (Code::ScheduleName, 5, 16, "there is no operation `c`".to_owned()));
    let unit = error("op a unit u 2", "op a unit v 2");
    assert_eq!((unit.0, unit.1, unit.2), (Code::ScheduleName, 3, 11));
    let twice = error("op b latency 4", "op b latency 4\nop b");
    assert_eq!((twice.0, twice.1, twice.2), (Code::ScheduleName, 5, 4));
    let units = error("unit u\n", "unit u\nunit u\n");
    assert_eq!((units.0, units.1, units.2), (Code::ScheduleName, 3, 6));
    assert_eq!(errors(&VALID.replace("op b latency 4", "op c")).len(), 5);
}

#[test]
fn numbers_are_in_range() {
    for (old, new, line, column) in [
        ("unit u 2 latency 3", "unit u 0 latency 3", 3, 13),
        ("unit u 2 latency 3", "unit u -2 latency 3", 3, 13),
        ("latency 3", "latency -3", 3, 23),
        ("weight 1", "weight -1", 3, 32),
        ("edge carried b -> a distance 1", "edge carried b -> a distance -1", 6, 30),
        ("edge carried b -> a distance 1", "edge carried b -> a", 6, 14),
        ("edge data a -> b", "edge data a -> b distance 1", 5, 27),
        ("edge ring b -> a distance 2", "edge ring b -> a distance 0", 7, 27),
        ("b -> a latency 0", "b -> a latency -1", 9, 28),
        ("graph g", "graph g ii 0", 1, 12),
        ("graph g", "graph g ii 2147483649", 1, 12),
        // Sums over the whole graph.
        ("op b latency 4", "op b latency 1000000000", 7, 11),
        ("op b latency 4", "op b latency 9223372036854775807", 4, 14),
        ("weight 1", "weight 2147483649", 3, 32),
        ("distance 2", "distance 16777216", 7, 27),
        ("distance 2", "distance 9223372036854775807", 7, 27),
    ] {
        let found = error(old, new);
        assert_eq!((found.0, found.1, found.2), (Code::ScheduleNumber, line, column), "{new}: {found:?}");
    }
    assert_eq!(errors("graph g\n")[0].0, Code::ScheduleNumber);
    let many: String = (0..1025).map(|i| format!("op o{i}\n")).collect();
    assert_eq!(errors(&format!("graph g\n{many}"))[0].0, Code::ScheduleNumber);
}

#[test]
fn operations_do_not_wait_for_themselves() {
    let found = error("edge memory a -> b\n", "edge memory b -> a\n");
    assert_eq!((found.0, found.1), (Code::ScheduleCircle, 8));
    assert_eq!(found.3, "operations wait for each other in the same iteration: `a`, `b` and again `a`");
    let own = error("edge memory a -> b\n", "edge memory b -> b\n");
    assert_eq!((own.0, own.1, own.2), (Code::ScheduleCircle, 8, 13));
    assert_eq!(own.3, "`b` waits for itself in the same iteration");
    // What only follows such a cycle is not named.
    let text =
        "graph g\nop x\nop a\nop b\nop y\nedge data x -> a\nedge data a -> b\nedge data b -> a\nedge data b -> y\n";
    let found = errors(text);
    assert_eq!(found.len(), 1);
    assert!(!found[0].3.contains("`x`") && !found[0].3.contains("`y`"), "{found:?}");
}

#[test]
fn operations_do_not_overlap_themselves() {
    let found = error("graph g", "graph g ii 1");
    assert_eq!((found.0, found.1, found.2), (Code::ScheduleSelfOverlap, 3, 13));
    assert!(text::graph(&VALID.replace("graph g", "graph g ii 2")).is_ok());
}

#[test]
fn all_errors_are_reported() {
    let found = errors("graph g\nop a latency -1 weight -1\nop a\nedge data a -> x distance 1\n");
    let codes: Vec<Code> = found.iter().map(|error| error.0).collect();
    use Code::{ScheduleName, ScheduleNumber};
    assert_eq!(codes, [ScheduleName, ScheduleNumber, ScheduleNumber, ScheduleName, ScheduleNumber]);
}

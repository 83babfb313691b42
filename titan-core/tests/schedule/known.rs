//! The inner loops whose least intervals are published: the bounds, and that the search reaches them.
//!
//! The graphs are data: numbers of cycles and dependences, in the text form. That the intervals are the least possible was proved with
//! a solver of constraints by others, and follows here from the bounds.

use crate::execution;
use titan_core::schedule::bounds::bounds;
use titan_core::schedule::graph::Graph;
use titan_core::schedule::swing::Options;
use titan_core::schedule::{Plan, check::check, plan, text};

/// The loop of a matrix product.
pub const GEMM: &str = include_str!("graphs/gemm.graph");

/// A loop: its text, the numbers of operations and edges, both bounds, and the least interval.
struct Known {
    name: &'static str,
    text: &'static str,
    size: (usize, usize),
    bounds: (i64, i64),
    least: i64,
}

macro_rules! known {
    ($($name:literal $ops:literal / $edges:literal, $resource:literal / $recurrence:literal => $least:literal;)*) => {
        const KNOWN: &[Known] = &[$(Known {
            name: $name,
            text: include_str!(concat!("graphs/", $name, ".graph")),
            size: ($ops, $edges),
            bounds: ($resource, $recurrence),
            least: $least,
        }),*];
    };
}

known! {
    "gemm" 5 / 5, 256 / 256 => 256;
    "attention_forward" 31 / 40, 1199 / 1325 => 1325;
    "attention_backward" 37 / 44, 683 / 1033 => 1033;
    "layer_norm" 23 / 28, 517 / 0 => 517;
    "weight_gradient" 9 / 10, 256 / 256 => 256;
    "order_of_waits" 16 / 19, 512 / 825 => 825;
    // Their bounds are published, and are reached.
    "gemm_persistent" 7 / 7, 559 / 0 => 559;
    "gemm_bias" 6 / 7, 256 / 256 => 256;
    "gemm_two_halves" 7 / 7, 1024 / 0 => 1024;
}

fn graph(known: &Known) -> Graph {
    text::graph(known.text).unwrap_or_else(|errors| panic!("{}: {errors:?}", known.name))
}

#[test]
fn bounds_are_the_published_ones() {
    for known in KNOWN {
        let graph = graph(known);
        assert_eq!((graph.ops().len(), graph.edges().len()), known.size, "{}", known.name);
        let bounds = bounds(&graph);
        let resource = bounds.resource.map_or(0, |(_, cycles)| cycles);
        let recurrence = bounds.recurrence.as_ref().map_or(0, |cycle| cycle.ratio.ceil());
        assert_eq!((resource, recurrence), known.bounds, "{}", known.name);
    }
}

#[test]
fn the_least_intervals_are_found() {
    for known in KNOWN {
        let graph = graph(known);
        let Plan::Overlapped(found) = plan(&graph, &Options::default()) else { panic!("{} is sequential", known.name) };
        assert_eq!(found.schedule.ii, known.least, "{}", known.name);
        assert_eq!(check(&graph, &found.schedule, None), Ok(()), "{}", known.name);
        assert!(execution::is_legal(&graph, &found.schedule, None), "{}", known.name);
    }
}

/// The same arguments give the same bytes, and nothing depends on what was scheduled before.
#[test]
fn schedules_are_deterministic() {
    let all = || -> Vec<String> {
        KNOWN.iter().map(|known| text::print_schedule(plan(&graph(known), &Options::default()).schedule())).collect()
    };
    assert_eq!(all(), all());
}

/// The example of docs/scheduling.md is what is printed.
#[test]
fn the_page_shows_the_schedule_of_its_example() {
    let page = include_str!("../../../docs/scheduling.md");
    let block = |begin: &str| {
        let mut blocks = page.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next());
        blocks.find(|block| block.starts_with(begin)).expect("the page has this block")
    };
    let graph = text::graph(block("graph gemm\n")).expect("it is valid");
    assert_eq!(text::print_schedule(plan(&graph, &Options::default()).schedule()), block("schedule gemm "));
}

//! The recurrences of a graph: its strongly connected components, and how critical each of them is.
//!
//! Deliberately absent: single cycles of edges. There may be exponentially many; the most critical one of each component is enough.

use super::bounds::{Ratio, maximum_ratio};
use super::graph::Graph;

/// Operations that reach each other along edges; a single operation on no cycle is a component, too.
#[derive(Debug)]
pub(super) struct Component {
    /// Its operations, in the order of the program.
    pub(super) ops: Vec<usize>,
    /// The maximum ratio of its cycles, if it has one.
    pub(super) ratio: Option<Ratio>,
}

/// The components of a graph.
#[derive(Debug)]
pub(super) struct Recurrences {
    /// The component of each operation.
    pub(super) of: Vec<usize>,
    /// The components, in a topological order of the edges between them.
    pub(super) all: Vec<Component>,
}

/// The edges of each operation.
#[derive(Debug)]
pub(super) struct Adjacency {
    /// The indices of the edges from each operation.
    pub(super) out: Vec<Vec<usize>>,
    /// The indices of the edges to each operation.
    pub(super) into: Vec<Vec<usize>>,
}

impl Adjacency {
    pub(super) fn of(graph: &Graph) -> Adjacency {
        let n = graph.ops().len();
        let mut all = Adjacency { out: vec![Vec::new(); n], into: vec![Vec::new(); n] };
        for (e, edge) in graph.edges().iter().enumerate() {
            all.out[edge.from].push(e);
            all.into[edge.to].push(e);
        }
        all
    }

    /// The operations that can be reached from some, along edges or against them; those themselves included.
    pub(super) fn reached(&self, graph: &Graph, from: &[usize], along: bool) -> Vec<bool> {
        let mut is_reached = vec![false; self.out.len()];
        let mut left = from.to_vec();
        while let Some(op) = left.pop() {
            // Only operations that were not reached before add more, so each adds its edges once.
            if !std::mem::replace(&mut is_reached[op], true) {
                let edges = if along { &self.out[op] } else { &self.into[op] };
                left.extend(edges.iter().map(|e| &graph.edges()[*e]).map(|e| if along { e.to } else { e.from }));
            }
        }
        is_reached
    }
}

impl Recurrences {
    pub(super) fn of(graph: &Graph, adjacency: &Adjacency) -> Recurrences {
        let n = graph.ops().len();
        let mut of = vec![usize::MAX; n];
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for op in 0..n {
            if of[op] == usize::MAX {
                let after = adjacency.reached(graph, &[op], true);
                let before = adjacency.reached(graph, &[op], false);
                // Reached in both directions is the definition of a strongly connected component. It costs a search of
                // the graph for each component, where Tarjan's algorithm needs one; with as few operations as a loop
                // has, the definition is preferred.
                let group: Vec<usize> = (0..n).filter(|other| after[*other] && before[*other]).collect();
                group.iter().for_each(|other| of[*other] = groups.len());
                groups.push(group);
            }
        }
        let order = topological(graph, &of, groups.len());
        let mut place = vec![0; groups.len()];
        order.iter().enumerate().for_each(|(i, group)| place[*group] = i);
        of.iter_mut().for_each(|group| *group = place[*group]);
        let component = |(i, group): (usize, &usize)| Component {
            ops: groups[*group].clone(),
            // Every cycle of edges lies in one component, so that the maximum over a component's edges is that of all
            // cycles through its operations.
            ratio: maximum_ratio(n, graph.edges(), |op| of[op] == i).map(|critical| critical.ratio),
        };
        let all = order.iter().enumerate().map(component).collect();
        Recurrences { of, all }
    }
}

/// The components in an order in which edges between them lead forwards. There is one: components that reach each other are the same.
fn topological(graph: &Graph, of: &[usize], count: usize) -> Vec<usize> {
    let between: Vec<(usize, usize)> =
        graph.edges().iter().map(|edge| (of[edge.from], of[edge.to])).filter(|(from, to)| from != to).collect();
    let mut waits = vec![0_usize; count];
    between.iter().for_each(|(_, to)| waits[*to] += 1);
    let mut is_done = vec![false; count];
    let mut order = Vec::with_capacity(count);
    // Each round finishes one component. There is always one that waits for none of the remaining ones: otherwise going
    // from each to one that it waits for would return to a component, and these would reach each other.
    while let Some(next) = (0..count).find(|group| !is_done[*group] && waits[*group] == 0) {
        is_done[next] = true;
        order.push(next);
        between.iter().filter(|(from, _)| *from == next).for_each(|(_, to)| waits[*to] -= 1);
    }
    order
}

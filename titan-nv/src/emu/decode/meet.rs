//! The reconvergence points of branches: the immediate post-dominator of each.
//!
//! The simple iterative algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001) on the
//! reversed graph of basic blocks. Threads that exit early are not waited for, so paths that end early do not count; a
//! branch whose paths have no common place before the end has no reconvergence point, nor has one whose paths meet at an exit. A point
//! that a path does not come to, because it ends before, is *loose*: see [`Meet`].

use crate::emu::op::{Inst, Meet, Op};

const NONE: usize = usize::MAX;

/// Basic blocks: first instruction, and successors. The last block is the end.
struct Graph {
    starts: Vec<usize>,
    successors: Vec<Vec<usize>>,
}

/// The blocks; with `every_exit`, of all ways to the end.
fn graph(code: &[Inst], every_exit: bool) -> Graph {
    let mut leader = vec![false; code.len() + 1];
    leader[0] = true;
    for (i, inst) in code.iter().enumerate() {
        let targets: Vec<u32> = match &inst.op {
            Op::Branch { target } => vec![*target],
            Op::BranchIndexed { targets, .. } => targets.clone(),
            Op::Exit | Op::Trap | Op::External { .. } => vec![],
            _ => continue,
        };
        leader[i + 1] = true;
        targets.iter().filter(|t| (**t as usize) < code.len()).for_each(|t| leader[*t as usize] = true);
    }
    let starts: Vec<usize> = (0..code.len()).filter(|i| leader[*i]).collect();
    let block = |at: usize| starts.partition_point(|s| *s <= at) - 1;
    let end = starts.len();
    let mut successors = Vec::new();
    let mut exits: Vec<usize> = Vec::new();
    for (b, _) in starts.iter().enumerate() {
        let last = starts.get(b + 1).map_or(code.len(), |next| *next) - 1;
        let inst = &code[last];
        let (mut to, leaves): (Vec<usize>, bool) = match &inst.op {
            Op::Branch { target } => (vec![block(*target as usize)], true),
            Op::BranchIndexed { targets, .. } => (targets.iter().map(|t| block(*t as usize)).collect(), true),
            Op::Exit | Op::Trap | Op::External { .. } => (vec![], true),
            _ => (vec![], false),
        };
        if (!leaves || inst.guard.is_some()) && last + 1 < code.len() {
            to.push(b + 1);
        } else if to.is_empty() {
            exits.push(b);
        }
        successors.push(to);
    }
    // Threads that exit early are not waited for, so only the last way to the end counts.
    let reached = reachable(&successors);
    exits.retain(|b| reached[*b]);
    let last = exits.len().saturating_sub(1);
    exits.drain(..if every_exit { 0 } else { last });
    exits.into_iter().for_each(|b| successors[b].push(end));
    Graph { starts, successors }
}

fn reachable(successors: &[Vec<usize>]) -> Vec<bool> {
    let (mut seen, mut stack) = (vec![false; successors.len()], vec![0]);
    while let Some(b) = stack.pop() {
        if seen.get(b) == Some(&false) {
            seen[b] = true;
            stack.extend(&successors[b]);
        }
    }
    seen
}

/// Blocks in postorder of the reversed graph, from the end.
fn postorder(graph: &Graph) -> Vec<usize> {
    let n = graph.starts.len() + 1;
    let mut predecessors = vec![Vec::new(); n];
    for (b, to) in graph.successors.iter().enumerate() {
        to.iter().for_each(|t| predecessors[*t].push(b));
    }
    let (mut order, mut seen, mut stack) = (Vec::new(), vec![false; n], vec![(n - 1, 0)]);
    seen[n - 1] = true;
    while let Some((b, i)) = stack.pop() {
        if let Some(p) = predecessors[b].get(i) {
            stack.push((b, i + 1));
            if !seen[*p] {
                seen[*p] = true;
                stack.push((*p, 0));
            }
        } else {
            order.push(b);
        }
    }
    order
}

/// Sets [`Inst::meet`] of every branch.
pub(super) fn annotate(code: &mut [Inst]) {
    let (some, every) = (graph(code, false), graph(code, true));
    let (near, far) = (dominators(&some), dominators(&every));
    for (b, dom) in near.iter().enumerate().take(some.starts.len()) {
        let last = some.starts.get(b + 1).map_or(code.len(), |next| *next) - 1;
        let exits = |at: &usize| matches!(code[*at].op, Op::Exit) && code[*at].guard.is_none();
        let meet = some.starts.get(*dom).copied().filter(|at| !exits(at));
        if let Some(pc) = meet.and_then(|m| u32::try_from(m).ok()) {
            code[last].meet = Some(Meet { pc, loose: far[b] != *dom });
        }
    }
}

/// The immediate post-dominator of each block.
fn dominators(graph: &Graph) -> Vec<usize> {
    let order = postorder(graph);
    let end = graph.starts.len();
    let mut number = vec![NONE; end + 1];
    order.iter().enumerate().for_each(|(i, b)| number[*b] = i);
    let mut idom = vec![NONE; end + 1];
    idom[end] = end;
    let mut changed = true;
    while changed {
        changed = false;
        for b in order.iter().rev().copied().filter(|b| *b != end) {
            let mut new = NONE;
            for s in graph.successors[b].iter().copied().filter(|s| idom[*s] != NONE) {
                new = if new == NONE { s } else { intersect(&idom, &number, new, s) };
            }
            if new != idom[b] {
                idom[b] = new;
                changed = true;
            }
        }
    }
    idom
}

fn intersect(idom: &[usize], number: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while number[a] < number[b] {
            a = idom[a];
        }
        while number[b] < number[a] {
            b = idom[b];
        }
    }
    a
}

//! Rules 66 and 83: the threads of one role, or of a kernel without roles.
//!
//! * `order`: their accesses are ordered by barriers between them, and copies are waited for (rule 66);
//! * `written`: what they read of shared memory has been written on every path (rule 83);
//! * `graph`, `accesses`, `bits`: the control flow, the accesses by number, and sets of them;
//! * `tiles`: outputs of which different iterations write different elements.
//!
//! Both are analyses of the same control flow, one of what may have happened and one of what must have. Nothing of
//! [`crate::synchronize`], which places the barriers, is used: a mistake there is not repeated here.
//!
//! Deliberately absent: the order of different roles, which claims and their barriers determine (`claims`, `crate::verify::coexecution`).

mod accesses;
mod bits;
mod graph;
mod order;
mod tiles;
mod written;

use self::accesses::Accesses;
use self::graph::Graph;
use crate::ir::Kernel;
use crate::verify::Error;

/// Violations of rule 66.
pub(super) fn unordered(kernel: &Kernel) -> Vec<Error> {
    let accesses = Accesses::new(kernel);
    order::check(kernel, &Graph::new(kernel, &accesses), &accesses)
}

/// Violations of rules 66 and 83.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let accesses = Accesses::new(kernel);
    let graph = Graph::new(kernel, &accesses);
    let mut errors = order::check(kernel, &graph, &accesses);
    errors.extend(written::check(kernel, &graph, &accesses));
    errors
}

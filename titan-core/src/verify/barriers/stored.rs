//! Rule 84: a program that was lowered stores what its kernel stores.
//!
//! Rule 25 finds outputs to which nothing is stored at all. A program that lacks one of several stores to an output obeys it, and all other
//! rules, and leaves elements as they were. So the program is compared with the kernel from which it was made: for each place in the
//! source, and each output, it has at least as many operations that write the output as the kernel has. Stores of tiles may have become
//! bulk stores, and stores of stages those of slots.
//!
//! The kernel is the verified one, and the one that is laid out, with its loops expanded, in which a store may be made at several places:
//! every later pass keeps its stores one by one. That the expanded loops store what the loops before did is shown by the checker of expanded
//! loops ([`crate::pipeline::modulo`]).
//!
//! Deliberately absent: what is stored, and to which elements, which rules 64 to 66 and 78 are about; under which conditions.

use super::wrong;
use crate::analysis::number::{root, tensor_of};
use crate::collections::SortedMap;
use crate::ir::traffic::{On, traffic};
use crate::ir::{Kernel, Loc};
use crate::verify::Error;

/// How many operations of each place in the source write each output.
type Stores = SortedMap<(usize, Loc), usize>;

fn stores(kernel: &Kernel) -> Stores {
    let mut all = Stores::new();
    kernel.walk(&mut |_, op| {
        let writes = traffic(&op.kind).accesses.into_iter().flatten().any(|a| a.on == On::Tensor && a.writes);
        let tensor = op.args.first().filter(|_| writes).and_then(|to| tensor_of(kernel, *to));
        if let Some(param) = tensor.and_then(|tensor| root(kernel, tensor)) {
            *all.entry((param, op.loc)).or_default() += 1;
        }
    });
    all
}

/// Violations of rule 84.
pub(in crate::verify) fn check(kernel: &Kernel, program: &Kernel) -> Vec<Error> {
    let made = stores(program);
    let missing = stores(kernel).into_iter().filter(|(store, n)| made.get(store).is_none_or(|made| made < n));
    let error = |((param, loc), _): ((usize, Loc), usize)| {
        let name = kernel.display_name(kernel.param(param));
        wrong(loc, format!("a store to `{name}` is missing in the program"))
    };
    missing.map(error).collect()
}

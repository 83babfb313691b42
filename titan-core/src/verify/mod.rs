//! The verifier. Only [`verify`] creates [`Verified`] kernels, and back ends accept nothing else.
//!
//! The rules are listed in the groups in which they are checked. A group relies on the groups before it, so all errors of the first group
//! with errors are reported, in program order. [`verify`] does not panic on any input.
//!
//! **Arenas** (`ids`)
//!
//! 1. Every operation, value and block that is referred to exists. T0802
//! 2. Every block is the body or one region of one operation; every operation is in one block; regions are nested at most
//!    [`MAX_DEPTH`] deep. T0802
//! 3. Every value is one parameter, one block argument or one result, and records which; value number `i` is parameter `i`.
//!    T0803
//!
//! **Structure** (`structure`)
//!
//! 4. A block ends in its only terminator. T0802
//! 5. `for` and `loop` have one region, `if` two, reductions and scans by a closure one, others none. T0802
//! 6. A block has the arguments of its operation: the index and the carried values of a `for`, the carried values
//!    of a `loop`, two scalars for a closure. T0802
//! 7. The body ends in `return`, the body of a loop in `continue`, `break` or `return`, the arm of an `if` in any of these or
//!    `yield`, a closure in `yield`. `break<n>` and `continue<n>` have `n` more enclosing loops besides their own. T0802
//! 8. A terminator passes as many values as its target receives. T0802
//! 9. A closure contains only pure operations without regions. T0802
//!
//! **Types and visibility** (`types`, `scope`)
//!
//! 10. An operation has valid operands, and the result types that follow from them ([`crate::ir::infer`]). T0202 …
//!     T0214, T0801, T0804
//! 11. Bounds are `i32`, conditions `bool`; the values of a terminator have the types of its target; a closure operates on
//!     scalars; tensors are neither carried nor yielded. T0801
//! 12. A value is used after its definition, in the same block or in nested blocks. T0803
//! 13. A constant is a value of its type. T0215
//!
//! **Signature** (`signature`)
//!
//! 14. A parameter's value has the declared type; a tensor has at least one axis. T0302, T0804
//! 15. A shape name is bound once, by a parameter that is not optional, before it is used; host expressions refer to integer
//!     arguments and existing axes. T0301, T0307
//! 16. A host expression does not divide by zero, and no requirement is constantly false. T0212, T0306
//! 17. A grid has at most three axes, without a constant extent below 1; it is persistent if and only if a loop is distributed.
//!     T0304
//! 18. `program_id` and `num_programs` refer to an axis of the grid. T0305
//!
//! **Control and use** (`control`, `optional`, `distributed`)
//!
//! 19. No operation leaves a pipelined loop early. T0501
//! 20. A pipelined loop is not nested in another one. T0503
//! 21. A loop can terminate: `loop` has an exit, and a step is positive, whatever it is computed from. T0504
//! 22. Integers are not divided by the constant zero. T0212
//! 23. An optional tensor is used only where it is known to be present. T0307
//! 24. No operation stores to an input. T0405
//! 81. No operation leaves a distributed loop early. T0403
//! 82. Either every program runs a distributed loop, or none does, and all of them equally often. T0403
//!
//! **The output rule** ([`crate::analysis::partition`])
//!
//! 25. Every `&mut` tensor is stored to. T0401
//! 26. It is partitioned, scattered to, updated atomically or exempted by the user (`shared`), and only one of these. T0402, T0406
//! 27. Parts of 4-bit outputs do not share bytes. T0407
//! 34. No output is copied from. T0617 (`pipes::tensors`)
//!
//! **Pipelines: declarations** (`pipes::shape`)
//!
//! 28. The warps are specialized into roles once, at the top level, at the end of the kernel; roles have distinct names and 1 to 32
//!     warps together. T0601
//! 29. A ring has 1 to 64 slots of 1 to 4 tiles, and operations name existing rings. T0602
//! 30. Copies, writes, views and stores fit the stage, and the expected bytes are those of the stage. T0613
//! 31. One role fills a ring and at least one reads it; a ring is copied to and read, or written and stored. T0608
//! 32. A tile is used by the role that computes it, unless it is a function of scalars. T0615
//! 33. An output that one role stores, scatters to or updates atomically is accessed by other roles only by scatters as well, by the same
//!     atomic update, or for other tiles of its loop, whose parts of the output are disjoint. T0616
//! 35. A role ends in `finalize`, which occurs nowhere else. T0619
//! 62. The rings and the regions fit in the shared memory of a program. T0620
//! 77. A role with several instances is one loop over the tiles of an output, of which each instance takes some, and so are the roles with
//!     which it shares rings; no third role uses such a ring. T0621
//!
//! **Pipelines: tokens** (`pipes::tokens`)
//!
//! 36. A token is used on every path. T0603
//! 37. It is used once. T0604
//! 38. A stage is read before it is released, by MMAs in flight too. T0605
//! 39. The parts of a stage are joined, all of the same stage. T0606
//! 40. A stage that may be poisoned is read only where it is known not to be. T0607
//!
//! 63. A role does not access elements that it has stored from a staging slot, not even by another such store. T0707
//!
//! **Pipelines: all roles together** (`coexecution`, `coexecution::rings`)
//!
//! 41. A ring is filled exactly as often as each reader reads it. T0609
//! 42. No role waits for an event that depends on its own progress: for a stage (T0610), or for a slot that it holds (T0611).
//! 43. Loops and branches of the roles correspond. T0612
//! 44. A stated time is the time of the ring's clock. T0614
//! 45. A staging slot is acquired again only after its store has been waited for. T0618
//!
//! `docs/protocol.md` proves the consequences of these rules.
//!
//! **Barriers** (`barriers`): programs in the barrier dialect.
//!
//! 46. A region is within shared memory, and has the parts that are selected; a tile is within its part, and aligned. T0701
//! 47. A barrier has an aligned word of its own that nothing else accesses. T0702
//! 48. A barrier is initialised once, before it is used, with a valid count, and fenced. T0703, T0704
//! 49. Copies fit their regions, which are aligned; they read inputs, and write outputs that are exempt from the output rule, or tiles of
//!     outputs. T0701, T0617, T0402, T0405, T0712
//! 50. Before `ttg.roles`, barriers are only initialised, and parts and barriers are only selected by constants. T0712
//! 51. Named barriers, warpgroups, registers and priorities are within the hardware limits; each thread of a role arrives for its
//!     own copies; in a program that is laid out, a named barrier counts the threads of its role. T0714
//! 52. Tokens of groups are numbered in program order. T0715
//! 53. A fence is between two different proxies. T0713
//! 70. A bulk copy of a tile is one that a tensor map describes ([`crate::analysis::boxes`]). T0903
//! 79. A box with an element stride is one that a tensor map describes, and where zeros are wanted beyond it, no element of the tensor
//!     is copied there. T0903, T0906
//!
//! All roles together, for any number of iterations, by the induction of `coexecution` (`coexecution::barriers`):
//!
//! 54. Conflicting accesses to shared memory, to tensor memory, and to outputs of bulk stores, are ordered by happens-before; asynchronous
//!     work is waited for. T0707, T0709
//! 55. The arrivals of a phase match the count of its barrier, and the copied bytes match the expected ones. T0704, T0705
//! 56. Arrivals and waits fall into the intended phases; parities follow the clocks of their barriers. T0706, T0711
//! 57. Every wait terminates. T0708
//! 58. A barrier is invalidated when no role uses it any more, and not used after. T0703
//! 59. At the end nothing is in flight, and groups are waited for in order. T0710, T0715
//! 60. A protocol that cannot be analysed is rejected; every index is in range. T0712, T0701
//!
//! If all of this holds:
//!
//! 61. Accesses through the async proxy are fenced from earlier generic accesses ([`crate::analysis::proxy`]). T0716
//!
//! Tensor memory:
//!
//! 73. An MMA has attributes and element types that are allowed together. T0717
//! 74. Its shape is supported for them. T0718
//! 75. Columns are allocated in powers of two, at most as many as exist, freed once, and not used after that. T0719
//! 76. Operations are executed by one warp, or by groups of four, and have the same number of CTAs (`cta_group`). T0720, T0714
//! 80. Where barriers order accesses to tensor memory, the roles also execute its fences. T0721
//!
//! **Barrier programs that are laid out over threads** (`barriers`, with a table), by [`barrier_program`]. They obey the rules above that do
//! not depend on the order of execution, and rules 14 to 24, 28, 29, 32, 33, 35, 81 and 82. Instead of rules 54 to 60:
//!
//! 64. Their claims obey the rules of rings, and a slot is accessed only by the role that holds it, in bytes that were filled, and by its
//!     threads in order. T0609 to T0612, T0707, T0712
//! 65. Their operations implement the claims. T0712
//! 66. Threads of a role are ordered by barriers, and copies are waited for. T0707
//! 67. Tiles are laid out over all warps that execute their operations, and over no others. T0712
//! 68. Accesses through the async proxy are fenced, as in rule 61. T0716
//! 69. Results of MMAs in flight are used once, after a wait that completes them. T0712
//! 71. MMAs of warpgroups have the extents and operands of an existing instruction; numbers are within the limits of rule 51. T0905, T0714
//! 72. The programs of a cluster execute the same claims, and wait for each other before and after the roles. T0712
//! 83. Shared memory is written, on every path, before it is read; so it is in programs that are not laid out, and tensor memory too, in
//!     every case of their co-execution. T0722
//! 84. A program that was lowered has every store of its kernel ([`stores_of`]). T0712
//! 78. No two programs write the same elements of an output. T0401, T0402, T0406, T0407, T0712
//!
//! Deliberately absent: bounds of accesses (accesses outside of a tensor are defined), termination of data-dependent loops, uniformity
//! (scalars are uniform by construction), and everything that depends on the target.

mod barriers;
mod coexecution;
mod control;
mod distributed;
mod ids;
mod loops;
mod optional;
mod pipes;
mod roles;
mod scope;
mod signature;
mod structure;
mod types;
mod unmasked;

use crate::analysis::partition::Partition;
use crate::diag::{Code, Diagnostic};
use crate::ir::op_table::mnemonic;
use crate::ir::{Family, HostExpr, Kernel, Loc, LocalOp, Op, OpKind, Pipe, RegionOp, TtgOp};
use std::ops::Deref;

pub use ids::MAX_DEPTH;
pub use unmasked::{NotUnmasked, unmasked};

/// For this repository's tests only, and no part of the stable interface: the reasoning about integers, co-execution step by step, and
/// rule 66 alone, none of which a verdict shows.
#[doc(hidden)]
pub mod internals {
    pub use super::barriers::unordered;
    pub use super::coexecution::linear::{Atom, Condition, Facts, Linear};
    pub use super::coexecution::walk::{Event, Recorded, Turned, Walked, turn, walk};
}

/// A kernel that satisfies all rules of this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    kernel: Kernel,
    partition: Partition,
    anew: Vec<usize>,
}

impl Verified {
    /// For every output, the reason why no two programs of a launch write the same element.
    #[must_use]
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// For each ring: the number of loops, from the outermost inwards, that enclose all its operations, up to the last one at the start of
    /// whose iterations the ring is empty; 0 if there is none. Between these iterations its memory may be reused.
    #[must_use]
    pub fn rings_begin_anew(&self) -> &[usize] {
        &self.anew
    }

    /// Takes the kernel out, so that it can be changed and verified again.
    #[must_use]
    pub fn into_kernel(self) -> Kernel {
        self.kernel
    }
}

/// The number of loops that enclose all operations on a ring.
pub(crate) fn loops_around(kernel: &Kernel, pipe: Pipe) -> usize {
    pipes::anew::around(kernel, pipe).len()
}

impl Deref for Verified {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.kernel
    }
}

/// A well-formed kernel: every reference is valid, every type is the inferred one, every block ends in its terminator. It may violate all
/// other rules; a simulator that runs it shows the consequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WellFormed {
    kernel: Kernel,
}

impl WellFormed {
    /// Takes the kernel out, so that it can be changed and checked again.
    #[must_use]
    pub fn into_kernel(self) -> Kernel {
        self.kernel
    }
}

impl Deref for WellFormed {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.kernel
    }
}

impl From<Verified> for WellFormed {
    fn from(verified: Verified) -> WellFormed {
        WellFormed { kernel: verified.kernel }
    }
}

/// Checks only rules 1 to 18: arenas, structure, types and visibility, signature. The simulator requires only these, so that it can show
/// how kernels fail that [`verify`] rejects.
///
/// # Errors
/// All violations in the first group of rules that has any, in program order.
pub fn well_formed(kernel: Kernel) -> Result<WellFormed, Vec<Diagnostic<Loc>>> {
    parts_fit(&kernel)?;
    reject_if_any(signature::check(&kernel))?;
    Ok(WellFormed { kernel })
}

/// The maximum shared memory of a program on any target: 227 KiB on sm_90 (CUDA programming guide, "Technical specifications per compute
/// capability").
pub const SHARED_BYTES: u64 = 232_448;

/// An error of the verifier.
type Error = Diagnostic<Loc>;

/// Verifies a kernel. The conditions on a launch under which its pipelines terminate are added to its `require(..)`: they ensure that
/// bounds near 2³¹ stay in the range of `i32`.
///
/// # Errors
/// All violations in the first group of rules that has any, in program order.
pub fn verify(mut kernel: Kernel) -> Result<Verified, Vec<Diagnostic<Loc>>> {
    parts_fit(&kernel)?;
    if kernel.laid_out.is_some() {
        return Err(vec![laid_out(&kernel)]);
    }
    reject_if_any(kernel.ops.iter().filter_map(only_laid_out).collect())?;
    let mut errors = [signature::check(&kernel), control::check(&kernel), optional::check(&kernel)].concat();
    // A loop over tiles that is left early may also be the reason why programs run others differently often.
    if errors.iter().all(|e| e.code != Code::TokenDropped) {
        errors.extend(distributed::check(&kernel));
    }
    let copies = pipes::tensors::sources(&kernel);
    let partition = match Partition::of(&kernel) {
        Ok(partition) => partition,
        Err(found) => {
            // A copy from an output is one mistake, wherever it reads.
            let of_a_copy =
                |e: &Error| copies.iter().any(|c| c.site == e.site || e.related.iter().any(|r| r.0 == c.site));
            errors.extend(found.into_iter().filter(|e| !of_a_copy(e)));
            Partition::default()
        }
    };
    errors.extend(copies);
    reject_if_any(errors)?;
    let (conditions, anew) = protocols(&kernel)?;
    kernel.sig.requires.extend(conditions);
    Ok(Verified { kernel, partition, anew })
}

/// Checks rules 28 to 63, 70, 73 to 77 and 79: pipelines and barriers. Returns the conditions on a launch under which they hold, and for each
/// ring the number of loops in which it is empty at the start of iterations. A kernel without such operations is accepted at once.
///
/// # Errors
/// The violations in the first of these groups of rules that has any.
fn protocols(kernel: &Kernel) -> Result<(Vec<HostExpr>, Vec<usize>), Vec<Error>> {
    let mut any = !kernel.pipes.is_empty() || !kernel.roles.is_empty();
    any |= coexecution::barriers::objects::any(kernel);
    kernel.walk(&mut |_, op| any |= matches!(op.kind, OpKind::Ttg(_)));
    if !any {
        return Ok((Vec::new(), Vec::new()));
    }
    reject_if_any(pipes::shape::check(kernel))?;
    reject_if_any(pipes::instances::check(kernel))?;
    reject_if_any(barriers::check(kernel))?;
    reject_if_any(pipes::tokens::check(kernel))?;
    reject_if_any(pipes::stores::check(kernel))?;
    let shown = coexecution::check(kernel)?;
    reject_if_any(barriers::proxies::check(kernel))?;
    Ok((shown.conditions, pipes::anew::loops(kernel, &shown.occupied)))
}

/// Verifies a barrier program that is laid out over threads, such as one that was lowered from a verified kernel: rules 14 to 24, 28, 29, 32,
/// 33, 35, 81 and 82 of its declarations, and those of barriers. Its barriers must implement the claims that it makes about rings.
///
/// # Errors
/// All violations in the first group of rules that has any, in program order. For a program that TITAN generated, they are defects of
/// TITAN.
pub fn barrier_program(kernel: &Kernel) -> Result<(), Vec<Diagnostic<Loc>>> {
    parts_fit(kernel)?;
    reject_if_any(kernel.ops.iter().filter_map(of_rings).collect())?;
    let mut errors = [signature::check(kernel), control::check(kernel), optional::check(kernel)].concat();
    if errors.iter().all(|e| e.code != Code::TokenDropped) {
        errors.extend(distributed::check(kernel));
    }
    errors.extend(pipes::shape::declared(kernel));
    barriers::laid_out(kernel, errors)
}

/// Checks rule 84: a barrier program has every store of the laid-out kernel from which it was made.
///
/// # Errors
/// All violations, in program order; they are defects of TITAN.
pub fn stores_of(kernel: &Kernel, program: &Kernel) -> Result<(), Vec<Diagnostic<Loc>>> {
    reject_if_any(barriers::stored::check(kernel, program))
}

/// The error for an operation of an earlier stage in a barrier program: one of rings, or a wait whose groups are not counted.
fn of_rings(op: &Op) -> Option<Error> {
    let of_rings = matches!(&op.kind, OpKind::Ttg(ttg) if ttg.is_of_rings());
    let settles = matches!(&op.kind, OpKind::Local(LocalOp::Settle { .. }));
    let title = if of_rings {
        "a ring operation in a kernel that is laid out: it must be expanded to barriers first"
    } else {
        "a wait for accesses to a tile in a barrier program: it must be completed to waits for groups first"
    };
    (of_rings || settles).then(|| Diagnostic::new(Code::NotShown, op.loc, title))
}

/// Checks the rules on which all others rely: arenas, structure, types and visibility.
fn parts_fit(kernel: &Kernel) -> Result<(), Vec<Error>> {
    reject_if_any(ids::check(kernel))?;
    reject_if_any(structure::check(kernel))?;
    reject_if_any([types::check(kernel), scope::check(kernel)].concat())
}

/// The error for an operation that is allowed in laid-out kernels only: a claim, or an access to a tile that is not a ring's.
fn only_laid_out(op: &Op) -> Option<Error> {
    let (what, help) = match op.kind.family() {
        Family::Ttg(TtgOp::Claim(..)) => ("a claim (`ttg.claim`)".to_owned(), "remove it"),
        Family::Region(RegionOp::Tile { .. }) | Family::Local(_) => {
            (format!("`{}`", mnemonic(&op.kind)), "access regions with `ttg.region.read` and `ttg.region.write`")
        }
        Family::Ttg(_)
        | Family::Region(
            RegionOp::Place { .. }
            | RegionOp::At
            | RegionOp::Read
            | RegionOp::Write
            | RegionOp::Call(_)
            | RegionOp::Wait,
        )
        | Family::Data(_)
        | Family::Flow(_)
        | Family::Nv(_)
        | Family::Amd(_) => return None,
    };
    let title = format!("{what} in a kernel that is not laid out over threads");
    Some(Diagnostic::new(Code::NotShown, op.loc, title).help(help))
}

/// The error for a laid-out kernel, which cannot be verified from its text.
fn laid_out(kernel: &Kernel) -> Error {
    let title =
        format!("`{}` is laid out over threads: such a kernel cannot be verified from its text", kernel.sig.name);
    Diagnostic::new(Code::NotShown, Loc::default(), title).help("verify the kernel that it was made from")
}

/// The error for a situation that earlier rules exclude. It is a defect of this module, and never a reason to accept a kernel.
fn defect(loc: Loc, what: &str) -> Error {
    Diagnostic::new(Code::Internal, loc, format!("a defect of TITAN's verifier: {what}"))
        .help("please report it with the kernel")
}

/// Returns the errors in program order, if there are any. Errors without a location belong to the signature and come first.
fn reject_if_any(mut errors: Vec<Error>) -> Result<(), Vec<Error>> {
    errors.sort_by_key(|e| e.site);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

//! Roles whose instances compute the tiles of a program in turn, and accesses of which at most one is executed for each tile.
//!
//! A role that loops over the tiles of its program consists of one loop, which carries no values:
//!
//! ```text
//! for %i = 0 to %n step 1 distributed { .. }
//! ```
//!
//! So the iterations depend on each other only by their order, and can be executed concurrently by different instances. The iterations that
//! an instance executes are determined by `%i`, by branches such as `if rem(div(%i, num_programs), 2) == 0`.
//!
//! Deliberately absent: loops that do not start at 0, and conditions that depend on more than the iteration and the launch.

mod conditions;

use self::conditions::claims;
use super::access::{Access, Accesses};
use super::affine::{Affine, Term};
use super::forms::{Forms, is_input};
use super::number::{Numbers, root};
use super::partition::Output;
use super::uses::Tree;
use crate::collections::SortedSet;
use crate::ir::{Block, Def, Effect, ForKind, Kernel, Loc, Op, OpId, OpKind, Pipe, TtgOp, Ty, Value};

/// A role that consists of a loop over the tiles of its program.
#[derive(Clone, Copy, Debug)]
pub struct TileLoop {
    /// The operation of the loop.
    pub looped: OpId,
    /// The body of the loop.
    pub body: Block,
    /// The number of tiles of all programs.
    pub tiles: Value,
}

/// The reason why a role is not such a loop, with its location.
pub type NoTileLoop = (Loc, &'static str);

/// The loop over tiles of which the region of a role consists.
///
/// # Errors
/// The first operation that does not belong to such a loop, and the reason.
pub fn tile_loop(kernel: &Kernel, region: Block) -> Result<TileLoop, NoTileLoop> {
    let mut found = None;
    for id in &kernel.block(region).ops {
        let op = kernel.op(*id);
        let ends = matches!(op.kind, OpKind::Yield | OpKind::Ttg(TtgOp::Finalize));
        if op.kind == OpKind::For(ForKind::Distributed) {
            let [lo, tiles, step] = op.args[..] else {
                return Err((op.loc, "a variable keeps its value from tile to tile"));
            };
            if kernel.int_constant(lo) != Some(0) || kernel.int_constant(step) != Some(1) {
                return Err((op.loc, "the loop over tiles does not begin at the first"));
            }
            if found.replace(TileLoop { looped: *id, body: op.regions[0], tiles }).is_some() {
                return Err((op.loc, "this is a second loop over tiles"));
            }
        } else if !(ends || op.kind.effect() == Effect::Pure && op.regions.is_empty()) {
            return Err((op.loc, "this is outside of the loop over tiles"));
        }
    }
    found.ok_or_else(|| {
        let last = kernel.block(region).ops.first().map_or(Loc::default(), |id| kernel.op(*id).loc);
        (last, "there is no loop over the tiles of an output")
    })
}

/// The rings that the operations in a block use.
#[must_use]
pub fn rings(kernel: &Kernel, block: Block) -> SortedSet<Pipe> {
    let mut found = SortedSet::new();
    kernel.walk_block(block, &mut |_, op| {
        for value in op.args.iter().chain(&op.results) {
            if let Ty::Token(_, pipe) = kernel.ty(*value) {
                found.insert(pipe);
            }
        }
    });
    found
}

/// The iterations in which an access is executed, as far as they follow from the iteration of a loop over tiles.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// The enclosing branches in that loop, each with the arm that contains the access.
    arms: Vec<(Value, bool)>,
}

/// Calls a function with each operation in the region of a role, and with its turn if it is in a loop over tiles.
pub fn each_turn(kernel: &Kernel, region: Block, see: &mut impl FnMut(OpId, Option<&Turn>)) {
    turns_in(kernel, region, None, see);
}

fn turns_in(kernel: &Kernel, block: Block, turn: Option<&Turn>, see: &mut impl FnMut(OpId, Option<&Turn>)) {
    for id in &kernel.block(block).ops {
        see(*id, turn);
        let op = kernel.op(*id);
        for (arm, region) in op.regions.iter().enumerate() {
            let inner = match (&op.kind, turn, op.args.first()) {
                (OpKind::For(ForKind::Distributed), None, _) => Some(Turn::default()),
                (OpKind::If, Some(turn), Some(condition)) => {
                    let mut inner = turn.clone();
                    inner.arms.push((*condition, arm == 0));
                    Some(inner)
                }
                _ => turn.cloned(),
            };
            turns_in(kernel, *region, inner.as_ref(), see);
        }
    }
}

/// An analysis of turns.
#[derive(Debug)]
pub struct Turns<'k> {
    kernel: &'k Kernel,
    numbers: Numbers,
    forms: Forms,
    accesses: Accesses,
}

/// The maximum depth of the condition expressions that are compared.
const DEEP: u32 = 8;

impl<'k> Turns<'k> {
    /// Creates the analysis for a kernel.
    #[must_use]
    pub fn new(kernel: &'k Kernel) -> Turns<'k> {
        let forms = Forms::new(kernel, true);
        let accesses = Accesses::new(kernel, &forms, &Tree::new(kernel));
        Turns { kernel, numbers: Numbers::new(kernel), forms, accesses }
    }

    /// Whether at most one of two turns occurs for each tile: they are in arms whose conditions exclude each other.
    #[must_use]
    pub fn exclude(&self, a: &Turn, b: &Turn) -> bool {
        let all = |turn: &Turn| {
            let of_arm = |(condition, holds): &(Value, bool)| claims(self.kernel, *condition, *holds);
            turn.arms.iter().flat_map(of_arm).collect::<Vec<_>>()
        };
        let others = all(b);
        all(a).iter().any(|one| others.iter().any(|other| self.contradict(*one, *other)))
    }

    /// Whether two values are the same function of the iteration of the loop over tiles and of the launch.
    fn same(&self, a: Value, b: Value) -> bool {
        self.same_within(a, b, DEEP)
    }

    fn same_within(&self, a: Value, b: Value, deep: u32) -> bool {
        if let (Some(a), Some(b)) = (self.numbers.of(a), self.numbers.of(b)) {
            return a == b;
        }
        if self.is_iteration(a) && self.is_iteration(b) {
            return true;
        }
        let (Some(one), Some(other)) = (self.kernel.def_op(a), self.kernel.def_op(b)) else { return false };
        let nth = |op: &Op, value: Value| op.results.iter().position(|result| *result == value);
        let input =
            |op: &Op| op.args.first().and_then(|t| root(self.kernel, *t)).is_some_and(|p| is_input(self.kernel, p));
        // Inputs do not change during a launch.
        let pure = matches!(
            one.kind,
            OpKind::Unary(_)
                | OpKind::Binary(_)
                | OpKind::Cmp(_)
                | OpKind::Cast(_)
                | OpKind::Unflatten
                | OpKind::UnflattenGrouped(_)
        ) || (one.kind == OpKind::Get && input(one));
        deep > 0
            && pure
            && one.kind == other.kind
            && nth(one, a) == nth(other, b)
            && one.args.len() == other.args.len()
            && one.args.iter().zip(&other.args).all(|(a, b)| self.same_within(*a, *b, deep - 1))
    }

    /// Whether a value is the iteration of a loop over tiles, from 0 by 1.
    #[must_use]
    pub fn is_iteration(&self, value: Value) -> bool {
        matches!(self.kernel.value(value).def, Def::BlockArg(_, 0)) && self.forms.of(value) == Affine::term(Term::Work)
    }

    /// Whether it is known which elements an operation accesses, so far as these depend on tiles.
    #[must_use]
    pub fn knows(&self, access: OpId) -> bool {
        self.accesses.list.iter().any(|known| known.op == access)
    }

    /// Whether different tiles access different elements of an output: all known accesses are in parts that are determined by the iteration of
    /// the loop over tiles.
    #[must_use]
    pub fn divides(&self, param: usize) -> bool {
        let all: Vec<&Access> = self.accesses.list.iter().filter(|access| access.param == param).collect();
        let bytes = self.kernel.ty(self.kernel.param(param)).elem().bits() < 8;
        let output =
            Output { kernel: self.kernel, forms: &self.forms, segments: &self.accesses.segments, param, bytes };
        all.iter().all(|access| !access.shared) && output.told(&all, Term::Work, &mut Vec::new()).is_some()
    }
}

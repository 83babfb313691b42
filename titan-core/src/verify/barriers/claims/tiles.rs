//! Rule 72: the tiles that the programs of a cluster compute.
//!
//! A copy for all programs of a cluster gives each of them the same tile, and every other copy gives each its own tile. Loads and stores of
//! one output tile belong together only if all roles of all programs agree about which tile that is. They do if
//!
//! * every loop over tiles has the same bounds in every role, and computes the coordinates of its tile from its counter alone, by
//!   the same operation with the same extents;
//! * one of these coordinates, the same one in every loop, counts clusters: it is used only as `coordinate · size + rank`, and the rank of
//!   a program is used nowhere else;
//! * no other value distinguishes the programs: there are no program ids.
//!
//! Then a value depends on the rank if and only if it depends on the coordinate along which the programs of a cluster are adjacent. What is
//! shared does not depend on that coordinate (`cluster`), and what a program copies for itself is of the program's tile, in every role.
//!
//! The counter of such a loop may also be divided by the number of clusters, to select one of the instances of a role; the rules of rings
//! compare those branches.
//!
//! Deliberately absent: whether a role copies the tiles of its kernel, with clusters or without. The kernel's rings are lowered to this
//! program; tests compare their data.

use super::Check;
use crate::analysis::number::Numbers;
use crate::analysis::uses::Tree;
use crate::collections::SortedSet;
use crate::ir::{BinOp, ForKind, Kernel, NvOp, Op, OpId, OpKind, Value};

/// How a loop computes the coordinates of a tile from its counter: its bounds, the operation, and the extents, as numbers of values.
type Way = (Vec<Value>, OpKind, Vec<Value>);

impl Check<'_> {
    /// Checks that all roles of all programs of a cluster agree about the tile of each program.
    pub(super) fn same_tiles(&mut self) {
        let kernel = self.kernel;
        let size = i64::from(self.cluster());
        let numbers = Numbers::new(kernel);
        let tree = Tree::new(kernel);
        let (mut loops, mut ranks, mut anywhere) = (Vec::new(), Vec::new(), Vec::new());
        kernel.walk(&mut |id, op| {
            loops.extend((op.kind == OpKind::For(ForKind::Distributed)).then_some(id));
            ranks.extend((op.kind == OpKind::Nv(NvOp::ClusterRank)).then_some(id));
            anywhere.extend(matches!(op.kind, OpKind::ProgramId(_)).then_some(id));
        });
        for id in anywhere {
            self.error(id, "a program of a cluster takes its tiles by its rank, and not by a program id");
        }
        let mut ways: Vec<(OpId, Way, OpId)> = Vec::new();
        for looped in loops {
            match way(kernel, &numbers, &tree, looped) {
                Some((way, made)) => ways.push((looped, way, made)),
                None => self.error(looped, NO_WAY),
            }
        }
        for (looped, way, _) in &ways {
            // Numbers of values, not values: each role computes its own extents, of the same arguments.
            if ways.first().is_some_and(|(_, first, _)| way != first) {
                self.error(*looped, OTHER_ORDER);
            }
        }
        let placed = placed(kernel, &tree, &ranks, size);
        let mut axes = SortedSet::new();
        for (user, place) in placed {
            let mut results = ways.iter().map(|(_, _, made)| &kernel.op(*made).results);
            match place.and_then(|place| results.find_map(|all| all.iter().position(|v| *v == place))) {
                Some(axis) => axes.extend([axis]),
                // A rank that is used otherwise could make programs differ in what they copy for all.
                None => self.error(user, NOT_PLACED),
            }
        }
        for (looped, _, made) in &ways {
            let results = &kernel.op(*made).results;
            let by_rank = |axis: &usize| results.get(*axis).is_some_and(|v| is_by_rank(kernel, &tree, *v, size));
            // Without the rank, the coordinate would be the same for all programs, and they would compute one tile
            // twice and another one never.
            if axes.len() != 1 || !axes.iter().all(by_rank) {
                self.error(*looped, NOT_BY_RANK);
            }
        }
    }
}

const NO_WAY: &str = "a role of a cluster's programs must compute the coordinates of its tile from the counter of this loop alone, by one operation";
const OTHER_ORDER: &str = "the roles of a cluster's programs take their tiles in different orders";
const NOT_PLACED: &str =
    "the rank of a program in its cluster is used for something else than the coordinate of its tile";
const NOT_BY_RANK: &str = "the programs of a cluster must differ in one coordinate of their tiles, by their rank, in every role and every use of it";

/// How a loop computes coordinates, and the operation that does.
fn way(kernel: &Kernel, numbers: &Numbers, tree: &Tree, looped: OpId) -> Option<(Way, OpId)> {
    let op = kernel.op(looped);
    let body = *op.regions.first()?;
    let index = *kernel.block(body).args.first()?;
    let mut made = None;
    for id in tree.users(index) {
        let user = kernel.op(*id);
        let makes = matches!(user.kind, OpKind::Unflatten | OpKind::UnflattenGrouped(_));
        if makes && made.is_none() && user.args.first() == Some(&index) {
            made = Some(*id);
        } else if user.kind != OpKind::Binary(BinOp::Div) || !is_turn(kernel, tree, user) {
            return None;
        }
    }
    let made = made.filter(|id| kernel.block(body).ops.contains(id))?;
    let numbered = |values: &[Value]| values.iter().map(|v| numbers.of(*v)).collect::<Option<Vec<Value>>>();
    let (unflatten, bounds) = (kernel.op(made), op.args.get(..3)?);
    let way = (numbered(bounds)?, unflatten.kind.clone(), numbered(unflatten.args.get(1..)?)?);
    (!unflatten.args[1..].contains(&index)).then_some((way, made))
}

/// Whether a quotient is used only to select an instance: its remainder is compared.
fn is_turn(kernel: &Kernel, tree: &Tree, quotient: &Op) -> bool {
    let all = |values: &[Value], holds: &dyn Fn(&Op) -> bool| {
        values.iter().flat_map(|v| tree.users(*v)).all(|id| holds(kernel.op(*id)))
    };
    let compared = |op: &Op| matches!(op.kind, OpKind::Cmp(_));
    all(&quotient.results, &|op| op.kind == OpKind::Binary(BinOp::Rem) && all(&op.results, &compared))
}

/// The uses of ranks, each with the coordinate `x` of `x · size + rank`; `None` for other uses.
fn placed(kernel: &Kernel, tree: &Tree, ranks: &[OpId], size: i64) -> Vec<(OpId, Option<Value>)> {
    let mut found = Vec::new();
    for rank in ranks {
        for value in &kernel.op(*rank).results {
            for user in tree.users(*value) {
                found.push((*user, place(kernel, kernel.op(*user), *value, size)));
            }
        }
    }
    found
}

/// The coordinate `x` of `x · size + rank`.
fn place(kernel: &Kernel, sum: &Op, rank: Value, size: i64) -> Option<Value> {
    let (OpKind::Binary(BinOp::Add), [first, by]) = (&sum.kind, &sum.args[..]) else { return None };
    let product = kernel.def_op(*first)?;
    let (OpKind::Binary(BinOp::Mul), [x, count]) = (&product.kind, &product.args[..]) else { return None };
    (*by == rank && kernel.int_constant(*count) == Some(size)).then_some(*x)
}

/// Whether every use of a coordinate is in `coordinate · size + rank`.
fn is_by_rank(kernel: &Kernel, tree: &Tree, coordinate: Value, size: i64) -> bool {
    let users = |value: &Value| tree.users(*value).iter().map(|id| kernel.op(*id));
    let rank = |v: &Value| kernel.def_op(*v).is_some_and(|op| op.kind == OpKind::Nv(NvOp::ClusterRank));
    users(&coordinate).all(|product| {
        product.kind == OpKind::Binary(BinOp::Mul)
            && product.results.iter().flat_map(users).all(|sum| {
                let by = sum.args.get(1).copied().filter(rank);
                by.and_then(|by| place(kernel, sum, by, size)) == Some(coordinate)
            })
    })
}

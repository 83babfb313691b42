//! Rules of pipelines. They are checked after all other rules, in this order:
//!
//! * `shape`: the declarations of rings and roles, the contents of stages, and which role fills and reads (rules 28 to 35);
//! * `instances`: roles with several instances, which take tiles in turn (rule 77);
//! * `tokens`: every token is consumed once on every path, and no stage is read after its release (rules 36 to 40);
//! * `stores`: elements that are stored from staging slots are not accessed otherwise afterwards (rule 63);
//! * `coexecution`: all roles together: rings are filled as often as they are read, and every wait terminates (rules 41 to 45).
//!
//! Programs of the barrier dialect have their own rules, `crate::verify::barriers`, and take part in the co-execution; fences are
//! checked last. A kernel without any of these operations passes at once.

mod anew;
pub(super) mod coexecution;
mod instances;
pub(super) mod shape;
pub(super) mod stores;
mod tensors;
mod tokens;

use super::Error;
use crate::ir::{Block, HostExpr, Kernel, OpId, OpKind, Pipe, Token, TtgOp, Ty, Value};

/// Checks rules 28 to 45 and those of barriers. Returns the conditions on the launch under which they hold, and for each ring the
/// number of loops in which it restarts empty.
///
/// # Errors
/// Breaks of these rules, of the first group that has any.
pub(super) fn check(kernel: &Kernel) -> Result<(Vec<HostExpr>, Vec<usize>), Vec<Error>> {
    let mut any = !kernel.pipes.is_empty() || !kernel.roles.is_empty();
    any |= crate::verify::barriers::objects::any(kernel);
    kernel.walk(&mut |_, op| any |= matches!(op.kind, OpKind::Ttg(_)));
    if !any {
        return Ok((Vec::new(), Vec::new()));
    }
    super::reject_if_any(shape::check(kernel))?;
    super::reject_if_any(instances::check(kernel))?;
    super::reject_if_any(crate::verify::barriers::check(kernel))?;
    super::reject_if_any(tokens::check(kernel))?;
    super::reject_if_any(stores::check(kernel))?;
    let shown = coexecution::check(kernel)?;
    super::reject_if_any(crate::verify::barriers::proxies::check(kernel))?;
    Ok((shown.conditions, anew::loops(kernel, &shown.occupied)))
}

/// The one `ttg.roles`, if there is one.
pub(super) fn roles_op(kernel: &Kernel) -> Option<OpId> {
    let top = &kernel.block(kernel.body).ops;
    top.iter().copied().find(|id| kernel.op(*id).kind == OpKind::Ttg(TtgOp::Roles))
}

/// The blocks that run concurrently: the regions of the roles with their names, or the whole kernel.
pub(super) fn threads(kernel: &Kernel) -> Vec<(String, Block)> {
    match roles_op(kernel) {
        Some(op) => {
            let names = kernel.roles.iter().map(|r| format!("`{}`", r.name));
            names.zip(kernel.op(op).regions.iter().copied()).collect()
        }
        None => vec![("the kernel".to_owned(), kernel.body)],
    }
}

/// The ring of a token.
fn ring_of(kernel: &Kernel, value: Value) -> Option<Pipe> {
    if let Ty::Token(_, pipe) = kernel.ty(value) { Some(pipe) } else { None }
}

/// A token in messages: its name and ring.
fn named(kernel: &Kernel, value: Value) -> String {
    let own = kernel.value(value).name.as_ref().map(|n| format!("`{n}`"));
    let kind = match kernel.ty(value) {
        Ty::Token(token, pipe) => {
            let word = match token {
                Token::Slot => "a slot",
                Token::Ready => "a pending wait for a stage",
                Token::Stage | Token::Rperm | Token::Consumed => "a stage",
                Token::Part => "a part of a stage",
                Token::Written => "a slot that was written",
                Token::Store => "a store from a slot",
            };
            format!("{word} of `{}`", kernel.pipe_name(pipe))
        }
        Ty::Compute(..) => "an MMA in flight".to_owned(),
        Ty::Acc(..) => "an accumulator with MMAs in flight".to_owned(),
        Ty::Scalar(_) | Ty::Tile(..) | Ty::Tensor(..) | Ty::Source(..) | Ty::Smem(..) | Ty::Barrier(_) => {
            "a value".to_owned()
        }
    };
    match own {
        Some(name) => format!("{name}, {kind},"),
        None => kind,
    }
}

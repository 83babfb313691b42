//! The text form of pipeline operations. The parser handles `ttg.roles`, which has blocks.

use super::form::{Head, HeadError, Named, narrow};
use crate::ir::{Claim, FenceSpace, Fill, Pipe, Proxy, Scope, TileShape, TtgOp, Ty, Unit};

type Kind = Result<TtgOp, HeadError>;

/// The integers in angle brackets.
pub(super) fn attributes(op: &TtgOp) -> Vec<i64> {
    match op {
        TtgOp::Acquire(pipe) | TtgOp::Ready(pipe) | TtgOp::Claim(_, pipe) => {
            vec![i64::try_from(pipe.index()).unwrap_or(i64::MAX)]
        }
        TtgOp::Split(n) | TtgOp::AccStart(n) => vec![i64::from(*n)],
        TtgOp::View { field, .. } => vec![i64::from(*field)],
        TtgOp::Source(..)
        | TtgOp::SourceRows { .. }
        | TtgOp::AsyncProduce { .. }
        | TtgOp::Fill(_)
        | TtgOp::WaitReady
        | TtgOp::Poisoned
        | TtgOp::ReadPerm
        | TtgOp::Join
        | TtgOp::Read
        | TtgOp::Consumed
        | TtgOp::Release
        | TtgOp::ComputeIssue
        | TtgOp::ComputeWait
        | TtgOp::AccMma
        | TtgOp::AccFinish
        | TtgOp::Write
        | TtgOp::StoreIssue(_)
        | TtgOp::StoreWait
        | TtgOp::Roles
        | TtgOp::Finalize
        | TtgOp::Rematerialize
        | TtgOp::Fence { .. } => vec![],
    }
}

/// The attributes in braces.
pub(super) fn named(op: &TtgOp) -> Vec<(&'static str, String)> {
    match op {
        TtgOp::AsyncProduce { bytes, proxy, skipped } => {
            let mut named = vec![("bytes", bytes.to_string()), ("proxy", proxy.to_string())];
            named.extend(skipped.map(|s| ("skipped", s.to_string())));
            named
        }
        TtgOp::Fence { from, to, scope, space } => {
            vec![
                ("from", from.to_string()),
                ("to", to.to_string()),
                ("scope", scope.to_string()),
                ("space", space.to_string()),
            ]
        }
        TtgOp::Source(..)
        | TtgOp::SourceRows { .. }
        | TtgOp::Acquire(_)
        | TtgOp::Fill(_)
        | TtgOp::Ready(_)
        | TtgOp::WaitReady
        | TtgOp::Poisoned
        | TtgOp::ReadPerm
        | TtgOp::Split(_)
        | TtgOp::Join
        | TtgOp::View { .. }
        | TtgOp::Read
        | TtgOp::Consumed
        | TtgOp::Release
        | TtgOp::ComputeIssue
        | TtgOp::ComputeWait
        | TtgOp::AccStart(_)
        | TtgOp::AccMma
        | TtgOp::AccFinish
        | TtgOp::Write
        | TtgOp::StoreIssue(_)
        | TtgOp::StoreWait
        | TtgOp::Roles
        | TtgOp::Finalize
        | TtgOp::Claim(..)
        | TtgOp::Rematerialize => vec![],
    }
}

/// The operation with a mnemonic; `None` if it is of another dialect.
pub(super) fn kind(name: &str, head: &Head<'_>) -> Option<Kind> {
    let kind = match name {
        "ttg.source_tile" => shape(head).map(|s| TtgOp::Source(Unit::Tile, s)),
        "ttg.source_at" => shape(head).map(|s| TtgOp::Source(Unit::Elem, s)),
        "ttg.source_rows" => shape(head).and_then(|s| match s[..] {
            [rows, width] => Ok(TtgOp::SourceRows { rows, width }),
            _ => Err(HeadError::NeedsType("a rank-2 source")),
        }),
        "ttg.stage.acquire" => pipe(head).map(TtgOp::Acquire),
        "ttg.stage.ready" => pipe(head).map(TtgOp::Ready),
        "ttg.stage.async_produce" => produce(head),
        "ttg.fence.proxy" => fence(head),
        "ttg.rperm.split" => head.ints("how many parts").and_then(|[n]| narrow(n)).map(TtgOp::Split),
        "ttg.acc.start" => head.ints("how many MMAs may be in flight").and_then(|[n]| narrow(n)).map(TtgOp::AccStart),
        "ttg.stage.view" => view(head),
        _ => match Claim::ALL.into_iter().find(|claim| claim.mnemonic() == name) {
            Some(claim) => pipe(head).map(|pipe| TtgOp::Claim(claim, pipe)),
            None => Ok(plain(name)?),
        },
    };
    Some(kind.and_then(|op| bare(head, op)))
}

/// Operations without attributes.
fn plain(name: &str) -> Option<TtgOp> {
    Some(match name {
        "ttg.stage.zero" => TtgOp::Fill(Fill::Zero),
        "ttg.stage.poison" => TtgOp::Fill(Fill::Poison),
        "ttg.stage.wait_ready" => TtgOp::WaitReady,
        "ttg.stage.poisoned" => TtgOp::Poisoned,
        "ttg.stage.read_perm" => TtgOp::ReadPerm,
        "ttg.rperm.join" => TtgOp::Join,
        "ttg.stage.read" => TtgOp::Read,
        "ttg.stage.consumed" => TtgOp::Consumed,
        "ttg.stage.release" => TtgOp::Release,
        "ttg.compute.issue" => TtgOp::ComputeIssue,
        "ttg.compute.wait" => TtgOp::ComputeWait,
        "ttg.acc.mma" => TtgOp::AccMma,
        "ttg.acc.finish" => TtgOp::AccFinish,
        "ttg.stage.write" => TtgOp::Write,
        "ttg.store.issue_tile" => TtgOp::StoreIssue(Unit::Tile),
        "ttg.store.issue_at" => TtgOp::StoreIssue(Unit::Elem),
        "ttg.store.wait" => TtgOp::StoreWait,
        "ttg.pipeline.finalize" => TtgOp::Finalize,
        "ttg.hint.rematerialize" => TtgOp::Rematerialize,
        _ => return None,
    })
}

/// Checks that no other attributes are stated than the operation has.
fn bare(head: &Head<'_>, op: TtgOp) -> Kind {
    if attributes(&op).is_empty() && !head.attrs.is_empty() {
        return Err(HeadError::Attributes(0, "nothing"));
    }
    let known = named(&op);
    if head.named.iter().any(|(name, _)| !known.iter().any(|(k, _)| k == name)) {
        return Err(HeadError::Named(if known.is_empty() { "" } else { example(&op) }));
    }
    Ok(op)
}

const fn example(op: &TtgOp) -> &'static str {
    if matches!(op, TtgOp::Fence { .. }) { FENCE } else { PRODUCE }
}

const PRODUCE: &str = "bytes = 16384, proxy = generic";
const FENCE: &str = "from = generic, to = async, scope = cta, space = shared";

fn shape(head: &Head<'_>) -> Result<TileShape, HeadError> {
    match head.ty {
        Some(Ty::Source(_, shape)) => Ok(shape),
        Some(_) | None => Err(HeadError::NeedsType("as in `source<128x64xf16>`")),
    }
}

fn pipe(head: &Head<'_>) -> Result<Pipe, HeadError> {
    let [n] = head.ints("the number of the ring")?;
    let n: u32 = narrow(n)?;
    Ok(Pipe::new(n as usize))
}

fn view(head: &Head<'_>) -> Kind {
    let [field] = head.ints("which tile of the stage")?;
    match head.ty {
        Some(Ty::Smem(elem, shape)) => Ok(TtgOp::View { field: narrow(field)?, elem, shape }),
        Some(_) | None => Err(HeadError::NeedsType("as in `smem<128x64xf16>`")),
    }
}

fn produce(head: &Head<'_>) -> Kind {
    let bytes = match find(head, "bytes") {
        Some(Named::Int(n)) => narrow(*n)?,
        Some(Named::Word(_)) | None => return Err(HeadError::Named(PRODUCE)),
    };
    let skipped = match find(head, "skipped") {
        Some(_) => Some(word(head, "skipped", PRODUCE, Fill::from_name)?),
        None => None,
    };
    Ok(TtgOp::AsyncProduce { bytes, proxy: word(head, "proxy", PRODUCE, Proxy::from_name)?, skipped })
}

fn fence(head: &Head<'_>) -> Kind {
    Ok(TtgOp::Fence {
        from: word(head, "from", FENCE, Proxy::from_name)?,
        to: word(head, "to", FENCE, Proxy::from_name)?,
        scope: word(head, "scope", FENCE, Scope::from_name)?,
        space: word(head, "space", FENCE, FenceSpace::from_name)?,
    })
}

fn find<'h>(head: &'h Head<'_>, name: &str) -> Option<&'h Named> {
    head.named.iter().find(|(n, _)| n == name).map(|(_, value)| value)
}

fn word<T>(head: &Head<'_>, name: &str, example: &'static str, read: fn(&str) -> Option<T>) -> Result<T, HeadError> {
    match find(head, name) {
        Some(Named::Word(w)) => read(w).ok_or(HeadError::Named(example)),
        Some(Named::Int(_)) | None => Err(HeadError::Named(example)),
    }
}

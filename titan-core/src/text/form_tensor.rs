//! The text form of operations on tensor memory: all attributes are in braces, except for those of MMAs that have their default value.
//!
//! Deliberately absent: which attributes are allowed together ([`crate::ir::Mma::check`]).

use super::form::{HeadError, Named};
use super::form_barrier::{Attributes, Braces};
use crate::ir::{Collector, Mma, MmaKind, Tcgen05Op, TensorElem, TensorShape};

type Kind = Result<Tcgen05Op, HeadError>;

/// The attributes of MMAs that are omitted if they have their default value.
pub(super) const USUAL: &[&str] = &["ws", "scale_vec", "ashift", "collector", "scale_input"];

pub(super) const MMA: &str = "kind = f16, a = f16, b = f16, d = f32, m = 128, n = 256, k = 16, cta_group = 1";
const GROUP: &str = "cta_group = 1";
const COLUMNS: &str = "columns = 128, cta_group = 1";
const MOVED: &str = "shape = \"32x32b\", times = 4";

/// The attributes in braces.
pub(super) fn named(op: Tcgen05Op) -> Attributes {
    let group = |n: u32| ("cta_group", n.to_string());
    match op {
        Tcgen05Op::Alloc { columns, cta_group } => vec![("columns", columns.to_string()), group(cta_group)],
        Tcgen05Op::Dealloc { cta_group }
        | Tcgen05Op::Relinquish { cta_group }
        | Tcgen05Op::Copy { cta_group }
        | Tcgen05Op::Shift { cta_group }
        | Tcgen05Op::Commit { cta_group } => vec![group(cta_group)],
        Tcgen05Op::Load { shape, times } | Tcgen05Op::Store { shape, times } => {
            vec![("shape", format!("\"{shape}\"")), ("times", times.to_string())]
        }
        Tcgen05Op::Mma(mma) => of_mma(&mma),
        Tcgen05Op::WaitLoad | Tcgen05Op::WaitStore | Tcgen05Op::FenceBefore | Tcgen05Op::FenceAfter => vec![],
    }
}

fn of_mma(mma: &Mma) -> Attributes {
    let [m, n, k] = mma.shape.map(|n| n.to_string());
    let mut named = vec![
        ("kind", mma.kind.to_string()),
        ("a", mma.a.to_string()),
        ("b", mma.b.to_string()),
        ("d", mma.d.to_string()),
        ("m", m),
        ("n", n),
        ("k", k),
        ("cta_group", mma.cta_group.to_string()),
    ];
    let yes = || "true".to_owned();
    named.extend(mma.stationary.then(|| ("ws", yes())));
    named.extend((mma.scale_vec != 0).then(|| ("scale_vec", mma.scale_vec.to_string())));
    named.extend(mma.shifted.then(|| ("ashift", yes())));
    named.extend((mma.collector != Collector::Unstated).then(|| ("collector", mma.collector.to_string())));
    named.extend(mma.scaled_input.then(|| ("scale_input", yes())));
    named
}

/// The operation with a mnemonic; `None` if there is none.
pub(super) fn kind(name: &str, braces: &Braces<'_>) -> Option<Kind> {
    let group = || braces.one("cta_group", GROUP);
    Some(match name.strip_prefix("ttg.nv.tcgen05.")? {
        "alloc" => braces
            .two("columns", "cta_group", COLUMNS)
            .map(|(columns, cta_group)| Tcgen05Op::Alloc { columns, cta_group }),
        "dealloc" => group().map(|cta_group| Tcgen05Op::Dealloc { cta_group }),
        "relinquish_alloc_permit" => group().map(|cta_group| Tcgen05Op::Relinquish { cta_group }),
        "mma" => mma(braces).map(Tcgen05Op::Mma),
        "ld" => moved(braces).map(|(shape, times)| Tcgen05Op::Load { shape, times }),
        "st" => moved(braces).map(|(shape, times)| Tcgen05Op::Store { shape, times }),
        "cp" => group().map(|cta_group| Tcgen05Op::Copy { cta_group }),
        "shift" => group().map(|cta_group| Tcgen05Op::Shift { cta_group }),
        "commit" => group().map(|cta_group| Tcgen05Op::Commit { cta_group }),
        "wait_ld" => Ok(Tcgen05Op::WaitLoad),
        "wait_st" => Ok(Tcgen05Op::WaitStore),
        "fence_before_thread_sync" => Ok(Tcgen05Op::FenceBefore),
        "fence_after_thread_sync" => Ok(Tcgen05Op::FenceAfter),
        _ => return None,
    })
}

fn word<T>(
    braces: &Braces<'_>,
    name: &str,
    from: fn(&str) -> Option<T>,
    example: &'static str,
) -> Result<T, HeadError> {
    match braces.find(name) {
        Some(Named::Word(word)) => from(word).ok_or(HeadError::Named(example)),
        Some(Named::Int(_)) | None => Err(HeadError::Named(example)),
    }
}

fn moved(braces: &Braces<'_>) -> Result<(TensorShape, u32), HeadError> {
    Ok((word(braces, "shape", TensorShape::from_name, MOVED)?, braces.one("times", MOVED)?))
}

fn mma(braces: &Braces<'_>) -> Result<Mma, HeadError> {
    let elem = |name| word(braces, name, TensorElem::from_name, MMA);
    let flag = |name| if braces.find(name).is_none() { Ok(false) } else { braces.flag(name, MMA) };
    let collector = match braces.find("collector") {
        Some(_) => word(braces, "collector", Collector::from_name, "collector = fill")?,
        None => Collector::Unstated,
    };
    Ok(Mma {
        kind: word(braces, "kind", MmaKind::from_name, MMA)?,
        cta_group: braces.one("cta_group", MMA)?,
        stationary: flag("ws")?,
        scale_vec: braces.or("scale_vec", 0, "scale_vec = 2")?,
        shifted: flag("ashift")?,
        collector,
        scaled_input: flag("scale_input")?,
        a: elem("a")?,
        b: elem("b")?,
        d: elem("d")?,
        shape: [braces.one("m", MMA)?, braces.one("n", MMA)?, braces.one("k", MMA)?],
    })
}

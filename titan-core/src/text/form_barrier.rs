//! The text form of operations on regions, barriers, groups and counters, whose attributes are in braces.

#![expect(clippy::wildcard_enum_match_arm, reason = "only these dialects are named")]

use super::form::{Head, HeadError, Named, narrow};
use super::form_tensor;
use crate::ir::{AmdOp, BarrierTy, Call, CallProxy, NvGroup, NvOp, OpKind, RegionOp, Tcgen05Op, Touch, Ty};

type Kind = Result<OpKind, HeadError>;

/// The attributes: the name and the value of each.
pub(super) type Attributes = Vec<(&'static str, String)>;

fn one(name: &'static str, value: impl ToString) -> Attributes {
    vec![(name, value.to_string())]
}

fn two(a: (&'static str, u32), b: (&'static str, impl ToString)) -> Attributes {
    vec![(a.0, a.1.to_string()), (b.0, b.1.to_string())]
}

/// The attributes in braces of an operation on regions.
pub(super) fn region(op: &RegionOp) -> Attributes {
    match op {
        RegionOp::Place { offset, bytes, parts } => {
            let mut named = two(("offset", *offset), ("bytes", bytes));
            named.extend((*parts != 1).then(|| ("parts", parts.to_string())));
            named
        }
        RegionOp::Call(call) => {
            let access = call.access.as_ref().map(|access| match &access[..] {
                [one] => ("access", one.to_string()),
                many => {
                    let words: Vec<&str> = many.iter().map(|t| t.name()).collect();
                    ("access", format!("\"{}\"", words.join(", ")))
                }
            });
            access.into_iter().chain(call.proxy.map(|p| ("proxy", p.to_string()))).collect()
        }
        RegionOp::Tile { offset, .. } => one("offset", offset),
        RegionOp::At | RegionOp::Read | RegionOp::Write | RegionOp::Wait => vec![],
    }
}

/// The attributes in braces of an operation of NVIDIA GPUs.
pub(super) fn nv(op: NvOp) -> Attributes {
    match op {
        NvOp::MbarrierAlloc { at, n } => two(("at", at), ("n", n)),
        NvOp::MbarrierInit { count } => one("count", count),
        NvOp::Arrive { arrivals } | NvOp::ArriveCluster { arrivals } => one("arrivals", arrivals),
        NvOp::ArriveExpectTx { bytes }
        | NvOp::ExpectTx { bytes }
        | NvOp::BulkStore { bytes, .. }
        | NvOp::CpAsync { bytes } => one("bytes", bytes),
        NvOp::BulkLoad { bytes, multicast, .. } => {
            let mut named = one("bytes", bytes);
            named.extend((multicast != 0).then(|| ("multicast", multicast.to_string())));
            named
        }
        NvOp::CpAsyncArrive { noinc, arrivals } => two(("arrivals", arrivals), ("noinc", noinc)),
        NvOp::WaitGroup { group: NvGroup::BulkStore, n, read } => two(("n", n), ("read", read)),
        NvOp::WaitGroup { n, .. } => one("n", n),
        NvOp::BarrierSync { id, threads } | NvOp::BarrierArrive { id, threads } => {
            two(("id", u32::from(id)), ("threads", threads))
        }
        NvOp::SetMaxNReg { registers } => one("registers", registers),
        NvOp::Tcgen05(op) => form_tensor::named(op),
        NvOp::MbarrierAt
        | NvOp::MbarrierInval
        | NvOp::MbarrierWait
        | NvOp::WaitParity
        | NvOp::TryWait
        | NvOp::TestWait
        | NvOp::FenceMbarrierInit
        | NvOp::WgmmaFence
        | NvOp::Wgmma
        | NvOp::Commit { .. }
        | NvOp::ClusterRank
        | NvOp::ClusterArrive
        | NvOp::ClusterWait
        | NvOp::WarpSync
        | NvOp::SequenceInit
        | NvOp::SequenceStore
        | NvOp::SequenceWait => vec![],
    }
}

/// The values of counters that mean no wait; such a counter is not printed.
const NO_WAIT: (u32, u32) = (63, 15);

/// The attributes in braces of an operation of AMD GPUs.
pub(super) fn amd(op: AmdOp) -> Attributes {
    match op {
        AmdOp::Waitcnt { vmcnt, lgkmcnt } => {
            let vector = (vmcnt != NO_WAIT.0).then(|| ("vmcnt", vmcnt.to_string()));
            let local = (lgkmcnt != NO_WAIT.1).then(|| ("lgkmcnt", lgkmcnt.to_string()));
            vector.into_iter().chain(local).collect()
        }
        AmdOp::BufferLoadLds { bytes, .. } => one("bytes", bytes),
        AmdOp::SetPrio { level } => one("level", level),
        AmdOp::DsRead { .. } | AmdOp::DsWrite { .. } | AmdOp::Barrier | AmdOp::Mfma => vec![],
    }
}

/// The operation with a mnemonic; `None` if it is of another dialect.
pub(super) fn kind(name: &str, head: &Head<'_>) -> Option<Kind> {
    let braces = Braces(head.named);
    let kind = match name {
        "ttg.region" => place(&braces),
        "ttg.region.tile" => tile(head, &braces),
        "ttg.region.call" => call(head, &braces),
        "ttg.nv.mbarrier.alloc" => {
            braces.two("at", "n", "at = 0, n = 4").map(|(at, n)| OpKind::Nv(NvOp::MbarrierAlloc { at, n }))
        }
        "ttg.nv.mbarrier.init" => {
            braces.one("count", "count = 1").map(|count| OpKind::Nv(NvOp::MbarrierInit { count }))
        }
        "ttg.nv.mbarrier.arrive" => {
            braces.one("arrivals", "arrivals = 1").map(|arrivals| OpKind::Nv(NvOp::Arrive { arrivals }))
        }
        "ttg.nv.mbarrier.arrive_cluster" => {
            braces.one("arrivals", "arrivals = 1").map(|arrivals| OpKind::Nv(NvOp::ArriveCluster { arrivals }))
        }
        "ttg.nv.mbarrier.arrive_expect_tx" => {
            braces.one("bytes", BYTES).map(|bytes| OpKind::Nv(NvOp::ArriveExpectTx { bytes }))
        }
        "ttg.nv.mbarrier.expect_tx" => braces.one("bytes", BYTES).map(|bytes| OpKind::Nv(NvOp::ExpectTx { bytes })),
        "ttg.nv.cp_async_bulk_tensor.load" => load(&braces, true),
        "ttg.nv.cp_async_bulk.load" => load(&braces, false),
        "ttg.nv.cp_async_bulk_tensor.store" => {
            braces.one("bytes", BYTES).map(|bytes| OpKind::Nv(NvOp::BulkStore { tensor: true, bytes }))
        }
        "ttg.nv.cp_async_bulk.store" => {
            braces.one("bytes", BYTES).map(|bytes| OpKind::Nv(NvOp::BulkStore { tensor: false, bytes }))
        }
        "ttg.nv.cp_async" => braces.one("bytes", BYTES).map(|bytes| OpKind::Nv(NvOp::CpAsync { bytes })),
        "ttg.nv.cp_async.mbarrier_arrive" => cp_async_arrive(&braces),
        "ttg.nv.cp_async.commit_group" => token(head).map(|n| OpKind::Nv(NvOp::Commit { group: NvGroup::CpAsync, n })),
        "ttg.nv.wgmma.commit_group" => token(head).map(|n| OpKind::Nv(NvOp::Commit { group: NvGroup::Wgmma, n })),
        "ttg.nv.bulk_group.commit" => token(head).map(|n| OpKind::Nv(NvOp::Commit { group: NvGroup::BulkStore, n })),
        "ttg.nv.cp_async.wait_group" => wait(&braces, NvGroup::CpAsync),
        "ttg.nv.wgmma.wait_group" => wait(&braces, NvGroup::Wgmma),
        "ttg.nv.bulk_group.wait" => wait(&braces, NvGroup::BulkStore),
        "ttg.nv.barrier.sync" => named(&braces).map(|(id, threads)| OpKind::Nv(NvOp::BarrierSync { id, threads })),
        "ttg.nv.barrier.arrive" => named(&braces).map(|(id, threads)| OpKind::Nv(NvOp::BarrierArrive { id, threads })),
        "ttg.nv.setmaxnreg" => {
            braces.one("registers", "registers = 240").map(|registers| OpKind::Nv(NvOp::SetMaxNReg { registers }))
        }
        "ttg.amd.s_waitcnt" => waitcnt(&braces),
        "ttg.amd.buffer_load_lds" => {
            let bytes = braces.one("bytes", BYTES);
            bytes.and_then(|bytes| Ok(OpKind::Amd(AmdOp::BufferLoadLds { bytes, n: token(head)? })))
        }
        "ttg.amd.ds_read" => token(head).map(|n| OpKind::Amd(AmdOp::DsRead { n })),
        "ttg.amd.ds_write" => token(head).map(|n| OpKind::Amd(AmdOp::DsWrite { n })),
        "ttg.amd.s_setprio" => braces.one("level", "level = 1").map(|level| OpKind::Amd(AmdOp::SetPrio { level })),
        name if name.starts_with("ttg.nv.tcgen05.") => {
            form_tensor::kind(name, &braces)?.map(|op| OpKind::Nv(NvOp::Tcgen05(op)))
        }
        _ => Ok(plain(name)?),
    };
    Some(kind.and_then(|kind| bare(head, kind)))
}

/// Operations without attributes.
fn plain(name: &str) -> Option<OpKind> {
    Some(match name {
        "ttg.region.at" => OpKind::Region(RegionOp::At),
        "ttg.region.read" => OpKind::Region(RegionOp::Read),
        "ttg.region.write" => OpKind::Region(RegionOp::Write),
        "ttg.vtok.wait" => OpKind::Region(RegionOp::Wait),
        "ttg.nv.mbarrier.at" => OpKind::Nv(NvOp::MbarrierAt),
        "ttg.nv.mbarrier.inval" => OpKind::Nv(NvOp::MbarrierInval),
        "ttg.nv.mbarrier.wait" => OpKind::Nv(NvOp::MbarrierWait),
        "ttg.nv.mbarrier.wait_parity" => OpKind::Nv(NvOp::WaitParity),
        "ttg.nv.mbarrier.try_wait" => OpKind::Nv(NvOp::TryWait),
        "ttg.nv.mbarrier.test_wait" => OpKind::Nv(NvOp::TestWait),
        "ttg.nv.fence.mbarrier_init" => OpKind::Nv(NvOp::FenceMbarrierInit),
        "ttg.nv.wgmma.fence" => OpKind::Nv(NvOp::WgmmaFence),
        "ttg.nv.wgmma.mma_async" => OpKind::Nv(NvOp::Wgmma),
        "ttg.nv.cluster.rank" => OpKind::Nv(NvOp::ClusterRank),
        "ttg.nv.cluster.arrive" => OpKind::Nv(NvOp::ClusterArrive),
        "ttg.nv.warp.sync" => OpKind::Nv(NvOp::WarpSync),
        "ttg.nv.sequence.init" => OpKind::Nv(NvOp::SequenceInit),
        "ttg.nv.sequence.store" => OpKind::Nv(NvOp::SequenceStore),
        "ttg.nv.sequence.wait" => OpKind::Nv(NvOp::SequenceWait),
        "ttg.nv.cluster.wait" => OpKind::Nv(NvOp::ClusterWait),
        "ttg.amd.s_barrier" => OpKind::Amd(AmdOp::Barrier),
        "ttg.amd.mfma" => OpKind::Amd(AmdOp::Mfma),
        _ => return None,
    })
}

const BYTES: &str = "bytes = 16384";

/// Checks that only attributes of the operation are stated.
fn bare(head: &Head<'_>, kind: OpKind) -> Kind {
    if !head.attrs.is_empty() {
        return Err(HeadError::Attributes(0, "nothing"));
    }
    // These include attributes that are not printed if they have their default.
    let (known, example): (&[&str], _) = match &kind {
        OpKind::Region(RegionOp::Place { .. }) => (&["offset", "bytes", "parts"], REGION),
        OpKind::Region(RegionOp::Call(_)) => (&["access", "proxy"], CALL),
        OpKind::Nv(NvOp::BulkLoad { .. }) => (&["bytes", "multicast"], BYTES),
        OpKind::Amd(AmdOp::Waitcnt { .. }) => (&["vmcnt", "lgkmcnt"], WAITCNT),
        OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Mma(_))) => (form_tensor::USUAL, form_tensor::MMA),
        _ => (&[], ""),
    };
    let written = braces_of(&kind);
    match head.named.iter().find(|(name, _)| !known.contains(&name.as_str()) && !written.iter().any(|(k, _)| k == name))
    {
        Some(_) if written.is_empty() => Err(HeadError::Named(example)),
        Some(_) => Err(HeadError::Named(if example.is_empty() { "other attributes" } else { example })),
        None => Ok(kind),
    }
}

/// The attributes in braces of any operation of these dialects.
pub(super) fn braces_of(kind: &OpKind) -> Attributes {
    match kind {
        OpKind::Region(op) => region(op),
        OpKind::Nv(op) => nv(*op),
        OpKind::Amd(op) => amd(*op),
        _ => vec![],
    }
}

const REGION: &str = "offset = 0, bytes = 16384, parts = 4";
const CALL: &str = "access = \"r, w, rw\", proxy = generic";
const WAITCNT: &str = "vmcnt = 0, lgkmcnt = 0";

fn place(braces: &Braces<'_>) -> Kind {
    let (offset, bytes) = braces.two("offset", "bytes", REGION)?;
    let parts = braces.or("parts", 1, REGION)?;
    Ok(OpKind::Region(RegionOp::Place { offset, bytes, parts }))
}

fn tile(head: &Head<'_>, braces: &Braces<'_>) -> Kind {
    let Some(Ty::Smem(elem, shape)) = head.ty else {
        return Err(HeadError::NeedsType("as in `smem<128x64xf16>`"));
    };
    Ok(OpKind::Region(RegionOp::Tile { offset: braces.one("offset", "offset = 0")?, elem, shape }))
}

/// An opaque call. Undeclared properties are not stated.
fn call(head: &Head<'_>, braces: &Braces<'_>) -> Kind {
    let name = head.text.clone().ok_or(HeadError::NeedsText)?;
    let word = |key: &str| match braces.find(key) {
        Some(Named::Word(word)) => Ok(Some(word)),
        Some(Named::Int(_)) => Err(HeadError::Named(CALL)),
        None => Ok(None),
    };
    let access = match word("access")? {
        Some(words) => {
            let each = words.split(',').map(|w| Touch::from_name(w.trim()).ok_or(HeadError::Named(CALL)));
            Some(each.collect::<Result<Vec<Touch>, HeadError>>()?)
        }
        None => None,
    };
    let proxy = match word("proxy")? {
        Some(word) => Some(CallProxy::from_name(word).ok_or(HeadError::Named(CALL))?),
        None => None,
    };
    Ok(OpKind::Region(RegionOp::Call(Call { name, access, proxy })))
}

fn load(braces: &Braces<'_>, tensor: bool) -> Kind {
    let multicast = narrow(i64::from(braces.or("multicast", 0, "bytes = 16384, multicast = 3")?))?;
    Ok(OpKind::Nv(NvOp::BulkLoad { tensor, bytes: braces.one("bytes", BYTES)?, multicast }))
}

fn cp_async_arrive(braces: &Braces<'_>) -> Kind {
    const EXAMPLE: &str = "arrivals = 32, noinc = true";
    Ok(OpKind::Nv(NvOp::CpAsyncArrive {
        arrivals: braces.one("arrivals", EXAMPLE)?,
        noinc: braces.flag("noinc", EXAMPLE)?,
    }))
}

fn wait(braces: &Braces<'_>, group: NvGroup) -> Kind {
    let read = group == NvGroup::BulkStore && braces.flag("read", "n = 0, read = true")?;
    Ok(OpKind::Nv(NvOp::WaitGroup { group, n: braces.one("n", "n = 0")?, read }))
}

fn named(braces: &Braces<'_>) -> Result<(u8, u32), HeadError> {
    let (id, threads) = braces.two("id", "threads", "id = 1, threads = 128")?;
    Ok((narrow(i64::from(id))?, threads))
}

fn waitcnt(braces: &Braces<'_>) -> Kind {
    let vmcnt = braces.or("vmcnt", NO_WAIT.0, WAITCNT)?;
    Ok(OpKind::Amd(AmdOp::Waitcnt { vmcnt, lgkmcnt: braces.or("lgkmcnt", NO_WAIT.1, WAITCNT)? }))
}

/// The number of a token, which is part of its type.
fn token(head: &Head<'_>) -> Result<u32, HeadError> {
    match head.ty {
        Some(Ty::Barrier(BarrierTy::Vtok(_, n))) => Ok(n),
        Some(_) | None => Err(HeadError::NeedsType("as in `vtok<cp_async, 0>`")),
    }
}

/// The attributes in braces.
pub(super) struct Braces<'h>(&'h [(String, Named)]);

impl Braces<'_> {
    pub(super) fn find(&self, name: &str) -> Option<&Named> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    pub(super) fn one(&self, name: &str, example: &'static str) -> Result<u32, HeadError> {
        match self.find(name) {
            Some(Named::Int(n)) => narrow(*n),
            Some(Named::Word(_)) | None => Err(HeadError::Named(example)),
        }
    }

    pub(super) fn two(&self, a: &str, b: &str, example: &'static str) -> Result<(u32, u32), HeadError> {
        Ok((self.one(a, example)?, self.one(b, example)?))
    }

    pub(super) fn or(&self, name: &str, usual: u32, example: &'static str) -> Result<u32, HeadError> {
        if self.find(name).is_none() { Ok(usual) } else { self.one(name, example) }
    }

    pub(super) fn flag(&self, name: &str, example: &'static str) -> Result<bool, HeadError> {
        match self.find(name) {
            Some(Named::Word(word)) if word == "true" => Ok(true),
            Some(Named::Word(word)) if word == "false" => Ok(false),
            Some(_) | None => Err(HeadError::Named(example)),
        }
    }
}

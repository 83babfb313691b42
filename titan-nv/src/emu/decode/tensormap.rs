//! `tensormap.replace`, `tensormap.cp_fenceproxy`, and the fences of the tensor-map proxy.

use super::{Decoded, Decoder};
use crate::emu::error::EmuError;
use crate::emu::maps::{MAP, MapScope};
use crate::emu::op::Op;
use crate::emu::ty::{Space, Ty};
use crate::tma::Field;

/// The proxies that these fences order: the second one's accesses before the first one's.
pub(super) const PROXIES: &str = "tensormap::generic";

/// The name of a field in PTX, and the field of a dimension (which fields without dimensions ignore).
type Named = (&'static str, fn(usize) -> Field);

/// The fields of `tensormap.replace`.
const FIELDS: [Named; 10] = [
    ("global_address", |_| Field::Address),
    ("rank", |_| Field::Rank),
    ("box_dim", Field::Box),
    ("global_dim", Field::Extent),
    ("global_stride", Field::Stride),
    ("element_stride", Field::ElementStride),
    ("elemtype", |_| Field::Element),
    ("interleave_layout", |_| Field::Interleave),
    ("swizzle_mode", |_| Field::Swizzle),
    ("fill_mode", |_| Field::Fill),
];

impl Decoder<'_> {
    pub(super) fn tensormap(&mut self) -> Decoded {
        match self.need(&["replace", "cp_fenceproxy"])? {
            "replace" => self.map_replace(),
            _ => self.map_copy(),
        }
    }

    /// `tensormap.replace.tile.field{.space}.b1024.type [map], {dimension,} value`
    fn map_replace(&mut self) -> Decoded {
        self.need(&["tile"])?;
        let name = self.need(&FIELDS.map(|(name, _)| name))?;
        let made = FIELDS.iter().find(|(field, _)| *field == name).map_or(FIELDS[0].1, |(_, made)| *made);
        let space = match self.one_of(&["global", "shared::cta"]) {
            None => Space::Generic,
            Some("global") => Space::Global,
            Some(_) => Space::Shared,
        };
        self.need(&["b1024"])?;
        let kind = made(0);
        let wide = matches!(kind, Field::Address | Field::Stride(_));
        self.need(if wide { &["b64"] } else { &["b32"] })?;
        self.end()?;
        let of_dim = matches!(kind, Field::Box(_) | Field::Extent(_) | Field::Stride(_) | Field::ElementStride(_));
        let n = self.n_operands(&[2 + usize::from(of_dim)])?;
        let dim = if of_dim { usize::try_from(self.constant(1)?).unwrap_or(usize::MAX) } else { 0 };
        let field = made(dim);
        // Choices and dimensions are constants, so that what maps do not have is known now.
        let choice = matches!(field, Field::Element | Field::Interleave | Field::Swizzle | Field::Fill);
        let constant = if choice { self.constant(1)? } else { 0 };
        field.replace(&mut [0; MAP], constant).map_err(|e| self.unknown(&format!("`{}`: {e}: it", self.full())))?;
        let (addr, value) = (self.address(0, space)?, self.src(n - 1, if wide { Ty::B64 } else { Ty::B32 })?);
        Ok(Op::MapReplace { addr, field, value })
    }

    /// `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [to], [from], 128`
    fn map_copy(&mut self) -> Decoded {
        self.words(&["global", "shared::cta", PROXIES, "release"])?;
        let scope = self.map_scope()?;
        self.words(&["sync", "aligned"])?;
        self.end()?;
        self.n_operands(&[3])?;
        self.map_size(2)?;
        Ok(Op::MapCopy { to: self.address(0, Space::Global)?, from: self.address(1, Space::Shared)?, scope })
    }

    /// The words after `fence.proxy.tensormap::generic`.
    pub(super) fn map_fence(&mut self) -> Decoded {
        let acquires = self.need(&["acquire", "release"])? == "acquire";
        let scope = self.map_scope()?;
        if !acquires {
            return self.plain(Op::MapRelease { scope });
        }
        self.end()?;
        self.n_operands(&[2])?;
        self.map_size(1)?;
        Ok(Op::MapAcquire { addr: self.address(0, Space::Generic)?, scope })
    }

    fn map_scope(&mut self) -> Result<MapScope, EmuError> {
        Ok(match self.need(&["cta", "cluster", "gpu", "sys"])? {
            "cta" => MapScope::Block,
            "cluster" => MapScope::Cluster,
            _ => MapScope::Device,
        })
    }

    /// The size of a map, the only one that these instructions take.
    fn map_size(&self, i: usize) -> Result<(), EmuError> {
        let is = self.constant(i)? == MAP as u64;
        is.then_some(()).ok_or_else(|| self.misfit("a tensor map has 128 bytes"))
    }
}

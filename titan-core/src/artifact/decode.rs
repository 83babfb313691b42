//! Decodes artifacts from bytes: every input gives an artifact or an error.

use super::encode::{AS_IT_IS, HEADER, MAGIC, PACKED, checksum};
use super::pack::{self, Forms};
use super::{Artifact, ArtifactError, Assumption, BankConflict, GridRule, VERSION, Variant};
use crate::ir::{Elem, HostExpr, HostOp, Loc, Swizzle, Symbol, TileShape, Ty};
use crate::launch::abi::{MapParam, PartMap};
use crate::launch::report::{Site, SiteKind};

/// The maximum nesting depth of an expression, which is that of the text form.
const MAX_DEPTH: usize = crate::text::MAX_DEPTH;
/// The maximum memory of an item of a list for each byte that it takes at least. The list of variants is allocated while their lists are read,
/// and takes four bytes for each of its own.
const PER_BYTE: usize = 80;

pub(super) fn decode(bytes: &[u8]) -> Result<Artifact, ArtifactError> {
    check(bytes)?;
    let mut reader = Reader { bytes, at: HEADER };
    let kernel = reader.text("the kernel's name")?;
    let (mut packed, mut forms) = (Vec::new(), Forms::new());
    let variants = reader.list::<46, _>("the variants", |r| {
        let mut inner = r.inside("a variant")?;
        let mut variant = inner.variant()?;
        let is_packed = inner.packed()?;
        variant.payload = inner.code(is_packed, &mut forms)?;
        packed.push(is_packed);
        inner.end()?;
        Ok(variant)
    })?;
    let packs = pack::packs(&variants);
    if variants.iter().zip(packed).any(|(v, packed)| packed != (packs && pack::is_text(&v.payload))) {
        return Err(malformed("code that is packed and should not be, or the reverse", reader.at));
    }
    let refused = reader.list::<8, _>("the refusals", |r| Ok((r.text("a target")?, r.text("a reason")?)))?;
    reader.end()?;
    Ok(Artifact { kernel, variants, refused })
}

/// Checks the header, and the checksum of the body.
fn check(bytes: &[u8]) -> Read<()> {
    if !bytes.starts_with(&MAGIC) {
        return Err(ArtifactError::NotAnArtifact);
    }
    let Some((head, body)) = bytes.split_at_checked(HEADER) else {
        return Err(ArtifactError::Length { found: bytes.len(), expected: HEADER });
    };
    let mut header = Reader { bytes: head, at: 8 };
    let version = u16::from_le_bytes(header.array("the version")?);
    if version != VERSION {
        let newer = version > VERSION;
        return Err(if newer {
            ArtifactError::TooNew { found: version }
        } else {
            ArtifactError::TooOld { found: version }
        });
    }
    if header.array("the header")? != [0, 0] {
        return Err(malformed("bytes that are zero in this version are not", 10));
    }
    let expected = header.u32("the length")?;
    if u32::try_from(body.len()) != Ok(expected) {
        let expected = usize::try_from(expected).unwrap_or(usize::MAX).saturating_add(HEADER);
        return Err(ArtifactError::Length { found: bytes.len(), expected });
    }
    if u64::from_le_bytes(header.array("the checksum")?) != checksum(body) {
        return Err(ArtifactError::Checksum);
    }
    Ok(())
}

/// Reads from position `at`; positions in errors are those in the artifact.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

pub(super) type Read<T> = Result<T, ArtifactError>;

pub(super) fn malformed(what: &'static str, at: usize) -> ArtifactError {
    ArtifactError::Malformed { what, at }
}

impl<'a> Reader<'a> {
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn take(&mut self, n: usize, what: &'static str) -> Read<&'a [u8]> {
        let taken = self.at.checked_add(n).and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or(ArtifactError::Truncated { what, at: self.at })?;
        self.at += n;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Read<[u8; N]> {
        let at = self.at;
        self.take(N, what)?.try_into().map_err(|_| ArtifactError::Truncated { what, at })
    }

    fn u32(&mut self, what: &'static str) -> Read<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn index(&mut self, what: &'static str) -> Read<usize> {
        let at = self.at;
        usize::try_from(self.u32(what)?).map_err(|_| malformed(what, at))
    }

    /// A length and as many bytes: the position of the first byte, and the bytes.
    fn section(&mut self, what: &'static str) -> Read<(usize, &'a [u8])> {
        let start = self.at;
        let n = self.index(what)?;
        let at = self.at;
        let bytes = self.take(n, what).map_err(|_| ArtifactError::Truncated { what, at: start })?;
        Ok((at, bytes))
    }

    /// A reader of the next section.
    fn inside(&mut self, what: &'static str) -> Read<Reader<'a>> {
        let (at, section) = self.section(what)?;
        Ok(Reader { bytes: &self.bytes[..at + section.len()], at })
    }

    /// All bytes that are left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at = self.bytes.len();
        rest
    }

    fn text(&mut self, what: &'static str) -> Read<String> {
        let (at, bytes) = self.section(what)?;
        let text = std::str::from_utf8(bytes);
        text.map(str::to_owned).map_err(|_| malformed("a text that is not UTF-8", at))
    }

    /// A list whose items take at least `LEAST` bytes each, so that a count for which there are too few bytes fails before memory is allocated.
    fn list<const LEAST: usize, T>(
        &mut self,
        what: &'static str,
        mut item: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<Vec<T>> {
        const { assert!(size_of::<T>() <= LEAST * PER_BYTE, "the memory of a list is bounded by its bytes") };
        let at = self.at;
        let n = self.index(what)?;
        if n > (self.bytes.len() - self.at) / LEAST {
            return Err(ArtifactError::Truncated { what, at });
        }
        let mut items = Vec::with_capacity(n);
        for _ in 0..n {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// All parts of a variant except for its code.
    fn variant(&mut self) -> Read<Variant> {
        let at = self.at;
        let variant = Variant {
            target: self.text("the target")?,
            config: self.list::<8, _>("the configuration", |r| Ok((r.text("a name")?, r.text("a value")?)))?,
            assumptions: self.list::<1, _>("the assumptions", Reader::assumption)?,
            shared_bytes: self.u32("the size of shared memory")?,
            threads: self.u32("the number of threads")?,
            cluster: self.u32("the programs of a cluster")?,
            grid: self.grid()?,
            notes: self.list::<4, _>("the notes", |r| r.text("a note"))?,
            conflicts: self.list::<12, _>("the bank conflicts", Reader::conflict)?,
            sites: self.list::<13, _>("the sites", Reader::site)?,
            payload: Vec::new(),
        };
        let tables = variant.maps().any(|map| matches!(map.part, PartMap::Ending { .. }));
        match (tables, variant.maker().is_some()) {
            (true, false) => Err(malformed("tables of tensor maps, and no kernel that makes them", at)),
            (false, true) => Err(malformed("a kernel that makes tables of tensor maps, and no tables", at)),
            (true, true) | (false, false) => Ok(variant),
        }
    }

    fn conflict(&mut self) -> Read<BankConflict> {
        let loc = Loc { line: self.u32("the line of a conflict")?, column: self.u32("its column")? };
        Ok(BankConflict { loc, degree: self.u32("its degree")? })
    }

    fn grid(&mut self) -> Read<GridRule> {
        let at = self.at;
        match self.tag("the grid")? {
            0 => Ok(GridRule::Declared),
            1 => Ok(GridRule::Persistent),
            2 => Ok(GridRule::Flat),
            _ => Err(malformed("an unknown kind of grid", at)),
        }
    }

    /// Whether the code that follows is packed.
    fn packed(&mut self) -> Read<bool> {
        let at = self.at;
        match self.tag("the code")? {
            AS_IT_IS => Ok(false),
            PACKED => Ok(true),
            _ => Err(malformed("code that is packed in an unknown way", at)),
        }
    }

    fn code(&mut self, packed: bool, forms: &mut Forms) -> Read<Vec<u8>> {
        if !packed {
            return Ok(self.section("the code")?.1.to_vec());
        }
        let length = self.index("the length of the code")?;
        let mut inner = self.inside("the code")?;
        let code = forms.unpack(&mut inner, length)?;
        inner.end()?;
        Ok(code)
    }

    fn site(&mut self) -> Read<Site> {
        let what = "a site";
        let loc = Loc { line: self.u32(what)?, column: self.u32(what)? };
        let at = self.at;
        let kind = match self.tag(what)? {
            0 => SiteKind::Trap(self.text("a message")?),
            1 => SiteKind::Print(self.text("a format")?, self.list::<2, _>("types", Reader::ty)?),
            _ => return Err(malformed("a site of an unknown kind", at)),
        };
        Ok(Site { loc, kind })
    }

    fn ty(&mut self) -> Read<Ty> {
        let at = self.at;
        let wrong = || malformed("a type that there is not", at);
        let (tile, elem) = (self.tag("a type")?, self.tag("a type")?);
        let elem = Elem::ALL.get(usize::from(elem)).copied().ok_or_else(wrong)?;
        match tile {
            0 => Ok(Ty::Scalar(elem)),
            1 => {
                let dims = self.list::<4, _>("extents", |r| r.u32("an extent").map(u32::cast_signed))?;
                let shape = TileShape::new(&dims).filter(|s| s.problem().is_none()).ok_or_else(wrong)?;
                Ok(Ty::Tile(elem, shape))
            }
            _ => Err(wrong()),
        }
    }

    pub(super) fn tag(&mut self, what: &'static str) -> Read<u8> {
        self.array(what).map(|[tag]| tag)
    }

    fn assumption(&mut self) -> Read<Assumption> {
        let at = self.at;
        let what = "an assumption";
        Ok(match self.tag(what)? {
            0 => Assumption::UnitStride { param: self.u32(what)?, axis: self.u32(what)? },
            1 => Assumption::Aligned { param: self.u32(what)?, bytes: self.u32(what)? },
            2 => Assumption::StrideMultiple { param: self.u32(what)?, axis: self.u32(what)?, bytes: self.u32(what)? },
            3 => Assumption::Divisible { expr: self.expr(0)?, by: i64::from_le_bytes(self.array(what)?) },
            4 => Assumption::Index32,
            5 => Assumption::Holds(self.expr(0)?),
            6 => Assumption::SharedMemory { bytes: self.u32(what)? },
            7 => Assumption::TensorMap(self.tensor_map()?),
            8 => Assumption::Reach {
                param: self.u32(what)?,
                tile: self.list::<4, _>("the extents of a tile", |r| r.u32("an extent"))?,
            },
            9 => Assumption::Apart { param: self.u32(what)?, axis: self.u32(what)?, rows: self.u32(what)? },
            _ => return Err(malformed("an assumption of an unknown kind", at)),
        })
    }

    fn tensor_map(&mut self) -> Read<MapParam> {
        let what = "a tensor map";
        let param = self.u32(what)?;
        let at = self.at;
        let (elem, swizzle) = (self.tag(what)?, self.tag(what)?);
        let elem = Elem::ALL.get(usize::from(elem)).copied();
        let swizzle = Swizzle::ALL.get(usize::from(swizzle)).copied();
        let (Some(elem), Some(swizzle)) = (elem, swizzle) else {
            return Err(malformed("a tensor map of an element or a swizzle that there is not", at));
        };
        let extents = self.list::<4, _>("the extents of a box", |r| r.u32("an extent"))?;
        let at = self.at;
        let axis = |axis: u8| usize::from(axis);
        let part = match self.tag(what)? {
            0 => PartMap::Whole,
            1 => PartMap::Along(self.tag(what)?),
            2 => PartMap::Ending {
                table: self.u32(what)?,
                axes: self.list::<1, _>("the axes of parts", |r| r.tag("an axis"))?,
                entries: match self.tag(what)? {
                    0 => None,
                    1 => Some(self.u32(what)?),
                    _ => return Err(malformed("a table of tensor maps of an unknown kind", at)),
                },
            },
            _ => return Err(malformed("a tensor map for parts of an unknown kind", at)),
        };
        let has = match &part {
            PartMap::Whole => true,
            // Along the last axis there are no such parts.
            PartMap::Along(along) => axis(*along) + 1 < extents.len(),
            PartMap::Ending { axes, .. } => {
                axes.is_sorted_by(|a, b| a < b) && axes.iter().all(|along| axis(*along) < extents.len())
            }
        };
        if !has {
            return Err(malformed("a tensor map for parts along an axis that has none", at));
        }
        Ok(MapParam { param, elem, extents, swizzle, part })
    }

    fn expr(&mut self, depth: usize) -> Read<HostExpr> {
        let at = self.at;
        let what = "an expression";
        if depth > MAX_DEPTH {
            return Err(malformed("an expression that nests too deep", at));
        }
        Ok(match self.tag(what)? {
            0 => HostExpr::Const(i64::from_le_bytes(self.array(what)?)),
            1 => HostExpr::Symbol(Symbol::new(self.index(what)?)),
            2 => HostExpr::Scalar(self.index(what)?),
            3 => HostExpr::Dim(self.index(what)?, self.index(what)?),
            4 => HostExpr::Not(Box::new(self.expr(depth + 1)?)),
            tag => {
                let op = tag.checked_sub(16).and_then(|i| HostOp::ALL.get(usize::from(i)));
                let Some((op, _)) = op else {
                    return Err(malformed("an expression of an unknown kind", at));
                };
                let a = self.expr(depth + 1)?;
                HostExpr::Binary(*op, Box::new(a), Box::new(self.expr(depth + 1)?))
            }
        })
    }

    pub(super) fn end(&self) -> Read<()> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        Err(malformed("bytes after the end of a section", self.at))
    }
}

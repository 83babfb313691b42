//! Bytes of artifacts. The format is described in the module above.

use super::{Artifact, ArtifactError, Assumption, VERSION, Variant};
use crate::ir::{Elem, HostExpr, HostOp, Loc, Symbol, TileShape, Ty};
use crate::launch::report::{Site, SiteKind};

const MAGIC: [u8; 8] = *b"\x89TITAN\r\n";
const HEADER: usize = 24;
/// How deep an expression may nest: the limit of the text form.
const MAX_DEPTH: usize = crate::text::MAX_DEPTH;

/// FNV-1a, 64 bits.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
}

pub(super) fn encode(artifact: &Artifact) -> Vec<u8> {
    let mut body = Writer(Vec::new());
    body.text(&artifact.kernel);
    body.list(&artifact.variants, |w, v| {
        let mut inner = Writer(Vec::new());
        inner.variant(v);
        w.bytes(&inner.0);
    });
    body.list(&artifact.refused, |w, (target, reason)| {
        w.text(target);
        w.text(reason);
    });
    let body = body.0;
    let mut out = Writer(Vec::with_capacity(HEADER + body.len()));
    out.0.extend(MAGIC);
    out.0.extend(VERSION.to_le_bytes());
    out.0.extend([0, 0]);
    out.length(body.len());
    out.0.extend(checksum(&body).to_le_bytes());
    out.0.extend(body);
    out.0
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, v: u32) {
        self.0.extend(v.to_le_bytes());
    }

    /// Above 4 GiB the length is wrong, and the artifact does not decode.
    fn length(&mut self, n: usize) {
        self.u32(u32::try_from(n).unwrap_or(u32::MAX));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.length(items.len());
        items.iter().for_each(|i| item(self, i));
    }

    fn variant(&mut self, v: &Variant) {
        self.text(&v.target);
        self.list(&v.config, |w, (name, value)| {
            w.text(name);
            w.text(value);
        });
        self.list(&v.assumptions, Writer::assumption);
        self.u32(v.shared_bytes);
        self.u32(v.threads);
        self.list(&v.notes, |w, n| w.text(n));
        self.list(&v.sites, Writer::site);
        self.bytes(&v.payload);
    }

    fn site(&mut self, site: &Site) {
        self.u32(site.loc.line);
        self.u32(site.loc.column);
        match &site.kind {
            SiteKind::Trap(message) => {
                self.0.push(0);
                self.text(message);
            }
            SiteKind::Print(format, tys) => {
                self.0.push(1);
                self.text(format);
                self.list(tys, |w, ty| w.ty(*ty));
            }
        }
    }

    /// Scalars and tiles: tensors are not printed, and count as scalars.
    fn ty(&mut self, ty: Ty) {
        let elem = Elem::ALL.iter().position(|e| *e == ty.elem()).unwrap_or(0);
        let shape = ty.tile_shape();
        self.0.push(shape.is_some().into());
        self.0.push(u8::try_from(elem).unwrap_or(0));
        if let Some(shape) = shape {
            self.list(&shape, |w, n| w.u32(n.cast_unsigned()));
        }
    }

    fn assumption(&mut self, a: &Assumption) {
        let (tag, fields): (u8, &[u32]) = match a {
            Assumption::UnitStride { param, axis } => (0, &[*param, *axis]),
            Assumption::Aligned { param, bytes } => (1, &[*param, *bytes]),
            Assumption::StrideMultiple { param, axis, bytes } => (2, &[*param, *axis, *bytes]),
            Assumption::Divisible { expr, by } => {
                self.0.push(3);
                self.expr(expr);
                self.0.extend(by.to_le_bytes());
                return;
            }
            Assumption::Index32 => (4, &[]),
            Assumption::SharedMemory { bytes } => (6, &[*bytes]),
            Assumption::Holds(expr) => {
                self.0.push(5);
                self.expr(expr);
                return;
            }
        };
        self.0.push(tag);
        fields.iter().for_each(|f| self.u32(*f));
    }

    fn expr(&mut self, e: &HostExpr) {
        match e {
            HostExpr::Const(v) => {
                self.0.push(0);
                self.0.extend(v.to_le_bytes());
            }
            HostExpr::Symbol(s) => {
                self.0.push(1);
                self.length(s.index());
            }
            HostExpr::Scalar(p) => {
                self.0.push(2);
                self.length(*p);
            }
            HostExpr::Dim(p, axis) => {
                self.0.push(3);
                self.length(*p);
                self.length(*axis);
            }
            HostExpr::Not(a) => {
                self.0.push(4);
                self.expr(a);
            }
            HostExpr::Binary(op, a, b) => {
                let index = HostOp::ALL.iter().position(|(o, _)| o == op).unwrap_or(0);
                self.0.push(16 + u8::try_from(index).unwrap_or(0));
                self.expr(a);
                self.expr(b);
            }
        }
    }
}

pub(super) fn decode(bytes: &[u8]) -> Result<Artifact, ArtifactError> {
    check(bytes)?;
    let mut reader = Reader { bytes, at: HEADER };
    let kernel = reader.text("the kernel's name")?;
    let variants = reader.list("the variants", |r| {
        let (at, section) = r.section("a variant")?;
        let mut inner = Reader { bytes: &bytes[..at + section.len()], at };
        let variant = inner.variant()?;
        inner.end()?;
        Ok(variant)
    })?;
    let refused = reader.list("the refusals", |r| Ok((r.text("a target")?, r.text("a reason")?)))?;
    reader.end()?;
    Ok(Artifact { kernel, variants, refused })
}

/// Checks the header, and the body as a whole.
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
        return Err(ArtifactError::Malformed { what: "bytes that are zero in this version are not", at: 10 });
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

/// Reads from `at`; positions in errors are those of the artifact.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

type Read<T> = Result<T, ArtifactError>;

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize, what: &'static str) -> Read<&'a [u8]> {
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
        usize::try_from(self.u32(what)?).map_err(|_| ArtifactError::Malformed { what, at })
    }

    /// A length and as many bytes: where they start, and they.
    fn section(&mut self, what: &'static str) -> Read<(usize, &'a [u8])> {
        let start = self.at;
        let n = self.index(what)?;
        let at = self.at;
        let bytes = self.take(n, what).map_err(|_| ArtifactError::Truncated { what, at: start })?;
        Ok((at, bytes))
    }

    fn text(&mut self, what: &'static str) -> Read<String> {
        let (at, bytes) = self.section(what)?;
        let text = std::str::from_utf8(bytes);
        text.map(str::to_owned).map_err(|_| ArtifactError::Malformed { what: "a text that is not UTF-8", at })
    }

    /// Every item takes at least one byte, so a count above what is left fails before it costs memory.
    fn list<T>(&mut self, what: &'static str, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let at = self.at;
        let n = self.index(what)?;
        if n > self.bytes.len() - self.at {
            return Err(ArtifactError::Truncated { what, at });
        }
        (0..n).map(|_| item(self)).collect()
    }

    fn variant(&mut self) -> Read<Variant> {
        Ok(Variant {
            target: self.text("the target")?,
            config: self.list("the configuration", |r| Ok((r.text("a name")?, r.text("a value")?)))?,
            assumptions: self.list("the assumptions", Reader::assumption)?,
            shared_bytes: self.u32("the size of shared memory")?,
            threads: self.u32("the number of threads")?,
            notes: self.list("the notes", |r| r.text("a note"))?,
            sites: self.list("the sites", Reader::site)?,
            payload: self.section("the payload")?.1.to_vec(),
        })
    }

    fn site(&mut self) -> Read<Site> {
        let what = "a site";
        let loc = Loc { line: self.u32(what)?, column: self.u32(what)? };
        let at = self.at;
        let kind = match self.tag(what)? {
            0 => SiteKind::Trap(self.text("a message")?),
            1 => SiteKind::Print(self.text("a format")?, self.list("types", Reader::ty)?),
            _ => return Err(ArtifactError::Malformed { what: "a site of an unknown kind", at }),
        };
        Ok(Site { loc, kind })
    }

    fn ty(&mut self) -> Read<Ty> {
        let at = self.at;
        let wrong = || ArtifactError::Malformed { what: "a type that there is not", at };
        let (tile, elem) = (self.tag("a type")?, self.tag("a type")?);
        let elem = Elem::ALL.get(usize::from(elem)).copied().ok_or_else(wrong)?;
        match tile {
            0 => Ok(Ty::Scalar(elem)),
            1 => {
                let dims = self.list("extents", |r| r.u32("an extent").map(u32::cast_signed))?;
                let shape = TileShape::new(&dims).filter(|s| s.problem().is_none()).ok_or_else(wrong)?;
                Ok(Ty::Tile(elem, shape))
            }
            _ => Err(wrong()),
        }
    }

    fn tag(&mut self, what: &'static str) -> Read<u8> {
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
            _ => return Err(ArtifactError::Malformed { what: "an assumption of an unknown kind", at }),
        })
    }

    fn expr(&mut self, depth: usize) -> Read<HostExpr> {
        let at = self.at;
        let what = "an expression";
        if depth > MAX_DEPTH {
            return Err(ArtifactError::Malformed { what: "an expression that nests too deep", at });
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
                    return Err(ArtifactError::Malformed { what: "an expression of an unknown kind", at });
                };
                let a = self.expr(depth + 1)?;
                HostExpr::Binary(*op, Box::new(a), Box::new(self.expr(depth + 1)?))
            }
        })
    }

    fn end(&self) -> Read<()> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        Err(ArtifactError::Malformed { what: "bytes after the end of a section", at: self.at })
    }
}

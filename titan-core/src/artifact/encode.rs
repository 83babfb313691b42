//! Encodes artifacts as bytes. The parent module describes the format.

use super::pack::{self, Forms};
use super::{Artifact, Assumption, GridRule, VERSION, Variant};
use crate::ir::{Elem, HostExpr, HostOp, Swizzle, Ty};
use crate::launch::abi::{MapParam, PartMap};
use crate::launch::report::{Site, SiteKind};

pub(super) const MAGIC: [u8; 8] = *b"\x89TITAN\r\n";
pub(super) const HEADER: usize = 24;
/// The byte before code that is stored without packing.
pub(super) const AS_IT_IS: u8 = 0;
/// The byte before the length of a text and its packed bytes.
pub(super) const PACKED: u8 = 1;

/// FNV-1a, 64 bits.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
}

pub(super) fn encode(artifact: &Artifact) -> Vec<u8> {
    let mut body = Writer(Vec::new());
    body.text(&artifact.kernel);
    let (packs, mut forms) = (pack::packs(&artifact.variants), Forms::new());
    body.list(&artifact.variants, |w, v| {
        let mut inner = Writer(Vec::new());
        inner.variant(v);
        inner.code(&v.payload, packs.then_some(&mut forms));
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

    /// Writes a length. Above 4 GiB it is wrong, and the artifact does not decode.
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
        self.u32(v.cluster);
        self.0.push(match v.grid {
            GridRule::Declared => 0,
            GridRule::Persistent => 1,
            GridRule::Flat => 2,
        });
        self.list(&v.notes, |w, n| w.text(n));
        self.list(&v.conflicts, |w, c| [c.loc.line, c.loc.column, c.degree].into_iter().for_each(|n| w.u32(n)));
        self.list(&v.sites, Writer::site);
    }

    /// Writes code. Texts are packed if `forms` is given.
    fn code(&mut self, code: &[u8], forms: Option<&mut Forms>) {
        match forms.filter(|_| pack::is_text(code)) {
            None => {
                self.0.push(AS_IT_IS);
                self.bytes(code);
            }
            Some(forms) => {
                self.0.push(PACKED);
                self.length(code.len());
                self.bytes(&forms.pack(code));
            }
        }
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

    /// Writes the type of a scalar or tile. Tensors are not printed, and count as scalars.
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
            Assumption::Apart { param, axis, rows } => (9, &[*param, *axis, *rows]),
            Assumption::Index32 => (4, &[]),
            Assumption::SharedMemory { bytes } => (6, &[*bytes]),
            Assumption::Holds(expr) => {
                self.0.push(5);
                self.expr(expr);
                return;
            }
            Assumption::TensorMap(map) => {
                self.0.push(7);
                self.tensor_map(map);
                return;
            }
            Assumption::Reach { param, tile } => {
                self.0.push(8);
                self.u32(*param);
                self.list(tile, |w, n| w.u32(*n));
                return;
            }
        };
        self.0.push(tag);
        fields.iter().for_each(|f| self.u32(*f));
    }

    fn tensor_map(&mut self, MapParam { param, elem, extents, swizzle, part }: &MapParam) {
        self.u32(*param);
        let elem = Elem::ALL.iter().position(|e| e == elem).unwrap_or(0);
        let swizzle = Swizzle::ALL.iter().position(|s| s == swizzle).unwrap_or(0);
        self.0.extend([elem, swizzle].map(|index| u8::try_from(index).unwrap_or(0)));
        self.list(extents, |w, n| w.u32(*n));
        match part {
            PartMap::Whole => self.0.push(0),
            PartMap::Along(axis) => self.0.extend([1, *axis]),
            PartMap::Ending { table, axes, entries } => {
                self.0.push(2);
                self.u32(*table);
                self.list(axes, |w, axis| w.0.push(*axis));
                self.0.push(u8::from(entries.is_some()));
                entries.iter().for_each(|of| self.u32(*of));
            }
        }
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

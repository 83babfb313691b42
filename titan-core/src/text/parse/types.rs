//! Parses types.

use super::{Parse, Parser};
use crate::ir::{BarrierTy, Class, Elem, EncodingId, LayoutId, Pipe, Place, TileShape, Token, Ty, Typed};
use crate::text::lex::Tok;

const TYPES: &str = "types are written `f32`, `tile<128x64xf16>`, `tensor<f16, 2>` and, of pipelines, `slot<0>`";

impl Parser<'_> {
    /// Parses a type without a place.
    pub(super) fn ty(&mut self) -> Parse<Ty> {
        let at = self.next.at;
        let typed = self.typed_ty()?;
        if typed.place == Place::None { Ok(typed.ty) } else { self.fail(at, "a type without a place is wanted here") }
    }

    /// A type, with the number of its layout or encoding: `tile<64x64xf16, 3>`.
    pub(super) fn typed_ty(&mut self) -> Parse<Typed> {
        let Tok::Word(word) = self.next.tok else { return self.expected("a type") };
        let at = self.bump().at;
        match word {
            "tile" => {
                self.expect("<")?;
                let ty = self.tile()?;
                self.placed(ty)
            }
            "source" | "smem" | "compute" => {
                self.expect("<")?;
                let tile = self.tile()?;
                let (e, Some(s)) = (tile.elem(), tile.tile_shape()) else { return self.placed(tile) };
                let ty = match word {
                    "source" => Ty::Source(e, s),
                    "smem" => Ty::Smem(e, s),
                    _ => Ty::Compute(e, s),
                };
                self.placed(ty)
            }
            "acc" => {
                self.expect("<")?;
                let keep = self.int("how many MMAs may be in flight")?;
                self.expect(",")?;
                let tile = self.tile()?;
                let ty = tile.tile_shape().map_or(tile, |s| Ty::Acc(tile.elem(), s, keep));
                self.placed(ty)
            }
            "tensor" => {
                self.expect("<")?;
                let elem = self.elem()?;
                self.expect(",")?;
                let rank = self.int("a rank")?;
                self.expect(">")?;
                Ok(Ty::Tensor(elem, rank).into())
            }
            "region" => Ok(Ty::Barrier(BarrierTy::Region).into()),
            "mbarrier" => Ok(Ty::Barrier(BarrierTy::Mbarrier).into()),
            "mbarrier.state" => Ok(Ty::Barrier(BarrierTy::State).into()),
            "tmem" => Ok(Ty::Barrier(BarrierTy::TensorMemory).into()),
            "vtok" => self.vtok().map(Typed::from),
            word => match (Elem::from_name(word), Token::from_name(word)) {
                (Some(e), _) => Ok(Ty::Scalar(e).into()),
                (None, Some(token)) => {
                    self.expect("<")?;
                    let pipe: u32 = self.int("the number of a ring")?;
                    self.expect(">")?;
                    Ok(Ty::Token(token, Pipe::new(pipe as usize)).into())
                }
                (None, None) => {
                    self.fail(at, format!("expected a type, found `{word}`")).or_else(|f| self.add_help(f, TYPES))
                }
            },
        }
    }

    /// Parses the place of a tile, if there is one, and the closing bracket. The verifier checks whether such a place exists.
    fn placed(&mut self, ty: Ty) -> Parse<Typed> {
        let mut place = Place::None;
        if self.eat(",") {
            let number: u32 = self.int("the number of a layout or encoding")?;
            let number = number as usize;
            let shared = matches!(ty, Ty::Smem(..));
            place =
                if shared { Place::Shared(EncodingId::new(number)) } else { Place::Registers(LayoutId::new(number)) };
        }
        self.expect(">")?;
        Ok(Typed { ty, place })
    }

    /// `vtok<cp_async, 2>`, from `<` on.
    fn vtok(&mut self) -> Parse<Ty> {
        self.expect("<")?;
        let at = self.next.at;
        let name = self.name("a class of work")?;
        let Some(class) = Class::from_name(&name) else {
            let names: Vec<&str> = Class::ALL.iter().map(|c| c.name()).collect();
            return self
                .fail(at, format!("`{name}` is not a class of work"))
                .or_else(|f| self.add_help(f, &format!("classes: {}", names.join(", "))));
        };
        self.expect(",")?;
        let n = self.int("the number of a token")?;
        self.expect(">")?;
        Ok(Ty::Barrier(BarrierTy::Vtok(class, n)))
    }

    /// `128x64xf16`
    fn tile(&mut self) -> Parse<Ty> {
        let Tok::Number(text) = self.next.tok else {
            return self.expected("the extents of a tile").or_else(|f| self.add_help(f, TYPES));
        };
        let at = self.bump().at;
        let mut parts = text.split('x');
        let elem = parts.next_back().and_then(Elem::from_name);
        let dims: Option<Vec<i32>> = parts.map(|d| if d.starts_with('+') { None } else { d.parse().ok() }).collect();
        match (elem, dims.as_deref().and_then(TileShape::new)) {
            (Some(elem), Some(shape)) => Ok(Ty::Tile(elem, shape)),
            _ => self
                .fail(at, format!("`{text}` is not one to four extents and an element type"))
                .or_else(|f| self.add_help(f, TYPES)),
        }
    }

    pub(super) fn elem(&mut self) -> Parse<Elem> {
        if let Tok::Word(word) = self.next.tok
            && let Some(elem) = Elem::from_name(word)
        {
            self.bump();
            return Ok(elem);
        }
        let names: Vec<&str> = Elem::ALL.iter().map(|e| e.name()).collect();
        self.expected("an element type").or_else(|f| self.add_help(f, &format!("element types: {}", names.join(", "))))
    }
}

//! Types.

use super::{Parse, Parser};
use crate::ir::{Elem, TileShape, Ty};
use crate::text::lex::Tok;

const TYPES: &str = "types are written `f32`, `tile<128x64xf16>` and `tensor<f16, 2>`";

impl Parser<'_> {
    pub(super) fn ty(&mut self) -> Parse<Ty> {
        let Tok::Word(word) = self.next.tok else { return self.expected("a type") };
        let at = self.bump().at;
        match word {
            "tile" => {
                self.expect("<")?;
                let ty = self.tile()?;
                self.expect(">")?;
                Ok(ty)
            }
            "tensor" => {
                self.expect("<")?;
                let elem = self.elem()?;
                self.expect(",")?;
                let rank = self.int("a rank")?;
                self.expect(">")?;
                Ok(Ty::Tensor(elem, rank))
            }
            word => match Elem::from_name(word) {
                Some(e) => Ok(Ty::Scalar(e)),
                None => self.fail(at, format!("expected a type, found `{word}`")).or_else(|f| self.add_help(f, TYPES)),
            },
        }
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
            _ => self.fail(at, format!("`{text}` is not one to four extents and an element type"))
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

//! Types.

use super::{Parse, Parser};
use crate::ir::{Class, Elem, Pipe, Raw, TileShape, Token, Ty};
use crate::text::lex::Tok;

const TYPES: &str = "types are written `f32`, `tile<128x64xf16>`, `tensor<f16, 2>` and, of pipelines, `slot<0>`";

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
            "source" | "smem" | "compute" => {
                self.expect("<")?;
                let tile = self.tile()?;
                self.expect(">")?;
                let (e, Some(s)) = (tile.elem(), tile.tile_shape()) else { return Ok(tile) };
                Ok(match word {
                    "source" => Ty::Source(e, s),
                    "smem" => Ty::Smem(e, s),
                    _ => Ty::Compute(e, s),
                })
            }
            "acc" => {
                self.expect("<")?;
                let keep = self.int("how many products may be under way")?;
                self.expect(",")?;
                let tile = self.tile()?;
                self.expect(">")?;
                Ok(tile.tile_shape().map_or(tile, |s| Ty::Acc(tile.elem(), s, keep)))
            }
            "tensor" => {
                self.expect("<")?;
                let elem = self.elem()?;
                self.expect(",")?;
                let rank = self.int("a rank")?;
                self.expect(">")?;
                Ok(Ty::Tensor(elem, rank))
            }
            "region" => Ok(Ty::Raw(Raw::Region)),
            "mbarrier" => Ok(Ty::Raw(Raw::Mbarrier)),
            "mbarrier.state" => Ok(Ty::Raw(Raw::State)),
            "vtok" => self.vtok(),
            word => match (Elem::from_name(word), Token::from_name(word)) {
                (Some(e), _) => Ok(Ty::Scalar(e)),
                (None, Some(token)) => {
                    self.expect("<")?;
                    let pipe: u32 = self.int("the number of a ring")?;
                    self.expect(">")?;
                    Ok(Ty::Token(token, Pipe::new(pipe as usize)))
                }
                (None, None) => {
                    self.fail(at, format!("expected a type, found `{word}`")).or_else(|f| self.add_help(f, TYPES))
                }
            },
        }
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
        Ok(Ty::Raw(Raw::Vtok(class, n)))
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

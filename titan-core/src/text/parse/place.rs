//! Parses the lines of a laid-out kernel before its body: `plan(..)`, then `layout(..)` and `encoding(..)`, which are numbered in order.

use super::{Body, Parse, Parser};
use crate::ir::{Bit, Encoding, EncodingId, FreeBy, LaidOut, Layout, TileShape};
use crate::text::lex::Tok;
use crate::text::place::{AXES, swizzle_from_name};

impl<'a> Parser<'a> {
    /// `plan(8, 32, mbarrier, index32, aligned(0, 2))`, after the parenthesis: warps, lanes of a warp, how slots of rings between roles are
    /// released, and the assumptions about the arguments.
    pub(super) fn plan(&mut self, body: &mut Body<'a>) -> Parse<()> {
        self.expect("(")?;
        let warps = self.int("the number of warps")?;
        self.expect(",")?;
        let lanes = self.int("the number of threads of a warp")?;
        let mut plan = LaidOut {
            warps,
            lanes,
            aligned: vec![false; body.kernel.sig.params.len()],
            index32: false,
            free: FreeBy::Mbarrier,
            cluster: 1,
            layouts: Vec::new(),
            encodings: Vec::new(),
            stages: Vec::new(),
        };
        while self.eat(",") {
            let at = self.next.at;
            let word = self.name("`mbarrier`, `sequence`, `index32`, `aligned`, `cluster` or `stages`")?;
            match (word.as_str(), FreeBy::from_name(&word)) {
                ("index32", _) => plan.index32 = true,
                ("aligned", _) => {
                    self.expect("(")?;
                    for param in self.list(")", |p| p.int::<u32>("the number of a parameter"))? {
                        match plan.aligned.get_mut(param as usize) {
                            Some(aligned) => *aligned = true,
                            None => return self.fail(at, format!("there is no parameter {param}")),
                        }
                    }
                }
                ("cluster", _) => {
                    self.expect("(")?;
                    plan.cluster = self.int("the number of programs of a cluster")?;
                    self.expect(")")?;
                    if !matches!(plan.cluster, 1 | 2 | 4 | 8) {
                        return self.fail(at, "a cluster has 1, 2, 4 or 8 programs");
                    }
                }
                ("stages", _) => {
                    self.expect("(")?;
                    let numbers = self.list(")", |p| p.int::<u32>("the number of an encoding"))?;
                    plan.stages.push(numbers.into_iter().map(|n| EncodingId::new(n as usize)).collect());
                }
                (_, Some(free)) => plan.free = free,
                (_, None) => return self.fail(at, format!("`{word}` is no part of a plan")),
            }
        }
        self.expect(")")?;
        body.kernel.laid_out = Some(Box::new(plan));
        Ok(())
    }

    /// `layout(64x64, reg(j1, i8), lane(j2, j4, i1, i2, i4), warp(i16, copy))`, after the parenthesis: the contribution of each bit of the
    /// register, lane and warp number to the coordinates `i`, `j`, `k`, `l`.
    pub(super) fn layout(&mut self, body: &mut Body<'a>) -> Parse<()> {
        let at = self.next.at;
        self.expect("(")?;
        let extents = self.extents()?;
        let rank = extents.len();
        let mut bits = [Vec::new(), Vec::new(), Vec::new()];
        for (name, bits) in ["reg", "lane", "warp"].into_iter().zip(&mut bits) {
            self.expect(",")?;
            self.expect_word(name)?;
            self.expect("(")?;
            *bits = self.list(")", |p| p.bit(rank))?;
        }
        self.expect(")")?;
        let [regs, lanes, warps] = bits;
        let layout = Layout::new(&extents, regs, lanes, warps);
        if let Err(why) = layout.check() {
            return self.fail(at, why);
        }
        let Some(plan) = &mut body.kernel.laid_out else { return self.fail(at, "a layout without a `plan` before it") };
        plan.layouts.push(layout);
        Ok(())
    }

    /// `encoding(64x64, 16, order(0, 1), row(64, 128), b128)`, after the parenthesis: extents, bits of an element, axes from the slowest to
    /// the fastest, the elements of a row and the distance of rows in bytes, and the swizzle.
    pub(super) fn encoding(&mut self, body: &mut Body<'a>) -> Parse<()> {
        let at = self.next.at;
        self.expect("(")?;
        let extents = self.extents()?;
        self.expect(",")?;
        let bits = self.int("the bits of an element")?;
        self.expect(",")?;
        self.expect_word("order")?;
        self.expect("(")?;
        let order = self.list(")", |p| p.int::<u32>("an axis"))?.into_iter().map(|axis| axis as usize).collect();
        self.expect(",")?;
        self.expect_word("row")?;
        self.expect("(")?;
        let row = self.int("the elements of a row")?;
        self.expect(",")?;
        let pitch = self.int("the bytes from row to row")?;
        self.expect(")")?;
        self.expect(",")?;
        let word = self.name("a swizzle")?;
        let Some(swizzle) = swizzle_from_name(&word) else {
            return self.fail(at, format!("`{word}` is no swizzle: there are `none`, `b32`, `b64` and `b128`"));
        };
        self.expect(")")?;
        let encoding = Encoding { extents, bits, order, row, pitch, swizzle };
        if let Err(why) = encoding.check() {
            return self.fail(at, why);
        }
        let Some(plan) = &mut body.kernel.laid_out else {
            return self.fail(at, "an encoding without a `plan` before it");
        };
        plan.encodings.push(encoding);
        Ok(())
    }

    /// `64x64`
    fn extents(&mut self) -> Parse<Vec<u32>> {
        let at = self.next.at;
        let Tok::Number(text) = self.next.tok else { return self.expected("extents, as in `64x64`") };
        self.bump();
        let all: Option<Vec<u32>> =
            text.split('x').map(|n| n.parse().ok().filter(|n| (1..=1 << 20).contains(n))).collect();
        match all {
            Some(extents) if extents.len() <= AXES.len() && fits(&extents) => Ok(extents),
            Some(_) | None => self.fail(at, format!("`{text}` is not one to four extents")),
        }
    }

    /// `j4` or `copy`
    fn bit(&mut self, rank: usize) -> Parse<Bit> {
        let at = self.next.at;
        let word = self.name("a step, as in `j4`, or `copy`")?;
        if word == "copy" {
            return Ok(Bit::Copy);
        }
        let axis = AXES[..rank.min(AXES.len())].iter().position(|axis| word.starts_with(axis));
        let by =
            word.get(1..).and_then(|by| by.parse::<u32>().ok()).filter(|by| by.is_power_of_two() && *by <= 1 << 20);
        match (axis.and_then(|axis| u8::try_from(axis).ok()), by) {
            (Some(axis), Some(by)) => Ok(Bit::Step { axis, by }),
            (_, _) => self.fail(at, format!("`{word}` is not a step along an axis by a power of two, as in `j4`")),
        }
    }
}

/// Whether a tile with these extents is small enough.
fn fits(extents: &[u32]) -> bool {
    extents.iter().map(|n| u64::from(*n)).product::<u64>() <= TileShape::MAX_LEN.cast_unsigned()
}

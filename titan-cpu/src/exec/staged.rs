//! Loops over stages that are one matrix product: the sources of consecutive stages are adjacent tiles, as if they were
//! loaded in a loop.

use super::product_loop::{Run, Strip};
use super::rings::{Content, Copied};
use super::{Machine, Outcome};
use crate::plan::product::{Factor, Origin, ProductLoop};
use crate::runtime::view::View;

/// A stage of a factor: the tensor, the first element, the value of elements outside.
type Place<'a, 'm> = (&'a View<'m>, [i64; 4], u64);

impl<'m> Machine<'_, 'm> {
    /// Of at most `most` iterations, computes those whose stages are filled, if they are adjacent along k; returns their number.
    pub(super) fn staged_product(&mut self, product: &ProductLoop, most: i64) -> Outcome<i64> {
        let Some((a, from, there)) = self.stages_of(product, &product.a, most) else { return Ok(0) };
        let Some((b, also_from, also_there)) = self.stages_of(product, &product.b, there) else { return Ok(0) };
        let run = Run::of([&a, &b], product.step[2], from, also_there).filter(|_| from == also_from);
        let Some(run) = run else { return Ok(0) };
        if !self.product(product, [&a, &b], &run)? {
            return Ok(0);
        }
        for (ring, reader) in &product.rings {
            let count = run.count.cast_unsigned();
            let time = self.rings[*ring].claim(*reader, count);
            (time..time + count).for_each(|time| self.rings[*ring].release(time));
        }
        Ok(run.count)
    }

    /// The part of a tensor that a factor reads in the stages from the next one on; the first element along k, and the number of stages
    /// that are adjacent from there.
    fn stages_of(&self, product: &ProductLoop, factor: &Factor, most: i64) -> Option<(Strip<'m>, i64, i64)> {
        let Origin::Stage { ring, .. } = factor.origin else { return None };
        let (_, reader) = product.rings.iter().find(|(known, _)| *known == ring)?;
        let first = self.rings[ring].clock(*reader);
        let (view, start, pad) = self.place_in(factor, first)?;
        let (k, other) = (factor.k_axis, 1 - factor.k_axis);
        let strip = Strip {
            view: *view,
            first: start[2 + other],
            tile: factor.shape[other],
            k_axis: k,
            zeros: pad == 0,
            is_transposed: factor.is_transposed,
        };
        let elements = view.constant()?;
        let (mut want, mut count) = (start, 1);
        while count < most {
            want[2 + k] += i64::from(factor.shape[k]);
            let next = self.place_in(factor, first + count.cast_unsigned());
            if !next.is_some_and(|(v, at, p)| at == want && p == pad && v.constant() == Some(elements)) {
                break;
            }
            count += 1;
        }
        Some((strip, start[2 + k], count.min(most)))
    }

    fn place_in(&self, factor: &Factor, time: u64) -> Option<Place<'_, 'm>> {
        let Origin::Stage { ring, field } = factor.origin else { return None };
        match self.rings[ring].content(time) {
            Content::Copied(copied) => match copied.get(field)? {
                Copied::Tile { view, start, pad } => Some((view, *start, *pad)),
                Copied::Rows { .. } => None,
            },
            Content::Nothing | Content::Zero | Content::Poison => None,
        }
    }
}

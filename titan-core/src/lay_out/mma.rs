//! MMAs: operands as fragments or in shared memory, one step of K at a time.
//!
//! With matrix instructions, each step loads the fragments of A and B and multiplies them:
//!
//! ```text
//! %a0 = ttg.local.slice<1, 16> %a, %zero : smem<128x16xf16, 0>
//! %f0 = ttg.local.load %a0 : tile<128x16xf16, 3>
//! %g0 = ttg.local.load %b0 : tile<16x64xf16, 4>
//! %acc1 = ttg.local.mma %f0, %g0, %acc : tile<128x64xf32, 2>
//! ```
//!
//! With multiply-adds, a loop over K does the same with the rows and columns that each thread needs.

use super::{Laid, LayOut};
use crate::ir::{Elem, Encoding, ForKind, Layout, LocalOp, Op, OpId, OpKind, Ty, Value};
use crate::plan::{Method, MmaPlan, Source};

/// An operand of an MMA: A as `[M, K]`, B as `[K, N]`.
pub(super) enum Operand {
    /// In registers, in the layout of fragments.
    Fragments(Value),
    /// In shared memory.
    Shared(Value),
}

impl LayOut<'_> {
    /// Lays out an MMA that is complete before the next operation; returns its result, in the layout of the plan.
    pub(super) fn complete_mma(&mut self, id: OpId, op: &Op) -> Laid<Value> {
        let value = self.started(id, op)?;
        let tile = if matches!(self.b.ty(value), Ty::Compute(..)) { self.retire(value)? } else { value };
        self.convert(tile, &self.layout(op.results[0]))
    }

    /// Lays out an MMA; returns its result, in the layout of the plan. An MMA of warpgroups may still be in flight.
    pub(super) fn started(&mut self, id: OpId, op: &Op) -> Laid<Value> {
        let (Some(mma), Some([a, b, acc])) = (self.plan.mmas.get(&id).cloned(), crate::plan::operands(op)) else {
            if self.k.roles.is_empty() {
                return Err(self.internal("an MMA without a plan"));
            }
            // Only MMAs in roles are planned in a kernel with roles.
            return Err(self.refused("an MMA outside of the roles is not supported".to_owned(), "compute it in a role"));
        };
        let acc = self.tile(acc, &mma.acc)?;
        let acc = if mma.acc.rank() == 3 {
            let flat = mma.acc.without(0);
            let mut all = Vec::new();
            for batch in 0..mma.batch {
                let part = self.part_of_batch(acc, batch, &flat)?;
                all.push(self.one_mma(&mma, [a, b], part, batch)?);
            }
            self.local(LocalOp::Stack, &all, &mma.acc)?
        } else {
            self.one_mma(&mma, [a, b], acc, 0)?
        };
        self.convert(acc, &self.layout(op.results[0]))
    }

    /// One tile of a batch of tiles in registers, without the batch axis.
    fn part_of_batch(&mut self, tile: Value, batch: u32, flat: &Layout) -> Laid<Value> {
        let at = self.index(batch);
        let part = self.local(LocalOp::Slice { axis: 0, n: 1 }, &[tile, at], &flat.batched(1))?;
        let shape = self.shape(flat.extents())?;
        self.tile_op(OpKind::Reshape(shape), &[part], flat)
    }

    pub(super) fn index(&mut self, n: u32) -> Value {
        self.b.i32(i32::try_from(n).unwrap_or(i32::MAX))
    }

    fn one_mma(&mut self, mma: &MmaPlan, [a, b]: [Value; 2], acc: Value, batch: u32) -> Laid<Value> {
        let a = self.operand(a, mma, true, batch)?;
        let b = self.operand(b, mma, false, batch)?;
        match mma.method {
            // A fragment may be that of several instructions.
            Method::Atom(_) => self.by_atoms(mma, mma.a.atom()[1], [&a, &b], acc),
            Method::Group(atom) => self.by_groups(mma, atom.k, [&a, &b], acc),
            Method::MulAdd => self.by_mul_add(mma, [&a, &b], acc),
        }
    }

    /// Prepares an operand: as fragments in registers, or in shared memory.
    fn operand(&mut self, old: Value, mma: &MmaPlan, is_a: bool, batch: u32) -> Laid<Operand> {
        let (source, elem, fragment) = if is_a {
            (&mma.a_source, mma.staged.0, mma.a.clone())
        } else {
            (&mma.b_source, mma.staged.1, mma.b.permuted(&[1, 0]))
        };
        match source {
            Source::Registers => {
                let value = self.tile(old, &fragment)?;
                Ok(Operand::Fragments(self.cast(value, elem)?))
            }
            Source::Shared(encoding) => {
                let made = self.made[old.index()].filter(|made| matches!(self.b.ty(*made), Ty::Smem(..)));
                match made {
                    Some(made) => Ok(Operand::Shared(made)),
                    None => Ok(Operand::Shared(self.staged(old, elem, encoding, [mma.batch, batch])?)),
                }
            }
        }
    }

    /// Writes an operand, or one matrix of its batch, from registers to shared memory.
    fn staged(&mut self, old: Value, to: Elem, encoding: &Encoding, [batches, batch]: [u32; 2]) -> Laid<Value> {
        let name = self.k.display_name(old);
        let buffer = self.buffer(to, &encoding.extents, encoding, &name)?;
        let extents = self.extents(old);
        let value = if extents.len() == 3 {
            let flat = self.wide(&extents[1..], self.elem(old).bits());
            let all = self.tile(old, &flat.batched(batches))?;
            self.part_of_batch(all, batch, &flat)?
        } else {
            self.own(old)?.1
        };
        let extents = &extents[extents.len() - 2..];
        let mut part = buffer;
        if encoding.extents != extents {
            self.clear(buffer, to, encoding)?;
            for (axis, n) in (0u8..).zip(extents) {
                part = self.part(part, axis, *n, 0)?;
            }
        }
        let value = self.cast(value, to)?;
        self.write(value, part)?;
        Ok(buffer)
    }

    /// Fills a buffer with zeros, since instructions may read beyond the tile.
    pub(super) fn clear(&mut self, buffer: Value, elem: Elem, encoding: &Encoding) -> Laid<()> {
        let zero = self.zero(elem);
        let shape = self.shape(&encoding.extents)?;
        let layout = self.wide(&encoding.extents, elem.bits());
        let zeros = self.tile_op(OpKind::Splat(shape), &[zero], &layout)?;
        self.write(zeros, buffer)
    }

    /// The part of a tile of `n` elements along an axis, from a constant offset on.
    fn part(&mut self, of: Value, axis: u8, n: u32, at: u32) -> Laid<Value> {
        let at = self.index(at);
        self.part_at(of, axis, n, at)
    }

    pub(super) fn part_at(&mut self, of: Value, axis: u8, n: u32, at: Value) -> Laid<Value> {
        let kind = LocalOp::Slice { axis, n: i32::try_from(n).unwrap_or(i32::MAX) };
        let (layout, encoding) = (self.b.kernel().layout(of).cloned(), self.b.kernel().encoding(of).cloned());
        let part = self.one(OpKind::Local(kind), &[of, at])?;
        if let Some(layout) = layout {
            let extents: Vec<u32> = self.b.ty(part).tile_shape().map(Into::into).unwrap_or_default();
            self.b.put(part, &layout.with_extents(&extents));
        }
        if let Some(encoding) = encoding {
            self.b.put_shared(part, &encoding);
        }
        Ok(part)
    }

    fn by_atoms(&mut self, mma: &MmaPlan, k: u32, [a, b]: [&Operand; 2], acc: Value) -> Laid<Value> {
        let [m, n, _] = mma.extents;
        let steps = mma.a.repetitions()[1].min(mma.b.repetitions()[1]);
        let fragments = (mma.a.with_extents(&[m, k]), mma.b.with_extents(&[n, k]).permuted(&[1, 0]));
        let mut acc = acc;
        for step in 0..steps {
            let at = self.index(step * k);
            let a = self.fragment(a, 1, (k, at), (&fragments.0, mma.staged.0))?;
            let b = self.fragment(b, 0, (k, at), (&fragments.1, mma.staged.1))?;
            acc = self.local(LocalOp::Mma, &[a, b, acc], &flat(mma))?;
        }
        Ok(acc)
    }

    /// The fragment of an operand for `k` elements along K, in registers, converted to the element type that is multiplied.
    fn fragment(
        &mut self,
        operand: &Operand,
        axis: u8,
        (k, at): (u32, Value),
        (layout, elem): (&Layout, Elem),
    ) -> Laid<Value> {
        match operand {
            Operand::Fragments(all) => self.part_at(*all, axis, k, at),
            Operand::Shared(all) => {
                let part = self.part_at(*all, axis, k, at)?;
                let part = self.as_layout(part, layout)?;
                self.settle_copy(*all)?;
                let value = self.read(part, layout)?;
                self.cast(value, elem)
            }
        }
    }

    /// The part of a buffer that a layout covers, since the encoding may be larger than the tile.
    fn as_layout(&mut self, buffer: Value, layout: &Layout) -> Laid<Value> {
        let extents: Vec<u32> = self.b.ty(buffer).tile_shape().map(Into::into).unwrap_or_default();
        let mut part = buffer;
        for (axis, (have, want)) in (0u8..).zip(extents.iter().zip(layout.extents())) {
            if have != want {
                part = self.part(part, axis, *want, 0)?;
            }
        }
        Ok(part)
    }

    fn by_mul_add(&mut self, mma: &MmaPlan, [a, b]: [&Operand; 2], acc: Value) -> Laid<Value> {
        let (Operand::Shared(a), Operand::Shared(b)) = (a, b) else {
            return Err(self.internal("an operand of multiply-adds outside shared memory"));
        };
        let [m, n, k] = mma.extents;
        let unroll = self.unroll([*a, *b], k, mma.staged.0);
        // Elements that are adjacent in memory along K are loaded at once.
        let fast = |value: Value| self.b.kernel().encoding(value).map(Encoding::fast_axis);
        let wide = |layout: Layout, operand: Value, axis: u8| {
            if fast(operand) == Some(usize::from(axis)) { layout.with_adjacent(axis, unroll) } else { layout }
        };
        let along = (
            wide(mma.a.with_extents(&[m, unroll]), *a, 1),
            wide(mma.b.with_extents(&[n, unroll]).permuted(&[1, 0]), *b, 0),
        );
        let flat = flat(mma);
        let bounds = [self.index(0), self.index(k / unroll), self.index(1)];
        self.settle_copies()?;
        let open = self.b.begin_for(ForKind::Sequential, bounds, &[acc]).map_err(|e| self.internal(e.to_string()))?;
        let (Some(step), [carried]) = (open.index, &open.carried[..]) else {
            return Err(self.internal("a loop without a counter"));
        };
        let carried = *carried;
        self.b.put(carried, &flat);
        self.memo.push(crate::collections::SortedMap::new());
        let by = self.index(unroll);
        let at = self.one(OpKind::Binary(crate::ir::BinOp::Mul), &[step, by])?;
        let rows = self.fragment(&Operand::Shared(*a), 1, (unroll, at), (&along.0, mma.staged.0))?;
        let columns = self.fragment(&Operand::Shared(*b), 0, (unroll, at), (&along.1, mma.staged.1))?;
        let next = self.local(LocalOp::Mma, &[rows, columns, carried], &flat)?;
        self.memo.pop();
        self.b.terminate(OpKind::Continue(0), &[next]);
        let out = self.b.end_loop(open, &[]);
        let [out] = out[..] else { return Err(self.internal("a loop without a result")) };
        self.b.put(out, &flat);
        Ok(out)
    }

    /// The number of elements along K that are read at once: those that are contiguous in both operands.
    fn unroll(&self, [a, b]: [Value; 2], k: u32, elem: Elem) -> u32 {
        let side_by_side = |value: Value, axis: usize| {
            let encoding = self.b.kernel().encoding(value);
            encoding.map_or(1, |e| if e.fast_axis() == axis { e.vector() } else { 4 })
        };
        let most = (1u32 << k.trailing_zeros()).min(128 / elem.bits()).min(4);
        most.min(side_by_side(a, 1)).min(side_by_side(b, 0)).max(1)
    }
}

/// The layout of the accumulator for one matrix of a batch.
fn flat(mma: &MmaPlan) -> Layout {
    if mma.acc.rank() == 3 { mma.acc.without(0) } else { mma.acc.clone() }
}

//! Matrix products.
//!
//! By matrix instructions: for each step of K, the fragments of A and B are read, and every pair of them is multiplied. By
//! multiply-adds: a loop over K reads the rows and columns of a thread's part from shared memory.

use super::tile::{Held, Staged, register_index};
use super::vector::Place;
use super::{Lower, LowerError, Reg, scalar};
use crate::ir::{BinOp, Elem, Op, OpId, Value};
use crate::lane::{self, MmaAtom};
use crate::layout::{Encoding, Layout};
use crate::plan::{Method, Product, Source};

/// An operand of a product, ready to be read.
pub(super) enum Operand {
    /// Fragments in registers: elements in the fragment layout.
    Fragments(Vec<Reg>),
    /// In shared memory, seen as `[rows, K]`.
    Staged(Staged),
}

impl Lower<'_> {
    pub(super) fn product(&mut self, id: OpId, op: &Op) -> Result<(), LowerError> {
        let Some(product) = self.plan.products.get(&id).cloned() else {
            return Err(LowerError::internal(self.k, "a product without a plan".to_owned()));
        };
        let Some([a_value, b_value, acc_value]) = crate::plan::operands(op) else {
            return Err(LowerError::internal(self.k, "a product without operands".to_owned()));
        };
        let mut acc = self.tile(acc_value, &product.acc)?;
        let each = acc.len() / product.batch as usize;
        for batch in 0..product.batch {
            let a = self.operand(a_value, &product, true, batch)?;
            let b = self.operand(b_value, &product, false, batch)?;
            let part = &mut acc[batch as usize * each..][..each];
            match product.method {
                Method::Atom(atom) => self.by_atoms(&product, &atom, &a, &b, part)?,
                Method::MulAdd => self.by_mul_add(&product, &a, &b, part)?,
            }
        }
        let home = self.home(op.results[0]);
        let acc = self.convert(&acc, &product.acc, &home, self.k.ty(op.results[0]).elem())?;
        self.hold(op.results[0], Held::Tile(acc));
        Ok(())
    }

    /// Makes an operand ready.
    fn operand(&mut self, value: Value, product: &Product, is_a: bool, batch: u32) -> Result<Operand, LowerError> {
        let (source, staged, fragment) = if is_a {
            (&product.a_source, product.staged.0, product.a.clone())
        } else {
            (&product.b_source, product.staged.1, product.b.permuted(&[1, 0]))
        };
        let elem = self.k.ty(value).elem();
        match source {
            Source::Registers => {
                let regs = self.tile(value, &fragment)?;
                let regs = self.cast_all(&regs, elem, staged);
                // `permuted` changes the order of repetitions.
                let regs = if is_a { regs } else { reordered(&regs, &fragment, &product.b) };
                Ok(Operand::Fragments(regs))
            }
            Source::Shared(encoding) => {
                let held = match &self.held[value.index()] {
                    Some(Held::Buffer(held)) => held.clone(),
                    _ => self.staged(value, staged, encoding, [product.batch, batch])?,
                };
                let encoding = if is_a { held.encoding.clone() } else { held.encoding.permuted(&[1, 0]) };
                Ok(Operand::Staged(Staged { encoding, ..held }))
            }
        }
    }

    /// Writes an operand, or one of its batch, from registers to shared memory.
    fn staged(
        &mut self,
        value: Value,
        to: Elem,
        encoding: &Encoding,
        [batches, batch]: [u32; 2],
    ) -> Result<Staged, LowerError> {
        let elem = self.k.ty(value).elem();
        let name = self.k.display_name(value);
        let staged = self.stage(&name, encoding.clone());
        let extents = self.extents(value);
        let (layout, regs) = if extents.len() == 3 {
            let flat = crate::plan::wide(&extents[1..], elem.bits(), self.plan.target.lanes, self.crew.warps);
            let regs = self.tile(value, &flat.batched(batches))?;
            let each = flat.registers();
            (flat, regs[batch as usize * each..][..each].to_vec())
        } else {
            let home = self.home(value);
            let regs = self.tile(value, &home)?;
            (home, regs)
        };
        if encoding.extents != layout.extents() {
            self.clear(&staged, to);
        }
        let regs = self.cast_all(&regs, elem, to);
        self.write_buffer(&staged, &regs, &layout, to);
        Ok(staged)
    }

    /// Fills a buffer with zeros: what instructions read beyond a tile must not be anything.
    pub(super) fn clear(&mut self, staged: &Staged, elem: Elem) {
        let extents = &staged.encoding.extents;
        let layout = crate::plan::wide(extents, elem.bits(), self.plan.target.lanes, self.crew.warps);
        let zero = self.zero(elem);
        let regs = vec![zero; layout.registers()];
        self.write_buffer(staged, &regs, &layout, elem);
    }

    fn by_atoms(
        &mut self,
        product: &Product,
        atom: &MmaAtom,
        a: &Operand,
        b: &Operand,
        acc: &mut [Reg],
    ) -> Result<(), LowerError> {
        let flat =
            if product.batch > 1 || product.acc.rank() == 3 { product.acc.without(0) } else { product.acc.clone() };
        let [rows, columns, ..] = flat.repetitions();
        let steps = product.a.repetitions()[1].min(product.b.repetitions()[1]);
        let count = atom.registers(self.plan.target.lanes);
        for step in 0..steps {
            let a = self.fragments(a, &product.a, product.staged.0, step)?;
            let b = self.fragments(b, &product.b, product.staged.1, step)?;
            for row in 0..rows as usize {
                for column in 0..columns as usize {
                    let at = (row * columns as usize + column) * count.c;
                    let mut args = a[row * count.a..][..count.a].to_vec();
                    args.extend_from_slice(&b[column * count.b..][..count.b]);
                    args.extend_from_slice(&acc[at..][..count.c]);
                    let out = self.b.op(lane::OpKind::Mma(*atom), &args);
                    acc[at..][..count.c].copy_from_slice(&out);
                }
            }
        }
        Ok(())
    }

    fn by_mul_add(&mut self, product: &Product, a: &Operand, b: &Operand, acc: &mut [Reg]) -> Result<(), LowerError> {
        let (Operand::Staged(a), Operand::Staged(b)) = (a, b) else {
            return Err(LowerError::internal(self.k, "operands of multiply-adds lie in shared memory".to_owned()));
        };
        self.settle_copies();
        self.touch(a.region(), false);
        self.touch(b.region(), false);
        let flat = if product.acc.rank() == 3 { product.acc.without(0) } else { product.acc.clone() };
        let elem = product.staged.0;
        let k = product.extents[2];
        let unroll = {
            let wide = |s: &Staged| if s.encoding.fast_axis() == 1 { s.encoding.vector() } else { 4 };
            let most = (1u32 << k.trailing_zeros()).min(128 / elem.bits()).min(4);
            most.min(wide(a)).min(wide(b)).max(1)
        };
        let bounds = [self.b.i32(0), self.b.i32(k.cast_signed()), self.b.i32(unroll.cast_signed())];
        let init = acc.to_vec();
        let (open, step, carried) = self.b.begin_for(bounds, &init);
        self.memo.push(std::collections::BTreeMap::new());
        let rows = self.strips(a, &flat, 0, step, k, unroll, elem);
        let columns = self.strips(b, &flat, 1, step, k, unroll, elem);
        let index = register_index(&flat);
        let mut next = carried;
        for (at, r) in &index {
            let (Some(x), Some(y)) = (rows.get(&at[0]), columns.get(&at[1])) else { continue };
            for (x, y) in x.iter().zip(y) {
                next[*r] = self.mul_add_step(elem, *x, *y, next[*r]);
            }
        }
        self.memo.pop();
        self.b.terminate(lane::OpKind::Continue(0), &next);
        acc.copy_from_slice(&self.b.end(open));
        Ok(())
    }

    fn mul_add_step(&mut self, elem: Elem, x: Reg, y: Reg, z: Reg) -> Reg {
        let target = &self.plan.target;
        if elem.is_float() {
            return scalar::mul_add(&mut self.b, target, elem, x, y, z);
        }
        let xy = scalar::binary(&mut self.b, target, BinOp::Mul, elem, x, y);
        scalar::binary(&mut self.b, target, BinOp::Add, elem, xy, z)
    }

    /// For each row of a thread, `n` neighbours along K from `step` on.
    #[expect(clippy::too_many_arguments, reason = "one walk over both operands")]
    fn strips(
        &mut self,
        staged: &Staged,
        acc: &Layout,
        axis: usize,
        step: Reg,
        k: u32,
        n: u32,
        elem: Elem,
    ) -> std::collections::BTreeMap<u32, Vec<Reg>> {
        let thread = self.thread_coord(acc, axis);
        let reach = super::convert::reach(acc)[axis];
        let rows: std::collections::BTreeSet<u32> =
            (0..acc.registers()).map(|r| acc.register_coords(r)[axis]).collect();
        let mut out = std::collections::BTreeMap::new();
        for row in rows {
            let place = |lower: &mut Self, i: u32| -> Place {
                lower.buffer_place(staged, &[thread, step], [reach, k - 1, 0, 0], [row, i, 0, 0])
            };
            let regs = if staged.encoding.fast_axis() == 1 {
                let at = place(self, 0);
                self.load_vector(at, elem, n, None)
            } else {
                (0..n)
                    .map(|i| {
                        let at = place(self, i);
                        self.load_vector(at, elem, 1, None)[0]
                    })
                    .collect()
            };
            out.insert(row, regs);
        }
        out
    }
}

/// Registers of one layout in the order of its transpose.
fn reordered(regs: &[Reg], from: &Layout, to: &Layout) -> Vec<Reg> {
    let index = register_index(from);
    (0..to.registers())
        .filter_map(|r| {
            let at = to.register_coords(r);
            index.get(&[at[1], at[0], 0, 0]).and_then(|i| regs.get(*i)).copied()
        })
        .collect()
}

//! MMAs of tiles that extend beyond their tensors: elements outside are zeros, whose products are zeros, or NaN where the
//! other factor is not finite.

use super::Outcome;
use super::matrix::{Operand, Sums, multiply};
use super::pool::{Buffer, bytes, bytes_mut, reserve};
use crate::rep::Rep;
use titan_core::ir::Elem;

/// The part of an MMA's tiles whose factors are inside of their tensors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// The element type of the accumulator.
    pub(super) acc: Elem,
    pub(super) size: usize,
    /// The number of columns of the tiles.
    pub(super) row: usize,
    /// The numbers of rows and columns that are inside.
    pub(super) inside: [usize; 2],
}

/// A zero of every element type that is multiplied.
const ZEROS: [u64; 1] = [0];

impl Edge {
    /// Sets the elements outside to zero.
    pub(super) fn clear(&self, dst: &mut [u8]) {
        let [m, n] = self.inside;
        for (i, row) in dst.chunks_exact_mut(self.row * self.size).enumerate() {
            let from = if i < m { n * self.size } else { 0 };
            row[from..].fill(0);
        }
    }

    /// Adds the products of `k` elements of the factors with zeros to the elements outside.
    pub(super) fn add(&self, dst: &mut [u8], k: usize, factors: [Operand<'_>; 2], sums: &mut Buffer) -> Outcome<()> {
        match Sums::of(self.acc) {
            Sums::F64 => self.add_products::<f64>(bytemuck::cast_slice_mut(dst), k, factors, sums),
            // Integers are finite, so their products with zeros are zero.
            Sums::I32 => Ok(()),
            Sums::F32 => self.add_products::<f32>(bytemuck::cast_slice_mut(dst), k, factors, sums),
        }
    }

    fn add_products<T: Rep + std::ops::AddAssign>(
        &self,
        dst: &mut [T],
        k: usize,
        [a, b]: [Operand<'_>; 2],
        sums: &mut Buffer,
    ) -> Outcome<()> {
        let [m, n] = self.inside;
        let zeros = Operand { data: &bytemuck::bytes_of(&ZEROS)[..self.size], first: 0, strides: [0; 4] };
        if dst.len() > m * self.row {
            // The rows outside are zeros, so that one product stands for all of them.
            let products = self.products::<T>([1, n, k], [zeros, b], sums)?;
            if !products.is_empty() {
                for row in dst[m * self.row..].chunks_exact_mut(self.row) {
                    row.iter_mut().zip(products).for_each(|(d, p)| *d += *p);
                }
            }
        }
        if self.row > n {
            let products = self.products::<T>([m, 1, k], [a, zeros], sums)?;
            for (row, p) in dst.chunks_exact_mut(self.row).zip(products) {
                row[n..].iter_mut().for_each(|d| *d += *p);
            }
        }
        Ok(())
    }

    /// The products with zeros; `None` if all of them are zero.
    fn products<'s, T: Rep>(
        &self,
        shape: [usize; 3],
        factors: [Operand<'_>; 2],
        sums: &'s mut Buffer,
    ) -> Outcome<&'s [T]> {
        let len = shape[0] * shape[1] * self.size;
        reserve(sums, len)?;
        multiply(self.acc, (bytes_mut(sums, len), shape[1]), shape, false, factors, &mut Buffer::new())?;
        let products: &[T] = bytemuck::cast_slice(bytes(sums, len));
        let zero = T::from_bits(0);
        Ok(if products.iter().all(|p| *p == zero) { &[] } else { products })
    }
}

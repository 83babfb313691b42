//! Asynchronous MMAs with operands in shared memory.

use std::fmt;
use std::marker::PhantomData;

use super::bundle::Bundle;
use super::stage::Stage;
use super::views::SmemRef;
use crate::lang::elem::Elem;
use crate::lang::mma::{MmaAccumulator, MmaOperand, MmaShapes, MmaTypes, mma};
use crate::lang::shape::Shape;
use crate::lang::tile::Tile;

/// An MMA in flight. Until it is waited for, the stages that it reads are borrowed.
#[must_use = "an MMA in flight must be waited for: `product.wait()`"]
pub struct Compute<'s, C, S> {
    result: Tile<C, S>,
    stages: PhantomData<&'s ()>,
}

impl<C: Elem, S: Shape> Compute<'_, C, S> {
    /// Waits for the MMA, and returns `a · b + acc`.
    #[must_use]
    pub fn wait(self) -> Tile<C, S> {
        self.result
    }
}

/// Without this impl, rustc would end the borrow of a stage at the last use of an MMA that is never waited for.
impl<C, S> Drop for Compute<'_, C, S> {
    fn drop(&mut self) {}
}

impl<C, S> fmt::Debug for Compute<'_, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compute")
    }
}

/// Starts the MMA `a · b + acc`, with operands as of [`mma`], both in shared memory.
pub fn mma_async<'s, A, B, C, SA, SB>(
    a: SmemRef<'s, A, SA>,
    b: SmemRef<'s, B, SB>,
    acc: C,
) -> Compute<'s, C::Elem, C::Shape>
where
    A: MmaTypes<B, C::Elem>,
    B: Elem,
    C: MmaOperand + MmaAccumulator<SA::Product>,
    SA: MmaShapes<SB>,
    SB: Shape,
{
    Compute { result: mma(a.tile, b.tile, acc), stages: PhantomData }
}

/// Issues the same MMA as [`mma_async`], with the left operand in registers.
pub fn mma_async_reg<'s, A, B, C, SA, SB>(
    a: Tile<A, SA>,
    b: SmemRef<'s, B, SB>,
    acc: C,
) -> Compute<'s, C::Elem, C::Shape>
where
    A: MmaTypes<B, C::Elem>,
    B: Elem,
    C: MmaOperand + MmaAccumulator<SA::Product>,
    SA: MmaShapes<SB>,
    SB: Shape,
{
    Compute { result: mma(a, b.tile, acc), stages: PhantomData }
}

/// An accumulator with up to `KEEP` MMAs in flight. It takes the stages that they read, and releases each when its MMA has
/// read it.
///
/// In kernels: `Acc::<f32, D2<128, 256>, 1>::zeros()`.
#[must_use = "MMAs in flight must be waited for: `acc.finish()`"]
pub struct Acc<'r, C, S, const KEEP: i32> {
    sum: Tile<C, S>,
    stages: PhantomData<&'r ()>,
}

impl<'r, C: Elem, S: Shape, const KEEP: i32> Acc<'r, C, S, KEEP> {
    /// An accumulator of zeros.
    pub fn zeros() -> Self {
        Self::from_tile(Tile::zeros())
    }

    /// An accumulator with the elements of a tile.
    pub fn from_tile(tile: Tile<C, S>) -> Self {
        Acc { sum: tile, stages: PhantomData }
    }

    /// Starts `acc += a · b`, takes the stage, and waits until at most `KEEP` MMAs are in flight. `operands` returns both operands
    /// from the stage: `acc.mma(stage, |s| (s.a(), s.b().t()))`.
    pub fn mma<B: Bundle, TA, TB, SA, SB>(
        self,
        stage: Stage<'r, B>,
        operands: impl for<'s> FnOnce(&'s Stage<'r, B>) -> (SmemRef<'s, TA, SA>, SmemRef<'s, TB, SB>),
    ) -> Self
    where
        TA: MmaTypes<TB, C>,
        TB: Elem,
        SA: MmaShapes<SB>,
        SB: Shape,
        Tile<C, S>: MmaAccumulator<SA::Product>,
    {
        let (a, b) = operands(&stage);
        Self::from_tile(mma(a.tile, b.tile, self.sum))
    }

    /// As [`Acc::mma`], with the left operand in registers: `acc.mma_reg(stage, p, |s| s.get())`.
    pub fn mma_reg<B: Bundle, TA, TB, SA, SB>(
        self,
        stage: Stage<'r, B>,
        a: Tile<TA, SA>,
        operand: impl for<'s> FnOnce(&'s Stage<'r, B>) -> SmemRef<'s, TB, SB>,
    ) -> Self
    where
        TA: MmaTypes<TB, C>,
        TB: Elem,
        SA: MmaShapes<SB>,
        SB: Shape,
        Tile<C, S>: MmaAccumulator<SA::Product>,
    {
        let b = operand(&stage).tile;
        Self::from_tile(mma(a, b, self.sum))
    }

    /// Waits for all MMAs, and returns the tile.
    #[must_use]
    pub fn finish(self) -> Tile<C, S> {
        self.sum
    }
}

impl<C, S, const KEEP: i32> fmt::Debug for Acc<'_, C, S, KEEP> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acc").field("under_way", &KEEP).finish_non_exhaustive()
    }
}

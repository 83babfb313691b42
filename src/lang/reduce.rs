//! Reductions and scans along one axis.
//!
//! A reduction drops the axis: `Tile<T, D2<A, B>>` along axis 1 gives `Tile<T, D1<A>>`, and rank 1 gives the scalar.
//! A scan keeps the shape. Sums and products of floats accumulate in `f64` here; other devices accumulate in `f32`.

use super::elem::{Elem, Num, Number, Repr};
use super::shape::{Axis, product};
use super::tile::Tile;

/// The positions of the lanes along an axis: lane `(outer, inner)` has elements `(outer * n + k) * inner_len + inner`.
struct Lanes {
    n: usize,
    inner: usize,
    outer: usize,
}

impl Lanes {
    fn of(dims: &[i32], axis: usize) -> Lanes {
        Lanes { n: product(&dims[axis..=axis]), inner: product(&dims[axis + 1..]), outer: product(&dims[..axis]) }
    }

    /// For every lane, in order, the positions of its elements.
    fn positions(&self) -> impl Iterator<Item = Vec<usize>> {
        let (n, inner, outer) = (self.n, self.inner, self.outer);
        (0..outer).flat_map(move |o| (0..inner).map(move |i| (0..n).map(|k| (o * n + k) * inner + i).collect()))
    }
}

impl<T: Elem, S> Tile<T, S> {
    /// `f` of every lane along an axis, which has at least one element.
    fn each_lane<const AX: usize, R: Elem>(self, f: impl Fn(&[T]) -> R) -> S::Rest<R>
    where
        S: Axis<AX>,
    {
        let values = self.values();
        let lane = |at: Vec<usize>| f(&at.into_iter().map(|i| values[i]).collect::<Vec<_>>());
        S::rest(Lanes::of(S::DIMS, AX).positions().map(lane).collect())
    }

    /// Every lane along an axis replaced by `f` of it, which has the same length.
    fn map_lanes<const AX: usize>(self, f: impl Fn(&[T]) -> Vec<T>) -> Self
    where
        S: Axis<AX>,
    {
        let values = self.values();
        let mut out = values.to_vec();
        for at in Lanes::of(S::DIMS, AX).positions() {
            let lane: Vec<T> = at.iter().map(|i| values[*i]).collect();
            for (i, x) in at.into_iter().zip(f(&lane)) {
                out[i] = x;
            }
        }
        Tile::new(out)
    }

    /// `f` folded over an axis, from `init`. `f` is associative and commutative, `init` its neutral element.
    #[must_use]
    pub fn reduce<const AX: usize>(self, init: T, f: impl Fn(T, T) -> T) -> S::Rest<T>
    where
        S: Axis<AX>,
    {
        self.each_lane::<AX, T>(|lane| lane.iter().fold(init, |a, b| f(a, *b)))
    }

    /// Element i along the axis is `f` folded over elements `0 ..= i`, from `init`.
    #[must_use]
    pub fn scan<const AX: usize>(self, init: T, f: impl Fn(T, T) -> T) -> Self
    where
        S: Axis<AX>,
    {
        self.map_lanes::<AX>(|lane| {
            let mut sum = init;
            lane.iter()
                .map(|x| {
                    sum = f(sum, *x);
                    sum
                })
                .collect()
        })
    }
}

impl<T: Elem, S> Tile<T, S> {
    /// The sum along an axis. Integers wrap.
    #[must_use]
    pub fn reduce_sum<const AX: usize>(self) -> S::Rest<T>
    where
        T: Num,
        S: Axis<AX>,
    {
        self.each_lane::<AX, T>(|lane| T::sums(lane).pop().unwrap_or_default())
    }

    /// The product along an axis. Integers wrap.
    #[must_use]
    pub fn reduce_prod<const AX: usize>(self) -> S::Rest<T>
    where
        T: Num,
        S: Axis<AX>,
    {
        self.each_lane::<AX, T>(T::product)
    }

    /// The greatest element along an axis; NaN only if all are NaN.
    #[must_use]
    pub fn reduce_max<const AX: usize>(self) -> S::Rest<T>
    where
        T: Num,
        S: Axis<AX>,
    {
        self.each_lane::<AX, T>(|lane| fold_first(lane, T::greater))
    }

    /// The least element along an axis; NaN only if all are NaN.
    #[must_use]
    pub fn reduce_min<const AX: usize>(self) -> S::Rest<T>
    where
        T: Num,
        S: Axis<AX>,
    {
        self.each_lane::<AX, T>(|lane| fold_first(lane, T::lesser))
    }

    /// The greatest elements along an axis and their indices; the lowest index among equals. NaN is ignored unless all are NaN.
    #[must_use]
    pub fn argmax<const AX: usize>(self) -> (S::Rest<T>, S::Rest<i32>)
    where
        T: Num,
        S: Axis<AX>,
    {
        self.arg::<AX>(|a, b| a > b)
    }

    /// The least elements along an axis and their indices; the lowest index among equals. NaN is ignored unless all are NaN.
    #[must_use]
    pub fn argmin<const AX: usize>(self) -> (S::Rest<T>, S::Rest<i32>)
    where
        T: Num,
        S: Axis<AX>,
    {
        self.arg::<AX>(|a, b| a < b)
    }

    fn arg<const AX: usize>(self, better: fn(T, T) -> bool) -> (S::Rest<T>, S::Rest<i32>)
    where
        T: Num,
        S: Axis<AX>,
    {
        let best = |lane: &[T]| {
            let wins =
                |i: usize, best: usize| better(lane[i], lane[best]) || (lane[best].missing() && !lane[i].missing());
            (1..lane.len()).fold(0, |best, i| if wins(i, best) { i } else { best })
        };
        let index = |lane: &[T]| i32::of_number(Number::Int(best(lane) as i128));
        (self.each_lane::<AX, T>(|lane| lane[best(lane)]), self.each_lane::<AX, i32>(index))
    }

    /// Element i along the axis is the sum of elements `0 ..= i`.
    #[must_use]
    pub fn scan_sum<const AX: usize>(self) -> Self
    where
        T: Num,
        S: Axis<AX>,
    {
        self.map_lanes::<AX>(T::sums)
    }

    /// Element i along the axis is the product of elements `0 ..= i`.
    #[must_use]
    pub fn scan_prod<const AX: usize>(self) -> Self
    where
        T: Num,
        S: Axis<AX>,
    {
        self.map_lanes::<AX>(|lane| (1..=lane.len()).map(|n| T::product(&lane[..n])).collect())
    }

    /// Element i along the axis is the greatest of elements `0 ..= i`. NaN is ignored unless all are NaN.
    #[must_use]
    pub fn scan_max<const AX: usize>(self) -> Self
    where
        T: Num,
        S: Axis<AX>,
    {
        self.map_lanes::<AX>(|lane| running(lane, T::greater))
    }

    /// Element i along the axis is the least of elements `0 ..= i`. NaN is ignored unless all are NaN.
    #[must_use]
    pub fn scan_min<const AX: usize>(self) -> Self
    where
        T: Num,
        S: Axis<AX>,
    {
        self.map_lanes::<AX>(|lane| running(lane, T::lesser))
    }
}

/// Every prefix of a lane, combined.
fn running<T: Copy>(lane: &[T], combine: impl Fn(T, T) -> T) -> Vec<T> {
    let mut sofar = lane[0];
    let mut step = |x: &T| {
        sofar = combine(sofar, *x);
        sofar
    };
    lane.iter().map(&mut step).collect()
}

impl<S> Tile<bool, S> {
    /// Whether any element along an axis holds.
    #[must_use]
    pub fn any<const AX: usize>(self) -> S::Rest<bool>
    where
        S: Axis<AX>,
    {
        self.reduce::<AX>(false, |a, b| a | b)
    }

    /// Whether all elements along an axis hold.
    #[must_use]
    pub fn all<const AX: usize>(self) -> S::Rest<bool>
    where
        S: Axis<AX>,
    {
        self.reduce::<AX>(true, |a, b| a & b)
    }
}

fn fold_first<T: Elem>(lane: &[T], f: fn(T, T) -> T) -> T {
    lane.iter().copied().reduce(f).unwrap_or_default()
}

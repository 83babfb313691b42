//! Atomic updates that return what they found, and compare-and-exchange.
//!
//! With one update of each element the results are the same in any order, and are compared with the reference bit for bit. Where several
//! updates meet, what is compared holds in every order: tickets are distinct, and the last value is the sum.

use super::device;
use titan::prelude::*;

/// Indices that select each element at most once, and some beyond both ends.
const AT: [i32; 16] = [3, -1, 0, 12, 7, 40, 2, 9, 1, i32::MIN, 11, 4, i32::MAX, 5, 10, -7];

#[titan::kernel(instances(T in [f64, f32, f16, bf16, i64, i32, i16, u64, u32, u16]), grid(1))]
fn numbers<T: Num>(
    at: &Tensor<i32, 1>,
    v: &Tensor<T, 1>,
    w: &Tensor<T, 1>,
    add: &mut Tensor<T, 1>,
    max: &mut Tensor<T, 1>,
    min: &mut Tensor<T, 1>,
    swap: &mut Tensor<T, 1>,
    exchange: &mut Tensor<T, 1>,
    done: &mut Tensor<bool, 1>,
    found: &mut Tensor<T, 2>,
) {
    let p = program_id(0);
    let at = at.load_tile::<16>([p]);
    let v = v.load_tile::<16>([p]);
    found.store_tile([0, p], add.fetch_add([at], v).reshape::<1, 16>());
    found.store_tile([1, p], max.fetch_max([at], v).reshape::<1, 16>());
    found.store_tile([2, p], min.fetch_min([at], v).reshape::<1, 16>());
    found.store_tile([3, p], swap.atomic_swap([at], v).reshape::<1, 16>());
    let (old, stored) = exchange.compare_exchange([at], w.load_tile::<16>([p]), v);
    found.store_tile([4, p], old.reshape::<1, 16>());
    done.store_tile([p], stored);
}

/// Launches a kernel on the device and as plain Rust, with outputs of the same contents, and compares the bits of all of them.
macro_rules! alike {
    ($kernel:ident::<$g:ident>($dev:expr; $($input:expr),*; $($name:ident = ($t:ty, $values:expr, $shape:expr)),*)) => {{
        let dev = $dev;
        $(let mut $name = [dev.tensor::<$t, _>(&$values, $shape)?, dev.tensor::<$t, _>(&$values, $shape)?];)*
        {
            $(let [$name, _] = &mut $name;)*
            $kernel::<$g>($($input,)* $($name),*).sync()?;
        }
        {
            $(let [_, $name] = &mut $name;)*
            $kernel::reference::<$g>($($input,)* $($name),*)?;
        }
        ($({
            let [device, reference] = [$name[0].to_vec()?, $name[1].to_vec()?];
            let bits = |values: &[$t]| values.iter().map(|x| <$t as Bits>::bits(*x)).collect::<Vec<u64>>();
            assert_eq!(bits(&device), bits(&reference), "`{}` of {}", stringify!($name), stringify!($kernel<$g>));
            device
        }),*)
    }};
}

/// The bits of an element, with one NaN for all.
trait Bits: Copy {
    fn bits(self) -> u64;
}

macro_rules! bits {
    ($($t:ident)*; $($f:ident)*) => {
        $(impl Bits for $t { fn bits(self) -> u64 { Cast::cast::<u64>(self) } })*
        $(impl Bits for $f { fn bits(self) -> u64 { if self.is_nan() { u64::MAX } else { self.to_bits().into() } } })*
    };
}
bits! { bool i64 i32 i16 u64 u32 u16; f64 f32 f16 bf16 }

/// Values with both zeros, NaN and the ends of the range where the type has them.
macro_rules! every_number {
    ($($t:ident [$($special:expr),*];)*) => {$({
        let special: &[$t] = &[$($special),*];
        let nth = |i: usize| if i % 3 == 0 { special[i / 3 % special.len()] } else { number::<$t>(i as i32 * 7 % 23 - 9) };
        let before: Vec<$t> = (0..13).map(|i| nth(i + 1)).collect();
        let v: Vec<$t> = (0..16).map(|i| nth(2 * i)).collect();
        // Every other lane expects what is there, and the others something else.
        let there = |i: usize| usize::try_from(AT[i]).ok().and_then(|at| before.get(at).copied());
        let w: Vec<$t> = (0..16).map(|i| there(i).filter(|_| i % 2 == 0).unwrap_or(number::<$t>(77))).collect();
        let dev = device();
        let (at, v, w) = (dev.tensor(&AT, [16])?, dev.tensor(&v, [16])?, dev.tensor(&w, [16])?);
        let (_, _, _, swapped, exchanged, done, found) = alike!(numbers::<$t>(&dev; &at, &v, &w;
            add = ($t, before, [13]), max = ($t, before, [13]), min = ($t, before, [13]), swap = ($t, before, [13]),
            exchange = ($t, before, [13]), done = (bool, [true; 16], [16]), found = ($t, [number::<$t>(5); 80], [5, 16])));
        for lane in 0..16 {
            let inside = there(lane);
            for row in 0..5 {
                let want = inside.unwrap_or(number::<$t>(0));
                assert_eq!(found[row * 16 + lane].bits(), want.bits(), "row {row}, lane {lane} of {}", stringify!($t));
            }
            assert_eq!(done[lane], inside.is_some() && lane % 2 == 0, "lane {lane} of {}", stringify!($t));
        }
        assert_ne!(swapped.iter().map(|x| x.bits()).collect::<Vec<_>>(), before.iter().map(|x| x.bits()).collect::<Vec<_>>());
        assert_ne!(exchanged.iter().map(|x| x.bits()).collect::<Vec<_>>(), before.iter().map(|x| x.bits()).collect::<Vec<_>>());
    })*};
}

fn number<T: Num>(x: i32) -> T {
    x.cast()
}

#[test]
fn every_update_of_one_element_returns_what_was_there() -> titan::Result<()> {
    every_number! {
        f64 [-0.0, 0.0, f64::NAN, f64::INFINITY, f64::MIN];
        f32 [-0.0, 0.0, f32::NAN, f32::INFINITY, f32::MIN];
        f16 [f16::NEG_ZERO, f16::ZERO, f16::NAN, f16::INFINITY, f16::MIN];
        bf16 [bf16::NEG_ZERO, bf16::ZERO, bf16::NAN, bf16::INFINITY, bf16::MIN];
        i64 [i64::MIN, i64::MAX, 0, 1 << 40];
        i32 [i32::MIN, i32::MAX, 0];
        i16 [i16::MIN, i16::MAX, 0];
        u64 [u64::MIN, u64::MAX, 1 << 63];
        u32 [u32::MIN, u32::MAX, 1 << 31];
        u16 [u16::MIN, u16::MAX, 1 << 15];
    }
    Ok(())
}

#[titan::kernel(instances(T in [i64, i32, i16, u64, u32, u16]), grid(1))]
fn of_bits<T: Int>(
    v: &Tensor<T, 1>,
    and: &mut Tensor<T, 2>,
    or: &mut Tensor<T, 2>,
    xor: &mut Tensor<T, 2>,
    found: &mut Tensor<T, 2>,
) {
    let p = program_id(0);
    let v = v.load_tile::<8>([p]);
    let (row, column) = (iota::<8>() / 3, iota::<8>() % 3);
    found.store_tile([0, p], and.fetch_and([row, column], v).reshape::<1, 8>());
    found.store_tile([1, p], or.fetch_or([row, column], v).reshape::<1, 8>());
    found.store_tile([2, p], xor.fetch_xor([row, column], v).reshape::<1, 8>());
}

macro_rules! every_integer {
    ($($t:ident)*) => {$({
        let dev = device();
        let before: Vec<$t> = (0..6).map(|i| $t::MAX / 3 * 2 - i).collect();
        let v = dev.tensor(&(0..8).map(|i| $t::MAX / 5 * (i % 3) + i).collect::<Vec<$t>>(), [8])?;
        let (and, or, xor, found) = alike!(of_bits::<$t>(&dev; &v;
            and = ($t, before, [2, 3]), or = ($t, before, [2, 3]), xor = ($t, before, [2, 3]), found = ($t, [7; 24], [3, 8])));
        let v = v.to_vec()?;
        for i in 0..6 {
            let [a, b] = [before[i], v[i]];
            assert_eq!([and[i], or[i], xor[i]], [a & b, a | b, a ^ b]);
            assert_eq!([found[i], found[8 + i], found[16 + i]], [a; 3]);
        }
        // Rows 6 and 7 do not exist.
        assert_eq!([&found[6..8], &found[14..16], &found[22..24]], [[0; 2]; 3]);
    })*};
}

#[test]
fn bits_are_combined_and_returned() -> titan::Result<()> {
    every_integer! { i64 i32 i16 u64 u32 u16 }
    Ok(())
}

/// A ticket for each lane of each program, in a layout of a few elements for many threads and in one of many elements.
#[titan::kernel(instances(N in [1, 5, 64, 300]), grid(P))]
fn tickets<const N: i32>(#[shape(1)] next: &mut Tensor<i32, 1>, #[shape(P, N)] mine: &mut Tensor<i32, 2>) {
    let drawn = next.fetch_add([Tile::<i32, N>::zeros()], Tile::<i32, N>::ones());
    mine.store_tile([program_id(0), 0], drawn.reshape::<1, N>());
}

#[test]
fn lanes_of_all_programs_draw_distinct_tickets() -> titan::Result<()> {
    macro_rules! drawn {
        ($($n:literal)*) => {$({
            let dev = device();
            let (mut next, mut mine) = (dev.tensor(&[100], [1])?, dev.zeros([7, $n])?);
            tickets::<$n>(&mut next, &mut mine).sync()?;
            let mut all = mine.to_vec()?;
            all.sort_unstable();
            assert_eq!(all, (100..100 + 7 * $n).collect::<Vec<i32>>());
            assert_eq!(next.to_vec()?, [100 + 7 * $n]);
        })*};
    }
    drawn! { 1 5 64 300 }
    Ok(())
}

/// The program that comes last, by a count of those that are done, in scalars; on the way a path that is never taken.
#[titan::kernel(grid(P))]
fn last_one(
    #[shape(2)] done: &mut Tensor<u32, 1>,
    #[shape(P)] order: &mut Tensor<u32, 1>,
    #[shape(P)] outside: &mut Tensor<u32, 1>,
    limit: u32,
) {
    let p = program_id(0);
    let mut mine = done.fetch_add([1], 1);
    if mine > limit {
        mine = done.fetch_add([0], 1);
    }
    order.set([p], mine);
    outside.set([p], done.fetch_add([2], 7) + done.fetch_add([-1], 7));
}

#[test]
fn a_scalar_update_happens_once_in_each_program() -> titan::Result<()> {
    let dev = device();
    let (mut done, mut order, mut outside) = (dev.zeros([2])?, dev.zeros([9])?, dev.full([9], 3u32)?);
    last_one(&mut done, &mut order, &mut outside, 1000).sync()?;
    let mut all = order.to_vec()?;
    all.sort_unstable();
    assert_eq!(all, (0..9).collect::<Vec<u32>>());
    assert_eq!(done.to_vec()?, [0, 9]);
    assert_eq!(outside.to_vec()?, [0; 9]);
    Ok(())
}

/// A product over all programs, which no instruction computes atomically. What is there is read by an exchange that changes nothing.
#[titan::kernel(instances(T in [f32, f64, i32, u64, f16]), grid(P))]
fn multiplied<T: Num>(
    #[shape(P)] x: &Tensor<T, 1>,
    #[shape(1)] y: &mut Tensor<T, 1>,
    #[shape(P)] tries: &mut Tensor<i32, 1>,
) {
    let p = program_id(0);
    let factor = x.get([p]);
    let (mut current, _) = y.compare_exchange([0], factor, factor);
    let mut n = 0;
    loop {
        let (old, done) = y.compare_exchange([0], current, current * factor);
        n += 1;
        if done {
            break;
        }
        current = old;
    }
    tries.set([p], n);
}

#[test]
fn a_loop_of_exchanges_is_any_atomic_function() -> titan::Result<()> {
    macro_rules! products {
        ($($t:ident)*) => {$({
            let dev = device();
            let factors: Vec<$t> = [2, 1, 2, 4, 1, 8].map(number::<$t>).to_vec();
            let x = dev.tensor(&factors, [6])?;
            let (mut y, mut tries) = (dev.tensor(&[number::<$t>(3)], [1])?, dev.zeros([6])?);
            multiplied::<$t>(&x, &mut y, &mut tries).sync()?;
            assert_eq!(y.to_vec()?, [number::<$t>(384)]);
            assert!(tries.to_vec()?.iter().all(|n| *n >= 1));
        })*};
    }
    products! { f32 f64 i32 u64 f16 }
    Ok(())
}

/// Inside of a loop whose loads run ahead, beside a product.
#[titan::kernel(grid(1))]
fn in_a_pipeline(
    #[shape(32, K)] a: &Tensor<f16, 2>,
    #[shape(K, 32)] b: &Tensor<f16, 2>,
    #[shape(4)] steps: &mut Tensor<i32, 1>,
    #[shape(K)] seen: &mut Tensor<i32, 1>,
    #[shape(32, 32)] c: &mut Tensor<f32, 2>,
) {
    let mut acc = Tile::<f32, 32, 32>::zeros();
    for k in pipelined(0..cdiv(K, 16)) {
        acc = mma(a.load_tile::<32, 16>([0, k]), b.load_tile::<16, 32>([k, 0]), acc);
        seen.set([k], steps.fetch_add([k % 4], 1));
    }
    c.store_tile([program_id(0), 0], acc);
}

#[test]
fn updates_in_a_pipelined_loop_keep_their_order() -> titan::Result<()> {
    let dev = device();
    let (a, b) = (dev.full([32, 144], f16::ONE)?, dev.full([144, 32], f16::ONE)?);
    let (mut steps, mut seen, mut c) = (dev.zeros([4])?, dev.zeros([144])?, dev.zeros([32, 32])?);
    in_a_pipeline(&a, &b, &mut steps, &mut seen, &mut c).sync()?;
    assert_eq!(steps.to_vec()?, [3, 2, 2, 2]);
    assert_eq!(seen.to_vec()?[..9], [0, 0, 0, 0, 1, 1, 1, 1, 2]);
    assert_eq!(c.to_vec()?, [144.0; 1024]);
    Ok(())
}

macro_rules! with_counter {
    ($name:ident, $counter:ident => $update:expr) => {
        #[titan::kernel(grid(1))]
        fn $name(#[shape(4)] count: &mut Tensor<i64, 1>, #[shape(4)] y: &mut Tensor<i64, 1>) {
            let at = iota::<4>();
            let $counter = count.fetch_add([at], Tile::<i64, 4>::full(1));
            y.store_tile([program_id(0)], $update + count.fetch_add([at - 4], Tile::<i64, 4>::full(1)));
        }
    };
}
with_counter!(in_a_macro, at => at * 10);

#[test]
fn updates_are_written_in_macros() -> titan::Result<()> {
    let dev = device();
    let (mut count, mut y) = (dev.tensor(&[1i64, 2, 3, 4], [4])?, dev.zeros([4])?);
    in_a_macro(&mut count, &mut y).sync()?;
    assert_eq!(y.to_vec()?, [10, 20, 30, 40]);
    assert_eq!(count.to_vec()?, [2, 3, 4, 5]);
    Ok(())
}

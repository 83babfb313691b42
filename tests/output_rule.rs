//! Kernels whose outputs are divided in ways that take a proof: ranges, clamped ends, bits, permutations, tiles that are stored where a
//! loop ends, roles that take tiles in turn, rings that are read in several loops and branches. On every device they leave what their
//! references leave, and that is what is written out here.

use titan::prelude::*;
use titan::sim::{Completion, Options};

/// Rows in ranges, one at a time.
#[titan::kernel(grid(cdiv(H, 2)))]
fn row_by_row(#[shape(H, 4)] y: &mut Tensor<i32, 2>) {
    let g = program_id(0);
    for h in g * 2..g * 2 + 2 {
        y.store_tile([h, 0], Tile::<i32, 1, 4>::full(h * 10 + g));
    }
}

/// Elements in ranges of seven, of which the last one ends with the output.
#[titan::kernel(grid(cdiv(N, 7)))]
fn clamped(#[shape(N)] y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    for i in p * 7..(p * 7 + 7).min(N) {
        y.set([i], i * 100 + p);
    }
}

/// The same, with the end before the start's.
#[titan::kernel(grid(cdiv(N, 7)))]
fn clamped_length(#[shape(N)] y: &mut Tensor<i32, 1>) {
    let from = program_id(0) * 7;
    for i in from..from + (N - from).min(7) {
        y.set([i], i * 100 + program_id(0));
    }
}

/// Ranges in ranges, both clamped.
#[titan::kernel(grid(cdiv(N, 12)))]
fn nested(#[shape(N)] y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    for t in p * 3..(p * 3 + 3).min(cdiv(N, 4)) {
        for i in t * 4..(t * 4 + 4).min(N) {
            y.set([i], i * 100 + p);
        }
    }
}

/// Indices from memory, within a slice whose end is clamped.
#[titan::kernel(grid(cdiv(N, 8)))]
fn sliced(at: &Tensor<i32, 1>, #[shape(N)] y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    let mut part = y.slice_mut::<0>(p * 8..(p * 8 + 8).min(N));
    for i in 0..3 {
        part.store_at([at.get([p * 3 + i])], Tile::<i32, 1>::full(p + 1));
    }
}

/// Offsets by shift and or, and low bits that are exchanged.
#[titan::kernel(grid(cdiv(N, 32)))]
fn bits(#[shape(N)] y: &mut Tensor<i32, 1>, #[shape(N)] z: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    for i in 0..32 {
        let at = (p << 5) | i;
        y.store_at([at], Tile::<i32, 1>::full(at * 2));
        z.store_at([at ^ 5], Tile::<i32, 1>::full(at * 2));
    }
}

/// Neighbouring programs exchange their tiles.
#[titan::kernel(grid(cdiv(N, 8) + cdiv(N, 8) % 2))]
fn exchanged(#[shape(N)] y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    y.store_tile([p ^ 1], Tile::<i32, 8>::full(p));
}

/// Columns are permuted differently in each row.
#[titan::kernel(grid(M, 8))]
fn swizzled(#[shape(M, 8)] y: &mut Tensor<i32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.set([m, n ^ (m & 7)], m * 10 + n);
}

/// Each tile is stored where a loop ends.
#[titan::kernel]
fn stored_at_the_end(#[shape(M, N)] y: &mut Tensor<i32, 2>) {
    for out in y.tiles::<2, 2>() {
        let [m, n] = out.index();
        let (mut sum, mut k) = (0, 1);
        'search: loop {
            sum += k;
            if sum > 10 * m {
                out.store(Tile::<i32, 2, 2>::full(sum));
                break;
            }
            for i in 0..n {
                if i > 3 {
                    out.skip();
                    break 'search;
                }
            }
            k += 1;
        }
    }
}

/// Two roles compute tiles in turn, under two conditions.
#[titan::kernel(roles(even: 1 warp, odd: 1 warp), allow(no_code))]
fn in_turn(#[shape(M, N)] y: &mut Tensor<i32, 2>) {
    let work = y.work::<2, 2>();
    match role() {
        Role::Even => {
            for out in work.tiles() {
                let [m, n] = out.index();
                if (m + n) % 2 == 0 {
                    out.store(Tile::<i32, 2, 2>::full(m));
                } else {
                    out.skip();
                }
            }
        }
        Role::Odd => {
            for out in work.tiles() {
                let [m, n] = out.index();
                if (m + n) % 2 == 1 {
                    out.store(Tile::<i32, 2, 2>::full(-n));
                } else {
                    out.skip();
                }
            }
        }
    }
}

/// One loop fills a ring, two read it.
#[titan::kernel(roles(fill: 1 warp, read: 1 warp), grid(1), allow(no_code))]
fn in_two_parts(#[shape(M, 4)] x: &Tensor<i32, 2>, #[shape(M, 4)] y: &mut Tensor<i32, 2>) {
    let ring = Ring::<Smem<i32, 4, 4>, 2>::new();
    let n = cdiv(M, 4);
    match role() {
        Role::Fill => {
            for (t, slot) in ring.produce(0..n) {
                slot.copy(x.tile([t, 0])).commit();
            }
        }
        Role::Read => {
            for (t, ready) in ring.consume(0..n / 2) {
                let stage = ready.wait();
                y.store_tile([t, 0], stage.get().load() * 2);
                stage.release();
            }
            for (t, ready) in ring.consume(n / 2..n) {
                let stage = ready.wait();
                y.store_tile([t, 0], stage.get().load() * 3);
                stage.release();
            }
        }
    }
}

/// Two rings are filled, and read by two roles, in turn.
#[titan::kernel(roles(fill: 1 warp, even: 1 warp, odd: 1 warp), allow(no_code))]
fn rings_in_turn(#[shape(M, N)] x: &Tensor<i32, 2>, #[shape(M, N)] y: &mut Tensor<i32, 2>) {
    let evens = Ring::<Smem<i32, 4, 4>, 2>::new();
    let odds = Ring::<Smem<i32, 4, 4>, 2>::new();
    let work = y.work::<4, 4>();
    match role() {
        Role::Fill => {
            for [m, n] in work.indices() {
                let turn = (m + n) % 2;
                if turn == 0 {
                    evens.acquire().copy(x.tile([m, n])).commit();
                }
                if turn == 1 {
                    odds.acquire().copy(x.tile([m, n])).commit();
                }
            }
        }
        Role::Even => {
            for out in work.tiles() {
                let [m, n] = out.index();
                if (m + n) % 2 == 0 {
                    let stage = evens.ready().wait();
                    out.store(stage.get().load() * 2);
                    stage.release();
                } else {
                    out.skip();
                }
            }
        }
        Role::Odd => {
            for out in work.tiles() {
                let [m, n] = out.index();
                if (m + n) % 2 == 1 {
                    let stage = odds.ready().wait();
                    out.store(stage.get().load() * 3);
                    stage.release();
                } else {
                    out.skip();
                }
            }
        }
    }
}

fn devices() -> Vec<Device> {
    let simulator = |completion, seed| Device::simulator(Options { completion, seed, ..Options::default() });
    vec![
        Device::cpu(),
        simulator(Completion::Late, None),
        simulator(Completion::Seeded(7), Some(7)),
        Device::emulator("sm_80").expect("an emulator"),
        Device::emulator("sm_90a").expect("an emulator"),
    ]
}

/// Runs a kernel and its reference on outputs of zeros, and compares all results with what is right.
macro_rules! leaves {
    ($kernel:ident($($arg:expr),*), $shape:expr, $want:expr) => {{
        let want: Vec<i32> = $want;
        let dev = Device::cpu();
        let mut y = dev.zeros($shape)?;
        $kernel::reference($(&dev.tensor(&$arg, [$arg.len()])?,)* &mut y)?;
        assert_eq!(y.to_vec()?, want, "the reference of {}", stringify!($kernel));
        for dev in devices() {
            let mut y = dev.zeros($shape)?;
            $kernel($(&dev.tensor(&$arg, [$arg.len()])?,)* &mut y).sync()?;
            assert_eq!(y.to_vec()?, want, "{} on {dev}", stringify!($kernel));
        }
    }};
}

#[test]
fn ranges_are_parts() -> titan::Result<()> {
    for h in [1, 2, 5, 8] {
        leaves!(row_by_row(), [h, 4], (0..h as i32 * 4).map(|i| i / 4 * 10 + i / 8).collect());
    }
    for n in [1, 6, 7, 8, 30] {
        let sevenths: Vec<i32> = (0..n as i32).map(|i| i * 100 + i / 7).collect();
        leaves!(clamped(), [n], sevenths.clone());
        leaves!(clamped_length(), [n], sevenths);
        leaves!(nested(), [n], (0..n as i32).map(|i| i * 100 + i / 12).collect());
    }
    Ok(())
}

#[test]
fn slices_with_clamped_ends_are_parts() -> titan::Result<()> {
    // Indices outside of a slice are dropped, also where they are those of another program's part.
    let at = [0, 7, 8, -1, 3, 5, 2, 9, 4];
    let mut want = vec![0; 20];
    for (i, offset) in at.iter().enumerate() {
        let (p, n) = (i as i32 / 3, want.len() as i32);
        let length = (n - p * 8).min(8);
        if (0..length).contains(offset) {
            want[(p * 8 + offset) as usize] = p + 1;
        }
    }
    leaves!(sliced(at), [20], want);
    Ok(())
}

#[test]
fn bits_are_parts() -> titan::Result<()> {
    for n in [1usize, 32, 33, 100] {
        let plain: Vec<i32> = (0..n as i32).map(|i| i * 2).collect();
        let mut turned = vec![0; n];
        for at in 0..(n as i32 + 31) / 32 * 32 {
            if let Some(place) = turned.get_mut((at ^ 5) as usize) {
                *place = at * 2;
            }
        }
        for dev in devices() {
            let (mut y, mut z) = (dev.zeros([n])?, dev.zeros([n])?);
            bits(&mut y, &mut z).sync()?;
            assert_eq!((y.to_vec()?, z.to_vec()?), (plain.clone(), turned.clone()), "{dev}");
        }
        let dev = Device::cpu();
        let (mut y, mut z) = (dev.zeros([n])?, dev.zeros([n])?);
        bits::reference(&mut y, &mut z)?;
        assert_eq!((y.to_vec()?, z.to_vec()?), (plain, turned));
    }
    Ok(())
}

#[test]
fn permutations_are_parts() -> titan::Result<()> {
    for n in [1, 8, 9, 40] {
        leaves!(exchanged(), [n], (0..n as i32).map(|i| (i / 8) ^ 1).collect());
    }
    for m in [1, 7, 20] {
        leaves!(swizzled(), [m, 8], (0..m as i32 * 8).map(|i| i / 8 * 10 + ((i % 8) ^ ((i / 8) & 7))).collect());
    }
    Ok(())
}

#[test]
fn tiles_may_be_stored_where_a_loop_ends() -> titan::Result<()> {
    let value = |m: i32, n: i32| {
        let (mut sum, mut k) = (0, 1);
        loop {
            sum += k;
            if sum > 10 * m {
                return sum;
            }
            if n > 4 {
                return 0;
            }
            k += 1;
        }
    };
    for (m, n) in [(1, 1), (5, 7), (8, 12)] {
        let want = (0..m * n).map(|i| value(i / n / 2, i % n / 2)).collect();
        leaves!(stored_at_the_end(), [m as usize, n as usize], want);
    }
    Ok(())
}

#[test]
fn roles_take_tiles_in_turn_under_conditions_that_exclude_each_other() -> titan::Result<()> {
    let value = |m: i32, n: i32| if (m + n) % 2 == 0 { m } else { -n };
    for (m, n) in [(1, 1), (5, 7), (8, 12)] {
        let want = (0..m * n).map(|i| value(i / n / 2, i % n / 2)).collect();
        leaves!(in_turn(), [m as usize, n as usize], want);
    }
    Ok(())
}

#[test]
fn rings_may_be_read_in_parts_and_in_turn() -> titan::Result<()> {
    for m in [1, 4, 5, 8, 23] {
        let x: Vec<i32> = (0..m * 4).map(|i| i + 1).collect();
        let half = (m + 3) / 4 / 2 * 16;
        let want: Vec<i32> = x.iter().map(|v| if *v <= half { v * 2 } else { v * 3 }).collect();
        let shape = [m as usize, 4];
        for dev in devices() {
            let mut y = dev.zeros(shape)?;
            in_two_parts(&dev.tensor(&x, shape)?, &mut y).sync()?;
            assert_eq!(y.to_vec()?, want, "{m} rows on {dev}");
        }
        let dev = Device::cpu();
        let mut y = dev.zeros(shape)?;
        in_two_parts::reference(&dev.tensor(&x, shape)?, &mut y)?;
        assert_eq!(y.to_vec()?, want, "the reference of {m} rows");
    }
    for (m, n) in [(1, 4), (5, 8), (16, 12)] {
        let x: Vec<i32> = (0..m * n).map(|i| i + 1).collect();
        let factor = |i: i32| if (i / n / 4 + i % n / 4) % 2 == 0 { 2 } else { 3 };
        let want: Vec<i32> = (0..m * n).map(|i| x[i as usize] * factor(i)).collect();
        let shape = [m as usize, n as usize];
        for dev in devices() {
            let mut y = dev.zeros(shape)?;
            rings_in_turn(&dev.tensor(&x, shape)?, &mut y).sync()?;
            assert_eq!(y.to_vec()?, want, "{m} by {n} on {dev}");
        }
        let dev = Device::cpu();
        let mut y = dev.zeros(shape)?;
        rings_in_turn::reference(&dev.tensor(&x, shape)?, &mut y)?;
        assert_eq!(y.to_vec()?, want, "the reference of {m} by {n}");
    }
    Ok(())
}

/// None is refused for a target, or compiled in a simpler way because of a defect; but roles have no code for AMD's GPUs.
#[test]
fn every_kernel_has_code_for_every_target() -> titan::Result<()> {
    for kernel in titan::kernels()? {
        let is_lost = |(target, why): &&(String, String)| {
            target != "gfx942" && !why.starts_with("its code would be that for older GPUs")
        };
        let lost = kernel.refused.iter().find(is_lost);
        assert_eq!(lost, None, "{}", kernel.name);
        let said: Vec<&String> = kernel.variants.iter().flat_map(|v| &v.notes).collect();
        assert!(said.iter().all(|text| !text.contains("fails verification")), "{}: {said:?}", kernel.name);
    }
    Ok(())
}

//! Roles: statements before `match role()` are executed once, several roles may read one ring, and rings may be declared in any order.

use crate::{Random, device};
use titan::prelude::*;

/// Before the roles part: a counter goes up, and its old value is what all of them see.
#[titan::kernel(roles(last: 1 warp, first: 1 warp), grid(N), allow(no_code))]
fn counted(#[shape(N)] count: &mut Tensor<i32, 1>, x: &Tensor<i32, 1>, #[shape(N)] y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    let old = count.get([p]);
    count.set([p], old + 1);
    tprint!("program {}", p);
    let ring = Ring::<Smem<i32, 4>, 2>::new();
    match role() {
        Role::Last => {
            let stage = ring.ready().wait();
            y.set([p], stage.get().load().reduce_sum::<0>() + old);
            stage.release();
        }
        Role::First => {
            if old >= 0 {
                ring.acquire().copy(x.tile([p])).commit();
            } else {
                ring.acquire().zero().commit();
            }
        }
    }
}

#[test]
fn what_comes_before_the_roles_happens_once() {
    let dev = Device::cpu();
    let x = dev.tensor(&[1, 2, 3, 4, 5, 6], [6]).unwrap();
    let (mut count, mut y) = (dev.tensor(&[10, 20], [2]).unwrap(), dev.zeros([2]).unwrap());
    let (done, lines) = titan::lang::capture_prints(|| counted::reference(&mut count, &x, &mut y));
    done.unwrap();
    assert_eq!(lines, ["program 0", "program 1"]);
    assert_eq!(count.to_vec().unwrap(), [11, 21]);
    assert_eq!(y.to_vec().unwrap(), [10 + 10, 11 + 20]);
}

/// One role fills, two read every stage: sums of rows, and sums of columns.
#[titan::kernel(instances(D in [1, 2, 5]), roles(rows: 1 warp, fill: 1 warp, columns: 1 warp), grid(1), allow(no_code))]
fn two_sums<const D: i32>(
    #[shape(M, 8)] x: &Tensor<f32, 2>,
    order: &Tensor<i32, 1>,
    #[shape(8)] across: &mut Tensor<f32, 1>,
    #[shape(8)] down: &mut Tensor<f32, 1>,
) {
    let n = cdiv(M, 8);
    let ring = Ring::<Smem<f32, 8, 8>, D>::new();
    match role() {
        Role::Rows => {
            let mut sum = Tile::<f32, 8>::zeros();
            for (_, ready) in ring.consume(0..n) {
                let stage = ready.wait();
                sum += stage.get().load().reduce_sum::<1>();
                stage.release();
            }
            across.store_tile([0], sum);
        }
        Role::Fill => {
            for (t, slot) in ring.produce(0..n) {
                slot.copy(x.rows(order.load_tile::<8>([t]), 0)).commit();
            }
        }
        Role::Columns => {
            let mut sum = Tile::<f32, 8>::zeros();
            for (_, ready) in ring.consume(0..n) {
                let stage = ready.wait();
                sum += stage.get().t().load().reduce_sum::<1>();
                stage.release();
            }
            down.store_at([0], sum);
        }
    }
}

#[test]
fn two_roles_read_every_stage() {
    let (dev, mut random) = (Device::cpu(), Random(5));
    for m in [8, 24, 72] {
        let x: Vec<f32> = (0..m * 8).map(|_| (random.next() * 64.0).round() as f32).collect();
        let order: Vec<i32> = (0..m as i32).rev().collect();
        let (mut across, mut down) = ([0.0; 8], [0.0; 8]);
        for (i, row) in x.chunks(8).rev().enumerate() {
            across[i % 8] += row.iter().sum::<f32>();
            row.iter().zip(&mut down).for_each(|(x, sum)| *sum += x);
        }
        let (x, order) = (dev.tensor(&x, [m, 8]).unwrap(), dev.tensor(&order, [m]).unwrap());
        let (mut a, mut d) = (dev.zeros([8]).unwrap(), dev.zeros([8]).unwrap());
        two_sums::reference::<2>(&x, &order, &mut a, &mut d).unwrap();
        assert_eq!((a.to_vec().unwrap(), d.to_vec().unwrap()), (across.to_vec(), down.to_vec()));
        let dev = device();
        let (x, order) =
            (dev.tensor(&x.to_vec().unwrap(), [m, 8]).unwrap(), dev.tensor(&order.to_vec().unwrap(), [m]).unwrap());
        let (mut a, mut d) = (dev.zeros([8]).unwrap(), dev.zeros([8]).unwrap());
        two_sums::<2>(&x, &order, &mut a, &mut d).sync().unwrap();
        assert_eq!((a.to_vec().unwrap(), d.to_vec().unwrap()), (across.to_vec(), down.to_vec()));
    }
}

/// Without roles, the same warps fill and read: copies run one ahead. Results are stored out of shared memory.
#[titan::kernel(grid(cdiv(M, 8)), require(N > 0))]
fn one_ahead(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), cdiv(N, 4));
    let ring = Ring::<Smem<f32, 8, 4>, 2>::new();
    let staging = Staging::<Smem<f32, 8, 4>, 2>::new();
    ring.acquire().copy(x.tile([m, 0])).commit();
    for j in 0..n {
        if j + 1 < n {
            ring.acquire().copy(x.tile_at([m * 8, (j + 1) * 4])).commit();
        }
        let stage = ring.ready().wait();
        let twice = stage.get().load() * 2.0;
        stage.release();
        let store = staging.acquire().write(twice).store(&mut y, [m, j]);
        store.wait();
    }
}

#[test]
fn rings_need_no_roles() {
    let dev = Device::cpu();
    for (m, n) in [(8, 4), (5, 3), (17, 30)] {
        let x: Vec<f32> = (0..m * n).map(|i| i as f32).collect();
        let mut y = dev.zeros([m, n]).unwrap();
        one_ahead::reference(&dev.tensor(&x, [m, n]).unwrap(), &mut y).unwrap();
        assert_eq!(y.to_vec().unwrap(), x.iter().map(|x| x * 2.0).collect::<Vec<_>>());
        let (dev, mut y) = (device(), device().zeros([m, n]).unwrap());
        one_ahead(&dev.tensor(&x, [m, n]).unwrap(), &mut y).sync().unwrap();
        assert_eq!(y.to_vec().unwrap(), x.iter().map(|x| x * 2.0).collect::<Vec<_>>());
    }
}

/// The README's pipeline: the store of one tile overlaps with the copy of the next.
#[titan::kernel(roles(load: 1 warp, work: 1 warpgroup), allow(no_code))]
fn twice(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 64, 64>, 3>::new();
    let staging = Staging::<Smem<f32, 64, 64>, 2>::new();
    let tiles = y.work::<64, 64>();
    match role() {
        Role::Load => {
            for at in tiles.indices() {
                ring.acquire().copy(x.tile(at)).commit();
            }
        }
        Role::Work => {
            for out in tiles.tiles() {
                let stage = ring.ready().wait();
                let written = staging.acquire().write(stage.get().load() * 2.0);
                stage.release();
                out.store_from(written).wait();
            }
        }
    }
}

#[test]
fn results_are_staged_beside_copies_of_one_thread() {
    for (m, n) in [(64, 64), (100, 200), (1, 4), (70, 33), (0, 8)] {
        let dev = device();
        let x = dev.from_fn([m, n], |[i, j]| i as f32 - j as f32).unwrap();
        let (mut y, mut want) = (dev.zeros([m, n]).unwrap(), dev.zeros([m, n]).unwrap());
        twice(&x, &mut y).sync().unwrap();
        twice::reference(&x, &mut want).unwrap();
        assert_eq!(y.to_vec().unwrap(), want.to_vec().unwrap());
    }
}

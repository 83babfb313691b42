//! Kernels on a simulated device: pipelines as they are written, in many orders, with data.
#![expect(unsafe_code, reason = "what `shared` lets through is found")]

use titan::prelude::*;
use titan::sim::{Completion, Options};

/// Twice every element; the store of one tile runs beside the copy of the next.
#[titan::kernel(roles(load: 1 warp, work: 1 warpgroup), allow(no_code))]
fn twice(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 16, 16>, 3>::new();
    let staging = Staging::<Smem<f32, 16, 16>, 2>::new();
    let tiles = y.work::<16, 16>();
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

/// C[m, n] = Σ_k A[m, k] · B[n, k].
#[titan::kernel(roles(producer: 1 warp, consumer: 1 warpgroup), allow(no_code))]
fn product(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(M, N)] c: &mut Tensor<f32, 2>,
) {
    let steps = cdiv(K, 16);
    let ring = Ring::<(Smem<f16, 16, 16>, Smem<f16, 16, 16>), 2>::new();
    let work = c.work::<16, 16>();
    match role() {
        Role::Producer => {
            for [m, n] in work.indices() {
                for (t, slot) in ring.produce(0..steps) {
                    slot.copy((a.tile([m, t]), b.tile([n, t]))).commit();
                }
            }
        }
        Role::Consumer => {
            for out in work.tiles() {
                let mut acc = Acc::<f32, D2<16, 16>, 1>::zeros();
                for (_t, ready) in ring.consume(0..steps) {
                    acc = acc.mma(ready.wait(), |s| (s.a(), s.b().t()));
                }
                out.store(acc.finish());
            }
        }
    }
}

/// A store behind a trap.
#[titan::kernel]
fn asserted(#[shape(N)] x: &Tensor<i32, 1>, #[shape(N)] y: &mut Tensor<i32, 1>, limit: i32) {
    let i = program_id(0);
    tassert!(limit > 3, "the limit is too low");
    y.store_tile([i], x.load_tile::<16>([i]) + 1);
}

/// Every program stores to the same tile.
#[titan::kernel(grid(cdiv(N, 16)))]
fn collide(#[shape(N)] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let i = program_id(0);
    // SAFETY: the promise that programs store to different places is broken here: the simulator finds that.
    let mut all = unsafe { y.shared() };
    all.store_tile([0], x.load_tile::<16>([i]));
}

#[test]
fn programs_that_store_to_the_same_tile_race() -> titan::Result<()> {
    for dev in devices() {
        let x = dev.zeros([40])?;
        let mut y = dev.full([16], 1.0)?;
        let error = collide(&x, &mut y).sync().expect_err("a race").to_string();
        assert!(error.contains("race: `y` is written by program [1, 0, 0]"), "{error}");
        assert_eq!(y.to_vec()?, [1.0f32; 16], "nothing is written by what failed");
        collide(&dev.zeros([16])?, &mut y).sync()?;
    }
    Ok(())
}

fn devices() -> Vec<Device> {
    let of = |completion, seed| Device::simulator(Options { completion, seed, ..Options::default() });
    vec![
        of(Completion::Late, None),
        of(Completion::Early, None),
        of(Completion::Seeded(7), Some(7)),
        Device::named("simulator").expect("the simulator goes by name"),
    ]
}

#[test]
fn what_a_simulated_device_leaves_is_what_the_reference_leaves() -> titan::Result<()> {
    for dev in devices() {
        for extents in [[0, 5], [1, 1], [16, 48], [33, 40]] {
            let x = dev.from_fn(extents, |[i, j]| (i * 64 + j) as f32)?;
            let (mut y, mut again) = (dev.zeros(extents)?, dev.zeros(extents)?);
            for _ in 0..3 {
                twice(&x, &mut y).sync()?;
            }
            twice::reference(&x, &mut again)?;
            assert_eq!(y.to_vec()?, again.to_vec()?, "{dev}");
        }
        for k in [0, 7, 16, 80] {
            let a = dev.from_fn([20, k], |[i, j]| f16::from_f32((i + j) as f32 / 8.0))?;
            let b = dev.from_fn([17, k], |[i, j]| f16::from_f32(i as f32 / 4.0 - j as f32 / 8.0))?;
            let (mut c, mut again) = (dev.zeros([20, 17])?, dev.zeros([20, 17])?);
            product(&a, &b, &mut c).sync()?;
            product::reference(&a, &b, &mut again)?;
            for (x, y) in c.to_vec()?.iter().zip(again.to_vec()?) {
                assert!((x - y).abs() <= 1e-3 * y.abs().max(1.0), "{x} {y} on {dev}");
            }
        }
    }
    Ok(())
}

#[test]
fn views_are_read_and_written_where_they_lie() -> titan::Result<()> {
    let dev = Device::simulator(Options::default());
    let x = dev.from_fn([64, 64], |[i, j]| (i * 64 + j) as f32)?;
    let mut y = dev.full([64, 64], -1.0)?;
    twice(&x.slice::<0>(8..24)?.slice::<1>(5..40)?, &mut y.slice_mut::<0>(1..17)?.slice_mut::<1>(3..38)?).sync()?;
    let found = y.to_vec()?;
    for i in 0..64 {
        for j in 0..64 {
            let inside = (1..17).contains(&i) && (3..38).contains(&j);
            let wanted = if inside { 2.0 * ((i + 7) * 64 + j + 2) as f32 } else { -1.0 };
            assert_eq!(found[i * 64 + j], wanted, "at {i}, {j}");
        }
    }
    Ok(())
}

#[test]
fn what_goes_wrong_has_a_place_in_this_file() -> titan::Result<()> {
    let dev = Device::simulator(Options::default());
    let x = dev.zeros([40])?;
    let mut y = dev.zeros([40])?;
    let error = asserted(&x, &mut y, 3).sync().expect_err("it traps").to_string();
    let line = include_str!("simulator.rs").lines().position(|l| l.contains("tassert!")).map_or(0, |i| i + 1);
    let place = format!("tests/simulator.rs:{line}:5");
    assert!(error.contains("in the simulator: trap: ") && error.contains(&place), "{error}");
    let other = Device::simulator(Options::default());
    assert_ne!(dev, other, "each has its own options");
    assert_eq!(dev.to_string(), "simulator (late)");
    // The message identifies the launch.
    let dev = Device::simulator(Options { seed: Some(7), completion: Completion::Seeded(9), ..Options::default() });
    let x = dev.zeros([40])?;
    let mut y = dev.zeros([40])?;
    asserted(&x, &mut y, 4).sync()?;
    let error = asserted(&x, &mut y, 3).sync().expect_err("it traps").to_string();
    assert!(error.contains("seed: Some(8), completion: Completion::Seeded(10); the schedule: 0/0:"), "{error}");
    let error = Device::named("simulator:0").expect_err("it has no number").to_string();
    assert!(error.contains("there is only one simulator"), "{error}");
    Ok(())
}

#[titan::kernel(grid(1))]
fn prints(y: &mut Tensor<f32, 1>, yes: bool, large: u64) {
    let x = (iota::<4>().cast::<f32>() - 1.0).reshape::<2, 2>();
    tprint!("{{{}}} {} {} {}", x, yes, large, 0.1);
    tprint!("{} {}", x.cast::<f16>() * 0.1, select(x < 0.0, x / 0.0, -x));
    tprint!("{} {} {}", x < 1.0, (x * 1e30).cast::<f64>() * 1e30, x.cast::<i8>());
    y.store_tile([0], x.reshape::<4>());
}

/// A line of `tprint!` is the same on every device.
#[test]
fn lines_are_those_of_the_other_devices() {
    use std::sync::{Arc, Mutex};
    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let of = |dev: Device| {
        titan_cpu::set_print_sink(Some(Arc::new(|text| LINES.lock().unwrap().push(text.to_owned()))));
        let mut y = dev.zeros([4]).unwrap();
        prints(&mut y, true, u64::MAX).sync().unwrap();
        titan_cpu::set_print_sink(None);
        std::mem::take(&mut *LINES.lock().unwrap())
    };
    let cpu = of(Device::cpu());
    assert_eq!(cpu.len(), 3);
    assert_eq!(cpu[0], "{[[-1, 0], [1, 2]]} true 18446744073709551615 0.1\n");
    assert_eq!(of(Device::simulator(Options::default())), cpu);
    for target in ["sm_80", "gfx942"] {
        assert_eq!(of(Device::emulator(target).unwrap()), cpu, "{target}");
    }
}

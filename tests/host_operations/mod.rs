//! The operations of host code on tensors, for tests on every device and with drivers that fail.
#![allow(dead_code, reason = "every test program uses some of them")]

use titan::bench::{Bench, Clock};
use titan::prelude::*;
use titan::{DeviceKind, Result};

/// An operation that is right if it does not fail.
pub(crate) type Operation = fn(&Device) -> Result<()>;

/// All of them, with names.
pub(crate) const OPERATIONS: &[(&str, Operation)] = &[
    ("make, fill, copy, read", make_fill_copy_read),
    ("time", time),
    ("count", count),
    ("compare", compare),
    ("graph", graph),
    ("upload", upload),
];

/// The number of elements of a long row: more than what is copied run by run at least.
const ROW: usize = 96;

/// Makes, fills, copies and reads tensors; what does not fail must be right.
pub(crate) fn make_fill_copy_read(device: &Device) -> Result<()> {
    let bytes: Vec<u8> = (0..4 * ROW as u32).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let x: Tensor<f32, 2> = device.tensor_from_bytes(&bytes, [4, ROW])?;
    // SAFETY: all elements are written below.
    #[expect(unsafe_code, reason = "what is tested")]
    let mut y: Tensor<f32, 2> = unsafe { device.uninit([4, ROW])? };
    y.fill(1.5)?;
    y.slice_mut::<1>(0..ROW / 2)?.fill(0.0)?;
    y.slice_mut::<0>(1..3)?.copy_from(&x.slice::<0>(2..4)?)?;
    y.index_mut::<0>(3)?.copy_from(&x.index::<0>(0)?)?;
    let mut out = vec![f32::NAN; 4 * ROW];
    y.read_into(&mut out)?;
    let expected = |i: usize, j: usize| match i {
        0 if j < ROW / 2 => 0.0,
        0 => 1.5,
        1 | 2 => ((i + 1) * ROW + j) as f32,
        _ => j as f32,
    };
    assert!((0..4 * ROW).all(|k| out[k] == expected(k / ROW, k % ROW)), "{device}: {out:?}");
    let mut turned: Tensor<f32, 2> = device.full([ROW, 4], -1.0)?;
    turned.transpose_mut::<0, 1>()?.copy_from(&y)?;
    turned.transpose::<0, 1>()?.read_into(&mut out)?;
    assert!((0..4 * ROW).all(|k| out[k] == expected(k / ROW, k % ROW)), "{device}: {out:?}");
    let mut halves = device.full([6, 4], bf16::from_f32(3.0))?;
    halves.slice_mut::<1>(1..3)?.fill(bf16::from_f32(-2.0))?;
    assert_eq!(halves.index::<0>(5)?.to_vec()?, [3.0, -2.0, -2.0, 3.0].map(bf16::from_f32), "{device}");
    let mut codes: Tensor<u4, 2> = device.tensor_from_bytes([0x21, 0x43, 0x65, 0x87], [2, 4])?;
    codes.slice_mut::<1>(2..4)?.fill(u4::from_u8(15))?;
    let codes: Vec<u8> = codes.to_vec()?.into_iter().map(u4::to_u8).collect();
    assert_eq!(codes, [1, 2, 15, 15, 5, 6, 15, 15], "{device}");
    Ok(())
}

/// Records points, waits for them and measures the time between them.
pub(crate) fn time(device: &Device) -> Result<()> {
    let (s, t) = (device.stream()?, device.stream()?);
    let start = s.record()?;
    let timer = t.timer()?;
    let mut x: Tensor<f32, 1> = device.zeros([ROW])?;
    x.fill(2.0)?;
    let end = s.record()?;
    let whole = end.elapsed_since(&start)?;
    assert!(start.is_over() && end.is_over());
    let middle = t.record()?;
    drop(t.clone());
    assert!(timer.stop()? >= std::time::Duration::ZERO && whole < std::time::Duration::from_secs(600));
    // A point that nobody waits for.
    drop((s, middle));
    assert_eq!(x.to_vec()?, [2.0; ROW]);
    Ok(())
}

/// Compares fills of two lengths by the clock of the device, with a cache that is overwritten before each.
pub(crate) fn compare(device: &Device) -> Result<()> {
    let mut x: Tensor<f32, 1> = device.zeros([ROW])?;
    let bench = Bench::on(device).rounds(2).warm_up(0).flush(5000);
    let remote = matches!(device.kind(), DeviceKind::Cuda | DeviceKind::Hip);
    let compared = bench.compare(&["whole", "half"], |case, stream| {
        x.slice_mut::<0>(0..ROW / (1 + case))?.fill(case as f32)?;
        stream.record().map(drop)
    })?;
    assert_eq!(compared.clock, if remote { Clock::Device } else { Clock::Host }, "{device}");
    assert!(compared.cases.iter().all(|case| case.samples.len() == 2 && case.seconds.least > 0.0), "{compared}");
    // In the last round the second case is first.
    assert_eq!(x.to_vec()?, [0.0; ROW]);
    Ok(())
}

/// y = x + v.
#[titan::kernel]
pub(crate) fn plus(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>, v: f32) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<32>([p]) + v);
}

/// y = y · v, and a trap unless v is positive.
#[titan::kernel]
pub(crate) fn scaled(#[shape(N)] y: &mut Tensor<f32, 1>, v: f32) {
    let p = program_id(0);
    tassert!(v > 0.0, "the factor must be positive");
    y.store_tile([p], y.load_tile::<32>([p]) * v);
}

/// Captures launches and replays them with other arguments, on two streams; one of the kernels may trap.
pub(crate) fn graph(device: &Device) -> Result<()> {
    let (s, t) = (device.stream()?, device.stream()?);
    let mut x: Tensor<f32, 1> = device.full([ROW], 1.0)?;
    let (mut y, mut z) = (device.zeros([ROW])?, device.zeros::<f32, 1>([ROW])?);
    let mut graph = s.capture(|| {
        plus(&x, &mut y, 2.0).launch(&s)?;
        scaled(&mut y, 3.0).launch(&s)?;
        plus(&y, &mut z, 0.5).launch(&s)
    })?;
    assert_eq!((y.to_vec()?, z.to_vec()?), (vec![0.0; ROW], vec![0.0; ROW]), "{device}: nothing has run");
    graph.launch(&s)?;
    x.fill(4.0)?;
    graph.launch(&t)?;
    scaled(&mut z, 2.0).launch(&s)?;
    assert_eq!(z.to_vec()?, [37.0; ROW], "{device}");
    graph.set(1, scaled(&mut y, 10.0))?;
    graph.launch(&s)?;
    graph.launch(&t)?;
    assert_eq!(z.to_vec()?, [60.5; ROW], "{device}");
    let mut w: Tensor<f32, 1> = device.zeros([ROW])?;
    graph.update(|| {
        plus(&x, &mut w, 0.0).launch(&s)?;
        scaled(&mut w, 0.5).launch(&s)?;
        plus(&w, &mut z, 1.0).launch(&s)
    })?;
    graph.launch(&t)?;
    drop((graph, w, x, t));
    assert_eq!(z.to_vec()?, [3.0; ROW], "{device}");
    Ok(())
}

/// Copies pinned memory to a tensor and to a part of it, in the order of two streams; one memory is dropped before its copy may have ended.
pub(crate) fn upload(device: &Device) -> Result<()> {
    let (s, t) = (device.stream()?, device.stream()?);
    let (mut x, mut y): (Tensor<f32, 2>, Tensor<f32, 1>) = (device.full([2, ROW], 9.0)?, device.zeros([ROW])?);
    let mut staging = device.pinned::<f32>(ROW)?;
    assert_eq!(*staging, [0.0; ROW], "{device}");
    staging.fill(1.5);
    let upload = x.index_mut::<0>(1)?.upload(staging, &s)?;
    plus(&x.index::<0>(1)?, &mut y, 1.0).launch(&t)?;
    let mut staging = upload.wait()?;
    staging.iter_mut().zip(0..).for_each(|(to, i)| *to = i as f32);
    drop(x.index_mut::<0>(0)?.upload(staging, &t)?);
    assert_eq!(y.to_vec()?, [2.5; ROW], "{device}");
    let expected: Vec<f32> = (0..ROW).map(|i| i as f32).chain([1.5; ROW]).collect();
    assert_eq!(x.to_vec()?, expected, "{device}");
    Ok(())
}

/// Counts tensors and their bytes.
pub(crate) fn count(device: &Device) -> Result<()> {
    let x: Tensor<f32, 1> = device.zeros([ROW])?;
    let used = device.memory_use()?;
    assert!(used.tensors >= 1 && used.bytes >= 4 * ROW && used.peak_bytes >= used.bytes, "{used:?}");
    assert!(used.total.is_none_or(|total| used.free < Some(total)), "{used:?}");
    assert!(used.reserved.is_none_or(|reserved| reserved >= 4 * ROW as u64), "{used:?}");
    drop(x);
    device.release_memory()
}

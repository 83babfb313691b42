//! The cases of the benchmarks: launches through the public API, and code for the same work as one would write it by hand.
//!
//! Each is run once on both sides when it is made, and the results are compared: a wrong result is not timed.
#![expect(dead_code, reason = "each benchmark uses a part")]

mod kernels;
mod product;
/// Row kernels by hand: the same functions that the executor is measured against.
#[path = "../../titan-cpu/benches/paired/rows.rs"]
mod rows;

use titan::{Device, Tensor};

/// Rounds of a case that takes milliseconds.
pub(crate) const ROUNDS: usize = 40;
/// Rounds of a case that takes microseconds.
const MANY_ROUNDS: usize = 5000;

/// What a call does, for rates.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Floating-point operations.
    Flops(u64),
    /// Bytes read and written at least.
    Bytes(u64),
}

/// What is timed.
pub(crate) type Call = Box<dyn FnMut()>;

/// A kernel's launch, and what it is compared with.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) rounds: usize,
    pub(crate) work: Option<Work>,
    pub(crate) ours: Call,
    pub(crate) others: Vec<(&'static str, Call)>,
}

/// Every case.
pub(crate) fn all() -> titan::Result<Vec<Case>> {
    let dev = Device::cpu();
    let mut cases = launches(&dev)?;
    cases.push(gemm(&dev, 1024)?);
    for rows in [1, 4] {
        cases.push(row_case(&dev, "softmax", rows, rows::softmax)?);
        cases.push(row_case(&dev, "rms_norm", rows, rows::rms_norm)?);
        cases.push(row_case(&dev, "layer_norm", rows, rows::layer_norm)?);
    }
    Ok(cases)
}

fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919) % 1000) as f32 / 500.0 - 1.0).collect()
}

/// Panics unless both sides agree.
fn same(name: &str, ours: &[f32], theirs: &[f32], bound: f32) {
    let worst = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(ours.len() == theirs.len() && worst <= bound, "{name}: the sides differ by {worst}");
}

/// Launches that do next to nothing: what is left is the launch.
fn launches(dev: &Device) -> titan::Result<Vec<Case>> {
    let case = |name: &str, ours: Call| Case {
        name: name.to_owned(),
        rounds: MANY_ROUNDS,
        work: None,
        ours,
        others: Vec::new(),
    };
    let stream = dev.stream()?;
    let (x, mut y) = (dev.tensor(&values(256), [256])?, dev.zeros::<f32, 1>([256])?);
    kernels::copy(&x, &mut y).sync()?;
    same("copy", &y.to_vec()?, &values(256), 0.0);
    Ok(vec![
        case("launch: empty, sync", Box::new(|| kernels::empty().sync().expect("it runs"))),
        case(
            "launch: empty, stream and wait",
            Box::new(move || {
                kernels::empty().launch(&stream).expect("it is enqueued");
                stream.sync().expect("it runs");
            }),
        ),
        case("launch: copy of 1 KiB, sync", Box::new(move || kernels::copy(&x, &mut y).sync().expect("it runs"))),
    ])
}

fn gemm(dev: &Device, n: usize) -> titan::Result<Case> {
    let (a, b) = (values(n * n), values(n * n + 1)[1..].to_vec());
    let (at, bt) = (dev.tensor(&a, [n, n])?, dev.tensor(&b, [n, n])?);
    let mut ct = dev.zeros([n, n])?;
    let (mut dealt, mut own) = (vec![0f32; n * n], vec![0f32; n * n]);
    kernels::gemm::<128, 128, 64>(&at, &bt, &mut ct).sync()?;
    product::dealt(&a, &b, &mut dealt, n, n);
    product::threaded(&a, &b, &mut own, n, n);
    let name = format!("gemm f32 {n}x{n}x{n}, 128x128x64");
    same(&name, &ct.to_vec()?, &dealt, 2e-3);
    same(&name, &dealt, &own, 2e-3);
    let (a2, b2) = (a.clone(), b.clone());
    Ok(Case {
        name,
        rounds: ROUNDS,
        work: Some(Work::Flops(2 * (n as u64).pow(3))),
        ours: Box::new(move || kernels::gemm::<128, 128, 64>(&at, &bt, &mut ct).sync().expect("it runs")),
        others: vec![
            ("gemm, rows dealt", Box::new(move || product::dealt(&a, &b, &mut dealt, n, n))),
            ("gemm, its threads", Box::new(move || product::threaded(&a2, &b2, &mut own, n, n))),
        ],
    })
}

fn launch_rows(
    kernel: &str,
    rows: i32,
    x: &Tensor<f32, 2>,
    w: &Tensor<f32, 1>,
    y: &mut Tensor<f32, 2>,
) -> titan::Result<()> {
    match (kernel, rows) {
        ("softmax", 1) => kernels::softmax::<1, 1024>(x, y).sync(),
        ("softmax", _) => kernels::softmax::<4, 1024>(x, y).sync(),
        ("rms_norm", 1) => kernels::rms_norm::<1, 1024>(x, w, y, 1e-5).sync(),
        ("rms_norm", _) => kernels::rms_norm::<4, 1024>(x, w, y, 1e-5).sync(),
        (_, 1) => kernels::layer_norm::<1, 1024>(x, w, y, 1e-5).sync(),
        (_, _) => kernels::layer_norm::<4, 1024>(x, w, y, 1e-5).sync(),
    }
}

fn row_case(dev: &Device, kernel: &'static str, rows: i32, by_hand: rows::ByHand) -> titan::Result<Case> {
    let (m, n) = (4096, 1024);
    let (x, w) = (values(m * n), values(n));
    let (xt, wt, mut yt) = (dev.tensor(&x, [m, n])?, dev.tensor(&w, [n])?, dev.zeros([m, n])?);
    let mut y = vec![0f32; m * n];
    let name = format!("{kernel} [{m}, {n}], {rows} row{} a tile", if rows == 1 { "" } else { "s" });
    launch_rows(kernel, rows, &xt, &wt, &mut yt)?;
    by_hand(&x, &w, &mut y, n);
    same(&name, &yt.to_vec()?, &y, 1e-5);
    Ok(Case {
        name,
        rounds: ROUNDS,
        work: Some(Work::Bytes(8 * (m * n) as u64)),
        ours: Box::new(move || launch_rows(kernel, rows, &xt, &wt, &mut yt).expect("it runs")),
        others: vec![("by hand, rayon", Box::new(move || by_hand(&x, &w, &mut y, n)))],
    })
}

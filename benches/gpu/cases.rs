//! The cases: a kernel's launches, and the vendor's calls for the same work. [`attention`](crate::attention) has those of attention.

use crate::Plan;
use crate::attention::attention;
use crate::fp8::{self, Kernel};
use crate::kernels::{self, common};
use crate::vendor::{Half, Vendor};
use std::sync::Arc;
use titan::prelude::*;
use titan::{Result, Stream, cuda};

/// What a launch does, for rates.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Floating-point operations.
    Flops(u64),
    /// Bytes read and written at least.
    Bytes(u64),
    /// Nothing.
    Launch,
}

/// One side of a case.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    /// Runs so many launches and waits for them.
    pub(crate) run: Box<dyn FnMut(usize) -> Result<()>>,
}

/// A kernel and what it is compared with; the kernel is the first side.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) work: Work,
    pub(crate) sides: Vec<Side>,
}

type Make = fn(&Device, &Vendor, Plan) -> Result<Case>;

/// Every case, created when it is run: together they would not fit in memory.
pub(crate) fn all() -> Vec<Make> {
    vec![
        |dev, _, _| launches(dev),
        add,
        softmax_1024,
        softmax_4096,
        rms_norm_1024,
        rms_norm_4096,
        |d, v, p| gemm::<f16>(d, v, p, (Tiles::T128x256x64, 1024)),
        |d, v, p| gemm::<f16>(d, v, p, (Tiles::T128x256x64, 4096)),
        |d, v, p| gemm::<f16>(d, v, p, (Tiles::T128x128x64, 4096)),
        |d, v, p| gemm::<f16>(d, v, p, (Tiles::T128x128x32, 4096)),
        |d, v, p| gemm::<f16>(d, v, p, (Tiles::T64x128x32, 4096)),
        |d, v, p| gemm::<bf16>(d, v, p, (Tiles::T128x256x64, 4096)),
        |d, v, p| gemm::<f16>(d, v, p, (Tiles::T128x256x64, 8192)),
        |d, v, p| gemm::<bf16>(d, v, p, (Tiles::T128x256x64, 8192)),
        |d, _, p| fp8::product(d, p, Kernel::Wide, 8192),
        |d, _, p| fp8::product(d, p, Kernel::Narrow, 4096),
        |d, _, p| fp8::product(d, p, Kernel::Scaled, 8192),
        |d, _, p| attention::<64>(d, p, [4, 16, 4096], true),
        |d, _, p| attention::<128>(d, p, [1, 16, 16384], true),
        |d, _, p| attention::<128>(d, p, [1, 16, 16384], false),
    ]
}

/// Launches on a stream, and its end.
pub(crate) fn ours(stream: Stream, mut launch: impl FnMut(&Stream) -> Result<()> + 'static) -> Side {
    let run = move |n| {
        for _ in 0..n {
            launch(&stream)?;
        }
        stream.sync()
    };
    Side { name: "titan", run: Box::new(run) }
}

/// Normally distributed numbers (Box and Muller), the same on every run: what a chip draws depends on the bits that change, and with it its
/// clock.
pub(crate) fn values(n: usize, seed: usize) -> Vec<f32> {
    let mut state = (seed as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    // In 0..1, never 0.
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 40) as f32 + 0.5) / (1u64 << 24) as f32
    };
    let pairs = (0..n.div_ceil(2)).flat_map(|_| {
        let (far, turned) = ((-2.0 * next().ln()).sqrt(), std::f32::consts::TAU * next());
        [far * turned.cos(), far * turned.sin()]
    });
    pairs.take(n).collect()
}

fn launches(dev: &Device) -> Result<Case> {
    let side = ours(dev.stream()?, |stream| common::empty().launch(stream));
    Ok(Case { name: "launch of an empty kernel".to_owned(), work: Work::Launch, sides: vec![side] })
}

/// The kernel's side, and the driver's copy of as many bytes read and written.
fn beside_copy(name: String, bytes: u64, side: Side, vendor: &Vendor) -> Case {
    let mut sides = vec![side];
    if let Some(mut copy) = vendor.copy(bytes as usize / 2) {
        let run = move |n| {
            copy(n);
            Ok(())
        };
        sides.push(Side { name: "driver's copy", run: Box::new(run) });
    }
    Case { name, work: Work::Bytes(bytes), sides }
}

fn add(dev: &Device, vendor: &Vendor, plan: Plan) -> Result<Case> {
    let n = if plan.small { 5000 } else { 1 << 27 };
    let (x, y) = (values(n, 0), values(n, 3));
    let (xt, yt, mut zt) = (dev.tensor(&x, [n])?, dev.tensor(&y, [n])?, dev.zeros([n])?);
    kernels::add::<4096>(&xt, &yt, &mut zt).sync()?;
    let right = zt.to_vec()?.iter().zip(x.iter().zip(&y)).all(|(z, (x, y))| *z == x + y);
    assert!(right, "vector add is wrong");
    let side = ours(dev.stream()?, move |stream| kernels::add::<4096>(&xt, &yt, &mut zt).launch(stream));
    Ok(beside_copy(format!("vector add, {n} f32"), 12 * n as u64, side, vendor))
}

/// Panics unless the first and last rows are correct.
fn check_rows(name: &str, found: &[f32], x: &[f32], n: usize, row: impl Fn(&[f32]) -> Vec<f32>) {
    let rows = x.len() / n;
    for at in [0, 1, rows / 2, rows - 1] {
        let span = at * n..(at + 1) * n;
        let want = row(&x[span.clone()]);
        let worst = found[span].iter().zip(&want).map(|(a, b)| (a - b).abs() / (b.abs() + 1e-3)).fold(0.0, f32::max);
        assert!(worst < 1e-4, "{name}: row {at} is off by {worst}");
    }
}

fn rows(plan: Plan, n: usize) -> usize {
    if plan.small { 9 } else { (1 << 27) / n }
}

/// A case of rows: the kernel's launch is `$launch`, with `x` and `y` in reach.
macro_rules! rows_case {
    (($dev:ident, $vendor:ident, $plan:ident), $name:literal, $n:literal, $bm:literal, $row:ident, |$x:ident, $y:ident| $launch:expr) => {{
        let n: usize = $n;
        let m = rows($plan, n);
        let host = values(m * n, 0);
        let ($x, mut out) = ($dev.tensor(&host, [m, n])?, $dev.zeros([m, n])?);
        {
            let $y = &mut out;
            $launch.sync()?;
        }
        check_rows($name, &out.to_vec()?, &host, n, $row);
        let side = ours($dev.stream()?, move |stream| {
            let $y = &mut out;
            $launch.launch(stream)
        });
        Ok(beside_copy(format!("{} [{m}, {n}] f32, {} a tile", $name, $bm), 8 * (m * n) as u64, side, $vendor))
    }};
}

fn softmax_row(row: &[f32]) -> Vec<f32> {
    let sum: f64 = row.iter().map(|v| f64::from(*v).exp()).sum();
    row.iter().map(|v| (f64::from(*v).exp() / sum) as f32).collect()
}

fn rms_row(row: &[f32]) -> Vec<f32> {
    let mean = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / row.len() as f64;
    row.iter().map(|v| (f64::from(*v) / (mean + 1e-5).sqrt()) as f32).collect()
}

fn softmax_1024(dev: &Device, vendor: &Vendor, plan: Plan) -> Result<Case> {
    rows_case!((dev, vendor, plan), "softmax", 1024, 4, softmax_row, |x, y| common::softmax::<4, 1024>(&x, y))
}

fn softmax_4096(dev: &Device, vendor: &Vendor, plan: Plan) -> Result<Case> {
    rows_case!((dev, vendor, plan), "softmax", 4096, 1, softmax_row, |x, y| common::softmax::<1, 4096>(&x, y))
}

fn rms_norm_1024(dev: &Device, vendor: &Vendor, plan: Plan) -> Result<Case> {
    let w = dev.full([1024], 1.0)?;
    rows_case!((dev, vendor, plan), "RMS norm", 1024, 4, rms_row, |x, y| common::rms_norm::<4, 1024>(&x, &w, y, 1e-5))
}

fn rms_norm_4096(dev: &Device, vendor: &Vendor, plan: Plan) -> Result<Case> {
    let w = dev.full([4096], 1.0)?;
    rows_case!((dev, vendor, plan), "RMS norm", 4096, 1, rms_row, |x, y| common::rms_norm::<1, 4096>(&x, &w, y, 1e-5))
}

/// Tiles of a matrix multiplication.
#[derive(Clone, Copy, Debug)]
enum Tiles {
    T128x256x64,
    T128x128x64,
    T128x128x32,
    T64x128x32,
}

/// An element type for which matrix multiplication is measured.
trait Factor: Elem {
    const HALF: Half;

    fn from_f32(x: f32) -> Self;

    fn to_f32(self) -> f32;

    fn launch(
        tiles: Tiles,
        a: &Tensor<Self, 2>,
        b: &Tensor<Self, 2>,
        c: &mut Tensor<Self, 2>,
        on: &Stream,
    ) -> Result<()>;

    /// The same by roles that are written by hand, if there is such a kernel for these tiles.
    fn by_roles(tiles: Tiles) -> Option<ByRoles<Self>>;
}

/// A launch of a product.
type ByRoles<T> = fn(&Tensor<T, 2>, &Tensor<T, 2>, &mut Tensor<T, 2>, &Stream) -> Result<()>;

macro_rules! factor {
    ($t:ident, $half:ident) => {
        impl Factor for $t {
            const HALF: Half = Half::$half;

            fn from_f32(x: f32) -> Self {
                $t::from_f32(x)
            }

            fn to_f32(self) -> f32 {
                $t::to_f32(self)
            }

            fn launch(
                tiles: Tiles,
                a: &Tensor<Self, 2>,
                b: &Tensor<Self, 2>,
                c: &mut Tensor<Self, 2>,
                on: &Stream,
            ) -> Result<()> {
                match tiles {
                    Tiles::T128x256x64 => kernels::gemm::<$t, 128, 256, 64>(a, b, c).launch(on),
                    Tiles::T128x128x64 => kernels::gemm::<$t, 128, 128, 64>(a, b, c).launch(on),
                    Tiles::T128x128x32 => kernels::gemm::<$t, 128, 128, 32>(a, b, c).launch(on),
                    Tiles::T64x128x32 => kernels::gemm::<$t, 64, 128, 32>(a, b, c).launch(on),
                }
            }

            fn by_roles(tiles: Tiles) -> Option<ByRoles<Self>> {
                match tiles {
                    Tiles::T128x256x64 => {
                        Some(|a, b, c, on| kernels::gemm_ws::<$t, 128, 256, 64, 4>(a, b, c).launch(on))
                    }
                    Tiles::T128x128x64 => {
                        Some(|a, b, c, on| kernels::gemm_ws::<$t, 128, 128, 64, 6>(a, b, c).launch(on))
                    }
                    Tiles::T128x128x32 | Tiles::T64x128x32 => None,
                }
            }
        }
    };
}
factor!(f16, F16);
factor!(bf16, Bf16);

/// A multiplication of square matrices, that of a kernel with roles, and cuBLAS's over the same memory.
fn gemm<T: Factor>(dev: &Device, vendor: &Vendor, plan: Plan, (tiles, n): (Tiles, usize)) -> Result<Case> {
    let n = if plan.small { 128 } else { n };
    let halves = |seed| values(n * n, seed).into_iter().map(T::from_f32).collect::<Vec<T>>();
    let (a, b) = (Arc::new(dev.tensor(&halves(0), [n, n])?), Arc::new(dev.tensor(&halves(3), [n, n])?));
    let mut c = dev.zeros([n, n])?;
    let stream = dev.stream()?;
    T::launch(tiles, &a, &b, &mut c, &stream)?;
    stream.sync()?;
    let mut sides = Vec::new();
    let theirs: Arc<Tensor<T, 2>> = Arc::new(dev.zeros([n, n])?);
    if let Some(on) = &vendor.stream {
        let places = [cuda::lend(&a, on)?.address(), cuda::lend(&b, on)?.address(), cuda::lend(&theirs, on)?.address()];
        if let Some(call) = vendor.product(T::HALF, [n as i32; 3], places) {
            let (on, keep) = (Arc::clone(on), [Arc::clone(&a), Arc::clone(&b), Arc::clone(&theirs)]);
            call();
            on.synchronize().expect("cuBLAS runs");
            let pairs = c.to_vec()?.into_iter().zip(theirs.to_vec()?);
            let worst = pairs.map(|(x, y)| (x.to_f32() - y.to_f32()).abs()).fold(0.0, f32::max);
            assert!(worst <= 0.02 * (n as f32).sqrt(), "product of {n}: off by {worst} of cuBLAS");
            let run = move |times| {
                let _alive = &keep;
                (0..times).for_each(|_| call());
                on.synchronize().expect("cuBLAS runs");
                Ok(())
            };
            sides.push(Side { name: "cuBLAS", run: Box::new(run) });
        }
    }
    if let Some(launch) = T::by_roles(tiles) {
        let (a, b, mut again, stream) = (Arc::clone(&a), Arc::clone(&b), dev.zeros([n, n])?, dev.stream()?);
        launch(&a, &b, &mut again, &stream)?;
        stream.sync()?;
        let pairs = c.to_vec()?.into_iter().zip(again.to_vec()?);
        let worst = pairs.map(|(x, y)| (x.to_f32() - y.to_f32()).abs()).fold(0.0, f32::max);
        assert!(worst <= 0.02 * (n as f32).sqrt(), "product of {n} by roles: off by {worst}");
        let side = ours(stream, move |stream| launch(&a, &b, &mut again, stream));
        sides.insert(0, Side { name: "gemm_ws", ..side });
    }
    sides.insert(0, ours(stream, move |stream| T::launch(tiles, &a, &b, &mut c, stream)));
    let name = format!(
        "gemm {} {n}³, {}",
        if matches!(T::HALF, Half::F16) { "f16" } else { "bf16" },
        format!("{tiles:?}").trim_start_matches('T')
    );
    Ok(Case { name, work: Work::Flops(2 * (n as u64).pow(3)), sides })
}

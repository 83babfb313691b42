//! The kernels of the tree's own tests: all that verify are compiled by the driver, and run.

use super::both::Launch;
use crate::launch::{Ready, machine};
use crate::machine::Rng;
use crate::tensor::Tensor;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use titan_core::driver::stages;
use titan_core::ir::{DimSpec, Elem, GridSpec, HostEnv, Kernel, ParamKind, Symbol};
use titan_core::text::parse_located;
use titan_core::verify::{Verified, verify};

const FOLDERS: [&str; 5] = [
    "titan-core/filetests/text",
    "titan-core/filetests/verify",
    "titan-core/filetests/museum",
    "titan-cli/tests/files",
    "titan-nv/golden",
];

/// Every kernel that can be read and verifies, with its file.
fn kernels() -> Vec<(String, Verified)> {
    kernels_in(|_| true)
}

/// Those of the files with such names.
fn kernels_in(wanted: impl Fn(&str) -> bool) -> Vec<(String, Verified)> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let mut paths: Vec<_> = std::fs::read_dir(root.join(folder)).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "tir")) {
            if !path.file_stem().is_some_and(|stem| wanted(&stem.to_string_lossy())) {
                continue;
            }
            let Ok(kernels) = parse_located(&std::fs::read_to_string(path).unwrap()) else { continue };
            let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for kernel in kernels {
                let name = format!("{file}: {}", kernel.kernel.sig.name);
                found.extend(verify(kernel.kernel).ok().map(|verified| (name, verified)));
            }
        }
    }
    found
}

/// The kernels of one file that verify, by their names.
pub(super) fn kernels_of(file: &str) -> Vec<(String, Verified)> {
    let named = |(name, kernel): (String, Verified)| {
        let (own, name) = name.split_once(": ")?;
        (own == file).then(|| (name.to_owned(), kernel))
    };
    kernels_in(|own| own == file).into_iter().filter_map(named).collect()
}

/// Floats of moderate size, whose sums are exact, and some special ones; other elements stay random.
fn moderate(rng: &mut Rng, tensor: &mut Tensor, special: bool) {
    let size = (tensor.elem.bits() / 8).max(1) as usize;
    let skip = tensor.skip;
    for bytes in tensor.bytes[skip..].chunks_exact_mut(size) {
        let x = f64::from(rng.below(257)) / 8.0 - 16.0;
        let odd = special && rng.below(40) == 0;
        let x = if odd { rng.of(&[f64::NAN, f64::INFINITY, -0.0, 1e-40, f64::NEG_INFINITY]) } else { x };
        let bits = match tensor.elem {
            Elem::F64 => x.to_bits(),
            Elem::F32 | Elem::Tf32 => u64::from((x as f32).to_bits()),
            Elem::F16 => titan_core::num::f16_from_f64(x).into(),
            Elem::Bf16 => titan_core::num::bf16_from_f64(x).into(),
            Elem::E4m3 => titan_core::num::e4m3_from_f64(x).into(),
            Elem::E5m2 => titan_core::num::e5m2_from_f64(x).into(),
            Elem::Bool => u64::from(rng.below(2)),
            // Small numbers, so that some are indices of elements.
            Elem::I32 | Elem::I64 | Elem::U32 | Elem::U64 if rng.below(3) > 0 => u64::from(rng.below(40)),
            _ => continue,
        };
        bytes.copy_from_slice(&bits.to_le_bytes()[..size]);
    }
}

fn scalar_bits(kernel: &Kernel, param: u32) -> u64 {
    match kernel.sig.params[param as usize].kind {
        ParamKind::Scalar(Elem::F32) => 1.5f32.to_bits().into(),
        ParamKind::Scalar(Elem::F64) => 1.5f64.to_bits(),
        ParamKind::Scalar(Elem::F16) => 0x3e00,
        ParamKind::Scalar(Elem::Bf16) => 0x3fc0,
        ParamKind::Scalar(_) | ParamKind::Tensor { .. } => 1,
    }
}

/// The names of extents that are bound so far, and the extents of the tensors.
#[derive(Default)]
struct Names {
    symbols: BTreeMap<Symbol, i64>,
    extents: Vec<Vec<u32>>,
}

impl HostEnv for Names {
    fn symbol(&self, symbol: Symbol) -> i64 {
        self.symbols.get(&symbol).copied().unwrap_or(1)
    }

    fn scalar(&self, _: usize) -> i64 {
        1
    }

    fn dim(&self, param: usize, axis: usize) -> i64 {
        self.extents.get(param).and_then(|extents| extents.get(axis)).map_or(1, |n| i64::from(*n))
    }
}

/// The grid that a kernel states, at most so many programs that the test is short.
fn grid(kernel: &Kernel, names: &Names) -> Option<[u32; 3]> {
    let mut grid = [1; 3];
    match &kernel.sig.grid {
        GridSpec::Persistent => grid[0] = 3,
        GridSpec::Extents(all) => {
            for (extent, expr) in grid.iter_mut().zip(all) {
                *extent = u32::try_from(expr.eval(names).ok()?).ok()?;
            }
        }
    }
    (grid.iter().product::<u32>() <= 64 && !grid.contains(&0)).then_some(grid)
}

/// The grid of a kernel for these tensors.
pub(super) fn grid_of(kernel: &Kernel, tensors: &[Option<Tensor>]) -> Option<[u32; 3]> {
    let mut names = Names::default();
    for (param, tensor) in kernel.sig.params.iter().zip(tensors) {
        let extents = tensor.as_ref().map_or(Vec::new(), |tensor| tensor.extents.clone());
        if let ParamKind::Tensor { shape, .. } = &param.kind {
            for (dim, extent) in shape.iter().zip(&extents) {
                if let DimSpec::Bind(name) = dim {
                    names.symbols.insert(*name, i64::from(*extent));
                }
            }
        }
        names.extents.push(extents);
    }
    grid(kernel, &names)
}

/// Tensors with the extents that the signature declares; nothing if these cannot be aligned.
fn tensors(kernel: &Kernel, rng: &mut Rng, aligned: bool) -> Option<(Vec<Option<Tensor>>, Names)> {
    let mut names = Names::default();
    let mut all = Vec::new();
    for param in &kernel.sig.params {
        let ParamKind::Tensor { elem, shape, .. } = &param.kind else {
            all.push(None);
            names.extents.push(Vec::new());
            continue;
        };
        let mut tensor = Tensor::new(rng, *elem, shape.len(), aligned);
        let any = |rng: &mut Rng| if aligned { 16 * (1 + rng.below(4)) } else { 1 + rng.below(70) };
        for (extent, dim) in tensor.extents.iter_mut().zip(shape) {
            *extent = match dim {
                DimSpec::Any => any(rng),
                DimSpec::Bind(name) => {
                    let extent = any(rng);
                    names.symbols.insert(*name, extent.into());
                    extent
                }
                DimSpec::Equals(expr) => u32::try_from(expr.eval(&names).ok()?).ok().filter(|n| *n < 1 << 12)?,
            };
        }
        let size = (elem.bits() / 8).max(1);
        let mut total = 1;
        for (stride, extent) in tensor.strides.iter_mut().zip(&tensor.extents).rev() {
            *stride = total;
            total = total * extent + if aligned { 0 } else { rng.below(3) };
        }
        if aligned && tensor.extents.last().is_some_and(|n| n * size % 16 != 0) {
            return None;
        }
        tensor.bytes = (0..tensor.skip + (total * size) as usize).map(|_| rng.word() as u8).collect();
        names.extents.push(tensor.extents.clone());
        all.push(Some(tensor));
    }
    Some((all, names))
}

/// Runs a kernel in both ways; whether anything was compared.
pub(super) fn compared(
    (kernel, rings): (&Verified, &Verified),
    ready: &Ready,
    func: &titan_core::lane::Func,
    aligned: bool,
    seed: u64,
) -> Result<bool, String> {
    let mut rng = Rng::new(seed);
    let Some((mut tensors, _)) = tensors(kernel, &mut rng, aligned) else { return Ok(false) };
    // Schedules may number the programs in another way.
    let Some(grid) = grid_of(rings, &tensors) else { return Ok(false) };
    tensors.iter_mut().flatten().for_each(|tensor| moderate(&mut rng, tensor, seed % 2 == 1));
    let scalar = |param: u32| scalar_bits(kernel, param);
    let launch = Launch { grid, tensors: &tensors, scalar: &scalar };
    // What breaks a rule of the language with these arguments is not compared.
    let Ok(wanted) = launch.evaluated(func) else { return Ok(false) };
    let found = launch.emulated(func, ready, seed as usize)?;
    launch.difference(&found, &wanted).map_or(Ok(true), Err)
}

#[test]
fn kernels_of_the_tree_leave_what_their_lanes_say() {
    let (mut compiled, mut runs, mut skipped) = (0, 0, 0);
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut complaints = Vec::new();
    // In the quick depth some, of which those of the barrier dialect are refused at once.
    for (name, kernel) in test_depth::sample(kernels(), 20) {
        for aligned in [true, false] {
            let stages = match stages(&kernel, machine(), aligned, None) {
                Ok(stages) => stages,
                Err(error) => {
                    refused.entry(error.message).or_default().push(name.clone());
                    continue;
                }
            };
            compiled += 1;
            let ready = Ready::new(&stages.lanes).unwrap_or_else(|e| panic!("{name}: {e}"));
            for seed in 0..test_depth::cases(3, 1) {
                match compared((&kernel, &stages.rings), &ready, &stages.lanes, aligned, seed) {
                    Ok(true) => runs += 1,
                    Ok(false) => skipped += 1,
                    Err(what) => complaints.push(format!("{name}, aligned {aligned}, seed {seed}: {what}")),
                }
            }
        }
    }
    let mut report = format!("{compiled} compiled, {runs} runs compared, {skipped} not\n");
    for (why, names) in &refused {
        report.push_str(&format!("refused {}: {why}: {}\n", names.len(), names.join(", ")));
    }
    std::io::stderr().write_all(report.as_bytes()).expect("written");
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
    assert!(compiled > test_depth::cases(100, 6) && runs > test_depth::cases(200, 4), "{report}");
}

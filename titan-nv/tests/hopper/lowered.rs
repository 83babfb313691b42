//! Kernels that TITAN compiles for sm_90a, in the emulator: matrix products of all elements and orders in memory, with ragged
//! tensors. Numbers are small and whole, so that every result is exact.

use super::harness::orders_of;
use super::ptxas;
use std::fmt::Write as _;
use titan_core::driver::{Arguments, Stages, stages};
use titan_core::ir::{self, Elem, GridSpec, ParamKind};
use titan_core::launch::abi::{self, GpuArg};
use titan_core::launch::report;
use titan_core::num;
use titan_core::text;
use titan_core::verify::verify;
use titan_nv::Machine;
use titan_nv::emu::{Completion, DevicePtr, Launch, Memory, Module, Options, Param};
use titan_nv::tma::TensorMap;
use titan_sim::engine::Rng;

/// A product `C = A · B`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gemm {
    /// Elements of A, B and the accumulator.
    pub(super) elems: (Elem, Elem, Elem),
    /// Elements of C.
    pub(super) stored: Elem,
    /// Whether A is given as `[K, M]`, and B as `[K, N]`: rows of the product are neighbours in memory.
    pub(super) transposed: [bool; 2],
    /// M, N, K of a tile.
    pub(super) tile: [u32; 3],
    /// M, N, K of the tensors.
    pub(super) size: [usize; 3],
}

pub(super) fn kernel(gemm: &Gemm) -> String {
    let [bm, bn, bk] = gemm.tile;
    let (a, b, c) = gemm.elems;
    let stored = gemm.stored;
    let zero = |elem: Elem| if elem.is_float() { "0.0" } else { "0" };
    let [ta, tb] = gemm.transposed;
    let (sa, sb) = (if ta { "K, M" } else { "M, K" }, if tb { "K, N" } else { "N, K" });
    let mut s = format!(
        "kernel @gemm(%a: in tensor<{a}>[{sa}], %b: in tensor<{b}>[{sb}], %c: mut tensor<{stored}>[M, N]) \
         grid(cdiv(M, {bm}), cdiv(N, {bn})) {{\n"
    );
    let of_k = usize::from(!ta);
    let _ = write!(
        s,
        "%K = dim<{of_k}> %a : i32\n%m = program_id<0> : i32\n%n = program_id<1> : i32\n%z = const {} : {c}\n\
         %acc = splat %z : tile<{bm}x{bn}x{c}>\n%zero = const 0 : i32\n%bk = const {bk} : i32\n%q = div %K, %bk : i32\n\
         %r = rem %K, %bk : i32\n%more = gt %r, %zero : bool\n%rest = cast %more : i32\n%steps = add %q, %rest : i32\n\
         %one = const 1 : i32\n%pa = const {} : {a}\n%pb = const {} : {b}\n\
         %out = for %k = %zero to %steps step %one pipelined carry(%x = %acc) : tile<{bm}x{bn}x{c}> {{\n",
        zero(c),
        zero(a),
        zero(b),
    );
    if ta {
        let _ = write!(
            s,
            "%at = load_tile %a[%k, %m] or %pa : tile<{bk}x{bm}x{a}>\n%ap = permute<1, 0> %at : tile<{bm}x{bk}x{a}>\n"
        );
    } else {
        let _ = writeln!(s, "%ap = load_tile %a[%m, %k] or %pa : tile<{bm}x{bk}x{a}>");
    }
    if tb {
        let _ = writeln!(s, "%bp = load_tile %b[%k, %n] or %pb : tile<{bk}x{bn}x{b}>");
    } else {
        let _ = write!(
            s,
            "%bt = load_tile %b[%n, %k] or %pb : tile<{bn}x{bk}x{b}>\n%bp = permute<1, 0> %bt : tile<{bk}x{bn}x{b}>\n"
        );
    }
    let _ = write!(
        s,
        "%next = mma %ap, %bp, %x : tile<{bm}x{bn}x{c}>\ncontinue %next\n}}\n%y = cast %out : tile<{bm}x{bn}x{stored}>\n\
         store_tile %c[%m, %n], %y\nreturn\n}}\n"
    );
    s
}

pub(super) fn compiled(text: &str) -> Stages {
    compiled_for(text, "sm_90a")
}

pub(super) fn compiled_for(text: &str, target: &str) -> Stages {
    let kernel = text::parse(text).unwrap_or_else(|e| panic!("{e:?}\n{text}")).remove(0);
    let verified = verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let machine = Machine::from_name(target).expect("it is known");
    stages(&verified, machine, true, None).unwrap_or_else(|e| panic!("{}\n{text}", e.message))
}

/// The bytes of small whole numbers.
pub(super) fn encode(elem: Elem, x: i32) -> Vec<u8> {
    let f = x as f32;
    match elem {
        Elem::F16 => num::f16_from_f32(f).to_le_bytes().to_vec(),
        Elem::Bf16 => num::bf16_from_f64(f.into()).to_le_bytes().to_vec(),
        Elem::E4m3 => vec![num::e4m3_from_f32(f)],
        Elem::E5m2 => vec![num::e5m2_from_f32(f)],
        Elem::F32 | Elem::Tf32 => f.to_le_bytes().to_vec(),
        Elem::I32 => x.to_le_bytes().to_vec(),
        _ => vec![x as u8],
    }
}

pub(super) struct Tensor {
    pub(super) at: DevicePtr,
    pub(super) values: Vec<i32>,
    pub(super) arg: GpuArg,
}

/// A tensor of rows of so many elements, each row padded to a multiple of 16 bytes.
pub(super) fn upload(
    memory: &mut Memory,
    name: &str,
    elem: Elem,
    [rows, columns]: [usize; 2],
    rng: &mut Rng,
) -> Tensor {
    let unsigned = matches!(elem, Elem::U8);
    let bytes = elem.bits() as usize / 8;
    let pitch = (columns * bytes).next_multiple_of(16) / bytes;
    let mut values = Vec::new();
    let mut data = Vec::new();
    for _ in 0..rows {
        for column in 0..pitch {
            // What lies between rows is no zero.
            let x = (rng.next_u64() >> 61) as i32 - if unsigned { 0 } else { 3 };
            data.extend(encode(elem, x));
            if column < columns {
                values.push(x);
            }
        }
    }
    data.resize(data.len().max(16), 0);
    let at = memory.upload(name, &data);
    let extents = vec![rows as i32, columns as i32];
    let arg = GpuArg::Tensor { address: at.address(), extents, strides: vec![pitch as i64, 1] };
    Tensor { at, values, arg }
}

/// An output, whose rows do not lie beside each other if they are of any alignment.
struct Output {
    at: DevicePtr,
    elem: Elem,
    arg: GpuArg,
    /// The number of the first element in memory, and the elements from row to row.
    first: usize,
    pitch: usize,
    before: Vec<u8>,
}

impl Output {
    /// An output of any alignment begins at its second element, and its rows have no common alignment.
    fn new(memory: &mut Memory, elem: Elem, [m, n]: [usize; 2], any: bool, rng: &mut Rng) -> Output {
        let size = elem.bits() as usize / 8;
        let (at, arg) = if any {
            let rows: Vec<u8> = (0..m * (n + 1) + 1).flat_map(|i| encode(elem, i as i32 % 5)).collect();
            let at = memory.upload("c within rows", &rows);
            let (extents, strides) = (vec![m as i32, n as i32], vec![n as i64 + 1, 1]);
            (at, GpuArg::Tensor { address: at.address() + size as u64, extents, strides })
        } else {
            let c = upload(memory, "c", elem, [m, n], rng);
            (c.at, c.arg)
        };
        let pitch = if let GpuArg::Tensor { strides, .. } = &arg { strides[0] as usize } else { n };
        let first = usize::from(any);
        let before = memory.read(at, (first + m * pitch) * size).expect("it was uploaded").to_vec();
        Output { at, elem, arg, first, pitch, before }
    }

    /// Whether it holds the results, and, for rows of any alignment, what lies between them is as before.
    fn holds(&self, memory: &Memory, [m, n]: [usize; 2], results: &[i32]) -> Result<(), String> {
        let Output { first, pitch, elem, .. } = *self;
        let size = elem.bits() as usize / 8;
        let bytes = memory.read(self.at, self.before.len()).map_err(|e| e.to_string())?;
        for element in 0..first + m * pitch {
            let (row, column) = (element.wrapping_sub(first) / pitch, element.wrapping_sub(first) % pitch);
            let found = &bytes[element * size..][..size];
            if element >= first && column < n {
                let result = results[row * n + column];
                let wanted = encode(elem, result);
                if found != wanted {
                    return Err(format!("row {row}, column {column}: {found:?} instead of {wanted:?} for {result}"));
                }
            } else if first > 0 && found != &self.before[element * size..][..size] {
                return Err(format!("element {element}, which is not of the output, was written"));
            }
        }
        Ok(())
    }
}

/// Runs a product; `Err` says where it differs, or why it did not run.
pub(super) fn run(gemm: &Gemm, stages: &Stages, options: &Options, seed: u64) -> Result<(), String> {
    let [tiles, across] = [0, 1].map(|axis| gemm.size[axis].div_ceil(gemm.tile[axis] as usize) as u32);
    // Programs that walk over the grid: of two clusters, some of which may have nothing to do.
    let walking = [2 * stages.lanes.cluster, 1, 1];
    // Programs that are numbered in groups of rows have one number.
    let flat = matches!(&stages.rings.sig.grid, GridSpec::Extents(axes) if axes.len() == 1);
    let grid = if flat { [tiles * across, 1, 1] } else { [tiles, across, 1] };
    run_on(gemm, stages, options, seed, if stages.schedule.walk.is_persistent() { walking } else { grid })
}

/// The same on a grid.
pub(super) fn run_on(gemm: &Gemm, stages: &Stages, options: &Options, seed: u64, grid: [u32; 3]) -> Result<(), String> {
    run_with_maps(gemm, stages, options, seed, grid, |_, _| ())
}

/// The same with tensor maps that are changed before the launch: each is given with its number.
pub(super) fn run_with_maps(
    gemm: &Gemm,
    stages: &Stages,
    options: &Options,
    seed: u64,
    grid: [u32; 3],
    change: impl Fn(usize, &mut TensorMap),
) -> Result<(), String> {
    let [m, n, k] = gemm.size;
    let ((ea, eb, _), ec) = (gemm.elems, gemm.stored);
    let mut rng = Rng::new(seed);
    let mut memory = Memory::new();
    let [ta, tb] = gemm.transposed;
    let a = upload(&mut memory, "a", ea, if ta { [k, m] } else { [m, k] }, &mut rng);
    let b = upload(&mut memory, "b", eb, if tb { [k, n] } else { [n, k] }, &mut rng);
    let any = stages.schedule.arguments == Arguments::AlignedInputs;
    let elem_of = |param: &ir::Param| if let ParamKind::Tensor { elem, .. } = param.kind { elem } else { ec };
    // The output, and further ones that get the same results.
    let elems = stages.rings.sig.params[2..].iter().map(elem_of);
    let outputs: Vec<Output> = elems.map(|elem| Output::new(&mut memory, elem, [m, n], any, &mut rng)).collect();
    let args: Vec<GpuArg> = [&a.arg, &b.arg].into_iter().chain(outputs.iter().map(|c| &c.arg)).cloned().collect();
    launch(stages, (&args, grid), &mut memory, options, change)?;
    let at = |t: &Tensor, turned: bool, [row, column]: [usize; 2], [rows, columns]: [usize; 2]| {
        if turned { t.values[column * rows + row] } else { t.values[row * columns + column] }
    };
    let mut results = Vec::new();
    for row in 0..m {
        for column in 0..n {
            let dot: i32 = (0..k).map(|i| at(&a, ta, [row, i], [m, k]) * at(&b, tb, [column, i], [n, k])).sum();
            results.push(dot);
        }
    }
    outputs.iter().try_for_each(|c| c.holds(&memory, [m, n], &results))
}

/// Launches a kernel on these arguments, with changes of its tensor maps.
pub(super) fn launch(
    stages: &Stages,
    (args, grid): (&[GpuArg], [u32; 3]),
    memory: &mut Memory,
    options: &Options,
    change: impl Fn(usize, &mut TensorMap),
) -> Result<(), String> {
    let told = memory.upload("report", &vec![0; 4 * (report::RECORDS + 64)]);
    let lanes = &stages.lanes;
    let block = abi::pack(&lanes.slots, args, told.address());
    let (at, _) = abi::offsets(&lanes.slots);
    let words = lanes.slots.iter().zip(at).map(|(slot, at)| Param::Bytes(block[at..at + slot.bytes()].to_vec()));
    let mut params: Vec<Param> = words.collect();
    for (number, map) in lanes.maps.iter().enumerate() {
        let mut made = TensorMap::of_argument(map, &args[map.param as usize]).map_err(|e| e.to_string())?;
        change(number, &mut made);
        params.push(Param::Bytes(made.to_bytes().to_vec()));
    }
    let launch = Launch {
        grid,
        block: [lanes.threads, 1, 1],
        dynamic_shared: lanes.shared_bytes,
        cluster: None,
        params: &params,
    };
    let ptx = String::from_utf8(stages.code.payload.clone()).map_err(|e| e.to_string())?;
    let entry = stages.code.config.iter().find(|(name, _)| name == "entry").map_or("", |(_, entry)| entry);
    let module = Module::parse(&ptx).map_err(|e| format!("{e}\n{ptx}"))?;
    let kernel = module.entry(entry).map_err(|e| e.to_string())?;
    kernel.run(&launch, memory, options).map(drop).map_err(|e| e.to_string())
}

/// The assembler takes the code without remarks, and spills at most so many bytes.
pub(super) fn assembles(made: &Stages, target: &str, spilled: u32) {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    let text = String::from_utf8_lossy(&made.code.payload);
    let usages = ptxas::assemble(&ptxas, target, &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert!(usages.iter().all(|usage| usage.spilled <= spilled), "{target}: {usages:?}");
    usages.iter().for_each(|usage| ptxas::say(&format!("{}: {} registers", usage.kernel, usage.registers)));
}

#[test]
fn products_of_all_elements_and_orders_are_exact() {
    let halves = [Elem::F16, Elem::Bf16];
    let mut cases = Vec::new();
    for elem in halves {
        for transposed in [[false, false], [true, false], [false, true], [true, true]] {
            let elems = (elem, elem, Elem::F32);
            cases.push(Gemm { elems, stored: Elem::F32, transposed, tile: [128, 64, 64], size: [150, 72, 200] });
            cases.push(Gemm { elems, stored: elem, transposed, tile: [64, 128, 32], size: [100, 136, 72] });
        }
    }
    let bytes =
        [(Elem::I8, Elem::I8, Elem::I32), (Elem::E4m3, Elem::E4m3, Elem::F32), (Elem::E5m2, Elem::E4m3, Elem::F32)];
    cases.extend(bytes.map(|elems| Gemm {
        elems,
        stored: elems.2,
        transposed: [false; 2],
        tile: [64, 96, 128],
        size: [64, 100, 300],
    }));
    let tf32 = (Elem::Tf32, Elem::Tf32, Elem::F32);
    cases.push(Gemm { elems: tf32, stored: Elem::F32, transposed: [false; 2], tile: [64, 48, 32], size: [70, 48, 65] });
    let traits = |(number, gemm): &(usize, Gemm)| {
        let layout = format!("{:?} {:?}", gemm.transposed, gemm.tile);
        vec![format!("{:?} {:?}", gemm.elems, gemm.stored), layout, format!("order {}", number % 4)]
    };
    for (number, gemm) in &test_depth::covering(cases.into_iter().enumerate(), traits) {
        let number = *number;
        let made = compiled(&kernel(gemm));
        assert!(!made.lanes.maps.is_empty(), "{gemm:?} has no tensor maps");
        assembles(&made, "sm_90a", 0);
        for options in orders_of(number) {
            run(gemm, &made, &options, number as u64)
                .unwrap_or_else(|e| panic!("{gemm:?}, {:?}: {e}", options.completion));
        }
    }
}

#[test]
fn steps_fewer_and_more_than_slots() {
    let base = Gemm {
        elems: (Elem::F16, Elem::F16, Elem::F32),
        stored: Elem::F16,
        transposed: [false; 2],
        tile: [128, 128, 32],
        size: [128, 128, 0],
    };
    let made = compiled(&kernel(&base));
    for k in [8, 32, 40, 64, 96, 1000] {
        let gemm = Gemm { size: [100, 130, k], ..base };
        // In the quick depth, the longest once.
        let most = if k < 1000 { 1 + k % 16 / 8 } else { 1 };
        for completion in test_depth::sample([Completion::Late, Completion::Early], most) {
            let options = Options { completion, sanitize: true, ..Options::default() };
            run(&gemm, &made, &options, k as u64).unwrap_or_else(|e| panic!("{gemm:?}: {e}"));
        }
    }
}

/// Without rings, all threads copy the operands to shared memory and wait before the MMAs of warpgroups read them.
#[test]
fn loops_that_are_not_pipelined() {
    let tiles = [([64, 64, 64], Elem::F16), ([128, 32, 32], Elem::Bf16), ([64, 64, 64], Elem::E4m3)];
    for (number, (tile, elem)) in tiles.into_iter().enumerate() {
        let elems = (elem, elem, Elem::F32);
        let gemm = Gemm { elems, stored: Elem::F32, transposed: [false; 2], tile, size: [70, 72, 208] };
        let made = compiled(&kernel(&gemm).replace(" pipelined ", " "));
        assembles(&made, "sm_90a", 0);
        for options in orders_of(number) {
            run(&gemm, &made, &options, 3).unwrap_or_else(|e| panic!("{gemm:?}, {:?}: {e}", options.completion));
        }
    }
}

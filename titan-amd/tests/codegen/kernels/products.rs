//! Matrix products of all element types: what the emulator leaves is the product, and what the lane IR says.
//!
//! The elements are such that all sums are exact, so that the order of a sum does not matter.

use super::both::Launch;
use super::tree::grid_of;
use crate::launch::{Ready, machine};
use crate::machine::Rng;
use crate::tensor::Tensor;
use titan_amd::Machine;
use titan_core::driver::{Backend, Code, Stages, follow, stages};
use titan_core::ir::Elem;
use titan_core::lane::{Func, OpKind};
use titan_core::num;
use titan_core::plan::LowerError;
use titan_core::target::Target;
use titan_core::text::parse;
use titan_core::verify::{Verified, verify};

/// A product `[M, K] · [K, N]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    /// The elements of A and B.
    pub(crate) elems: [Elem; 2],
    /// The elements of the accumulator, and of C.
    pub(crate) acc: Elem,
    /// The extents M, N and K of a tile.
    pub(crate) tile: [u32; 3],
    /// Whether rows of A and of Bᵀ are contiguous along K.
    pub(crate) along_k: [bool; 2],
}

impl Product {
    pub(crate) const fn of(elem: Elem, acc: Elem, tile: [u32; 3]) -> Product {
        Product { elems: [elem, elem], acc, tile, along_k: [true, true] }
    }

    pub(crate) fn text(self) -> String {
        let Product { elems: [a, b], acc, tile: [m, n, k], along_k } = self;
        let zero = |elem: Elem| if elem.is_float() { "0.0" } else { "0" };
        let operand = |name: &str, elem: Elem, along_k: bool, (row, rows, extent): (&str, u32, &str), pad: &str| {
            if along_k {
                let load =
                    format!("        %{name}t = load_tile %{name}[%{row}, %k] or %{pad} : tile<{rows}x{k}x{elem}>\n");
                (format!("    %{name}: in tensor<{elem}>[{extent}, K],\n"), load)
            } else {
                let load =
                    format!("        %{name}t = load_tile %{name}[%k, %{row}] or %{pad} : tile<{k}x{rows}x{elem}>\n");
                (format!("    %{name}: in tensor<{elem}>[K, {extent}],\n"), load)
            }
        };
        let (a_param, a_load) = operand("a", a, along_k[0], ("m", m, "M"), "pad");
        let (b_param, b_load) = operand("b", b, along_k[1], ("n", n, "N"), "padb");
        let turn = |name: &str, shape: String| format!("        %{name}p = permute<1, 0> %{name}t : tile<{shape}>\n");
        let (a_turn, a_name) =
            if along_k[0] { (String::new(), "%at") } else { (turn("a", format!("{m}x{k}x{a}")), "%ap") };
        let (b_turn, b_name) =
            if along_k[1] { (turn("b", format!("{k}x{n}x{b}")), "%bp") } else { (String::new(), "%bt") };
        let axis = usize::from(along_k[0]);
        format!(
            "kernel @product(\n{a_param}{b_param}    %c: mut tensor<{acc}>[M, N],\n) grid(cdiv(M, {m}), cdiv(N, {n})) \
             {{\n    %K = dim<{axis}> %a : i32\n    %m = program_id<0> : i32\n    %n = program_id<1> : i32\n    \
             %nothing = const {} : {acc}\n    %acc = splat %nothing : tile<{m}x{n}x{acc}>\n    \
             %zero = const 0 : i32\n    %step = const {k} : i32\n    %whole = div %K, %step : i32\n    \
             %rest = rem %K, %step : i32\n    %more = gt %rest, %zero : bool\n    %last = cast %more : i32\n    \
             %steps = add %whole, %last : i32\n    %one = const 1 : i32\n    \
             %sum = for %k = %zero to %steps step %one pipelined carry(%from = %acc) : tile<{m}x{n}x{acc}> {{\n        \
             %pad = const {} : {a}\n        %padb = const {} : {b}\n{a_load}{b_load}{a_turn}{b_turn}        \
             %next = mma {a_name}, {b_name}, %from : tile<{m}x{n}x{acc}>\n        continue %next\n    }}\n    \
             store_tile %c[%m, %n], %sum\n    return\n}}\n",
            zero(acc),
            zero(a),
            zero(b),
        )
    }

    pub(crate) fn kernel(self) -> Verified {
        let text = self.text();
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}")).remove(0);
        verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
    }

    /// A, B and C for a problem of these extents.
    pub(crate) fn tensors(self, rng: &mut Rng, [m, n, k]: [u32; 3], aligned: bool) -> Vec<Option<Tensor>> {
        let order = |along_k: bool, rows: u32| if along_k { [rows, k] } else { [k, rows] };
        let all = [
            (self.elems[0], order(self.along_k[0], m)),
            (self.elems[1], order(self.along_k[1], n)),
            (self.acc, [m, n]),
        ];
        all.into_iter().map(|(elem, extents)| Some(matrix(rng, elem, extents, aligned))).collect()
    }

    /// The product of two tensors, by rows.
    pub(crate) fn reference(self, tensors: &[Option<Tensor>]) -> Vec<f64> {
        let [Some(a), Some(b), Some(c)] = tensors else { panic!("three tensors") };
        let (m, n) = (i64::from(c.extents[0]), i64::from(c.extents[1]));
        let k = i64::from(a.extents[usize::from(self.along_k[0])]);
        let at = |along_k: bool, row: i64, k: i64| if along_k { [row, k] } else { [k, row] };
        let mut all = Vec::new();
        for row in 0..m {
            for column in 0..n {
                let sum =
                    (0..k).map(|k| value(a, at(self.along_k[0], row, k)) * value(b, at(self.along_k[1], column, k)));
                all.push(sum.sum());
            }
        }
        all
    }
}

/// A matrix whose elements are eighths from -4 to 4, or bytes. The rows of aligned ones have whole vectors of 16 bytes.
fn matrix(rng: &mut Rng, elem: Elem, extents: [u32; 2], aligned: bool) -> Tensor {
    let size = elem.bits() / 8;
    assert!(!aligned || extents[1].is_multiple_of(16 / size));
    let pitch = if aligned { extents[1].next_multiple_of(16 / size) } else { extents[1] + rng.below(3) };
    let count = (extents[0] * pitch) as usize;
    let mut bytes = Vec::with_capacity(count * size as usize);
    for _ in 0..count {
        let x = f64::from(rng.below(65)) / 8.0 - 4.0;
        let bits = match elem {
            Elem::F64 => x.to_bits(),
            Elem::F32 | Elem::Tf32 => u64::from((x as f32).to_bits()),
            Elem::F16 => num::f16_from_f64(x).into(),
            Elem::Bf16 => num::bf16_from_f64(x).into(),
            Elem::E4m3 => num::e4m3_from_f64(x).into(),
            Elem::E5m2 => num::e5m2_from_f64(x).into(),
            _ => rng.word(),
        };
        bytes.extend(&bits.to_le_bytes()[..size as usize]);
    }
    Tensor { elem, extents: extents.to_vec(), strides: vec![pitch, 1], bytes, skip: 0 }
}

/// The value of an element.
pub(super) fn value(tensor: &Tensor, at: [i64; 2]) -> f64 {
    let place = tensor.place(&at).expect("an element");
    let size = (tensor.elem.bits() / 8) as usize;
    let bits = tensor.bytes[place..place + size].iter().rev().fold(0u64, |all, b| all << 8 | u64::from(*b));
    match tensor.elem {
        Elem::F64 => f64::from_bits(bits),
        Elem::F32 | Elem::Tf32 => f32::from_bits(bits as u32).into(),
        Elem::F16 => num::f16_to_f64(bits as u16),
        Elem::Bf16 => num::bf16_to_f64(bits as u16),
        Elem::E4m3 => num::e4m3_to_f64(bits as u8),
        Elem::E5m2 => num::e5m2_to_f64(bits as u8),
        Elem::I8 => (bits as u8).cast_signed().into(),
        Elem::I32 => (bits as u32).cast_signed().into(),
        elem => panic!("{elem}"),
    }
}

/// The matrix instructions that a function has, with how many.
fn instructions(func: &Func) -> Vec<([u32; 3], Elem)> {
    let mut all = Vec::new();
    func.walk(&mut |_, op| {
        if let OpKind::Mma(atom) = &op.kind {
            all.push(([atom.m, atom.n, atom.k], atom.a));
        }
    });
    all.sort_unstable();
    all.dedup();
    all
}

/// Runs a product, with two extents of ragged edges, and compares with its value and with its lanes.
pub(crate) fn check(product: Product, stages: &Stages, aligned: bool, seed: u64, problem: [u32; 3]) {
    let ready = Ready::new(&stages.lanes).unwrap_or_else(|e| panic!("{product:?}: {e}"));
    let mut rng = Rng::new(seed);
    let tensors = product.tensors(&mut rng, problem, aligned);
    let [m, n, _] = product.tile;
    // Programs may be numbered in groups of rows.
    let grid = grid_of(&stages.rings, &tensors).unwrap_or_else(|| panic!("{product:?}: a grid"));
    assert_eq!(grid.iter().product::<u32>(), problem[0].div_ceil(m) * problem[1].div_ceil(n), "{product:?}");
    let launch = Launch { grid, tensors: &tensors, scalar: &|_| 0 };
    let found = launch.emulated(&stages.lanes, &ready, seed as usize).unwrap_or_else(|e| panic!("{product:?}: {e}"));
    let c = tensors[2].as_ref().expect("a tensor");
    let result = Tensor { bytes: found[2].clone(), ..c.clone() };
    for (i, wanted) in product.reference(&tensors).into_iter().enumerate() {
        let at = [i as i64 / i64::from(problem[1]), i as i64 % i64::from(problem[1])];
        let found = value(&result, at);
        assert!(found == wanted, "{product:?} of {problem:?}, aligned {aligned}: {at:?} is {found}, not {wanted}");
    }
    let wanted = launch.evaluated(&stages.lanes).unwrap_or_else(|e| panic!("{product:?}: {e}"));
    assert_eq!(launch.difference(&found, &wanted), None, "{product:?}");
}

/// Element types, with the instruction of 16×16 elements that multiplies them.
const TYPES: [(Elem, Elem, u32, Elem); 8] = [
    (Elem::F16, Elem::F32, 16, Elem::F16),
    (Elem::Bf16, Elem::F32, 16, Elem::Bf16),
    (Elem::I8, Elem::I32, 32, Elem::I8),
    (Elem::F32, Elem::F32, 4, Elem::F32),
    (Elem::Tf32, Elem::F32, 8, Elem::Tf32),
    (Elem::F64, Elem::F64, 4, Elem::F64),
    (Elem::E4m3, Elem::F32, 16, Elem::F16),
    (Elem::E5m2, Elem::F32, 16, Elem::F16),
];

/// Extents of tiles, of which some are no multiples of an instruction's.
const TILES: [[u32; 3]; 6] = [[32, 32, 32], [64, 64, 64], [16, 16, 16], [48, 32, 32], [32, 80, 64], [24, 40, 16]];

#[test]
fn products_of_all_types() {
    let mut all = Vec::new();
    for (number, (elem, acc, k, by)) in TYPES.into_iter().enumerate() {
        for (other, tile) in TILES.into_iter().enumerate() {
            let orders = [[true, true], [true, false], [false, true], [false, false]];
            let along_k = orders[(number + other) % 4];
            all.push((Product { along_k, ..Product::of(elem, acc, tile) }, (k, by)));
        }
    }
    for (seed, (product, (k, by))) in test_depth::sample(all, 8).into_iter().enumerate() {
        let kernel = product.kernel();
        for aligned in [true, false] {
            let stages = stages(&kernel, machine(), aligned, None).unwrap_or_else(|e| panic!("{product:?}: {e}"));
            // Of 24 × 40 × 16 bytes, the large instruction computes less padding.
            let large = (product.elems[0], product.tile) == (Elem::I8, [24, 40, 16]);
            let shape = if large { [32, 32, 16] } else { [16, 16, k] };
            assert_eq!(instructions(&stages.lanes), [(shape, by)], "{product:?}");
            let [m, n, k] = product.tile;
            // Rows of aligned tensors have whole vectors of 16 bytes.
            let more = if aligned { 16 } else { 1 };
            let (round, ragged) = ([m, n, k], [m + m / 2 + more, n + 3 * more, 2 * k + k / 2 + more]);
            let round = if aligned { round.map(|n| n.next_multiple_of(16)) } else { round };
            let ragged = if aligned { ragged.map(|n| n.next_multiple_of(16)) } else { ragged };
            for (i, problem) in [round, ragged].into_iter().enumerate() {
                check(product, &stages, aligned, (seed + i) as u64, problem);
            }
        }
    }
}

/// The machine with other preferences among its matrix instructions.
struct Preferring(u32);

impl Backend for Preferring {
    fn target(&self) -> Target {
        let mut target = machine().target();
        target.atoms.retain(|atom| atom.mma.m == self.0);
        target
    }

    fn generates_code(&self) -> bool {
        true
    }

    fn emit(&self, func: &Func, options: Option<(&str, u32)>) -> Result<Code, LowerError> {
        Machine::from_name("gfx942").expect("it is a target").emit(func, options)
    }
}

/// Instructions of 32×32 elements, which are not the preferred ones.
#[test]
fn products_by_large_instructions() {
    let all = [
        (Elem::F16, Elem::F32, 8),
        (Elem::Bf16, Elem::F32, 8),
        (Elem::I8, Elem::I32, 16),
        (Elem::F32, Elem::F32, 2),
        (Elem::Tf32, Elem::F32, 4),
    ];
    for (seed, (elem, acc, k)) in all.into_iter().enumerate() {
        let product = Product::of(elem, acc, if elem == Elem::Bf16 { [64, 64, 16] } else { [64, 32, 64] });
        let kernel = product.kernel();
        let stages = stages(&kernel, &Preferring(32), true, None).unwrap_or_else(|e| panic!("{product:?}: {e}"));
        assert_eq!(instructions(&stages.lanes), [([32, 32, k], elem)]);
        check(product, &stages, true, seed as u64, [70, 40, 80]);
    }
}

/// One to eight waves share a tile; those that are too many compute the same.
#[test]
fn products_by_one_to_eight_waves() {
    let product = Product::of(Elem::F16, Elem::F32, [32, 64, 32]);
    let kernel = product.kernel();
    let own = stages(&kernel, machine(), true, None).unwrap_or_else(|e| panic!("{e}"));
    for (seed, warps) in [1, 2, 4, 8].into_iter().enumerate() {
        let schedule = titan_core::driver::Schedule { warps: Some(warps), ..own.schedule.clone() };
        let stages = follow(&kernel, machine(), &schedule).unwrap_or_else(|e| panic!("{warps}: {e}"));
        assert_eq!(stages.lanes.threads, 64 * warps);
        check(product, &stages, true, seed as u64, [33, 72, 40]);
    }
}

/// The device deals programs to 8 dies in turn; those of a die compute adjacent tiles, also where their number is no multiple of 8.
#[test]
fn dies_compute_adjacent_tiles() {
    let product = Product::of(Elem::F16, Elem::F32, [32, 32, 32]);
    let kernel = product.kernel();
    let asks = |stages: &Stages| stages.lanes.ops.iter().any(|op| op.kind == OpKind::NumPrograms(0));
    let own = stages(&kernel, machine(), true, None).unwrap_or_else(|e| panic!("{e}"));
    assert!(own.schedule.walk.dies == Some(8) && asks(&own), "{}", own.schedule);
    assert!(own.schedule.to_string().contains("adjacent tiles on each of 8 dies"), "{}", own.schedule);
    for (seed, problem) in [[11 * 32, 32, 64], [3 * 32, 4 * 32, 64], [5 * 32, 5 * 32, 32]].into_iter().enumerate() {
        check(product, &own, true, seed as u64, problem);
    }
    // Without groups of rows, programs keep their place.
    let declared = stages(&kernel, machine(), false, None).unwrap_or_else(|e| panic!("{e}"));
    assert!(declared.schedule.walk.dies.is_none() && !asks(&declared), "{}", declared.schedule);
    // One die costs nothing.
    let mut schedule = own.schedule.clone();
    schedule.walk.dies = None;
    let alone = follow(&kernel, machine(), &schedule).unwrap_or_else(|e| panic!("{e}"));
    assert!(!asks(&alone));
    check(product, &alone, true, 3, [3 * 32, 4 * 32, 64]);
}

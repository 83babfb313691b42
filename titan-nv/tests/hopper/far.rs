//! Tensors with extents near the greatest ones, of which only the last rows or columns are in memory, and coordinates of tiles outside of
//! them, before and behind: bulk copies bring what is there, and zeros. Tensor maps have at most 2³⁰ elements along an axis; with more, up to
//! 2³¹ - 1, the code for sm_80 gives the same.

use super::harness::order_of;
use super::lowered::{Gemm, compiled, encode, kernel};
use super::multicast::verified;
use titan_core::driver::{Stages, stages};
use titan_core::ir::{Const, Elem, GridSpec};
use titan_core::launch::abi::{self, GpuArg, MapParam, PartMap};
use titan_core::launch::report;
use titan_nv::Machine;
use titan_nv::emu::{Launch, Memory, Module, Options, Param};
use titan_nv::tma::{TensorMap, Unfit};
use titan_sim::engine::Rng;

/// Where the last row or column of the operand lies.
const END: u64 = 1 << 45;
/// Rows, or columns, that are in memory.
const THERE: usize = 200;
/// Rows of the product, its columns, and what it sums over.
const SIZE: [usize; 3] = [70, 24, 40];

/// A product with the tiles of A that begin so many tiles further down and to the right; of A, or of its rows between two bounds.
fn text(part: bool) -> String {
    let gemm = Gemm {
        elems: (Elem::F16, Elem::F16, Elem::F32),
        stored: Elem::F32,
        transposed: [false; 2],
        tile: [64, 32, 32],
        size: SIZE,
    };
    let text = kernel(&gemm);
    let (view, tensor) = match part {
        true => ("%va = slice<0> %a, %lo, %hi : tensor<f16, 2>\n", "%va"),
        false => ("", "%a"),
    };
    let changed = text
        .replace("tensor<f16>[M, K], %b", "tensor<f16>[R, L], %b")
        .replace("tensor<f32>[M, N])", "tensor<f32>[M, N], %down: i32, %right: i32, %lo: i32, %hi: i32)")
        .replace("%K = dim<1> %a", "%K = dim<1> %b")
        .replace(
            "%ap = load_tile %a[%m, %k]",
            &format!("{view}%x0 = add %m, %down : i32\n%x1 = add %k, %right : i32\n%ap = load_tile {tensor}[%x0, %x1]"),
        );
    assert!(changed.contains("[R, L]") && changed.contains("%right: i32") && changed.contains("[%x0, %x1]"));
    changed
}

/// The operand: extents, of which the last ones along an axis are in memory.
#[derive(Clone, Copy, Debug)]
struct Far {
    extents: [i64; 2],
    axis: usize,
    /// The bounds of the rows of A, if they are a part of it.
    part: [i32; 2],
}

/// The whole tensor.
const ALL: [i32; 2] = [0, i32::MAX];

/// Runs the product with tiles of A from these on; the result is exact.
fn run(made: &Stages, far: Far, first: [i32; 2], options: &Options) -> Result<(), String> {
    let ([m, n, k], mut memory, mut rng) = (SIZE, Memory::new(), Rng::new(9));
    let [rows, columns] = far.extents;
    let there = [0, 1].map(|axis| if axis == far.axis { THERE as i64 } else { far.extents[axis] });
    // Rows are multiples of 16 bytes apart; the ones that are in memory end at one place, or lie one after the other.
    let pitch = (columns + 7) / 8 * 8;
    let mut value = |at: u64, count: i64| -> Result<Vec<i32>, String> {
        let values: Vec<i32> = (0..count).map(|_| (rng.next_u64() >> 61) as i32 - 3).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|x| encode(Elem::F16, *x)).collect();
        let ptr = memory.alloc_at("a row", at, bytes.len()).ok_or("the memory is taken")?;
        memory.write(ptr, &bytes).map_err(|e| e.to_string())?;
        Ok(values)
    };
    let mut a = Vec::new();
    for row in 0..there[0] {
        let begins = END.wrapping_add_signed(2 * ((row - there[0]) * pitch + columns - there[1]));
        a.push(value(begins, there[1])?);
    }
    let b: Vec<Vec<i32>> = (0..n).map(|i| value(END + 4096 + 80 * i as u64, k as i64)).collect::<Result<_, _>>()?;
    let address = END.wrapping_add_signed(-2 * rows * pitch);
    let c = memory.upload("c", &vec![0xee; m * n * 4]);
    let told = memory.upload("report", &vec![0; 4 * (report::RECORDS + 64)]);
    let tensor = |address, extents: [i64; 2], pitch| GpuArg::Tensor {
        address,
        extents: extents.iter().map(|n| i32::try_from(*n).expect("an extent")).collect(),
        strides: vec![pitch, 1],
    };
    let args = [
        tensor(address, far.extents, pitch),
        tensor(END + 4096, [n as i64, k as i64], 40),
        tensor(c.address(), [m as i64, n as i64], n as i64),
        GpuArg::Scalar(Const::Int(Elem::I32, first[0].into())),
        GpuArg::Scalar(Const::Int(Elem::I32, first[1].into())),
        GpuArg::Scalar(Const::Int(Elem::I32, far.part[0].into())),
        GpuArg::Scalar(Const::Int(Elem::I32, far.part[1].into())),
    ];
    let lanes = &made.lanes;
    let block = abi::pack(&lanes.slots, &args, told.address());
    let (at, _) = abi::offsets(&lanes.slots);
    let words = lanes.slots.iter().zip(at).map(|(slot, at)| Param::Bytes(block[at..at + slot.bytes()].to_vec()));
    let mut params: Vec<Param> = words.collect();
    for map in &lanes.maps {
        let map = TensorMap::of_argument(map, &args[map.param as usize]).map_err(|e| e.to_string())?;
        params.push(Param::Bytes(map.to_bytes().to_vec()));
    }
    let grid = if made.schedule.walk.is_persistent() {
        [2 * lanes.cluster.max(1), 1, 1]
    } else {
        [m.div_ceil(64) as u32, n.div_ceil(32) as u32, 1]
    };
    // Programs that are numbered in groups of rows have one number.
    let flat = matches!(&made.rings.sig.grid, GridSpec::Extents(axes) if axes.len() == 1);
    let grid = if flat { [grid.iter().product(), 1, 1] } else { grid };
    let launch = Launch {
        grid,
        block: [lanes.threads, 1, 1],
        dynamic_shared: lanes.shared_bytes,
        cluster: None,
        params: &params,
    };
    let ptx = String::from_utf8_lossy(&made.code.payload);
    let entry = made.code.config.iter().find(|(name, _)| name == "entry").map_or("", |(_, entry)| entry);
    let module = Module::parse(&ptx).map_err(|e| e.to_string())?;
    module.entry(entry).and_then(|k| k.run(&launch, &mut memory, options)).map_err(|e| e.to_string())?;
    let found = memory.read(c, m * n * 4).map_err(|e| e.to_string())?;
    // An element of the part of A, zero outside of it. Bounds are cut to the tensor.
    let [lo, hi] = [i64::from(far.part[0]).max(0), i64::from(far.part[1]).min(rows)];
    let of_a = |row: i64, column: i64| {
        let at = [lo + row - (rows - there[0]), column - (columns - there[1])];
        let inside = (0..hi - lo).contains(&row) && (0..columns).contains(&column);
        if inside { a[at[0] as usize][at[1] as usize] } else { 0 }
    };
    // Coordinates of tiles wrap as `i32`, and a tile that begins beyond them does not exist.
    let from = |first: i32, tile: usize, size: i64| i64::from(first.wrapping_add(tile as i32)) * size;
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let down = from(first[0], row / 64, 64) + row as i64 % 64;
        let dot: i32 = (0..k).map(|i| of_a(down, from(first[1], i / 32, 32) + i as i64 % 32) * b[column][i]).sum();
        let place = (row * n + column) * 4;
        if found[place..place + 4] != (dot as f32).to_le_bytes() {
            return Err(format!("row {row}, column {column}: {:?} for {dot}", &found[place..place + 4]));
        }
    }
    Ok(())
}

/// Tiles around the end of an axis, and far outside of it. The second one of a product is the next one, also where that is beyond `i32`.
fn tiles(extent: i64, size: i64) -> Vec<i32> {
    let last = i32::try_from((extent - 1) / size).expect("a tile");
    vec![last, last - 1, last + 1, last + 2, -2, -3, i32::MAX / size as i32, i32::MAX, i32::MIN, i32::MIN / 64]
}

fn all_are_exact(made: &Stages, extents: &[i64]) {
    let mut cases = Vec::new();
    for extent in extents {
        for axis in [0, 1] {
            let far = Far { extents: if axis == 0 { [*extent, 40] } else { [3, *extent] }, axis, part: ALL };
            for (nth, tile) in tiles(*extent, [64, 32][axis]).into_iter().enumerate() {
                let first = if axis == 0 { [tile, 0] } else { [0, tile] };
                cases.push((cases.len(), far, nth, first));
            }
        }
    }
    let traits = |(number, far, nth, _): &(usize, Far, usize, _)| {
        vec![format!("{far:?}"), format!("tile {nth} along {}", far.axis), format!("order {}", number % 4)]
    };
    for (number, far, _, first) in test_depth::covering(cases, traits) {
        let options = &order_of(number);
        run(made, far, first, options).unwrap_or_else(|e| panic!("{far:?}, from tile {first:?}: {e}"));
    }
}

const MOST: i64 = MapParam::MOST_EXTENT as i64;

#[test]
fn bulk_copies_up_to_the_greatest_extent() {
    let made = compiled(&text(false));
    assert!(made.lanes.maps.iter().any(|map| map.param == 0), "A has no tensor map");
    all_are_exact(&made, &[MOST - 37, MOST]);
}

/// Parts of tensors with up to 2³⁰ rows: at both ends of them, empty ones, and bounds that are no rows of the tensor.
#[test]
fn bulk_copies_of_parts_up_to_the_greatest_extent() {
    let made = compiled(&text(true));
    let of_parts = made.lanes.maps.iter().find(|map| map.param == 0).expect("A has a tensor map");
    assert_eq!(of_parts.part, PartMap::Along(0));
    let mut cases = Vec::new();
    for rows in [THERE as i32, MOST as i32 - 37, MOST as i32] {
        let inside = |n: i32| rows - n;
        let mut parts = vec![
            [inside(150), inside(20)],
            [inside(200), inside(199)],
            [inside(64), rows],
            [inside(100), i32::MAX],
            [inside(30), inside(30)],
            [inside(10), inside(60)],
            [rows, rows],
            [rows + 5, rows + 9],
            [i32::MAX, i32::MAX],
            [i32::MAX, i32::MIN],
            [0, 0],
            [i32::MIN, 0],
        ];
        if rows == THERE as i32 {
            parts.extend([[i32::MIN, 70], [-5, 1], [0, 65]]);
        }
        for (which, part) in parts.into_iter().enumerate() {
            let [lo, hi] = [i64::from(part[0]).max(0), i64::from(part[1]).min(rows.into())];
            for (nth, tile) in tiles((hi - lo).max(1), 64).into_iter().enumerate() {
                let far = Far { extents: [rows.into(), 40], axis: 0, part };
                cases.push((cases.len(), far, which, nth, tile));
            }
        }
    }
    let traits = |(number, far, which, nth, _): &(usize, Far, usize, usize, _)| {
        vec![
            format!("part {which}, order {}", number % 2),
            format!("tile {nth} of {} rows", far.extents[0]),
            format!("order {}", number % 4),
        ]
    };
    for (number, far, _, _, tile) in test_depth::covering(cases, traits) {
        let options = &order_of(number);
        run(&made, far, [tile, 0], options).unwrap_or_else(|e| panic!("{far:?}, from tile {tile}: {e}"));
    }
}

#[test]
fn greater_extents_have_no_map_and_other_code() {
    let made = compiled(&text(false));
    let map = made.lanes.maps.iter().find(|map| map.param == 0).expect("A has a tensor map");
    for extents in [[MOST + 1, 40], [i64::from(i32::MAX), 40], [3, MOST + 8], [3, i64::from(i32::MAX)]] {
        let strides = vec![(extents[1] + 7) / 8 * 8, 1];
        let extents = extents.map(|n| i32::try_from(n).expect("an extent")).to_vec();
        let refused = TensorMap::of_argument(map, &GpuArg::Tensor { address: END, extents, strides });
        assert!(matches!(refused, Err(Unfit::Coordinates { .. })), "{refused:?}");
    }
    // The code for tensors whose offsets may take more than 32 bits.
    let machine = Machine::from_name("sm_80").expect("it is known");
    let made = stages(&verified(&text(false)), machine, false, None).unwrap_or_else(|e| panic!("{}", e.message));
    all_are_exact(&made, &[MOST + 1, i64::from(i32::MAX) - 70, i64::from(i32::MAX)]);
}

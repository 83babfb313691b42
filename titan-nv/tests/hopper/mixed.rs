//! Stages that bulk copies and threads fill together: products of which one operand is a box and the other one is gathered by row, a view
//! with fewer columns than its tensor, or padded with something else than zero. Exact on all completion orders.
//!
//! Numbers are small and whole, so that every result is exact.

use super::harness::orders_of;
use super::lowered::{assembles, compiled, encode};
use std::fmt::Write as _;
use titan_core::driver::{Roles, Stages};
use titan_core::ir::{Const, Elem};
use titan_core::launch::abi::{self, GpuArg};
use titan_core::launch::report;
use titan_nv::emu::{Completion, DevicePtr, Launch, Memory, Module, Options, Param};
use titan_nv::tma::TensorMap;
use titan_sim::engine::Rng;

/// How an operand is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// As tiles that tensor maps describe.
    Box,
    /// By rows, which another tensor names.
    Gathered,
    /// As a view of a tensor with more rows, which begins at this one.
    Rows(usize),
    /// As a view of a tensor with more columns, which begins at this one.
    Columns(usize),
    /// With ones outside of the tensor.
    Ones,
}

/// A product `C = A · Bᵀ`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) elem: Elem,
    /// A and B.
    pub(super) how: [How; 2],
    /// M, N, K of a tile.
    pub(super) tile: [u32; 3],
    pub(super) slots: u32,
    /// Warps of the role that copies.
    pub(super) copying: u32,
    /// M, N, K of the tensors.
    pub(super) size: [usize; 3],
    /// The distance between rows of A, B and C in elements; by default they lie one after the other.
    pub(super) pitch: Option<usize>,
}

pub(super) const PLAIN: Case = Case {
    elem: Elem::F16,
    how: [How::Gathered, How::Box],
    tile: [64, 32, 32],
    slots: 3,
    copying: 1,
    size: [64, 64, 64],
    pitch: None,
};

/// Rows or columns of a tensor behind its view.
const MORE: usize = 24;

/// The number of tiles along an axis.
fn tiles(s: &mut String, name: &str, of: &str, tile: u32) {
    let _ = write!(
        s,
        "%b{name} = const {tile} : i32\n%q{name} = div {of}, %b{name} : i32\n%r{name} = rem {of}, %b{name} : i32\n\
         %s{name} = ne %r{name}, %zero : bool\n%x{name} = cast %s{name} : i32\n%e{name} = add %q{name}, %x{name} : i32\n"
    );
}

/// The parameters, and the numbers that all roles use.
fn head(case: &Case, rest: &str) -> String {
    let Case { elem, tile: [bm, bn, bk], .. } = case;
    let mut s = format!(
        "kernel @mixed(%a: in tensor<{elem}>[T, KA], %b: in tensor<{elem}>[U, KB], %ia: in tensor<i32>[M], \
         %ib: in tensor<i32>[N], %c: mut tensor<f32>[M, N], %K: i32) {rest} {{\n%zero = const 0 : i32\n%one = const 1 : i32\n\
         %dm = dim<0> %c : i32\n%dn = dim<1> %c : i32\n"
    );
    for (name, of, tile) in [("m", "%dm", bm), ("n", "%dn", bn), ("k", "%K", bk)] {
        tiles(&mut s, name, of, *tile);
    }
    for ((operand, how), rows) in ["a", "b"].into_iter().zip(case.how).zip(["%dm", "%dn"]) {
        let (axis, first, extent) = match how {
            How::Rows(first) => (0, first, rows),
            How::Columns(first) => (1, first, "%K"),
            How::Box | How::Gathered | How::Ones => continue,
        };
        // The ends of columns are quotients, which no map that the device makes ahead can have, so that threads copy.
        let by = if axis == 1 { "div" } else { "mul" };
        let _ = write!(
            s,
            "%f{operand} = const {first} : i32\n%until{operand} = add %f{operand}, {extent} : i32\n\
             %l{operand} = {by} %until{operand}, %one : i32\n%v{operand} = slice<{axis}> %{operand}, %f{operand}, %l{operand} : tensor<{elem}, 2>\n"
        );
    }
    s
}

/// A tile of an operand at a step, in shared memory: loaded, or named as the source of a copy. `at`: the coordinate of the tile.
fn named(case: &Case, i: usize, at: &str, step: &str, load: bool) -> String {
    let Case { elem, tile: [bm, bn, bk], .. } = case;
    let (operand, rows) = [("a", bm), ("b", bn)][i];
    let ty = if load { format!("tile<{rows}x{bk}x{elem}>") } else { format!("source<{rows}x{bk}x{elem}>") };
    let tile = if load { "load_tile" } else { "ttg.source_tile" };
    let pad = if case.how[i] == How::Ones { 1.0 } else { 0.0 };
    let mut s = format!("%p{operand} = const {pad:?} : {elem}\n");
    let _ = match case.how[i] {
        How::Box | How::Ones => writeln!(s, "%t{operand} = {tile} %{operand}[{at}, {step}] or %p{operand} : {ty}"),
        How::Rows(_) | How::Columns(_) => {
            writeln!(s, "%t{operand} = {tile} %v{operand}[{at}, {step}] or %p{operand} : {ty}")
        }
        How::Gathered => {
            let gather = if load { "gather_rows" } else { "ttg.source_rows" };
            writeln!(
                s,
                "%o{operand} = mul {step}, %bk : i32\n%t{operand} = {gather} %{operand}[%g{operand}, %o{operand}] or %p{operand} : {ty}"
            )
        }
    };
    s
}

/// The indices of the rows of a tile.
fn indices(case: &Case, i: usize, at: &str) -> String {
    let (operand, rows) = [("a", case.tile[0]), ("b", case.tile[1])][i];
    if case.how[i] != How::Gathered {
        return String::new();
    }
    format!(
        "%none{operand} = const -1 : i32\n%g{operand} = load_tile %i{operand}[{at}] or %none{operand} : tile<{rows}xi32>\n"
    )
}

/// A persistent product: one role copies, another one multiplies.
pub(super) fn with_roles(case: &Case) -> String {
    let Case { elem, tile: [bm, bn, bk], slots, copying, .. } = case;
    let bytes = (bm + bn) * bk * elem.bits() / 8;
    let rest = format!(
        "grid persistent pipe({slots}, \"ring\", tile<{bm}x{bk}x{elem}>, tile<{bn}x{bk}x{elem}>) role(producer, {copying}) role(consumer, 4)"
    );
    let mut s = head(case, &rest);
    let (ia, ib) = (indices(case, 0, "%m"), indices(case, 1, "%n"));
    let (ta, tb) = (named(case, 0, "%m", "%t", false), named(case, 1, "%n", "%t", false));
    let _ = write!(
        s,
        "%all = mul %em, %en : i32\nttg.roles producer {{\nfor %i = %zero to %all step %one distributed {{\n\
         %m, %n = unflatten %i, %em, %en : i32, i32\n{ia}{ib}for %t = %zero to %ek step %one {{\n\
         %slot = ttg.stage.acquire<0> : slot<0>\n{ta}{tb}\
         ttg.stage.async_produce %slot, %ta, %tb {{bytes = {bytes}, proxy = generic}}\ncontinue\n}}\ncontinue\n}}\n\
         ttg.pipeline.finalize\nyield\n}} consumer {{\nfor %j = %zero to %all step %one distributed {{\n\
         %mm, %nn = unflatten %j, %em, %en : i32, i32\n%z = const 0.0 : f32\n%s = splat %z : tile<{bm}x{bn}xf32>\n\
         %acc = ttg.acc.start<1> %s : acc<1, {bm}x{bn}xf32>\n\
         %out = for %l = %zero to %ek step %one carry(%x = %acc) : acc<1, {bm}x{bn}xf32> {{\n\
         %ready = ttg.stage.ready<0> : ready<0>\n%st = ttg.stage.wait_ready %ready : stage<0>\n\
         %p = ttg.stage.read_perm %st : rperm<0>\n%sa = ttg.stage.view<0> %p : smem<{bm}x{bk}x{elem}>\n\
         %sb = ttg.stage.view<1> %p : smem<{bn}x{bk}x{elem}>\n%ub = permute<1, 0> %sb : smem<{bk}x{bn}x{elem}>\n\
         %y = ttg.acc.mma %x, %p, %sa, %ub : acc<1, {bm}x{bn}xf32>\ncontinue %y\n}}\n\
         %f = ttg.acc.finish %out : tile<{bm}x{bn}xf32>\nstore_tile %c[%mm, %nn], %f\ncontinue\n}}\n\
         ttg.pipeline.finalize\nyield\n}}\nreturn\n}}\n"
    );
    s
}

/// The same without roles: a loop over `pipelined(..)`.
pub(super) fn plain(case: &Case) -> String {
    let Case { elem, tile: [bm, bn, bk], .. } = case;
    let mut s = head(case, &format!("grid(cdiv(M, {bm}), cdiv(N, {bn}))"));
    let (ia, ib) = (indices(case, 0, "%m"), indices(case, 1, "%n"));
    let (ta, tb) = (named(case, 0, "%m", "%t", true), named(case, 1, "%n", "%t", true));
    let _ = write!(
        s,
        "%m = program_id<0> : i32\n%n = program_id<1> : i32\n%z = const 0.0 : f32\n%s = splat %z : tile<{bm}x{bn}xf32>\n{ia}{ib}\
         %out = for %t = %zero to %ek step %one pipelined carry(%x = %s) : tile<{bm}x{bn}xf32> {{\n{ta}{tb}\
         %ub = permute<1, 0> %tb : tile<{bk}x{bn}x{elem}>\n%y = mma %ta, %ub, %x : tile<{bm}x{bn}xf32>\ncontinue %y\n}}\n\
         store_tile %c[%m, %n], %out\nreturn\n}}\n"
    );
    s
}

/// An operand in memory, and the rows of its product: `None` is a row of zeros.
struct Operand {
    values: Vec<Vec<i32>>,
    rows: Vec<Option<usize>>,
    tensor: GpuArg,
    index: GpuArg,
}

/// Places rows in memory, so many bytes apart; by default one after the other. Returns the address of the first one, and the distance.
fn place(memory: &mut Memory, name: &str, i: usize, rows: &[Vec<u8>], apart: Option<usize>) -> (u64, usize) {
    let Some(apart) = apart else {
        let mut data = rows.concat();
        data.resize(data.len().max(16), 0);
        return (memory.upload(name, &data).address(), rows[0].len());
    };
    let begins = (1 << 44) + ((i as u64) << 42);
    for (row, data) in rows.iter().enumerate() {
        let at = memory.alloc_at(name, begins + (row * apart) as u64, data.len()).expect("nothing is there");
        memory.write(at, data).expect("it is in memory");
    }
    (begins, apart)
}

fn operand(memory: &mut Memory, case: &Case, i: usize, rng: &mut Rng) -> Operand {
    let (name, n, k) = (["a", "b"][i], case.size[i], case.size[2]);
    let ([up, first], columns, there) = match case.how[i] {
        How::Rows(up) => ([up, 0], k, up + n + MORE),
        How::Columns(first) => ([0, first], first + k + MORE, n),
        How::Gathered => ([0; 2], k, 2 * n / 3 + 1),
        How::Box | How::Ones => ([0; 2], k, n),
    };
    let bytes = case.elem.bits() as usize / 8;
    let pitch = (columns * bytes).next_multiple_of(16) / bytes;
    let (mut values, mut data) = (Vec::new(), Vec::new());
    for _ in 0..there {
        // What lies between rows is no zero.
        let row: Vec<i32> = (0..pitch).map(|_| (rng.next_u64() >> 61) as i32 - 3).collect();
        data.push(row.iter().flat_map(|x| encode(case.elem, *x)).collect());
        values.push(row[first..first + k].to_vec());
    }
    let (address, pitch) = place(memory, name, i, &data, case.pitch.map(|pitch| pitch * bytes));
    let extents = vec![there as i32, columns as i32];
    let tensor = GpuArg::Tensor { address, extents, strides: vec![(pitch / bytes) as i64, 1] };
    let rows: Vec<Option<usize>> = match case.how[i] {
        How::Gathered => {
            (0..n).map(|_| (rng.next_u64() as usize % (there + 2)).checked_sub(1).filter(|r| *r < there)).collect()
        }
        How::Box | How::Rows(_) | How::Columns(_) | How::Ones => (up..up + n).map(Some).collect(),
    };
    // Behind the last row: an index that is not read.
    let number = |row: &Option<usize>| row.map_or(if n % 2 == 0 { -1 } else { there as i32 }, |r| r as i32);
    let mut words: Vec<u8> = rows.iter().flat_map(|row| number(row).to_le_bytes()).collect();
    words.resize(words.len().next_multiple_of(16).max(16), 0x11);
    let index = memory.upload(&format!("rows of {name}"), &words);
    let index = GpuArg::Tensor { address: index.address(), extents: vec![n as i32], strides: vec![1] };
    Operand { values, rows, tensor, index }
}

/// Runs a product with this text; `Err` says where it differs, or why it did not run.
pub(super) fn run_text(case: &Case, made: &Stages, text: &str, options: &Options, seed: u64) -> Result<(), String> {
    let [m, n, k] = case.size;
    let mut rng = Rng::new(seed);
    let mut memory = Memory::new();
    let [a, b] = [0, 1].map(|i| operand(&mut memory, case, i, &mut rng));
    let rows = vec![vec![0xee; n.next_multiple_of(4) * 4]; m];
    let (c, apart) = place(&mut memory, "c", 2, &rows, case.pitch.map(|pitch| pitch * 4));
    let extents = vec![m as i32, n as i32];
    let product = GpuArg::Tensor { address: c, extents, strides: vec![(apart / 4) as i64, 1] };
    let told = memory.upload("report", &vec![0; 4 * (report::RECORDS + 64)]);
    let depth = GpuArg::Scalar(Const::Int(Elem::I32, k as i64));
    let args = [a.tensor, b.tensor, a.index, b.index, product, depth];
    let lanes = &made.lanes;
    let block = abi::pack(&lanes.slots, &args, told.address());
    let (at, _) = abi::offsets(&lanes.slots);
    let words = lanes.slots.iter().zip(at).map(|(slot, at)| Param::Bytes(block[at..at + slot.bytes()].to_vec()));
    let mut params: Vec<Param> = words.collect();
    for map in &lanes.maps {
        let map = TensorMap::of_argument(map, &args[map.param as usize]).map_err(|e| e.to_string())?;
        params.push(Param::Bytes(map.to_bytes().to_vec()));
    }
    let [bm, bn, _] = case.tile.map(|n| n as usize);
    let across = [m.div_ceil(bm) as u32, n.div_ceil(bn) as u32, 1];
    let launch = Launch {
        grid: if made.schedule.walk.is_persistent()
            || made.barriers.roles.len() > 1 && made.schedule.roles == Roles::Kept
        {
            [2 * lanes.cluster, 1, 1]
        } else {
            across
        },
        block: [lanes.threads, 1, 1],
        dynamic_shared: lanes.shared_bytes,
        cluster: None,
        params: &params,
    };
    let entry = made.code.config.iter().find(|(name, _)| name == "entry").map_or("", |(_, entry)| entry);
    let module = Module::parse(text).map_err(|e| e.to_string())?;
    let kernel = module.entry(entry).map_err(|e| e.to_string())?;
    kernel.run(&launch, &mut memory, options).map_err(|e| e.to_string())?;
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let dot = match (a.rows[row], b.rows[column]) {
            (Some(i), Some(j)) => a.values[i].iter().zip(&b.values[j]).map(|(x, y)| x * y).sum::<i32>(),
            (_, _) => 0,
        };
        let at = DevicePtr::from_address(c + (row * apart + column * 4) as u64);
        let found = memory.read(at, 4).map_err(|e| e.to_string())?;
        if found != (dot as f32).to_le_bytes() {
            return Err(format!("row {row}, column {column}: {found:?} for {dot}"));
        }
    }
    Ok(())
}

pub(super) fn text_of(made: &Stages) -> String {
    String::from_utf8(made.code.payload.clone()).expect("PTX is text")
}

/// The code has both kinds of copies, which arrive at one barrier; `by_stores`: threads load and store.
#[track_caller]
fn is_mixed(made: &Stages, by_stores: bool) {
    let text = text_of(made);
    assert!(text.contains("cp.async.bulk.tensor.2d.shared"), "{text}");
    assert!(text.contains("mbarrier.arrive.expect_tx"), "{text}");
    assert_eq!(text.contains("cp.async.mbarrier.arrive.noinc"), !by_stores, "{text}");
}

const ODD: [How; 3] = [How::Gathered, How::Columns(3), How::Ones];

#[test]
fn one_operand_is_a_box() {
    let mut cases = Vec::new();
    for how in ODD {
        cases.push(Case { how: [how, How::Box], tile: [64, 64, 64], size: [130, 76, 136], ..PLAIN });
        cases.push(Case { how: [How::Box, how], copying: 2, size: [72, 64, 40], ..PLAIN });
        cases.push(Case { how: [how, How::Box], elem: Elem::Bf16, slots: 2, size: [64, 36, 136], ..PLAIN });
    }
    // In the quick depth two of the three for each way to copy.
    let is_meant = |number: usize| test_depth::is_full() || number % 3 != number / 3;
    for (number, case) in cases.iter().enumerate().filter(|(number, _)| is_meant(*number)) {
        let made = compiled(&with_roles(case));
        let by_stores = case.how.iter().any(|how| matches!(how, How::Ones | How::Columns(_)));
        is_mixed(&made, by_stores);
        assembles(&made, "sm_90a", 0);
        for options in orders_of(number) {
            run_text(case, &made, &text_of(&made), &options, number as u64)
                .unwrap_or_else(|e| panic!("{case:?}, {:?}: {e}", options.completion));
        }
    }
}

#[test]
fn steps_fewer_and_more_than_slots() {
    let made = compiled(&with_roles(&PLAIN));
    for k in [8, 32, 40, 96, 104, 264] {
        let case = Case { size: [100, 40, k], ..PLAIN };
        for completion in test_depth::sample([Completion::Late, Completion::Early], 1 + k % 16 / 8) {
            // In the quick depth, the sanitizer watches where the last step is whole.
            let options = Options { completion, sanitize: test_depth::is_full() || k % 32 == 0, ..Options::default() };
            run_text(&case, &made, &text_of(&made), &options, k as u64).unwrap_or_else(|e| panic!("{case:?}: {e}"));
        }
    }
}

#[test]
fn loops_over_pipelined_are_split_and_copy_both_ways() {
    for (number, how) in [How::Columns(5), How::Gathered].into_iter().enumerate() {
        for how in [[how, How::Box], [How::Box, how]] {
            let case = Case { how, size: [70, 72, 104], ..PLAIN };
            let made = compiled(&plain(&case));
            is_mixed(&made, number == 0);
            assembles(&made, "sm_90a", 0);
            for options in orders_of(number + usize::from(how[0] == How::Box)) {
                run_text(&case, &made, &text_of(&made), &options, number as u64)
                    .unwrap_or_else(|e| panic!("{case:?}, {:?}: {e}", options.completion));
            }
        }
    }
}

#[test]
fn rows_far_apart() {
    // The second row of an operand and of the product already begins beyond 2^30 elements, and the last ones far beyond 2^32.
    let hows = [[How::Gathered, How::Box], [How::Box, How::Rows(8)], [How::Box, How::Box]];
    for (number, how) in hows.into_iter().enumerate() {
        let case = Case { how, size: [70, 72, 104], pitch: Some((1 << 30) + 8), ..PLAIN };
        for (roles, made) in [compiled(&plain(&case)), compiled(&with_roles(&case))].into_iter().enumerate() {
            for options in orders_of(2 * number + roles) {
                run_text(&case, &made, &text_of(&made), &options, 5)
                    .unwrap_or_else(|e| panic!("{case:?}, {:?}: {e}", options.completion));
            }
        }
    }
}

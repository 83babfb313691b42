//! Explicit accumulators of which one MMA stays in flight, with operand A in registers: what an MMA reads is written after it is complete, wherever the
//! code that computes the operand is placed.

use super::harness::orders;
use super::lowered::{encode, launch, upload};
use super::placed::scheduled_by;
use titan_core::driver::Stages;
use titan_core::ir::{Elem, Scheduler};
use titan_core::launch::abi::GpuArg;
use titan_nv::emu::{Memory, Options};
use titan_sim::engine::Rng;

/// A product `q0 · v[0] + Σ (q + more) · v[j]` in one loop over `j`, or in a second one around it.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    nested: bool,
    /// The elements of what the loop carries.
    elem: &'static str,
    /// What an iteration computes before the product, of the operand `%p` or `%w`.
    set: &'static str,
    operand: &'static str,
    /// Whether an iteration passes on more by 1 than it got.
    counts: bool,
    /// What is added to q in iteration `[i, j]`.
    more: fn([i32; 2]) -> i32,
}

const CASES: [Case; 8] = [
    // The conversion does not change in the inner loop: its code is placed in front of that.
    Case {
        name: "converted outside",
        nested: true,
        elem: "f32",
        set: "%p = cast %w : tile<128x64xf16>",
        operand: "%p",
        counts: true,
        more: |[i, _]| i,
    },
    Case {
        name: "computed outside",
        nested: true,
        elem: "f16",
        set: "%p = add %w, %ones : tile<128x64xf16>",
        operand: "%p",
        counts: true,
        more: |[i, _]| i + 1,
    },
    Case {
        name: "unchanged in two loops",
        nested: true,
        elem: "f16",
        set: "",
        operand: "%w",
        counts: false,
        more: |_| 0,
    },
    // What is stored is packed to words before the wait.
    Case {
        name: "unchanged and stored",
        nested: false,
        elem: "f16",
        set: "store_tile %g[%m, %n], %w",
        operand: "%w",
        counts: false,
        more: |_| 0,
    },
    Case {
        name: "converted twice",
        nested: false,
        elem: "f32",
        set: "%p1 = cast %w : tile<128x64xf16>\nstore_tile %g[%m, %n], %p1\n%p = cast %w : tile<128x64xf16>",
        operand: "%p",
        counts: true,
        more: |[_, j]| j,
    },
    Case {
        name: "selected from equals",
        nested: false,
        elem: "f16",
        set: "store_tile %g[%m, %n], %w\n%c = gt %w, %none : tile<128x64xbool>\n%p = select %c, %w, %w : tile<128x64xf16>",
        operand: "%p",
        counts: true,
        more: |[_, j]| j,
    },
    // Where the arms of a branch meet, nothing is in flight.
    Case {
        name: "multiplied in a branch",
        nested: false,
        elem: "f16",
        set: BRANCH,
        operand: "",
        counts: true,
        more: |[_, j]| j + j % 2,
    },
    Case { name: "carried", nested: false, elem: "f16", set: "", operand: "%w", counts: true, more: |[_, j]| j },
];

/// The product of odd iterations is of one more.
const BRANCH: &str = "%two3 = const 2 : i32\n%odd = rem %tc, %two3 : i32\n%c = eq %odd, %c1 : bool\n\
    %ready3 = ttg.stage.ready<0> : ready<0>\n%st3 = ttg.stage.wait_ready %ready3 : stage<0>\n\
    %rp3 = ttg.stage.read_perm %st3 : rperm<0>\n%vt3 = ttg.stage.view<0> %rp3 : smem<64x128xf16>\n\
    %y = if %c : acc<1, 128x128xf32> {\n%pa = add %w, %ones : tile<128x64xf16>\n\
    %ya = ttg.acc.mma %x, %rp3, %pa, %vt3 : acc<1, 128x128xf32>\nyield %ya\n} else {\n\
    %yb = ttg.acc.mma %x, %rp3, %w, %vt3 : acc<1, 128x128xf32>\nyield %yb\n}\n";

/// The operations that fill a stage with rows of v.
fn filled(number: &str, at: &str) -> String {
    format!(
        "%slot{number} = ttg.stage.acquire<0> : slot<0>\n%pad{number} = const 0.0 : f16\n\
         %src{number} = ttg.source_tile %v[{at}, %n] or %pad{number} : source<64x128xf16>\n\
         ttg.stage.async_produce %slot{number}, %src{number} {{bytes = 16384, proxy = generic}}\n"
    )
}

/// The operations that wait for a stage.
fn awaited(number: &str) -> String {
    format!(
        "%ready{number} = ttg.stage.ready<0> : ready<0>\n%st{number} = ttg.stage.wait_ready %ready{number} : stage<0>\n\
         %rp{number} = ttg.stage.read_perm %st{number} : rperm<0>\n%vt{number} = ttg.stage.view<0> %rp{number} : smem<64x128xf16>\n"
    )
}

fn kernel(case: &Case) -> String {
    let Case { nested, elem, set, operand, counts, .. } = *case;
    let (opens, ends) = if nested { ("for %i = %z0 to %two step %o1 {\n", "continue\n}\n") } else { ("", "") };
    let produced = format!(
        "{}%two = const 2 : i32\n{opens}for %t = %z0 to %steps step %o1 {{\n{}continue\n}}\n{ends}",
        filled("1", "%z0"),
        filled("2", "%t")
    );
    let first = if elem == "f32" { "%s" } else { "%p0" };
    let next = if counts { format!("%w2 = add %w, %by : tile<128x64x{elem}>\n") } else { String::new() };
    let (passed, tile) = (if counts { "%w2" } else { "%w" }, format!("tile<128x64x{elem}>"));
    let acc = "acc<1, 128x128xf32>";
    let product = if operand.is_empty() {
        set.to_owned()
    } else {
        format!("{set}\n{}%y = ttg.acc.mma %x, %rp3, {operand}, %vt3 : {acc}\n", awaited("3"))
    };
    let consumed = if nested {
        format!(
            "%accl, %wl = for %ic = %c0 to %c2 step %c1 carry(%x0 = %acc1, %w = {first}) : {acc}, {tile} {{\n\
             %in = for %tc = %c0 to %steps step %c1 carry(%x = %x0) : {acc} {{\n{product}continue %y\n}}\n{next}continue %in, {passed}\n}}\n"
        )
    } else {
        format!(
            "%accl, %wl = for %tc = %c0 to %steps step %c1 carry(%x = %acc1, %w = {first}) : {acc}, {tile} {{\n\
             {product}{next}continue %y, {passed}\n}}\n"
        )
    };
    let stored = if set.contains("store_tile") { "" } else { "store_tile %g[%m, %n], %none\n" };
    format!(
        "kernel @kept(%q: in tensor<f16>[R, 64], %k: in tensor<f16>[64, 64], %v: in tensor<f16>[S, C], %o: mut tensor<f32>[R, C], \
         %g: mut tensor<f16>[R, G]) grid(cdiv(R, 128), cdiv(C, 128)) pipe(3, \"ring\", tile<64x128xf16>) role(producer, 1) \
         role(consumer, 8) {{\n%S = dim<0> %v : i32\n%m = program_id<0> : i32\n%n = program_id<1> : i32\n%bk = const 64 : i32\n\
         %steps = div %S, %bk : i32\nttg.roles producer {{\n%z0 = const 0 : i32\n%o1 = const 1 : i32\n{produced}\
         ttg.pipeline.finalize\nyield\n}} consumer {{\n%c0 = const 0 : i32\n%c1 = const 1 : i32\n%c2 = const 2 : i32\n\
         %z = const 0.0 : f32\n%h = const 0.0 : f16\n%hone = const 1.0 : f16\n%u = const 1.0 : {elem}\n\
         %qt = load_tile %q[%m, %c0] or %h : tile<128x64xf16>\n%kt = load_tile %k[%c0, %c0] or %h : tile<64x64xf16>\n\
         %kp = permute<1, 0> %kt : tile<64x64xf16>\n%sum = splat %z : tile<128x64xf32>\n%by = splat %u : {tile}\n\
         %ones = splat %hone : tile<128x64xf16>\n%none = splat %h : tile<128x64xf16>\n%acc0 = splat %z : tile<128x128xf32>\n\
         %s = mma %qt, %kp, %sum : tile<128x64xf32>\n%p0 = cast %s : tile<128x64xf16>\n{}%acc = ttg.acc.start<1> %acc0 : {acc}\n\
         %acc1 = ttg.acc.mma %acc, %rp4, %p0, %vt4 : {acc}\n{consumed}%out = ttg.acc.finish %accl : tile<128x128xf32>\n\
         store_tile %o[%m, %n], %out\n{stored}ttg.pipeline.finalize\nyield\n}}\nreturn\n}}\n",
        awaited("4")
    )
}

/// Runs it on so many rows of q and steps; `Err` says where it differs, or why it did not run.
fn run(case: &Case, made: &Stages, [rows, steps]: [usize; 2], options: &Options) -> Result<(), String> {
    const COLUMNS: usize = 100;
    let (rng, mut memory) = (&mut Rng::new(5), Memory::new());
    let q = upload(&mut memory, "q", Elem::F16, [rows, 64], rng);
    // The unit matrix.
    let ones: Vec<u8> = (0..64 * 64).flat_map(|at| encode(Elem::F16, i32::from(at / 64 == at % 64))).collect();
    let k = memory.upload("k", &ones);
    let k = GpuArg::Tensor { address: k.address(), extents: vec![64, 64], strides: vec![64, 1] };
    let v = upload(&mut memory, "v", Elem::F16, [64 * steps, COLUMNS], rng);
    let o = upload(&mut memory, "o", Elem::F32, [rows, COLUMNS], rng);
    let g = upload(&mut memory, "g", Elem::F16, [rows, 128], rng);
    let down = (rows.div_ceil(128) as u32).next_multiple_of(made.lanes.cluster.max(1));
    let args = [q.arg, k, v.arg, o.arg.clone(), g.arg];
    launch(made, (&args, [down, COLUMNS.div_ceil(128) as u32, 1]), &mut memory, options, |_, _| ())?;
    let GpuArg::Tensor { strides, .. } = &o.arg else { return Err("no tensor".to_owned()) };
    let pitch = strides[0] as usize;
    let bytes = memory.read(o.at, rows * pitch * 4).map_err(|e| e.to_string())?;
    for (row, column) in (0..rows).flat_map(|row| (0..COLUMNS).map(move |column| (row, column))) {
        let dot = |more: i32, step: usize| -> i32 {
            (0..64).map(|i| (q.values[row * 64 + i] + more) * v.values[(64 * step + i) * COLUMNS + column]).sum()
        };
        let outer = if case.nested { 2 } else { 1 };
        let all = (0..outer).flat_map(|i| (0..steps).map(move |j| (i, j)));
        let wanted = dot(0, 0) + all.map(|(i, j)| dot((case.more)([i, j as i32]), j)).sum::<i32>();
        let found = &bytes[(row * pitch + column) * 4..][..4];
        if found != encode(Elem::F32, wanted) {
            return Err(format!("row {row}, column {column}: {found:?} instead of {wanted}"));
        }
    }
    Ok(())
}

#[test]
fn operands_are_written_after_the_products_in_flight_that_read_them() {
    for case in &CASES {
        let text = kernel(case);
        for scheduler in [Scheduler::Rule, Scheduler::Swing] {
            let made = scheduled_by(scheduler, &text);
            let ptx = String::from_utf8_lossy(&made.code.payload);
            let is_read = ptx.lines().any(|line| line.contains("wgmma.mma_async") && line.contains("}, {"));
            assert!(is_read, "{}: no operand is in registers\n{text}", case.name);
            for options in test_depth::sample(orders(), 1) {
                for steps in test_depth::sample([1, 2, 5], 2) {
                    run(case, &made, [100, steps], &options)
                        .unwrap_or_else(|e| panic!("{}, {scheduler:?}, {steps} steps: {e}\n{text}", case.name));
                }
            }
        }
    }
}

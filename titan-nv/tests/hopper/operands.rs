//! Products of warpgroups with operand A in registers that each iteration writes: an MMA reads them until it is waited for (PTX ISA,
//! "wgmma.mma_async"), so that a product must not stay in flight while the next iteration computes its operand.

use super::harness::orders;
use super::lowered::{encode, launch, upload};
use super::placed::scheduled_by;
use titan_core::driver::Stages;
use titan_core::ir::{Block, Elem, Kernel, NvOp, OpId, OpKind, Planned, Scheduler, Ty};
use titan_core::launch::abi::GpuArg;
use titan_core::pipeline::modulo::expand;
use titan_nv::emu::{Memory, Options};
use titan_sim::engine::Rng;

/// Where the operand of iteration j comes from. It is `q + j`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// The loop carries it as f32, and it is converted.
    Converted,
    /// The loop carries it.
    Carried,
    /// The loop carries it, and each iteration computes the one that it uses.
    Computed,
    /// Another product of the iteration, `q · 1`, and what is added to it as f16; the sum of its rows is taken too.
    Product,
}

/// `o = Σ (q + j) · v[j]` over tiles of 64 rows of v, with tiles of m rows of q and n columns of v.
fn kernel(from: From, [m, n]: [u32; 2]) -> String {
    let (elem, set, next) = match from {
        From::Converted => ("f32", "%p = cast %w : tile<Mx64xf16>", "%w2 = add %w, %ones : tile<Mx64xf32>"),
        From::Carried => ("f16", "", "%w2 = add %w, %ones : tile<Mx64xf16>"),
        From::Computed => ("f16", "%p = add %w, %none : tile<Mx64xf16>", "%w2 = add %p, %ones : tile<Mx64xf16>"),
        From::Product => (
            "f16",
            "%s = mma %qt, %kp, %sum : tile<Mx64xf32>\n%e = cast %s : tile<Mx64xf16>\n%p = add %e, %w : tile<Mx64xf16>\n\
             %back = cast %p : tile<Mx64xf32>\n%zeros = mul %back, %none32 : tile<Mx64xf32>\n%row = reduce_sum<1> %zeros : tile<Mxf32>\n\
             %wide = broadcast<1, N> %row : tile<MxNxf32>",
            "%w2 = add %w, %ones : tile<Mx64xf16>",
        ),
    };
    let (operand, sum) =
        (if from == From::Carried { "%w" } else { "%p" }, if from == From::Product { "%y2" } else { "%y" });
    // In the registers of an accumulator, as operand A may be.
    let first = match from {
        From::Converted => "%first = mma %qt, %kp, %sum : tile<Mx64xf32>",
        From::Carried | From::Computed => {
            "%s0 = mma %qt, %kp, %sum : tile<Mx64xf32>\n%first = cast %s0 : tile<Mx64xf16>"
        }
        From::Product => "%first = splat %h : tile<Mx64xf16>",
    };
    let more = if from == From::Product { "%y2 = add %y, %wide : tile<MxNxf32>\n" } else { "" };
    format!(
        "kernel @operands(%q: in tensor<f16>[R, 64], %k: in tensor<f16>[64, 64], %v: in tensor<f16>[S, C], \
         %o: mut tensor<f32>[R, C]) grid(cdiv(R, M), cdiv(C, N)) {{\n\
         %S = dim<0> %v : i32\n%m = program_id<0> : i32\n%n = program_id<1> : i32\n%z = const 0.0 : f32\n%h = const 0.0 : f16\n\
         %u = const 1.0 : {elem}\n%zero = const 0 : i32\n%one = const 1 : i32\n%bk = const 64 : i32\n%steps = div %S, %bk : i32\n\
         %qt = load_tile %q[%m, %zero] or %h : tile<Mx64xf16>\n%kt = load_tile %k[%zero, %zero] or %h : tile<64x64xf16>\n\
         %kp = permute<1, 0> %kt : tile<64x64xf16>\n%none = splat %h : tile<Mx64xf16>\n%none32 = splat %z : tile<Mx64xf32>\n\
         %sum = splat %z : tile<Mx64xf32>\n%ones = splat %u : tile<Mx64x{elem}>\n{first}\n%acc = splat %z : tile<MxNxf32>\n\
         %out, %last = for %j = %zero to %steps step %one pipelined carry(%x = %acc, %w = %first) : \
         tile<MxNxf32>, tile<Mx64x{elem}> {{\n{set}\n%vt = load_tile %v[%j, %n] or %h : tile<64xNxf16>\n\
         %y = mma {operand}, %vt, %x : tile<MxNxf32>\n{more}{next}\ncontinue {sum}, %w2\n}}\n\
         store_tile %o[%m, %n], %out\nreturn\n}}\n"
    )
    .replace("Mx", &format!("{m}x"))
    .replace("xNx", &format!("x{n}x"))
    .replace("1, N>", &format!("1, {n}>"))
    .replace("R, M)", &format!("R, {m})"))
    .replace("C, N)", &format!("C, {n})"))
}

/// Runs it on so many rows of q, tiles of rows of v and columns of v; `Err` says where it differs, or why it did not run. `operand` is the element of
/// operand A in iteration j, from that of q and j.
fn run(
    made: &Stages,
    [rows, steps, columns]: [usize; 3],
    tile: [u32; 2],
    operand: impl Fn(i32, i32) -> i32,
    options: &Options,
) -> Result<(), String> {
    let (rng, mut memory) = (&mut Rng::new(3), Memory::new());
    let q = upload(&mut memory, "q", Elem::F16, [rows, 64], rng);
    // The unit matrix.
    let ones: Vec<u8> = (0..64 * 64).flat_map(|at| encode(Elem::F16, i32::from(at / 64 == at % 64))).collect();
    let k = memory.upload("k", &ones);
    let k = GpuArg::Tensor { address: k.address(), extents: vec![64, 64], strides: vec![64, 1] };
    let v = upload(&mut memory, "v", Elem::F16, [64 * steps, columns], rng);
    let o = upload(&mut memory, "o", Elem::F32, [rows, columns], rng);
    let [down, across] = [rows.div_ceil(tile[0] as usize), columns.div_ceil(tile[1] as usize)].map(|n| n as u32);
    let grid = [down.next_multiple_of(made.lanes.cluster.max(1)), across, 1];
    launch(made, (&[q.arg, k, v.arg, o.arg.clone()], grid), &mut memory, options, |_, _| ())?;
    let GpuArg::Tensor { strides, .. } = &o.arg else { return Err("no tensor".to_owned()) };
    let pitch = strides[0] as usize;
    let bytes = memory.read(o.at, rows * pitch * 4).map_err(|e| e.to_string())?;
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let of = |i: usize| operand(q.values[row * 64 + i % 64], (i / 64) as i32) * v.values[i * columns + column];
        let (wanted, found) =
            (encode(Elem::F32, (0..64 * steps).map(of).sum()), &bytes[(row * pitch + column) * 4..][..4]);
        if found != wanted {
            return Err(format!("row {row}, column {column}: {found:?} instead of {wanted:?}"));
        }
    }
    Ok(())
}

/// The number of products that loops pass on in flight.
pub(super) fn carried_in_flight(made: &Stages) -> usize {
    let mut found = 0;
    made.loops.walk(&mut |_, op| {
        let bodies = op.regions.iter().filter(|_| op.kind.is_loop());
        let carried = bodies.flat_map(|body| &made.loops.block(*body).args);
        found += carried.filter(|v| matches!(made.loops.ty(**v), Ty::Compute(..))).count();
    });
    found
}

#[test]
fn operands_that_iterations_compute_are_not_overwritten_in_flight() {
    let mut in_registers = 0;
    for from in [From::Converted, From::Carried, From::Computed, From::Product] {
        for tile in test_depth::sample([[128, 128], [64, 64], [128, 64], [64, 128]], 2) {
            let text = kernel(from, tile);
            for scheduler in [Scheduler::Rule, Scheduler::Swing] {
                let made = scheduled_by(scheduler, &text);
                // A product that stays in flight would only be waited for before the operand of the next one is computed.
                if from != From::Product {
                    assert_eq!(carried_in_flight(&made), 0, "{from:?}, {tile:?}, {scheduler:?}");
                }
                let ptx = String::from_utf8_lossy(&made.code.payload);
                in_registers +=
                    usize::from(ptx.lines().any(|line| line.contains("wgmma.mma_async") && line.contains("}, {")));
                for options in test_depth::sample(orders(), 1) {
                    for steps in [1, 2, 5] {
                        run(&made, [150, steps, 200], tile, |q, j| q + j, &options).unwrap_or_else(|e| {
                            panic!("{from:?}, {tile:?}, {scheduler:?}, {steps} steps: {e}\n{text}")
                        });
                    }
                }
            }
        }
    }
    assert!(in_registers > test_depth::cases(16, 8), "{in_registers} kernels have operands in registers");
}

#[test]
fn products_with_an_operand_that_a_loop_does_not_change_stay_in_flight() {
    let head = kernel(From::Product, [128, 128]);
    let (head, _) = head.split_once("%out, %last").unwrap();
    let looped = |operand: &str, acc: &str, into: &str| {
        format!(
            "{into} = for %j = %zero to %steps step %one pipelined carry(%x = {acc}) : tile<128x128xf32> {{\n\
             %vt = load_tile %v[%j, %n] or %h : tile<64x128xf16>\n%y = mma {operand}, %vt, %x : tile<128x128xf32>\ncontinue %y\n}}\n"
        )
    };
    let computed = "%s = mma %qt, %kp, %sum : tile<128x64xf32>\n%p = cast %s : tile<128x64xf16>\n";
    let end = "store_tile %o[%m, %n], %out\nreturn\n}\n";
    let plain = format!("{head}{computed}{}{end}", looped("%p", "%acc", "%out"));
    // The operand changes from one run of the inner loop to the next.
    let nested = format!(
        "{head}{computed}%two = const 2 : i32\n\
         %out, %last = for %i = %zero to %two step %one carry(%all = %acc, %w = %p) : tile<128x128xf32>, tile<128x64xf16> {{\n\
         {}%w2 = add %w, %ones : tile<128x64xf16>\ncontinue %in, %w2\n}}\n{end}",
        looped("%w", "%all", "%in")
    );
    for (text, operand) in [(plain, (|q, _| q) as fn(i32, i32) -> i32), (nested, |q, _| 2 * q + 1)] {
        for scheduler in [Scheduler::Rule, Scheduler::Swing] {
            let made = scheduled_by(scheduler, &text);
            assert_eq!(carried_in_flight(&made), 1, "{scheduler:?}\n{text}");
            for options in test_depth::sample(orders(), 1) {
                for steps in [1, 2, 5] {
                    run(&made, [150, steps, 200], [128, 128], operand, &options)
                        .unwrap_or_else(|e| panic!("{scheduler:?}, {steps} steps: {e}\n{text}"));
                }
            }
        }
    }
}

#[test]
fn a_schedule_that_makes_an_operand_in_another_stage_than_its_product_is_refused() {
    let made = scheduled_by(Scheduler::Rule, &kernel(From::Converted, [64, 64]));
    let mut kernel = made.laid_out;
    let mut bodies = kernel.ops.iter().filter(|op| op.kind.is_loop()).flat_map(|op| op.regions.clone());
    let of_mma = |kernel: &Kernel, id: OpId| kernel.op(id).kind == OpKind::Nv(NvOp::Wgmma);
    let with_product = |body: &Block| kernel.block(*body).ops.iter().any(|id| of_mma(&kernel, *id));
    let body = bodies.rfind(with_product).expect("a loop with a product");
    let (_, ops) = kernel.block(body).ops.split_last().map(|(end, ops)| (*end, ops.to_vec())).expect("a body");
    let part = ops.iter().copied().find(|id| {
        let result = kernel.op(*id).results.first().copied();
        let is_operand = |mma: &OpId| of_mma(&kernel, *mma) && kernel.op(*mma).args.first().copied() == result;
        result.is_some() && ops.iter().any(is_operand)
    });
    let part = part.expect("an operand in registers");
    for (stage, refused) in [(1, false), (0, true)] {
        for (order, id) in ops.iter().enumerate() {
            // What the part is taken of is executed before it.
            let stage = if *id == part { stage } else { u16::from(order > place(&ops, part)) };
            kernel.ops[id.index()].planned = Some(Planned { stage, order: order as u16 });
        }
        let told = expand(&kernel).err().map(|why| why.message).unwrap_or_default();
        assert_eq!(told.contains("operand A of an MMA, in another stage"), refused, "{told}");
    }
}

fn place(ops: &[OpId], id: OpId) -> usize {
    ops.iter().position(|other| *other == id).expect("an operation of the body")
}

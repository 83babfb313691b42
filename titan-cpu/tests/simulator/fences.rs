//! The fence pass on barrier programs, against the sanitizer: where the async proxy comes to touch what the warps of a program
//! have touched, the simulator misses a fence, and after the pass it misses none.

use super::chosen::each_chosen_kernel;
use super::gpu::machine;
use super::{arguments, grid};
use std::collections::BTreeSet;
use titan_core::diag::Code;
use titan_core::driver::barrier_program;
use titan_core::ir::{Kernel, NvOp, OpKind, RegionOp, Value};
use titan_core::pipeline::fence::{Options as Fences, fence};
use titan_core::plan::plan;
use titan_core::text::{parse_one, print};
use titan_core::verify::{barrier_program as check, well_formed};
use titan_sim::sim::{self, Kind};

/// The program with reads through the async proxy of all of its shared memory at its end; `None` if it has none of its own.
fn with_asynchronous_reads(program: &Kernel) -> Option<Kernel> {
    // Words of barriers and counters are no payload.
    let words: BTreeSet<Value> = program
        .ops
        .iter()
        .filter(|op| matches!(op.kind, OpKind::Nv(NvOp::MbarrierAlloc { .. } | NvOp::SequenceInit)))
        .filter_map(|op| op.args.first().copied())
        .collect();
    let is_payload = |id: &&titan_core::ir::OpId| {
        let op = program.op(**id);
        matches!(op.kind, OpKind::Region(RegionOp::Place { .. })) && !words.contains(&op.results[0])
    };
    let payload = program.block(program.body).ops.iter().filter(is_payload).count();
    let text = print(program);
    let regions: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("    %").filter(|l| l.contains(" = ttg.region {"))?.split(" = ").next())
        .collect();
    if payload == 0 || regions.len() != payload {
        return None;
    }
    let threads = program.laid_out.as_deref().map_or(0, |laid| laid.warps * laid.lanes);
    let call = |region: &&str| {
        format!(
            "    ttg.nv.barrier.sync {{id = 0, threads = {threads}}}\n    ttg.region.call \"later\", %{region} {{access = r, proxy = async}}\n"
        )
    };
    let calls: String = regions.iter().map(call).collect();
    let (before, _) = text.rsplit_once("    return")?;
    Some(parse_one(&format!("{before}{calls}    return\n}}\n")).unwrap_or_else(|e| panic!("{e:?}\n{text}")))
}

fn finding(program: &Kernel, args: &[sim::Arg], grid: [u32; 3]) -> Option<Kind> {
    let program = well_formed(program.clone()).expect("a barrier program");
    let report = sim::run(&program, &mut args.to_vec(), Some(grid), &sim::Options::default()).unwrap();
    report.findings.first().map(|f| f.kind)
}

#[test]
fn the_pass_places_the_fences_that_barrier_programs_lack() {
    let (mut mended, mut wrong) = (0, Vec::new());
    each_chosen_kernel(&["text", "verify"], &mut |name, kernel| {
        let plan = plan(kernel, &titan_nv::target(machine()), true);
        let Ok(program) = barrier_program(kernel, &plan) else { return };
        let args = arguments(&kernel.sig, 32, 3);
        let Some(grid) = grid(kernel, &args) else { return };
        let Some(bare) = with_asynchronous_reads(&program) else { return };
        if finding(&program, &args, grid).is_some() || finding(&bare, &args, grid) != Some(Kind::Fence) {
            return;
        }
        let fenced = fence(&bare, &Fences::default());
        let unfenced = |k: &Kernel| check(k).is_err_and(|errors| errors.iter().any(|e| e.code == Code::Unfenced));
        let refused = unfenced(&bare) && !unfenced(&fenced.kernel);
        let again = fence(&fenced.kernel, &Fences::default());
        let after = finding(&fenced.kernel, &args, grid);
        if !refused || after.is_some() || !again.report.is_unchanged() || !fenced.report.left.is_empty() {
            wrong.push(format!("{name}: {after:?}, {}\n{}", fenced.report, print(&fenced.kernel)));
        }
        mended += 1;
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(mended >= test_depth::cases(10, 2), "only {mended}");
}

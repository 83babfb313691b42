//! Rings whose tiles threads cannot hold in registers, because matrix instructions read more than the tile: a loop then copies to a stage, computes, and
//! copies to the next one, whatever the number of slots, and with a loop of its own for iterations without masks.

use super::tree::compared;
use crate::launch::{Ready, machine};
use titan_core::driver::{FALLBACK, Roles, compile, stages};
use titan_core::text::parse;
use titan_core::verify::{Verified, verify};

/// `C = A · Bᵀ` by two roles, over 8 columns of A and B at a time, of which matrix instructions read 16. With `masked`, the columns of each product
/// beyond K are masked, which they are only in the last iteration.
fn kernel(slots: u32, masked: bool, tile: u32) -> Verified {
    let (masks, sum) = if masked {
        let lines = [
            format!("%eight = const {tile} : i32"),
            "%column = iota<16> : tile<16xi32>".to_owned(),
            "%first = mul %j, %eight : i32".to_owned(),
            "%firsts = splat %first : tile<16xi32>".to_owned(),
            "%at = add %column, %firsts : tile<16xi32>".to_owned(),
            "%ends = splat %rows : tile<16xi32>".to_owned(),
            "%is_row = lt %at, %ends : tile<16xbool>".to_owned(),
            "%inside = broadcast<0, 16> %is_row : tile<16x16xbool>".to_owned(),
            "%masked = select %inside, %next, %from : tile<16x16xf32>".to_owned(),
        ];
        (lines.map(|line| format!("            {line}\n")).concat(), "%masked")
    } else {
        (String::new(), "%next")
    };
    let text = format!(
        "kernel @small(\n    %a: in tensor<f16>[M, K],\n    %b: in tensor<f16>[N, K],\n    %c: mut tensor<f32>[M, N],\n) \
         grid(cdiv(M, 16), cdiv(N, 16)) pipe({slots}, \"ring\", tile<16x{tile}xf16>, tile<16x{tile}xf16>) role(load, 1) \
         role(work, 4) {{\n    %K = dim<1> %a : i32\n    %rows = dim<1> %b : i32\n    %m = program_id<0> : i32\n    \
         %n = program_id<1> : i32\n    %zero = const 0 : i32\n    %one = const 1 : i32\n    %step = const {tile} : i32\n    \
         %whole = div %K, %step : i32\n    %rest = rem %K, %step : i32\n    %more = gt %rest, %zero : bool\n    \
         %last = cast %more : i32\n    %steps = add %whole, %last : i32\n    %pad = const 0.0 : f16\n    \
         %nothing = const 0.0 : f32\n    ttg.roles load {{\n        for %i = %zero to %steps step %one {{\n            \
         %slot = ttg.stage.acquire<0>\n            %sa = ttg.source_tile %a[%m, %i] or %pad : source<16x{tile}xf16>\n            \
         %sb = ttg.source_tile %b[%n, %i] or %pad : source<16x{tile}xf16>\n            \
         ttg.stage.async_produce %slot, %sa, %sb {{bytes = {bytes}, proxy = generic}}\n            continue\n        }}\n        \
         ttg.pipeline.finalize\n        yield\n    }} work {{\n        %acc = splat %nothing : tile<16x16xf32>\n        \
         %sum = for %j = %zero to %steps step %one carry(%from = %acc) : tile<16x16xf32> {{\n            \
         %ready = ttg.stage.ready<0>\n            %there = ttg.stage.wait_ready %ready\n            \
         %stage = ttg.stage.read_perm %there\n            %at_stage = ttg.stage.view<0> %stage : smem<16x{tile}xf16>\n            \
         %bt_stage = ttg.stage.view<1> %stage : smem<16x{tile}xf16>\n            \
         %bp = permute<1, 0> %bt_stage : smem<{tile}x16xf16>\n            \
         %product = ttg.compute.issue %at_stage, %bp, %from : compute<16x16xf32>\n            %next = ttg.compute.wait %product : tile<16x16xf32>\n            %done = ttg.stage.consumed %stage\n            \
         ttg.stage.release %done\n{masks}            continue {sum}\n        }}\n        store_tile %c[%m, %n], %sum\n        \
         ttg.pipeline.finalize\n        yield\n    }}\n    return\n}}\n",
        bytes = 2 * 16 * tile * 2,
    );
    let kernel = parse(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}")).remove(0);
    verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

#[test]
fn rings_of_any_number_of_slots_are_filled_where_nothing_can_be_fetched() {
    let mut runs = 0;
    for (slots, masked, tile) in
        [(1, false, 8), (3, false, 8), (1, true, 8), (2, true, 8), (1, false, 16), (1, true, 16), (2, true, 16)]
    {
        let what = format!("{slots} slots of {tile} columns, masked {masked}");
        let kernel = kernel(slots, masked, tile);
        let variants = compile(&kernel, machine(), None).unwrap_or_else(|e| panic!("{what}: {e}"));
        let notes: Vec<String> = variants.into_iter().flat_map(|variant| variant.notes).collect();
        assert!(!notes.iter().any(|note| note.starts_with(FALLBACK)), "{what}: {notes:#?}");
        for aligned in [true, false] {
            let stages = stages(&kernel, machine(), aligned, None).unwrap_or_else(|e| panic!("{what}: {e}"));
            let Roles::Fused { distance, .. } = stages.schedule.roles else { panic!("{what}: {}", stages.schedule) };
            let program = titan_core::text::print(&stages.barriers);
            assert_eq!(program.contains("ttg.local.fetch"), distance > 0, "{what}: {program}");
            assert_eq!(distance > 0, aligned && tile == 16, "{what}");
            let ready = Ready::new(&stages.lanes).unwrap_or_else(|e| panic!("{what}: {e}"));
            for seed in 0..3 {
                let done = compared((&kernel, &stages.rings), &ready, &stages.lanes, aligned, seed);
                runs += usize::from(done.unwrap_or_else(|e| panic!("{what}, aligned {aligned}, seed {seed}: {e}")));
            }
        }
    }
    assert!(runs >= 30, "{runs} runs");
}

//! Random programs with bulk copies and MMAs of warpgroups, and with stages that bulk copies and threads fill together, in the model
//! checker. Mistakes in them are found by `layers`.

use super::gpu::{blackwell, hopper};
use super::random_groups::{self, Random};
use super::rng::Rng;
use super::ways::is_mixed;
use super::{grid, program_grid};
use titan_core::driver::{barrier_program, stages};
use titan_core::ir::Kernel;
use titan_core::plan::plan;
use titan_core::verify::{Verified, verify, well_formed};
use titan_sim::sim;

/// The model checker runs the protocol of such programs, without data.
#[test]
fn programs_with_warpgroups_are_safe_in_every_order() {
    let (mut safe, mut states) = (0, 0);
    let seeds = 50_000..test_depth::cases(50_006, 50_002);
    for seed in seeds.clone() {
        let Random { text, args } = random_groups::small(&mut Rng::new(seed));
        let kernel = verify(titan_core::text::parse_one(&text).unwrap()).unwrap();
        let Ok(all) = stages(&kernel, hopper(), true, None) else { continue };
        let explored = {
            let grid = program_grid(&all.barriers, grid(&kernel, &args).unwrap());
            explored(&kernel, all.barriers, (&args, grid), 20_000)
        };
        safe += usize::from(matches!(explored, sim::Verdict::Safe(_)));
        states += explored.explored().states;
    }
    println!("{safe} programs are safe, {states} states");
    assert_eq!(safe, seeds.count(), "{states} states");
}

#[track_caller]
fn explored(kernel: &Verified, program: Kernel, (args, grid): (&[sim::Arg], [u32; 3]), most: u64) -> sim::Verdict {
    let limits = sim::Limits { max_states: most, ..sim::Limits::default() };
    let verdict = sim::explore(&well_formed(program).unwrap(), args, Some(grid), &limits).unwrap();
    assert_eq!(verdict.finding(), None, "{}", titan_core::text::print(kernel));
    verdict
}

/// Stages that bulk copies and threads fill together, by roles of one warp each: all of their protocol.
#[test]
fn stages_of_both_kinds_are_safe_in_every_order() {
    let (mut safe, mut states) = (0, 0);
    for seed in 95_000.. {
        let Random { text, args } = random_groups::tiny_mixed(&mut Rng::new(seed));
        let mut kernel = titan_core::text::parse_one(&text).unwrap();
        if kernel.pipes.len() > 1 || kernel.pipes[0].slots > 2 || kernel.roles.len() > 2 || text.contains("distributed")
        {
            continue;
        }
        kernel.roles.iter_mut().for_each(|role| role.warps = 1);
        let kernel = verify(kernel).unwrap();
        let plan = plan(&kernel, &titan_nv::target(blackwell()), true);
        let program = barrier_program(&kernel, &plan).unwrap_or_else(|e| panic!("{}", e.message));
        if !is_mixed(&program) {
            // Parts of a tensor are copied in bulk, where their ends are arguments or constants.
            assert!(text.contains("slice<"), "{text}");
            continue;
        }
        let verdict = explored(&kernel, program, (&args, [1; 3]), 20_000);
        println!("seed {seed}: {} states, {} times", verdict.explored().states, verdict.explored().times);
        assert!(matches!(verdict, sim::Verdict::Safe(_)), "{verdict:?}\n{text}");
        states += verdict.explored().states;
        safe += 1;
        if safe == test_depth::cases(4, 1) {
            break;
        }
    }
    println!("{safe} programs with stages of both kinds are safe, {states} states");
}

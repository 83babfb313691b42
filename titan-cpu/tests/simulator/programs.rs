//! Every kernel of the filetests and many random ones, each in all four ways (`ways`).

use super::chosen::{each_chosen_kernel, in_turn};
use super::rng::Rng;
use super::ways::{Counts, compare};
use super::{arguments, grid, random, random_groups, random_rings, random_tiles, random_tiles_arguments};
use titan_core::text::parse_one;
use titan_core::verify::{Verified, verify};
use titan_sim::sim;

/// Where a launch has more programs, its extents are a quarter.
const MOST_PROGRAMS: u32 = 8;

/// The kernels of a folder of the filetests whose number leaves this remainder.
fn filetests_agree(folder: &str, (of, rest): (usize, usize)) {
    let (mut counts, mut found, mut number) = (Counts::default(), Vec::new(), 0);
    each_chosen_kernel(&[folder], &mut |name, kernel| {
        number += 1;
        if number % of != rest {
            return;
        }
        for extent in in_turn(&[32, 20], number / of) {
            let mut args = arguments(&kernel.sig, extent, 3);
            let Some(mut programs) = grid(kernel, &args) else { continue };
            if programs.iter().product::<u32>() > MOST_PROGRAMS {
                args = arguments(&kernel.sig, extent / 4, 3);
                let Some(fewer) = grid(kernel, &args) else { continue };
                programs = fewer;
            }
            let wrong = compare(kernel, (&args, programs), false, &mut counts);
            found.extend(wrong.map(|w| format!("{name} {extent}: {w}")));
        }
    });
    println!("{folder}: {counts:?}");
    assert!(found.is_empty(), "{} wrong\n{}", found.len(), found.join("\n"));
    let [kernels, barriers] = test_depth::cases([20, 60], [5, 5]);
    assert!(counts.kernels > kernels && counts.barriers > barriers, "{counts:?}");
}

#[test]
fn kernels_of_the_texts_are_the_same_in_all_ways() {
    filetests_agree("text", (1, 0));
}

#[test]
fn kernels_of_the_verifier_are_the_same_in_all_ways() {
    filetests_agree("verify", (2, 0));
}

#[test]
fn more_kernels_of_the_verifier_are_the_same_in_all_ways() {
    filetests_agree("verify", (2, 1));
}

/// A random kernel and its arguments; `None` if the verifier refuses it.
type Made = Option<(Verified, Vec<sim::Arg>, String)>;

/// Of how many random kernels one is made in the quick depth.
const EACH: usize = 20;

/// How many of some random kernels are made: in the quick depth some of them.
fn some(n: usize) -> usize {
    n / test_depth::cases(1, EACH)
}

/// Makes kernels until so many are accepted, or some of them in the quick depth, and compares all ways of each.
fn random_kernels_agree(n: usize, first: u64, make: impl Fn(&mut Rng) -> Made) -> Counts {
    let n = some(n);
    let (mut counts, mut found, mut refused, mut good) = (Counts::default(), Vec::new(), 0, 0);
    for seed in first.. {
        if good == n {
            break;
        }
        let Some((kernel, args, text)) = make(&mut Rng::new(seed)) else {
            refused += 1;
            assert!(refused < n + test_depth::cases(0, 10), "most kernels should be good");
            continue;
        };
        good += 1;
        let grid = grid(&kernel, &args).expect("arguments that fit");
        let wrong = compare(&kernel, (&args, grid), true, &mut counts);
        found.extend(wrong.map(|w| (text.len(), format!("seed {seed}: {w}\n{text}"))));
    }
    println!("{n} random kernels, {refused} refused: {counts:?}");
    let shortest = found.iter().min().map_or("", |(_, w)| w);
    assert!(found.is_empty(), "{} wrong, of which the shortest\n{shortest}", found.len());
    // Only what does not fit into shared memory, or traps, is left out.
    assert!(counts.kernels * 10 >= n * 9, "{counts:?}");
    counts
}

fn read(random: &random::Random) -> Made {
    let kernel = parse_one(&random.text).unwrap_or_else(|e| panic!("{e:?}\n{}", random.text));
    Some((verify(kernel).ok()?, random.arguments(), random.text.clone()))
}

#[test]
fn random_loops_that_become_rings_are_the_same_in_all_ways() {
    let counts = random_kernels_agree(170, 0, |rng| {
        let whole = rng.below(2) == 0;
        read(&random::implicit(rng, whole))
    });
    assert!(counts.made_rings > some(60), "{counts:?}");
}

#[test]
fn random_roles_are_the_same_in_all_ways() {
    let counts = random_kernels_agree(170, 10_000, |rng| {
        let whole = rng.below(2) == 0;
        read(&random::roles(rng, whole))
    });
    assert!(counts.with_roles >= some(161), "{counts:?}");
}

#[test]
fn random_rings_on_all_paths_are_the_same_in_all_ways() {
    random_kernels_agree(120, 20_000, |rng| {
        let (text, args) = random_rings::kernel(rng);
        let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        Some((verify(kernel).ok()?, args, text))
    });
}

#[test]
fn random_mmas_of_warpgroups_are_the_same_in_all_ways() {
    let counts = random_kernels_agree(120, 30_000, |rng| {
        let random_groups::Random { text, args } = random_groups::roles(rng);
        let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        Some((verify(kernel).ok()?, args, text))
    });
    // Tensors of no columns have no tensor map: other code runs.
    assert!(counts.hopper > some(90) && counts.clusters > some(10), "{counts:?}");
}

/// Stages that bulk copies and threads fill together.
#[test]
fn random_stages_of_both_kinds_are_the_same_in_all_ways() {
    let counts = random_kernels_agree(60, 80_000, |rng| {
        let random_groups::Random { text, args } = random_groups::mixed(rng);
        let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        Some((verify(kernel).ok()?, args, text))
    });
    assert!(counts.hopper > some(30) && counts.mixed > some(25), "{counts:?}");
}

#[test]
fn random_tiles_are_the_same_in_all_ways() {
    random_kernels_agree(170, 20_000, |rng| {
        let made = random_tiles::kernel(rng);
        let text = titan_core::text::print(&made);
        let kernel = verify(made).ok()?;
        let args = random_tiles_arguments(rng, &kernel);
        Some((kernel, args, text))
    });
}

//! The output rule against brute force: of random kernels that the verifier accepts, no two programs touch one element.
//!
//! The kernels are made from a small description, which is also run directly, for all programs of a small grid, or for
//! chosen ones of a grid as large as grids get: with wrapping arithmetic, views that clip, and segments that trap. What the
//! description means is written here a second time, without the prover's forms. Both counts are asserted: the prover
//! accepts often, and the kernels that it refuses collide often. Elements of which the compiler says that no program writes them
//! are not written either.

mod boxes;
mod brute;
mod describe;
mod emit;
mod random;
mod unwritten;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::Cell;
use std::io::Write;
use titan_core::analysis::cover;
use titan_core::verify::verify;

use brute::{collision, stores_to};
use describe::Mode;
use emit::emit;
use random::case;
use unwritten::places;

#[test]
fn programs_of_accepted_kernels_do_not_meet() {
    let cases = test_depth::cases(12_000, 4_000);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let (accepted, nontrivial, collided) = (Cell::new(0u32), Cell::new(0u32), Cell::new(0u32));
    let incomplete = Cell::new(0u32);
    let outcome = runner.run(&case(), |case| {
        let verdict = verify(emit(&case));
        let found = collision(&case);
        if let Ok(kernel) = &verdict {
            for error in cover::unwritten(kernel, kernel.partition()) {
                prop_assert!(!stores_to(&case, &places(&error.title)), "{}", error.title);
                incomplete.set(incomplete.get() + 1);
            }
            accepted.set(accepted.get() + 1);
            let wide = case.mode != Mode::Grid || case.grid.iter().any(|g| *g > 1) || case.of_scalar.is_some();
            nontrivial.set(nontrivial.get() + u32::from(wide));
            prop_assert!(found.is_none(), "{}", found.unwrap_or_default());
        } else if found.is_some() {
            collided.set(collided.get() + 1);
        }
        Ok(())
    });
    let (accepted, nontrivial, collided) = (accepted.get(), nontrivial.get(), collided.get());
    let incomplete = incomplete.get();
    let report = format!(
        "of {cases} kernels {accepted} are accepted, {nontrivial} of these on several programs; {collided} collide; {incomplete} leave \
         elements unwritten"
    );
    writeln!(std::io::stderr(), "{report}").expect("written");
    if let Err(e) = outcome {
        panic!("{e}");
    }
    assert!(nontrivial * 12 >= cases, "too few are accepted for this to say much: {report}");
    assert!(collided * 4 >= cases, "too few collide for this to say much: {report}");
    assert!(incomplete * 100 >= cases, "too few leave elements unwritten for this to say much: {report}");
}

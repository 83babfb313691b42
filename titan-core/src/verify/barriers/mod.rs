//! Rules of programs in the barrier dialect: regions, barriers, groups, counters, and tiles that are laid out over threads.
//!
//! A program states its protocol by its barriers alone, or it has been lowered from rings and also states, next to its waits and arrivals,
//! their effect on a ring (`ttg.claim.*`). Both are verified here, by the same rules where these do not depend on the order of execution:
//!
//! | rules | | module | without claims | with claims |
//! |---|---|---|---|---|
//! | 46, 47, 49, 50, 52, 53 | placement of regions, tiles and barriers; copies; tokens; fences | `place`, `copies` | yes; 50 and 52 if it is not laid out | yes, but for 50 and 52 |
//! | 48 | initialisation of barriers | `lives` | yes | yes |
//! | 51 | threads, registers, named barriers | `numbers` | yes | yes |
//! | 67, 69, 71 | layouts, MMAs in flight, MMAs of warpgroups | `laid`, `products`, `group_mma` | if it is laid out | yes |
//! | 70, 79 | boxes of bulk copies | `boxes`, `strided` | yes | yes |
//! | 73 to 76 | tensor memory | `tensor` | yes | yes |
//! | 33, 78 | outputs that several roles, or several programs, write | `pipes::tensors`, `outputs` | yes; 78 if it is laid out | yes |
//! | 84 | the program stores what its kernel stores | `stored` | | if it is compared with its kernel |
//! | 65, 72 | the operations at a claim implement it; clusters | `claims` | | yes |
//! | 54 to 60, 83 | order of accesses, by the barriers; what is read has been written | `coexecution::barriers` | if it is not laid out | |
//! | 64 | the claims obey the rules of rings, and accesses to slots are covered by them | `coexecution::rings` | | yes |
//! | 66, 83 | the threads of a role are ordered; what is read has been written | `threads` | if it is laid out | yes |
//! | 61, 68 | fences between generic and asynchronous accesses | `proxies` | yes | yes |
//!
//! Rule 50 is not needed where `threads` follows what happens before the roles, and rule 52 not where groups are waited for by number alone.
//!
//! An error in a program that TITAN has generated is a defect of the lowering: the rings were verified before. Deliberately absent: how
//! layouts distribute elements over threads, which the checks of lane IR cover ([`crate::lane::hazard`]).

pub(super) mod boxes;
mod claims;
mod copies;
mod group_mma;
mod laid;
mod lives;
mod numbers;
mod outputs;
mod place;
mod products;
pub(super) mod proxies;
pub(super) mod stored;
mod strided;
mod tensor;
mod threads;

use super::Error;
use super::coexecution;
use super::coexecution::barriers::objects;
use super::coexecution::rings::find::Claims;
use super::reject_if_any;
use crate::diag::Code;
use crate::ir::{Kernel, Loc};

/// Violations of rules 46 to 53, 67, 69 to 71, 73 to 76 and 79, which do not depend on the order of the roles.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut errors = Vec::new();
    place::fences(kernel, &mut errors);
    if objects::any(kernel) {
        place::regions(kernel, &mut errors);
        place::words(kernel, &mut errors);
        lives::lives(kernel, &mut errors);
        copies::copies(kernel, &mut errors);
        numbers::participants(kernel, &mut errors);
        tensor::check(kernel, &mut errors);
        errors.extend(boxes::check(kernel));
        errors.extend(strided::check(kernel));
    }
    if kernel.laid_out.is_some() {
        errors.extend(laid::check(kernel));
        errors.extend(products::check(kernel));
        errors.extend(group_mma::check(kernel));
    } else if objects::any(kernel) {
        place::tokens(kernel, &mut errors);
        place::outside(kernel, &mut errors);
    }
    errors
}

/// Checks the rules of a program that is laid out over threads. `errors` are violations of the rules of its declarations.
///
/// # Errors
/// The violations in the first group of rules that has any.
pub(super) fn laid_out(kernel: &Kernel, mut errors: Vec<Error>) -> Result<(), Vec<Error>> {
    let mut claims = Claims::of(kernel);
    errors.extend(outputs::check(kernel));
    errors.extend(check(kernel));
    errors.extend(claims::check(kernel, &mut claims));
    reject_if_any(errors)?;
    coexecution::check_claims(kernel, claims)?;
    let mut errors = threads::check(kernel);
    errors.extend(proxies::check(kernel));
    reject_if_any(errors)
}

/// Violations of rule 66 alone.
#[must_use]
pub fn unordered(kernel: &Kernel) -> Vec<crate::diag::Diagnostic<Loc>> {
    threads::unordered(kernel)
}

/// An error of the rules of claims, and of other rules without a code of their own.
fn wrong(loc: Loc, title: impl Into<String>) -> Error {
    Error::new(Code::NotShown, loc, title)
}

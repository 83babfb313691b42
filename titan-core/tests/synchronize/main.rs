//! Barriers and places of barrier programs against runs of them: random programs are followed along concrete paths with concrete
//! slots, and nothing that was placed may be wrong on any of them.

#[path = "../machine/rng.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod rng;

mod barriers;
mod paths;
mod places;
mod program;
mod values;

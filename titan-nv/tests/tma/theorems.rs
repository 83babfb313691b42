//! The theorems of the model, over random schedules.

use crate::brute::{DIRT, World, backwards, every, schedule};
use titan_nv::tma::{
    Correctness, Direction, Domains, Guard, Id, Level, LowerError, Padding, Step, Transfer, indices, level, lower,
    protected,
};
use titan_sim::engine::Rng;

const WEAK: Transfer = Transfer::Load { correctness: Correctness::Weak, skip_holes: false };
const SPARING: Transfer = Transfer::Load { correctness: Correctness::Weak, skip_holes: true };
const STRONG: Transfer = Transfer::Load { correctness: Correctness::Strong(Padding::Zero), skip_holes: false };
const PADDED: Transfer = Transfer::Load { correctness: Correctness::Strong(Padding::Other), skip_holes: false };

/// Theorem 1, whatever was in shared memory before, with and without a predicate.
#[test]
fn every_schedule_is_weakly_correct() {
    let mut rng = Rng::new(1);
    let mut left_out = 0;
    for _ in 0..1500 {
        let domains = schedule(&mut rng);
        for transfer in [WEAK, SPARING] {
            let lowering = lower(&domains, transfer).unwrap();
            let mut world = World::new(&domains, &lowering);
            world.run(&domains, &lowering, Direction::Load);
            assert!(world.judged(&domains).0, "{domains:?}\n{lowering:?}");
            left_out += u32::from(world.shared.contains(&DIRT));
        }
    }
    assert!(left_out > 100, "{left_out}");
}

/// A domain out of bounds of which the copy engine's check and all domains that are not protected know nothing.
fn escapes(domains: &Domains, is: &[bool]) -> bool {
    let leaves: Vec<Id> = domains.loops().chain(domains.tile()).collect();
    let partitioned: Vec<usize> = domains.axes().iter().map(|axis| axis.partitioned.number()).collect();
    let every_id: Vec<Option<i64>> = {
        let mut extents = vec![None; domains.len()];
        let mut note = |id: Id| extents[id.number()] = domains.extent(id);
        domains.axes().iter().for_each(|axis| note(axis.partitioned));
        for step in domains.steps() {
            match *step {
                Step::Split { outer, inner, .. } => [outer, inner].into_iter().for_each(&mut note),
                Step::Merge { output, .. } | Step::Resize { output, .. } => note(output),
                Step::Swizzle { out_x, out_y, .. } => [out_x, out_y].into_iter().for_each(&mut note),
            }
        }
        extents
    };
    let mut escaped = false;
    every(domains, &leaves, |at| {
        let all = backwards(domains, |id| at[leaves.iter().position(|l| *l == id).unwrap()]);
        let inside = |i: &usize| (0..every_id[*i].unwrap()).contains(&all[*i]);
        let mut others = (0..all.len()).filter(|i| !is[*i]);
        if others.all(|i| inside(&i)) && partitioned.iter().all(inside) {
            escaped |= !(0..all.len()).filter(|i| is[*i]).all(|i| inside(&i));
        }
    });
    escaped
}

/// Theorem 4; and rules that protect more than they should are found out.
#[test]
fn the_engines_check_keeps_protected_domains_in_bounds() {
    let mut rng = Rng::new(4);
    let (mut inner_too, mut narrowed_too, mut boxes_too) = (0, 0, 0);
    for _ in 0..1200 {
        let domains = schedule(&mut rng);
        let is = protected(&domains);
        assert!(!escapes(&domains, &is), "{domains:?}");
        let with = |more: &dyn Fn(&Step, &[bool]) -> Option<Id>| {
            let mut is = is.clone();
            for step in domains.steps() {
                if let Some(id) = more(step, &is) {
                    is[id.number()] = true;
                }
            }
            u32::from(escapes(&domains, &is))
        };
        let known = |id: Id, is: &[bool]| is[id.number()];
        inner_too += with(&|step, is| match *step {
            Step::Split { input, inner, .. } if known(input, is) => Some(inner),
            _ => None,
        });
        narrowed_too += with(&|step, is| match *step {
            Step::Resize { input, output, .. } if known(input, is) => Some(output),
            _ => None,
        });
        boxes_too += with(&|step, _| match *step {
            Step::Split { input, .. } => domains.axes().iter().map(|axis| axis.boxed).find(|id| *id == input),
            _ => None,
        });
    }
    assert!(inner_too > 50 && narrowed_too > 0 && boxes_too > 50, "{inner_too} {narrowed_too} {boxes_too}");
}

/// Theorem 5, and the cells of level 2 and 3: strong correctness by the lowering, or an error, and never otherwise.
#[test]
fn strong_loads_are_strong_or_refused() {
    let mut rng = Rng::new(5);
    let mut seen = [0; 3];
    let (mut needed, mut redirected) = (0, 0);
    for _ in 0..4000 {
        let domains = schedule(&mut rng);
        let how = level(&domains);
        // What an unconditional copy gives.
        let plain = lower(&domains, WEAK).unwrap();
        assert_eq!(plain.guard, Guard::Always);
        let mut world = World::new(&domains, &plain);
        world.run(&domains, &plain, Direction::Load);
        let by_itself = world.judged(&domains).1;
        assert_eq!(lower(&domains, PADDED), Err(LowerError::Padding));
        match how {
            Level::One => {
                seen[0] += 1;
                assert!(by_itself, "{domains:?}");
                assert_eq!(lower(&domains, STRONG).unwrap().guard, Guard::Always);
            }
            Level::Two(_) => {
                seen[1] += 1;
                needed += u32::from(!by_itself);
                let lowering = lower(&domains, STRONG).unwrap();
                redirected += u32::from(matches!(lowering.guard, Guard::OutOfBounds(..)));
                let mut world = World::new(&domains, &lowering);
                world.run(&domains, &lowering, Direction::Load);
                assert!(world.judged(&domains).1, "{domains:?}\n{lowering:?}");
            }
            Level::Three(counterexample) => {
                seen[2] += 1;
                assert_eq!(lower(&domains, STRONG), Err(LowerError::Impossible(counterexample)));
            }
        }
    }
    assert!(seen.iter().all(|n| *n > 200) && needed > 200 && redirected >= needed, "{seen:?} {needed} {redirected}");
}

/// No hole reaches the tensor.
#[test]
fn stores_bring_each_element_once_and_nothing_else() {
    let mut rng = Rng::new(6);
    let (mut stored, mut refused) = (0, 0);
    for _ in 0..3000 {
        let domains = schedule(&mut rng);
        let lowering = match lower(&domains, Transfer::Store) {
            Ok(lowering) => lowering,
            Err(LowerError::Impossible(_)) => {
                refused += 1;
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        let mut world = World::new(&domains, &lowering);
        let places = world.places(&domains);
        let before = world.global.clone();
        // Every place has a value of its own, holes too.
        (0..world.shared.len()).for_each(|i| world.shared[i] = DIRT | i as u16);
        world.run(&domains, &lowering, Direction::Store);
        for (i, place) in places.iter().enumerate() {
            let expected = place.map_or(before[i], |place| world.shared[place]);
            assert_eq!(world.global[i], expected, "{domains:?}\n{lowering:?}");
            stored += u32::from(place.is_some());
        }
    }
    assert!(stored > 10_000 && refused > 100, "{stored} {refused}");
}

/// The operations that a code generator gets, against following the steps backwards one by one; and their ranges.
#[test]
fn indices_are_what_following_the_steps_gives() {
    let mut rng = Rng::new(7);
    for _ in 0..600 {
        let domains = schedule(&mut rng);
        let leaves: Vec<Id> = domains.loops().chain(domains.tile()).collect();
        let (values, of) = indices(&domains);
        let ranges = values.ranges(&domains);
        every(&domains, &leaves, |at| {
            let leaf = |id: Id| at[leaves.iter().position(|l| *l == id).unwrap()];
            let all = values.eval(leaf);
            let expected = backwards(&domains, leaf);
            assert!(of.iter().zip(&expected).all(|(v, e)| all[v.number()] == *e), "{domains:?}");
            let within = |(v, range): (&i64, &Option<(i64, i64)>)| range.is_some_and(|(l, h)| (l..=h).contains(v));
            assert!(all.iter().zip(&ranges).all(within), "{domains:?}");
        });
    }
}

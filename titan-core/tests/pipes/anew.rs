//! Loops in which rings begin anew, against runs of their items: the ring is empty wherever an iteration begins.

use super::program::Item::{Fill, Give, Grab, If, Loop, Put, Read, Take};
use super::program::{Args, Count, Guard, Item, Program, value};
use super::random::{Rng, single};
use std::collections::{BTreeMap, BTreeSet};
use titan_core::text::parse_one;
use titan_core::verify::verify;

const N: Count = Count { extent: Some(0), more: 0 };
const ONCE: Count = Count { extent: None, more: 1 };
const M: Count = Count { extent: Some(1), more: 0 };

/// A loop, by the positions of it and of what is around it.
type Path = Vec<usize>;

/// A run of one role: how many slots of each ring are taken, and where iterations begin although some are.
struct Taken {
    args: Args,
    slots: Vec<i64>,
    vars: BTreeMap<usize, usize>,
    occupied: BTreeSet<(Path, usize)>,
}

impl Taken {
    fn items(&mut self, items: &[Item], at: &Path, j: i64) {
        for (i, item) in items.iter().enumerate() {
            let here = [&at[..], &[i]].concat();
            match item {
                Fill(ring) => self.slots[*ring] += 1,
                Read(ring) => self.slots[*ring] -= 1,
                Take(ring, var) | Grab(ring, var) => drop(self.vars.insert(*var, *ring)),
                Give(var) => self.slots[self.vars[var]] -= 1,
                Put(var) => self.slots[self.vars[var]] += 1,
                If(guard, body) => {
                    if guard.holds(j, self.args) {
                        self.items(body, &here, j);
                    }
                }
                Loop(count, body) => {
                    for j in 0..value(*count, self.args.extents) {
                        let occupied = (0..self.slots.len()).filter(|ring| self.slots[*ring] != 0);
                        self.occupied.extend(occupied.map(|ring| (here.clone(), ring)));
                        self.items(body, &here, j);
                    }
                }
            }
        }
    }
}

/// The loops around each thing that is done to a ring.
fn around(items: &[Item], at: &Path, loops: &[Path], ring: usize, found: &mut Vec<Vec<Path>>) {
    let mut vars = BTreeSet::new();
    for (i, item) in items.iter().enumerate() {
        let here = [&at[..], &[i]].concat();
        match item {
            Fill(r) | Read(r) if *r == ring => found.push(loops.to_vec()),
            Take(r, var) | Grab(r, var) if *r == ring => {
                vars.insert(*var);
                found.push(loops.to_vec());
            }
            Give(var) | Put(var) if vars.contains(var) => found.push(loops.to_vec()),
            If(_, body) => around(body, &here, loops, ring, found),
            Loop(_, body) => {
                let inside = [loops, std::slice::from_ref(&here)].concat();
                around(body, &here, &inside, ring, found);
            }
            Fill(_) | Read(_) | Take(..) | Grab(..) | Give(_) | Put(_) => {}
        }
    }
}

/// The loops that are around everything that is done to a ring.
fn common(program: &Program, ring: usize) -> Vec<Path> {
    let mut found = Vec::new();
    around(&program.roles[0], &Vec::new(), &[], ring, &mut found);
    let shortest = found.iter().map(Vec::len).min().unwrap_or(0);
    let first = found.first().cloned().unwrap_or_default();
    first.into_iter().take(shortest).take_while(|p| found.iter().all(|other| other.contains(p))).collect()
}

/// What the verifier says, if it accepts the program.
fn told(program: &Program) -> Option<Vec<usize>> {
    let text = program.text();
    let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    verify(kernel).ok().map(|verified| verified.rings_begin_anew().to_vec())
}

/// The loops in which something is taken where an iteration begins, in some run.
fn occupied(program: &Program) -> BTreeSet<(Path, usize)> {
    let extents = (0..5).flat_map(|n| (0..4).map(move |m| [n, m]));
    let all = extents.flat_map(|extents| [0, u64::MAX, 0b1010_0110].map(|f| Args { extents, flags: [f, f >> 1] }));
    let mut found = BTreeSet::new();
    for args in all {
        let slots = vec![0; program.slots.len()];
        let mut run = Taken { args, slots, vars: BTreeMap::new(), occupied: BTreeSet::new() };
        run.items(&program.roles[0], &Vec::new(), 0);
        found.append(&mut run.occupied);
    }
    found
}

#[test]
fn rings_are_empty_where_they_begin_anew() {
    let mut rng = Rng(0x2545_f491_4f6c_dd1d);
    let (mut anew, mut not, mut missed) = (0, 0, 0);
    for _ in 0..1500 {
        let mut program = single(&mut rng);
        if rng.one_in(2) {
            // One more loop around it all.
            program.roles[0] = vec![Loop(if rng.one_in(2) { M } else { N }, program.roles[0].clone())];
        }
        let Some(told) = told(&program) else { continue };
        let occupied = occupied(&program);
        for (ring, told) in told.iter().enumerate() {
            let loops = common(&program, ring);
            let empty = |n: &usize| !occupied.contains(&(loops[*n].clone(), ring));
            assert!(*told == 0 || empty(&(told - 1)), "ring {ring}, {told} loops\n{}", program.text());
            let most = (0..loops.len()).rev().find(empty).map_or(0, |n| n + 1);
            anew += usize::from(*told > 0);
            not += usize::from(*told == 0 && !loops.is_empty());
            missed += usize::from(*told != most);
        }
    }
    assert!(anew > 600 && not > 30, "{anew} rings begin anew, {not} do not");
    assert!(missed * 20 < anew, "of {anew} rings that begin anew, {missed} are not found in their innermost loop");
}

#[test]
fn which_loop_it_is() {
    let one = |items: &[Item]| {
        let program = Program { slots: vec![3], roles: vec![items.to_vec()] };
        told(&program).unwrap_or_else(|| panic!("{:?}\n{}", program.verdict(), program.text()))
    };
    let ahead = |by: i64| {
        let body = vec![If(Guard::Below(0, N), vec![Fill(0)]), If(Guard::From(by), vec![Read(0)])];
        Loop(Count { extent: Some(0), more: by }, body)
    };
    assert_eq!(one(&[Fill(0), Read(0)]), [0]);
    assert_eq!(one(&[Loop(M, vec![Loop(N, vec![Fill(0), Read(0)])])]), [2]);
    // Copies run ahead inside of the loop, or across its iterations.
    assert_eq!(one(&[ahead(0)]), [1]);
    assert_eq!(one(&[ahead(1)]), [0]);
    assert_eq!(one(&[Loop(M, vec![ahead(2)])]), [1]);
    assert_eq!(one(&[Loop(M, vec![Fill(0), Loop(N, vec![Fill(0), Read(0)]), Read(0)])]), [1]);
    assert_eq!(one(&[Fill(0), Loop(N, vec![Fill(0), Read(0)]), Read(0)]), [0]);
    // A stage that is held to the end of an iteration, and one that is held beyond the loop.
    assert_eq!(one(&[Loop(M, vec![Fill(0), Take(0, 0), Loop(ONCE, vec![Fill(0), Read(0)]), Give(0)])]), [1]);
    assert_eq!(one(&[Fill(0), Take(0, 0), Loop(ONCE, vec![Fill(0), Read(0)]), Give(0)]), [0]);
    // Roles are not at a loop together.
    let roles = vec![vec![Loop(N, vec![Fill(0)])], vec![Loop(N, vec![Read(0)])]];
    assert_eq!(told(&Program { slots: vec![3], roles }), Some(vec![0]));
}

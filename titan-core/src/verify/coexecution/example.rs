//! Concrete launch arguments, with which a fault that could not be ruled out is confirmed or not.
//!
//! A failed proof does not show that the kernel is wrong: two loops may have equal iteration counts that could not be proved equal. So
//! after a fault for unknown arguments, the roles are executed once more for a few small ones. If there is a fault again, and only
//! these numbers led to it, it is reported as certain, with the numbers. Otherwise it is reported as something that could not be shown.

use super::key::Key;
use crate::ir::{HostNames, Kernel, OpKind};

/// The values that are tried for each argument. Extents that are divided by tile sizes need large ones.
const NUMBERS: [i64; 7] = [1, 0, 2, 3, 5, 200, 1000];

/// The number of arguments that are varied independently.
const VARIED: u32 = 3;

/// The numbers of arguments that are large while all others are 1, and how many arguments are so in turn.
const LARGE: [i64; 2] = [200, 1000];
const LARGE_IN_TURN: usize = 6;

/// Numbers for arguments, assigned in the order in which arguments are requested.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Example {
    numbers: Vec<i64>,
    asked: Vec<Key>,
    /// Whether no further arguments get numbers.
    whole: bool,
}

impl Example {
    /// Examples in which all arguments are equal.
    pub(super) fn equal() -> impl Iterator<Item = Example> {
        NUMBERS.iter().map(|n| Example { numbers: vec![*n], asked: Vec::new(), whole: false })
    }

    /// Examples in which this many arguments differ.
    pub(super) fn mixed(arguments: usize) -> impl Iterator<Item = Example> {
        let (n, places) = (NUMBERS.len(), u32::try_from(arguments).unwrap_or(VARIED).min(VARIED));
        let all = (0..n.pow(places)).map(move |i| (0..places).map(|at| NUMBERS[i / n.pow(at) % n]).collect());
        all.filter(|numbers: &Vec<i64>| numbers.windows(2).any(|w| w[0] != w[1])).map(|numbers| Example {
            numbers,
            asked: Vec::new(),
            whole: false,
        })
    }

    /// Examples in which one argument is large and all others are 1: a single tile with several steps.
    pub(super) fn one_large(arguments: usize) -> impl Iterator<Item = Example> {
        (0..arguments.min(LARGE_IN_TURN)).flat_map(|place| {
            LARGE.iter().map(move |large| {
                let mut numbers = vec![1; place];
                numbers.extend([*large, 1]);
                Example { numbers, asked: Vec::new(), whole: false }
            })
        })
    }

    /// Arguments that were not requested so far get no numbers.
    pub(super) fn complete(&mut self) {
        self.whole = true;
    }

    /// The number of requested arguments.
    pub(super) fn arguments(&self) -> usize {
        self.asked.len()
    }

    /// The number of an argument; program ids are those of the first program.
    pub(super) fn number(&mut self, key: &Key) -> Option<i64> {
        match key {
            Key::Symbol(_) | Key::Dim(..) | Key::Value(_, 0) => {
                let known = self.asked.iter().position(|k| k == key);
                if known.is_none() && self.whole {
                    return None;
                }
                let at = known.unwrap_or_else(|| {
                    self.asked.push(key.clone());
                    self.asked.len() - 1
                });
                self.numbers.get(at).or(self.numbers.last()).copied()
            }
            Key::Op(OpKind::ProgramId(_), args) if args.is_empty() => Some(0),
            Key::Value(..) | Key::Counter(_) | Key::Quotient(..) | Key::Product(_) | Key::Op(..) => None,
        }
    }

    /// The arguments in words.
    pub(super) fn words(&self, kernel: &Kernel) -> String {
        let one = |(i, key): (usize, &Key)| {
            let number = self.numbers.get(i).or(self.numbers.last()).copied().unwrap_or_default();
            let name = match key {
                Key::Symbol(symbol) => kernel.sig.symbol(*symbol),
                Key::Dim(param, axis) => format!("{}.dim({axis})", kernel.sig.param(*param)),
                Key::Value(value, _) => kernel.display_name(*value),
                Key::Counter(_) | Key::Quotient(..) | Key::Product(_) | Key::Op(..) => return None,
            };
            Some(format!("`{name}` = {number}"))
        };
        let all: Vec<String> = self.asked.iter().enumerate().filter_map(one).collect();
        match &all[..] {
            [] => String::new(),
            [one] => one.clone(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        }
    }
}

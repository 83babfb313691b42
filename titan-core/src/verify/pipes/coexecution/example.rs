//! Numbers for what a launch gives: with them a fault that could not be ruled out is shown to happen, or not.
//!
//! A proof that fails says nothing about the kernel: a loop may run as often as another without that being shown. So roles that do
//! not fit together for unknown arguments are run once more for a few small ones. If they do not fit there either, and nothing
//! but these numbers decided that, the fault is told as one, with the numbers. Otherwise it is told as what could not be shown.

use super::values::Key;
use crate::ir::{HostNames, Kernel, OpKind};

/// What is tried for each argument. Extents that are counted in tiles need some that are large.
const NUMBERS: [i64; 7] = [1, 0, 2, 3, 5, 200, 1000];

/// So many arguments are varied independently of each other.
const VARIED: u32 = 3;

/// Numbers for arguments, given out in the order in which these are asked for.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Example {
    numbers: Vec<i64>,
    asked: Vec<Key>,
    /// Whether no more arguments get numbers.
    whole: bool,
}

impl Example {
    /// Examples in which all arguments are equal.
    pub(super) fn equal() -> impl Iterator<Item = Example> {
        NUMBERS.iter().map(|n| Example { numbers: vec![*n], asked: Vec::new(), whole: false })
    }

    /// Examples in which so many arguments are not.
    pub(super) fn mixed(arguments: usize) -> impl Iterator<Item = Example> {
        let (n, places) = (NUMBERS.len(), u32::try_from(arguments).unwrap_or(VARIED).min(VARIED));
        let all = (0..n.pow(places)).map(move |i| (0..places).map(|at| NUMBERS[i / n.pow(at) % n]).collect());
        all.filter(|numbers: &Vec<i64>| numbers.windows(2).any(|w| w[0] != w[1])).map(|numbers| Example {
            numbers,
            asked: Vec::new(),
            whole: false,
        })
    }

    /// Arguments that were not asked for get no numbers from here on.
    pub(super) fn complete(&mut self) {
        self.whole = true;
    }

    /// How many arguments were asked for.
    pub(super) fn arguments(&self) -> usize {
        self.asked.len()
    }

    /// The number of an argument; the first program is looked at.
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

//! The meanings of atoms: what makes two symbolic integers the same unknown.

use super::linear::{Atom, Condition, Linear};
use crate::ir::{OpKind, Symbol, Value};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The meaning of an atom; equal keys are one atom.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Key {
    /// A shape name.
    Symbol(Symbol),
    /// The extent of a parameter's axis.
    Dim(usize, usize),
    /// An unknown value, in one iteration of the loops around it.
    Value(Value, u32),
    /// The counter of a loop.
    Counter(u32),
    /// A quotient of two integers.
    Quotient(Linear, i64),
    /// A product of atoms that are not products themselves, sorted.
    Product(Vec<Atom>),
    /// An operation on scalars, with its operands.
    Op(OpKind, Vec<Arg>),
}

/// An operand as part of a key.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(super) enum Arg {
    Int(Linear),
    Condition(Condition),
    /// A parameter.
    Param(usize),
    Value(Value, u32),
}

impl Key {
    /// A number that is the same for equal keys, and mostly different for others. It only shortens searches: atoms are numbered in the order
    /// in which they are found, so that no output depends on it.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        std::mem::discriminant(self).hash(&mut hasher);
        match self {
            Key::Symbol(name) => name.hash(&mut hasher),
            Key::Dim(param, axis) => (param, axis).hash(&mut hasher),
            Key::Value(value, age) => (value, age).hash(&mut hasher),
            Key::Counter(number) => number.hash(&mut hasher),
            Key::Quotient(of, by) => (of, by).hash(&mut hasher),
            Key::Product(atoms) => atoms.hash(&mut hasher),
            Key::Op(kind, args) => (std::mem::discriminant(kind), args).hash(&mut hasher),
        }
        hasher.finish()
    }
}

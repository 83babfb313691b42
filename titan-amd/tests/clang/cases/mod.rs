//! What each kernel must compute, written in Rust from the kernel's source.

mod atomics;
mod buffers;
mod control;
mod divide;
mod elementwise;
mod exchange;
mod generic;
mod grid;
mod group;
mod integer;
mod ir;
mod local;
mod machine;
mod matrix;
mod memory;
mod plain;
mod precise;
mod small;
mod stack;
mod structs;
mod unaligned;
mod values;
mod vectors;
mod wave;

use crate::trial::Trial;

pub(crate) type Case = (&'static str, fn(&mut Trial<'_>));

pub(crate) fn all() -> impl Iterator<Item = Case> {
    [
        elementwise::CASES,
        integer::CASES,
        memory::CASES,
        group::CASES,
        wave::CASES,
        atomics::CASES,
        precise::CASES,
        matrix::CASES,
        exchange::CASES,
        divide::CASES,
        generic::CASES,
        stack::CASES,
        unaligned::CASES,
        structs::CASES,
        small::CASES,
        control::CASES,
        local::CASES,
        grid::CASES,
        vectors::CASES,
        plain::CASES,
        ir::CASES,
        machine::CASES,
        buffers::CASES,
        values::CASES,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// A function of each element.
fn map<A: Copy, R>(a: &[A], f: impl Fn(A) -> R) -> Vec<R> {
    a.iter().map(|x| f(*x)).collect()
}

/// A function of each pair.
fn zip<A: Copy, B: Copy, R>(a: &[A], b: &[B], f: impl Fn(A, B) -> R) -> Vec<R> {
    a.iter().zip(b).map(|(x, y)| f(*x, *y)).collect()
}

/// Several results of each pair.
fn flat<A: Copy, B: Copy, R, const N: usize>(a: &[A], b: &[B], f: impl Fn(A, B) -> [R; N]) -> Vec<R> {
    a.iter().zip(b).flat_map(|(x, y)| f(*x, *y)).collect()
}

//! Modulo scheduling of graphs: the bounds, the search and the checker against brute force, and the text forms.
//!
//! | module | what it shows |
//! |---|---|
//! | `validation` | every error of a graph has its code and its place |
//! | `texts` | what is read prints back to the same; random and damaged texts never panic |
//! | `ratios` | the recurrence bound is the maximum over all simple cycles |
//! | `known` | the loops with published answers |
//! | `optimal` | the intervals that are found, against those of an exact search |
//! | `mutants` | damaged schedules are refused exactly if an execution refuses them |
//! | `limits` | the limits of steps and of live weight, and the sequential schedule |
//!
//! `damage`, `exact`, `execution` and `random` are what they compare with; none of them uses code of the product but the data types.
//!
//! Deliberately absent: times, which depend on the machine.

mod damage;
mod exact;
mod execution;
mod known;
mod limits;
mod mutants;
mod optimal;
mod random;
mod ratios;
mod texts;
mod validation;

//! Pipelines before the verifier: programs of roles, as text, against a run of their steps.

mod groups;
mod program;
mod random;
mod shapes;

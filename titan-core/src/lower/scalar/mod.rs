//! Arithmetic on one element: the meanings of `docs/semantics.md` in operations of a lane.

//! Rings.

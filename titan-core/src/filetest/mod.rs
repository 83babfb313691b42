//! Runs `.tir` files as tests.

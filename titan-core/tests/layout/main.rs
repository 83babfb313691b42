//! Layouts against definitions written a second time: every element held once, the swizzle of tensor maps bit by bit,
//! register maps by looking at every thread, and, where it can be had, another compiler's layouts.

mod blocked;
#[path = "../shared/filetests.rs"]
mod filetests;
mod fragments;
mod oracle;
mod planned;
mod random;
mod shared;
#[path = "../shared/triton.rs"]
mod triton;
mod ways;

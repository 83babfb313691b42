//! Checks of arguments, the memory that they cover, and the words that a kernel on a GPU is given and gives back.

mod abi;
mod footprint;
mod messages;
mod report;

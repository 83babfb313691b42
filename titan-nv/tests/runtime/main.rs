//! The interface to the driver, without a driver: its numbers against bindings that were made from the header, its errors, its absence.

mod driver;
mod error;
mod once;
mod sys;
mod tensor;

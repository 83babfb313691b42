//! Rules of pipelines that each role obeys by itself, in the order in which they are checked:
//!
//! * `shape`: the declarations of rings and roles, the contents of stages, and the roles that fill and read (rules 28 to 33 and 35);
//! * `instances`: roles with several instances, which take tiles in turn (rule 77);
//! * `tokens`: every token is consumed once on every path, and no stage is read after its release (rules 36 to 40);
//! * `stores`: elements that are stored from staging slots are not accessed otherwise afterwards (rule 63).
//!
//! Rules about all roles together are checked by `crate::verify::coexecution`. `anew` derives from it where rings restart empty.

pub(super) mod anew;
pub(super) mod instances;
pub(super) mod shape;
mod sides;
pub(super) mod stores;
pub(super) mod tensors;
pub(super) mod tokens;

use crate::ir::{Kernel, Pipe, Token, Ty, Value};

/// The ring of a token.
fn ring_of(kernel: &Kernel, value: Value) -> Option<Pipe> {
    kernel.ty(value).ring()
}

/// A token in messages: its name and ring.
fn named(kernel: &Kernel, value: Value) -> String {
    let own = kernel.value(value).name.as_ref().map(|n| format!("`{n}`"));
    let kind = match kernel.ty(value) {
        Ty::Token(token, pipe) => {
            let word = match token {
                Token::Slot => "a slot",
                Token::Ready => "a pending wait for a stage",
                Token::Stage | Token::Rperm | Token::Consumed => "a stage",
                Token::Part => "a part of a stage",
                Token::Written => "a slot that was written",
                Token::Store => "a store from a slot",
            };
            format!("{word} of `{}`", kernel.pipe_name(pipe))
        }
        Ty::Compute(..) => "an MMA in flight".to_owned(),
        Ty::Acc(..) => "an accumulator with MMAs in flight".to_owned(),
        Ty::Scalar(_) | Ty::Tile(..) | Ty::Tensor(..) | Ty::Source(..) | Ty::Smem(..) | Ty::Barrier(_) => {
            "a value".to_owned()
        }
    };
    match own {
        Some(name) => format!("{name}, {kind},"),
        None => kind,
    }
}

//! The sanitizer, rule by rule: a program of events that breaks the rule, and one, minimally different, that does not;
//! and random programs against the race observer.
#![expect(clippy::print_stdout, reason = "how fast it was")]

mod barrier;
mod commit;
mod end;
mod harness;
mod messages;
mod oracle;
mod proxy;
mod publish;
mod random;
mod state;
mod tensor;
mod visible;

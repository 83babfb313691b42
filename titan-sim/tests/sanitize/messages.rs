//! What findings say, with a customer's names; and that the page lists every rule.

use crate::harness::*;
use std::path::Path;
use titan_sim::engine::{Access, Agent, BarrierId, Class, Place, SpaceId};
use titan_sim::sanitize::{Names, Rule};

struct Ring;

impl Names for Ring {
    fn agent(&self, agent: Agent) -> String {
        ["the producer", "the consumer"][agent.index()].to_owned()
    }
    fn place(&self, place: Place, tag: u64) -> String {
        format!("at operation {} of time {tag}", place.index())
    }
    fn bytes(&self, _: SpaceId, address: u64, len: u64) -> String {
        format!("{len} bytes of slot {}", address / 64)
    }
    fn barrier(&self, barrier: BarrierId) -> String {
        ["full", "empty"][barrier.index()].to_owned()
    }
    fn class(&self, _: Class) -> String {
        "a copy".to_owned()
    }
}

#[test]
fn findings_speak_the_customers_words() {
    let mut w = world(2);
    let b = w.barrier(1);
    w.arrive_expecting(0, b, 64);
    w.op(0, LOAD, &[(W, 0, 64, 64)], &[bytes(b, 64)]);
    let a = Access { tag: 4, ..w.base(1, R, 0, 96, 64) };
    w.access(a);
    let said = w.only().explain(&Ring);
    let wanted = "\
[outstanding-write] 32 bytes of slot 1: a write to these bytes is not ordered before the access (TMA load)
  now: the consumer reads 64 bytes of slot 1, at operation 4 of time 4
  before: a copy of the producer writes 64 bytes of slot 1, at operation 3 of time 0";
    assert_eq!(said, wanted);
    let mut w = world(2);
    let (full, empty) = (w.barrier(1), w.barrier(1));
    w.block(0, empty, false);
    w.block(1, full, false);
    let said = w.only().explain(&Ring);
    assert!(
        said.contains(
            "waiting: the producer waits at empty, at operation 2 of time 0, for the phase of parity 0 of empty"
        ),
        "{said}"
    );
}

#[test]
fn the_page_has_every_rule_once() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sanitizer.md");
    let page = std::fs::read_to_string(path).unwrap();
    for rule in Rule::ALL {
        let rows = page.lines().filter(|l| l.starts_with(&format!("| `{}` |", rule.code()))).count();
        assert_eq!(rows, 1, "docs/sanitizer.md: {}", rule.code());
        assert!(!rule.says().is_empty() && rule.says().chars().next().is_some_and(char::is_lowercase));
    }
}

//! Encoding and decoding, printing and parsing are inverse, on thousands of random instructions.

use crate::random::instruction;
use titan_amd::isa::{all, decode, parse};
use titan_sim::engine::Rng;

#[test]
fn instructions_survive_bytes_and_text() {
    let rows: Vec<_> = all().flat_map(|row| row.forms().into_iter().map(move |form| (row, form))).collect();
    let mut rng = Rng::new(7);
    for i in 0..10_000 {
        let (row, form) = rows[i % rows.len()];
        let inst = instruction(&mut rng, row, form);
        let bytes = inst.bytes().unwrap();
        assert_eq!(bytes.len() as u64, inst.size(), "{inst}");
        let (decoded, size) = decode(&bytes).unwrap_or_else(|e| panic!("{inst}: {e}"));
        assert_eq!((&decoded, size), (&inst, bytes.len()), "{inst} became {decoded}");
        let parsed = parse(&inst.to_string()).unwrap_or_else(|e| panic!("{inst}: {e}"));
        assert_eq!(parsed, inst, "{inst} was read as {parsed}");
    }
}

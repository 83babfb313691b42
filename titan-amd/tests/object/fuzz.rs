//! Corrupted objects: an error or an object that keeps its promises, never a panic.

use crate::programs::program;
use titan_amd::object::CodeObject;
use titan_amd::object::msgpack::Value;
use titan_sim::engine::Rng;

/// What is promised of anything that was read.
fn check(object: &CodeObject) {
    for kernel in &object.kernels {
        assert!(object.code.iter().any(|c| c.contains(&kernel.entry)));
        assert!(object.bytes(kernel.descriptor_address, 64).is_some());
        assert!(kernel.descriptor.group_segment_bytes <= 65_536);
        assert!(kernel.args().iter().all(|a| a.offset + a.size <= kernel.descriptor.kernarg_bytes));
    }
    for range in object.code.iter().chain(&object.writable) {
        assert!(range.end <= object.image.len() as u64);
    }
    assert!(object.variables.iter().all(|(_, at, len)| object.bytes(*at, *len).is_some()));
}

#[test]
fn corrupted_objects_never_panic() {
    let good = program().to_bytes().unwrap();
    let mut rng = Rng::new(11);
    let (mut read, mut refused) = (0, 0);
    for i in 0..60_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + rng.below(4) {
            // Headers and tables are hit more often than code.
            let at = if i % 2 == 0 { rng.below(512) } else { rng.below(bytes.len()) };
            match rng.below(4) {
                0 => bytes[at] ^= 1 << rng.below(8),
                1 => bytes[at] = rng.next_u64() as u8,
                2 => bytes[at] = [0, 0xFF, 0x7F, 0x80][rng.below(4)],
                _ => {
                    let end = (at + 8).min(bytes.len());
                    let random = rng.next_u64().to_le_bytes();
                    bytes[at..end].copy_from_slice(&random[..end - at]);
                }
            }
        }
        if rng.below(16) == 0 {
            bytes.truncate(rng.below(bytes.len()));
        }
        match CodeObject::read(&bytes) {
            Ok(object) => {
                check(&object);
                read += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(read > 1000 && refused > 20_000, "{read} were read, {refused} refused");
}

#[test]
fn random_metadata_never_panic() {
    let mut rng = Rng::new(12);
    for _ in 0..100_000 {
        let bytes: Vec<u8> = (0..rng.below(40)).map(|_| rng.next_u64() as u8).collect();
        if let Ok(value) = Value::from_bytes(&bytes) {
            let again = value.to_bytes();
            // Not `==`: a number that is none is not equal to itself.
            assert_eq!(Value::from_bytes(&again).unwrap().to_bytes(), again);
        }
    }
}

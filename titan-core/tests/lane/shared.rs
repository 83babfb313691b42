//! Buffers that have their places: each becomes an address, and the last one says how much memory there is.

use titan_core::lane::shared::place;
use titan_core::lane::{Builder, IntBin, OpKind, Space};

#[test]
fn addresses_are_the_base_and_the_offset() {
    let mut b = Builder::new("k", vec![], 64, 32);
    let buffers = [b.buffer("first", 48, 256), b.buffer("second", 256, 0)];
    let at = buffers.map(|buffer| b.one(OpKind::Buffer(buffer), &[]));
    let sum = b.add(at[0], at[1]);
    b.op(OpKind::Store { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false }, &[at[0], sum]);
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands fit");
    place(&mut func);
    titan_core::lane::verify(&func).expect("it is right");
    assert_eq!(func.shared_bytes, 304);
    for (value, offset) in at.iter().zip([256, 0]) {
        let op = func.def_op(*value).expect("an operation");
        assert_eq!(op.kind, OpKind::Int(IntBin::Add));
        assert_eq!(func.def_op(op.args[0]).map(|o| &o.kind), Some(&OpKind::SharedBase));
        assert_eq!(func.constant(op.args[1]), Some(offset));
    }
}

#[test]
fn the_last_byte_of_any_buffer_says_how_much_there_is() {
    for (buffers, wanted) in [(&[][..], 0), (&[(64, 0), (32, 16)][..], 64), (&[(64, 0), (32, 48)][..], 80)] {
        let mut b = Builder::new("k", vec![], 64, 32);
        for (bytes, offset) in buffers {
            b.buffer("b", *bytes, *offset);
        }
        b.terminate(OpKind::Return, &[]);
        let mut func = b.finish().expect("operands fit");
        place(&mut func);
        assert_eq!(func.shared_bytes, wanted, "{buffers:?}");
    }
}

//! The words of the parameter block.

use titan_core::ir::{Const, Elem};
use titan_core::launch::abi::{GpuArg, Slot, offsets, pack};

#[test]
fn words_lie_on_multiples_of_their_size() {
    let slots = [
        Slot::Address(0),
        Slot::Extent(0, 0),
        Slot::Stride(0, 0),
        Slot::Scalar { param: 1, wide: false },
        Slot::Report,
    ];
    let args = [
        GpuArg::Tensor { address: 0x1122, extents: vec![3], strides: vec![-2] },
        GpuArg::Scalar(Const::Float(Elem::F16, 1.0)),
    ];
    let bytes = pack(&slots, &args, 7);
    assert_eq!(offsets(&slots), (vec![0, 8, 16, 24, 32], 40));
    assert_eq!(bytes[..8], 0x1122u64.to_le_bytes());
    assert_eq!(bytes[8..12], 3i32.to_le_bytes());
    assert_eq!(bytes[16..24], (-2i64).to_le_bytes());
    assert_eq!(bytes[24..28], 0x3c00u32.to_le_bytes());
    assert_eq!(bytes[32..], 7u64.to_le_bytes());
}

#[test]
fn an_axis_of_one_element_has_no_stride() {
    let slots = [Slot::Stride(0, 0), Slot::Stride(0, 1)];
    let one = |rows| GpuArg::Tensor { address: 16, extents: vec![rows, 8], strides: vec![9, 1] };
    for (rows, stride) in [(0, 0i64), (1, 0), (2, 9)] {
        assert_eq!(pack(&slots, &[one(rows)], 0), [stride.to_le_bytes(), 1i64.to_le_bytes()].concat());
    }
}

#[test]
fn an_absent_tensor_is_zeros() {
    let slots = [Slot::Address(0), Slot::Extent(0, 0), Slot::Stride(0, 0)];
    assert!(pack(&slots, &[GpuArg::Absent], 7).iter().all(|b| *b == 0));
}

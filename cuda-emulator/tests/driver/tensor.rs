//! Tensor maps: what the encoder takes, and what it refuses.

use crate::harness::{Cuda, INVALID_VALUE, NOT_SUPPORTED, OK, call};
use std::ffi::c_void;
use std::ptr;
use titan_nv::tma::{Element, Fill, L2Promotion, Swizzle, TensorMap};

/// The arguments of the encoder.
struct Arguments {
    numbers: [u32; 6],
    address: u64,
    extents: Vec<u64>,
    strides: Vec<u64>,
    boxes: Vec<u32>,
    elements: Vec<u32>,
    /// Which pointer is null, counted from 0, and how far the place is moved, in bytes.
    null: Option<usize>,
    moved: usize,
}

/// The numbers: element type, rank, interleave, swizzle, promotion, fill.
const NUMBERS: [u32; 6] = [9, 2, 0, 3, 3, 0];

fn arguments() -> Arguments {
    Arguments {
        numbers: NUMBERS,
        address: 0x7000_1000,
        extents: vec![100, 70],
        strides: vec![208],
        boxes: vec![64, 128],
        elements: vec![1, 2],
        null: None,
        moved: 0,
    }
}

#[repr(align(128))]
struct Place([u8; 256]);

fn encode(cuda: &Cuda, with: &Arguments) -> (u32, [u8; 128]) {
    let mut place = Place([0xAB; 256]);
    let [element, rank, interleave, swizzle, promotion, fill] = with.numbers;
    let is_null = |i| with.null == Some(i);
    let map: *mut u8 = if is_null(0) { ptr::null_mut() } else { (&raw mut place.0[with.moved]).cast() };
    let address: *mut c_void =
        if is_null(1) { ptr::null_mut() } else { ptr::without_provenance_mut(with.address as usize) };
    let wide = |i, list: &Vec<u64>| if is_null(i) { ptr::null() } else { list.as_ptr() };
    let narrow = |i, list: &Vec<u32>| if is_null(i) { ptr::null() } else { list.as_ptr() };
    let code = call!(
        cuda,
        cuTensorMapEncodeTiled(
            map => *mut u8,
            element => u32,
            rank => u32,
            address => *mut c_void,
            wide(2, &with.extents) => *const u64,
            wide(3, &with.strides) => *const u64,
            narrow(4, &with.boxes) => *const u32,
            narrow(5, &with.elements) => *const u32,
            interleave => u32,
            swizzle => u32,
            promotion => u32,
            fill => u32,
        )
    );
    (code, place.0[with.moved..][..128].try_into().unwrap())
}

fn hopper() -> Cuda {
    Cuda::new(&[("DEVICES", "sm_90:sms=1:memory=16")])
}

#[test]
fn maps_are_written_as_the_emulator_reads_them() {
    let cuda = hopper();
    let map = TensorMap::tiled(Element::Bf16, 0x7000_1000, &[100, 70], &[208], &[64, 128]);
    let map = TensorMap { element_strides: [1, 2, 1, 1, 1], swizzle: Swizzle::B128, l2: L2Promotion::B256, ..map };
    for moved in [0, 64] {
        assert_eq!(encode(&cuda, &Arguments { moved, ..arguments() }), (OK, map.to_bytes()));
    }
    let nan = encode(&cuda, &Arguments { numbers: [9, 2, 0, 3, 3, 1], ..arguments() }).1;
    assert_eq!(TensorMap::from_bytes(&nan), Some(TensorMap { fill: Fill::Nan, ..map }));
    // One dimension has no strides, and what is behind the rank is not looked at.
    let (code, bytes) = encode(&cuda, &Arguments { numbers: [9, 1, 0, 3, 3, 0], null: Some(3), ..arguments() });
    let one = TensorMap::from_bytes(&bytes).unwrap();
    assert_eq!((code, one.rank, one.extents, one.strides), (OK, 1, [100, 1, 1, 1, 1], [0; 4]));
}

#[test]
fn what_the_driver_refuses_is_refused() {
    let cuda = hopper();
    let refused = |why: &str, with: Arguments| {
        let (code, bytes) = encode(&cuda, &with);
        assert_eq!((code, bytes), (INVALID_VALUE, [0xAB; 128]), "{why}");
    };
    for null in [0, 1, 2, 3, 4, 5] {
        let (code, _) = encode(&cuda, &Arguments { null: Some(null), ..arguments() });
        assert_eq!(code, INVALID_VALUE, "pointer {null}");
    }
    for moved in [1, 8, 16, 32] {
        refused("place", Arguments { moved, ..arguments() });
    }
    let beyond = [(0, 16), (1, 0), (1, 6), (1, u32::MAX), (2, 3), (3, 7), (4, 4), (5, 2)];
    for (which, number) in beyond {
        let mut numbers = NUMBERS;
        numbers[which] = number;
        refused(&format!("{which}: {number}"), Arguments { numbers, ..arguments() });
    }
    refused("address", Arguments { address: 0x7000_1008, ..arguments() });
    refused("extent", Arguments { extents: vec![100, 0], ..arguments() });
    refused("extent", Arguments { extents: vec![(1 << 32) + 1, 1], ..arguments() });
    refused("stride", Arguments { strides: vec![200], ..arguments() });
    refused("stride", Arguments { strides: vec![1 << 40], ..arguments() });
    refused("box", Arguments { boxes: vec![64, 257], ..arguments() });
    refused("box", Arguments { boxes: vec![64, 0], ..arguments() });
    refused("box of 120 bytes", Arguments { boxes: vec![60, 1], ..arguments() });
    refused("box wider than the swizzle", Arguments { boxes: vec![72, 1], ..arguments() });
    refused("element stride", Arguments { elements: vec![1, 9], ..arguments() });
    refused("element stride", Arguments { elements: vec![1, 0], ..arguments() });
    refused("innermost element stride", Arguments { elements: vec![2, 1], ..arguments() });
    refused("NaN for integers", Arguments { numbers: [1, 2, 0, 3, 3, 1], ..arguments() });
}

#[test]
fn what_drivers_know_beyond_the_emulator_is_not_supported() {
    let cuda = hopper();
    for (which, number) in [(0, 10), (0, 15), (2, 1), (2, 2), (3, 4), (3, 6)] {
        let mut numbers = NUMBERS;
        numbers[which] = number;
        assert_eq!(encode(&cuda, &Arguments { numbers, ..arguments() }).0, NOT_SUPPORTED, "{which}: {number}");
    }
}

#[test]
fn devices_before_hopper_have_no_maps_and_drivers_may_lack_them() {
    assert_eq!(encode(&Cuda::new(&[]), &arguments()).0, INVALID_VALUE);
    let early = Cuda::loaded(&[]);
    assert_eq!(encode(&early, &arguments()).0, 3);
    assert_eq!((call!(early, cuInit(0 => u32)), encode(&early, &arguments()).0), (OK, 201));
    assert!(!Cuda::loaded(&["cuTensorMapEncodeTiled"]).has("cuTensorMapEncodeTiled"));
}

/// Any numbers at all: an answer, and no panic.
#[test]
fn no_arguments_panic() {
    let cuda = hopper();
    let mut state = 1_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let wild = [0, 1, 8, 16, 64, 256, 257, 1 << 16, 1 << 32, 1 << 40, u64::MAX];
    let mut taken = 0;
    for _ in 0..200 {
        let mut with = arguments();
        with.numbers[1] = 5;
        with.extents.extend([3, 4, 5]);
        with.strides.extend([16, 32, 48]);
        with.boxes.extend([1, 2, 3]);
        with.elements.extend([1, 1, 1]);
        for _ in 0..next(3) {
            let number = wild[next(11) as usize];
            match next(6) {
                0 => with.numbers[next(6) as usize] = next(18) as u32,
                1 => with.address = number,
                2 => with.extents[next(5) as usize] = number,
                3 => with.strides[next(4) as usize] = number,
                4 => with.boxes[next(5) as usize] = number as u32,
                _ => with.elements[next(5) as usize] = number as u32,
            }
        }
        let (code, bytes) = encode(&cuda, &with);
        assert!([OK, INVALID_VALUE, NOT_SUPPORTED].contains(&code), "{code}");
        if code == OK {
            assert_eq!(TensorMap::from_bytes(&bytes).unwrap().check(), Ok(()));
            taken += 1;
        }
    }
    assert!((40..160).contains(&taken), "{taken}");
}

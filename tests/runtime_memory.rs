//! Host memory that is not there, and tensors without elements whose other extents are as large as numbers go.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(unsafe_code, reason = "an allocator that refuses")]

mod runtime_kernels;

use runtime_kernels::{add, add_one, fill};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use titan::prelude::i4;
use titan::safetensors::SafeTensors;
use titan::{Device, DynTensor, ElemType, Error, Tensor};

/// Allocations of at least so many bytes may be refused: more than those of pieces, which have at most 2¹⁸ elements of 8 bytes.
const LARGE: usize = 9 << 18;

/// The system's allocator, with an option to refuse large allocations.
struct Refuses;

thread_local! {
    /// Which large allocation of this thread is refused next; 0 for none.
    static REFUSED: Cell<u32> = const { Cell::new(0) };
}

impl Refuses {
    fn refuses(size: usize) -> bool {
        size >= LARGE && REFUSED.try_with(|left| left.replace(left.get().saturating_sub(1)) == 1).unwrap_or(false)
    }
}

// SAFETY: what is not refused is the system allocator's.
unsafe impl GlobalAlloc for Refuses {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        if Refuses::refuses(layout.size()) { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(at, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Refuses = Refuses;

/// Runs `work` with its first large allocation refused, then with its second, until none is: each time it must say so.
fn with_refusals<R>(what: &str, work: impl Fn() -> titan::Result<R>) {
    for nth in 1..100 {
        REFUSED.set(nth);
        let outcome = work();
        let met = REFUSED.replace(0) == 0;
        match outcome {
            Ok(_) if !met => {
                assert!(nth > 1, "{what} allocates nothing large");
                return;
            }
            Ok(_) => panic!("{what} does without allocation {nth}"),
            Err(Error::OutOfMemory { .. }) if met => {}
            Err(error) => panic!("{what}, allocation {nth}: {error}"),
        }
    }
    panic!("{what} never ends");
}

#[test]
fn bytes_become_a_tensor_with_the_memory_of_the_tensor_and_no_other() {
    /// More than there are.
    const MANY: u32 = 1000;
    let device = Device::cpu();
    let bytes = vec![1; 2 * LARGE];
    for elem in [ElemType::F32, ElemType::Bf16, ElemType::E4m3, ElemType::Bool] {
        let shape = [bytes.len() * 8 / elem.bits() as usize];
        REFUSED.set(MANY);
        let tensor = DynTensor::from_bytes(&device, elem, &shape, &bytes);
        let allocations = MANY - REFUSED.replace(0);
        assert_eq!(tensor.unwrap().shape(), shape);
        assert_eq!(allocations, 1, "large allocations for elements of type `{elem}`");
    }
    let n = bytes.len();
    let header = format!(r#"{{"w":{{"dtype":"U8","shape":[{n}],"data_offsets":[0,{n}]}}}}"#);
    let weights = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes].concat();
    REFUSED.set(MANY);
    let tensor = SafeTensors::parse(&weights).unwrap().load(&device, "w").unwrap().into_tensor::<u8, 1>().unwrap();
    let allocations = MANY - REFUSED.replace(0);
    assert_eq!((tensor.shape(), allocations), ([n], 1));
    with_refusals("from_bytes", || DynTensor::from_bytes(&device, ElemType::U8, &[n], &bytes));
}

#[test]
fn the_host_may_have_no_memory_for_copies() {
    // Three of eight columns, the least of what is copied, are just large.
    const N: usize = LARGE * 2 / 3;
    let device = Device::cpu();
    let x = device.from_fn([N], |[i]| i as f32).unwrap();
    let halves = device.full([N], half::f16::ONE).unwrap();
    let nibbles = device.full([4 * N], i4::from_i8(-3)).unwrap();
    let small = device.full([1, 1], 2.5f32).unwrap();
    with_refusals("to_vec", || x.to_vec());
    with_refusals("to_vec of a part", || x.slice::<0>(1..N - 1)?.to_vec());
    with_refusals("to_vec of halves", || halves.to_vec());
    with_refusals("to_vec of 4-bit elements", || nibbles.to_vec());
    with_refusals("to_vec of a transposed matrix", || x.reshape([N / 2, 2])?.transpose::<0, 1>()?.to_vec());
    with_refusals("to_vec of columns", || x.reshape([N / 8, 8])?.slice::<1>(0..3)?.to_vec());
    with_refusals("to_vec of a broadcast view", || small.broadcast([N, 2])?.to_vec());
    with_refusals("copy", || x.copy());
    with_refusals("copy of 4-bit elements", || nibbles.copy());
    with_refusals("to_device", || x.to_device(&Device::cpu()));
    with_refusals("zeros", || device.zeros::<f32, 1>([N]));
    with_refusals("full", || device.full([N], 1.0f32));
    with_refusals("from_fn", || device.from_fn([N], |[i]| i as f64));
    let data = x.to_vec().unwrap();
    with_refusals("tensor", || device.tensor(&data, [N]));
    let data = nibbles.to_vec().unwrap();
    with_refusals("tensor of 4-bit elements", || device.tensor(&data, [4 * N]));
    assert_eq!(nibbles.slice::<0>(0..4).unwrap().to_vec().unwrap(), [i4::from_i8(-3); 4]);
}

#[test]
fn views_of_4_bit_elements_begin_and_end_with_a_byte() {
    let device = Device::cpu();
    let x = device.full([8], i4::from_i8(-3)).unwrap();
    assert_eq!(x.slice::<0>(2..6).unwrap().to_vec().unwrap(), [i4::from_i8(-3); 4]);
    for (from, to) in [(1, 3), (1, 7), (0, 3), (2, 5)] {
        let error = x.slice::<0>(from..to).map(drop).unwrap_err().to_string();
        assert!(error.contains("cut a pair"), "{from}..{to}: {error}");
    }
}

#[test]
fn what_is_copied_in_pieces_is_whole() {
    let n = (1 << 18) + 6;
    let device = Device::cpu();
    let nibbles: Vec<i4> = (0..n).map(|i| i4::from_i8((i % 16) as i8 - 8)).collect();
    let x = device.tensor(&nibbles, [n]).unwrap();
    assert!(x.to_vec().unwrap() == nibbles);
    assert!(x.slice::<0>(2..n - 2).unwrap().to_vec().unwrap() == nibbles[2..n - 2]);
    let x = device.from_fn([3, n], |[i, j]| (i * n + j) as u64).unwrap();
    assert!(x.to_vec().unwrap().into_iter().eq(0..3 * n as u64));
    let columns = x.slice::<1>(1..n).unwrap().to_vec().unwrap();
    assert!(columns.into_iter().eq((0..3 * n as u64).filter(|i| i % n as u64 != 0)));
}

/// Shapes without elements whose extents have no product.
const MAX: usize = usize::MAX;

#[test]
fn tensors_without_elements_may_have_any_other_extents() {
    for device in devices() {
        let mut x: Tensor<f32, 3> = device.zeros([MAX, MAX, 0]).unwrap();
        assert_eq!((x.len(), x.is_empty(), x.is_contiguous(), x.shape()), (0, true, true, [MAX, MAX, 0]));
        assert_eq!(x.to_vec().unwrap(), []);
        x.write(&[]).unwrap();
        assert_eq!(x.copy().unwrap().shape(), x.shape());
        assert!(format!("{x:?}").starts_with("Tensor<f32>[18446744073709551615, "));
        let views = [
            x.view(),
            x.transpose::<0, 2>().unwrap(),
            x.permute([2, 0, 1]).unwrap(),
            x.slice::<0>(MAX - 2..MAX - 1).unwrap(),
            x.slice::<1>(MAX..MAX).unwrap(),
            x.split_at::<0>(MAX / 2).unwrap().1,
            x.reshape([0, MAX, MAX]).unwrap(),
            x.slice::<0>(7..8).unwrap().broadcast([MAX, MAX, 0]).unwrap(),
        ];
        for view in &views {
            assert_eq!(view.to_vec().unwrap(), []);
            assert_eq!(view.copy().unwrap().len(), 0);
            assert_eq!(view.index::<1>(view.shape()[1].saturating_sub(1)).map_or(0, |v| v.len()), 0);
            let higher = view.unsqueeze::<0>().unwrap();
            let higher = higher.unsqueeze::<0>().unwrap();
            assert_eq!((higher.len(), higher.to_vec().unwrap().len()), (0, 0));
            assert_eq!(higher.transpose::<0, 4>().unwrap().unsqueeze::<4>().unwrap().len(), 0);
        }
        let (mut head, mut tail) = x.split_at_mut::<1>(MAX - 1).unwrap();
        head.write(&[]).unwrap();
        tail.write(&[]).unwrap();
        let halves: Tensor<i4, 2> = device.zeros([MAX, 0]).unwrap();
        assert_eq!(halves.slice::<0>(MAX - 1..MAX).unwrap().to_vec().unwrap(), []);
    }
}

#[test]
fn parts_far_inside_of_nothing_are_nothing() {
    for device in devices() {
        let x: Tensor<f64, 2> = device.zeros([0, MAX]).unwrap();
        let far = x.slice::<1>(MAX - 1..MAX).unwrap();
        assert_eq!((far.shape(), far.to_vec().unwrap()), ([0, 1], vec![]));
        assert_eq!(x.index::<1>(MAX - 1).unwrap().to_vec().unwrap(), []);
        let wide: Tensor<f32, 4> = device.zeros([MAX, 0, MAX, MAX]).unwrap();
        let far = wide.slice::<0>(MAX - 1..MAX).unwrap();
        let far = far.slice::<2>(MAX - 1..MAX).unwrap();
        assert_eq!(far.index::<3>(MAX - 1).unwrap().to_vec().unwrap(), []);
    }
}

#[test]
fn launches_take_what_has_no_elements_or_say_why_not() {
    for device in devices() {
        let (x, mut y): (Tensor<f32, 2>, _) = (device.zeros([MAX, 0]).unwrap(), device.zeros([MAX, 0]).unwrap());
        let told = add_one(&x, &mut y).sync().map_err(|error| error.to_string());
        assert!(told.is_err_and(|text| text.contains("help: ")), "extents above 2^31 are no kernel's");
        let (x, mut y): (Tensor<f32, 2>, _) = (device.zeros([5, 0]).unwrap(), device.zeros([5, 0]).unwrap());
        add_one(&x.slice::<0>(3..5).unwrap(), &mut device.zeros([2, 0]).unwrap()).sync().unwrap();
        add_one(&x, &mut y).launch(&device.default_stream()).unwrap();
        let (x, mut y) = (device.zeros([0]).unwrap(), device.zeros([0]).unwrap());
        fill(&mut y, 1.0).sync().unwrap();
        add(&x, &mut y, 1.0).sync().unwrap();
    }
}

#[test]
fn more_elements_than_addresses_are_refused() {
    for device in devices() {
        let refused = |told: titan::Result<usize>| match told {
            Err(Error::TooLarge { .. } | Error::OutOfMemory { .. }) => {}
            Err(error) => panic!("{error}"),
            Ok(len) => panic!("{len} elements"),
        };
        refused(device.zeros::<f64, 1>([1 << 61]).map(|x| x.len()));
        refused(device.zeros::<f64, 1>([(1 << 60) + 1]).map(|x| x.len()));
        refused(device.zeros::<f32, 2>([1 << 32, 1 << 32]).map(|x| x.len()));
        refused(device.zeros::<u8, 3>([MAX, MAX, MAX]).map(|x| x.len()));
        refused(device.full([MAX], 1u8).map(|x| x.len()));
        let one = device.full([1, 1], 1.0f64).unwrap();
        refused(one.broadcast([MAX, MAX]).map(|x| x.len()));
        refused(one.broadcast([1 << 31, 1 << 28]).unwrap().to_vec().map(|x| x.len()));
    }
}

fn devices() -> Vec<Device> {
    let mut all = vec![Device::best().unwrap(), Device::cpu()];
    #[cfg(feature = "emulator")]
    all.push(Device::emulator("sm_80").unwrap());
    all.dedup();
    all
}

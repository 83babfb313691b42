//! One run of one kernel: its buffers, and whether they hold what they should.

use titan_amd::emu::{Arg, Args, DevicePtr, Launch, Memory, Module, Options};
use titan_sim::engine::Rng;

/// An element of a buffer.
pub(crate) trait Element: Copy + std::fmt::Debug {
    const BYTES: usize;
    fn bytes(self) -> Vec<u8>;
    fn of(bytes: &[u8]) -> Self;
    /// Equal to the bit, all NaNs being one.
    fn same(self, other: Self) -> bool;
}

macro_rules! elements {
    ($($t:ty, $same:expr;)*) => {$(
        impl Element for $t {
            const BYTES: usize = size_of::<$t>();
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn of(bytes: &[u8]) -> Self {
                <$t>::from_le_bytes(bytes.try_into().expect("an element"))
            }
            fn same(self, other: Self) -> bool {
                let same: fn($t, $t) -> bool = $same;
                same(self, other)
            }
        }
    )*};
}

elements! {
    u8, |a, b| a == b;
    i8, |a, b| a == b;
    u16, |a, b| a == b;
    i16, |a, b| a == b;
    u32, |a, b| a == b;
    i32, |a, b| a == b;
    u64, |a, b| a == b;
    i64, |a, b| a == b;
    half::f16, |a, b| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    half::bf16, |a, b| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    f32, |a, b| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    f64, |a, b| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
}

/// A buffer.
#[derive(Clone, Copy)]
pub(crate) struct Buf {
    ptr: DevicePtr,
    elements: usize,
}

impl Buf {
    pub(crate) fn arg(self) -> Arg {
        Arg::Ptr(self.ptr)
    }
}

pub(crate) struct Trial<'a> {
    module: &'a Module,
    name: &'a str,
    options: &'a Options,
    memory: Memory,
    complaints: Vec<String>,
    ran: bool,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(module: &'a Module, name: &'a str, options: &'a Options) -> Trial<'a> {
        Trial { module, name, options, memory: Memory::new(), complaints: Vec::new(), ran: false }
    }

    pub(crate) fn put<T: Element>(&mut self, data: &[T]) -> Buf {
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.bytes()).collect();
        let ptr = self.memory.upload("input", &bytes).expect("there is room");
        Buf { ptr, elements: data.len() }
    }

    /// Memory that was never written.
    pub(crate) fn out<T: Element>(&mut self, elements: usize) -> Buf {
        let ptr = self.memory.alloc("output", elements * T::BYTES).expect("there is room");
        Buf { ptr, elements }
    }

    /// Writes bytes into a buffer, from the so-many-th on.
    pub(crate) fn set(&mut self, buf: Buf, at: usize, bytes: &[u8]) {
        self.memory.write(buf.ptr.add(at as i64), bytes).expect("inside of the buffer");
    }

    /// Frees a buffer before the kernel runs.
    pub(crate) fn free(&mut self, buf: Buf) {
        self.memory.free(buf.ptr);
    }

    /// A grid along one axis.
    pub(crate) fn run(&mut self, groups: u32, size: u32, args: &[Arg]) {
        self.run_all([groups, 1, 1], [size, 1, 1], 0, args);
    }

    pub(crate) fn run_all(&mut self, grid: [u32; 3], block: [u32; 3], dynamic_lds: u32, args: &[Arg]) {
        let launch = Launch { grid, block, dynamic_lds, args: Args::Each(args) };
        let kernel = self.module.kernel(self.name).expect("the kernel is there");
        match kernel.run(&launch, &mut self.memory, self.options) {
            Ok(_) => self.ran = true,
            Err(error) => self.complaints.push(error.to_string()),
        }
    }

    pub(crate) fn get<T: Element>(&mut self, buf: Buf) -> Option<Vec<T>> {
        if !self.ran {
            return None;
        }
        match self.memory.read(buf.ptr, buf.elements * T::BYTES) {
            Ok(bytes) => Some(bytes.chunks(T::BYTES).map(T::of).collect()),
            Err(error) => {
                self.complaints.push(error.to_string());
                None
            }
        }
    }

    /// A buffer holds exactly this.
    pub(crate) fn is<T: Element>(&mut self, buf: Buf, want: &[T]) {
        self.holds(buf, want, Element::same);
    }

    /// A buffer holds this, by a measure.
    pub(crate) fn holds<T: Element>(&mut self, buf: Buf, want: &[T], same: impl Fn(T, T) -> bool) {
        let Some(got) = self.get::<T>(buf) else { return };
        assert_eq!(got.len(), want.len(), "{}: the case's reference has another length", self.name);
        if let Some(i) = (0..got.len()).find(|i| !same(got[*i], want[*i])) {
            self.complaints.push(format!("element {i} is {:?}, not {:?}", got[i], want[i]));
        }
    }

    pub(crate) fn complaints(&self) -> impl Iterator<Item = &String> {
        assert!(self.ran || !self.complaints.is_empty(), "{}: the case ran nothing", self.name);
        self.complaints.iter()
    }
}

pub(crate) fn u32s(n: usize, seed: u64) -> Vec<u32> {
    u64s(n, seed).into_iter().map(|x| (x >> 16) as u32).collect()
}

/// Random bits, some short, with the corners first.
pub(crate) fn u64s(n: usize, seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    let corners = [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, 1 << 47, (1 << 48) - 1, 0xFFFF_0000];
    let more = std::iter::repeat_with(move || {
        let bits = rng.next_u64();
        bits >> (rng.next_u64() % 60)
    });
    corners.into_iter().chain(more).skip(if seed.is_multiple_of(2) { 0 } else { 3 }).take(n).collect()
}

/// Numbers of every size, with zeros, subnormal ones, infinities and a NaN.
pub(crate) fn wild(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    let corners = [
        0.0,
        -0.0,
        1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-45,
        -1e-40,
        f32::MAX,
        f32::MIN_POSITIVE,
        0.5,
        2.5,
    ];
    let more = std::iter::repeat_with(move || f32::from_bits(rng.next_u64() as u32));
    let turn = (seed % 5) as usize;
    corners.into_iter().skip(turn).chain(more).take(n).collect()
}

/// Numbers between -8 and 8 with 12 bits of fraction.
pub(crate) fn tame(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..n).map(|_| (rng.next_u64() % 65536) as f32 / 4096.0 - 8.0).collect()
}

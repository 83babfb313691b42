//! Kernel descriptors: 64 bytes from which hardware takes the initial state of a kernel's waves.
//!
//! Source: LLVM, "Kernel Descriptor", its tables for gfx6 to gfx12, `compute_pgm_rsrc1` to `compute_pgm_rsrc3`.

use super::error::ObjectError;

/// The size of a descriptor in bytes, which is also its alignment.
pub const SIZE: usize = 64;
/// The alignment of a kernel's first instruction.
pub const ENTRY_ALIGN: u64 = 256;
/// The largest private memory of a work item, in bytes: a wave has up to 8191 times 1 KiB, as LLVM counts.
pub(crate) const MAX_PRIVATE: u32 = 8191 * 1024 / 64;
/// The number of scalar registers in addition to those that a kernel names: `vcc`, `flat_scratch`, `xnack_mask` (LLVM, granulated count).
const EXTRA_SGPRS: u32 = 6;

/// A range of bits in one of the words.
struct Bits {
    lo: u32,
    len: u32,
}

const fn bits(lo: u32, len: u32) -> Bits {
    Bits { lo, len }
}

impl Bits {
    const fn get(&self, word: u32) -> u32 {
        word >> self.lo & ((1 << self.len) - 1)
    }

    const fn put(&self, value: u32) -> u32 {
        (value & ((1 << self.len) - 1)) << self.lo
    }
}

/// `compute_pgm_rsrc1`.
mod rsrc1 {
    use super::{Bits, bits};
    pub(super) const VGPRS: Bits = bits(0, 6);
    pub(super) const SGPRS: Bits = bits(6, 4);
    pub(super) const ROUND_32: Bits = bits(12, 2);
    pub(super) const ROUND_16_64: Bits = bits(14, 2);
    pub(super) const DENORM_32: Bits = bits(16, 2);
    pub(super) const DENORM_16_64: Bits = bits(18, 2);
    pub(super) const DX10_CLAMP: Bits = bits(21, 1);
    pub(super) const IEEE_MODE: Bits = bits(23, 1);
    pub(super) const FP16_OVFL: Bits = bits(26, 1);
}

/// `compute_pgm_rsrc2`.
mod rsrc2 {
    use super::{Bits, bits};
    pub(super) const PRIVATE_SEGMENT: Bits = bits(0, 1);
    pub(super) const USER_SGPRS: Bits = bits(1, 5);
    pub(super) const WORKGROUP_ID: [Bits; 3] = [bits(7, 1), bits(8, 1), bits(9, 1)];
    pub(super) const WORKGROUP_INFO: Bits = bits(10, 1);
    pub(super) const WORKITEM_ID: Bits = bits(11, 2);
}

/// `compute_pgm_rsrc3` of gfx90a and gfx942.
mod rsrc3 {
    use super::{Bits, bits};
    pub(super) const ACCUM_OFFSET: Bits = bits(0, 6);
    pub(super) const TG_SPLIT: Bits = bits(16, 1);
}

/// `kernel_code_properties`: user registers, in the order in which they are filled, and the number of registers of each.
const USER_SGPRS: [(u32, u32, UserSgpr); 7] = [
    (0, 4, UserSgpr::PrivateSegmentBuffer),
    (1, 2, UserSgpr::DispatchPtr),
    (2, 2, UserSgpr::QueuePtr),
    (3, 2, UserSgpr::KernargSegmentPtr),
    (4, 2, UserSgpr::DispatchId),
    (5, 2, UserSgpr::FlatScratchInit),
    (6, 1, UserSgpr::PrivateSegmentSize),
];

/// The value that hardware puts into the first scalar registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UserSgpr {
    /// A descriptor of private memory.
    PrivateSegmentBuffer,
    /// The address of the dispatch packet.
    DispatchPtr,
    /// The address of the queue.
    QueuePtr,
    /// The address of the arguments.
    KernargSegmentPtr,
    /// The number of the dispatch.
    DispatchId,
    /// The base of private memory.
    FlatScratchInit,
    /// The private memory of a work item, in bytes.
    PrivateSegmentSize,
    /// The first words of the arguments, this many.
    Preload(u32),
}

/// The resources that a kernel needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// The number of vector registers that its code names.
    pub vgprs: u32,
    /// The number of accumulation registers that its code names.
    pub agprs: u32,
    /// The number of scalar registers that its code names, without `vcc` and the like.
    pub sgprs: u32,
    /// The size of the local data share, in bytes.
    pub lds_bytes: u32,
    /// The size of its arguments, in bytes.
    pub kernarg_bytes: u32,
    /// The number of axes for which it needs the workgroup's index: 1 to 3.
    pub grid_axes: u32,
    /// The number of axes for which it needs the work item's index: 1 to 3.
    pub item_axes: u32,
    /// Whether it runs in IEEE mode, in which minimum and maximum return a signalling NaN as a quiet one rather than the other operand.
    pub ieee: bool,
}

/// The fields of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The size of the local data share, in bytes.
    pub group_segment_bytes: u32,
    /// The private memory of a work item, in bytes.
    pub private_segment_bytes: u32,
    /// The size of the arguments, in bytes.
    pub kernarg_bytes: u32,
    /// The offset of the first instruction from the descriptor.
    pub entry_offset: i64,
    /// `compute_pgm_rsrc1`.
    pub rsrc1: u32,
    /// `compute_pgm_rsrc2`.
    pub rsrc2: u32,
    /// `compute_pgm_rsrc3`.
    pub rsrc3: u32,
    /// `kernel_code_properties`.
    pub properties: u16,
    /// The arguments that are loaded into registers.
    pub preload: u16,
}

/// The rounding of floating-point instructions, and their treatment of subnormal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatMode {
    /// The rounding of `f32`: 0 to nearest even, 1 up, 2 down, 3 to zero.
    pub round_32: u8,
    /// The rounding of `f16` and `f64`.
    pub round_16_64: u8,
    /// Subnormal `f32`: bit 0, inputs are kept; bit 1, results are.
    pub denorm_32: u8,
    /// Subnormal `f16` and `f64`, with the same bits.
    pub denorm_16_64: u8,
    /// Whether clamping makes NaN zero.
    pub dx10_clamp: bool,
    /// Whether minimum and maximum make a signalling NaN quiet.
    pub ieee: bool,
    /// Whether overflowing conversions to 16 and 8 bits give the largest number.
    pub fp16_overflow: bool,
}

impl Descriptor {
    /// The descriptor of a kernel that takes a pointer to its arguments, keeps subnormal numbers, and rounds to nearest.
    ///
    /// # Errors
    /// [`ObjectError::Kernel`], if hardware provides less than is requested.
    pub fn new(name: &str, r: &Resources) -> Result<Descriptor, ObjectError> {
        let refuse = |why: String| Err(ObjectError::Kernel { name: name.to_owned(), why });
        let arch = r.vgprs.max(1).next_multiple_of(4);
        if r.vgprs > 256 || r.agprs > 256 {
            return refuse(format!("{} vector and {} accumulation registers: 256 of each are there", r.vgprs, r.agprs));
        }
        if r.sgprs > 102 {
            return refuse(format!("{} scalar registers: 102 are there", r.sgprs));
        }
        if r.lds_bytes > 64 * 1024 {
            return refuse(format!("{} bytes of the local data share: 65536 are there", r.lds_bytes));
        }
        if !(1..=3).contains(&r.grid_axes) || !(1..=3).contains(&r.item_axes) {
            return refuse("a kernel has one to three axes".to_owned());
        }
        let rsrc1 = rsrc1::VGPRS.put((arch + r.agprs).div_ceil(8) - 1)
            | rsrc1::SGPRS.put((r.sgprs + EXTRA_SGPRS).div_ceil(8) - 1)
            | rsrc1::DENORM_32.put(3)
            | rsrc1::DENORM_16_64.put(3)
            | rsrc1::DX10_CLAMP.put(1)
            | rsrc1::IEEE_MODE.put(r.ieee.into());
        let ids = rsrc2::WORKGROUP_ID.iter().take(r.grid_axes as usize).fold(0, |all, b| all | b.put(1));
        Ok(Descriptor {
            group_segment_bytes: r.lds_bytes,
            private_segment_bytes: 0,
            kernarg_bytes: r.kernarg_bytes,
            entry_offset: 0,
            rsrc1,
            rsrc2: rsrc2::USER_SGPRS.put(2) | ids | rsrc2::WORKITEM_ID.put(r.item_axes - 1),
            rsrc3: rsrc3::ACCUM_OFFSET.put(arch / 4 - 1),
            properties: 1 << 3,
            preload: 0,
        })
    }

    /// The bytes of the descriptor.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; SIZE] {
        let mut out = [0; SIZE];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.group_segment_bytes.to_le_bytes());
        put(4, &self.private_segment_bytes.to_le_bytes());
        put(8, &self.kernarg_bytes.to_le_bytes());
        put(16, &self.entry_offset.to_le_bytes());
        put(44, &self.rsrc3.to_le_bytes());
        put(48, &self.rsrc1.to_le_bytes());
        put(52, &self.rsrc2.to_le_bytes());
        put(56, &self.properties.to_le_bytes());
        put(58, &self.preload.to_le_bytes());
        out
    }

    /// Decodes a descriptor.
    ///
    /// # Errors
    /// [`ObjectError::Kernel`], if bits are set that are not defined, or if something is requested that gfx942 does not have.
    pub fn from_bytes(name: &str, bytes: &[u8; SIZE]) -> Result<Descriptor, ObjectError> {
        let word = |at: usize| bytes[at..].iter().take(4).rev().fold(0_u32, |all, b| all << 8 | u32::from(*b));
        let half = |at: usize| bytes[at..].iter().take(2).rev().fold(0_u16, |all, b| all << 8 | u16::from(*b));
        let refuse = |why: &str| Err(ObjectError::Kernel { name: name.to_owned(), why: why.to_owned() });
        if bytes[12..16].iter().chain(&bytes[24..44]).chain(&bytes[60..64]).any(|b| *b != 0) {
            return refuse("its descriptor has bytes set that must be zero");
        }
        let d = Descriptor {
            group_segment_bytes: word(0),
            private_segment_bytes: word(4),
            kernarg_bytes: word(8),
            entry_offset: (u64::from(word(20)) << 32 | u64::from(word(16))).cast_signed(),
            rsrc3: word(44),
            rsrc1: word(48),
            rsrc2: word(52),
            properties: half(56),
            preload: half(58),
        };
        if d.group_segment_bytes > 64 * 1024 {
            return refuse("it asks for more than 65536 bytes of the local data share");
        }
        if d.private_segment_bytes > MAX_PRIVATE {
            return refuse("it asks for more private memory than a wave can have");
        }
        if d.private_segment_bytes > 0 && !d.private_segment() {
            return refuse("it asks for private memory and does not have it set up");
        }
        if d.properties & 1 << 10 != 0 {
            return refuse("it is for waves of 32 lanes");
        }
        if d.vgprs() > 512 || d.arch_vgprs() > d.vgprs().next_multiple_of(8) {
            return refuse("its accumulation registers begin beyond its registers");
        }
        if rsrc3::TG_SPLIT.get(d.rsrc3) != 0 {
            return refuse("it asks for workgroups that are spread over compute units");
        }
        let preloaded = u32::from(d.preload & 0x7F);
        if preloaded > 0 && 4 * (d.preload_offset() + preloaded) > d.kernarg_bytes {
            return refuse("it loads more arguments into registers than there are");
        }
        let filled: u32 = d.user_sgprs().iter().map(|u| u.registers()).sum();
        if filled > rsrc2::USER_SGPRS.get(d.rsrc2) {
            return refuse("more user registers are filled than it has");
        }
        if d.initial_sgprs() > d.general_sgprs() {
            return refuse("more scalar registers are filled at its start than it has");
        }
        Ok(d)
    }

    /// The allocated number of vector registers of a lane, both kinds together.
    #[must_use]
    pub const fn vgprs(&self) -> u32 {
        8 * (rsrc1::VGPRS.get(self.rsrc1) + 1)
    }

    /// The index at which accumulation registers begin in that allocation, which is the number of architectural vector registers.
    #[must_use]
    pub const fn arch_vgprs(&self) -> u32 {
        4 * (rsrc3::ACCUM_OFFSET.get(self.rsrc3) + 1)
    }

    /// The allocated number of scalar registers, with `vcc` and the like.
    #[must_use]
    pub const fn sgprs(&self) -> u32 {
        8 * (rsrc1::SGPRS.get(self.rsrc1) + 1)
    }

    /// The number of scalar registers that a kernel may use by index: `vcc` takes two of those that are allocated. LLVM 19 makes room for
    /// four more (`flat_scratch`, `xnack_mask`), the LLVM of Triton 3.9 for fewer, and the descriptor does not say which.
    #[must_use]
    pub const fn general_sgprs(&self) -> u32 {
        self.sgprs() - 2
    }

    /// The number of scalar registers that hardware fills before the first instruction.
    fn initial_sgprs(&self) -> u32 {
        let asked = self.workgroup_ids().into_iter().chain([self.workgroup_info()]);
        self.user_sgpr_count() + asked.map(u32::from).sum::<u32>()
    }

    /// The initial mode of floating-point instructions.
    #[must_use]
    pub fn float_mode(&self) -> FloatMode {
        #[expect(clippy::cast_possible_truncation, reason = "two bits")]
        let two = |b: &Bits| b.get(self.rsrc1) as u8;
        let one = |b: &Bits| b.get(self.rsrc1) == 1;
        FloatMode {
            round_32: two(&rsrc1::ROUND_32),
            round_16_64: two(&rsrc1::ROUND_16_64),
            denorm_32: two(&rsrc1::DENORM_32),
            denorm_16_64: two(&rsrc1::DENORM_16_64),
            dx10_clamp: one(&rsrc1::DX10_CLAMP),
            ieee: one(&rsrc1::IEEE_MODE),
            fp16_overflow: one(&rsrc1::FP16_OVFL),
        }
    }

    /// The contents of the user registers, in order.
    #[must_use]
    pub fn user_sgprs(&self) -> Vec<UserSgpr> {
        let fixed = USER_SGPRS.iter().filter(|(bit, ..)| self.properties >> bit & 1 == 1).map(|(.., what)| *what);
        let preload = u32::from(self.preload & 0x7F);
        fixed.chain((preload > 0).then_some(UserSgpr::Preload(preload))).collect()
    }

    /// The number of user registers.
    #[must_use]
    pub const fn user_sgpr_count(&self) -> u32 {
        rsrc2::USER_SGPRS.get(self.rsrc2)
    }

    /// The first word of the arguments that is loaded into registers.
    #[must_use]
    pub fn preload_offset(&self) -> u32 {
        u32::from(self.preload >> 7)
    }

    /// For each axis, whether the workgroup's index follows the user registers.
    #[must_use]
    pub fn workgroup_ids(&self) -> [bool; 3] {
        rsrc2::WORKGROUP_ID.map(|b| b.get(self.rsrc2) == 1)
    }

    /// Whether a word of information about the workgroup follows them.
    #[must_use]
    pub const fn workgroup_info(&self) -> bool {
        rsrc2::WORKGROUP_INFO.get(self.rsrc2) == 1
    }

    /// The number of axes beyond the first for which the work item's index is requested.
    #[must_use]
    pub const fn workitem_ids(&self) -> u32 {
        rsrc2::WORKITEM_ID.get(self.rsrc2)
    }

    /// Whether the kernel needs private memory of a size that the compiler does not know: `USES_DYNAMIC_STACK`.
    #[must_use]
    pub const fn dynamic_stack(&self) -> bool {
        self.properties >> 11 & 1 == 1
    }

    /// Whether private memory is set up.
    #[must_use]
    pub const fn private_segment(&self) -> bool {
        rsrc2::PRIVATE_SEGMENT.get(self.rsrc2) == 1
    }
}

impl UserSgpr {
    /// The number of registers that it takes.
    #[must_use]
    pub fn registers(self) -> u32 {
        match self {
            UserSgpr::Preload(n) => n,
            UserSgpr::PrivateSegmentBuffer
            | UserSgpr::DispatchPtr
            | UserSgpr::QueuePtr
            | UserSgpr::KernargSegmentPtr
            | UserSgpr::DispatchId
            | UserSgpr::FlatScratchInit
            | UserSgpr::PrivateSegmentSize => {
                USER_SGPRS.iter().find(|(.., what)| *what == self).map_or(0, |(_, n, _)| *n)
            }
        }
    }
}

//! Operations of the fifth generation of tensor cores (`tcgen05`): MMAs whose results are in *tensor memory*, and the operations that move
//! data there.
//! The tensor memory of a block (CTA) has 128 lanes and 512 columns of 32 bits. One warp allocates columns. One thread starts MMAs and
//! copies, whose completion is signaled at an mbarrier (`commit`). Warps load and store, and wait for that by `wait`.
//!
//! [`Mma::check`] decides which MMAs are legal. Sources: PTX ISA, "tcgen05.mma", its table of kinds and shapes, and "Block scaling"; the
//! attributes are compared with NVIDIA's assembler (titan-nv/tests/hopper/tensor_memory.rs). The columns and bytes that operands take are in
//! `tensor_layout`.
//!
//! Deliberately absent: sparse operands, descriptors of instructions and of shared memory, the word of shared memory to which an
//! allocation writes its address, and masks of lanes and columns. Nothing is lowered to these operations.

use crate::named_enum::named_enum;

named_enum! {
    /// The kind of an MMA (`.kind`), which determines the element types of its operands.
    MmaKind {
        /// 16-bit floats.
        F16 = "f16",
        /// TF32.
        Tf32 = "tf32",
        /// Floats of 8, 6 and 4 bits.
        F8f6f4 = "f8f6f4",
        /// Integers of 8 bits.
        I8 = "i8",
        /// Floats of 8, 6 and 4 bits, with one scale for each block.
        Mxf8f6f4 = "mxf8f6f4",
        /// Floats of 4 bits, with one scale for every 32 elements.
        Mxf4 = "mxf4",
        /// Floats of 4 bits, with one scale for every 16 or 32 elements.
        Mxf4nvf4 = "mxf4nvf4",
    }
}

named_enum! {
    /// The element type of an operand or of the result.
    TensorElem {
        /// 16-bit float.
        F16 = "f16",
        /// 16-bit float with 8 bits of exponent.
        Bf16 = "bf16",
        /// 19-bit float in 32 bits.
        Tf32 = "tf32",
        /// 8-bit float with 4 bits of exponent.
        E4m3 = "e4m3",
        /// 8-bit float with 5 bits of exponent.
        E5m2 = "e5m2",
        /// 6-bit float with 2 bits of exponent.
        E2m3 = "e2m3",
        /// 6-bit float with 3 bits of exponent.
        E3m2 = "e3m2",
        /// 4-bit float.
        E2m1 = "e2m1",
        /// Signed byte.
        I8 = "i8",
        /// Unsigned byte.
        U8 = "u8",
        /// 32-bit float, for results.
        F32 = "f32",
        /// 32-bit integer, for results.
        I32 = "i32",
    }
}

named_enum! {
    /// The use of the collector buffer, which keeps an operand for the next MMA: A, or B in a weight-stationary MMA.
    Collector {
        /// No use is stated.
        Unstated = "none",
        /// The operand is stored in the buffer.
        Fill = "fill",
        /// The operand is read from the buffer.
        Use = "use",
        /// The operand is read from the buffer for the last time.
        LastUse = "lastuse",
        /// The operand is not kept.
        Discard = "discard",
    }
}

named_enum! {
    /// The access shape of a load or store of tensor memory (`.shape`): the number of lanes, and the bits of each.
    TensorShape {
        /// 32 lanes, 32 bits.
        L32x32b = "32x32b",
        /// 16 lanes, 64 bits.
        L16x64b = "16x64b",
        /// 16 lanes, 128 bits.
        L16x128b = "16x128b",
        /// 16 lanes, 256 bits.
        L16x256b = "16x256b",
    }
}

/// The attributes of an MMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mma {
    /// The kind of the MMA.
    pub kind: MmaKind,
    /// The number of CTAs that compute the MMA together: 1 or 2 (`.cta_group`).
    pub cta_group: u32,
    /// Whether it is weight-stationary: B is kept in the collector buffer (`.ws`).
    pub stationary: bool,
    /// The number of scales of a block along K: 1, 2 or 4; 0 if it is not stated.
    pub scale_vec: u32,
    /// Whether the rows of A are shifted by one.
    pub shifted: bool,
    /// The use of the collector buffer.
    pub collector: Collector,
    /// Whether the accumulator is scaled before the addition (`scale-input-d`).
    pub scaled_input: bool,
    /// The element type of A.
    pub a: TensorElem,
    /// The element type of B.
    pub b: TensorElem,
    /// The element type of the result.
    pub d: TensorElem,
    /// The extents M, N and K.
    pub shape: [u32; 3],
}

/// The reason why no such MMA exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoMma {
    /// The combination of attributes or element types does not exist.
    Attributes(String),
    /// No MMA with these attributes has this shape.
    Shape(String),
}

/// An operation on tensor memory. Its operands and meaning are a row of [`super::op_table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tcgen05Op {
    /// Allocates columns.
    Alloc {
        /// The number of columns.
        columns: u32,
        /// The number of CTAs that allocate together, 1 or 2.
        cta_group: u32,
    },
    /// Frees allocated columns.
    Dealloc {
        /// The number of CTAs that free together, 1 or 2.
        cta_group: u32,
    },
    /// Declares that the program allocates no more columns.
    Relinquish {
        /// The number of CTAs of the allocations, 1 or 2.
        cta_group: u32,
    },
    /// An MMA.
    Mma(Mma),
    /// Loads tensor memory to registers.
    Load {
        /// The access shape.
        shape: TensorShape,
        /// The number of repetitions along columns (`.num`).
        times: u32,
    },
    /// Stores registers to tensor memory.
    Store {
        /// The access shape.
        shape: TensorShape,
        /// The number of repetitions along columns (`.num`).
        times: u32,
    },
    /// Copies shared memory to tensor memory.
    Copy {
        /// The number of CTAs whose tensor memory is written, 1 or 2.
        cta_group: u32,
    },
    /// Shifts the rows of tensor memory down by one.
    Shift {
        /// The number of CTAs whose tensor memory is shifted, 1 or 2.
        cta_group: u32,
    },
    /// Arrives at a barrier when the earlier MMAs, copies and shifts of the thread are complete.
    Commit {
        /// The number of CTAs of these operations, 1 or 2.
        cta_group: u32,
    },
    /// Waits for the loads of the thread.
    WaitLoad,
    /// Waits for the stores of the thread.
    WaitStore,
    /// Orders earlier operations on tensor memory before a synchronization of threads (`fence::before_thread_sync`).
    FenceBefore,
    /// Orders later operations on tensor memory after a synchronization of threads (`fence::after_thread_sync`).
    FenceAfter,
}

impl MmaKind {
    /// Whether the operands have scales for blocks of elements.
    #[must_use]
    pub const fn is_scaled(self) -> bool {
        matches!(self, MmaKind::Mxf8f6f4 | MmaKind::Mxf4 | MmaKind::Mxf4nvf4)
    }

    /// The extent K of an MMA of this kind.
    #[must_use]
    pub const fn depth(self) -> u32 {
        match self {
            MmaKind::Tf32 => 8,
            MmaKind::F16 => 16,
            MmaKind::F8f6f4 | MmaKind::I8 | MmaKind::Mxf8f6f4 => 32,
            MmaKind::Mxf4 | MmaKind::Mxf4nvf4 => 64,
        }
    }

    /// The values that `scale_vec` may have; 0 means that the number is not stated, and the kind has only one.
    #[must_use]
    pub const fn scales(self) -> &'static [u32] {
        match self {
            MmaKind::F16 | MmaKind::Tf32 | MmaKind::F8f6f4 | MmaKind::I8 => &[0],
            MmaKind::Mxf8f6f4 => &[0, 1],
            MmaKind::Mxf4 => &[0, 2],
            MmaKind::Mxf4nvf4 => &[2, 4],
        }
    }

    /// The elements of an operand.
    #[must_use]
    pub const fn elements(self) -> &'static [TensorElem] {
        use TensorElem::{Bf16, E2m1, E2m3, E3m2, E4m3, E5m2, F16, I8, Tf32, U8};
        match self {
            MmaKind::F16 => &[F16, Bf16],
            MmaKind::Tf32 => &[Tf32],
            MmaKind::F8f6f4 | MmaKind::Mxf8f6f4 => &[E4m3, E5m2, E2m3, E3m2, E2m1],
            MmaKind::I8 => &[I8, U8],
            MmaKind::Mxf4 | MmaKind::Mxf4nvf4 => &[E2m1],
        }
    }
}

impl Mma {
    /// Checks whether such an MMA exists, with A in tensor memory or in shared memory.
    ///
    /// # Errors
    /// The reason why it does not exist; attributes are checked before extents.
    pub fn check(&self, a_in_tensor_memory: bool) -> Result<(), NoMma> {
        self.attributes(a_in_tensor_memory).map_err(NoMma::Attributes)?;
        self.elements().map_err(NoMma::Attributes)?;
        self.extents().map_err(NoMma::Shape)
    }

    fn attributes(&self, a_in_tensor_memory: bool) -> Result<(), String> {
        let kind = self.kind;
        if !matches!(self.cta_group, 1 | 2) {
            return Err(format!("there is no `cta_group` {}: one block computes an MMA, or two", self.cta_group));
        }
        if self.stationary && self.cta_group == 2 {
            return Err("MMAs of two blocks (`cta_group = 2`) are not weight-stationary".to_owned());
        }
        if self.stationary && kind.is_scaled() {
            return Err(format!("MMAs of kind `{kind}` are not weight-stationary"));
        }
        if !kind.scales().contains(&self.scale_vec) {
            return Err(self.wrong_scales());
        }
        if self.shifted && (self.stationary || kind.is_scaled()) {
            let which = if self.stationary { "weight-stationary MMAs" } else { "MMAs with scales" };
            return Err(format!("rows of A are not shifted (`ashift`) in {which}"));
        }
        if self.shifted && !a_in_tensor_memory {
            return Err("rows of A are shifted (`ashift`) only if A is in tensor memory".to_owned());
        }
        if self.shifted && matches!(self.collector, Collector::Fill | Collector::Use) {
            return Err(format!("the collector cannot `{}` rows of A that are shifted (`ashift`)", self.collector));
        }
        if self.scaled_input && (self.stationary || !matches!(kind, MmaKind::F16 | MmaKind::Tf32)) {
            return Err("the accumulator is scaled (`scale_input`) only in MMAs of kind `f16` and `tf32`, not weight-stationary".to_owned());
        }
        Ok(())
    }

    fn wrong_scales(&self) -> String {
        let (kind, n) = (self.kind, self.scale_vec);
        let stated: Vec<String> = kind.scales().iter().filter(|n| **n > 0).map(|n| format!("{n}X")).collect();
        match (n, stated.is_empty()) {
            (0, _) => format!("an MMA of kind `{kind}` must state `scale_vec`: {}", stated.join(" or ")),
            (_, true) => format!("MMAs of kind `{kind}` have no scales (`scale_vec`)"),
            (_, false) => format!("MMAs of kind `{kind}` do not have `scale_vec` {n}X, but {}", stated.join(" or ")),
        }
    }

    fn elements(&self) -> Result<(), String> {
        let (kind, a, b, d) = (self.kind, self.a, self.b, self.d);
        for elem in [a, b] {
            if !kind.elements().contains(&elem) {
                return Err(format!("MMAs of kind `{kind}` do not multiply `{elem}`"));
            }
        }
        if kind == MmaKind::F16 && a != b {
            return Err(format!("an MMA of kind `f16` does not multiply `{a}` by `{b}`"));
        }
        let half = kind == MmaKind::F8f6f4 || kind == MmaKind::F16 && a == TensorElem::F16;
        let fits = match d {
            TensorElem::F32 => kind != MmaKind::I8,
            TensorElem::F16 => half,
            TensorElem::I32 => kind == MmaKind::I8,
            TensorElem::Bf16
            | TensorElem::Tf32
            | TensorElem::E4m3
            | TensorElem::E5m2
            | TensorElem::E2m3
            | TensorElem::E3m2
            | TensorElem::E2m1
            | TensorElem::I8
            | TensorElem::U8 => false,
        };
        if fits { Ok(()) } else { Err(format!("MMAs of kind `{kind}` of `{a}` and `{b}` do not give `{d}`")) }
    }

    /// The values that M may have.
    fn rows(&self) -> &'static [u32] {
        match (self.cta_group, self.stationary, self.kind.is_scaled()) {
            (1, true, _) => &[32, 64, 128],
            (1, false, false) => &[64, 128],
            (1, false, true) => &[128],
            (_, _, _) => &[128, 256],
        }
    }

    fn extents(&self) -> Result<(), String> {
        let ([m, n, k], kind) = (self.shape, self.kind);
        if !self.rows().contains(&m) {
            let rows: Vec<String> = self.rows().iter().map(ToString::to_string).collect();
            return Err(format!("M is {m}: such an MMA of kind `{kind}` has {} rows", rows.join(" or ")));
        }
        if k != kind.depth() {
            return Err(format!("K is {k}: it is {} in MMAs of kind `{kind}`", kind.depth()));
        }
        if self.shifted && m == 64 {
            return Err("M is 64: rows of A are shifted (`ashift`) in MMAs of 128 or 256 rows".to_owned());
        }
        let step = if kind == MmaKind::I8 { 16 } else { 8 } * self.cta_group;
        let few = kind == MmaKind::I8 && self.cta_group == 1 && matches!(n, 8 | 24);
        let (fits, which) = if self.stationary {
            (matches!(n, 64 | 128 | 256), "64, 128 or 256".to_owned())
        } else if kind == MmaKind::I8 && self.cta_group == 1 {
            (few || n % 16 == 0, "8, 24 or a multiple of 16 up to 256".to_owned())
        } else {
            (n % step == 0, format!("a multiple of {step} up to 256"))
        };
        if fits && (1..=256).contains(&n) { Ok(()) } else { Err(format!("N is {n}: it must be {which}")) }
    }
}

impl Tcgen05Op {
    /// The number of CTAs that take part in the operation, if it has the attribute.
    #[must_use]
    pub const fn cta_group(&self) -> Option<u32> {
        match self {
            Tcgen05Op::Alloc { cta_group, .. }
            | Tcgen05Op::Dealloc { cta_group }
            | Tcgen05Op::Relinquish { cta_group }
            | Tcgen05Op::Mma(Mma { cta_group, .. })
            | Tcgen05Op::Copy { cta_group }
            | Tcgen05Op::Shift { cta_group }
            | Tcgen05Op::Commit { cta_group } => Some(*cta_group),
            Tcgen05Op::Load { .. }
            | Tcgen05Op::Store { .. }
            | Tcgen05Op::WaitLoad
            | Tcgen05Op::WaitStore
            | Tcgen05Op::FenceBefore
            | Tcgen05Op::FenceAfter => None,
        }
    }

    /// Whether the operation accesses columns of tensor memory, or frees them.
    #[must_use]
    pub const fn accesses_columns(&self) -> bool {
        match self {
            Tcgen05Op::Mma(_)
            | Tcgen05Op::Load { .. }
            | Tcgen05Op::Store { .. }
            | Tcgen05Op::Copy { .. }
            | Tcgen05Op::Shift { .. }
            | Tcgen05Op::Dealloc { .. } => true,
            Tcgen05Op::Alloc { .. }
            | Tcgen05Op::Relinquish { .. }
            | Tcgen05Op::Commit { .. }
            | Tcgen05Op::WaitLoad
            | Tcgen05Op::WaitStore
            | Tcgen05Op::FenceBefore
            | Tcgen05Op::FenceAfter => false,
        }
    }

    /// Whether the operation is started by one thread or executed by one warp, and not by each warp of the role.
    #[must_use]
    pub const fn is_of_one_warp(&self) -> bool {
        self.cta_group().is_some()
    }
}

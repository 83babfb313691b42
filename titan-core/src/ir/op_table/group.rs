//! The groups under which the documentation lists the operations.

/// The subject of a group of operations, in the order of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Sources of values.
    Values,
    /// Elementwise arithmetic.
    Arithmetic,
    /// Elementwise functions of one float.
    Functions,
    /// Comparisons and choice.
    Choice,
    /// Conversions.
    Conversions,
    /// Shapes.
    Shapes,
    /// Reductions and scans.
    Reductions,
    /// Matrix products.
    Matrix,
    /// Properties and views of tensors.
    Views,
    /// Loads and stores.
    Memory,
    /// Gathers, scatters and atomics.
    Indexed,
    /// Distribution of tiles to programs.
    Distribution,
    /// Debugging.
    Debugging,
    /// Control flow.
    Control,
    /// Stages of rings.
    Stages,
    /// MMAs in flight.
    Compute,
    /// Stores in flight.
    Stores,
    /// Roles and fences.
    Roles,
    /// Operations of laid-out kernels.
    Laid,
    /// Ranges of shared memory.
    Regions,
    /// Mbarriers.
    Barriers,
    /// Asynchronous copies and their groups.
    Copies,
    /// Warpgroup operations.
    Warpgroups,
    /// Tensor memory.
    TensorMemory,
    /// Operations of waves on AMD GPUs.
    Waves,
}

impl Group {
    /// All groups.
    pub const ALL: [Group; 25] = [
        Group::Values,
        Group::Arithmetic,
        Group::Functions,
        Group::Choice,
        Group::Conversions,
        Group::Shapes,
        Group::Reductions,
        Group::Matrix,
        Group::Views,
        Group::Memory,
        Group::Indexed,
        Group::Distribution,
        Group::Debugging,
        Group::Control,
        Group::Stages,
        Group::Compute,
        Group::Stores,
        Group::Roles,
        Group::Laid,
        Group::Regions,
        Group::Barriers,
        Group::Copies,
        Group::Warpgroups,
        Group::TensorMemory,
        Group::Waves,
    ];

    /// The heading in the documentation.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Group::Values => "Values",
            Group::Arithmetic => "Arithmetic",
            Group::Functions => "Functions",
            Group::Choice => "Comparison and choice",
            Group::Conversions => "Conversions",
            Group::Shapes => "Shapes",
            Group::Reductions => "Reductions and scans",
            Group::Matrix => "Matrix products",
            Group::Views => "Facts and views of tensors",
            Group::Memory => "Loads and stores",
            Group::Indexed => "Gathers, scatters and atomics",
            Group::Distribution => "Tiles of a program",
            Group::Debugging => "Debugging",
            Group::Control => "Control flow",
            Group::Stages => "Stages of rings",
            Group::Compute => "MMAs in flight",
            Group::Stores => "Stores in flight",
            Group::Roles => "Roles and fences",
            Group::Laid => "Tiles laid out over threads",
            Group::Regions => "Regions of shared memory",
            Group::Barriers => "Barriers in shared memory",
            Group::Copies => "Asynchronous copies",
            Group::Warpgroups => "Warpgroups",
            Group::TensorMemory => "Tensor memory",
            Group::Waves => "Waves of AMD GPUs",
        }
    }

    /// The heading of `docs/semantics.md` with the details.
    #[must_use]
    pub const fn semantics(self) -> Option<&'static str> {
        match self {
            Group::Arithmetic | Group::Functions | Group::Choice => Some("arithmetic"),
            Group::Conversions => Some("casts"),
            Group::Reductions | Group::Matrix => Some("reductions-scans-matrix-products"),
            Group::Views | Group::Memory | Group::Indexed => Some("memory"),
            Group::Values
            | Group::Shapes
            | Group::Distribution
            | Group::Debugging
            | Group::Control
            | Group::Stages
            | Group::Compute
            | Group::Stores
            | Group::Roles
            | Group::Laid
            | Group::Regions
            | Group::Barriers
            | Group::Copies
            | Group::Warpgroups
            | Group::TensorMemory
            | Group::Waves => None,
        }
    }
}

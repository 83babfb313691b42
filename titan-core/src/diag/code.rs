//! tidy: table
//! The registry of diagnostic codes. Each has a page `docs/errors/Txxxx.md`, a failing and a passing test.
//!
//! A rule is reported by rustc or by TITAN, never by both: rules marked `rustc` are reported through the typed shadow, and TITAN only
//! ensures that no artifact is built. A kernel with an error that TITAN reports has no shadow, so that there are no follow-up errors.

use std::fmt;

/// The reporter of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reporter {
    /// rustc, through the typed shadow.
    Rustc,
    /// TITAN's macro.
    Titan,
    /// TITAN's macro in the body of a kernel; rustc in the body of a device function, which is an ordinary function as well.
    TitanInKernels,
}

/// What a violation does to a build. docs/errors/README.md has the table of what stops and what goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing that needs attention: it is printed on request.
    Note,
    /// The build succeeds with something that is correct but less than what was asked for.
    Warning,
    /// The build fails, and nothing is embedded.
    Error,
}

/// The severity of a code: that of an error, unless another one is written.
macro_rules! severity {
    () => {
        Severity::Error
    };
    ($other:ident) => {
        Severity::$other
    };
}

macro_rules! codes {
    ($($name:ident $text:literal $reporter:ident $title:literal $(=> $severity:ident)?;)*) => {
        /// A rule of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $title] $name,)* }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// The code as text: `T0201`.
            #[must_use]
            pub const fn number(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// The reporter of violations.
            #[must_use]
            pub const fn reporter(self) -> Reporter {
                match self { $(Code::$name => Reporter::$reporter,)* }
            }

            /// What a violation does to a build.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Code::$name => severity!($($severity)?),)* }
            }

            /// The title of the rule.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }
        }
    };
}

codes! {
    Syntax "T0101" Titan "syntax that kernels do not have";
    Attribute "T0102" Titan "an attribute that is malformed or unknown";
    Parameter "T0103" Titan "a parameter of a kind that kernels do not take";
    Generics "T0104" Titan "a generic parameter that does not match the declared instances";
    Modifier "T0105" Titan "a kernel with a modifier or a return type, or inside an `impl`";
    DeviceFn "T0106" Titan "a device function that cannot be inlined";
    ForeignMacro "T0107" Titan "a macro that kernels do not have";
    NotForKernels "T0108" Titan "a function or constant that kernels cannot see";
    UnknownName "T0110" Rustc "a name that is not in scope";
    UnknownOp "T0111" TitanInKernels "an operation that does not exist for its receiver";
    Arguments "T0112" TitanInKernels "a value of the wrong kind, or the wrong number of arguments";
    Dispatch "T0113" Titan "a `dispatch!` that is malformed";
    ElementCount "T0201" Titan "a shape operation that changes the number of elements";
    TileSize "T0202" Titan "a tile with an illegal extent or too many elements";
    ShapeMismatch "T0203" TitanInKernels "operands with incompatible shapes";
    ElementMismatch "T0204" TitanInKernels "operands with incompatible element types";
    BadAxis "T0205" Rustc "an axis that the operand does not have";
    MmaElements "T0206" Rustc "element types without a matrix instruction";
    ElementUnsupported "T0207" TitanInKernels "an operation that its element type does not have";
    CannotInfer "T0208" Titan "a type that the kernel does not determine";
    ConstEval "T0209" Titan "a constant expression without a value";
    StaticAssert "T0210" Titan "a static assertion that does not hold";
    BitcastWidth "T0211" Titan "a bitcast between types of different width";
    DivisionByZero "T0212" Titan "a division by the constant zero";
    IndexType "T0213" Titan "an index that is not an i32";
    RankMismatch "T0214" TitanInKernels "a tile and a tensor of different rank";
    LiteralRange "T0215" Titan "a literal that its type cannot hold";
    AsCast "T0216" Titan "an `as` where `.cast` is needed";
    MmaShapes "T0217" Rustc "tiles whose shapes cannot be multiplied";
    ShapeName "T0301" Titan "a shape name that is not declared";
    ShapeRank "T0302" Titan "a shape declaration whose length is not the rank";
    ShapeTarget "T0303" Titan "a shape declaration on something that is not a tensor";
    Grid "T0304" Titan "a grid that is missing, too long or cannot be inferred";
    GridAxis "T0305" Titan "a program axis that the grid does not have";
    Requirement "T0306" Titan "a requirement that can never hold";
    MaybeAbsent "T0307" Titan "an optional tensor used where it may be absent";
    NeverStored "T0401" Titan "an output that is never stored";
    Overlap "T0402" Titan "an output whose parts are not provably disjoint between programs";
    TokenDropped "T0403" Titan "an output tile that is neither stored nor skipped";
    TokenReused "T0404" TitanInKernels "an output tile that is stored twice";
    StoreToInput "T0405" Rustc "a store to an input";
    SharedRead "T0406" Titan "a tensor that is scattered to or updated atomically and also read or stored";
    PackedOutput "T0407" Titan "a 4-bit output whose parts share bytes";
    GridDisagrees "T0408" Titan "outputs that imply different grids";
    ReadView "T0409" Titan "a view for reading that is stored through, or the reverse";
    GridShort "T0410" Titan "a grid that leaves parts of an output unwritten";
    Unwritten "T0411" Titan "elements of an output that no program writes";
    TilePart "T0440" Titan "a part or an element of a tile that is not inside of it";
    TileJoin "T0441" Titan "tiles that do not make up the tile that they are joined to";
    TileTuple "T0442" Titan "a reduction or a scan of a tuple that is not one of tiles of one shape";
    InClosure "T0443" Titan "an operation that a closure cannot execute element by element";
    EarlyExit "T0501" Titan "an early exit from a pipelined loop";
    Condition "T0502" TitanInKernels "a condition that is not one uniform bool";
    NestedPipeline "T0503" Titan "a pipelined loop inside a pipelined loop";
    Unreachable "T0504" Titan "a kernel that can never end";
    RolesAttr "T0601" Titan "roles that are malformed or do not match the arms of `match role()`";
    RingMade "T0602" Titan "a ring that is malformed or declared in the wrong place";
    TokenLost "T0603" Titan "a token of a pipeline that is dropped";
    TokenTwice "T0604" TitanInKernels "a token of a pipeline that is used twice";
    EarlyRelease "T0605" TitanInKernels "a stage that is released while something still reads it";
    ReadersApart "T0606" Titan "a stage that is split into parts and not joined again";
    PoisonRead "T0607" Titan "a stage that is read though it may be poison";
    WrongSide "T0608" Titan "a ring that is filled or read by the wrong roles";
    Unbalanced "T0609" Titan "a ring that is not filled as often as it is read";
    WaitCycle "T0610" Titan "roles that wait for each other forever";
    TooManyHeld "T0611" Titan "more stages held at once than the ring has slots";
    RolesDiverge "T0612" Titan "roles whose loops and branches do not correspond";
    StageContents "T0613" Rustc "contents that do not match the stage";
    WrongTime "T0614" Titan "a stated time that is not that of the ring's clock";
    RoleValue "T0615" Titan "a tile that one role computes and another uses";
    TwoWriters "T0616" Titan "an output that two roles access";
    SourceWritten "T0617" Titan "a copy from a tensor that the kernel writes";
    StagingReused "T0618" Titan "a staging slot that is filled again while its store may still read it";
    NotFinalized "T0619" Titan "a role that may end with asynchronous work in flight";
    RingMemory "T0620" Titan "rings that need more shared memory than a program has";
    Instances "T0621" Titan "a role with several instances that cannot take tiles in turn";
    RegionMade "T0701" Titan "a region outside shared memory, or an element out of range";
    BarrierWord "T0702" Titan "a barrier whose word is misplaced or shared";
    BarrierLife "T0703" Titan "a barrier that is used before it is initialised or after it is invalidated";
    BarrierCount "T0704" Titan "arrivals that do not match the count of a barrier";
    TxBytes "T0705" Titan "expected bytes (expect_tx) that do not match the copied bytes";
    WaitParity "T0706" Titan "an index or parity that does not follow the phases of its barrier";
    InFlight "T0707" Titan "an access that conflicts with one that may be in flight";
    NeverCompletes "T0708" Titan "a wait that never terminates, or could not be shown to terminate";
    GroupOpen "T0709" Titan "asynchronous work whose group is never committed";
    InFlightAtEnd "T0710" Titan "asynchronous work in flight at the end";
    PhaseMixed "T0711" Titan "an arrival or wait that may fall into the wrong phase";
    NotShown "T0712" Titan "a protocol that could not be verified";
    FencePointless "T0713" Titan "a fence between a proxy and itself";
    Participants "T0714" Titan "numbers of threads, registers or barriers beyond the hardware limits";
    GroupOrder "T0715" Titan "tokens of groups that are numbered or waited for out of order";
    Unfenced "T0716" Titan "an asynchronous access that is not fenced from generic accesses to the same bytes";
    TensorMma "T0717" Titan "an MMA on tensor memory whose attributes do not go together";
    TensorMmaShape "T0718" Titan "an MMA on tensor memory of a shape that does not exist";
    TensorColumns "T0719" Titan "columns of tensor memory that cannot be allocated, are not freed once, or are used afterwards or beyond their end";
    TensorThreads "T0720" Titan "an operation on tensor memory by the wrong threads or blocks";
    TensorUnfenced "T0721" Titan "an access to tensor memory that no fence orders after an earlier one";
    NeverWritten "T0722" Titan "a read of memory on the chip that nothing has written";
    Operands "T0801" Titan "an operation with the wrong operands";
    Structure "T0802" Titan "a block or region that is not well formed";
    Visibility "T0803" Titan "a value used where it is not defined";
    TypeAnnotation "T0804" Titan "a written type that differs from the inferred one";
    Text "T0805" Titan "text that is not tile IR";
    ArtifactFormat "T0806" Titan "bytes that are not an artifact of this version";
    Internal "T0901" Titan "a rule of rustc that rustc did not report";
    Backend "T0902" Titan "a target that cannot take the kernel";
    NoTensorMap "T0903" Titan "a bulk copy that no tensor map describes";
    BulkRequired "T0904" Titan "a kernel that requires bulk copies and has none";
    GroupMma "T0905" Titan "an MMA of warpgroups that does not exist";
    StridedZeros "T0906" Titan "a bulk copy that cannot leave zeros beyond its box";
    NoCode "T0907" Titan "a target that gets no code" => Warning;
    SimplerSchedule "T0908" Titan "a schedule that could not be verified" => Warning;
    CodeNote "T0909" Titan "a note about the code of a kernel" => Note;
    ScheduleText "T1001" Titan "text that is not a graph or a schedule";
    ScheduleName "T1002" Titan "a name of a graph that is unknown or used twice";
    ScheduleNumber "T1003" Titan "a number of a graph that is out of range";
    ScheduleCircle "T1004" Titan "operations that wait for each other in the same iteration";
    ScheduleSelfOverlap "T1005" Titan "an operation that holds a unit for longer than an iteration takes";
    ScheduleIllegal "T1006" Titan "a schedule that is not legal for its graph";
    NoInstance "T1101" Titan "an instance that the kernel does not declare, at run time";
    NotOfType "T1102" Titan "a tensor that is read with another element type or rank than it has";
    TensorBytes "T1103" Titan "bytes that are not the elements of a tensor";
    SafetensorsFile "T1104" Titan "a safetensors file that is malformed";
    SafetensorsElement "T1105" Titan "an element type of safetensors that TITAN does not have";
    SafetensorsName "T1106" Titan "a tensor that a safetensors file does not have";
    ForeignGpu "T1107" Titan "an AMD GPU for which there is no code, at run time";
    CodeObject "T1108" Titan "a code object that cannot be loaded";
    LaunchMemory "T1109" Titan "a launch that needs more shared memory than the device has";
    HostUnwritten "T1110" Titan "elements that are read before something has written them";
    HostCopy "T1111" Titan "a copy between tensors or to a slice of another shape";
    AxisView "T1112" Titan "an axis that cannot be divided so, or axes that cannot be joined";
    EventTime "T1113" Titan "events between which there is no time";
    Strided "T1114" Titan "strides of borrowed memory that leave it or let elements overlap";
    Foreign "T1120" Titan "memory or a stream of another library that does not belong to the device";
    Records "T1121" Titan "records of measurements that are damaged or cannot be read";
    Measurement "T1122" Titan "a measurement or a choice by speed that cannot be made";
    Capture "T1123" Titan "what a graph cannot capture";
    GraphUpdate "T1124" Titan "a replay or an update that does not fit its graph";
    Dlpack "T1125" Titan "a tensor of DLPack that cannot be taken or given";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.number())
    }
}

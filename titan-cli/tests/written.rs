//! Schedules that someone wrote: whatever is in them, each is carried out or told to be wrong.

use proptest::prelude::*;
use std::sync::LazyLock;
use titan_core::diag::Code;
use titan_core::driver::{Arguments, Backend, stages, stages_written};
use titan_core::ir::{Kernel, OpId, Planned};
use titan_core::text::parse;
use titan_core::verify::{Verified, verify};

/// A machine of a back end.
#[derive(Clone, Copy)]
enum Machine {
    Nv(&'static titan_nv::Machine),
    Amd(&'static titan_amd::Machine),
}

impl Machine {
    fn backend(self) -> &'static dyn Backend {
        match self {
            Machine::Nv(machine) => machine,
            Machine::Amd(machine) => machine,
        }
    }
}

/// A kernel, a machine, and the schedules of the kernel's loops that were chosen for it.
struct Case {
    kernel: Verified,
    machine: Machine,
    scheduled: Kernel,
}

/// The kernels of the tests that have loops with schedules, for all machines.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let files = [
        "titan-cli/tests/files/attention.tir",
        "titan-cli/tests/files/gemm.tir",
        "titan-core/filetests/verify/tiles_in_some_programs.tir",
        "titan-nv/golden/gemm_loop.tir",
        "titan-nv/tests/hopper/kernels/gemm_ws.tir",
    ];
    let amd = titan_amd::Machine::all().iter().map(Machine::Amd);
    let machines: Vec<Machine> = titan_nv::Machine::all().iter().map(Machine::Nv).chain(amd).collect();
    let mut cases = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(format!("{root}/{file}")).expect("a file");
        for kernel in parse(&text).expect("kernels").into_iter().filter_map(|kernel| verify(kernel).ok()) {
            for machine in machines.iter().copied() {
                // Some kernels have no code for some machines.
                let Ok(all) = stages(&kernel, machine.backend(), Arguments::Aligned, None) else { continue };
                if all.scheduled.ops.iter().any(|op| op.planned.is_some()) {
                    cases.push(Case { kernel: kernel.clone(), machine, scheduled: all.scheduled });
                }
            }
        }
    }
    cases
});

/// What someone may do to a schedule. Numbers select operations, modulo their number.
#[derive(Clone, Debug)]
enum Change {
    /// Another stage.
    Stage(usize, u16),
    /// Another place.
    Place(usize, u16),
    /// No place.
    None(usize),
    /// Two operations at each other's place.
    Exchange(usize, usize),
    /// All stages so many later.
    Later(u16),
    /// Whether a loop is peeled, and whether it is split.
    Ends(usize, bool, bool),
}

fn change() -> impl Strategy<Value = Change> {
    let number = || prop_oneof![0_u16..4, Just(63), Just(u16::MAX), any::<u16>()];
    let op = any::<usize>;
    prop_oneof![
        3 => (op(), number()).prop_map(|(op, stage)| Change::Stage(op, stage)),
        2 => (op(), number()).prop_map(|(op, place)| Change::Place(op, place)),
        1 => op().prop_map(Change::None),
        2 => (op(), op()).prop_map(|(a, b)| Change::Exchange(a, b)),
        1 => (1_u16..3).prop_map(Change::Later),
        2 => (op(), any::<bool>(), any::<bool>()).prop_map(|(op, peeled, split)| Change::Ends(op, peeled, split)),
    ]
}

impl Change {
    fn make(&self, kernel: &mut Kernel) {
        let such =
            |wanted: &dyn Fn(OpId) -> bool| (0..kernel.ops.len()).map(OpId::new).filter(|id| wanted(*id)).collect();
        let planned: Vec<OpId> = such(&|id| kernel.op(id).planned.is_some());
        let loops: Vec<OpId> = such(&|id| kernel.op(id).kind.is_loop());
        let Some(last) = planned.len().checked_sub(1) else { return };
        let mut with = |at: usize, change: &dyn Fn(&mut Planned)| {
            if let Some(planned) = &mut kernel.ops[planned[at % (last + 1)].index()].planned {
                change(planned);
            }
        };
        match *self {
            Change::Stage(at, stage) => with(at, &|planned| planned.stage = stage),
            Change::Place(at, order) => with(at, &|planned| planned.order = order),
            Change::Later(by) => {
                (0..=last).for_each(|at| with(at, &|planned| planned.stage = planned.stage.saturating_add(by)));
            }
            Change::None(at) => kernel.ops[planned[at % (last + 1)].index()].planned = None,
            Change::Exchange(a, b) => {
                let [a, b] = [a, b].map(|at| planned[at % (last + 1)].index());
                let was = kernel.ops[a].planned;
                kernel.ops[a].planned = kernel.ops[b].planned;
                kernel.ops[b].planned = was;
            }
            Change::Ends(at, peeled, unmasked) => {
                let op = &mut kernel.ops[loops[at % loops.len()].index()];
                (op.peeled, op.unmasked) = (peeled, unmasked);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: test_depth::cases(4000, 120),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Nothing panics, and no schedule is called a defect of the compiler, which is only what the compiler chose itself.
    #[test]
    fn any_schedule_is_carried_out_or_told_to_be_wrong(
        case in any::<usize>(),
        changes in proptest::collection::vec(change(), 1..4),
    ) {
        let Case { kernel, machine, scheduled } = &CASES[case % CASES.len()];
        let mut written = scheduled.clone();
        for change in &changes {
            change.make(&mut written);
        }
        if let Err(error) = stages_written(kernel, machine.backend(), Arguments::Aligned, None, &written) {
            prop_assert_eq!(error.code(), Code::Backend);
            prop_assert!(!error.message.contains("a defect of TITAN"), "{}", error.message);
        }
    }
}

/// The places of a loop in a loop end where their numbers end: no sum of places is computed wrongly there.
#[test]
fn the_last_place_may_be_that_of_a_loop() {
    for Case { kernel, machine, scheduled } in CASES.iter() {
        let mut written = scheduled.clone();
        for op in &mut written.ops {
            if op.kind.is_loop()
                && let Some(planned) = &mut op.planned
            {
                planned.order = u16::MAX;
            }
        }
        let made = stages_written(kernel, machine.backend(), Arguments::Aligned, None, &written);
        assert!(made.is_ok() || made.is_err_and(|error| !error.message.contains("a defect of TITAN")));
    }
}

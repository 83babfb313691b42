//! Functions of lane IR as code objects, and launches of them.

use titan_amd::Machine;
use titan_amd::codegen::{EmitError, Emitted, emit};
use titan_amd::emu::{
    Args, Completion, EmuError, Launch, LocalAccess, Memory, Module, Options, Schedule, Uninitialised,
};
use titan_core::lane::Func;

pub(crate) fn machine() -> &'static Machine {
    Machine::from_name("gfx942").expect("it is a target")
}

pub(crate) fn emitted(func: &Func) -> Result<Emitted, EmitError> {
    emit(func, machine())
}

/// Late, early, and at random; the last with random bits in registers that were not written.
pub(crate) fn orders() -> [Options; 3] {
    let options = |completion, schedule, uninitialised| Options {
        completion,
        schedule,
        uninitialised,
        max_steps: 1 << 24,
        ..Options::default()
    };
    [
        options(Completion::Late, Schedule::InTurn, Uninitialised::Strict),
        options(Completion::Early, Schedule::InTurn, Uninitialised::Strict),
        options(Completion::Seeded(5), Schedule::Seeded(6), Uninitialised::Random(7)),
    ]
}

/// A kernel that is ready to be launched.
pub(crate) struct Ready {
    pub(crate) emitted: Emitted,
    module: Module,
    threads: u32,
}

impl Ready {
    pub(crate) fn new(func: &Func) -> Result<Ready, EmitError> {
        Ok(Ready::of(emitted(func)?, func))
    }

    pub(crate) fn of(emitted: Emitted, func: &Func) -> Ready {
        let module = Module::load(&emitted.object).unwrap_or_else(|e| panic!("{}: {e}", func.name));
        Ready { emitted, module, threads: func.threads }
    }

    /// The same kernel with other instructions of the same size.
    pub(crate) fn with_text(&self, text: &[u8]) -> Ready {
        let (own, mut object) = (&self.emitted.text, self.emitted.object.clone());
        let at = object.windows(own.len()).position(|bytes| bytes == own).expect("the object has the text");
        object[at..at + text.len()].copy_from_slice(text);
        let module = Module::load(&object).unwrap_or_else(|e| panic!("{e}"));
        let emitted = Emitted { text: text.to_vec(), object, ..self.emitted.clone() };
        Ready { emitted, module, threads: self.threads }
    }

    pub(crate) fn run(
        &self,
        grid: [u32; 3],
        args: &[u8],
        memory: &mut Memory,
        options: &Options,
    ) -> Result<Vec<LocalAccess>, EmuError> {
        let launch = Launch { grid, block: [self.threads, 1, 1], dynamic_lds: 0, args: Args::Packed(args) };
        let mut accesses = Vec::new();
        self.module.kernel(&self.emitted.entry)?.run_recorded(&launch, memory, options, Some(&mut accesses))?;
        Ok(accesses)
    }
}

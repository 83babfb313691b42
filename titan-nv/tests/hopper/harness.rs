//! Small kernels for sm_90a, and how to run them.

use titan_nv::emu::{Completion, EmuError, ErrorCode, Launch, Memory, Module, Options, Param, Schedule, Stats};
use titan_nv::tma::TensorMap;

/// A kernel `k` with these parameters, shared memory and body.
pub(crate) fn text(params: &str, shared: u32, before: &str, body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n\
         .visible .entry k({params}) {before} {{\n\
         .reg .b64 %rd<32>; .reg .b32 %r<128>; .reg .b16 %h<8>; .reg .pred %p<8>; .reg .f32 %f<256>;\n\
         .shared .align 8 .b8 bars[64];\n\
         // {shared} bytes\n{body}\n}}\n"
    )
}

/// The wait for a phase of a barrier.
pub(crate) fn wait(barrier: &str, parity: u32, label: &str) -> String {
    format!("{label}: mbarrier.try_wait.parity.shared::cta.b64 %p7, [{barrier}], {parity};\n@!%p7 bra {label};\n")
}

pub(crate) fn bytes(map: &TensorMap) -> Param {
    Param::Bytes(map.to_bytes().to_vec())
}

/// How a kernel is launched.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) blocks: u32,
    pub(crate) cluster: u32,
    pub(crate) threads: u32,
    pub(crate) shared: u32,
}

pub(crate) fn run(
    text: &str,
    shape: Shape,
    params: &[Param],
    memory: &mut Memory,
    options: &Options,
) -> Result<Stats, EmuError> {
    let Shape { blocks, cluster, threads, shared } = shape;
    let cluster = (cluster > 1).then_some([cluster, 1, 1]);
    let launch = Launch { grid: [blocks, 1, 1], block: [threads, 1, 1], dynamic_shared: shared, cluster, params };
    Module::parse(text)?.entry("k")?.run(&launch, memory, options)
}

/// The orders of completion and of warps under which a kernel must do the same.
pub(crate) fn orders() -> [Options; 4] {
    let of = |completion, schedule| Options { completion, schedule, sanitize: true, ..Options::default() };
    [
        of(Completion::Late, Schedule::InTurn),
        of(Completion::Early, Schedule::InTurn),
        of(Completion::Seeded(3), Schedule::Seeded(4)),
        of(Completion::Seeded(5), Schedule::Seeded(6)),
    ]
}

/// The order for a case of many, in turn. In the quick depth, the sanitizer watches every second case on an order.
pub(crate) fn order_of(number: usize) -> Options {
    let orders = orders();
    let order = orders[number % orders.len()].clone();
    Options { sanitize: test_depth::is_full() || (number / orders.len()).is_multiple_of(2), ..order }
}

/// The orders for a case of many: in the quick depth one of them, in turn, so that each order meets some of the cases.
pub(crate) fn orders_of(number: usize) -> Vec<Options> {
    if test_depth::is_full() { orders().into() } else { vec![order_of(number)] }
}

/// That some order finds a mistake, with or without the sanitizer, of this kind and in these words.
pub(crate) fn refuses(
    what: &str,
    text: &str,
    shape: Shape,
    params: &[Param],
    memory: &Memory,
    want: (ErrorCode, &str),
) {
    let mut said = Vec::new();
    let quiet = orders().map(|o| Options { sanitize: false, ..o });
    for options in orders().into_iter().chain(quiet) {
        if let Err(e) = run(text, shape, params, &mut memory.clone(), &options) {
            said.push(format!("{e}"));
            if e.code() == want.0 && e.to_string().contains(want.1) {
                return;
            }
        }
    }
    panic!("{what}: wanted {} with `{}`, got {said:#?}", want.0.name(), want.1);
}

//! Kernels that the verifier refuses and that therefore only run here: a role that cannot proceed is an error.

#![expect(unsafe_code, reason = "these kernels are not verified")]

use titan_core::text::parse_one;
use titan_core::verify::verify;
use titan_cpu::internals::unverified;
use titan_cpu::memory::Memory;
use titan_cpu::{Arg, Options, RunError};

/// The message of the trap with which a kernel ends.
fn trap(pipes: &str, body: &str) -> String {
    let text = format!(
        "kernel @p(%c: mut tensor<f32>[N]) grid(1) {pipes} {{
        %zero = const 0 : i32
        {body}
        return
        }}"
    );
    let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    assert!(verify(kernel.clone()).is_err(), "a verified kernel\n{text}");
    // SAFETY: one program runs.
    let program = unsafe { unverified(&kernel, Options::default()) };
    let program = program.unwrap_or_else(|e| panic!("{e}\n{text}"));
    let memory = Memory::zeroed(32).unwrap();
    let c = Arg::Tensor { memory, offset: 0, extents: vec![8], strides: vec![1] };
    let message = || match program.run(std::slice::from_ref(&c), [1, 1, 1]) {
        Err(RunError::Trap { message, .. }) => message,
        other => panic!("{other:?}\n{text}"),
    };
    // The second launch is not affected by the state of the first one.
    let first = message();
    assert_eq!(first, message());
    first
}

const RING: &str = "pipe(1, tile<8xf32>)";

const READ: &str = "%r = ttg.stage.ready<0>
    %s = ttg.stage.wait_ready %r
    %p = ttg.stage.read_perm %s
    %v = ttg.stage.view<0> %p : smem<8xf32>
    %x = ttg.stage.read %v
    store_tile %c[%zero], %x
    %k = ttg.stage.consumed %p
    ttg.stage.release %k";

#[test]
fn an_empty_ring_is_read() {
    assert!(trap(RING, READ).contains("a stage is read that is not filled"));
}

#[test]
fn poison_is_read() {
    let body = format!("%f = ttg.stage.acquire<0>\nttg.stage.poison %f\n{READ}");
    assert!(trap(RING, &body).contains("a stage is read that holds nothing"));
}

#[test]
fn a_role_reads_more_than_is_filled() {
    let roles = format!("{RING} role(one, 1) role(two, 1)");
    let body = format!(
        "ttg.roles one {{
        ttg.pipeline.finalize
        yield
        }} two {{
        {READ}
        ttg.pipeline.finalize
        yield
        }}"
    );
    assert_eq!(trap(&roles, &body), "the roles wait for each other");
}

#[test]
fn a_role_fills_without_end() {
    let roles = format!("{RING} role(one, 1) role(two, 1)");
    let body = "%one = const 1 : i32
        %many = const 100000 : i32
        ttg.roles one {
        for %t = %zero to %many step %one {
            %f = ttg.stage.acquire<0>
            ttg.stage.zero %f
            continue
        }
        ttg.pipeline.finalize
        yield
        } two {
        %r = ttg.stage.ready<0>
        %s = ttg.stage.wait_ready %r
        %k = ttg.stage.consumed %s
        ttg.stage.release %k
        ttg.pipeline.finalize
        yield
        }";
    assert_eq!(trap(&roles, body), "the roles wait for each other");
}

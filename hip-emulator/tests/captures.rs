//! Captures and graphs over the C interface: what breaks a capture, updates, the end of graphs, and mistakes with them.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, unsafe_code, reason = "a test that cannot go on stops; the interface is one of C")]
#![expect(clippy::disallowed_methods, reason = "tests are set by the environment")]

mod process;

use process::{code_object, in_every_order, with};
use std::ffi::{c_char, c_uint, c_void};
use std::ptr::{null, null_mut};

// The library of the tests is linked: its functions have the names of the interface.
use hip_emulator as _;

type Handle = *mut c_void;

/// `hipKernelNodeParams`.
#[repr(C)]
struct Node {
    block: [c_uint; 3],
    extra: *const *const c_void,
    func: Handle,
    grid: [c_uint; 3],
    params: *const *const c_void,
    shared: c_uint,
}

unsafe extern "C" {
    safe fn hipMalloc(at: &mut Handle, bytes: usize) -> c_uint;
    safe fn hipHostMalloc(at: &mut Handle, bytes: usize, flags: c_uint) -> c_uint;
    safe fn hipHostFree(at: Handle) -> c_uint;
    safe fn hipMemsetD8Async(at: Handle, value: u8, bytes: usize, stream: Handle) -> c_uint;
    fn hipMemcpyHtoDAsync(at: Handle, from: *const c_void, bytes: usize, stream: Handle) -> c_uint;
    fn hipMemcpyDtoHAsync(to: *mut c_void, at: Handle, bytes: usize, stream: Handle) -> c_uint;
    fn hipModuleLoadData(module: &mut Handle, image: *const u8) -> c_uint;
    fn hipModuleGetFunction(function: &mut Handle, module: Handle, name: *const c_char) -> c_uint;
    fn hipModuleLaunchKernel(
        function: Handle,
        gx: c_uint,
        gy: c_uint,
        gz: c_uint,
        bx: c_uint,
        by: c_uint,
        bz: c_uint,
        lds: c_uint,
        stream: Handle,
        params: *const *const c_void,
        extra: *const *const c_void,
    ) -> c_uint;
    safe fn hipStreamCreateWithFlags(stream: &mut Handle, flags: c_uint) -> c_uint;
    safe fn hipStreamDestroy(stream: Handle) -> c_uint;
    safe fn hipStreamSynchronize(stream: Handle) -> c_uint;
    safe fn hipStreamQuery(stream: Handle) -> c_uint;
    safe fn hipStreamBeginCapture(stream: Handle, mode: c_uint) -> c_uint;
    safe fn hipStreamEndCapture(stream: Handle, graph: &mut Handle) -> c_uint;
    fn hipStreamGetCaptureInfo_v2(
        stream: Handle,
        status: &mut c_uint,
        id: *mut u64,
        graph: *mut Handle,
        nodes: &mut *const Handle,
        count: &mut usize,
    ) -> c_uint;
    safe fn hipGraphInstantiateWithFlags(exec: &mut Handle, graph: Handle, flags: u64) -> c_uint;
    fn hipGraphExecKernelNodeSetParams(exec: Handle, node: Handle, params: *const Node) -> c_uint;
    safe fn hipGraphLaunch(exec: Handle, stream: Handle) -> c_uint;
    safe fn hipGraphExecDestroy(exec: Handle) -> c_uint;
    safe fn hipGraphDestroy(graph: Handle) -> c_uint;
}

const OK: c_uint = 0;
const INVALID_VALUE: c_uint = 1;
const ILLEGAL_STATE: c_uint = 401;
const UNSUPPORTED: c_uint = 900;
const INVALIDATED: c_uint = 901;
const WRONG_THREAD: c_uint = 908;
const THREAD_LOCAL: c_uint = 1;
const RELAXED: c_uint = 2;

fn function() -> Handle {
    let (mut module, mut function) = (null_mut(), null_mut());
    // SAFETY: the bytes are a file as long as it says, and the name ends.
    unsafe {
        assert_eq!(hipModuleLoadData(&mut module, code_object().as_ptr()), OK);
        assert_eq!(hipModuleGetFunction(&mut function, module, c"vector_add".as_ptr()), OK);
    }
    function
}

fn filled(value: f32) -> Handle {
    let mut at = null_mut();
    assert_eq!(hipMalloc(&mut at, 1024), OK);
    let s = stream();
    let bytes: Vec<u8> = value.to_le_bytes().repeat(256);
    // SAFETY: the bytes live until the stream is over.
    assert_eq!(unsafe { hipMemcpyHtoDAsync(at, bytes.as_ptr().cast(), 1024, s) }, OK);
    assert_eq!(hipStreamSynchronize(s), OK);
    at
}

fn stream() -> Handle {
    let mut stream = null_mut();
    assert_eq!(hipStreamCreateWithFlags(&mut stream, 1), OK);
    stream
}

/// `z = x + y` of 256 numbers.
fn add(function: Handle, stream: Handle, [x, y, z]: [Handle; 3]) -> c_uint {
    let n = 256_u32;
    let params: [*const c_void; 4] =
        [(&raw const x).cast(), (&raw const y).cast(), (&raw const z).cast(), (&raw const n).cast()];
    // SAFETY: a pointer to each argument, which lives until the call returns.
    unsafe { hipModuleLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream, params.as_ptr(), null()) }
}

fn set(exec: Handle, node: Handle, func: Handle, [x, y, z]: [Handle; 3]) -> c_uint {
    let n = 256_u32;
    let params: [*const c_void; 4] =
        [(&raw const x).cast(), (&raw const y).cast(), (&raw const z).cast(), (&raw const n).cast()];
    let wanted = Node { block: [256, 1, 1], extra: null(), func, grid: [1; 3], params: params.as_ptr(), shared: 0 };
    // SAFETY: as above.
    unsafe { hipGraphExecKernelNodeSetParams(exec, node, &raw const wanted) }
}

fn read(at: Handle) -> f32 {
    let s = stream();
    let mut out = vec![0.0_f32; 256];
    // SAFETY: the memory lives until the stream is over.
    assert_eq!(unsafe { hipMemcpyDtoHAsync(out.as_mut_ptr().cast(), at, 1024, s) }, OK);
    assert_eq!(hipStreamSynchronize(s), OK);
    assert!(out.iter().all(|v| *v == out[0]), "{out:?}");
    out[0]
}

/// The status of a capture, and the node on which the next one depends.
fn info(stream: Handle) -> (c_uint, Option<Handle>) {
    let (mut status, mut nodes, mut count) = (9, null(), 9);
    // SAFETY: the results have room, or are null.
    let code =
        unsafe { hipStreamGetCaptureInfo_v2(stream, &mut status, null_mut(), null_mut(), &mut nodes, &mut count) };
    assert_eq!(code, OK);
    // SAFETY: there are `count` nodes.
    (status, (count == 1).then(|| unsafe { *nodes }))
}

fn end(stream: Handle) -> Result<Handle, c_uint> {
    let mut graph = null_mut();
    match hipStreamEndCapture(stream, &mut graph) {
        OK => Ok(graph),
        code => Err(code),
    }
}

fn instantiate(graph: Handle) -> Handle {
    let mut exec = null_mut();
    assert_eq!(hipGraphInstantiateWithFlags(&mut exec, graph, 0), OK);
    exec
}

#[test]
fn a_capture_records_kernels_and_a_graph_runs_them() {
    in_every_order("a_capture_records_kernels_and_a_graph_runs_them", || {
        let f = function();
        let [x, y, z] = [1.0, 2.0, 0.0].map(filled);
        let (s, t) = (stream(), stream());
        assert_eq!((info(s), hipStreamBeginCapture(s, THREAD_LOCAL)), ((0, None), OK));
        assert_eq!((info(s), add(f, s, [x, y, x])), ((1, None), OK));
        let first = info(s).1.unwrap();
        assert_eq!(add(f, s, [x, y, z]), OK);
        let second = info(s).1.unwrap();
        assert_ne!(first, second);
        let graph = end(s).unwrap();
        assert_eq!((read(x), read(z)), (1.0, 0.0), "nothing has run");
        let exec = instantiate(graph);
        // Launches of one graph are in order, on any streams; those that are enqueued keep their arguments.
        assert_eq!((hipGraphLaunch(exec, s), hipGraphLaunch(exec, t)), (OK, OK));
        assert_eq!(set(exec, second, f, [x, x, z]), OK);
        assert_eq!(hipGraphLaunch(exec, t), OK);
        assert_eq!((hipStreamSynchronize(s), hipStreamSynchronize(t)), (OK, OK));
        assert_eq!((read(x), read(z)), (7.0, 14.0));
        // What is pending runs although graph and executable graph are destroyed.
        assert_eq!(hipGraphLaunch(exec, s), OK);
        assert_eq!((hipGraphExecDestroy(exec), hipGraphDestroy(graph)), (OK, OK));
        assert_eq!(hipStreamSynchronize(s), OK);
        assert_eq!((read(x), read(z)), (9.0, 18.0));
        assert_eq!((hipGraphLaunch(exec, s), hipGraphDestroy(graph)), (INVALID_VALUE, INVALID_VALUE));
    });
}

#[test]
fn what_a_capture_does_not_allow_breaks_it() {
    with("what_a_capture_does_not_allow_breaks_it", &[], || {
        let f = function();
        let x = filled(1.0);
        let (s, t) = (stream(), stream());
        let mut made = null_mut();
        for breaks in 0..5 {
            assert_eq!((hipStreamBeginCapture(s, THREAD_LOCAL), add(f, s, [x, x, x])), (OK, OK));
            let code = match breaks {
                0 => hipStreamSynchronize(s),
                1 => hipStreamQuery(s),
                2 => hipMemsetD8Async(x, 0, 16, s),
                3 => hipMalloc(&mut made, 16),
                _ => hipHostMalloc(&mut made, 16, 0),
            };
            assert_eq!((code, info(s)), (UNSUPPORTED, (2, None)), "{breaks}");
            assert_eq!(add(f, s, [x, x, x]), INVALIDATED);
            assert_eq!((end(s), end(s)), (Err(INVALIDATED), Err(ILLEGAL_STATE)));
        }
        assert_eq!((hipStreamBeginCapture(s, RELAXED), hipStreamBeginCapture(s, RELAXED)), (OK, ILLEGAL_STATE));
        assert_eq!((hipMalloc(&mut made, 16), add(f, t, [x, x, x])), (OK, OK));
        assert_eq!(hipStreamSynchronize(t), OK);
        assert!(end(s).is_ok());
        assert_eq!(hipStreamBeginCapture(s, THREAD_LOCAL), OK);
        let at = s.addr();
        let other = std::thread::spawn(move || end(std::ptr::without_provenance_mut(at)).err());
        assert_eq!(other.join().unwrap(), Some(WRONG_THREAD));
        assert_eq!(end(s), Err(INVALIDATED));
        assert_eq!(hipStreamBeginCapture(null_mut(), RELAXED), UNSUPPORTED, "the default stream is not captured");
        assert_eq!(hipStreamBeginCapture(s, 3), INVALID_VALUE);
        assert_eq!(read(x), 2.0, "only the launch on the other stream has run");
    });
}

#[test]
fn mistakes_with_graphs_are_refused() {
    with("mistakes_with_graphs_are_refused", &[], || {
        let f = function();
        let x = filled(1.0);
        let (s, t) = (stream(), stream());
        assert_eq!((hipStreamBeginCapture(s, THREAD_LOCAL), add(f, s, [x, x, x])), (OK, OK));
        let node = info(s).1.unwrap();
        let graph = end(s).unwrap();
        let mut exec = null_mut();
        assert_eq!(hipGraphInstantiateWithFlags(&mut exec, s, 0), INVALID_VALUE);
        let exec = instantiate(graph);
        assert_eq!((set(exec, graph, f, [x; 3]), set(graph, node, f, [x; 3])), (INVALID_VALUE, INVALID_VALUE));
        assert_ne!(set(exec, node, s, [x; 3]), OK);
        assert_eq!((hipStreamBeginCapture(t, THREAD_LOCAL), hipGraphLaunch(exec, t)), (OK, UNSUPPORTED));
        assert_eq!(end(t), Err(INVALIDATED));
        assert_eq!((hipGraphDestroy(graph), set(exec, node, f, [x; 3])), (OK, INVALID_VALUE));
        assert_eq!((hipGraphLaunch(exec, s), hipStreamSynchronize(s)), (OK, OK));
        assert_eq!(read(x), 2.0);
        assert_eq!((hipStreamBeginCapture(t, THREAD_LOCAL), hipStreamDestroy(t)), (OK, OK));
    });
}

#[test]
fn pinned_memory_that_a_copy_reads_is_not_freed() {
    with("pinned_memory_that_a_copy_reads_is_not_freed", &[("HIP_EMULATOR_ORDER", "late")], || {
        let (x, s) = (filled(1.0), stream());
        let mut host = null_mut();
        assert_eq!(hipHostMalloc(&mut host, 1024, 1), OK);
        // SAFETY: so many bytes, which were just allocated.
        unsafe { host.cast::<f32>().copy_from_nonoverlapping([6.0; 256].as_ptr(), 256) };
        // SAFETY: the memory is freed after the stream is over.
        assert_eq!(unsafe { hipMemcpyHtoDAsync(x, host, 1024, s) }, OK);
        assert_eq!(hipStreamSynchronize(s), OK);
        assert_eq!((read(x), hipHostFree(host), hipHostFree(host)), (6.0, OK, INVALID_VALUE));
        assert_eq!(hipHostFree(null_mut()), OK);
        assert_eq!((hipHostMalloc(&mut host, 0, 0), hipHostMalloc(&mut host, 16, 9)), (2, INVALID_VALUE));
        assert_eq!(hipHostMalloc(&mut host, 1024, 1), OK);
        // SAFETY: the emulator reads nothing: the memory is freed too early, which it tells.
        assert_eq!(unsafe { hipMemcpyHtoDAsync(x, host, 1024, s) }, OK);
        assert_ne!(hipHostFree(host), OK);
        assert_ne!(hipStreamSynchronize(s), OK, "the device is lost");
    });
}

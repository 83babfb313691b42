//! Captures and graphs: what is recorded, what breaks a capture, launches, updates, and the end of graphs.

use crate::harness::{Cuda, INVALID_VALUE, KERNELS, NOT_SUPPORTED, OK, call};

const ILLEGAL_STATE: u32 = 401;
const UNSUPPORTED: u32 = 900;
const INVALIDATED: u32 = 901;
const WRONG_THREAD: u32 = 908;

/// Modes of captures.
const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
struct Params {
    func: u64,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    params: *const *const u64,
    extra: *const u64,
    kern: u64,
    ctx: u64,
}

impl Cuda {
    fn begin(&self, stream: u64, mode: u32) -> u32 {
        call!(self, cuStreamBeginCapture_v2(stream => u64, mode => u32))
    }

    /// The graph of a capture.
    fn end(&self, stream: u64) -> Result<u64, u32> {
        let mut graph = 7_u64;
        match call!(self, cuStreamEndCapture(stream => u64, &raw mut graph => *mut u64)) {
            OK => Ok(graph),
            error => {
                assert!(graph == 0 || graph == 7, "a broken capture has no graph");
                Err(error)
            }
        }
    }

    /// The status of a capture, and the node on which the next one depends.
    fn info(&self, stream: u64) -> (u32, Option<u64>) {
        let (mut status, mut id, mut graph, mut count) = (9_u32, 0_u64, 0_u64, 9_usize);
        let mut nodes = std::ptr::null::<u64>();
        assert_eq!(
            call!(self, cuStreamGetCaptureInfo_v2(
            stream => u64, &raw mut status => *mut u32, &raw mut id => *mut u64, &raw mut graph => *mut u64,
            &raw mut nodes => *mut *const u64, &raw mut count => *mut usize)),
            OK
        );
        assert!(count <= 1);
        // SAFETY: there are `count` nodes.
        (status, (count == 1).then(|| unsafe { *nodes }))
    }

    fn instantiate(&self, graph: u64) -> u64 {
        let mut exec = 0_u64;
        let done = call!(self, cuGraphInstantiateWithFlags(&raw mut exec => *mut u64, graph => u64, 0 => u64));
        assert_eq!(done, OK);
        exec
    }

    fn replay(&self, exec: u64, stream: u64) -> u32 {
        call!(self, cuGraphLaunch(exec => u64, stream => u64))
    }

    fn set_node(&self, exec: u64, node: u64, function: u64, params: &[u64]) -> u32 {
        let pointers: Vec<*const u64> = params.iter().map(std::ptr::from_ref).collect();
        let wanted = Params {
            func: function,
            grid: [1; 3],
            block: [4, 1, 1],
            shared: 0,
            params: pointers.as_ptr(),
            extra: std::ptr::null(),
            kern: 0,
            ctx: 0,
        };
        call!(self, cuGraphExecKernelNodeSetParams_v2(exec => u64, node => u64, &raw const wanted => *const Params))
    }
}

/// The orders of streams.
fn each_order(body: impl Fn(&Cuda)) {
    for order in ["late", "early", "random:3"] {
        body(&Cuda::new(&[("ORDER", order)]));
    }
}

#[test]
fn a_capture_records_kernels_and_a_graph_runs_them() {
    each_order(|cuda| {
        let (scale, add) = (cuda.kernel(KERNELS, "scale"), cuda.kernel(KERNELS, "add"));
        let (x, y) = (cuda.upload(&[1.0, 2.0, 3.0, 4.0]), cuda.upload(&[10.0; 4]));
        let (s, t) = (cuda.stream(), cuda.stream());
        assert_eq!(cuda.info(s), (0, None));
        assert_eq!(cuda.begin(s, THREAD_LOCAL), OK);
        assert_eq!(cuda.info(s), (1, None));
        assert_eq!(cuda.launch(scale, (1, 4), s, &[x]), OK);
        let first = cuda.info(s).1.unwrap();
        assert_eq!(cuda.launch(add, (1, 4), s, &[x, y, y]), OK);
        let second = cuda.info(s).1.unwrap();
        assert_ne!(first, second);
        let graph = cuda.end(s).unwrap();
        assert_eq!(cuda.info(s), (0, None));
        assert_eq!(cuda.download(y, 4).unwrap(), [10.0; 4], "nothing has run");
        let exec = cuda.instantiate(graph);
        // Launches of one graph are in order, on any streams.
        assert_eq!((cuda.replay(exec, s), cuda.replay(exec, t)), (OK, OK));
        assert_eq!((cuda.sync(s), cuda.sync(t)), (OK, OK));
        assert_eq!(cuda.download(x, 4).unwrap(), [4.0, 8.0, 12.0, 16.0]);
        assert_eq!(cuda.download(y, 4).unwrap(), [16.0, 22.0, 28.0, 34.0]);
        // Later launches have other parameters, another kernel even; those that are enqueued keep theirs.
        let z = cuda.upload(&[0.0; 4]);
        assert_eq!(cuda.replay(exec, s), OK);
        assert_eq!(cuda.set_node(exec, second, add, &[x, x, z]), OK);
        assert_eq!(cuda.replay(exec, s), OK);
        assert_eq!(cuda.set_node(exec, first, add, &[y, y, y]), OK);
        assert_eq!((cuda.replay(exec, s), cuda.sync(s)), (OK, OK));
        assert_eq!(cuda.download(x, 4).unwrap(), [16.0, 32.0, 48.0, 64.0]);
        assert_eq!(cuda.download(y, 4).unwrap(), [48.0, 76.0, 104.0, 132.0]);
        assert_eq!(cuda.download(z, 4).unwrap(), [32.0, 64.0, 96.0, 128.0]);
        // What is pending runs although graph and executable graph are destroyed.
        assert_eq!(cuda.set_node(exec, first, scale, &[z]), OK);
        assert_eq!(cuda.set_node(exec, second, scale, &[z]), OK);
        assert_eq!(cuda.replay(exec, s), OK);
        assert_eq!(call!(cuda, cuGraphExecDestroy(exec => u64)), OK);
        assert_eq!(call!(cuda, cuGraphDestroy(graph => u64)), OK);
        assert_eq!(cuda.sync(s), OK);
        assert_eq!(cuda.download(z, 4).unwrap(), [128.0, 256.0, 384.0, 512.0]);
        assert_eq!(cuda.replay(exec, s), INVALID_VALUE);
        assert_eq!(call!(cuda, cuGraphDestroy(graph => u64)), INVALID_VALUE);
        assert_eq!(call!(cuda, cuGraphExecDestroy(exec => u64)), INVALID_VALUE);
    });
}

#[test]
fn what_a_capture_does_not_allow_breaks_it() {
    let cuda = Cuda::new(&[]);
    let (s, t) = (cuda.stream(), cuda.stream());
    let x = cuda.upload(&[1.0; 4]);
    let scale = cuda.kernel(KERNELS, "scale");
    let event = cuda.event();
    let mut out = [0_f32; 4];
    let mut made = 0_u64;
    for breaks in 0..7 {
        assert_eq!(cuda.begin(s, THREAD_LOCAL), OK);
        assert_eq!(cuda.launch(scale, (1, 4), s, &[x]), OK);
        let done = match breaks {
            0 => cuda.sync(s),
            1 => call!(cuda, cuStreamQuery(s => u64)),
            2 => call!(cuda, cuMemsetD8Async(x => u64, 0 => u8, 16 => usize, s => u64)),
            3 => call!(cuda, cuMemcpyDtoHAsync_v2(out.as_mut_ptr() => *mut f32, x => u64, 16 => usize, s => u64)),
            4 => call!(cuda, cuMemAlloc_v2(&raw mut made => *mut u64, 16 => usize)),
            5 => call!(cuda, cuEventRecord(event => u64, s => u64)),
            _ => call!(cuda, cuCtxSynchronize()),
        };
        assert_eq!(done, UNSUPPORTED, "{breaks}");
        assert_eq!(cuda.info(s), (2, None));
        assert_eq!(cuda.launch(scale, (1, 4), s, &[x]), INVALIDATED);
        assert_eq!(cuda.end(s), Err(INVALIDATED));
        assert_eq!(cuda.end(s), Err(ILLEGAL_STATE), "it has ended");
    }
    // Other streams go on, and so do unsafe calls in a relaxed capture, and those of other threads.
    assert_eq!(cuda.begin(s, RELAXED), OK);
    assert_eq!(cuda.begin(s, RELAXED), ILLEGAL_STATE);
    assert_eq!(call!(cuda, cuMemAlloc_v2(&raw mut made => *mut u64, 16 => usize)), OK);
    assert_eq!(cuda.launch(scale, (1, 4), t, &[x]), OK);
    assert_eq!(cuda.sync(t), OK);
    assert!(cuda.end(s).is_ok());
    assert_eq!(cuda.begin(s, THREAD_LOCAL), OK);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(cuda.retain(0), OK);
            cuda.alloc(16);
            assert_eq!(cuda.end(s), Err(WRONG_THREAD));
        });
    });
    assert_eq!(cuda.end(s), Err(INVALIDATED), "the other thread has broken it");
    assert_eq!(cuda.begin(s, GLOBAL), OK);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(cuda.retain(0), OK);
            let mut made = 0_u64;
            assert_eq!(call!(cuda, cuMemAlloc_v2(&raw mut made => *mut u64, 16 => usize)), UNSUPPORTED);
        });
    });
    assert_eq!(cuda.end(s), Err(INVALIDATED));
    assert_eq!(cuda.begin(0, RELAXED), UNSUPPORTED, "the default stream is not captured");
    assert_eq!(cuda.begin(s, 3), INVALID_VALUE);
    assert_eq!(cuda.download(x, 4).unwrap(), [2.0; 4], "only the launch on the other stream has run");
}

#[test]
fn mistakes_with_graphs_are_refused() {
    let cuda = Cuda::new(&[]);
    let s = cuda.stream();
    let x = cuda.upload(&[1.0; 4]);
    let scale = cuda.kernel(KERNELS, "scale");
    assert_eq!(cuda.begin(s, THREAD_LOCAL), OK);
    assert_eq!(cuda.launch(scale, (1, 4), s, &[x]), OK);
    assert_eq!(cuda.launch(scale, (0, 4), s, &[x]), INVALID_VALUE, "launches are checked when they are recorded");
    let node = cuda.info(s).1.unwrap();
    let graph = cuda.end(s).unwrap();
    let mut exec = 0_u64;
    let made = call!(cuda, cuGraphInstantiateWithFlags(&raw mut exec => *mut u64, graph + 1 => u64, 0 => u64));
    assert_eq!(made, INVALID_VALUE);
    let exec = cuda.instantiate(graph);
    assert_eq!(cuda.set_node(exec, node + 1, scale, &[x]), INVALID_VALUE);
    assert_eq!(cuda.set_node(exec + 1, node, scale, &[x]), INVALID_VALUE);
    assert_ne!(cuda.set_node(exec, node, scale + 1, &[x]), OK);
    // A graph is launched into no capture, and its nodes end with it.
    let t = cuda.stream();
    assert_eq!(cuda.begin(t, THREAD_LOCAL), OK);
    assert_eq!(cuda.replay(exec, t), UNSUPPORTED);
    assert_eq!(cuda.end(t), Err(INVALIDATED));
    assert_eq!(call!(cuda, cuGraphDestroy(graph => u64)), OK);
    assert_eq!(cuda.set_node(exec, node, scale, &[x]), INVALID_VALUE);
    assert_eq!((cuda.replay(exec, s), cuda.sync(s)), (OK, OK));
    assert_eq!(cuda.download(x, 4).unwrap(), [2.0; 4]);
    // A stream that ends takes its capture with it.
    assert_eq!(cuda.begin(t, THREAD_LOCAL), OK);
    assert_eq!(call!(cuda, cuStreamDestroy_v2(t => u64)), OK);
    assert_ne!(cuda.end(t), Err(NOT_SUPPORTED));
    assert_eq!(cuda.launch(scale, (1, 4), s, &[x]), OK);
    assert_eq!(cuda.sync(s), OK);
}

/// Two launches of a graph on memory that something else uses are found like any others.
#[test]
fn unordered_replays_are_found() {
    let cuda = Cuda::new(&[("ORDER", "late")]);
    let (s, t) = (cuda.stream(), cuda.stream());
    let x = cuda.upload(&[1.0; 4]);
    let scale = cuda.kernel(KERNELS, "scale");
    assert_eq!(cuda.begin(s, THREAD_LOCAL), OK);
    assert_eq!(cuda.launch(scale, (1, 4), s, &[x]), OK);
    let exec = cuda.instantiate(cuda.end(s).unwrap());
    assert_eq!((cuda.replay(exec, s), cuda.launch(scale, (1, 4), t, &[x])), (OK, OK));
    assert_ne!((cuda.sync(s), cuda.sync(t)), (OK, OK), "nothing orders the two");
}

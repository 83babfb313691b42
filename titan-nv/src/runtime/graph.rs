//! Graphs: kernels in a line that the driver launches at once, each after the one before it. CUDA Driver API, "Graph Management".
//!
//! The driver records them from a stream that nothing else uses, so that no other work of the process can end up in a graph or break its
//! capture. The parameters of a kernel may be replaced at any time; launches that are enqueued keep theirs.

use super::Handle;
use super::context::Context;
use super::error::DriverError;
use super::module::{Function, Params};
use super::stream::{RawStream, Stream};
use super::sys::{self, CUgraph, CUgraphExec, CUgraphNode, Exec, Gph, KernelNodeParams, Node};
use std::ptr;

/// A kernel of a graph with its arguments: see [`Function::launch`].
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a> {
    /// The kernel.
    pub function: &'a Function,
    /// The extents of its grid.
    pub grid: [u32; 3],
    /// The parameters.
    pub params: Params<'a>,
}

/// A graph that can be launched.
#[derive(Debug)]
pub struct Graph {
    context: &'static Context,
    /// Kept as long as the executable graph, whose nodes are named by this one's.
    graph: Handle<Gph>,
    exec: Handle<Exec>,
    nodes: Vec<Handle<Node>>,
}

/// What a capture has made: it is destroyed unless it becomes a graph.
struct Captured {
    context: &'static Context,
    graph: Handle<Gph>,
}

impl Graph {
    /// A graph of these kernels, each after the one before it.
    ///
    /// # Errors
    /// If the driver refuses one of them, or the graph.
    ///
    /// # Safety
    /// As of [`Function::launch`], for every launch of the graph until the parameters are replaced.
    pub unsafe fn new(context: &'static Context, kernels: &[Kernel<'_>]) -> Result<Graph, DriverError> {
        let _entered = context.enter()?;
        let stream = RawStream::new(context.calls)?;
        // SAFETY: the caller's.
        let captured = unsafe { capture(context, &stream, kernels) };
        stream.destroy(context.calls);
        let (captured, nodes) = captured?;
        let mut exec: CUgraphExec = ptr::null_mut();
        // SAFETY: `exec` is writable storage for an executable graph, and the graph exists; 0 are the default flags.
        let code = unsafe { (context.calls.cuGraphInstantiateWithFlags)(&raw mut exec, captured.graph.0, 0) };
        context.calls.check("cuGraphInstantiateWithFlags", code)?;
        let graph = captured.graph;
        std::mem::forget(captured);
        Ok(Graph { context, graph, exec: Handle(exec), nodes })
    }

    /// The number of kernels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no kernels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Replaces a kernel and its parameters for later launches.
    ///
    /// # Errors
    /// If there is no kernel of this index, or the driver refuses; then it is as it was.
    ///
    /// # Safety
    /// As of [`Function::launch`], for every launch of the graph from now on until the parameters are replaced.
    pub unsafe fn set(&self, nth: usize, kernel: &Kernel<'_>) -> Result<(), DriverError> {
        const CALL: &str = "cuGraphExecKernelNodeSetParams";
        let calls = self.context.calls;
        let Some(node) = self.nodes.get(nth) else { return calls.check(CALL, 1) };
        let _entered = self.context.enter()?;
        let Kernel { function, grid: [x, y, z], params } = kernel;
        let mut pointers = params.pointers();
        let wanted = KernelNodeParams {
            func: function.raw(),
            grid_x: *x,
            grid_y: *y,
            grid_z: *z,
            block_x: function.threads(),
            block_y: 1,
            block_z: 1,
            shared_bytes: function.shared(),
            params: pointers.as_mut_ptr(),
            extra: ptr::null_mut(),
            kernel: ptr::null_mut(),
            context: ptr::null_mut(),
        };
        // SAFETY: the caller answers for the parameters, which the driver copies before it returns; the node is of the graph of which this
        // is the executable one, and none was removed.
        let code = unsafe { (calls.cuGraphExecKernelNodeSetParams_v2)(self.exec.0, node.0, &raw const wanted) };
        calls.check(CALL, code)
    }

    /// Launches the graph at the end of a stream of the context, after its earlier launches.
    ///
    /// # Errors
    /// If the driver refuses it.
    ///
    /// # Safety
    /// The parameters must be valid now, as [`Graph::new`] and [`Graph::set`] say.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<(), DriverError> {
        let _entered = self.context.enter()?;
        // SAFETY: graph and stream exist, in one context.
        let code = unsafe { (self.context.calls.cuGraphLaunch)(self.exec.0, stream.raw()) };
        self.context.calls.check("cuGraphLaunch", code)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else { return };
        // SAFETY: nothing else has the handle. The manual: an executable graph in flight is freed when it has ended.
        let _destroyed = unsafe { (self.context.calls.cuGraphExecDestroy)(self.exec.0) };
        drop(Captured { context: self.context, graph: self.graph });
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: nothing else has the handle.
            let _destroyed = unsafe { (self.context.calls.cuGraphDestroy)(self.graph.0) };
        }
    }
}

/// Records kernels from a stream that nothing else uses. The context must be current.
///
/// # Safety
/// As of [`Graph::new`].
unsafe fn capture(
    context: &'static Context,
    stream: &RawStream,
    kernels: &[Kernel<'_>],
) -> Result<(Captured, Vec<Handle<Node>>), DriverError> {
    let calls = context.calls;
    // Only this thread's calls could be wrong in a capture of this mode, and it makes none of those.
    let mode = sys::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    // SAFETY: the stream exists and is empty.
    calls.check("cuStreamBeginCapture", unsafe { (calls.cuStreamBeginCapture_v2)(stream.raw(), mode) })?;
    let nodes = kernels.iter().map(|kernel| {
        // SAFETY: the caller's.
        unsafe { kernel.function.launch_in(stream.raw(), kernel.grid, kernel.params) }?;
        last_node(context, stream)
    });
    let nodes: Result<Vec<Handle<Node>>, DriverError> = nodes.collect();
    let mut graph: CUgraph = ptr::null_mut();
    // SAFETY: `graph` is writable storage for a graph. The capture ends whatever happened in it.
    let code = unsafe { (calls.cuStreamEndCapture)(stream.raw(), &raw mut graph) };
    let ended = calls.check("cuStreamEndCapture", code);
    // The manual: the graph is null if the capture is broken.
    let captured = (!graph.is_null()).then(|| Captured { context, graph: Handle(graph) });
    let nodes = nodes?;
    ended?;
    let captured = captured.ok_or_else(|| DriverError::new("cuStreamEndCapture", INVALIDATED, || None))?;
    Ok((captured, nodes))
}

/// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`.
const INVALIDATED: u32 = 901;

/// The node of the latest work of a stream that is being captured: the only one on which its next work would depend.
fn last_node(context: &'static Context, stream: &RawStream) -> Result<Handle<Node>, DriverError> {
    const CALL: &str = "cuStreamGetCaptureInfo";
    let calls = context.calls;
    let (mut status, mut nodes, mut count) = (0, ptr::null::<CUgraphNode>(), 0);
    // SAFETY: each result is writable storage of its type, or null where it is not asked for.
    let code = unsafe {
        (calls.cuStreamGetCaptureInfo_v2)(
            stream.raw(),
            &raw mut status,
            ptr::null_mut(),
            ptr::null_mut(),
            &raw mut nodes,
            &raw mut count,
        )
    };
    calls.check(CALL, code)?;
    if count != 1 || nodes.is_null() {
        return Err(DriverError::new(CALL, INVALIDATED, || None));
    }
    // SAFETY: the manual: the list has `count` nodes, and is valid until the next call that concerns the stream.
    Ok(Handle(unsafe { *nodes }))
}

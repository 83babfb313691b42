//! Graphs: kernels in a line that the runtime launches at once, each after the one before it. HIP runtime API, "Graph Management".
//!
//! The runtime records them from a stream that nothing else uses, so that no other work of the process can end up in a graph or break its
//! capture. The parameters of a kernel may be replaced at any time; launches that are enqueued keep theirs. No AMD GPU has run this.

use super::Handle;
use super::context::Context;
use super::error::DriverError;
use super::module::{Function, Geometry, Misfit};
use super::stream::Stream;
use super::sys::{self, Dim3, Exec, Gph, HipGraph, HipGraphExec, HipGraphNode, KernelNodeParams, Node};
use std::ptr;

/// A kernel of a graph with its arguments: see [`Function::launch`].
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub function: &'a Function,
    /// The extents of its launch.
    pub geometry: Geometry,
    /// The bytes of each argument.
    pub args: &'a [&'a [u8]],
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
    /// If a launch does not fit its kernel, or the runtime refuses one of them, or the graph.
    ///
    /// # Safety
    /// As of [`Function::launch`], for every launch of the graph until the parameters are replaced.
    pub unsafe fn new(context: &'static Context, launches: &[Launch<'_>]) -> Result<Graph, Misfit> {
        let _entered = context.enter()?;
        let stream = Stream::new(context)?;
        // SAFETY: the caller's.
        let (captured, nodes) = unsafe { capture(context, &stream, launches) }?;
        let mut exec: HipGraphExec = ptr::null_mut();
        // SAFETY: `exec` is writable storage for an executable graph, and the graph exists; 0 are the default flags.
        let code = unsafe { (context.calls.hipGraphInstantiateWithFlags)(&raw mut exec, captured.graph.0, 0) };
        context.calls.check("hipGraphInstantiateWithFlags", code)?;
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
    /// If there is no kernel of this index, the launch does not fit its kernel, or the runtime refuses; then it is as it was.
    ///
    /// # Safety
    /// As of [`Function::launch`], for every launch of the graph from now on until the parameters are replaced.
    pub unsafe fn set(&self, nth: usize, launch: &Launch<'_>) -> Result<(), Misfit> {
        const CALL: &str = "hipGraphExecKernelNodeSetParams";
        let calls = self.context.calls;
        let Some(node) = self.nodes.get(nth) else { return Ok(calls.check(CALL, 1)?) };
        let Launch { function, geometry, args } = launch;
        let mut packed = function.packed(geometry, args)?;
        let mut extra = packed.extra();
        let wanted = KernelNodeParams {
            block: Dim3::of(geometry.block),
            extra: extra.as_mut_ptr(),
            func: function.raw().cast(),
            grid: Dim3::of(geometry.grid),
            params: ptr::null_mut(),
            shared_bytes: geometry.dynamic_lds,
        };
        let _entered = self.context.enter()?;
        // SAFETY: the caller answers for the arguments, which the runtime copies before it returns; the node is of the graph of which this
        // is the executable one, and none was removed.
        let code = unsafe { (calls.hipGraphExecKernelNodeSetParams)(self.exec.0, node.0, &raw const wanted) };
        Ok(calls.check(CALL, code)?)
    }

    /// Launches the graph at the end of a stream of the device, after its earlier launches.
    ///
    /// # Errors
    /// If the runtime refuses it.
    ///
    /// # Safety
    /// The parameters must be valid now, as [`Graph::new`] and [`Graph::set`] say.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<(), DriverError> {
        let _entered = self.context.enter()?;
        // SAFETY: graph and stream exist, on one device.
        let code = unsafe { (self.context.calls.hipGraphLaunch)(self.exec.0, stream.raw()) };
        self.context.calls.check("hipGraphLaunch", code)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else { return };
        // SAFETY: nothing else has the handle. The manual: an executable graph in flight is freed when it has ended.
        let _destroyed = unsafe { (self.context.calls.hipGraphExecDestroy)(self.exec.0) };
        drop(Captured { context: self.context, graph: self.graph });
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: nothing else has the handle.
            let _destroyed = unsafe { (self.context.calls.hipGraphDestroy)(self.graph.0) };
        }
    }
}

/// Records kernels from a stream that nothing else uses. The device must be the thread's current one.
///
/// # Safety
/// As of [`Graph::new`].
unsafe fn capture(
    context: &'static Context,
    stream: &Stream,
    launches: &[Launch<'_>],
) -> Result<(Captured, Vec<Handle<Node>>), Misfit> {
    let calls = context.calls;
    // Only this thread's calls could be wrong in a capture of this mode, and it makes none of those.
    let mode = sys::STREAM_CAPTURE_MODE_THREAD_LOCAL;
    // SAFETY: the stream exists and is empty.
    calls.check("hipStreamBeginCapture", unsafe { (calls.hipStreamBeginCapture)(stream.raw(), mode) })?;
    let nodes = launches.iter().map(|launch| {
        // SAFETY: the caller's.
        unsafe { launch.function.launch(stream, &launch.geometry, launch.args) }?;
        Ok(last_node(context, stream)?)
    });
    let nodes: Result<Vec<Handle<Node>>, Misfit> = nodes.collect();
    let mut graph: HipGraph = ptr::null_mut();
    // SAFETY: `graph` is writable storage for a graph. The capture ends whatever happened in it.
    let code = unsafe { (calls.hipStreamEndCapture)(stream.raw(), &raw mut graph) };
    let ended = calls.check("hipStreamEndCapture", code);
    let captured = (!graph.is_null()).then(|| Captured { context, graph: Handle(graph) });
    let nodes = nodes?;
    ended?;
    let captured = captured.ok_or_else(|| DriverError::new("hipStreamEndCapture", INVALIDATED, || None))?;
    Ok((captured, nodes))
}

/// `hipErrorStreamCaptureInvalidated`.
const INVALIDATED: u32 = 901;

/// The node of the latest work of a stream that is being captured: the only one on which its next work would depend.
fn last_node(context: &'static Context, stream: &Stream) -> Result<Handle<Node>, DriverError> {
    const CALL: &str = "hipStreamGetCaptureInfo";
    let calls = context.calls;
    let (mut status, mut nodes, mut count) = (0, ptr::null::<HipGraphNode>(), 0);
    // SAFETY: each result is writable storage of its type, or null where it is not asked for.
    let code = unsafe {
        (calls.hipStreamGetCaptureInfo_v2)(
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

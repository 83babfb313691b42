//! Captures and graphs. CUDA Driver API, sections "Stream Management" and "Graph Management".

use super::abi::within;
use super::host::{Out, Pointer};
use super::launch::parameters;
use crate::code::{Code, Done};
use crate::driver::{self, Call, Grid, Session};

/// The size of `CUDA_KERNEL_NODE_PARAMS_v2`.
const NODE: usize = 72;

/// The launch that the parameters of a node describe.
fn described(s: &Session, params: Pointer) -> Done<Call> {
    let bytes = params.take(NODE)?;
    let part = |at: usize, n: usize| bytes.get(at..at + n).ok_or(Code::UNKNOWN);
    let word = |at: usize| Ok::<_, Code>(u64::from_le_bytes(part(at, 8)?.try_into().map_err(|_| Code::UNKNOWN)?));
    let number = |at: usize| Ok::<_, Code>(u32::from_le_bytes(part(at, 4)?.try_into().map_err(|_| Code::UNKNOWN)?));
    let function = word(0)?;
    let extents = Grid {
        grid: [number(8)?, number(12)?, number(16)?],
        block: [number(20)?, number(24)?, number(28)?],
        shared: number(32)?,
    };
    let (each, extra) = (Pointer::of(word(40)?).list(), Pointer::of(word(48)?).list());
    // A kernel of a library, of which there are none here.
    if word(56)? != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let params = parameters(s, function, &each, &extra)?;
    Ok(Call { function, stream: 0, extents, params })
}

within! {
    fn cuStreamIsCapturing(stream: u64, status: Out<u32>) = |s, c| {
        let stream = s.resolve(c, stream)?;
        status.set(s.capture_info(stream)?.status)
    }

    fn cuStreamGetCaptureInfo_v2(
        stream: u64, status: Out<u32>, id: Out<u64>, graph: Out<u64>, dependencies: Out<u64>, count: Out<usize>,
    ) = |s, c| {
        let stream = s.resolve(c, stream)?;
        let info = s.capture_info(stream)?;
        status.set(info.status)?;
        id.offer(info.id);
        graph.offer(info.graph);
        dependencies.offer(info.nodes.0);
        count.offer(info.nodes.1);
        Ok(())
    }

    fn cuStreamBeginCapture_v2(stream: u64, mode: u32) = |s, c| {
        let stream = s.resolve(c, stream)?;
        s.begin_capture(stream, mode)
    }

    fn cuStreamEndCapture(stream: u64, graph: Out<u64>) = |s, c| {
        let stream = s.resolve(c, stream)?;
        graph.set(0)?;
        let made = s.end_capture(stream)?;
        graph.set(made)
    }

    fn cuGraphInstantiateWithFlags(exec: Out<u64>, graph: u64, flags: u64) = |s, c| {
        if exec.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let made = s.instantiate(c, graph, flags)?;
        exec.set(made)
    }

    fn cuGraphExecKernelNodeSetParams_v2(exec: u64, node: u64, params: Pointer) = |s, c| {
        let call = described(s, params)?;
        s.set_node(c, exec, node, &call)
    }

    fn cuGraphLaunch(exec: u64, stream: u64) = |s, c| {
        let stream = s.resolve(c, stream)?;
        driver::launch_graph(s, c, exec, stream)
    }

    fn cuGraphExecDestroy(exec: u64) = |s, _c| {
        s.end_exec(exec)
    }

    fn cuGraphDestroy(graph: u64) = |s, _c| {
        s.end_graph(graph)
    }
}

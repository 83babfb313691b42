//! Graphs: kernels that a stream records instead of running them, and their launches. CUDA Driver API, "Graph Management" and "Stream
//! Management".
//!
//! A capture is broken by what the driver calls unsafe in the mode of the capture, by synchronization with the stream, and by the end of the
//! stream; the end of a broken capture has no graph. Deliberately absent: nodes other than kernels, captures of several streams, and graphs
//! that are made without a capture. Work that would need them breaks a capture.

use super::launch::{Call, Launch, check};
use super::run::Work;
use super::stream::thread;
use super::{Driver, Session, queue};
use crate::clock::{Clock, OpId};
use crate::code::{Code, Done};
use crate::runtime::host::Owned;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`, in which no call is unsafe, and `CU_STREAM_CAPTURE_MODE_GLOBAL`.
const RELAXED: u32 = 2;
const GLOBAL: u32 = 0;

/// The capture of a stream.
#[derive(Debug)]
pub(crate) struct Capture {
    id: u64,
    graph: u64,
    mode: u32,
    thread: u64,
    broken: bool,
    /// The node on which the next one depends, in memory that callers read.
    last: Owned,
    nodes: usize,
}

/// A graph that was captured.
#[derive(Debug)]
pub(crate) struct Graph {
    context: u64,
    /// The nodes with their kernels, each after the one before it.
    nodes: Vec<(u64, Launch)>,
}

/// A graph that can be launched.
#[derive(Debug)]
pub(crate) struct Exec {
    context: u64,
    graph: u64,
    nodes: Vec<(u64, Launch)>,
    /// The end of its latest launch.
    last: Option<(OpId, Clock)>,
}

/// What is known of a capture.
#[derive(Debug)]
pub(crate) struct Info {
    /// `CUstreamCaptureStatus`.
    pub(crate) status: u32,
    pub(crate) id: u64,
    pub(crate) graph: u64,
    /// Where the nodes are on which the next one depends, and how many.
    pub(crate) nodes: (u64, usize),
}

impl Capture {
    pub(super) const fn graph(&self) -> u64 {
        self.graph
    }
}

impl Driver {
    /// Begins the capture of a stream.
    pub(crate) fn begin_capture(&mut self, stream: u64, mode: u32) -> Done {
        let context = self.stream(stream)?.context;
        // The legacy default stream cannot be captured.
        if mode > RELAXED {
            return Err(Code::INVALID_VALUE);
        }
        if self.context(context)?.null == stream {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        if self.stream(stream)?.capture.is_some() {
            return Err(Code::ILLEGAL_STATE);
        }
        let last = Owned::new(size_of::<u64>()).ok_or(Code::OUT_OF_MEMORY)?;
        let (id, graph) = (self.handle(), self.handle());
        self.graphs.insert(graph, Graph { context, nodes: Vec::new() });
        let capture = Capture { id, graph, mode, thread: thread(), broken: false, last, nodes: 0 };
        if let Some(s) = self.streams.get_mut(&stream) {
            s.capture = Some(capture);
        }
        Ok(())
    }

    /// Ends the capture of a stream: its graph.
    pub(crate) fn end_capture(&mut self, stream: u64) -> Done<u64> {
        self.stream(stream)?;
        let Some(s) = self.streams.get_mut(&stream) else { return Err(Code::INVALID_HANDLE) };
        let Some(capture) = s.capture.take() else { return Err(Code::ILLEGAL_STATE) };
        if capture.mode != RELAXED && capture.thread != thread() {
            s.capture = Some(Capture { broken: true, ..capture });
            return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
        }
        if capture.broken {
            self.graphs.remove(&capture.graph);
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        Ok(capture.graph)
    }

    /// What is known of the capture of a stream.
    pub(crate) fn capture_info(&self, stream: u64) -> Done<Info> {
        const ACTIVE: u32 = 1;
        const INVALIDATED: u32 = 2;
        Ok(match &self.stream(stream)?.capture {
            None => Info { status: 0, id: 0, graph: 0, nodes: (0, 0) },
            Some(c) if c.broken => Info { status: INVALIDATED, id: c.id, graph: 0, nodes: (0, 0) },
            Some(c) => {
                let at = if c.nodes > 0 { c.last.address() } else { 0 };
                Info { status: ACTIVE, id: c.id, graph: c.graph, nodes: (at, c.nodes.min(1)) }
            }
        })
    }

    /// Breaks the capture of a stream, if there is one, by a call that it does not allow.
    pub(crate) fn not_captured(&mut self, stream: u64, what: &str) -> Done {
        let Some(capture) = self.streams.get_mut(&stream).and_then(|s| s.capture.as_mut()) else { return Ok(()) };
        crate::say(&format!("{what} breaks the capture of stream {stream:#x}"));
        capture.broken = true;
        Err(Code::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Breaks the captures in which this thread must not make an unsafe call.
    pub(crate) fn unsafe_call(&mut self, what: &str) -> Done {
        let mut outcome = Ok(());
        for (stream, s) in &mut self.streams {
            let Some(capture) = s.capture.as_mut() else { continue };
            if capture.mode == GLOBAL || (capture.mode != RELAXED && capture.thread == thread()) {
                crate::say(&format!("{what} breaks the capture of stream {stream:#x}"));
                capture.broken = true;
                outcome = Err(Code::STREAM_CAPTURE_UNSUPPORTED);
            }
        }
        outcome
    }

    /// Work on the legacy default stream would wait for a stream that is captured.
    pub(crate) fn not_implicit(&mut self, stream: u64) -> Done {
        let s = self.stream(stream)?;
        let (context, blocking) = (s.context, s.blocking);
        if !blocking || self.context(context)?.null != stream {
            return Ok(());
        }
        let captured = |s: &&mut super::stream::Stream| s.context == context && s.blocking && s.capture.is_some();
        let mut outcome = Ok(());
        for capture in self.streams.values_mut().filter(captured).filter_map(|s| s.capture.as_mut()) {
            capture.broken = true;
            outcome = Err(Code::STREAM_CAPTURE_IMPLICIT);
        }
        outcome
    }

    /// Records a kernel, if the stream is captured; otherwise gives it back.
    pub(super) fn recorded_by(&mut self, stream: u64, launch: Launch) -> Done<Option<Launch>> {
        let node = self.handle();
        let Some(capture) = self.streams.get_mut(&stream).and_then(|s| s.capture.as_mut()) else {
            return Ok(Some(launch));
        };
        if capture.broken {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        capture.last.write(0, &node.to_le_bytes());
        capture.nodes += 1;
        let graph = capture.graph;
        if let Some(graph) = self.graphs.get_mut(&graph) {
            graph.nodes.push((node, launch));
        }
        Ok(None)
    }

    /// Makes a graph that can be launched.
    pub(crate) fn instantiate(&mut self, context: u64, graph: u64, flags: u64) -> Done<u64> {
        let found = self.graphs.get(&graph).ok_or(Code::INVALID_VALUE)?;
        if found.context != context || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let exec = Exec { context, graph, nodes: found.nodes.clone(), last: None };
        let handle = self.handle();
        self.execs.insert(handle, exec);
        Ok(handle)
    }

    /// Replaces the kernel of a node for later launches.
    pub(crate) fn set_node(&mut self, context: u64, exec: u64, node: u64, call: &Call) -> Done {
        let launch = check(self, context, call)?;
        let found = self.execs.get_mut(&exec).ok_or(Code::INVALID_VALUE)?;
        // The node is one of the graph, which must still exist.
        if !self.graphs.contains_key(&found.graph) {
            crate::say("a node of a graph that was destroyed");
            return Err(Code::INVALID_VALUE);
        }
        let place = found.nodes.iter_mut().find(|(n, _)| *n == node).ok_or(Code::INVALID_VALUE)?;
        place.1 = launch;
        Ok(())
    }

    /// Destroys an executable graph; launches that are pending still run.
    pub(crate) fn end_exec(&mut self, exec: u64) -> Done {
        self.execs.remove(&exec).map(drop).ok_or(Code::INVALID_VALUE)
    }

    /// Destroys a graph.
    pub(crate) fn end_graph(&mut self, graph: u64) -> Done {
        self.graphs.remove(&graph).map(drop).ok_or(Code::INVALID_VALUE)
    }
}

/// Launches a graph at the end of a stream, after its earlier launches.
pub(crate) fn launch_graph(session: &mut Session, context: u64, exec: u64, stream: u64) -> Done {
    session.not_captured(stream, "the launch of a graph")?;
    let found = session.execs.get(&exec).ok_or(Code::INVALID_VALUE)?;
    if found.context != context || session.stream(stream)?.context != context {
        return Err(Code::INVALID_HANDLE);
    }
    let (mut after, nodes) = (found.last.clone(), found.nodes.clone());
    for (_, launch) in nodes {
        let label = format!("launch of `{}` by a graph", launch.entry());
        let op = queue::enqueue_after(session, stream, (label, Work::Launch(Box::new(launch))), after.take())?;
        let clock = session.stream(stream)?.clock.clone();
        if let Some(found) = session.execs.get_mut(&exec) {
            found.last = Some((op, clock));
        }
    }
    Ok(())
}

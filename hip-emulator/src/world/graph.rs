//! Graphs: kernels that a stream records instead of running them, and their launches. HIP runtime API, "Graph Management".
//!
//! A capture is broken by what the runtime calls unsafe in the mode of the capture, by synchronization with the stream, and by the end of the
//! stream. Deliberately absent: nodes other than kernels, captures of several streams, and graphs that are made without a capture.

use super::streams::Op;
use super::{Code, Done, Id, Job, World};
use crate::say;
use std::thread::ThreadId;

/// `hipStreamCaptureModeRelaxed`, in which no call is unsafe, and `hipStreamCaptureModeGlobal`.
const RELAXED: u32 = 2;
const GLOBAL: u32 = 0;

/// The capture of a stream.
#[derive(Debug)]
pub(crate) struct Capture {
    id: u64,
    graph: Id,
    mode: u32,
    thread: ThreadId,
    broken: bool,
    /// The node on which the next one depends, in memory that callers read.
    last: Box<Id>,
    nodes: usize,
}

/// A graph that was captured: the nodes with their kernels, each after the one before it.
#[derive(Debug, Default)]
pub(super) struct Graph(Vec<(Id, Job)>);

/// A graph that can be launched.
#[derive(Debug)]
pub(super) struct Exec {
    graph: Id,
    nodes: Vec<(Id, Job)>,
    /// The stream of its latest launch, and its operations until then.
    last: Option<(Id, u64)>,
}

/// What is known of a capture.
#[derive(Debug)]
pub(crate) struct Info {
    /// `hipStreamCaptureStatus`.
    pub(crate) status: u32,
    pub(crate) id: u64,
    pub(crate) graph: Id,
    /// Where the nodes are on which the next one depends.
    pub(crate) nodes: *const Id,
    pub(crate) count: usize,
}

impl Capture {
    pub(super) const fn graph(&self) -> Id {
        self.graph
    }
}

impl World {
    /// Begins the capture of a stream.
    pub(crate) fn begin_capture(&mut self, stream: Id, mode: u32) -> Done {
        if mode > RELAXED {
            return Err(Code::INVALID_VALUE);
        }
        let own = self.streams.get(&stream).ok_or(Code::INVALID_HANDLE)?;
        if self.boards.iter().any(|b| b.default == Some(stream)) {
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        if own.capture.is_some() {
            return Err(Code::ILLEGAL_STATE);
        }
        let graph = self.id();
        self.graphs.insert(graph, Graph::default());
        let (id, thread) = (graph as u64, std::thread::current().id());
        let capture = Capture { id, graph, mode, thread, broken: false, last: Box::new(0), nodes: 0 };
        if let Some(own) = self.streams.get_mut(&stream) {
            own.capture = Some(capture);
        }
        Ok(())
    }

    /// Ends the capture of a stream: its graph.
    pub(crate) fn end_capture(&mut self, stream: Id) -> Done<Id> {
        let own = self.streams.get_mut(&stream).ok_or(Code::INVALID_HANDLE)?;
        let Some(capture) = own.capture.take() else { return Err(Code::ILLEGAL_STATE) };
        if capture.mode != RELAXED && capture.thread != std::thread::current().id() {
            own.capture = Some(Capture { broken: true, ..capture });
            return Err(Code::CAPTURE_WRONG_THREAD);
        }
        if capture.broken {
            self.graphs.remove(&capture.graph);
            return Err(Code::CAPTURE_INVALIDATED);
        }
        Ok(capture.graph)
    }

    /// What is known of the capture of a stream.
    pub(crate) fn capture_info(&self, stream: Id) -> Done<Info> {
        const ACTIVE: u32 = 1;
        const INVALIDATED: u32 = 2;
        let own = self.streams.get(&stream).ok_or(Code::INVALID_HANDLE)?;
        let nothing = |status, id| Info { status, id, graph: 0, nodes: std::ptr::null(), count: 0 };
        Ok(match &own.capture {
            None => nothing(0, 0),
            Some(c) if c.broken => nothing(INVALIDATED, c.id),
            Some(c) => {
                Info { status: ACTIVE, id: c.id, graph: c.graph, nodes: &raw const *c.last, count: c.nodes.min(1) }
            }
        })
    }

    /// Breaks the capture of a stream, if there is one, by a call that it does not allow.
    pub(crate) fn not_captured(&mut self, stream: Id, what: &str) -> Done {
        let Some(capture) = self.streams.get_mut(&stream).and_then(|s| s.capture.as_mut()) else { return Ok(()) };
        say(&format!("{what} breaks the capture of stream {stream}"));
        capture.broken = true;
        Err(Code::CAPTURE_UNSUPPORTED)
    }

    /// Breaks the captures in which this thread must not make an unsafe call.
    pub(crate) fn unsafe_call(&mut self, what: &str) -> Done {
        let mut outcome = Ok(());
        for (stream, own) in &mut self.streams {
            let Some(capture) = own.capture.as_mut() else { continue };
            let here = capture.thread == std::thread::current().id();
            if capture.mode == GLOBAL || (capture.mode != RELAXED && here) {
                say(&format!("{what} breaks the capture of stream {stream}"));
                capture.broken = true;
                outcome = Err(Code::CAPTURE_UNSUPPORTED);
            }
        }
        outcome
    }

    /// Records a launch, if the stream is captured; otherwise gives it back.
    pub(super) fn recorded_by(&mut self, stream: Id, job: Job) -> Done<Option<Job>> {
        let node = self.id();
        let Some(capture) = self.streams.get_mut(&stream).and_then(|s| s.capture.as_mut()) else {
            return Ok(Some(job));
        };
        if capture.broken {
            return Err(Code::CAPTURE_INVALIDATED);
        }
        *capture.last = node;
        capture.nodes += 1;
        let graph = capture.graph;
        if let Some(Graph(nodes)) = self.graphs.get_mut(&graph) {
            nodes.push((node, job));
        }
        Ok(None)
    }

    /// Makes a graph that can be launched.
    pub(crate) fn instantiate(&mut self, graph: Id, flags: u64) -> Done<Id> {
        let Graph(nodes) = self.graphs.get(&graph).filter(|_| flags == 0).ok_or(Code::INVALID_VALUE)?;
        let exec = Exec { graph, nodes: nodes.clone(), last: None };
        let id = self.id();
        self.execs.insert(id, exec);
        Ok(id)
    }

    /// Replaces the kernel of a node for later launches.
    pub(crate) fn set_node(&mut self, exec: Id, node: Id, job: Job) -> Done {
        self.check_launch(&job)?;
        let found = self.execs.get_mut(&exec).ok_or(Code::INVALID_VALUE)?;
        // The node is one of the graph, which must still exist.
        if !self.graphs.contains_key(&found.graph) {
            say("a node of a graph that was destroyed");
            return Err(Code::INVALID_VALUE);
        }
        let place = found.nodes.iter_mut().find(|(n, _)| *n == node).ok_or(Code::INVALID_VALUE)?;
        place.1 = job;
        Ok(())
    }

    /// Launches a graph at the end of a stream, after its earlier launches.
    pub(crate) fn launch_graph(&mut self, exec: Id, stream: Id) -> Done {
        self.not_captured(stream, "the launch of a graph")?;
        let found = self.execs.get(&exec).ok_or(Code::INVALID_VALUE)?;
        let (before, nodes) = (found.last, found.nodes.clone());
        if let Some((other, time)) = before.filter(|(other, _)| *other != stream) {
            self.enqueue(stream, Op::After(other, time))?;
        }
        for (_, job) in nodes {
            self.enqueue(stream, Op::Launch(Box::new(job)))?;
        }
        let issued = self.streams.get(&stream).ok_or(Code::INVALID_HANDLE)?.issued;
        if let Some(found) = self.execs.get_mut(&exec) {
            found.last = Some((stream, issued));
        }
        Ok(())
    }

    /// Destroys an executable graph; launches that are pending still run.
    pub(crate) fn end_exec(&mut self, exec: Id) -> Done {
        self.execs.remove(&exec).map(drop).ok_or(Code::INVALID_VALUE)
    }

    /// Destroys a graph.
    pub(crate) fn end_graph(&mut self, graph: Id) -> Done {
        self.graphs.remove(&graph).map(drop).ok_or(Code::INVALID_VALUE)
    }
}

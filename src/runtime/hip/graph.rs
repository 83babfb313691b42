//! Graphs on a GPU: the kernels of their launches as nodes of an executable graph of the runtime, and their replays.
//!
//! A kernel that may trap or print has a report in each replay of its own: its address is set before the replay, which changes no replay that is
//! enqueued.

use super::super::backend::{self, Given};
use super::super::device::Device;
use super::super::event::{Finish, all_of};
use super::super::gpu::{self, Reporting};
use super::super::launch::KernelWork;
use super::super::lock;
use super::code::{Reports, finished, gpu_arg, new_report, refused};
use super::{Lane, Mark, context, error, follow, name};
use crate::error::{Error, Result};
use std::sync::Mutex;
use titan_amd::runtime::{Context, DriverError, Function, Geometry, Graph, Launch, Memory};
use titan_core::launch::abi::{GpuArg, Slot};

/// An executable graph.
#[derive(Debug)]
pub(crate) struct Exec {
    context: &'static Context,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` after an update that failed in the middle: it is made again for the next replay.
    graph: Option<Graph>,
    nodes: Vec<Node>,
}

/// A launch that is ready for a graph.
#[derive(Debug)]
struct Node {
    kernel: String,
    function: Function,
    geometry: Geometry,
    args: Vec<GpuArg>,
    slots: Vec<Slot>,
    /// Its report, if it has one, and the memory of those that no launch uses.
    reporting: Option<(Reporting, Reports)>,
}

impl Exec {
    pub(in super::super) fn new(device: &Device, works: &[&KernelWork]) -> Result<Exec> {
        let context = context(device)?;
        let nodes = works.iter().map(|work| Node::of(work)).collect::<Result<Vec<_>>>()?;
        let graph = instantiate(context, &nodes)?;
        Ok(Exec { context, state: Mutex::new(State { graph: Some(graph), nodes }) })
    }

    /// Makes these the launches, of which those at `changed` are other ones. After an error, they are what they were.
    pub(in super::super) fn renew(&self, works: &[&KernelWork], changed: &[usize]) -> Result<()> {
        let new = changed.iter().map(|nth| Ok((*nth, Node::of(works[*nth])?))).collect::<Result<Vec<_>>>()?;
        let state = &mut *lock(&self.state);
        let graph = state.graph.take();
        let mut old = Vec::new();
        for (nth, node) in new {
            old.push((nth, std::mem::replace(&mut state.nodes[nth], node)));
        }
        let renewed = match graph {
            None => instantiate(self.context, &state.nodes),
            // Some may have been set before an error: without a graph, the next replay makes one of the launches that there were.
            Some(graph) => {
                let set = old.iter().try_for_each(|(nth, _)| set(self.context, &graph, (&state.nodes, *nth), 0));
                set.map(|()| graph)
            }
        };
        match renewed {
            Ok(graph) => {
                state.graph = Some(graph);
                Ok(())
            }
            Err(error) => {
                for (nth, node) in old {
                    state.nodes[nth] = node;
                }
                Err(error)
            }
        }
    }

    /// Enqueues a replay at the end of a lane, after the points `after`. After an error, it has not been enqueued.
    pub(in super::super) fn give(
        &self,
        lane: &Lane,
        after: &[backend::Mark],
        works: &[&KernelWork],
        sleeps: bool,
    ) -> Result<Given> {
        let state = &mut *lock(&self.state);
        let graph = match state.graph.take() {
            Some(graph) => graph,
            None => instantiate(self.context, &state.nodes)?,
        };
        let graph = &*state.graph.insert(graph);
        let mut reports = Vec::new();
        if let Err(error) = self.launch(lane, after, (graph, &state.nodes), &mut reports) {
            for (nth, report) in reports {
                if let Some((_, spare)) = &state.nodes[nth].reporting {
                    lock(spare).push(report);
                }
            }
            return Err(error);
        }
        let mark = match Mark::at_end(&lane.0, sleeps) {
            Ok(mark) => mark,
            Err(error) => {
                // The device is lost or abandoned, and the replay may be running: its reports are not freed.
                std::mem::forget(reports);
                return Err(error);
            }
        };
        let mut each: Vec<Finish> = Vec::new();
        for (nth, report) in reports {
            if let Some(reporting) = &state.nodes[nth].reporting {
                each.push(finished(report, (&mark, &name(self.context)), reporting, &works[nth].call()));
            }
        }
        let finish = (!each.is_empty()).then(|| all_of(each));
        Ok(Given { mark: backend::Mark::Hip(mark), finish })
    }

    /// Gives each kernel that has one a new report, and launches the graph.
    #[expect(unsafe_code, reason = "the arguments of launches cannot be checked by types")]
    fn launch(
        &self,
        lane: &Lane,
        after: &[backend::Mark],
        (graph, nodes): (&Graph, &[Node]),
        reports: &mut Vec<(usize, Memory)>,
    ) -> Result<()> {
        let failed = |e: &DriverError| error::driver(&name(self.context), e, "a graph");
        for (nth, reporting) in nodes.iter().enumerate().filter_map(|(nth, n)| n.reporting.as_ref().map(|r| (nth, r))) {
            let report = new_report(self.context, reporting).map_err(|e| failed(&e))?;
            let address = report.address(0);
            reports.push((nth, report));
            set(self.context, graph, (nodes, nth), address)?;
        }
        follow(&lane.0, after).map_err(|e| failed(&e))?;
        // SAFETY: the parameters of each node are made as those of a launch (`code.rs`), of works whose memory the replay owns; reports are kept
        // until it has ended. The replay is entered in the tables of all its buffers until then (`uses.rs`).
        unsafe { graph.launch(&lane.0) }.map_err(|e| failed(&e))
    }
}

impl Node {
    fn of(work: &KernelWork) -> Result<Node> {
        let call = work.call();
        let elsewhere = || {
            let message = "its code is for another device".to_owned();
            Error::Internal { doing: call.loaded.name.clone(), message }
        };
        let code = work.code().as_hip().ok_or_else(elsewhere)?;
        let args: Vec<GpuArg> = call.args.iter().map(gpu_arg).collect();
        let (ready, function) = code.choose(&call, &args, None)?;
        let grid = code.grid((ready, function), &call)?;
        Ok(Node {
            kernel: call.loaded.name.clone(),
            function: function.clone(),
            geometry: Geometry { grid, block: [ready.variant.threads, 1, 1], dynamic_lds: 0 },
            args,
            slots: code.slots.clone(),
            reporting: ready.reporting.clone(),
        })
    }

    fn words(&self, report: u64) -> Vec<Vec<u8>> {
        gpu::words(&self.slots, &self.args, report)
    }
}

/// An executable graph of these launches.
#[expect(unsafe_code, reason = "the arguments of launches cannot be checked by types")]
fn instantiate(context: &'static Context, nodes: &[Node]) -> Result<Graph> {
    let words: Vec<Vec<Vec<u8>>> = nodes.iter().map(|node| node.words(0)).collect();
    let args: Vec<Vec<&[u8]>> = words.iter().map(|words| words.iter().map(Vec::as_slice).collect()).collect();
    let launches: Vec<Launch<'_>> = nodes
        .iter()
        .zip(&args)
        .map(|(node, args)| Launch { function: &node.function, geometry: node.geometry, args })
        .collect();
    // SAFETY: `Exec::launch` launches it, after it has set the address of each report.
    let made = unsafe { Graph::new(context, &launches) };
    made.map_err(|misfit| refused(context, nodes.first().map_or("", |node| &node.kernel), &misfit))
}

/// Sets launch `nth` with this address of its report.
#[expect(unsafe_code, reason = "the arguments of launches cannot be checked by types")]
fn set(context: &Context, graph: &Graph, (nodes, nth): (&[Node], usize), report: u64) -> Result<()> {
    let node = &nodes[nth];
    let words = node.words(report);
    let args: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let launch = Launch { function: &node.function, geometry: node.geometry, args: &args };
    // SAFETY: as in `instantiate`.
    unsafe { graph.set(nth, &launch) }.map_err(|misfit| refused(context, &node.kernel, &misfit))
}

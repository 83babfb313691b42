//! Graphs on a GPU: the kernels of their launches as nodes of an executable graph of the driver, and their replays.
//!
//! Each launch is one node, or two where a kernel makes the tables of tensor maps first. A kernel that may trap or print has a report in each replay of
//! its own: its address is set before the replay, which changes no replay that is enqueued.

use super::super::backend::{self, Call, Given};
use super::super::device::Device;
use super::super::event::{Finish, all_of};
use super::super::gpu::{self, Reporting};
use super::super::launch::KernelWork;
use super::super::lock;
use super::code::{Tables, finished, gpu_arg, new_report};
use super::{Lane, Mark, context, error, follow, name};
use crate::error::{Error, Result};
use std::sync::{Arc, Mutex};
use titan_core::launch::abi::{self, GpuArg};
use titan_nv::runtime::{Context, DriverError, EncodedMap, Event, Function, Graph, Kernel, Params, Pinned};

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
    /// The end of the latest replay, until which tables are used.
    last: Option<Arc<Event>>,
}

/// A launch that is ready for a graph.
#[derive(Debug)]
struct Node {
    kernel: Function,
    grid: [u32; 3],
    args: Vec<GpuArg>,
    slots: Vec<abi::Slot>,
    offsets: Vec<usize>,
    maps: Vec<EncodedMap>,
    /// The kernel that makes the tables, and the tables with the point after which they may be used.
    maker: Option<(Function, Tables, Arc<Event>)>,
    /// Its report, if it has one.
    reporting: Option<Reporting>,
}

impl Exec {
    pub(in super::super) fn new(device: &Device, works: &[&KernelWork]) -> Result<Exec> {
        let context = context(device)?;
        let nodes = works.iter().map(|work| Node::of(work)).collect::<Result<Vec<_>>>()?;
        let graph = instantiate(context, &nodes)?;
        Ok(Exec { context, state: Mutex::new(State { graph: Some(graph), nodes, last: None }) })
    }

    /// Makes these the launches, of which those at `changed` are other ones. After an error, they are what they were.
    pub(in super::super) fn renew(&self, works: &[&KernelWork], changed: &[usize]) -> Result<()> {
        let new = changed.iter().map(|nth| Ok((*nth, Node::of(works[*nth])?))).collect::<Result<Vec<_>>>()?;
        let state = &mut *lock(&self.state);
        let fits = |(nth, node): &(usize, Node)| state.nodes[*nth].maker.is_some() == node.maker.is_some();
        // Another number of kernels is another graph.
        let graph = state.graph.take().filter(|_| new.iter().all(fits));
        let mut old = Vec::new();
        for (nth, node) in new {
            old.push((nth, std::mem::replace(&mut state.nodes[nth], node)));
        }
        let renewed = match graph {
            None => instantiate(self.context, &state.nodes),
            Some(graph) => {
                let set = old.iter().try_for_each(|(nth, _)| set(&graph, &state.nodes, *nth, 0));
                // Some may have been set: without a graph, the next replay makes one of the launches that there were.
                set.map(|()| graph).map_err(|e| failed(self.context, &e))
            }
        };
        match renewed {
            Ok(graph) => state.graph = Some(graph),
            Err(error) => {
                for (nth, node) in old {
                    let unused = std::mem::replace(&mut state.nodes[nth], node);
                    unused.release(None);
                }
                return Err(error);
            }
        }
        old.into_iter().for_each(|(_, node)| node.release(state.last.as_ref()));
        Ok(())
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
        let launched = self.launch(lane, after, (graph, &state.nodes), &mut reports);
        if let Err(error) = launched {
            reports.into_iter().for_each(|(_, report)| report.recycle());
            return Err(failed(self.context, &error));
        }
        let mark = Mark::at_end(&lane.0, sleeps)?;
        state.last = Some(Arc::clone(&mark.0));
        let mut each: Vec<Finish> = Vec::new();
        for (nth, report) in reports {
            if let Some(reporting) = &state.nodes[nth].reporting {
                each.push(finished(report, reporting, &works[nth].call()));
            }
        }
        let finish = (!each.is_empty()).then(|| all_of(each));
        Ok(Given { mark: backend::Mark::Cuda(mark), finish })
    }

    /// Gives each kernel that has one a new report, and launches the graph.
    #[expect(unsafe_code, reason = "the arguments of launches cannot be checked by types")]
    fn launch(
        &self,
        lane: &Lane,
        after: &[backend::Mark],
        (graph, nodes): (&Graph, &[Node]),
        reports: &mut Vec<(usize, Pinned)>,
    ) -> std::result::Result<(), DriverError> {
        for (nth, reporting) in nodes.iter().enumerate().filter_map(|(nth, n)| n.reporting.as_ref().map(|r| (nth, r))) {
            let report = new_report(self.context, reporting)?;
            let address = report.address();
            reports.push((nth, report));
            set(graph, nodes, nth, address)?;
        }
        follow(&lane.0, after)?;
        for (_, _, ready) in nodes.iter().filter_map(|node| node.maker.as_ref()) {
            lane.0.follow(ready)?;
        }
        // SAFETY: the parameters of each node are made as those of a launch (`code.rs`), of works whose memory the replay owns; reports and tables
        // are kept until it has ended. The replay is entered in the tables of all its buffers until then (`uses.rs`).
        unsafe { graph.launch(&lane.0) }
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        let state = &mut *lock(&self.state);
        let last = state.last.take();
        state.nodes.drain(..).for_each(|node| node.release(last.as_ref()));
    }
}

impl Node {
    fn of(work: &KernelWork) -> Result<Node> {
        let call = work.call();
        let code = work.code().as_cuda().ok_or_else(|| elsewhere(&call))?;
        let args: Vec<GpuArg> = call.args.iter().map(gpu_arg).collect();
        let (ready, functions, maps) = code.choose(&call, &args, None)?;
        let grid = code.grid((ready, &functions.kernel), &call)?;
        let context = code.context;
        let maker = match &functions.maker {
            None => None,
            Some(maker) => {
                let entries = gpu::tables(&ready.variant, &args);
                let (tables, made) = Tables::new(context, &entries).map_err(|e| failed(context, &e))?;
                Some((maker.clone(), tables, made))
            }
        };
        let reporting = ready.reporting.clone();
        let (slots, offsets) = (code.slots.clone(), code.offsets.clone());
        Ok(Node { kernel: functions.kernel.clone(), grid, args, slots, offsets, maps, maker, reporting })
    }

    fn block(&self, report: u64) -> Vec<u8> {
        abi::pack(&self.slots, &self.args, report)
    }

    /// The number of kernels.
    fn len(&self) -> usize {
        1 + usize::from(self.maker.is_some())
    }

    /// Its kernels in their order.
    fn kernels<'a>(&'a self, block: &'a [u8]) -> impl Iterator<Item = Kernel<'a>> {
        let tables = self.maker.as_ref().map_or(&[][..], |(_, tables, _)| &tables.addresses);
        let params = Params { block, offsets: &self.offsets, maps: &self.maps, tables };
        let made = self.maker.as_ref().map(|(maker, tables, _)| (maker, [tables.programs, 1, 1]));
        let all = made.into_iter().chain([(&self.kernel, self.grid)]);
        all.map(move |(function, grid)| Kernel { function, grid, params })
    }

    /// Frees its tables after a point.
    fn release(self, last: Option<&Arc<Event>>) {
        if let (Some((_, tables, _)), Some(last)) = (&self.maker, last) {
            tables.memory.used_until(Arc::clone(last));
        }
    }
}

/// An executable graph of these launches.
#[expect(unsafe_code, reason = "the arguments of launches cannot be checked by types")]
fn instantiate(context: &'static Context, nodes: &[Node]) -> Result<Graph> {
    let blocks: Vec<Vec<u8>> = nodes.iter().map(|node| node.block(0)).collect();
    let kernels: Vec<Kernel<'_>> = nodes.iter().zip(&blocks).flat_map(|(node, block)| node.kernels(block)).collect();
    // SAFETY: `Exec::launch` launches it, after it has set the address of each report.
    unsafe { Graph::new(context, &kernels) }.map_err(|e| failed(context, &e))
}

/// Sets the kernels of launch `nth` with this address of its report.
#[expect(unsafe_code, reason = "the arguments of launches cannot be checked by types")]
fn set(graph: &Graph, nodes: &[Node], nth: usize, report: u64) -> std::result::Result<(), DriverError> {
    let first: usize = nodes[..nth].iter().map(Node::len).sum();
    let block = nodes[nth].block(report);
    nodes[nth].kernels(&block).enumerate().try_for_each(|(i, kernel)| {
        // SAFETY: as in `instantiate`.
        unsafe { graph.set(first + i, &kernel) }
    })
}

fn failed(context: &Context, error: &DriverError) -> Error {
    error::driver(&name(context), error, "a graph")
}

fn elsewhere(call: &Call<'_>) -> Error {
    Error::Internal { doing: call.loaded.name.clone(), message: "its code is for another device".to_owned() }
}

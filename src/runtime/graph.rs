//! Graphs: launches that are captured once and replayed at once.
//!
//! A graph holds the launches with handles to all memory that they use. A replay is one piece of work, entered in the tables of all its buffers
//! (`uses.rs`), and runs the launches in the order in which they were made. NVIDIA's and AMD's drivers do that with an executable graph, made when
//! the graph is; on other devices the launches run one after the other.
//!
//! Deliberately absent: copies and fills in graphs, and launches side by side in one: each is after the one before it.

#[cfg(feature = "_remote")]
use super::backend::{Exec, Given, Lane, Mark};
use super::buffer::{Access, among_ourselves};
use super::capture;
use super::device::Device;
use super::launch::{KernelWork, Launch, Prepared, Work};
use super::nvtx;
use super::stream::Stream;
use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// Launches that were captured with [`Stream::capture`], to be replayed at once.
///
/// A graph keeps the memory of its tensors, which may be dropped. Replays are ordered with other work on the same elements as launches are, with
/// those of other streams and threads too, and the graph may be dropped or forgotten while a replay runs.
pub struct Graph {
    /// The stream whose launches were captured.
    stream: Stream,
    replay: Arc<Replay>,
}

/// The launches of a graph, as a piece of work.
pub(crate) struct Replay {
    title: Arc<str>,
    nodes: Vec<Node>,
    /// The parts of buffers that the launches use, each once.
    accesses: Vec<Access>,
    /// The graph of the driver, where the device has one.
    #[cfg(feature = "_remote")]
    exec: Option<Arc<Exec>>,
}

/// A launch of a graph.
#[derive(Clone)]
struct Node {
    work: Arc<KernelWork>,
    accesses: Arc<[Access]>,
}

impl Stream {
    /// Captures the launches that `launches` makes on this stream, on this thread, into a graph. They do not run; [`Graph::launch`] runs all of
    /// them, in their order, as often as it is called.
    ///
    /// ```
    /// use titan::prelude::*;
    ///
    /// #[titan::kernel]
    /// fn twice(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    ///     y.store_tile([program_id(0)], x.load_tile::<64>([program_id(0)]) * 2.0);
    /// }
    ///
    /// # fn main() -> titan::Result<()> {
    /// let dev = Device::cpu();
    /// let stream = dev.stream()?;
    /// let (mut x, mut y, mut z) = (dev.full([100], 1.0f32)?, dev.zeros([100])?, dev.zeros([100])?);
    /// let graph = stream.capture(|| {
    ///     twice(&x, &mut y).launch(&stream)?;
    ///     twice(&y, &mut z).launch(&stream)
    /// })?;
    /// for value in [1.0, 5.0] {
    ///     x.fill(value)?;
    ///     graph.launch(&stream)?;
    ///     assert_eq!(z.to_vec()?, [4.0 * value; 100]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What a graph cannot repeat is an error where it is done inside of `launches` (T1123): reads and writes by the host, `.sync()`, new tensors with
    /// contents, launches on other streams, launches on memory that others own; so is a capture without launches. Errors of `launches`, and
    /// those of the driver. Nothing has run then, and the stream is as before.
    pub fn capture(&self, launches: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let nodes = Node::of(capture::record(self, launches)?)?;
        let replay = Replay::new(self.device(), nodes)?;
        Ok(Graph { stream: self.clone(), replay: Arc::new(replay) })
    }
}

impl Graph {
    /// Enqueues all launches of the graph at the end of a stream of its device, in their order, and returns.
    ///
    /// # Errors
    /// If the stream is of another device, or another library uses a tensor of the graph (T1124); or the device does not accept the work. Failures of launches are reported later, as those of
    /// a launch are; the graph fails as a whole then.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        if stream.device() != self.device() {
            let problem = format!("the graph is on {}, but the stream is on {}", self.device(), stream.device());
            return Err(Error::Graph {
                problem,
                help: "launch it on a stream of its device, or capture it on the other one",
            });
        }
        let Replay { title, accesses, .. } = &*self.replay;
        let _range = nvtx::range(title);
        let enter = || stream.enqueue(Arc::clone(title), accesses, Work::Graph(Arc::clone(&self.replay)), false);
        let Some(entered) = among_ourselves(accesses, enter) else {
            let problem =
                "a tensor of the graph is lent to another library (`cuda::lend`) or given to one (`dlpack::export`)";
            let help = "launch the graph when the other library has given the tensor back";
            return Err(Error::Graph { problem: problem.to_owned(), help });
        };
        entered.map(drop)
    }

    /// The device of the graph.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.stream.device()
    }

    /// The number of launches.
    #[must_use]
    pub fn launches(&self) -> usize {
        self.replay.nodes.len()
    }

    /// The names of the kernels, with their instances, in the order of the launches.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.replay.nodes.iter().map(|node| node.work.name())
    }

    /// Replaces launch `nth`, from 0 on, by one of the same instance with other arguments, for later replays. Replays that are running keep theirs.
    ///
    /// ```
    /// # use titan::prelude::*;
    /// # #[titan::kernel]
    /// # fn twice(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    /// #     y.store_tile([program_id(0)], x.load_tile::<64>([program_id(0)]) * 2.0);
    /// # }
    /// # fn main() -> titan::Result<()> {
    /// # let dev = Device::cpu();
    /// # let stream = dev.stream()?;
    /// let (x, mut y, mut z) = (dev.full([10], 1.0f32)?, dev.zeros([10])?, dev.zeros([10])?);
    /// let mut graph = stream.capture(|| twice(&x, &mut y).launch(&stream))?;
    /// graph.set(0, twice(&x, &mut z))?;
    /// graph.launch(&stream)?;
    /// assert_eq!((y.to_vec()?, z.to_vec()?), (vec![0.0; 10], vec![2.0; 10]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If there is no such launch, or the new one is of another instance or on another device, or has no programs (T1124); if it uses memory that others
    /// own (T1123); the errors of a launch, and those of the driver. The graph is as it was then.
    pub fn set(&mut self, nth: usize, launch: Launch<'_>) -> Result<()> {
        let stream = self.stream.clone();
        let mut launches = capture::record(&stream, || launch.launch(&stream))?;
        let new = match launches.pop() {
            Some(launch) => Node::of(vec![launch])?.pop(),
            None => None,
        };
        let Some((new, place)) = new.zip(self.replay.nodes.get(nth)) else {
            let problem = format!("the graph has {} launches, and none is at {nth}", self.launches());
            return Err(Error::Graph { problem, help: "count from 0, in the order in which they were captured" });
        };
        new.replaces(place)?;
        let mut nodes = self.replay.nodes.clone();
        nodes[nth] = new;
        self.renew(nodes, &[nth])
    }

    /// Replaces all launches by those that `launches` makes on the stream of the capture: the same instances in the same order, with other arguments.
    /// So the code that was captured can run again with other tensors.
    ///
    /// # Errors
    /// If the launches are not those of the graph (T1124); the errors of [`Stream::capture`]. The graph is as it was then.
    pub fn update(&mut self, launches: impl FnOnce() -> Result<()>) -> Result<()> {
        let nodes = Node::of(capture::record(&self.stream, launches)?)?;
        if nodes.len() != self.launches() {
            let problem = format!("the graph has {} launches, but {} were made", self.launches(), nodes.len());
            return Err(Error::Graph { problem, help: "make the same launches, or capture a new graph" });
        }
        nodes.iter().zip(&self.replay.nodes).try_for_each(|(new, old)| new.replaces(old))?;
        let all: Vec<usize> = (0..nodes.len()).collect();
        self.renew(nodes, &all)
    }

    /// Makes these the launches, of which those at `changed` are other ones.
    fn renew(&mut self, nodes: Vec<Node>, changed: &[usize]) -> Result<()> {
        #[cfg(feature = "_remote")]
        if let Some(exec) = &self.replay.exec {
            let works: Vec<&KernelWork> = nodes.iter().map(|node| &*node.work).collect();
            exec.renew(&works, changed)?;
        }
        #[cfg(not(feature = "_remote"))]
        let _ = changed;
        let replay = Replay {
            title: Arc::clone(&self.replay.title),
            accesses: union(&nodes),
            nodes,
            #[cfg(feature = "_remote")]
            exec: self.replay.exec.clone(),
        };
        self.replay = Arc::new(replay);
        Ok(())
    }
}

impl Node {
    fn of(launches: Vec<Prepared>) -> Result<Vec<Node>> {
        let node = |launch: Prepared| {
            let (work, accesses) = launch.into_kernel()?;
            Ok(Node { work: Arc::from(work), accesses: accesses.into() })
        };
        launches.into_iter().map(node).collect()
    }

    /// Rejects a launch that cannot take the place of another one.
    fn replaces(&self, old: &Node) -> Result<()> {
        if self.work.is_of(&old.work) {
            return Ok(());
        }
        let problem = format!("the graph launches `{}` there, not `{}`", old.work.name(), self.work.name());
        Err(Error::Graph { problem, help: "launch the same instance, or capture a new graph" })
    }
}

/// The parts of buffers that launches use: each once, written if one of them writes it.
fn union(nodes: &[Node]) -> Vec<Access> {
    let mut all: Vec<Access> = Vec::new();
    for access in nodes.iter().flat_map(|node| &*node.accesses) {
        let same = |known: &&mut Access| known.buffer.is(&access.buffer) && known.footprint == access.footprint;
        match all.iter_mut().find(same) {
            Some(known) => known.write |= access.write,
            None => all.push(access.clone()),
        }
    }
    all
}

impl Replay {
    fn new(device: &Device, nodes: Vec<Node>) -> Result<Replay> {
        #[cfg(feature = "_remote")]
        let exec = {
            let works: Vec<&KernelWork> = nodes.iter().map(|node| &*node.work).collect();
            let made = if device.is_remote() { Some(Exec::new(device, &works)?) } else { None };
            made.map(Arc::new)
        };
        #[cfg(not(feature = "_remote"))]
        let _ = device;
        let title = match &nodes[..] {
            [only] => format!("a graph of `{}`", only.work.name()),
            [first, .., last] => {
                let (n, first, last) = (nodes.len(), first.work.name(), last.work.name());
                format!("a graph of {n} launches, from `{first}` to `{last}`")
            }
            [] => "a graph".to_owned(),
        };
        Ok(Replay {
            title: title.into(),
            accesses: union(&nodes),
            nodes,
            #[cfg(feature = "_remote")]
            exec,
        })
    }

    /// Runs the launches to their end on this thread. The first failure ends the replay.
    pub(crate) fn run(&self) -> Result<()> {
        self.nodes.iter().try_for_each(|node| node.work.run())
    }

    /// Enqueues the launches at the end of a lane, after the points `after`. After an error, none has been enqueued.
    #[cfg(feature = "_remote")]
    pub(crate) fn give(&self, lane: &Lane, after: &[Mark], sleeps: bool) -> Result<Given> {
        let Some(exec) = &self.exec else {
            return Err(Error::Internal {
                doing: self.title.to_string(),
                message: "no graph of the driver".to_owned(),
            });
        };
        let works: Vec<&KernelWork> = self.nodes.iter().map(|node| &*node.work).collect();
        exec.give(lane, after, &works, sleeps)
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("device", self.device())
            .field("kernels", &self.kernels().collect::<Vec<_>>())
            .finish()
    }
}

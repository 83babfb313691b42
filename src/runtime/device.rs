//! Devices: enumeration, and the choice of one.

use super::absence::{Absent, absence, list, none_at_all};
use super::memory_use::Counts;
use super::setting;
use super::stream::{Handle, Stream};
use crate::error::{Error, Result};
use std::fmt;
use std::hash::{Hash, Hasher};
#[cfg(feature = "emulator")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The processor of the host, which is always available.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// An AMD GPU.
    Hip,
    /// An emulator of a GPU: for tests.
    Emulator,
    /// A simulator of pipelines: for tests.
    Simulator,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl DeviceKind {
    /// The name of the kind in `TITAN_DEVICE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
            DeviceKind::Hip => "hip",
            DeviceKind::Emulator => "emulator",
            DeviceKind::Simulator => "simulator",
        }
    }
}

/// A device with memory that runs kernels. Clones are the same device.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

/// The key of compiled code: the kind of a device, and a number that distinguishes devices of one kind that need different code.
pub(crate) type Model = (DeviceKind, u32);

/// The number of streams over which awaited launches are distributed.
const AWAIT_STREAMS: usize = 4;

struct Inner {
    kind: DeviceKind,
    ordinal: u32,
    description: String,
    counts: Counts,
    default: OnceLock<Arc<Handle>>,
    awaited: [OnceLock<Arc<Handle>>; AWAIT_STREAMS],
    next_awaited: AtomicUsize,
    #[cfg(feature = "emulator")]
    emulated: Option<super::emulator::Space>,
    #[cfg(feature = "simulator")]
    simulated: Option<super::simulator::Settings>,
    #[cfg(feature = "cuda")]
    cuda: Option<&'static titan_nv::runtime::Device>,
    #[cfg(feature = "hip")]
    hip: Option<&'static titan_amd::runtime::Device>,
}

impl Device {
    /// The first of: what the environment variable `TITAN_DEVICE` names, an NVIDIA GPU, an AMD GPU, the CPU. GPUs count for which TITAN
    /// compiles.
    ///
    /// `TITAN_DEVICE` is `cpu`, `cuda` (the best one) or `cuda:N`; with the feature `hip` also `hip` and `hip:N`, with `emulator` also
    /// `emulator:sm_80` and the like, with the feature `simulator` also `simulator`; each name always refers to the same device.
    /// An empty value counts as not set.
    ///
    /// # Errors
    /// If `TITAN_DEVICE` is not such a name, or the device does not exist.
    pub fn best() -> Result<Device> {
        Device::by_setting(setting::device().as_deref())
    }

    /// The CPU.
    #[cfg(feature = "cpu")]
    #[must_use]
    pub fn cpu() -> Device {
        static CPU: OnceLock<Device> = OnceLock::new();
        CPU.get_or_init(|| Device::new(DeviceKind::Cpu, 0, super::cpu::description())).clone()
    }

    /// The device of this name, in the form of `TITAN_DEVICE`.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Device> {
        Device::choose("the device", name)
    }

    /// A device that is an emulator, the one of this number.
    #[cfg(feature = "emulator")]
    pub(super) fn emulating(number: u32, space: super::emulator::Space) -> Device {
        let mut device = Device::new(DeviceKind::Emulator, number, space.machine().name().to_owned());
        if let Some(inner) = Arc::get_mut(&mut device.0) {
            inner.emulated = Some(space);
        }
        device
    }

    /// The shared emulator of a target, for devices that are chosen by name: tensors of two calls of [`Device::best`] are on one device.
    #[cfg(feature = "emulator")]
    fn named_emulator(target: &str) -> Result<Device> {
        static NAMED: Mutex<Vec<Device>> = Mutex::new(Vec::new());
        let mut named = super::lock(&NAMED);
        if let Some(known) = named.iter().find(|d| d.0.description == target) {
            return Ok(known.clone());
        }
        let new = Device::emulator(target)?;
        named.push(new.clone());
        Ok(new)
    }

    #[cfg(feature = "emulator")]
    pub(crate) fn emulated(&self) -> Option<super::emulator::Space> {
        self.0.emulated.clone()
    }

    /// A new device that runs kernels in the simulator, independently of a target. It is slow, but reports races on shared memory,
    /// deadlocks, stages that are read too early or too late, missing fences and copies in flight at the end as errors. An error includes
    /// the schedule that shows it and the seeds of the launch: the first launch on a device with these options repeats the run. The seeds
    /// in the options are those of the first launch; each later launch uses the next ones. The programs of a grid run one after the other,
    /// but conflicting accesses of two programs are errors. Tiles are always computed; `data` and `trace` are ignored.
    ///
    /// ```
    /// use titan::prelude::*;
    /// use titan::sim::{Completion, Options};
    ///
    /// # #[titan::kernel]
    /// # fn twice(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    /// #     y.store_tile([program_id(0)], x.load_tile::<64>([program_id(0)]) * 2.0);
    /// # }
    /// # fn main() -> titan::Result<()> {
    /// let dev = Device::simulator(Options { seed: Some(1), completion: Completion::Seeded(1), ..Options::default() });
    /// let (x, mut y) = (dev.full([100], 1.5)?, dev.zeros([100])?);
    /// twice(&x, &mut y).sync()?;
    /// assert_eq!(y.to_vec()?, [3.0f32; 100]);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "simulator")]
    #[must_use]
    pub fn simulator(options: titan_sim::sim::Options) -> Device {
        let mut device = Device::new(DeviceKind::Simulator, 0, format!("{:?}", options.completion).to_lowercase());
        if let Some(inner) = Arc::get_mut(&mut device.0) {
            inner.simulated = Some(super::simulator::Settings::new(options));
        }
        device
    }

    /// The shared simulator, for devices that are chosen by name: copies complete and roles interleave at random, from seed 0 on.
    #[cfg(feature = "simulator")]
    fn named_simulator() -> Device {
        use titan_sim::engine::Completion;
        static NAMED: OnceLock<Device> = OnceLock::new();
        let options = titan_sim::sim::Options {
            seed: Some(0),
            completion: Completion::Seeded(0),
            ..titan_sim::sim::Options::default()
        };
        NAMED.get_or_init(|| Device::simulator(options)).clone()
    }

    #[cfg(feature = "simulator")]
    pub(crate) fn simulated(&self) -> Option<super::simulator::Settings> {
        self.0.simulated.clone()
    }

    /// The NVIDIA GPU of this number, in the driver's order, which `CUDA_VISIBLE_DEVICES` changes.
    ///
    /// # Errors
    /// If there is none; the error says why.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: u32) -> Result<Device> {
        Device::choose("the device", &format!("cuda:{ordinal}"))
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn of_cuda(device: &'static titan_nv::runtime::Device, description: String) -> Device {
        let mut made = Device::new(DeviceKind::Cuda, device.ordinal, description);
        if let Some(inner) = Arc::get_mut(&mut made.0) {
            inner.cuda = Some(device);
        }
        made
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn as_cuda(&self) -> Option<&'static titan_nv::runtime::Device> {
        self.0.cuda
    }

    #[cfg(feature = "hip")]
    pub(crate) fn of_hip(device: &'static titan_amd::runtime::Device, description: String) -> Device {
        let mut made = Device::new(DeviceKind::Hip, device.ordinal, description);
        if let Some(inner) = Arc::get_mut(&mut made.0) {
            inner.hip = Some(device);
        }
        made
    }

    #[cfg(feature = "hip")]
    pub(crate) fn as_hip(&self) -> Option<&'static titan_amd::runtime::Device> {
        self.0.hip
    }

    /// Whether the device executes work asynchronously, in lanes.
    #[cfg(feature = "_remote")]
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.kind(), DeviceKind::Cuda | DeviceKind::Hip)
    }

    /// The devices of this machine, the best one first. GPUs for which TITAN does not compile come after the CPU.
    #[must_use]
    pub fn available() -> Vec<Device> {
        Device::found().0
    }

    /// The devices of this machine, and the reasons why there are none of each kind of GPUs.
    fn found() -> (Vec<Device>, Absent) {
        let (mut found, mut others, mut absent) = (Vec::new(), Vec::new(), Absent::default());
        #[cfg(feature = "cuda")]
        {
            let gpus = super::cuda::devices();
            let usable = |d: &&Device| d.as_cuda().is_some_and(super::cuda::is_usable);
            sort(gpus.as_deref().unwrap_or_default(), usable, (&mut found, &mut others));
            absent.cuda = gpus.err();
        }
        #[cfg(feature = "hip")]
        {
            let gpus = super::hip::devices();
            let usable = |d: &&Device| d.as_hip().is_some_and(super::hip::is_usable);
            sort(gpus.as_deref().unwrap_or_default(), usable, (&mut found, &mut others));
            absent.hip = gpus.err();
        }
        let without =
            |vendor: &str, help| Some((format!("this program was built without support for {vendor} GPUs"), help));
        if cfg!(not(feature = "cuda")) {
            absent.cuda = without("NVIDIA", "build with feature `cuda` of `titan-gpu`");
        }
        if cfg!(not(feature = "hip")) {
            absent.hip = without("AMD", "build with feature `hip` of `titan-gpu`");
        }
        #[cfg(feature = "cpu")]
        found.push(Device::cpu());
        found.append(&mut others);
        (found, absent)
    }

    /// The kind of the device.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        self.0.kind
    }

    /// The counts of its memory.
    pub(super) fn counts(&self) -> &Counts {
        &self.0.counts
    }

    /// The index of the device among those of its kind, from 0.
    #[must_use]
    pub fn ordinal(&self) -> u32 {
        self.0.ordinal
    }

    /// The kind and the model of the device, without its number: what measurements depend on.
    pub(crate) fn type_name(&self) -> String {
        match self.kind() {
            DeviceKind::Cpu | DeviceKind::Emulator | DeviceKind::Simulator => self.to_string(),
            kind @ (DeviceKind::Cuda | DeviceKind::Hip) => format!("{} ({})", kind.name(), self.0.description),
        }
    }

    /// Creates a stream.
    ///
    /// # Errors
    /// If the device cannot create another one.
    pub fn stream(&self) -> Result<Stream> {
        Ok(Stream::new(self))
    }

    /// The default stream, which always exists.
    #[must_use]
    pub fn default_stream(&self) -> Stream {
        Stream::of(self, Arc::clone(self.0.default.get_or_init(|| Handle::new(self))))
    }

    /// The model of the device: devices of one model run the same code.
    pub(crate) fn model(&self) -> Model {
        (self.0.kind, self.0.ordinal)
    }

    /// The stream of the next awaited launch.
    pub(crate) fn awaited_stream(&self) -> Stream {
        let next = self.0.next_awaited.fetch_add(1, Ordering::Relaxed) % AWAIT_STREAMS;
        Stream::of(self, Arc::clone(self.0.awaited[next].get_or_init(|| Handle::new(self))))
    }

    fn new(kind: DeviceKind, ordinal: u32, description: String) -> Device {
        let next_awaited = AtomicUsize::new(0);
        let (default, awaited) = (OnceLock::new(), std::array::from_fn(|_| OnceLock::new()));
        Device(Arc::new(Inner {
            kind,
            ordinal,
            description,
            counts: Counts::default(),
            default,
            awaited,
            next_awaited,
            #[cfg(feature = "emulator")]
            emulated: None,
            #[cfg(feature = "simulator")]
            simulated: None,
            #[cfg(feature = "cuda")]
            cuda: None,
            #[cfg(feature = "hip")]
            hip: None,
        }))
    }

    /// The device for this value of `TITAN_DEVICE`.
    fn by_setting(value: Option<&str>) -> Result<Device> {
        match value.filter(|v| !v.trim().is_empty()) {
            Some(value) => Device::choose(setting::DEVICE, value),
            None => {
                let (available, absent) = Device::found();
                available.into_iter().next().ok_or_else(|| none_at_all(absent))
            }
        }
    }

    /// The device that `asked` names; `asked_by` is for the error.
    fn choose(asked_by: &'static str, asked: &str) -> Result<Device> {
        let (available, absent) = Device::found();
        let wanted = asked.trim().to_ascii_lowercase();
        #[cfg(feature = "emulator")]
        if let Some(target) = wanted.strip_prefix("emulator:") {
            return Device::named_emulator(target);
        }
        #[cfg(feature = "simulator")]
        if wanted == DeviceKind::Simulator.name() {
            return Ok(Device::named_simulator());
        }
        let (kind, ordinal) = wanted.split_once(':').map_or((wanted.as_str(), None), |(kind, n)| (kind, Some(n)));
        let fits = |d: &&Device| {
            // The first of a kind is its best; there is one CPU, without a number.
            let numbered = ordinal.is_none_or(|n| d.kind() != DeviceKind::Cpu && n.parse() == Ok(d.ordinal()));
            d.kind().name() == kind && numbered
        };
        available.iter().find(fits).cloned().ok_or_else(|| {
            let (reason, help) = absence(kind, absent.clone()).unzip();
            Error::NoSuchDevice { asked_by, asked: asked.to_owned(), available: list(&available), reason, help }
        })
    }
}

/// Adds the devices for which kernels are compiled to the first list, and the others to the second one.
#[cfg(feature = "_remote")]
fn sort(gpus: &[Device], usable: impl Fn(&&Device) -> bool, (new, old): (&mut Vec<Device>, &mut Vec<Device>)) {
    let (usable, others): (Vec<&Device>, Vec<&Device>) = gpus.iter().partition(usable);
    new.extend(usable.into_iter().cloned());
    old.extend(others.into_iter().cloned());
}

/// The next index in row-major order; after the last one, the first.
pub(super) fn advance(index: &mut [usize], shape: &[usize]) {
    for (i, extent) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < *extent {
            return;
        }
        *i = 0;
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        // Each emulator has its own memory, and each simulator its own options.
        let alone = matches!(self.kind(), DeviceKind::Emulator | DeviceKind::Simulator);
        let same = !alone || Arc::ptr_eq(&self.0, &other.0);
        same && (self.kind(), self.ordinal()) == (other.kind(), other.ordinal())
    }
}

impl Eq for Device {}

impl Hash for Device {
    /// Emulators of one number and all simulators share a hash.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind(), self.ordinal()).hash(state);
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            DeviceKind::Cpu => write!(f, "cpu ({})", self.0.description),
            DeviceKind::Emulator => write!(f, "emulator:{}", self.0.description),
            DeviceKind::Simulator => write!(f, "simulator ({})", self.0.description),
            kind @ (DeviceKind::Cuda | DeviceKind::Hip) => {
                write!(f, "{}:{} ({})", kind.name(), self.ordinal(), self.0.description)
            }
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_names_a_device_that_is_there() {
        for name in ["cpu", " CPU "] {
            assert_eq!(Device::by_setting(Some(name)).unwrap(), Device::cpu());
        }
        assert_eq!(Device::named("cpu").unwrap(), Device::cpu());
    }

    #[test]
    fn without_a_setting_the_best_device_is_used() {
        for value in [None, Some(""), Some("  ")] {
            assert_eq!(Device::by_setting(value).unwrap(), Device::available()[0]);
        }
    }

    #[test]
    fn other_settings_say_what_was_asked_and_what_is_there() {
        for name in ["gpu", "cuda:9999", "hip:x", "cpu:0", "cuda:", ":0", "emulator"] {
            let text = Device::by_setting(Some(name)).unwrap_err().to_string();
            assert!(text.starts_with(&format!("TITAN_DEVICE is `{name}`, but the available devices are: ")), "{text}");
            assert!(text.contains("cpu ("), "{text}");
        }
    }

    #[test]
    #[cfg(not(feature = "emulator"))]
    fn an_emulator_that_is_not_built_in_names_its_feature() {
        let text = Device::named("emulator:sm_80").unwrap_err().to_string();
        assert!(
            text.contains("; this program was built without the emulator\n  help: build with feature `emulator`"),
            "{text}"
        );
    }

    #[test]
    fn equal_devices_and_streams_are_one_key() {
        fn hash(x: &impl Hash) -> u64 {
            let mut hasher = std::hash::DefaultHasher::new();
            x.hash(&mut hasher);
            hasher.finish()
        }
        let dev = Device::cpu();
        assert_eq!(hash(&dev), hash(&Device::named("cpu").unwrap()));
        assert_eq!(hash(&dev.default_stream()), hash(&dev.default_stream()));
        assert_ne!(hash(&dev.default_stream()), hash(&dev.stream().unwrap()));
    }

    #[test]
    fn a_device_shows_its_kind_and_its_name() {
        assert_eq!(format!("{:>5}", DeviceKind::Hip), "  hip");
        let text = Device::cpu().to_string();
        assert!(text.starts_with("cpu (") && text.contains(" thread") && text.ends_with(')'), "{text}");
    }
}

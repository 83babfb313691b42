//! Measurements that compare: several ways to do the same work run alternately, and each round gives ratios of their times.
//!
//! Clocks of processors and GPUs change from second to second, and so does what else a machine does. Times that were measured one after the
//! other mostly compare these. So [`Bench`] runs all cases in each round, another one first in each, and reports the ratio to the first case
//! of the same round, as a median with quartiles.
//!
//! | | GPUs | other devices |
//! |---|---|---|
//! | the clock | the device's, by events around the launches ([`Clock::Device`]) | the host's, around the call and the end of its work ([`Clock::Host`]) |
//! | before each run | the L2 cache is overwritten ([`Bench::flush`]) | nothing |
//!
//! ```
//! use titan::bench::Bench;
//! use titan::prelude::*;
//!
//! #[titan::kernel(instances(BN in [64, 256]))]
//! fn double<const BN: i32>(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
//!     let p = program_id(0);
//!     y.store_tile([p], x.load_tile::<BN>([p]) * 2.0);
//! }
//!
//! # fn main() -> titan::Result<()> {
//! let dev = Device::cpu();
//! let (x, mut y) = (dev.full([10_000], 1.5f32)?, dev.zeros([10_000])?);
//! let compared = Bench::on(&dev).rounds(5).compare(&["tiles of 64", "tiles of 256"], |case, stream| match case {
//!     0 => double::<64>(&x, &mut y).launch(stream),
//!     _ => double::<256>(&x, &mut y).launch(stream),
//! })?;
//! println!("{compared}");
//! assert_eq!(compared.cases[0].ratio.median, 1.0);
//! # Ok(())
//! # }
//! ```
//!
//! Deliberately absent: the choice of a case by its time, which is [`tune`](crate::tune), and plots.

use crate::runtime::{Device, DeviceKind, Flush, Stream};
use crate::{Error, Result};
use std::fmt;
use std::time::{Duration, Instant};

/// Bytes that replace what the L2 cache of an NVIDIA GPU holds: twice the largest one (126 MB, B200).
const NVIDIA_CACHE: usize = 256 << 20;
/// The same for AMD's GPUs, whose last cache has 256 MB (MI300).
const AMD_CACHE: usize = 512 << 20;

/// What measures the time of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Clock {
    /// Events of the device before and after the launches: the time of the launching thread does not count.
    Device,
    /// The host's clock, from the call until everything on the stream has ended.
    Host,
}

impl Clock {
    /// `device` or `host`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Device => "device",
            Clock::Host => "host",
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {}'s clock", self.name())
    }
}

/// How cases are measured on a device: see [the module](self).
#[derive(Clone, Debug)]
#[must_use = "nothing is measured before `compare` or `sample`"]
pub struct Bench {
    device: Device,
    rounds: usize,
    warm_up: Option<usize>,
    batch: u32,
    clock: Clock,
    flush: usize,
}

impl Bench {
    /// Measurements on a device: 20 rounds, after a fifth as many that do not count.
    pub fn on(device: &Device) -> Bench {
        let (clock, flush) = match device.kind() {
            DeviceKind::Cuda => (Clock::Device, NVIDIA_CACHE),
            DeviceKind::Hip => (Clock::Device, AMD_CACHE),
            DeviceKind::Cpu | DeviceKind::Emulator | DeviceKind::Simulator => (Clock::Host, 0),
        };
        Bench { device: device.clone(), rounds: 20, warm_up: None, batch: 1, clock, flush }
    }

    /// The number of rounds. In each, every case runs.
    pub fn rounds(self, rounds: usize) -> Bench {
        Bench { rounds, ..self }
    }

    /// The number of rounds before those that count, instead of a fifth as many and one. The first launch of a kernel compiles or loads it.
    pub fn warm_up(self, rounds: usize) -> Bench {
        Bench { warm_up: Some(rounds), ..self }
    }

    /// Runs a case so many times for one measurement, whose time is divided by the number: for launches that are too short for the clock.
    /// The cache is overwritten before the first of them only.
    pub fn batch(self, runs: u32) -> Bench {
        Bench { batch: runs, ..self }
    }

    /// The clock. Work on streams of other libraries is not between the events of [`Clock::Device`]; measure it by the host's, and wait for it
    /// in the case.
    pub fn clock(self, clock: Clock) -> Bench {
        Bench { clock, ..self }
    }

    /// Overwrites so many bytes of the device's memory before each measurement, so that no case finds its data in a cache. 0 leaves the caches
    /// as they are. GPUs overwrite 256 MiB (NVIDIA) or 512 MiB (AMD) unless this says otherwise.
    pub fn flush(self, bytes: usize) -> Bench {
        Bench { flush: bytes, ..self }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Measures cases with these names. `run` starts the work of the case of an index on the stream that it is given, or does it itself.
    ///
    /// # Errors
    /// If there are no names, no rounds or no runs in a batch (T1122); the errors of `run` and of its launches; if there is no memory to
    /// overwrite the cache.
    pub fn compare<N: AsRef<str>>(
        &self,
        names: &[N],
        mut run: impl FnMut(usize, &Stream) -> Result<()>,
    ) -> Result<Comparison> {
        let stream = self.device.stream()?;
        let flush = if self.flush > 0 { Some(Flush::new(&self.device, self.flush)?) } else { None };
        self.measure(names, |case| self.seconds(&stream, flush.as_ref(), || run(case, &stream)))
    }

    /// The same for cases that measure themselves: `time` returns the time of one run of the case of an index.
    ///
    /// # Errors
    /// As [`Bench::compare`].
    pub fn sample<N: AsRef<str>>(
        &self,
        names: &[N],
        mut time: impl FnMut(usize) -> Result<Duration>,
    ) -> Result<Comparison> {
        self.measure(names, |case| time(case).map(|time| time.as_secs_f64()))
    }

    /// The seconds of one run, as the mean of a batch.
    fn seconds(&self, stream: &Stream, flush: Option<&Flush>, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
        flush.map_or(Ok(()), |flush| flush.enqueue(stream))?;
        let mut runs = || (0..self.batch).try_for_each(|_| run());
        let whole = match self.clock {
            Clock::Device => {
                let timer = stream.timer()?;
                runs()?;
                let whole = timer.stop()?;
                // Failures of the launches: the timer reports none.
                stream.sync()?;
                whole
            }
            Clock::Host => {
                stream.sync()?;
                let start = Instant::now();
                runs()?;
                stream.sync()?;
                start.elapsed()
            }
        };
        Ok(whole.as_secs_f64() / f64::from(self.batch))
    }

    fn measure<N: AsRef<str>>(&self, names: &[N], mut seconds: impl FnMut(usize) -> Result<f64>) -> Result<Comparison> {
        let nothing = [(names.len(), "cases"), (self.rounds, "rounds"), (self.batch as usize, "runs in a batch")];
        if let Some((_, what)) = nothing.iter().find(|(n, _)| *n == 0) {
            let problem = format!("there are no {what} to measure");
            return Err(Error::Measurement { problem, help: "give at least one" });
        }
        let warm_up = self.warm_up.unwrap_or(self.rounds / 5 + 1);
        let mut samples = vec![Vec::with_capacity(self.rounds); names.len()];
        for round in 0..warm_up + self.rounds {
            // Another case is first in each round, so that none always follows the same one.
            for at in 0..names.len() {
                let case = (round + at) % names.len();
                // A clock that did not advance says that less has passed than it can tell.
                let time = seconds(case)?.max(SHORTEST);
                if round >= warm_up {
                    samples[case].push(time);
                }
            }
        }
        let device = self.device.to_string();
        let cases = Case::of(names, samples);
        Ok(Comparison { device, clock: self.clock, rounds: self.rounds, cases })
    }
}

/// The shortest time that is reported, in seconds.
const SHORTEST: f64 = 1e-9;

/// The result of [`Bench::compare`]. Its text is a table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The device, as it displays itself.
    pub device: String,
    /// The clock that measured.
    pub clock: Clock,
    /// The number of rounds that count.
    pub rounds: usize,
    /// The cases, in their order.
    pub cases: Vec<Case>,
}

/// A case of a [`Comparison`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The seconds of one run, by round.
    pub samples: Vec<f64>,
    /// Their spread.
    pub seconds: Spread,
    /// The spread of the ratios to the first case of the same round: this case's time by that of the first, so that the first is faster where
    /// it is above 1.
    pub ratio: Spread,
}

impl Case {
    /// The cases with these names and these seconds by round.
    fn of<N: AsRef<str>>(names: &[N], samples: Vec<Vec<f64>>) -> Vec<Case> {
        let first = samples.first().cloned().unwrap_or_default();
        let case = |(name, samples): (&N, Vec<f64>)| Case {
            name: name.as_ref().to_owned(),
            seconds: Spread::of(samples.iter().copied()),
            ratio: Spread::of(samples.iter().zip(&first).map(|(own, first)| own / first)),
            samples,
        };
        names.iter().zip(samples).map(case).collect()
    }

    /// The spread of the differences of this case's seconds to another one's of the same round.
    #[must_use]
    pub fn more_than(&self, other: &Case) -> Spread {
        Spread::of(self.samples.iter().zip(&other.samples).map(|(own, other)| own - other))
    }
}

/// Measured values, in short.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Spread {
    /// The least value.
    pub least: f64,
    /// The value below which a quarter of them lies.
    pub lower: f64,
    /// The value below which half of them lie.
    pub median: f64,
    /// The value below which three quarters of them lie.
    pub upper: f64,
}

impl Spread {
    /// The spread of these values; NaN for none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        // The nearest rank: a value that was measured.
        let at = |quarters: usize| {
            let rank = (sorted.len().saturating_sub(1) * quarters + 2) / 4;
            sorted.get(rank).copied().unwrap_or(f64::NAN)
        };
        Spread { least: at(0), lower: at(1), median: at(2), upper: at(3) }
    }
}

impl Spread {
    /// The values in ascending order.
    pub(crate) fn all(&self) -> [f64; 4] {
        [self.least, self.lower, self.median, self.upper]
    }

    /// The same in another unit.
    pub(crate) fn scaled(&self, by: f64) -> Spread {
        let [least, lower, median, upper] = self.all().map(|v| v * by);
        Spread { least, lower, median, upper }
    }
}

impl fmt::Display for Spread {
    /// The median, with the quartiles in parentheses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ({:.3} to {:.3})", self.median, self.lower, self.upper)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { device, clock, rounds, cases } = self;
        let width = cases.iter().map(|case| case.name.chars().count()).max().unwrap_or(0);
        writeln!(f, "{device}, {rounds} rounds by {clock}")?;
        write!(f, "{:width$} {:>12} {:>12}   ratio (quartiles)", "", "best us", "median us")?;
        for Case { name, seconds, ratio, .. } in cases {
            let (best, median) = (seconds.least * 1e6, seconds.median * 1e6);
            write!(f, "\n{name:width$} {best:12.2} {median:12.2}   {ratio}")?;
        }
        Ok(())
    }
}

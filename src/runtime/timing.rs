//! Points in the work of streams, and the time between them.
//!
//! A point is work without memory: it waits for what its stream was given before, and nothing waits for it but those who ask. Devices with
//! lanes store its time themselves; on the others the thread of the stream does.

#[cfg(feature = "_remote")]
use super::backend::Mark;
use super::device::Device;
use super::event;
use super::launch::Work;
use super::stream::Stream;
use crate::error::{Error, Result};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A point in the work of a stream, after everything that was launched there before: see [`Stream::record`]. Clones are the same point.
#[derive(Clone)]
pub struct Event {
    device: Device,
    point: Arc<Point>,
    end: event::Event,
}

/// The time at which a point is reached.
#[derive(Debug, Default)]
pub(crate) struct Point {
    at: OnceLock<Instant>,
    /// Where the device has the time.
    #[cfg(feature = "_remote")]
    mark: OnceLock<Mark>,
}

impl Point {
    /// Stores the time, which is now.
    pub(crate) fn reach(&self) {
        // A point is reached once.
        let _ = self.at.set(Instant::now());
    }

    /// The device stores the time, in this mark.
    #[cfg(feature = "_remote")]
    pub(crate) fn give(&self, mark: Mark) {
        let _ = self.mark.set(mark);
    }
}

impl Stream {
    /// The point after everything that was launched on this stream so far. Does not wait. Launches by `.sync()` and `.await` and copies by the
    /// host are not on the stream.
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
    /// let (x, mut y) = (dev.full([1000], 1.5f32)?, dev.zeros([1000])?);
    /// let start = stream.record()?;
    /// twice(&x, &mut y).launch(&stream)?;
    /// let end = stream.record()?;
    /// end.wait()?;
    /// println!("{:?}", end.elapsed_since(&start)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the device fails.
    pub fn record(&self) -> Result<Event> {
        let point = Arc::new(Point::default());
        let end = self.enqueue("`record`".into(), &[], Work::Point(Arc::clone(&point)), false)?;
        Ok(Event { device: self.device().clone(), point, end })
    }

    /// Starts to measure the time of what is launched on this stream from now on.
    ///
    /// # Errors
    /// The same as of [`Stream::record`].
    pub fn timer(&self) -> Result<Timer> {
        Ok(Timer { start: self.record()?, stream: self.clone() })
    }
}

impl Event {
    /// The device of the stream.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether everything before the point has ended, even if by a failure. Does not wait.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.end.is_over()
    }

    /// Blocks until everything before the point has ended.
    ///
    /// # Errors
    /// If the device was lost. Failures of launches are reported as always: by calls that read their results, or by [`Stream::sync`].
    pub fn wait(&self) -> Result<()> {
        self.end.wait();
        self.end.report().or_else(|| self.end.error()).map_or(Ok(()), Err)
    }

    /// The time from an earlier point to this one, as the device measured it. Waits for both. They may be points of different streams of a
    /// device.
    ///
    /// # Errors
    /// If the other point is of another device, or was reached after this one, or if the driver could not store one of the times (T1113); if
    /// the device was lost.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration> {
        if self.device != earlier.device {
            let problem = format!("one event is on {}, the other on {}", earlier.device, self.device);
            return Err(Error::Timing { problem, help: "record both events on streams of one device" });
        }
        earlier.wait()?;
        self.wait()?;
        let found = match (earlier.point.at.get(), self.point.at.get()) {
            (Some(from), Some(to)) => to.checked_duration_since(*from),
            (None, _) | (_, None) => self.device_time(earlier)?,
        };
        found.ok_or_else(|| Error::Timing {
            problem: "the event was reached before the one that is given as the earlier one".to_owned(),
            help: "call `later.elapsed_since(&earlier)`; events of different streams are in no order by themselves",
        })
    }

    /// The time between two points that the device has reached; `None` if this one is the earlier one.
    #[cfg(feature = "_remote")]
    fn device_time(&self, earlier: &Event) -> Result<Option<Duration>> {
        let (from, to) = (earlier.point.mark.get(), self.point.mark.get());
        let milliseconds = match from.zip(to) {
            Some((from, to)) => to.milliseconds_since(from)?,
            None => None,
        };
        let milliseconds = milliseconds.ok_or_else(no_time)?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).ok())
    }

    #[cfg(not(feature = "_remote"))]
    fn device_time(&self, _earlier: &Event) -> Result<Option<Duration>> {
        Err(no_time())
    }
}

fn no_time() -> Error {
    let problem = "the driver had no event to store a time in".to_owned();
    Error::Timing { problem, help: "record the events again; drop events and streams that are no longer needed" }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_over() { "over" } else { "pending" };
        write!(f, "Event({state}) on {}", self.device)
    }
}

/// Measures the time of launches on a stream: see [`Stream::timer`].
#[derive(Clone, Debug)]
#[must_use = "`stop` returns the time"]
pub struct Timer {
    stream: Stream,
    start: Event,
}

impl Timer {
    /// The time from the start of the timer until everything has ended that was launched on its stream since. Waits for that.
    ///
    /// # Errors
    /// The same as of [`Event::elapsed_since`].
    pub fn stop(self) -> Result<Duration> {
        self.stream.record()?.elapsed_since(&self.start)
    }
}

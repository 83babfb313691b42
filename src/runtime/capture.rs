//! What a thread captures: its launches on one stream are recorded instead of being enqueued, and what a graph could not repeat is an error
//! where it is done.
//!
//! A driver's own capture begins after this, with launches that have been checked. So nothing that the program does can break it.

use super::launch::Prepared;
use super::stream::Stream;
use crate::error::{Error, Result};
use std::cell::RefCell;

/// The launches that a thread has recorded.
struct Recording {
    stream: Stream,
    launches: Vec<Prepared>,
}

thread_local! {
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// Ends the recording of this thread, also in a panic.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        drop(take());
    }
}

fn take() -> Option<Recording> {
    // While a thread ends, its recording may be gone before the values whose destructors come here.
    RECORDING.try_with(|recording| recording.borrow_mut().take()).ok().flatten()
}

/// Whether this thread is capturing.
fn is_capturing() -> bool {
    RECORDING.try_with(|recording| recording.borrow().is_some()).unwrap_or(false)
}

/// The launches on a stream that `f` makes on this thread.
pub(crate) fn record(stream: &Stream, f: impl FnOnce() -> Result<()>) -> Result<Vec<Prepared>> {
    refuse("a capture", "this thread is capturing already", "end the outer capture first")?;
    let begun = RECORDING
        .try_with(|recording| recording.replace(Some(Recording { stream: stream.clone(), launches: Vec::new() })));
    if begun.is_err() {
        return Err(refused("a capture", "this thread is ending", "capture before the thread ends"));
    }
    let end = End;
    f()?;
    let launches = take().map_or_else(Vec::new, |recording| recording.launches);
    drop(end);
    if launches.is_empty() {
        let help =
            "launch kernels by `.launch(&stream)`, on the stream that is captured and on the thread that captures";
        return Err(refused("an empty list of launches", "no launch was made", help));
    }
    Ok(launches)
}

/// Records a launch on a stream if this thread is capturing; otherwise gives it back. `None` is a launch of a grid without programs.
pub(crate) fn recorded(stream: &Stream, launch: Option<Prepared>) -> Result<Option<Prepared>> {
    if !is_capturing() {
        return Ok(launch);
    }
    let Some(launch) = launch else {
        let problem = "its grid has no programs";
        return Err(refused("a launch", problem, "leave the launch out, or capture with other extents"));
    };
    let what = launch.title().to_owned();
    RECORDING.with_borrow_mut(|recording| {
        let Some(recording) = recording else { return Ok(Some(launch)) };
        if recording.stream != *stream {
            let problem = "it is on another stream than the one that is captured";
            return Err(refused(&what, problem, "launch it on that stream, or before the capture"));
        }
        if let Some(lent) = launch.accesses().iter().find(|access| !access.buffer.is_own()) {
            let device = lent.buffer.device();
            let problem =
                format!("it uses memory on {device} that TITAN does not own, and that may end before the graph");
            let help = "copy the data to a tensor of the device (`copy`, `copy_from`) before the capture";
            return Err(refused(&what, &problem, help));
        }
        recording.launches.push(launch);
        Ok(None)
    })
}

/// Refuses what a graph cannot repeat, if this thread is capturing.
pub(crate) fn refuse(what: &str, problem: &str, help: &'static str) -> Result<()> {
    if is_capturing() { Err(refused(what, problem, help)) } else { Ok(()) }
}

#[cold]
fn refused(what: &str, problem: &str, help: &'static str) -> Error {
    Error::Capture { what: what.to_owned(), problem: problem.to_owned(), help }
}

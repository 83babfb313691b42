//! Awaited launches: enqueued at the first poll, on an internal stream of the device; they work with any executor.

use super::event::Event;
use super::launch::Launch;
use crate::error::Result;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A launch that is being awaited.
///
/// If it is dropped before the first poll, the kernel does not run. If it is dropped later, the kernel runs to its end, with memory
/// that it owns; its failure is then reported by the next call that needs the results.
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct LaunchFuture<'a>(State<'a>);

#[derive(Debug)]
enum State<'a> {
    Waiting(Launch<'a>),
    Running(Event),
    Ended,
}

impl<'a> LaunchFuture<'a> {
    pub(super) fn new(launch: Launch<'a>) -> Self {
        LaunchFuture(State::Waiting(launch))
    }
}

impl Future for LaunchFuture<'_> {
    type Output = Result<()>;

    /// Polled again after its end, it is ready at once.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let event = match std::mem::replace(&mut self.0, State::Ended) {
            State::Ended => return Poll::Ready(Ok(())),
            State::Running(event) => event,
            State::Waiting(launch) => {
                let _range = launch.range();
                match launch.prepare(None)? {
                    None => return Poll::Ready(Ok(())),
                    Some(prepared) => {
                        let stream = prepared.device.awaited_stream();
                        prepared.enqueue(&stream, true)?
                    }
                }
            }
        };
        // A waker is user code: if it panics, the launch still runs, and may be polled again.
        self.0 = State::Running(event.clone());
        if !event.poll(context.waker()) {
            return Poll::Pending;
        }
        self.0 = State::Ended;
        Poll::Ready(event.report().or_else(|| event.error()).map_or(Ok(()), Err))
    }
}

//! Streams, and functions of the host in them. CUDA Driver API, sections "Stream Management" and "Execution Control".

use super::abi::within;
use super::host::{HostCall, Out, Pointer};
use crate::code::Code;
use crate::driver::{self, LEGACY, PER_THREAD, enqueue_call};
use std::ffi::c_void;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

within! {
    fn cuStreamCreate(stream: Out<u64>, flags: u32) = |s, c| {
        if flags & !NON_BLOCKING != 0 || stream.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        stream.set(s.new_stream(c, flags & NON_BLOCKING == 0))
    }

    fn cuStreamCreateWithPriority(stream: Out<u64>, flags: u32, priority: i32) = |s, c| {
        if flags & !NON_BLOCKING != 0 || stream.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let made = s.new_stream(c, flags & NON_BLOCKING == 0);
        s.prefer(made, priority);
        stream.set(made)
    }

    fn cuStreamDestroy_v2(stream: u64) = |s, _c| {
        if [0, LEGACY, PER_THREAD].contains(&stream) {
            return Err(Code::INVALID_HANDLE);
        }
        s.end_stream(stream)
    }

    fn cuStreamSynchronize(stream: u64) = |s, c| {
        let stream = s.resolve(c, stream)?;
        s.not_captured(stream, "cuStreamSynchronize")?;
        let last = s.stream(stream)?.last();
        driver::force(s, c, last.into_iter().collect())?;
        s.host_knows_stream(stream);
        Ok(())
    }

    fn cuStreamQuery(stream: u64) = |s, c| {
        let stream = s.resolve(c, stream)?;
        s.not_captured(stream, "cuStreamQuery")?;
        let last = s.stream(stream)?.last();
        driver::query(s, c, last)?;
        s.host_knows_stream(stream);
        Ok(())
    }

    fn cuStreamWaitEvent(stream: u64, event: u64, _flags: u32) = |s, c| {
        let stream = s.resolve(c, stream)?;
        driver::wait_event(s, stream, event)
    }

    fn cuStreamGetCtx(stream: u64, context: Out<u64>) = |s, c| {
        let stream = s.resolve(c, stream)?;
        context.set(s.stream(stream)?.context())
    }

    fn cuStreamGetFlags(stream: u64, flags: Out<u32>) = |s, c| {
        let stream = s.resolve(c, stream)?;
        flags.set(s.stream(stream)?.flags())
    }

    fn cuStreamGetPriority(stream: u64, priority: Out<i32>) = |s, c| {
        let stream = s.resolve(c, stream)?;
        priority.set(s.stream(stream)?.priority())
    }

    fn cuLaunchHostFunc(stream: u64, function: Option<extern "C" fn(*mut c_void)>, argument: Pointer) = |s, c| {
        let call = HostCall::new(function, argument)?;
        let stream = s.resolve(c, stream)?;
        enqueue_call(s, stream, call)
    }
}

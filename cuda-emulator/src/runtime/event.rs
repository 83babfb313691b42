//! Events. CUDA Driver API, section "Event Management".

use super::abi::within;
use super::host::Out;
use crate::code::Code;
use crate::driver;

within! {
    fn cuEventCreate(event: Out<u64>, flags: u32) = |s, c| {
        if event.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        event.set(s.new_event(c, flags)?)
    }

    fn cuEventDestroy_v2(event: u64) = |s, _c| {
        s.end_event(event)
    }

    fn cuEventRecord(event: u64, stream: u64) = |s, c| {
        let stream = s.resolve(c, stream)?;
        driver::record_event(s, event, stream)
    }

    fn cuEventRecordWithFlags(event: u64, stream: u64, _flags: u32) = |s, c| {
        let stream = s.resolve(c, stream)?;
        driver::record_event(s, event, stream)
    }

    fn cuEventSynchronize(event: u64) = |s, c| {
        let recorded = s.recorded(event)?;
        driver::force(s, c, recorded.into_iter().collect())?;
        s.host_knows_event(event);
        Ok(())
    }

    fn cuEventQuery(event: u64) = |s, c| {
        let recorded = s.recorded(event)?;
        driver::query(s, c, recorded)?;
        s.host_knows_event(event);
        Ok(())
    }

    fn cuEventElapsedTime(milliseconds: Out<f32>, from: u64, to: u64) = |s, _c| {
        milliseconds.set(s.elapsed(from, to)?)
    }

    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, from: u64, to: u64) = |s, _c| {
        milliseconds.set(s.elapsed(from, to)?)
    }
}

//! Contexts. CUDA Driver API, sections "Primary Context Management" and "Context Management".

use super::abi::{started, within};
use super::host::Out;
use crate::code::{Code, Done};
use crate::driver::{self, Session};

fn create(session: &mut Session, context: &Out<u64>, device: i32) -> Done {
    let made = session.create(device)?;
    driver::push(made);
    context.set(made)
}

started! {
    fn cuDevicePrimaryCtxRetain(context: Out<u64>, device: i32) = |s| {
        if context.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        context.set(s.retain(device)?)
    }

    fn cuDevicePrimaryCtxRelease_v2(device: i32) = |s| {
        driver::release_primary(s, device)
    }

    fn cuDevicePrimaryCtxReset_v2(device: i32) = |s| {
        driver::reset_primary(s, device)
    }

    fn cuDevicePrimaryCtxSetFlags_v2(device: i32, _flags: u32) = |s| {
        s.device(device).map(drop)
    }

    fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) = |s| {
        flags.set(0)?;
        active.set(i32::from(s.is_active(device)?))
    }

    fn cuCtxCreate_v2(context: Out<u64>, _flags: u32, device: i32) = |s| {
        create(s, &context, device)
    }

    fn cuCtxCreate_v3(context: Out<u64>, _affinity: Out<u64>, _count: i32, _flags: u32, device: i32) = |s| {
        create(s, &context, device)
    }

    fn cuCtxCreate_v4(context: Out<u64>, _parameters: Out<u64>, _flags: u32, device: i32) = |s| {
        create(s, &context, device)
    }

    fn cuCtxDestroy_v2(context: u64) = |s| {
        driver::destroy_context(s, context)
    }

    fn cuCtxSetCurrent(context: u64) = |s| {
        if context != 0 {
            s.context(context)?;
        }
        driver::set_current(context);
        Ok(())
    }

    fn cuCtxGetCurrent(context: Out<u64>) = |_s| {
        context.set(driver::current().unwrap_or(0))
    }

    fn cuCtxPushCurrent_v2(context: u64) = |s| {
        s.context(context)?;
        driver::push(context);
        Ok(())
    }

    fn cuCtxPopCurrent_v2(context: Out<u64>) = |_s| {
        let popped = driver::pop().ok_or(Code::INVALID_CONTEXT)?;
        context.offer(popped);
        Ok(())
    }

    fn cuCtxGetApiVersion(_context: u64, version: Out<u32>) = |_s| {
        version.set(3020)
    }
}

within! {
    fn cuCtxGetDevice(device: Out<i32>) = |s, c| {
        device.set(i32::try_from(s.device_of(c)?).unwrap_or(0))
    }

    fn cuCtxSynchronize() = |s, c| {
        s.unsafe_call("cuCtxSynchronize")?;
        let pending = s.pending_in(c);
        driver::force(s, c, pending)?;
        s.host_knows_context(c);
        Ok(())
    }

    fn cuCtxSetFlags(_flags: u32) = |_s, _c| {
        Ok(())
    }

    fn cuCtxGetFlags(flags: Out<u32>) = |_s, _c| {
        flags.set(0)
    }

    fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) = |_s, _c| {
        least.offer(0);
        greatest.offer(-5);
        Ok(())
    }

    fn cuCtxSetCacheConfig(_config: u32) = |_s, _c| {
        Ok(())
    }

    fn cuCtxGetCacheConfig(config: Out<u32>) = |_s, _c| {
        config.set(0)
    }

    fn cuCtxGetLimit(_value: Out<usize>, _limit: u32) = |_s, _c| {
        Err(Code::UNSUPPORTED_LIMIT)
    }

    fn cuCtxSetLimit(_limit: u32, _value: usize) = |_s, _c| {
        Err(Code::UNSUPPORTED_LIMIT)
    }

    fn cuCtxEnablePeerAccess(_peer: u64, _flags: u32) = |_s, _c| {
        Err(Code::PEER_ACCESS_UNSUPPORTED)
    }
}

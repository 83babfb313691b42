//! Memory: of devices, pinned, pools, copies, fills, pointers. CUDA Driver API, sections "Memory Management", "Stream
//! Ordered Memory Allocator" and "Unified Addressing".

use super::abi::{started, within};
use super::host::{List, Out, Pointer};
use crate::code::{Code, Done};
use crate::driver::{self, Asked, Fact, LEGACY, Place, Session};
use std::ffi::c_void;

/// A pointer to device memory or to host memory.
fn place(s: &Session, address: u64) -> Done<Place> {
    if s.fact(address, Asked::MemoryType) == Ok(Fact::Int(2)) {
        Ok(Place::Device(address))
    } else {
        Ok(Place::Host(Pointer::of(address).bytes()?))
    }
}

fn copy(s: &mut Session, c: u64, stream: u64, (from, to): (Place, Place), bytes: usize) -> Done {
    let stream = s.resolve(c, stream)?;
    driver::copy(s, stream, (from, to), bytes, false)
}

/// Enqueues a copy, and waits for it.
fn copy_now(s: &mut Session, c: u64, places: (Place, Place), bytes: usize) -> Done {
    let stream = s.resolve(c, LEGACY)?;
    driver::copy(s, stream, places, bytes, true)
}

fn fill(s: &mut Session, c: u64, stream: u64, at: u64, pattern: &[u8], count: usize) -> Done {
    let stream = s.resolve(c, stream)?;
    driver::fill(s, stream, at, (pattern.to_vec(), count), false)
}

fn fill_now(s: &mut Session, c: u64, at: u64, pattern: &[u8], count: usize) -> Done {
    let stream = s.resolve(c, LEGACY)?;
    driver::fill(s, stream, at, (pattern.to_vec(), count), true)
}

fn allocate(s: &mut Session, c: u64, at: &Out<u64>, bytes: usize, stream: Option<u64>) -> Done {
    if at.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    at.set(driver::allocate(s, c, bytes, stream)?)
}

within! {
    fn cuMemAlloc_v2(at: Out<u64>, bytes: usize) = |s, c| {
        s.unsafe_call("cuMemAlloc")?;
        allocate(s, c, &at, bytes, None)
    }

    fn cuMemFree_v2(at: u64) = |s, c| {
        s.unsafe_call("cuMemFree")?;
        driver::free(s, c, at)
    }

    fn cuMemAllocAsync(at: Out<u64>, bytes: usize, stream: u64) = |s, c| {
        let stream = s.resolve(c, stream)?;
        allocate(s, c, &at, bytes, Some(stream))
    }

    fn cuMemAllocFromPoolAsync(at: Out<u64>, bytes: usize, pool: u64, stream: u64) = |s, c| {
        pool_device(s, pool)?;
        let stream = s.resolve(c, stream)?;
        allocate(s, c, &at, bytes, Some(stream))
    }

    fn cuMemFreeAsync(at: u64, stream: u64) = |s, c| {
        let stream = s.resolve(c, stream)?;
        driver::free_async(s, at, stream)
    }

    fn cuMemAllocManaged(_at: Out<u64>, _bytes: usize, _flags: u32) = |_s, _c| {
        Err(Code::NOT_SUPPORTED)
    }

    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) = |s, c| {
        let device = i32::try_from(s.device_of(c)?).unwrap_or(0);
        let (room, all) = s.device(device)?.room();
        free.set(usize::try_from(room).unwrap_or(usize::MAX))?;
        total.set(usize::try_from(all).unwrap_or(usize::MAX))
    }

    fn cuMemHostAlloc(at: Out<*mut c_void>, bytes: usize, flags: u32) = |s, c| {
        // CU_MEMHOSTALLOC_PORTABLE, _DEVICEMAP, _WRITECOMBINED
        if flags & !7 != 0 || at.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        s.unsafe_call("cuMemHostAlloc")?;
        at.set(Pointer::of(s.pin(c, bytes)?).raw())
    }

    fn cuMemAllocHost_v2(at: Out<*mut c_void>, bytes: usize) = |s, c| {
        if at.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        s.unsafe_call("cuMemAllocHost")?;
        at.set(Pointer::of(s.pin(c, bytes)?).raw())
    }

    fn cuMemFreeHost(at: Pointer) = |s, c| {
        s.unsafe_call("cuMemFreeHost")?;
        driver::unpin(s, c, at.address())
    }

    fn cuMemHostGetDevicePointer_v2(at: Out<u64>, host: Pointer, flags: u32) = |s, _c| {
        if flags != 0 || !s.is_pinned(host.address(), 1) {
            return Err(Code::INVALID_VALUE);
        }
        at.set(host.address())
    }

    fn cuMemcpyHtoD_v2(to: u64, from: Pointer, bytes: usize) = |s, c| {
        copy_now(s, c, (Place::Host(from.bytes()?), Place::Device(to)), bytes)
    }

    fn cuMemcpyDtoH_v2(to: Pointer, from: u64, bytes: usize) = |s, c| {
        copy_now(s, c, (Place::Device(from), Place::Host(to.bytes()?)), bytes)
    }

    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) = |s, c| {
        // Copies within a device do not block the host: CUDA Driver API, "API synchronization behavior".
        copy(s, c, LEGACY, (Place::Device(from), Place::Device(to)), bytes)
    }

    fn cuMemcpy(to: u64, from: u64, bytes: usize) = |s, c| {
        let places = (place(s, from)?, place(s, to)?);
        copy_now(s, c, places, bytes)
    }

    fn cuMemcpyHtoDAsync_v2(to: u64, from: Pointer, bytes: usize, stream: u64) = |s, c| {
        copy(s, c, stream, (Place::Host(from.bytes()?), Place::Device(to)), bytes)
    }

    fn cuMemcpyDtoHAsync_v2(to: Pointer, from: u64, bytes: usize, stream: u64) = |s, c| {
        copy(s, c, stream, (Place::Device(from), Place::Host(to.bytes()?)), bytes)
    }

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) = |s, c| {
        copy(s, c, stream, (Place::Device(from), Place::Device(to)), bytes)
    }

    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: u64) = |s, c| {
        let places = (place(s, from)?, place(s, to)?);
        copy(s, c, stream, places, bytes)
    }

    fn cuMemcpyPeerAsync(to: u64, _to_context: u64, from: u64, _from_context: u64, bytes: usize, stream: u64) = |s, c| {
        copy(s, c, stream, (Place::Device(from), Place::Device(to)), bytes)
    }

    fn cuMemsetD8Async(at: u64, value: u8, count: usize, stream: u64) = |s, c| {
        fill(s, c, stream, at, &[value], count)
    }

    fn cuMemsetD16Async(at: u64, value: u16, count: usize, stream: u64) = |s, c| {
        fill(s, c, stream, at, &value.to_le_bytes(), count)
    }

    fn cuMemsetD32Async(at: u64, value: u32, count: usize, stream: u64) = |s, c| {
        fill(s, c, stream, at, &value.to_le_bytes(), count)
    }

    fn cuMemsetD8_v2(at: u64, value: u8, count: usize) = |s, c| {
        fill_now(s, c, at, &[value], count)
    }

    fn cuMemsetD16_v2(at: u64, value: u16, count: usize) = |s, c| {
        fill_now(s, c, at, &value.to_le_bytes(), count)
    }

    fn cuMemsetD32_v2(at: u64, value: u32, count: usize) = |s, c| {
        fill_now(s, c, at, &value.to_le_bytes(), count)
    }
}

/// The supported attributes of pointers, by the numbers of `CUpointer_attribute`.
const ASKED: [(u32, Asked); 9] = [
    (1, Asked::Context),
    (2, Asked::MemoryType),
    (3, Asked::DevicePointer),
    (4, Asked::HostPointer),
    (8, Asked::IsManaged),
    (9, Asked::Ordinal),
    (11, Asked::Start),
    (12, Asked::Size),
    (13, Asked::Mapped),
];

fn answer(out: &Out<c_void>, fact: Fact) -> Done {
    match fact {
        Fact::Word(word) => out.bytes(&word.to_le_bytes()),
        Fact::Int(int) => out.bytes(&int.to_le_bytes()),
        Fact::Flag(flag) => out.bytes(&[u8::from(flag)]),
    }
}

fn asked(attribute: u32) -> Done<Asked> {
    ASKED.iter().find(|(n, _)| *n == attribute).map(|(_, a)| *a).ok_or(Code::INVALID_VALUE)
}

/// The handle of a device's pool, which no other object has.
fn pool_of(device: i32) -> u64 {
    0x5E00_0000_0000 + 64 * u64::from(device.unsigned_abs())
}

fn pool_device(s: &Session, pool: u64) -> Done<i32> {
    let all = 0..i32::try_from(s.devices()).unwrap_or(0);
    all.into_iter().find(|d| pool_of(*d) == pool).ok_or(Code::INVALID_VALUE)
}

/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
const THRESHOLD: u32 = 4;

started! {
    fn cuPointerGetAttribute(out: Out<c_void>, attribute: u32, at: u64) = |s| {
        let fact = s.fact(at, asked(attribute)?)?;
        answer(&out, fact)
    }

    fn cuPointerGetAttributes(count: u32, attributes: List<u32>, out: List<Pointer>, at: u64) = |s| {
        for i in 0..count as usize {
            let (asked, to) = (asked(attributes.get(i)?)?, out.get(i)?.bytes()?);
            // All attributes of unknown pointers are zero.
            let none = if asked == Asked::MemoryType || asked == Asked::Ordinal { Fact::Int(0) } else { Fact::Word(0) };
            let none = if asked == Asked::Mapped || asked == Asked::IsManaged { Fact::Flag(false) } else { none };
            match s.fact(at, asked).unwrap_or(none) {
                Fact::Word(word) => to.write(0, &word.to_le_bytes()),
                Fact::Int(int) => to.write(0, &int.to_le_bytes()),
                Fact::Flag(flag) => to.write(0, &[u8::from(flag)]),
            }
        }
        Ok(())
    }

    fn cuDeviceGetDefaultMemPool(pool: Out<u64>, device: i32) = |s| {
        if !s.device(device)?.fitted.pools {
            return Err(Code::NOT_SUPPORTED);
        }
        pool.set(pool_of(device))
    }

    fn cuDeviceGetMemPool(pool: Out<u64>, device: i32) = |s| {
        if !s.device(device)?.fitted.pools {
            return Err(Code::NOT_SUPPORTED);
        }
        pool.set(pool_of(device))
    }

    fn cuMemPoolSetAttribute(pool: u64, attribute: u32, value: Out<c_void>) = |s| {
        let device = pool_device(s, pool)?;
        match attribute {
            // Policies for the reuse of freed memory have no effect: memory is reused late.
            1..=3 => Ok(()),
            THRESHOLD => s.set_threshold(device, value.number()?),
            // The highest usage may be reset.
            6 | 8 if value.number()? == 0 => s.reset_high(device),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuMemPoolGetAttribute(pool: u64, attribute: u32, value: Out<c_void>) = |s| {
        let device = s.device(pool_device(s, pool)?)?;
        let (used, high) = device.usage();
        match attribute {
            1..=3 => value.bytes(&1_u32.to_le_bytes()),
            THRESHOLD => value.bytes(&device.threshold.to_le_bytes()),
            5 | 7 => value.bytes(&used.to_le_bytes()),
            6 | 8 => value.bytes(&high.to_le_bytes()),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuMemPoolTrimTo(pool: u64, _keep: usize) = |s| {
        pool_device(s, pool).map(drop)
    }
}

//! Initialization, versions, errors, devices. CUDA Driver API, sections "Initialization" to "Device Management".

use super::abi::{plain, started};
use super::host::Out;
use crate::board;
use crate::code::{Code, Done};
use crate::driver;
use std::ffi::{c_char, c_void};

plain! {
    fn cuInit(flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        driver::session().start()
    }

    fn cuDriverGetVersion(version: Out<i32>) {
        version.set(i32::try_from(driver::session().setting().version).unwrap_or(0))
    }

    fn cuGetErrorName(error: u32, name: Out<*const c_char>) {
        let found = Code::name_of(error);
        name.set(found.map_or(std::ptr::null(), std::ffi::CStr::as_ptr))?;
        found.map(drop).ok_or(Code::INVALID_VALUE)
    }

    fn cuGetErrorString(error: u32, text: Out<*const c_char>) {
        let found = Code::text_of(error);
        text.set(found.map_or(std::ptr::null(), std::ffi::CStr::as_ptr))?;
        found.map(drop).ok_or(Code::INVALID_VALUE)
    }
}

/// The identifier of a device: 16 bytes that differ from device to device.
fn uuid(device: i32) -> [u8; 16] {
    let mut bytes = *b"cuda-emulator   ";
    bytes[15] = device.to_le_bytes()[0];
    bytes
}

fn uuid_of(out: &Out<c_void>, device: i32) -> Done {
    out.bytes(&uuid(device))
}

started! {
    fn cuDeviceGetCount(count: Out<i32>) = |s| {
        count.set(i32::try_from(s.devices()).unwrap_or(0))
    }

    fn cuDeviceGet(device: Out<i32>, ordinal: i32) = |s| {
        s.device(ordinal)?;
        device.set(ordinal)
    }

    fn cuDeviceGetName(name: Out<c_char>, room: i32, device: i32) = |s| {
        let board = s.device(device)?.fitted.board;
        name.text(&format!("emulated {}", board.names[0]), usize::try_from(room).unwrap_or(0))
    }

    fn cuDeviceGetUuid(out: Out<c_void>, device: i32) = |s| {
        s.device(device)?;
        uuid_of(&out, device)
    }

    fn cuDeviceGetUuid_v2(out: Out<c_void>, device: i32) = |s| {
        s.device(device)?;
        uuid_of(&out, device)
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) = |s| {
        bytes.set(usize::try_from(s.device(device)?.room().1).unwrap_or(usize::MAX))
    }

    fn cuDeviceGetAttribute(value: Out<i32>, attribute: u32, device: i32) = |s| {
        let fitted = s.device(device)?.fitted;
        let found = board::attribute(&fitted, device.unsigned_abs(), attribute).ok_or(Code::INVALID_VALUE)?;
        value.set(i32::try_from(found).unwrap_or(i32::MAX))
    }

    fn cuDeviceGetPCIBusId(text: Out<c_char>, room: i32, device: i32) = |s| {
        s.device(device)?;
        text.text(&format!("0000:{:02X}:00.0", device + 1), usize::try_from(room).unwrap_or(0))
    }

    fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) = |s| {
        s.device(device)?;
        s.device(peer)?;
        can.set(0)
    }
}

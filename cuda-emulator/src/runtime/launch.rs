//! Launches. CUDA Driver API, section "Execution Control".

use super::abi::within;
use super::host::{List, Pointer};
use crate::code::{Code, Done};
use crate::driver::{self, Call, Grid, Session};

/// `CU_LAUNCH_PARAM_BUFFER_POINTER`, `CU_LAUNCH_PARAM_BUFFER_SIZE`.
const BUFFER: u64 = 1;
const SIZE: u64 = 2;

/// The bytes of each parameter: from an array of pointers, or from one buffer.
pub(super) fn parameters(
    s: &Session,
    function: u64,
    each: &List<Pointer>,
    extra: &List<Pointer>,
) -> Done<Vec<Vec<u8>>> {
    let places: Vec<(usize, usize)> =
        s.function(function)?.kernel()?.param_places().map(|(at, n)| (at as usize, n as usize)).collect();
    if places.is_empty() {
        return Ok(Vec::new());
    }
    if !each.is_null() {
        return places.iter().enumerate().map(|(i, (_, n))| each.get(i)?.take(*n)).collect();
    }
    let (mut buffer, mut size, mut i) = (None, 0, 0);
    loop {
        match extra.get(i)?.address() {
            0 => break,
            BUFFER => buffer = Some(extra.get(i + 1)?),
            SIZE => size = u64::from_le_bytes(extra.get(i + 1)?.take(8)?.try_into().map_err(|_| Code::UNKNOWN)?),
            _ => return Err(Code::INVALID_VALUE),
        }
        i += 2;
    }
    let all = buffer.ok_or(Code::INVALID_VALUE)?.take(usize::try_from(size).map_err(|_| Code::INVALID_VALUE)?)?;
    let part = |(at, n): &(usize, usize)| all.get(*at..at + n).map(<[u8]>::to_vec).ok_or(Code::INVALID_VALUE);
    places.iter().map(part).collect()
}

within! {
    fn cuLaunchKernel(
        function: u64,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: u64, each: List<Pointer>, extra: List<Pointer>,
    ) = |s, c| {
        let stream = s.resolve(c, stream)?;
        let params = parameters(s, function, &each, &extra)?;
        let extents = Grid { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared };
        driver::launch(s, c, &Call { function, stream, extents, params })
    }
}

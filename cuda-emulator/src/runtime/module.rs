//! Modules and functions. CUDA Driver API, sections "Module Management", "Execution Control" and "Occupancy".

use super::abi::within;
use super::host::{Image, List, Out, Pointer, Text};
use crate::code::{Code, Done};
use crate::driver::{self, Log, Session};

/// `CU_JIT_INFO_LOG_BUFFER`, `CU_JIT_ERROR_LOG_BUFFER`; the option after each is its size, which is passed by value and
/// replaced by the number of bytes written.
const INFO: u32 = 3;
const ERROR: u32 = 5;
/// The last known option; the others have no effect here.
const LAST_OPTION: u32 = 32;

struct Options {
    count: u32,
    names: List<u32>,
    values: List<Pointer>,
}

impl Options {
    /// The index and the value of an option.
    fn find(&self, name: u32) -> Done<Option<(usize, Pointer)>> {
        for i in 0..self.count as usize {
            let found = self.names.get(i)?;
            if found > LAST_OPTION {
                return Err(Code::INVALID_VALUE);
            }
            if found == name {
                return Ok(Some((i, self.values.get(i)?)));
            }
        }
        Ok(None)
    }

    /// Writes a log to the caller's buffer.
    fn tell(&self, buffer: u32, text: &str) -> Done {
        let (Some((_, to)), Some((at, room))) = (self.find(buffer)?, self.find(buffer + 1)?) else { return Ok(()) };
        let room = usize::try_from(room.address() & 0xFFFF_FFFF).unwrap_or(0);
        if room == 0 || to.address() == 0 {
            return Ok(());
        }
        let bytes = text.as_bytes().get(..text.len().min(room - 1)).unwrap_or_default();
        let host = to.bytes()?;
        host.write(0, bytes);
        host.write(bytes.len(), &[0]);
        self.values.replace(at, bytes.len())
    }
}

fn load(s: &mut Session, c: u64, module: &Out<u64>, image: &Image, options: &Options) -> Done {
    if module.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let image = image.get()?;
    let mut log = Log::default();
    let done = s.load(c, &image, &mut log);
    options.tell(INFO, &log.info)?;
    options.tell(ERROR, &log.error)?;
    module.set(done?)
}

within! {
    fn cuModuleLoadData(module: Out<u64>, image: Image) = |s, c| {
        let options = Options { count: 0, names: List::NONE, values: List::NONE };
        load(s, c, &module, &image, &options)
    }

    fn cuModuleLoadDataEx(module: Out<u64>, image: Image, count: u32, names: List<u32>, values: List<Pointer>) = |s, c| {
        load(s, c, &module, &image, &Options { count, names, values })
    }

    fn cuModuleLoad(module: Out<u64>, path: Text) = |s, c| {
        let image = std::fs::read(path.get()?).map_err(|_| Code::FILE_NOT_FOUND)?;
        module.set(s.load(c, &image, &mut Log::default())?)
    }

    fn cuModuleUnload(module: u64) = |s, c| {
        driver::unload_module(s, c, module)
    }

    fn cuModuleGetFunction(function: Out<u64>, module: u64, name: Text) = |s, _c| {
        function.set(s.find_function(module, &name.get()?)?)
    }

    fn cuModuleGetGlobal_v2(at: Out<u64>, bytes: Out<usize>, module: u64, name: Text) = |s, _c| {
        let (address, size) = s.find_variable(module, &name.get()?)?;
        at.offer(address);
        bytes.offer(size);
        Ok(())
    }

    fn cuFuncGetAttribute(value: Out<i32>, attribute: u32, function: u64) = |s, _c| {
        value.set(s.function(function)?.attribute(attribute)?)
    }

    fn cuFuncSetAttribute(function: u64, attribute: u32, value: i32) = |s, _c| {
        s.set_attribute(function, attribute, value)
    }

    fn cuFuncSetCacheConfig(function: u64, _config: u32) = |s, _c| {
        s.function(function).map(drop)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: Out<i32>, function: u64, threads: i32, shared: usize) = |s, _c| {
        let threads = u32::try_from(threads).map_err(|_| Code::INVALID_VALUE)?;
        blocks.set(i32::try_from(s.occupancy(function, threads, shared)?).unwrap_or(0))
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<i32>, function: u64, threads: i32, shared: usize, _flags: u32,
    ) = |s, _c| {
        let threads = u32::try_from(threads).map_err(|_| Code::INVALID_VALUE)?;
        blocks.set(i32::try_from(s.occupancy(function, threads, shared)?).unwrap_or(0))
    }
}

//! The functions of the interface.

use super::host::{Extra, Image, Out, Params, Source, Target, Text};
use crate::setting::Settings;
use crate::world::{Code, Done, Id, Job, World};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

static WORLD: OnceLock<Mutex<World>> = OnceLock::new();

thread_local! {
    /// The thread's device.
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
    /// The thread's own stream of each device that it has used.
    static OWN: RefCell<BTreeMap<usize, Id>> = const { RefCell::new(BTreeMap::new()) };
}

/// Calls a function: its result as a number.
fn call(function: &'static str, body: impl FnOnce(&mut World) -> Done) -> c_uint {
    let world = WORLD.get_or_init(|| Mutex::new(World::new(Settings::read())));
    let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
    let done = world.called(function).and_then(|()| body(&mut world));
    done.map_or_else(|Code(code)| code, |()| 0)
}

fn current(world: &World) -> Done<usize> {
    world.device(DEVICE.get())
}

/// `hipStreamLegacy` and `hipStreamPerThread`, which are no pointers.
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

/// The stream that a handle stands for: null and `hipStreamLegacy` for the default stream of the thread's device.
fn stream_of(world: &mut World, stream: Handle) -> Done<Id> {
    let device = current(world)?;
    match stream.addr() {
        0 | LEGACY => Ok(world.default_stream(device)),
        PER_THREAD => Ok(OWN.with_borrow_mut(|own| *own.entry(device).or_insert_with(|| world.stream(device, true)))),
        id => Ok(id),
    }
}

/// An object's number as a pointer.
type Handle = *mut c_void;

fn handle(id: Id) -> Handle {
    std::ptr::without_provenance_mut(id)
}

macro_rules! functions {
    ($($name:ident($($arg:ident: $ty:ty),*) |$world:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $ty),*) -> c_uint {
            call(stringify!($name), |$world| $body)
        }
    )*};
}

functions! {
    hipInit(_flags: c_uint) |w| if w.settings.devices.is_empty() { Err(Code::NO_DEVICE) } else { Ok(()) };
    hipDriverGetVersion(version: Out<c_int>) |_w| version.set(70_051_831);
    hipGetDeviceCount(count: Out<c_int>) |w| count.set(c_int::try_from(w.settings.devices.len()).unwrap_or(0));
    hipGetDevice(device: Out<c_int>) |_w| device.set(DEVICE.get());
    hipSetDevice(device: c_int) |w| w.device(device).map(|_| DEVICE.set(device));
    hipGetDevicePropertiesR0600(all: Out<u8>, device: c_int) |w| {
        // The structure's size, and where the architecture's name is in it.
        const SIZE: usize = 1472;
        const ARCHITECTURE: usize = 1160;
        let name = w.settings.devices[w.device(device)?].clone();
        all.bytes(0, &[0; SIZE])?;
        all.bytes(ARCHITECTURE, name.as_bytes())
    };
    hipDeviceGetName(name: Out<u8>, room: c_int, device: c_int) |w| {
        w.device(device)?;
        let text = b"emulated AMD GPU\0";
        if usize::try_from(room).unwrap_or(0) < text.len() { Err(Code::INVALID_VALUE) } else { name.bytes(0, text) }
    };
    hipDeviceGetAttribute(value: Out<c_int>, attribute: c_uint, device: c_int) |w| {
        w.device(device)?;
        value.set(match attribute {
            29 => c_int::MAX,
            30 | 31 => 65_535,
            63 => 304,
            74 => 65_536,
            _ => return Err(Code::INVALID_VALUE),
        })
    };
    hipDeviceTotalMem(bytes: Out<usize>, device: c_int) |w| {
        w.device(device)?;
        bytes.set(w.settings.memory)
    };
    hipMemGetInfo(free: Out<usize>, total: Out<usize>) |w| {
        let (left, all) = w.memory(current(w)?)?;
        free.set(left)?;
        total.set(all)
    };
    hipMalloc(at: Out<Handle>, bytes: usize) |w| {
        let device = current(w)?;
        let address = w.alloc(device, bytes)?;
        at.set(handle(usize::try_from(address).unwrap_or(0)))
    };
    hipFree(at: Handle) |w| w.free(at.addr() as u64);
    hipMemsetD8Async(at: Handle, value: u8, bytes: usize, stream: Handle) |w| {
        let stream = stream_of(w, stream)?;
        w.is_allocated(at.addr() as u64, bytes)?;
        w.fill(stream, at.addr() as u64, value, bytes)
    };
    hipMemcpyHtoDAsync(at: Handle, from: *const c_void, bytes: usize, stream: Handle) |w| {
        let stream = stream_of(w, stream)?;
        w.is_allocated(at.addr() as u64, bytes)?;
        w.copy_in(stream, at.addr() as u64, Source::new(from, bytes)?)
    };
    hipMemcpyDtoHAsync(to: *mut c_void, at: Handle, bytes: usize, stream: Handle) |w| {
        let stream = stream_of(w, stream)?;
        w.is_allocated(at.addr() as u64, bytes)?;
        w.copy_out(stream, at.addr() as u64, Target::new(to, bytes)?)
    };
    hipModuleLoadData(module: Out<Handle>, image: Image) |w| {
        let device = current(w)?;
        let id = w.load(device, &image.get()?)?;
        module.set(handle(id))
    };
    hipModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) |w| {
        let id = w.function(module.addr(), &name.get()?)?;
        function.set(handle(id))
    };
    hipModuleLaunchKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, lds: c_uint,
        stream: Handle, params: Params, extra: Extra
    ) |w| {
        let (function, grid, block) = (function.addr(), [gx, gy, gz], [bx, by, bz]);
        let parameters = w.parameters(function)?;
        let args = match (params.is_null(), extra.is_null()) {
            // Only one of them can say what the arguments are.
            (false, false) => return Err(Code::INVALID_VALUE),
            (false, true) => params.arguments(&parameters.layout)?,
            (true, false) => extra.arguments(parameters.bytes)?,
            (true, true) if parameters.layout.is_empty() => Vec::new(),
            (true, true) => return Err(Code::INVALID_VALUE),
        };
        let stream = stream_of(w, stream)?;
        w.launch(stream, Job { function, grid, block, dynamic_lds: lds, args })
    };
    hipStreamCreateWithFlags(stream: Out<Handle>, flags: c_uint) |w| {
        // `hipStreamNonBlocking`: the default stream does not wait for it.
        const NON_BLOCKING: c_uint = 1;
        if flags > NON_BLOCKING {
            return Err(Code::INVALID_VALUE);
        }
        let device = current(w)?;
        let id = w.stream(device, flags != NON_BLOCKING);
        stream.set(handle(id))
    };
    hipStreamDestroy(stream: Handle) |w| match stream.addr() {
        0..=PER_THREAD => Err(Code::INVALID_HANDLE),
        id => w.end_stream(id),
    };
    hipStreamSynchronize(stream: Handle) |w| {
        let stream = stream_of(w, stream)?;
        w.synchronize(stream)
    };
    hipStreamQuery(stream: Handle) |w| {
        let stream = stream_of(w, stream)?;
        w.query(stream)
    };
    hipStreamWaitEvent(stream: Handle, event: Handle, _flags: c_uint) |w| {
        let stream = stream_of(w, stream)?;
        w.wait(stream, event.addr())
    };
    hipEventCreateWithFlags(event: Out<Handle>, flags: c_uint) |w| {
        // `hipEventDisableTiming`.
        const UNTIMED: c_uint = 2;
        let id = w.event(flags & UNTIMED == 0);
        event.set(handle(id))
    };
    hipEventRecord(event: Handle, stream: Handle) |w| {
        let stream = stream_of(w, stream)?;
        w.record(event.addr(), stream)
    };
    hipEventQuery(event: Handle) |w| w.query_event(event.addr());
    hipEventSynchronize(event: Handle) |w| w.synchronize_event(event.addr());
    hipEventElapsedTime(milliseconds: Out<f32>, from: Handle, to: Handle) |w| {
        milliseconds.set(w.elapsed(from.addr(), to.addr())?)
    };
}

#[unsafe(no_mangle)]
extern "C" fn hipGetErrorName(code: c_uint) -> *const c_char {
    let name = match code {
        9 => c"hipErrorInvalidConfiguration",
        600 => c"hipErrorNotReady",
        _ => c"hipErrorUnknown",
    };
    name.as_ptr()
}

//! The functions of the interface.

use super::host::{Extra, Image, NodeParams, Out, Params, Source, Target, Text, pointer};
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

/// The arguments of a launch as one block.
fn arguments(w: &World, function: Id, params: &Params, extra: &Extra) -> Done<Vec<u8>> {
    let parameters = w.parameters(function)?;
    match (params.is_null(), extra.is_null()) {
        // Only one of them can say what the arguments are.
        (false, false) => Err(Code::INVALID_VALUE),
        (false, true) => params.arguments(&parameters.layout),
        (true, false) => extra.arguments(parameters.bytes),
        (true, true) if parameters.layout.is_empty() => Ok(Vec::new()),
        (true, true) => Err(Code::INVALID_VALUE),
    }
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
        w.unsafe_call("hipMalloc")?;
        let device = current(w)?;
        let address = w.alloc(device, bytes)?;
        at.set(handle(usize::try_from(address).unwrap_or(0)))
    };
    hipFree(at: Handle) |w| {
        w.unsafe_call("hipFree")?;
        w.free(at.addr() as u64)
    };
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
        let args = arguments(w, function, &params, &extra)?;
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
    hipHostMalloc(at: Out<Handle>, bytes: usize, flags: c_uint) |w| {
        // `hipHostMallocPortable` and `hipHostMallocMapped`.
        const FLAGS: c_uint = 3;
        if flags & !FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        w.unsafe_call("hipHostMalloc")?;
        at.set(pointer(w.pin(bytes)?))
    };
    hipHostFree(at: Handle) |w| {
        w.unsafe_call("hipHostFree")?;
        w.unpin(at.addr())
    };
    hipStreamBeginCapture(stream: Handle, mode: c_uint) |w| {
        let stream = stream_of(w, stream)?;
        w.begin_capture(stream, mode)
    };
    hipStreamEndCapture(stream: Handle, graph: Out<Handle>) |w| {
        let stream = stream_of(w, stream)?;
        graph.set(handle(0))?;
        let made = w.end_capture(stream)?;
        graph.set(handle(made))
    };
    hipStreamGetCaptureInfo_v2(
        stream: Handle, status: Out<c_uint>, id: Out<u64>, graph: Out<Handle>, nodes: Out<*const Id>, count: Out<usize>
    ) |w| {
        let stream = stream_of(w, stream)?;
        let info = w.capture_info(stream)?;
        status.set(info.status)?;
        // What is not asked for is null.
        let _ = id.set(info.id);
        let _ = graph.set(handle(info.graph));
        let _ = nodes.set(info.nodes);
        let _ = count.set(info.count);
        Ok(())
    };
    hipGraphInstantiateWithFlags(exec: Out<Handle>, graph: Handle, flags: u64) |w| {
        let made = w.instantiate(graph.addr(), flags)?;
        exec.set(handle(made))
    };
    hipGraphExecKernelNodeSetParams(exec: Handle, node: Handle, params: NodeParams) |w| {
        let found = params.get()?;
        let function = found.function.addr();
        let args = arguments(w, function, &found.params, &found.extra)?;
        let (grid, block, dynamic_lds) = (found.grid, found.block, found.shared);
        w.set_node(exec.addr(), node.addr(), Job { function, grid, block, dynamic_lds, args })
    };
    hipGraphLaunch(exec: Handle, stream: Handle) |w| {
        let stream = stream_of(w, stream)?;
        w.launch_graph(exec.addr(), stream)
    };
    hipGraphExecDestroy(exec: Handle) |w| w.end_exec(exec.addr());
    hipGraphDestroy(graph: Handle) |w| w.end_graph(graph.addr());
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

//! The library as programs use it: loaded by its path, with a copy for each test, so that each has separate settings.

use libloading::Library;
use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A driver of its own.
pub(crate) struct Cuda {
    library: Library,
    file: PathBuf,
}

/// The library that cargo built for these tests.
pub(crate) fn library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let name = format!("{}cuda_emulator{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path = program.with_file_name(&name);
    assert!(path.exists(), "{} is not built", path.display());
    path
}

/// Calls a function of the driver with its C types.
macro_rules! call {
    ($cuda:expr, $name:ident($($value:expr => $ty:ty),* $(,)?)) => {
        // SAFETY: the types are those of the driver's header, and pointers are to values of the test that live on.
        unsafe { $cuda.get::<unsafe extern "C" fn($($ty),*) -> u32>(stringify!($name))($($value),*) }
    };
}
pub(crate) use call;

pub(crate) const OK: u32 = 0;
pub(crate) const INVALID_VALUE: u32 = 1;
pub(crate) const OUT_OF_MEMORY: u32 = 2;
pub(crate) const NOT_READY: u32 = 600;
pub(crate) const ILLEGAL_ADDRESS: u32 = 700;
pub(crate) const MISALIGNED: u32 = 716;
pub(crate) const LAUNCH_FAILED: u32 = 719;
pub(crate) const NOT_SUPPORTED: u32 = 801;

impl Cuda {
    /// A driver with these settings, initialised, and the primary context of its first device current.
    pub(crate) fn new(settings: &[(&str, &str)]) -> Cuda {
        let cuda = Cuda::loaded(&[]);
        for (key, value) in settings {
            assert_eq!(cuda.set(key, value), OK, "{key}={value}");
        }
        assert_eq!(call!(cuda, cuInit(0 => u32)), OK);
        assert_eq!(cuda.retain(0), OK);
        cuda
    }

    /// A driver without some symbols, not initialised.
    pub(crate) fn loaded(missing: &[&str]) -> Cuda {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("cuda-emulator-{}-{n}.so", std::process::id()));
        let bytes = cuda_emulator::place::without(&std::fs::read(library()).unwrap(), missing).unwrap();
        std::fs::write(&file, bytes).unwrap();
        // SAFETY: the library does nothing when it is loaded, and is not unloaded before the values that need it.
        let library = unsafe { Library::new(&file) }.unwrap();
        Cuda { library, file }
    }

    pub(crate) fn get<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the caller says which type the function has.
        *unsafe { self.library.get::<F>(name.as_bytes()) }.unwrap()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        // SAFETY: only looked up.
        unsafe { self.library.get::<*const c_void>(name.as_bytes()) }.is_ok()
    }

    pub(crate) fn set(&self, key: &str, value: &str) -> u32 {
        let (key, value) = (CString::new(key).unwrap(), CString::new(value).unwrap());
        call!(self, cuEmulatorSet(key.as_ptr() => *const i8, value.as_ptr() => *const i8))
    }

    pub(crate) fn retain(&self, device: i32) -> u32 {
        let mut context = 0_u64;
        let done = call!(self, cuDevicePrimaryCtxRetain(&raw mut context => *mut u64, device => i32));
        if done != OK { done } else { call!(self, cuCtxSetCurrent(context => u64)) }
    }

    pub(crate) fn alloc(&self, bytes: usize) -> u64 {
        let mut at = 0_u64;
        assert_eq!(call!(self, cuMemAlloc_v2(&raw mut at => *mut u64, bytes => usize)), OK);
        at
    }

    pub(crate) fn alloc_async(&self, bytes: usize, stream: u64) -> u64 {
        let mut at = 0_u64;
        assert_eq!(call!(self, cuMemAllocAsync(&raw mut at => *mut u64, bytes => usize, stream => u64)), OK);
        at
    }

    pub(crate) fn pinned(&self, len: usize) -> *mut f32 {
        let mut at = std::ptr::null_mut::<f32>();
        assert_eq!(call!(self, cuMemHostAlloc(&raw mut at => *mut *mut f32, 4 * len => usize, 3 => u32)), OK);
        at
    }

    pub(crate) fn upload(&self, values: &[f32]) -> u64 {
        let at = self.alloc(4 * values.len());
        assert_eq!(
            call!(self, cuMemcpyHtoD_v2(at => u64, values.as_ptr() => *const f32, 4 * values.len() => usize)),
            OK
        );
        at
    }

    pub(crate) fn download(&self, at: u64, len: usize) -> Result<Vec<f32>, u32> {
        let mut out = vec![0_f32; len];
        match call!(self, cuMemcpyDtoH_v2(out.as_mut_ptr() => *mut f32, at => u64, 4 * len => usize)) {
            OK => Ok(out),
            error => Err(error),
        }
    }

    /// A stream that the default stream does not wait for.
    pub(crate) fn stream(&self) -> u64 {
        let mut stream = 0_u64;
        assert_eq!(call!(self, cuStreamCreate(&raw mut stream => *mut u64, 1 => u32)), OK);
        stream
    }

    pub(crate) fn sync(&self, stream: u64) -> u32 {
        call!(self, cuStreamSynchronize(stream => u64))
    }

    pub(crate) fn event(&self) -> u64 {
        let mut event = 0_u64;
        assert_eq!(call!(self, cuEventCreate(&raw mut event => *mut u64, 2 => u32)), OK);
        event
    }

    pub(crate) fn record(&self, event: u64, stream: u64) {
        assert_eq!(call!(self, cuEventRecord(event => u64, stream => u64)), OK);
    }

    pub(crate) fn wait(&self, stream: u64, event: u64) {
        assert_eq!(call!(self, cuStreamWaitEvent(stream => u64, event => u64, 0 => u32)), OK);
    }

    /// A kernel of a module.
    pub(crate) fn kernel(&self, ptx: &str, name: &str) -> u64 {
        let (text, name) = (CString::new(ptx).unwrap(), CString::new(name).unwrap());
        let (mut module, mut function) = (0_u64, 0_u64);
        assert_eq!(call!(self, cuModuleLoadData(&raw mut module => *mut u64, text.as_ptr() => *const i8)), OK);
        let found = call!(self, cuModuleGetFunction(
            &raw mut function => *mut u64, module => u64, name.as_ptr() => *const i8));
        assert_eq!(found, OK);
        function
    }

    /// Launches with 64-bit parameters.
    pub(crate) fn launch(&self, function: u64, (grid, block): (u32, u32), stream: u64, params: &[u64]) -> u32 {
        self.launch_with(function, ([grid, 1, 1], [block, 1, 1], 0), stream, params)
    }

    pub(crate) fn launch_with(
        &self,
        function: u64,
        extents: ([u32; 3], [u32; 3], u32),
        stream: u64,
        params: &[u64],
    ) -> u32 {
        let pointers: Vec<*const u64> = params.iter().map(std::ptr::from_ref).collect();
        let ([gx, gy, gz], [bx, by, bz], shared) = extents;
        call!(self, cuLaunchKernel(
            function => u64, gx => u32, gy => u32, gz => u32, bx => u32, by => u32, bz => u32, shared => u32,
            stream => u64, pointers.as_ptr() => *const *const u64, std::ptr::null() => *const u64))
    }
}

/// Reads pinned memory.
pub(crate) fn peek(host: *const f32, len: usize) -> Vec<f32> {
    // SAFETY: tests read what they allocated, and no other work is in flight then.
    unsafe { std::slice::from_raw_parts(host, len) }.to_vec()
}

/// Writes to pinned memory.
pub(crate) fn poke(host: *mut f32, values: &[f32]) {
    // SAFETY: as for `peek`.
    unsafe { host.copy_from_nonoverlapping(values.as_ptr(), values.len()) }
}

/// A text of the driver's; nothing if it is null.
pub(crate) fn text(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the driver's texts end.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // Best effort: what is left lies in the folder for temporary files.
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Kernels: `add` of three vectors, `scale` by two in place, `shift` reads 4 bytes after its place.
pub(crate) const KERNELS: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c) {
    .reg .b64 %p<4>; .reg .b32 %i<5>; .reg .f32 %v<3>;
    ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u64 %p2, [c];
    mov.u32 %i0, %tid.x; mov.u32 %i1, %ctaid.x; mov.u32 %i2, %ntid.x; mad.lo.s32 %i3, %i1, %i2, %i0;
    mad.wide.u32 %p0, %i3, 4, %p0; mad.wide.u32 %p1, %i3, 4, %p1; mad.wide.u32 %p2, %i3, 4, %p2;
    ld.global.f32 %v0, [%p0]; ld.global.f32 %v1, [%p1]; add.f32 %v2, %v0, %v1; st.global.f32 [%p2], %v2;
    ret;
}
.visible .entry scale(.param .u64 x) {
    .reg .b64 %p<2>; .reg .b32 %i<4>; .reg .f32 %v;
    ld.param.u64 %p0, [x];
    mov.u32 %i0, %tid.x; mov.u32 %i1, %ctaid.x; mov.u32 %i2, %ntid.x; mad.lo.s32 %i3, %i1, %i2, %i0;
    mad.wide.u32 %p1, %i3, 4, %p0;
    ld.global.f32 %v, [%p1]; add.f32 %v, %v, %v; st.global.f32 [%p1], %v;
    ret;
}
.visible .entry count(.param .u64 x) {
    .reg .b64 %p; .reg .b32 %i;
    ld.param.u64 %p, [x]; atom.global.add.u32 %i, [%p], 1;
    ret;
}
.extern .shared .align 16 .b8 room[];
.visible .entry dynamic(.param .u64 x) {
    .reg .b64 %p; .reg .b32 %i; .reg .b32 %s; .reg .f32 %v;
    ld.param.u64 %p, [x]; mov.u32 %i, %tid.x; mad.wide.u32 %p, %i, 4, %p; mov.u32 %s, room; mad.lo.s32 %s, %i, 4, %s;
    ld.global.f32 %v, [%p]; st.shared.f32 [%s], %v; ld.shared.f32 %v, [%s]; st.global.f32 [%p], %v;
    ret;
}
";

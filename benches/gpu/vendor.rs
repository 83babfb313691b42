//! The vendor's code for the same work: copies by the driver, matrix products by cuBLAS. Neither is needed to build.
#![expect(unsafe_code, reason = "cuBLAS has a C interface")]

use libloading::{Library, Symbol};
use std::ffi::c_void;
use std::sync::Arc;
use titan::Device;
use titan::cuda::cudarc::driver::{CudaContext, CudaSlice, CudaStream};

/// The file names under which cuBLAS is looked for.
const NAMES: [&str; 4] = ["libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"];

/// `cublasGemmEx`, as cuBLAS documents it: "cublas<t>gemmEx".
type GemmEx = unsafe extern "C" fn(
    handle: *mut c_void,
    transa: i32,
    transb: i32,
    m: i32,
    n: i32,
    k: i32,
    alpha: *const c_void,
    a: *const c_void,
    a_type: i32,
    lda: i32,
    b: *const c_void,
    b_type: i32,
    ldb: i32,
    beta: *const c_void,
    c: *mut c_void,
    c_type: i32,
    ldc: i32,
    compute_type: i32,
    algo: i32,
) -> i32;

/// cuBLAS, opened.
struct Blas {
    library: Library,
    name: &'static str,
    handle: *mut c_void,
}

/// The vendor's side of the cases.
pub(crate) struct Vendor {
    pub(crate) stream: Option<Arc<CudaStream>>,
    blas: Option<Arc<Blas>>,
}

/// Elements of halves, as `cudaDataType` numbers them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Half {
    F16 = 2,
    Bf16 = 14,
}

impl Vendor {
    /// The vendor's code that is available for a device.
    pub(crate) fn open(dev: &Device) -> Vendor {
        let context = CudaContext::new(dev.ordinal() as usize).ok();
        let stream = context.and_then(|c| c.new_stream().ok());
        let blas =
            stream.as_ref().and_then(|stream| NAMES.iter().find_map(|name| Blas::open(name, stream))).map(Arc::new);
        Vendor { stream, blas }
    }

    pub(crate) fn words(&self) -> String {
        match &self.blas {
            Some(blas) => format!("cuBLAS from {}", blas.name),
            None => "cuBLAS cannot be opened: products are compared with nothing".to_owned(),
        }
    }

    /// C = A · Bᵀ of row-major matrices at these addresses, on the vendor's stream; `None` without cuBLAS.
    pub(crate) fn product(&self, half: Half, [m, n, k]: [i32; 3], [a, b, c]: [u64; 3]) -> Option<Box<dyn Fn()>> {
        let blas = Arc::clone(self.blas.as_ref()?);
        Some(Box::new(move || blas.product(half, [m, n, k], [a, b, c])))
    }

    /// The driver's copy of so many bytes.
    pub(crate) fn copy(&self, bytes: usize) -> Option<Box<dyn FnMut(usize)>> {
        let stream = Arc::clone(self.stream.as_ref()?);
        let from: CudaSlice<u8> = stream.alloc_zeros(bytes).ok()?;
        let mut to: CudaSlice<u8> = stream.alloc_zeros(bytes).ok()?;
        Some(Box::new(move |n| {
            for _ in 0..n {
                stream.memcpy_dtod(&from, &mut to).expect("the driver copies");
            }
            stream.synchronize().expect("the driver copies");
        }))
    }
}

impl Blas {
    fn open(name: &'static str, stream: &Arc<CudaStream>) -> Option<Blas> {
        // SAFETY: cuBLAS does nothing when it is loaded but set itself up.
        let library = unsafe { Library::new(name) }.ok()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: `cublasCreate_v2` takes the place of a handle, `cublasSetStream_v2` a handle and a stream of the current context.
        let ok = unsafe {
            let create: Symbol<'_, unsafe extern "C" fn(*mut *mut c_void) -> i32> =
                library.get(b"cublasCreate_v2").ok()?;
            let set: Symbol<'_, unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32> =
                library.get(b"cublasSetStream_v2").ok()?;
            stream.context().bind_to_thread().is_ok()
                && create(&raw mut handle) == 0
                && set(handle, stream.cu_stream().cast()) == 0
        };
        ok.then_some(Blas { library, name, handle })
    }

    /// cuBLAS is column-major, so it computes Cᵀ = B · Aᵀ.
    fn product(&self, half: Half, [m, n, k]: [i32; 3], [a, b, c]: [u64; 3]) {
        let (one, zero) = (1f32, 0f32);
        let (one, zero): (*const c_void, *const c_void) = ((&raw const one).cast(), (&raw const zero).cast());
        let ty = half as i32;
        let at = |address: u64| std::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        // SAFETY: the type is that of the documentation; the addresses are matrices of these extents that live until the case
        // ends; 68 is CUBLAS_COMPUTE_32F, whose scalars are `f32`, and -1 the default algorithm.
        let status = unsafe {
            let gemm: Symbol<'_, GemmEx> = self.library.get(b"cublasGemmEx").expect("every cuBLAS has it");
            gemm(self.handle, 1, 0, n, m, k, one, at(b), ty, k, at(a), ty, k, zero, at(c), ty, n, 68, -1)
        };
        assert!(status == 0, "cublasGemmEx returns {status}");
    }
}

// What HIP's headers have of the language, made of clang's builtins: nothing of ROCm is needed.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define NOINLINE __device__ __attribute__((noinline))
#define KERNEL extern "C" __global__ void

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;
typedef _Float16 f16;

#define LID ((u32)__builtin_amdgcn_workitem_id_x())
#define GROUP ((u32)__builtin_amdgcn_workgroup_id_x())
#define SIZE ((u32)__builtin_amdgcn_workgroup_size_x())
#define GROUPS ((u32)(__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x()))
#define GID (GROUP * SIZE + LID)

// `__syncthreads`.
__device__ inline void sync() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

#define WORKGROUP __HIP_MEMORY_SCOPE_WORKGROUP
#define AGENT __HIP_MEMORY_SCOPE_AGENT
#define RELAXED __ATOMIC_RELAXED
#define ACQUIRE __ATOMIC_ACQUIRE
#define RELEASE __ATOMIC_RELEASE
#define add_atomic(p, v) __hip_atomic_fetch_add(p, v, RELAXED, AGENT)

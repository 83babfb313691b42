// What OpenCL C has of a library, made of clang's builtins: no device library is linked.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float3 __attribute__((ext_vector_type(3)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float16v __attribute__((ext_vector_type(16)));
typedef float float32v __attribute__((ext_vector_type(32)));
typedef int int4 __attribute__((ext_vector_type(4)));
typedef int int16v __attribute__((ext_vector_type(16)));
typedef int int32v __attribute__((ext_vector_type(32)));
typedef uint uint2 __attribute__((ext_vector_type(2)));
typedef uint uint4 __attribute__((ext_vector_type(4)));
typedef double double2 __attribute__((ext_vector_type(2)));
typedef double double4 __attribute__((ext_vector_type(4)));
typedef half half2 __attribute__((ext_vector_type(2)));
typedef half half4 __attribute__((ext_vector_type(4)));
typedef short short2 __attribute__((ext_vector_type(2)));
typedef short short4 __attribute__((ext_vector_type(4)));
typedef ushort ushort2 __attribute__((ext_vector_type(2)));
typedef uchar uchar4 __attribute__((ext_vector_type(4)));

#define LID __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define SIZE ((uint)__builtin_amdgcn_workgroup_size_x())
#define GID (GROUP * SIZE + LID)
#define RELAXED __ATOMIC_RELAXED
#define WG __MEMORY_SCOPE_WRKGRP
#define DEVICE __MEMORY_SCOPE_DEVICE
#define BARRIER()                                                                                                      \
    do {                                                                                                               \
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");                                                         \
        __builtin_amdgcn_s_barrier();                                                                                  \
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");                                                         \
    } while (0)

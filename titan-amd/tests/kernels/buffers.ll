; Buffers with descriptors, loads into the local data share, arguments in registers.
target triple = "amdgcn-amd-amdhsa"

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
declare ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p1(ptr addrspace(1), i16, i32, i32)
declare i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8), i32, i32, i32)
declare <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8), i32, i32, i32)
declare i8 @llvm.amdgcn.raw.ptr.buffer.load.i8(ptr addrspace(8), i32, i32, i32)
declare i16 @llvm.amdgcn.raw.ptr.buffer.load.i16(ptr addrspace(8), i32, i32, i32)
declare void @llvm.amdgcn.raw.ptr.buffer.store.i32(i32, ptr addrspace(8), i32, i32, i32)
declare void @llvm.amdgcn.raw.ptr.buffer.store.v4i32(<4 x i32>, ptr addrspace(8), i32, i32, i32)
declare void @llvm.amdgcn.raw.ptr.buffer.store.i8(i8, ptr addrspace(8), i32, i32, i32)
declare i32 @llvm.amdgcn.raw.ptr.buffer.atomic.add.i32(i32, ptr addrspace(8), i32, i32, i32)
declare i32 @llvm.amdgcn.struct.ptr.buffer.load.i32(ptr addrspace(8), i32, i32, i32, i32)
declare void @llvm.amdgcn.struct.ptr.buffer.store.i32(i32, ptr addrspace(8), i32, i32, i32, i32)
declare void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8), ptr addrspace(3), i32, i32, i32, i32, i32)

@staged = internal addrspace(3) global [128 x i32] undef, align 16

define internal i32 @id() alwaysinline {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = mul i32 %g, 64
  %i = add i32 %b, %l
  ret i32 %i
}

; Four words for each lane, of which the buffer has only some: others are zero, and are not stored.
define protected amdgpu_kernel void @buffers_bounds(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n, i32 %m) {
  %i = call i32 @id()
  %from = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p1(ptr addrspace(1) %x, i16 0, i32 %n, i32 159744)
  %to = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p1(ptr addrspace(1) %y, i16 0, i32 %m, i32 159744)
  %o = shl i32 %i, 4
  %v = call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) %from, i32 %o, i32 0, i32 0)
  %a = add <4 x i32> %v, <i32 1, i32 2, i32 3, i32 4>
  call void @llvm.amdgcn.raw.ptr.buffer.store.v4i32(<4 x i32> %a, ptr addrspace(8) %to, i32 %o, i32 0, i32 0)
  ret void
}

; The scalar offset is outside of what the range says.
define protected amdgpu_kernel void @buffers_bytes(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n, i32 %s) {
  %i = call i32 @id()
  %from = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p1(ptr addrspace(1) %x, i16 0, i32 %n, i32 159744)
  %to = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p1(ptr addrspace(1) %y, i16 0, i32 %n, i32 159744)
  %b = call i8 @llvm.amdgcn.raw.ptr.buffer.load.i8(ptr addrspace(8) %from, i32 %i, i32 %s, i32 0)
  %t = shl i32 %i, 1
  %h = call i16 @llvm.amdgcn.raw.ptr.buffer.load.i16(ptr addrspace(8) %from, i32 %t, i32 %s, i32 0)
  %c = trunc i16 %h to i8
  %r = xor i8 %b, %c
  call void @llvm.amdgcn.raw.ptr.buffer.store.i8(i8 %r, ptr addrspace(8) %to, i32 %i, i32 0, i32 0)
  ret void
}

; Records of twelve bytes, by their number.
define protected amdgpu_kernel void @buffers_records(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n) {
  %i = call i32 @id()
  %from = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p1(ptr addrspace(1) %x, i16 12, i32 %n, i32 159744)
  %to = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p1(ptr addrspace(1) %y, i16 8, i32 %n, i32 159744)
  %a = call i32 @llvm.amdgcn.struct.ptr.buffer.load.i32(ptr addrspace(8) %from, i32 %i, i32 0, i32 0, i32 0)
  %b = call i32 @llvm.amdgcn.struct.ptr.buffer.load.i32(ptr addrspace(8) %from, i32 %i, i32 8, i32 0, i32 0)
  %m = mul i32 %b, 3
  %r = add i32 %a, %m
  call void @llvm.amdgcn.struct.ptr.buffer.store.i32(i32 %r, ptr addrspace(8) %to, i32 %i, i32 4, i32 0, i32 0)
  ret void
}

define protected amdgpu_kernel void @buffers_atomics(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n) {
  %i = call i32 @id()
  %o = and i32 %i, 28
  %to = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p1(ptr addrspace(1) %x, i16 0, i32 %n, i32 159744)
  %old = call i32 @llvm.amdgcn.raw.ptr.buffer.atomic.add.i32(i32 5, ptr addrspace(8) %to, i32 %o, i32 0, i32 0)
  %d = urem i32 %old, 5
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %i
  store i32 %d, ptr addrspace(1) %py
  ret void
}

; Words that go to the local data share without a register, each wave's own. (LLVM 19 does not compile the same by address.)
define protected amdgpu_kernel void @buffers_to_local(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n) {
  %i = call i32 @id()
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %from = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p1(ptr addrspace(1) %x, i16 0, i32 %n, i32 159744)
  %w = shl i32 %i, 2
  call void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8) %from, ptr addrspace(3) @staged, i32 4, i32 %w, i32 0, i32 0, i32 0)
  %o = shl i32 %i, 3
  %second = getelementptr [128 x i32], ptr addrspace(3) @staged, i32 0, i32 64
  call void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8) %from, ptr addrspace(3) %second, i32 4, i32 %o, i32 0, i32 0, i32 0)
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %k = xor i32 %l, 63
  %pa = getelementptr [128 x i32], ptr addrspace(3) @staged, i32 0, i32 %k
  %a = load i32, ptr addrspace(3) %pa
  %j = add i32 %l, 64
  %pb = getelementptr [128 x i32], ptr addrspace(3) @staged, i32 0, i32 %j
  %b = load i32, ptr addrspace(3) %pb
  %m = mul i32 %b, 3
  %r = add i32 %a, %m
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %i
  store i32 %r, ptr addrspace(1) %py
  ret void
}

; Arguments that hardware loads into registers before the kernel begins.
define protected amdgpu_kernel void @buffers_preloaded(ptr addrspace(1) inreg %x, ptr addrspace(1) inreg %y, i32 inreg %f, i32 %g) #0 {
  %i = call i32 @id()
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %v = load i32, ptr addrspace(1) %px
  %m = mul i32 %v, %f
  %r = add i32 %m, %g
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %i
  store i32 %r, ptr addrspace(1) %py
  ret void
}

attributes #0 = { "amdgpu-no-dispatch-ptr" "amdgpu-no-queue-ptr" "amdgpu-no-dispatch-id" "amdgpu-no-implicitarg-ptr" }

; What front ends rarely write: undefined values, integers of odd widths, short vectors.
target triple = "amdgcn-amd-amdhsa"

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.fshl.i32(i32, i32, i32)
declare i16 @llvm.bitreverse.i16(i16)
declare i16 @llvm.uadd.sat.i16(i16, i16)
declare i32 @llvm.ssub.sat.i32(i32, i32)
declare <2 x i16> @llvm.uadd.sat.v2i16(<2 x i16>, <2 x i16>)
declare {i32, i1} @llvm.umul.with.overflow.i32(i32, i32)
declare i32 @llvm.fptoui.sat.i32.f32(float)
declare i16 @llvm.fptosi.sat.i16.f32(float)
declare float @llvm.ldexp.f32.i32(float, i32)

define internal i32 @id() alwaysinline {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = mul i32 %g, 64
  %i = add i32 %b, %l
  ret i32 %i
}

; The upper half of a pair is undefined until the end.
define protected amdgpu_kernel void @ir_undefined_half(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %i = call i32 @id()
  %px = getelementptr i16, ptr addrspace(1) %x, i32 %i
  %v = load i16, ptr addrspace(1) %px
  %w = insertelement <2 x i16> undef, i16 %v, i32 0
  %a = add <2 x i16> %w, <i16 5, i16 7>
  %m = mul <2 x i16> %a, %w
  %s = shufflevector <2 x i16> %m, <2 x i16> undef, <2 x i32> <i32 0, i32 0>
  %r = bitcast <2 x i16> %s to i32
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %i
  store i32 %r, ptr addrspace(1) %py
  ret void
}

; One side of a choice is undefined where the other one is taken.
define protected amdgpu_kernel void @ir_undefined_choice(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %i = call i32 @id()
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %v = load i32, ptr addrspace(1) %px
  %c = icmp ult i32 %v, 1000
  br i1 %c, label %small, label %join
small:
  %d = mul i32 %v, 3
  br label %join
join:
  %p = phi i32 [ %d, %small ], [ undef, %0 ]
  %f = freeze i32 %p
  %z = select i1 %c, i32 %f, i32 17
  %t = or i32 %z, 1
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %i
  store i32 %t, ptr addrspace(1) %py
  ret void
}

define protected amdgpu_kernel void @ir_odd_integers(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %i = call i32 @id()
  %px = getelementptr i64, ptr addrspace(1) %x, i32 %i
  %v = load i64, ptr addrspace(1) %px
  %a = trunc i64 %v to i48
  %b = mul i48 %a, 12345
  %c = trunc i64 %v to i24
  %d = add i24 %c, 99
  %e = sext i24 %d to i48
  %f = xor i48 %b, %e
  %g = ashr i48 %f, 5
  %h = trunc i48 %g to i7
  %k = zext i7 %h to i64
  %l = sext i48 %g to i64
  %m = add i64 %k, %l
  %py = getelementptr i64, ptr addrspace(1) %y, i32 %i
  store i64 %m, ptr addrspace(1) %py
  ret void
}

; Three halves: half of a register is padding, which is loaded and stored with the rest.
define protected amdgpu_kernel void @ir_three_halves(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %i = call i32 @id()
  %px = getelementptr <3 x i16>, ptr addrspace(1) %x, i32 %i
  %v = load <3 x i16>, ptr addrspace(1) %px, align 8
  %w = shufflevector <3 x i16> %v, <3 x i16> undef, <3 x i32> <i32 2, i32 0, i32 1>
  %a = add <3 x i16> %v, %w
  %s = lshr <3 x i16> %a, <i16 1, i16 2, i16 3>
  %e0 = extractelement <3 x i16> %s, i32 0
  %e1 = extractelement <3 x i16> %s, i32 1
  %e2 = extractelement <3 x i16> %s, i32 2
  %z0 = zext i16 %e0 to i32
  %z1 = zext i16 %e1 to i32
  %z2 = zext i16 %e2 to i32
  %t1 = mul i32 %z1, 3
  %t2 = mul i32 %z2, 5
  %u = add i32 %z0, %t1
  %r = add i32 %u, %t2
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %i
  store i32 %r, ptr addrspace(1) %py
  ret void
}

define protected amdgpu_kernel void @ir_saturating(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %z) {
  %i = call i32 @id()
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %i
  %a = load i32, ptr addrspace(1) %px
  %b = load i32, ptr addrspace(1) %py
  %as = trunc i32 %a to i16
  %bs = trunc i32 %b to i16
  %s0 = call i16 @llvm.uadd.sat.i16(i16 %as, i16 %bs)
  %s1 = call i32 @llvm.ssub.sat.i32(i32 %a, i32 %b)
  %av = bitcast i32 %a to <2 x i16>
  %bv = bitcast i32 %b to <2 x i16>
  %s2 = call <2 x i16> @llvm.uadd.sat.v2i16(<2 x i16> %av, <2 x i16> %bv)
  %o = call {i32, i1} @llvm.umul.with.overflow.i32(i32 %a, i32 %b)
  %o0 = extractvalue {i32, i1} %o, 0
  %o1 = extractvalue {i32, i1} %o, 1
  %r3 = select i1 %o1, i32 7, i32 %o0
  %r0 = zext i16 %s0 to i32
  %r2 = bitcast <2 x i16> %s2 to i32
  %base = mul i32 %i, 4
  %p0 = getelementptr i32, ptr addrspace(1) %z, i32 %base
  %p1 = getelementptr i32, ptr addrspace(1) %p0, i32 1
  %p2 = getelementptr i32, ptr addrspace(1) %p0, i32 2
  %p3 = getelementptr i32, ptr addrspace(1) %p0, i32 3
  store i32 %r0, ptr addrspace(1) %p0
  store i32 %s1, ptr addrspace(1) %p1
  store i32 %r2, ptr addrspace(1) %p2
  store i32 %r3, ptr addrspace(1) %p3
  ret void
}

define protected amdgpu_kernel void @ir_conversions(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %z) {
  %i = call i32 @id()
  %px = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v = load float, ptr addrspace(1) %px
  %u = call i32 @llvm.fptoui.sat.i32.f32(float %v)
  %s = call i16 @llvm.fptosi.sat.i16.f32(float %v)
  %e = sext i16 %s to i32
  %t = and i32 %u, 15
  %l = call float @llvm.ldexp.f32.i32(float %v, i32 %t)
  %r = xor i32 %u, %e
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %i
  store i32 %r, ptr addrspace(1) %py
  %pz = getelementptr float, ptr addrspace(1) %z, i32 %i
  store float %l, ptr addrspace(1) %pz
  ret void
}

define protected amdgpu_kernel void @ir_bits(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %i = call i32 @id()
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %v = load i32, ptr addrspace(1) %px
  %h = trunc i32 %v to i16
  %r = call i16 @llvm.bitreverse.i16(i16 %h)
  %z = zext i16 %r to i32
  %f = call i32 @llvm.fshl.i32(i32 %v, i32 %z, i32 %v)
  %n = lshr i32 %v, 28
  %b = trunc i32 %n to i4
  %m = mul i4 %b, %b
  %w = sext i4 %m to i32
  %s = add i32 %f, %w
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %i
  store i32 %s, ptr addrspace(1) %py
  ret void
}

define protected amdgpu_kernel void @ir_atomics(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %p1 = getelementptr i32, ptr addrspace(1) %x, i32 1
  %p2 = getelementptr i32, ptr addrspace(1) %x, i32 2
  %p3 = getelementptr i32, ptr addrspace(1) %x, i32 3
  %p4 = getelementptr i64, ptr addrspace(1) %x, i32 2
  %p6 = getelementptr float, ptr addrspace(1) %x, i32 6
  %a = atomicrmw umax ptr addrspace(1) %x, i32 %l syncscope("agent") monotonic
  %b = atomicrmw uinc_wrap ptr addrspace(1) %p1, i32 9 syncscope("agent") monotonic
  %c = atomicrmw xor ptr addrspace(1) %p2, i32 %l syncscope("agent") monotonic
  %d = atomicrmw nand ptr addrspace(1) %p3, i32 -1 syncscope("agent") monotonic
  %w = zext i32 %l to i64
  %e = atomicrmw add ptr addrspace(1) %p4, i64 %w syncscope("agent") monotonic
  %f = atomicrmw fadd ptr addrspace(1) %p6, float 0.5 syncscope("agent") monotonic
  %t = urem i32 %b, 10
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %l
  store i32 %t, ptr addrspace(1) %py
  ret void
}

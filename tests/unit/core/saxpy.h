// A kernel as PTX and its signature, for launches without a compiler.
#pragma once

#include "core/kernel_signature.h"

namespace kernwright::testing {

/// y[i] = a * x[i] + y[i] for i < n, with a variable and static shared memory to be found.
inline constexpr const char* kSaxpyPtx = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .global .align 4 .b8 counters[64];

.visible .entry saxpy(
	.param .f32 saxpy_param_0,
	.param .u64 saxpy_param_1,
	.param .u64 saxpy_param_2,
	.param .u32 saxpy_param_3
)
{
	.reg .pred %p<2>;
	.reg .f32 %f<5>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<8>;

	ld.param.f32 %f1, [saxpy_param_0];
	ld.param.u64 %rd1, [saxpy_param_1];
	ld.param.u64 %rd2, [saxpy_param_2];
	ld.param.u32 %r2, [saxpy_param_3];
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.s32 %r1, %r3, %r4, %r5;
	setp.ge.s32 %p1, %r1, %r2;
	@%p1 bra $done;
	cvta.to.global.u64 %rd3, %rd1;
	cvta.to.global.u64 %rd4, %rd2;
	mul.wide.s32 %rd5, %r1, 4;
	add.s64 %rd6, %rd3, %rd5;
	add.s64 %rd7, %rd4, %rd5;
	ld.global.f32 %f2, [%rd6];
	ld.global.f32 %f3, [%rd7];
	fma.rn.f32 %f4, %f1, %f2, %f3;
	st.global.f32 [%rd7], %f4;
$done:
	ret;
}
)";

/// saxpy(float a, const float* x, float* y, int n), as a compile would tell it.
inline KernelSignature saxpy_signature() {
  KernelSignature signature{.name = "saxpy", .lowered = "saxpy", .parameters = {}};
  signature.parameters = {
      {.name = "a", .type = "float", .scalar = ScalarType::float32},
      {.name = "x", .type = "const float*", .kind = ParameterKind::pointer},
      {.name = "y", .type = "float*", .kind = ParameterKind::pointer},
      {.name = "n", .type = "int", .scalar = ScalarType::int32},
  };
  return signature;
}

}  // namespace kernwright::testing

// Names the namespace of one instruction-set build of the op families.
//
// Every ops/*.cpp is compiled several times with different target flags. All its code must
// live in kernwright::sim::KW_SIM_NS, so that the linker keeps the builds apart. NOTE: for the same
// reason an ops file must not instantiate templates or inline functions of other headers that the
// compiler may emit out of line (std::string, std::vector growth, fmt): the linker would keep one
// copy for all builds, perhaps the AVX-512 one, and an older CPU would run it. Build messages in
// exec/*.cpp, outside ops/.
#pragma once

#ifndef KW_SIM_ISA
#define KW_SIM_ISA baseline
#endif
#define KW_SIM_JOIN_(a, b) a##b
#define KW_SIM_JOIN(a, b) KW_SIM_JOIN_(a, b)
#define KW_SIM_NS KW_SIM_JOIN(isa_, KW_SIM_ISA)

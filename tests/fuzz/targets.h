// The readers of untrusted bytes, each behind one function that a fuzzer can call.
#pragma once

#include <array>
#include <string_view>

namespace kernwright::fuzz {

/// Each takes any bytes. A reader may refuse them with one of its own exceptions, which these
/// functions swallow; everything else (another exception, a crash, what was read not surviving a
/// round trip) gets out and is a finding.
void ptx(std::string_view bytes);              ///< lexer, parser and verifier
void ptx_tokens(std::string_view bytes);       ///< lexer alone
void ptx_module(std::string_view bytes);       ///< parsed, laid out, lowered, decoded in each form
void ptx_load(std::string_view bytes);         ///< cuModuleLoadDataEx with its options
void ptx_run(std::string_view bytes);          ///< kernels of a module run, with canaries
void cubin_resources(std::string_view bytes);  ///< the ELF image beside PTX
void tensor_map(std::string_view bytes);       ///< descriptors of tensor copies, both ways
void object_code(std::string_view bytes);      ///< ObjectCode::deserialize
void mangled_type(std::string_view bytes);     ///< mangled names and what the probes read from them
void cache_entry(std::string_view bytes);      ///< entries of the disk cache
void expression(std::string_view bytes);       ///< restrictions of tuning spaces

struct Target {
  const char* name;
  void (*run)(std::string_view bytes);
  const char* corpus;  ///< folder in tests/fuzz/corpus; scripts/fuzz.sh adds PTX texts to `ptx`
};
inline constexpr std::array kTargets{Target{"ptx", ptx, "ptx"},
                                     Target{"ptx_tokens", ptx_tokens, "ptx"},
                                     Target{"ptx_module", ptx_module, "ptx"},
                                     Target{"ptx_load", ptx_load, "ptx"},
                                     Target{"ptx_run", ptx_run, "ptx"},
                                     Target{"cubin_resources", cubin_resources, "cubin_resources"},
                                     Target{"tensor_map", tensor_map, "tensor_map"},
                                     Target{"object_code", object_code, "object_code"},
                                     Target{"mangled_type", mangled_type, "mangled_type"},
                                     Target{"cache_entry", cache_entry, "cache_entry"},
                                     Target{"expression", expression, "expression"}};

}  // namespace kernwright::fuzz

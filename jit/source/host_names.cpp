// The tables of the host's names.
#include "jit/source/host_names.h"

#include <algorithm>
#include <array>

namespace kernwright {

bool is_host_std_name(std::string_view name) {
  static constexpr std::array<std::string_view, 70> kNames{"vector",
                                                           "string",
                                                           "wstring",
                                                           "map",
                                                           "multimap",
                                                           "unordered_map",
                                                           "unordered_set",
                                                           "set",
                                                           "multiset",
                                                           "list",
                                                           "forward_list",
                                                           "deque",
                                                           "queue",
                                                           "priority_queue",
                                                           "stack",
                                                           "cout",
                                                           "cerr",
                                                           "clog",
                                                           "cin",
                                                           "endl",
                                                           "ostream",
                                                           "istream",
                                                           "iostream",
                                                           "ifstream",
                                                           "ofstream",
                                                           "fstream",
                                                           "stringstream",
                                                           "ostringstream",
                                                           "istringstream",
                                                           "stringbuf",
                                                           "streambuf",
                                                           "thread",
                                                           "mutex",
                                                           "lock_guard",
                                                           "unique_lock",
                                                           "condition_variable",
                                                           "future",
                                                           "promise",
                                                           "async",
                                                           "unique_ptr",
                                                           "shared_ptr",
                                                           "weak_ptr",
                                                           "make_unique",
                                                           "make_shared",
                                                           "function",
                                                           "exception",
                                                           "runtime_error",
                                                           "logic_error",
                                                           "invalid_argument",
                                                           "out_of_range",
                                                           "exception_ptr",
                                                           "random_device",
                                                           "filesystem",
                                                           "regex",
                                                           "any",
                                                           "setw",
                                                           "setprecision",
                                                           "to_string",
                                                           "getline",
                                                           "ios",
                                                           "mt19937",
                                                           "mt19937_64",
                                                           "default_random_engine",
                                                           "minstd_rand",
                                                           "uniform_real_distribution",
                                                           "uniform_int_distribution",
                                                           "normal_distribution",
                                                           "bernoulli_distribution",
                                                           "seed_seq",
                                                           "locale"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_host_type(std::string_view name) {
  static constexpr std::array<std::string_view, 22> kNames{"FILE",
                                                           "timeval",
                                                           "timespec",
                                                           "cublasHandle_t",
                                                           "cublasLtHandle_t",
                                                           "cudnnHandle_t",
                                                           "cufftHandle",
                                                           "cusparseHandle_t",
                                                           "cusolverDnHandle_t",
                                                           "curandGenerator_t",
                                                           "ncclComm_t",
                                                           "ncclUniqueId",
                                                           "MPI_Comm",
                                                           "MPI_Datatype",
                                                           "device_vector",
                                                           "host_vector",
                                                           "StopWatchInterface",
                                                           "pthread_t",
                                                           "pthread_mutex_t",
                                                           "pthread_cond_t",
                                                           "sem_t",
                                                           "DIR"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_host_namespace(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kNames{"torch", "at",       "c10",  "py",
                                                          "cv",    "pybind11", "boost"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace kernwright

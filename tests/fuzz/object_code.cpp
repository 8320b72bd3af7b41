// Stored object code: what is read must be written again as the same bytes.
#include "jit/object_code.h"
#include "base/errors.h"
#include "fuzz/targets.h"

#include <stdexcept>
#include <string>

namespace kernwright::fuzz {

void object_code(std::string_view bytes) {
  std::string again;
  try {
    again = ObjectCode::deserialize(bytes).serialize();
  } catch (const Error&) {
    return;
  }
  if (again != bytes) throw std::logic_error("object code changed on its way");
}

}  // namespace kernwright::fuzz

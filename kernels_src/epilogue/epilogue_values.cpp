// The parameters of epilogues, and the names of their types.
#include "kernels_src/epilogue/epilogue_values.h"

#include "base/format.h"
#include "kernels_src/epilogue/custom_epilogue.h"
#include "kernels_src/matmul/matmul_batch.h"

namespace kernwright::kernels {
namespace {

std::int32_t scale_step(const Array& scales) { return scales.size() == 1 ? 0 : 1; }

}  // namespace

const std::optional<ActivationCall>& epilogue_activation(const ProductEpilogue& epilogue) {
  return epilogue.gate ? epilogue.gate : epilogue.activation;
}

std::string epilogue_type(const ProductEpilogue& epilogue, const char* activation, bool one_scale) {
  const char* bias = epilogue.bias ? device_type(epilogue.bias->type()) : "NoBias";
  if (epilogue.gate) return format("GatedEpilogue<{}, {}>", activation, bias);
  const std::string name =
      !epilogue.expression.empty()
          ? custom_epilogue_type(epilogue, bias)
          : format("Epilogue<{}, {}, {}>", epilogue.activation ? activation : "Same", bias,
                   epilogue.c ? "true" : "false");
  if (!epilogue.row_scales) return name;
  return format("Scaled<{}{}>", name, one_scale ? ", true" : "");
}

void add_epilogue(InstanceKey& key, const ProductEpilogue& epilogue) {
  const std::optional<ActivationCall>& call = epilogue_activation(epilogue);
  key.add(call ? static_cast<int>(call->kind) + 1 : 0, 6)
      .add(epilogue.gate.has_value(), 1)
      .add(epilogue.bias ? static_cast<int>(epilogue.bias->type()) + 1 : 0, 6)
      .add(epilogue.c.has_value(), 1)
      .add(epilogue.row_scales.has_value(), 1);
}

std::string tile_epilogue_type(const ProductEpilogue& epilogue, bool one_scale) {
  const char* activation = nullptr;
  if (epilogue_activation(epilogue))
    activation = activation_traits(epilogue_activation(epilogue)->kind).tile_type;
  return epilogue_type(epilogue, activation, one_scale);
}

bool has_one_scale(const ProductEpilogue& epilogue) {
  return epilogue.row_scales && epilogue.row_scales->size() == 1 &&
         epilogue.column_scales->size() == 1;
}

bool has_short_epilogue(const ProductEpilogue& epilogue) {
  const std::optional<ActivationCall>& call = epilogue_activation(epilogue);
  return !call || activation_traits(call->kind).is_short;
}

ProductEpilogueValues epilogue_values(const ProductEpilogue& epilogue) {
  ProductEpilogueValues values{.alpha = epilogue.alpha};
  if (epilogue.bias) values.bias = epilogue.bias->address();
  if (const auto& c = epilogue.c ? epilogue.c : epilogue.residual) {
    values.c = c->address();
    const auto size = static_cast<std::int64_t>(scalar_size(c->type()));
    values.c_row = step_from_end(*c, 2) / size;
    values.c_batch = step_from_end(*c, 3) / size;
  }
  if (epilogue.column_scales) {
    values.column_scales = epilogue.column_scales->address();
    values.column_step = scale_step(*epilogue.column_scales);
  }
  return values;
}

TileEpilogueValues tile_epilogue_values(const ProductEpilogue& epilogue) {
  TileEpilogueValues values{epilogue_values(epilogue)};
  values.beta = epilogue.beta;
  if (epilogue.row_scales) {
    values.row_scales = {epilogue.row_scales->address(), scale_step(*epilogue.row_scales)};
  }
  if (epilogue_activation(epilogue)) values.knobs = Knobs<float>(*epilogue_activation(epilogue));
  return values;
}

}  // namespace kernwright::kernels

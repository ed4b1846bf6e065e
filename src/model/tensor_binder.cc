#include "model/tensor_binder.h"

#include <algorithm>

#include "base/check.h"
#include "base/format_text.h"
#include "gguf/quant.h"

namespace bezel {

const TensorInfo* TensorBinder::find(std::string_view name) const {
  const TensorInfo* info = file_.tensor(prefix_ + std::string(name));
  if (info != nullptr) return info;
  const auto alias = std::ranges::find(aliases_, name, &Alias::first);
  if (alias == aliases_.end()) return nullptr;
  return file_.tensor(prefix_ + std::string(alias->second));
}

const TensorInfo* TensorBinder::find_required(std::string_view name) {
  const TensorInfo* info = find(name);
  if (info == nullptr) note(invalid("{} has no tensor '{}{}'.", file_.name(), prefix_, name).error());
  return info;
}

bool TensorBinder::check(const TensorInfo& info, const std::array<u64, 4>& ne) {
  if (info.ne != ne) {
    const std::string last = ne[3] == 1 ? "" : format_text(", {}", ne[3]);
    note(invalid(
             "Tensor '{}' has the shape [{}, {}, {}, {}], but the model's settings ask for [{}, {}, {}{}].",
             info.name, info.ne[0], info.ne[1], info.ne[2], info.ne[3], ne[0], ne[1], ne[2], last)
             .error());
    return false;
  }
  if (!can_dequantize(info.type)) {
    note(fail(ErrorKind::kUnsupported, "Tensor '{}' has the type {}, which bezel cannot read.", info.name,
              dtype_name(info.type))
             .error());
    return false;
  }
  return true;
}

Weight TensorBinder::add(TensorInfo info, TensorShape shape) {
  info.ne = {shape.cols, shape.rows, shape.depth, 1};
  tensors_.push_back(info);
  return {static_cast<u32>(tensors_.size() - 1), info.type, shape.rows, shape.cols, shape.depth};
}

Weight TensorBinder::required(std::string_view name, TensorShape shape) {
  return find_required(name) == nullptr ? Weight{} : optional(name, shape);
}

Weight TensorBinder::optional(std::string_view name, TensorShape shape) {
  const TensorInfo* info = find(name);
  if (info == nullptr || !check(*info, {shape.cols, shape.rows, shape.depth, 1})) return {};
  return add(*info, shape);
}

Weight TensorBinder::flattened(std::string_view name, const std::array<u64, 4>& ne, TensorShape shape) {
  CHECK(ne[0] * ne[1] * ne[2] * ne[3] == u64{shape.cols} * shape.rows * shape.depth);
  const TensorInfo* info = find_required(name);
  // Blocks do not cross rows, so the rows of what is stored can always be joined.
  if (info == nullptr || !check(*info, ne)) return {};
  return add(*info, shape);
}

}  // namespace bezel

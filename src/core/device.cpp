#include "core/device.h"

#include "core/error.h"

namespace akunu {

void Device::reach(const Device&) {
  throw DeviceError("devices of " + std::string(backend()) + " do not compute a model together");
}

std::string_view name_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::f32:
      return "f32";
    case ActivationKind::f16:
      return "f16";
    case ActivationKind::bf16:
      return "bf16";
    case ActivationKind::q8_32:
      return "q8_32";
    case ActivationKind::bf16_pair:
      return "bf16_pair";
    case ActivationKind::q16_32:
      return "q16_32";
  }
  __builtin_unreachable();
}

std::string_view name_of(RowClass row_class) {
  switch (row_class) {
    case RowClass::single:
      return "single";
    case RowClass::few:
      return "few";
    case RowClass::many:
      return "many";
  }
  __builtin_unreachable();
}

}  // namespace akunu

#include "registry.h"

#include <array>

#include "core/error.h"
#include "cpu/cpu_device.h"

namespace akunu {
namespace {

struct Backend {
  std::string_view name;
  std::shared_ptr<Device> (*create)(const DeviceOptions& options);
};

// The fastest first: "auto" takes the first that finds a device.
constexpr std::array kBackends{
    Backend{"cpu", create_cpu_device},
};

std::shared_ptr<Device> create_best(const DeviceOptions& options) {
  for (const Backend& backend : kBackends) {
    if (&backend == &kBackends.back()) break;
    try {
      return backend.create(options);
    } catch (const DeviceError&) {  // there is none here; the next one, then
    }
  }
  return kBackends.back().create(options);
}

}  // namespace

std::shared_ptr<Device> create_device(std::string_view name, const DeviceOptions& options) {
  if (name == "auto") return create_best(options);
  std::string known;
  for (const Backend& backend : kBackends) {
    if (backend.name == name) return backend.create(options);
    known += ", " + std::string(backend.name);
  }
  throw ArgumentError("there is no device \"" + std::string(name) + "\"; known are auto" + known);
}

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Backend& backend : kBackends) names.push_back(backend.name);
  return names;
}

}  // namespace akunu

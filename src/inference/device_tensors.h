// The tensors of a file, on a device.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/forward.h"
#include "files/model_source.h"

namespace akunu {

// What the tensors of a source are on a device, before it has any memory for them: bindings are empty. Of `n_ranks`
// devices that compute it together each has its share.
TensorMap outlines(const ModelSource& source, uint32_t n_ranks = 1);

class DeviceTensors {
 public:
  // Imports every tensor of the source: where its bytes lie if the device can read them there. Those
  // of one dimension become float32. Throws UnsupportedModelError for one that is quantised.
  // `in_host_memory`: names of those that a device with its own memory reads from the host's.
  DeviceTensors(std::shared_ptr<Device> device, const ModelSource& source,
                const std::set<std::string, std::less<>>& in_host_memory = {});
  DeviceTensors(const DeviceTensors&) = delete;
  DeviceTensors& operator=(const DeviceTensors&) = delete;

  const TensorMap& map() const { return tensors_; }
  // What the file calls a tensor of the map, printable.
  const std::string& name_in_file(std::string_view canonical) const {
    return names_in_file_.find(canonical)->second;
  }
  // Of all tensors, as they lie on the device.
  uint64_t bytes() const;

  // What became of a file that the device still reads (see MappedFile::damage); nothing if all is
  // well. Ask after every step, before its result is believed. Neither allocates nor throws where
  // all is well.
  std::optional<std::string> damage() const;

 private:
  OwnedWeight import(const SourceTensor& tensor, bool in_host_memory);

  std::shared_ptr<Device> device_;
  std::vector<std::weak_ptr<const MappedFile>> files_;  // the device keeps those that it reads
  std::vector<OwnedBuffer> vectors_;                    // converted to float32
  std::vector<OwnedWeight> imported_;
  TensorMap tensors_;
  std::map<std::string, std::string, std::less<>> names_in_file_;  // of tensors_
};

}  // namespace akunu

// A low-rank adapter (LoRA: Hu et al., 2021) as its files have it: for some weights of a model two
// small matrices, whose product is added to what the weight makes.
//
//   const AdapterSource source = open_adapter({"poet", "poet.gguf"}, config, arch);
//   for (const AdapterMatrices& each : source.matrices) add(each.target, each.down, each.up);
//
// Read are GGUF files, as llama.cpp has them, and directories of the `peft` library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/arch.h"
#include "core/model_config.h"
#include "files/mapped_file.h"
#include "files/model_source.h"

namespace akunu {

// An adapter to load, and the name that requests call it by.
struct AdapterPath {
  std::string name;
  std::string path;
};

// What is done to the rows of `up`, head by head, where the base model has them in another order than
// the adapter; see RopeStyle.
enum class HeadRows : uint8_t { as_they_are, interleave, halve };

struct AdapterMatrices {
  std::string target;  // canonical name of the weight, without ".weight": "layers.0.attention.q"
  SourceTensor down;   // A: [rank, k]
  SourceTensor up;     // B: [n, rank]
  float scale = 1;
  HeadRows head_rows = HeadRows::as_they_are;
  uint32_t head_dim = 0;
  // Where the base has value heads of a delta rule in another order: which row of `up` is each of the
  // base's, and which column of `down`. Empty: the same.
  std::vector<uint32_t> rows = {}, columns = {};

  uint64_t rank() const { return down.rows(); }
};

struct AdapterSource {
  std::string name;
  std::string path;  // printable
  std::vector<AdapterMatrices> matrices;
  std::vector<std::shared_ptr<const MappedFile>> files;  // all that bytes of tensors lie in
};

// Reads a GGUF adapter or a directory of peft; the content tells which. Nothing is ignored: throws
// UnsupportedModelError for what akunu does not compute (DoRA, biases, other modules than the
// projections of layers, a base of another architecture) and ModelFormatError where the files
// contradict themselves, each with the name of the adapter, of the file, and of the tensor or key;
// and what the readers of files throw.
AdapterSource open_adapter(const AdapterPath& adapter, const ModelConfig& config,
                           const ArchDescriptor& arch);

}  // namespace akunu

// A model as its files have it, whatever kind of file they are: its numbers, and its tensors where
// they lie. Each kind of file has a reader that makes one (gguf/source.h); the rest of the engine sees nothing else
// of a file.
//
//   const ModelSource source = open_model("model.gguf");
//   source.config.layers.size();
//   for (const SourceTensor& tensor : source.tensors) import(tensor);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/format.h"
#include "core/model_config.h"
#include "files/mapped_file.h"
#include "models/common/transform.h"

namespace akunu {

struct SourceTensor {
  std::string name;          // canonical, see names.h; no other tensor of the source has it
  std::string name_in_file;  // printable
  std::string path;          // of its file; printable
  Format format = Format::f32;
  uint32_t n_dims = 0;                         // 1 to 3
  std::array<uint64_t, 3> shape = {1, 1, 1};   // [n, rows, k], the last contiguous; 1 where absent
  std::array<WeightPart, kMaxPlanes> parts{};  // one per plane of the format
  Transform transform = Transform::none;
  // Among devices that compute a model together; see WeightSource.
  Split split = Split::none;
  uint64_t n_matrices = 1;

  uint64_t k() const { return shape[2]; }
  uint64_t rows() const { return shape[0] * shape[1]; }  // those of n matrices, one after the other
  // "model.gguf: tensor blk.0.attn_q.weight", for messages.
  std::string label() const { return path + ": tensor " + name_in_file; }
};

// What rotary frequencies are divided by, as a tensor: which is how GGUF has them. `where` is for messages.
SourceTensor rope_factors(const std::string& name, std::vector<float> divisors, std::string where);

// Throws UnsupportedModelError for a vector in blocks: no operation reads one.
void refuse_quantised_vector(const SourceTensor& tensor);

// Throws ModelFormatError for NaN or infinity in a tensor of F32, F16 or BF16, which would make NaN of all that
// it is multiplied with. For what is small beside a model: it reads all of it.
void refuse_no_numbers(const SourceTensor& tensor);

struct ModelSource {
  std::string path;  // what was asked for, for messages
  ModelConfig config;
  std::vector<SourceTensor> tensors;
  std::vector<std::shared_ptr<const MappedFile>> files;  // all that bytes of tensors lie in

  // What became of a file meanwhile (see MappedFile::damage); nothing if all is well.
  std::optional<std::string> damage() const;
};

// Whether `path` is read as a Hugging Face or MLX model: a directory of one, or a safetensors file.
bool is_hf_model(const std::string& path);

// Whether `path` names a file that begins as whisper.cpp's models do.
bool is_whisper_cpp_model(const std::string& path);

// Reads whatever kind of model `path` names, told apart by content. This is the one place that chooses
// a reader. Throws what the reader throws: see gguf/source.h, huggingface/source.h and whisper_cpp/source.h. What is no model that
// akunu reads is named by what it is (foreign.h).
// `with_head`: with the layer of a prediction head, where it has one (ModelConfig::n_ahead says so); else its tensors are
// left out, with a note.
ModelSource open_model(const std::string& path, bool with_head = false);

// Gives the model one more layer, for a prediction head: as those of it that have attention.
void add_layer_ahead(ModelConfig& config);

}  // namespace akunu

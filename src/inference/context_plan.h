// How many positions a text may have, and how many pages the cache gets: decided from what was asked for and what
// memory there is, before any of it is taken.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/groups.h"
#include "core/format.h"
#include "core/memory_left.h"
#include "weight/adapter_source.h"

namespace akunu {

// A head of a decoder's layer whose attention to speech says when a token is said.
struct AlignmentHead {
  uint32_t layer = 0;
  uint32_t head = 0;
};

struct LoadOptions {
  std::optional<uint32_t> context;  // positions per sequence; else the trained context or what fits
  std::optional<uint64_t> kv_memory;        // bytes for the K/V cache; else one full context
  std::optional<uint64_t> gpu_memory = {};  // bytes of a GPU's own memory; else what is free
  Format kv_format = Format::f16;           // f16, f32, q8_0 or q4_0
  bool observed = false;         // the inputs of matmuls can be looked at: Model::observations
  bool prediction_head = false;  // it is loaded too, and drafts: prediction_head.h
  std::vector<AlignmentHead> alignment_heads = {};
  std::vector<AdapterPath> adapters = {};  // in order of their names, each name once
  std::string mmproj = {};  // a GGUF file with the encoder of images of a model from a path
  // written by tools/options.py: load
  // end of load
};

// The format of a cache that users call "f16", "f32", "q8_0" or "q4_0". Throws ArgumentError for another name.
Format kv_format(const std::string& name);

// What a model needs, in bytes.
struct ContextNeeds {
  uint32_t trained_context = 0;    // positions
  bool has_no_more = false;        // an encoder: a longer context is none
  std::vector<GroupShape> groups;  // of the cache
  uint32_t n_rows = 1;             // of one text that are in flight at a time, at most
  uint64_t fixed = 0;              // scratch and what else does not grow with the context
  uint64_t mapped = 0;             // of the file: its pages want to stay in memory as well
  uint32_t max_texts = 1;          // that can be under way at a time
  uint64_t masks = 0;              // bytes of the masks of tokens that a step may have
  uint32_t usual_contexts = 1;  // full ones, for which there are pages where nobody says how many
  // Of a context's text, others that begin like it and go on with a page of their own: beams.
  uint32_t branches = 0;
};

struct ContextPlan {
  uint32_t context = 0;            // positions
  std::vector<uint32_t> n_pages;   // of each group
  std::vector<std::string> notes;  // a line each, on what the caller might not expect
};

// Throws OutOfMemoryError where not even a page fits, or not what `options` ask for.
ContextPlan plan_context(const LoadOptions& options, const ContextNeeds& needs,
                         const MemoryLeft& left);

// What it takes besides the weights to have a context of so many positions: scratch, the cache, and what is
// known of texts.
uint64_t context_bytes(const LoadOptions& options, const ContextNeeds& needs, uint32_t context);

// The most bytes that change before one submission: all that a device knows of a sequence (where several begin, they
// share it), new pages of the others, and masks.
uint64_t max_update_bytes(uint32_t context, std::span<const GroupShape> groups, uint32_t max_texts,
                          uint64_t masks);

}  // namespace akunu

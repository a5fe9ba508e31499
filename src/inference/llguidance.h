// Grammars by llguidance (MIT), whose C functions its Python package exports: what they compute, they
// compute without Python. Only what is used of its header is declared here, as version 1.9 has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inference/constraint.h"
#include "inference/token_merger.h"

struct LlgTokenizer;
struct LlgMatcher;
struct LlgCancellationHandle;

namespace akunu {

// What llguidance calls its functions.
struct LlgFunctions;

// How much llguidance may compute for one mask; its own defaults refuse objects with 500 optional
// properties and rules with 2,000 alternatives. The comments say what that takes at most.
struct GrammarLimits {
  size_t items_in_row = 10'000;             // what may follow: rules at the same place of a text
  size_t items_of_mask = 500'000;           // about 25 ms
  uint64_t lexer_fuel_of_mask = 5'000'000;  // about 350 ms
};
inline constexpr GrammarLimits kGrammarLimits;

// The open library; it stays open for the rest of the process.
class LlguidanceLibrary {
 public:
  // Throws UnsupportedModelError where the file cannot be opened, lacks a function, or is of a version
  // that is not known.
  static std::shared_ptr<const LlguidanceLibrary> open(const std::string& path);
  ~LlguidanceLibrary();

  const LlgFunctions& functions() const { return *functions_; }

 private:
  LlguidanceLibrary();
  std::unique_ptr<LlgFunctions> functions_;
};

// The vocabulary of a model, as grammars want it.
class GrammarVocabulary : public TokenBytes {
 public:
  struct Token {
    std::string bytes;        // "": of no text, and never allowed
    uint32_t rank = kNone;    // see TokenMerger
    bool is_special = false;  // has a name, `bytes`, and no text
    bool is_whole = false;
  };

  // `tokens`: as many as the logits have columns. `end_ids`: tokens that end a text. Throws Error.
  GrammarVocabulary(std::shared_ptr<const LlguidanceLibrary> library, std::vector<Token> tokens,
                    const std::vector<uint32_t>& end_ids, bool by_character);
  ~GrammarVocabulary() override;
  GrammarVocabulary(const GrammarVocabulary&) = delete;
  GrammarVocabulary& operator=(const GrammarVocabulary&) = delete;

  uint32_t size() const { return static_cast<uint32_t>(tokens_.size()); }
  std::string_view bytes_of(uint32_t token) const override {
    return token < tokens_.size() ? std::string_view(tokens_[token].bytes) : std::string_view();
  }
  const TokenMerger& merger() const { return *merger_; }
  const LlgFunctions& functions() const { return library_->functions(); }
  const LlgTokenizer* tokenizer() const { return tokenizer_; }

 private:
  std::shared_ptr<const LlguidanceLibrary> library_;
  std::vector<Token> tokens_;
  std::unique_ptr<TokenMerger> merger_;
  LlgTokenizer* tokenizer_ = nullptr;
};

// A grammar, and how far a text has come in it.
class GrammarConstraint : public Constraint {
 public:
  // `grammar`: llguidance's own JSON. `tells_forced`: forced() knows tokens; a test compares with a
  // text without. Throws ArgumentError where it cannot be compiled.
  GrammarConstraint(std::shared_ptr<const GrammarVocabulary> vocabulary, const std::string& grammar,
                    bool tells_forced = true);
  ~GrammarConstraint() override;
  GrammarConstraint(const GrammarConstraint&) = delete;
  GrammarConstraint& operator=(const GrammarConstraint&) = delete;

  bool is_free() const override { return false; }
  bool accept(uint32_t token) override;
  bool is_over() const override;
  uint32_t forced(std::span<uint32_t> out) override;
  bool fill(std::span<const uint32_t> drafted, std::span<uint32_t> masks) override;
  uint32_t n_allowed(std::span<const uint32_t> tokens) override;
  std::string error() const override { return error_; }
  bool is_too_dear() const override { return is_too_dear_; }
  void cancel() override;
  bool accept_bytes(std::string_view bytes) override;

 private:
  bool fill(std::span<uint32_t> mask);
  bool fails(const char* what);

  const std::shared_ptr<const GrammarVocabulary> vocabulary_;
  const bool tells_forced_;
  LlgMatcher* matcher_ = nullptr;
  LlgCancellationHandle* cancellation_ = nullptr;
  std::string error_;
  bool is_too_dear_ = false;
};

}  // namespace akunu

#include "inference/llguidance.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace akunu {

// As in llguidance.h of 1.9.
struct LlgTokenizerInit {
  size_t struct_size;
  uint32_t vocab_size;
  uint32_t tok_eos;
  const uint32_t* token_lens;
  const uint8_t* token_bytes;
  const char* tokenizer_json;
  bool tokenize_assumes_string;
  size_t (*tokenize_fn)(const void* user_data, const uint8_t* bytes, size_t bytes_len,
                        uint32_t* output_tokens, size_t output_tokens_len);
  bool use_approximate_greedy_tokenize_fn;
  const void* tokenize_user_data;
  const char* const* slices;
  const uint32_t* tok_eos_extra;
  uint32_t tok_eos_extra_count;
};

struct LlgParserLimits {
  size_t max_items_in_row;
  uint64_t initial_lexer_fuel;
  uint64_t step_lexer_fuel;
  size_t step_max_items;
  size_t max_lexer_states;
  size_t max_grammar_size;
  bool precompute_large_lexemes;
  bool verbose_errors;
};

struct LlgConstraintInit {
  const LlgTokenizer* tokenizer;
  uint32_t log_buffer_level;
  uint32_t log_stderr_level;
  bool ff_tokens_ok;
  bool backtrack_ok;
  LlgParserLimits limits;
  std::array<std::byte, 432> reserved;  // for what a later version may set
};

struct LlgFunctions {
  const char* (*get_version)();
  LlgTokenizer* (*new_tokenizer)(const LlgTokenizerInit*, char* error, size_t error_size);
  void (*free_tokenizer)(LlgTokenizer*);
  void (*set_defaults)(LlgConstraintInit*, const LlgTokenizer*);
  LlgMatcher* (*new_matcher)(const LlgConstraintInit*, const char* type, const char* data);
  void (*free_matcher)(LlgMatcher*);
  const char* (*get_error)(LlgMatcher*);
  size_t (*mask_bytes)(const LlgMatcher*);
  int32_t (*compute_mask_into)(LlgMatcher*, uint32_t* mask, size_t bytes);
  int32_t (*consume_tokens)(LlgMatcher*, const uint32_t* tokens, size_t n);
  int32_t (*validate_tokens)(LlgMatcher*, const uint32_t* tokens, size_t n);
  int32_t (*rollback)(LlgMatcher*, size_t n);
  int32_t (*compute_ff_tokens)(LlgMatcher*, uint32_t* out, size_t n);
  bool (*is_stopped)(const LlgMatcher*);
  LlgCancellationHandle* (*get_cancellation_handle)(LlgMatcher*);
  void (*cancel)(const LlgCancellationHandle*);
  void (*free_cancellation_handle)(LlgCancellationHandle*);
};

namespace {

constexpr std::string_view kVersion = "llguidance@1.9.";

// How it says that a limit is too low.
constexpr std::array<std::string_view, 7> kTooDear = {
    "too many expressions", "too many states",       "Too many items", "items; max is",
    "fuel exhausted",       "precomputation failed", "too big"};
constexpr const char* kMakeSmaller =
    "; make large repetitions smaller, nest fewer of them, or list fewer alternatives";

bool tells_too_dear(std::string_view why) {
  return std::ranges::any_of(
      kTooDear, [&](std::string_view each) { return why.find(each) != std::string_view::npos; });
}

size_t tokenize(const void* user_data, const uint8_t* bytes, size_t n_bytes, uint32_t* out,
                size_t n_out) noexcept {
  std::vector<uint32_t> tokens;
  static_cast<const TokenMerger*>(user_data)->tokens_of(
      {reinterpret_cast<const char*>(bytes), n_bytes}, tokens);
  std::copy_n(tokens.begin(), std::min(tokens.size(), n_out), out);
  return tokens.size();
}

}  // namespace

LlguidanceLibrary::LlguidanceLibrary() : functions_(std::make_unique<LlgFunctions>()) {}
LlguidanceLibrary::~LlguidanceLibrary() = default;

std::shared_ptr<const LlguidanceLibrary> LlguidanceLibrary::open(const std::string& path) {
  const std::string advice =
      "; grammars need the package llguidance 1.9: pip install 'llguidance>=1.9,<1.10'";
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    throw UnsupportedModelError(path + " cannot be opened: " + (why ? why : "unknown") + advice);
  }
  const std::shared_ptr<LlguidanceLibrary> library(new LlguidanceLibrary);
  LlgFunctions& to = *library->functions_;
  const auto find = [&](auto& function, const char* name) {
    void* const address = dlsym(handle, name);
    if (address == nullptr) throw UnsupportedModelError(path + " has no function " + name + advice);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  find(to.get_version, "llg_get_version");
  find(to.new_tokenizer, "llg_new_tokenizer_v2");
  find(to.free_tokenizer, "llg_free_tokenizer");
  find(to.set_defaults, "llg_constraint_init_set_defaults");
  find(to.new_matcher, "llg_new_matcher");
  find(to.free_matcher, "llg_free_matcher");
  find(to.get_error, "llg_matcher_get_error");
  find(to.mask_bytes, "llg_matcher_get_mask_byte_size");
  find(to.compute_mask_into, "llg_matcher_compute_mask_into");
  find(to.consume_tokens, "llg_matcher_consume_tokens");
  find(to.validate_tokens, "llg_matcher_validate_tokens");
  find(to.rollback, "llg_matcher_rollback");
  find(to.compute_ff_tokens, "llg_matcher_compute_ff_tokens");
  find(to.is_stopped, "llg_matcher_is_stopped");
  find(to.get_cancellation_handle, "llg_matcher_get_cancellation_handle");
  find(to.cancel, "llg_cancel");
  find(to.free_cancellation_handle, "llg_free_cancellation_handle");
  const std::string_view version = to.get_version();
  if (version.find(kVersion) == std::string_view::npos)
    throw UnsupportedModelError(path + " is of version " + std::string(version) + advice);
  return library;
}

GrammarVocabulary::GrammarVocabulary(std::shared_ptr<const LlguidanceLibrary> library,
                                     std::vector<Token> tokens,
                                     const std::vector<uint32_t>& end_ids, bool by_character)
    : library_(std::move(library)), tokens_(std::move(tokens)) {
  std::vector<TokenMerger::Entry> entries;
  std::vector<uint32_t> lengths;
  std::string all;
  entries.reserve(tokens_.size());
  lengths.reserve(tokens_.size());
  for (const Token& token : tokens_) {
    const bool is_text = !token.bytes.empty() && !token.is_special;
    entries.push_back(
        {is_text ? std::string_view(token.bytes) : std::string_view(), token.rank, token.is_whole});
    const size_t before = all.size();
    if (!token.bytes.empty() && token.is_special) all += '\xff';  // how llguidance marks them
    all += token.bytes;
    lengths.push_back(static_cast<uint32_t>(all.size() - before));
  }
  merger_ = std::make_unique<TokenMerger>(entries, by_character);
  LlgTokenizerInit init{};
  init.struct_size = sizeof init;
  init.vocab_size = size();
  init.tok_eos = end_ids.empty() ? kNone : end_ids.front();
  init.token_lens = lengths.data();
  init.token_bytes = reinterpret_cast<const uint8_t*>(all.data());
  init.tokenize_fn = tokenize;
  init.tokenize_user_data = merger_.get();
  if (end_ids.size() > 1) {
    init.tok_eos_extra = end_ids.data() + 1;
    init.tok_eos_extra_count = static_cast<uint32_t>(end_ids.size() - 1);
  }
  std::array<char, 1024> error{};
  tokenizer_ = functions().new_tokenizer(&init, error.data(), error.size());
  if (tokenizer_ == nullptr)
    throw Error(std::string("llguidance refuses the model's vocabulary: ") + error.data());
}

GrammarVocabulary::~GrammarVocabulary() {
  if (tokenizer_ != nullptr) functions().free_tokenizer(tokenizer_);
}

GrammarConstraint::GrammarConstraint(std::shared_ptr<const GrammarVocabulary> vocabulary,
                                     const std::string& grammar, bool tells_forced)
    : vocabulary_(std::move(vocabulary)), tells_forced_(tells_forced) {
  const LlgFunctions& llg = vocabulary_->functions();
  LlgConstraintInit init{};
  llg.set_defaults(&init, vocabulary_->tokenizer());
  init.log_stderr_level = 0;
  init.limits.max_items_in_row = kGrammarLimits.items_in_row;
  init.limits.step_max_items = kGrammarLimits.items_of_mask;
  init.limits.step_lexer_fuel = kGrammarLimits.lexer_fuel_of_mask;
  init.limits.verbose_errors = false;
  matcher_ = llg.new_matcher(&init, "llguidance", grammar.c_str());
  if (const char* const error = llg.get_error(matcher_)) {
    const std::string why = error;
    llg.free_matcher(matcher_);
    throw ArgumentError("the grammar cannot be compiled: " + why +
                        (tells_too_dear(why) ? kMakeSmaller : ""));
  }
  cancellation_ = llg.get_cancellation_handle(matcher_);
}

GrammarConstraint::~GrammarConstraint() {
  vocabulary_->functions().free_cancellation_handle(cancellation_);
  vocabulary_->functions().free_matcher(matcher_);
}

void GrammarConstraint::cancel() { vocabulary_->functions().cancel(cancellation_); }

// Keeps why, and is false.
bool GrammarConstraint::fails(const char* what) {
  const char* const why = vocabulary_->functions().get_error(matcher_);
  error_ = what;
  // What follows there is the state of its parser, or that there could be more.
  if (why != nullptr) error_ += ": " + std::string(why).substr(0, std::string(why).find("\n<"));
  is_too_dear_ = why != nullptr && tells_too_dear(why);
  if (is_too_dear_)
    error_ = "the grammar takes more work than a text may have: " + error_ + kMakeSmaller;
  return false;
}

bool GrammarConstraint::accept(uint32_t token) {
  if (!error_.empty()) return false;
  return vocabulary_->functions().consume_tokens(matcher_, &token, 1) == 0 ||
         fails("the grammar does not go on from here");
}

bool GrammarConstraint::is_over() const {
  return error_.empty() && vocabulary_->functions().is_stopped(matcher_);
}

uint32_t GrammarConstraint::forced(std::span<uint32_t> out) {
  if (!tells_forced_ || out.empty() || !error_.empty() || is_over()) return 0;
  const int32_t n = vocabulary_->functions().compute_ff_tokens(matcher_, out.data(), out.size());
  return n < 0 ? 0 : static_cast<uint32_t>(n);
}

bool GrammarConstraint::fill(std::span<uint32_t> mask) {
  const LlgFunctions& llg = vocabulary_->functions();
  return llg.compute_mask_into(matcher_, mask.data(), mask.size_bytes()) == 0 ||
         fails("the grammar does not tell what may follow");
}

bool GrammarConstraint::fill(std::span<const uint32_t> drafted, std::span<uint32_t> masks) {
  if (!error_.empty()) return false;
  const LlgFunctions& llg = vocabulary_->functions();
  const size_t n_words = masks.size() / (drafted.size() + 1);
  if (n_words * sizeof(uint32_t) != llg.mask_bytes(matcher_))
    return fails("the grammar's masks are of another vocabulary");
  if (!fill(masks.first(n_words))) return false;
  // Rows behind a draft that may not come are not looked at; any mask does.
  std::ranges::fill(masks.subspan(n_words), UINT32_MAX);
  size_t n_taken = 0;
  bool is_well = true;
  for (const uint32_t token : drafted) {
    if (llg.validate_tokens(matcher_, &token, 1) != 1 ||
        llg.consume_tokens(matcher_, &token, 1) != 0)
      break;
    ++n_taken;
    // At its end a matcher has no mask; nobody looks at this row either, since the text is over.
    if (llg.is_stopped(matcher_)) break;
    is_well = fill(masks.subspan(n_taken * n_words, n_words));
    if (!is_well) break;
  }
  return is_well && (n_taken == 0 || llg.rollback(matcher_, n_taken) == 0 ||
                     fails("the grammar does not go back"));
}

uint32_t GrammarConstraint::n_allowed(std::span<const uint32_t> tokens) {
  if (!error_.empty() || tokens.empty()) return 0;
  const int32_t n =
      vocabulary_->functions().validate_tokens(matcher_, tokens.data(), tokens.size());
  return n < 0 ? 0 : static_cast<uint32_t>(n);
}

bool GrammarConstraint::accept_bytes(std::string_view bytes) {
  if (!error_.empty()) return false;
  const LlgFunctions& llg = vocabulary_->functions();
  std::vector<uint32_t> tokens;
  vocabulary_->merger().tokens_of(bytes, tokens);
  // A vocabulary of words does not spell every text: what it has no token for is left out.
  size_t n_spelled = 0;
  for (const uint32_t token : tokens) n_spelled += vocabulary_->bytes_of(token).size();
  if (n_spelled != bytes.size()) return false;
  const auto n = static_cast<int32_t>(tokens.size());
  return llg.validate_tokens(matcher_, tokens.data(), tokens.size()) == n &&
         (llg.consume_tokens(matcher_, tokens.data(), tokens.size()) == 0 ||
          fails("the grammar does not go on from here"));
}

}  // namespace akunu

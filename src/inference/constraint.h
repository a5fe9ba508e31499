// What of a text may come next. A constraint belongs to one task and is asked by one thread at a time:
// the scheduler's, or the one that fills masks for it (masks.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace akunu {

class Constraint {
 public:
  virtual ~Constraint() = default;

  // Whether any token may come next: then there is no mask, and nothing is forced.
  virtual bool is_free() const = 0;
  // Advances by the token that was chosen. False where the token is not allowed or the grammar fails;
  // error() says why.
  virtual bool accept(uint32_t token) = 0;
  // Whether nothing may come but the end of the text.
  virtual bool is_over() const = 0;
  // Tokens that are certain to come next, as many as are known and fit.
  virtual uint32_t forced(std::span<uint32_t> out) = 0;
  // Fills 1 + drafted.size() masks: which tokens may come next, and which after each drafted token.
  // False where the grammar fails; error() says why.
  virtual bool fill(std::span<const uint32_t> drafted, std::span<uint32_t> masks) = 0;
  // How many of these tokens may come, one behind the other; no masks are needed for it.
  virtual uint32_t n_allowed(std::span<const uint32_t> tokens) = 0;
  // The reason of the first failure; "" if there was none.
  virtual std::string error() const = 0;
  // Whether it failed since the grammar takes more work than one text may have.
  virtual bool is_too_dear() const { return false; }
  // Has what is asked fail soon, and whatever is asked later. May be called while another thread asks.
  virtual void cancel() {}

  // Takes the bytes that a token has behind the place where this constraint begins. False, and
  // nothing taken, where the text cannot begin so.
  virtual bool accept_bytes(std::string_view bytes) = 0;
};

// Text that may be anything up to a place, where another constraint begins.
struct FreeText {
  std::vector<std::string> until_texts;             // it ends behind the first of these,
  std::vector<std::vector<uint32_t>> until_tokens;  // or of these,
  std::optional<uint32_t> most_tokens;              // or after so many tokens; then
  std::vector<uint32_t> then;                       // these are written
};

// What the bytes of a token are.
class TokenBytes {
 public:
  virtual ~TokenBytes() = default;
  virtual std::string_view bytes_of(uint32_t token) const = 0;
};

// Free text, and what comes after it.
class AfterFreeText : public Constraint {
 public:
  // `after`: nothing where the text stays free. `bytes`: of tokens, where until_texts are looked for.
  AfterFreeText(FreeText free, std::unique_ptr<Constraint> after,
                std::shared_ptr<const TokenBytes> bytes);

  bool is_free() const override;
  bool accept(uint32_t token) override;
  bool is_over() const override;
  uint32_t forced(std::span<uint32_t> out) override;
  bool fill(std::span<const uint32_t> drafted, std::span<uint32_t> masks) override;
  uint32_t n_allowed(std::span<const uint32_t> tokens) override;
  std::string error() const override { return after_ ? after_->error() : std::string(); }
  bool is_too_dear() const override { return after_ && after_->is_too_dear(); }
  void cancel() override {
    if (after_) after_->cancel();
  }
  bool accept_bytes(std::string_view) override { return false; }

 private:
  enum class Stage : uint8_t { free, writes, after };

  bool ends_with(std::span<const uint32_t> tokens) const;
  bool has_begun(uint32_t token);
  void count();

  const FreeText free_;
  const std::unique_ptr<Constraint> after_;
  const std::shared_ptr<const TokenBytes> bytes_;
  size_t most_bytes_ = 0;   // of until_texts
  size_t most_length_ = 0;  // of until_tokens
  Stage stage_ = Stage::free;
  uint32_t n_tokens_ = 0;         // of the free text
  size_t n_written_ = 0;          // of free_.then
  std::string tail_;              // bytes in which a text may have begun
  std::vector<uint32_t> recent_;  // likewise tokens
};

}  // namespace akunu

// _core.GrammarVocabulary and _core.Constraint: what a text may be. Compiling and asking release the
// GIL; while a text is generated, none of it needs Python.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.h"
#include "inference/llguidance.h"
#include "native_constraint.h"
#include "register.h"
#include "without_gil.h"

namespace py = pybind11;

namespace akunu::python {
namespace {

using Words = py::array_t<uint32_t, py::array::c_style | py::array::forcecast>;

// Kinds of tokens, as akunu/grammar/vocabulary.py numbers them.
enum : uint8_t { kNothing, kText, kWhole, kSpecial };

std::shared_ptr<GrammarVocabulary> make_vocabulary(const std::string& library,
                                                   const py::list& texts, const std::string& kinds,
                                                   const Words& ranks,
                                                   const std::vector<uint32_t>& end_ids,
                                                   bool by_character) {
  const size_t n = texts.size();
  if (kinds.size() != n || static_cast<size_t>(ranks.size()) != n)
    throw ArgumentError("texts, kinds and ranks are not equally long");
  std::vector<GrammarVocabulary::Token> tokens(n);
  for (size_t i = 0; i < n; ++i) {
    const auto kind = static_cast<uint8_t>(kinds[i]);
    if (kind == kNothing) continue;
    tokens[i] = {.bytes = py::cast<std::string>(texts[i]),
                 .rank = ranks.data()[i],
                 .is_special = kind == kSpecial,
                 .is_whole = kind == kWhole};
  }
  const WithoutGil without_gil;
  return std::make_shared<GrammarVocabulary>(LlguidanceLibrary::open(library), std::move(tokens),
                                             end_ids, by_character);
}

std::unique_ptr<NativeConstraint> make_constraint(std::shared_ptr<GrammarVocabulary> vocabulary,
                                                  const std::string& grammar,
                                                  std::optional<FreeText> free, bool drafts) {
  const WithoutGil without_gil;
  std::unique_ptr<Constraint> constraint;
  if (!grammar.empty())
    constraint = std::make_unique<GrammarConstraint>(vocabulary, grammar, drafts);
  if (free)
    constraint = std::make_unique<AfterFreeText>(std::move(*free), std::move(constraint),
                                                 std::move(vocabulary));
  return std::make_unique<NativeConstraint>(std::move(constraint));
}

}  // namespace

void register_grammar(py::module_& m) {
  m.attr("GRAMMAR_LIMITS") = py::make_tuple(
      kGrammarLimits.items_in_row, kGrammarLimits.items_of_mask, kGrammarLimits.lexer_fuel_of_mask);
  py::class_<GrammarVocabulary, std::shared_ptr<GrammarVocabulary>>(m, "GrammarVocabulary")
      .def(py::init(&make_vocabulary), py::kw_only(), py::arg("library"), py::arg("texts"),
           py::arg("kinds"), py::arg("ranks"), py::arg("end_ids"), py::arg("by_character"))
      .def(
          "tokens_of",
          [](const GrammarVocabulary& vocabulary, const std::string& bytes) {
            std::vector<uint32_t> tokens;
            vocabulary.merger().tokens_of(bytes, tokens);
            return tokens;
          },
          py::arg("text"));

  py::class_<NativeConstraint>(m, "Constraint")
      .def(py::init([](std::shared_ptr<GrammarVocabulary> vocabulary, const std::string& grammar,
                       std::optional<
                           std::tuple<std::vector<std::string>, std::vector<std::vector<uint32_t>>,
                                      std::optional<uint32_t>, std::vector<uint32_t>>>
                           after,
                       bool drafts) {
             std::optional<FreeText> free;
             if (after)
               free = FreeText{.until_texts = std::get<0>(*after),
                               .until_tokens = std::get<1>(*after),
                               .most_tokens = std::get<2>(*after),
                               .then = std::get<3>(*after)};
             return make_constraint(std::move(vocabulary), grammar, std::move(free), drafts);
           }),
           py::arg("vocabulary"), py::arg("grammar"), py::arg("after") = py::none(),
           py::arg("drafts") = true)
      .def_property_readonly("is_free", [](NativeConstraint& c) { return c.get().is_free(); })
      .def_property_readonly("is_over", [](NativeConstraint& c) { return c.get().is_over(); })
      .def_property_readonly("error", [](NativeConstraint& c) { return c.get().error(); })
      .def(
          "accept", [](NativeConstraint& c, uint32_t token) { return c.get().accept(token); },
          py::arg("token"))
      .def(
          "forced",
          [](NativeConstraint& c, size_t most) {
            std::vector<uint32_t> tokens(most);
            tokens.resize(c.get().forced(tokens));
            return tokens;
          },
          py::arg("most"))
      .def(
          "fill",
          [](NativeConstraint& c, const std::vector<uint32_t>& drafted, uint32_t vocab_size) {
            const uint32_t n_words = (vocab_size + 31) / 32;
            const auto n_masks = static_cast<py::ssize_t>(drafted.size() + 1);
            py::array_t<uint32_t> masks(
                py::array::ShapeContainer{n_masks, static_cast<py::ssize_t>(n_words)});
            if (!c.get().fill(drafted, {masks.mutable_data(), static_cast<size_t>(masks.size())}))
              c.get().is_too_dear() ? throw GrammarLimitError(c.get().error())
                                    : throw DeadEndError(c.get().error());
            return masks;
          },
          py::arg("drafted"), py::arg("vocab_size"));
}

}  // namespace akunu::python

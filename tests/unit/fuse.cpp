// What `fuse` makes of nodes that are linked, whatever stands between them, and where it leaves them alone.
#include "core/fuse.h"

#include <initializer_list>
#include <set>

#include "registry.h"
#include "unit/check.h"
#include "unit/device_variant.h"

namespace akunu::test {
namespace {

using enum Operation;

// Has every kernel but those that are left out: what is fused depends on the nodes alone.
class EveryKernel final : public DeviceVariant {
 public:
  explicit EveryKernel(std::set<Operation> without = {})
      : DeviceVariant(create_device("cpu", {.threads = 1}), true, 1),
        without_(std::move(without)) {}
  Pipeline find_kernel(const KernelRequest& request) const override {
    return without_.contains(request.operation) ? Pipeline{} : Pipeline{this};
  }

 private:
  std::set<Operation> without_;
};

constexpr uint32_t kHeads = 4, kKvHeads = 2, kHeadDim = 8;

// A pass that is written down node by node; values are named.
class Pass {
 public:
  ValueId value(const std::string& name) {
    return values_.add({.name = name, .binding = {}, .bytes_per_row = 4});
  }
  // Memory that outlives the step.
  ValueId bound(const std::string& name) { return values_.add({.name = name, .binding = {}}); }

  template <class Params>
  Pass& add(Operation operation, std::initializer_list<ValueId> operands, const Params& params) {
    Node node;
    node.operation = operation;
    std::copy(operands.begin(), operands.end(), node.operands.begin());
    node.set(params);
    node.label = std::to_string(nodes().size());
    nodes().push_back(std::move(node));
    return *this;
  }
  Pass& multiply(const std::string& in, const std::string& out, uint32_t n = 16) {
    return add(matmul, {value(in), bound("weight of " + out), value(out)}, MatmulParams{n, 16, {}});
  }
  Pass& add_to(const std::string& data, const std::string& other) {
    return add(Operation::add, {value(data), value(other)}, AddParams{16, 0, {}});
  }
  Pass& norm(const std::string& in, const std::string& out) {
    return add(rms_norm, {value(in), bound("norm of " + out), value(out)},
               NormParams{16, 1e-5f, {}});
  }
  Pass& norm_heads(const std::string& data, uint32_t n_heads) {
    return add(head_norm, {value(data), bound("norm of " + data)},
               HeadNormParams{n_heads, kHeadDim, 1e-5f, 0});
  }
  Pass& rotate(const std::string& data, uint32_t n_heads) {
    return add(rope, {value(data), value("angles")}, RopeParams{n_heads, kHeadDim, 4, 0});
  }
  Pass& write_cache() {
    return add(kv_write, {value("key"), value("value"), bound("keys"), bound("values")},
               KvWriteParams{kKvHeads, kHeadDim, 1, 0});
  }
  Pass& attend() {
    return add(attention, {value("query"), bound("keys"), bound("values"), value("attended")},
               AttentionParams{kHeads, kKvHeads, kHeadDim, 0, 1, 0, 1, 0});
  }
  // What follows goes into the logits program.
  Pass& then_logits() {
    in_logits_ = true;
    return *this;
  }
  Pass& logits_are(const std::string& name) {
    forward_.logits_value = value(name);
    return *this;
  }

  Pass& fused(const Device& device) {
    fuse(forward_, values_, device, RowClass::single);
    return *this;
  }
  Pass& fused() { return fused(EveryKernel()); }

  // Names and labels of the body: "matmul_add 0, 2".
  std::vector<std::string> body() const {
    std::vector<std::string> text;
    for (const Node& node : forward_.body)
      text.push_back(std::string(operation_info(node.operation).name) + " " + node.label);
    return text;
  }
  const Node& operator[](size_t i) const { return forward_.body[i]; }

 private:
  std::vector<Node>& nodes() { return in_logits_ ? forward_.logits : forward_.body; }

  Values values_;
  Forward forward_;
  bool in_logits_ = false;
};

using Text = std::vector<std::string>;

void expect(const Pass& pass, const Text& expected, const std::string& what) {
  std::string found;
  for (const std::string& node : pass.body()) found += "[" + node + "] ";
  check(pass.body() == expected, what + ": " + found);
}

void test_what_stands_between_two_nodes_does_not_part_them() {
  Pass pass;
  pass.multiply("hidden", "projected").norm("other", "something").add_to("residual", "projected");
  expect(pass.fused(), {"rms_norm 1", "matmul_add 0, 2"}, "a norm of something else");
  check(pass[1].operands[2] == pass.value("residual"), "it adds to the residual");

  Pass moved;  // the sum moves up to the matmul, whose input is written anew
  moved.multiply("hidden", "projected").norm("other", "hidden").add_to("residual", "projected");
  expect(moved.fused(), {"matmul_add 0, 2", "rms_norm 1"}, "a node that writes the input");

  Pass sum;  // in another order than written, but the sum of `projected` is still the last one
  sum.multiply("hidden", "projected").add_to("residual", "bias").add_to("residual", "projected");
  expect(sum.fused(), {"add 1", "matmul_add 0, 2"}, "another sum of the residual");
}

void test_a_norm_behind_is_added_in_one() {
  Pass pass;  // as Gemma 2 and 3 have it
  pass.multiply("hidden", "projected").norm("projected", "normed").add_to("residual", "normed");
  pass.norm("residual", "normed").multiply("normed", "query");
  expect(pass.fused(), {"matmul 0", "norm_add 1, 2", "norm_matmul_group 3, 4"},
         "the norm is the sum's, the next one the next matmul's");
}

void test_nodes_stay_where_others_need_what_they_hand_on() {
  Pass read;
  read.multiply("hidden", "projected").add_to("residual", "projected").norm("projected", "normed");
  expect(read.fused(), {"matmul 0", "add 1", "rms_norm 2"}, "a second consumer behind");

  Pass between;
  between.multiply("hidden", "projected")
      .norm("projected", "normed")
      .add_to("residual", "projected");
  expect(between.fused(), {"matmul 0", "rms_norm 1", "add 2"}, "a second consumer between");

  Pass changed;  // what is added is not what the matmul made
  changed.multiply("hidden", "projected")
      .norm_heads("projected", 2)
      .add_to("residual", "projected");
  expect(changed.fused(), {"matmul 0", "head_norm 1", "add 2"}, "a node that changes the result");

  Pass held;  // neither can the matmul move down nor the sum up
  held.multiply("hidden", "projected").norm("residual", "hidden").add_to("residual", "projected");
  expect(held.fused(), {"matmul 0", "rms_norm 1", "add 2"}, "a node that depends on both");

  Pass later;
  later.multiply("hidden", "projected").add_to("residual", "projected");
  later.then_logits().norm("projected", "normed");
  expect(later.fused(), {"matmul 0", "add 1"}, "a consumer in a later program");

  Pass logits;
  logits.multiply("hidden", "projected").add_to("residual", "projected").logits_are("projected");
  expect(logits.fused(), {"matmul 0", "add 1"}, "the host may read logits");

  Pass rows;  // advance changes the rows that every kernel reads
  rows.multiply("hidden", "projected")
      .add(advance, {rows.bound("picked"), rows.bound("tokens")}, AdvanceParams{1, {}})
      .add_to("residual", "projected");
  expect(rows.fused(), {"matmul 0", "advance 1", "add 2"}, "nothing moves past advance");
}

void test_matmuls_of_one_input_are_a_group() {
  Pass apart;
  apart.multiply("normed", "query", 32).norm_heads("query", kHeads).multiply("normed", "key");
  apart.multiply("normed", "value");
  expect(apart.fused(), {"matmul_group 0, 2, 3", "head_norm 1"}, "whatever stands between them");

  Pass anew;
  anew.multiply("normed", "gate").norm("residual", "normed").multiply("normed", "query");
  expect(anew.fused(), {"matmul 0", "norm_matmul_group 1, 2"}, "not of what was written anew");

  Pass four;
  for (const char* out : {"query", "key", "value", "gate"}) four.multiply("normed", out);
  expect(four.fused(), {"matmul_group 0, 1, 2", "matmul 3"}, "of three at most");

  Pass shared;  // the norm's result has two consumers, the group and the router
  shared.norm("residual", "normed").multiply("normed", "gate").multiply("normed", "up");
  shared.norm("normed", "routed");
  expect(shared.fused(), {"rms_norm 0", "matmul_group 1, 2", "rms_norm 3"},
         "without a norm others read");
}

Pass attention_layer(bool v_norm, bool by_head) {
  Pass pass;
  if (by_head) {
    pass.norm_heads("query", kHeads).rotate("query", kHeads);
    pass.norm_heads("key", kKvHeads).rotate("key", kKvHeads);
  } else {
    pass.norm_heads("query", kHeads).norm_heads("key", kKvHeads);
    pass.rotate("query", kHeads).rotate("key", kKvHeads);
  }
  if (v_norm) pass.norm_heads("value", kKvHeads);
  pass.write_cache();
  return pass;
}

void test_heads_are_normed_rotated_and_stored_in_one_whatever_the_order() {
  const EveryKernel apart({rope_attention});
  expect(attention_layer(false, false).fused(apart), {"norm_rope_kv_write 0, 1, 2, 3, 4"},
         "norms first");
  expect(attention_layer(false, true).fused(apart), {"norm_rope_kv_write 0, 1, 2, 3, 4"},
         "head after head");
  expect(attention_layer(true, false).fused(apart),
         {"head_norm 4", "norm_rope_kv_write 0, 1, 2, 3, 5"}, "a norm of the values");
  Pass pass = attention_layer(true, true);
  pass.multiply("normed", "gate").attend();
  expect(pass.fused(), {"head_norm 4", "matmul 6", "rope_attention 0, 1, 2, 3, 5, 7"},
         "a gate before attention");
  check(pass[2].operands[6] == pass.bound("norm of query"), "with the norms of both");

  Pass read = attention_layer(false, false);
  read.norm("query", "something").attend();
  expect(read.fused(), {"norm_rope_kv_write 0, 1, 2, 3, 4", "rms_norm 5", "attention 6"},
         "others read the rotated query");
  expect(attention_layer(false, false).fused(EveryKernel({rope_kv_write, norm_rope_kv_write})),
         {"head_norm 0", "head_norm 1", "rope 2", "rope 3", "kv_write 4"}, "without the kernel");
}

void test_layers_do_not_mix() {
  Pass pass;
  for (uint32_t layer = 0; layer < 2; ++layer) {
    pass.multiply("normed", "query", 32).multiply("normed", "key").multiply("normed", "value");
    pass.rotate("query", kHeads).rotate("key", kKvHeads).write_cache().attend();
    pass.multiply("attended", "projected").add_to("residual", "projected");
    pass.norm("residual", "normed");
  }
  expect(pass.fused(EveryKernel({matmul_rope_kv_write})),
         {"matmul_group 0, 1, 2", "rope_attention 3, 4, 5, 6", "matmul_add 7, 8",
          "norm_matmul_group 9, 10, 11, 12", "rope_attention 13, 14, 15, 16", "matmul_add 17, 18",
          "rms_norm 19"},
         "each has its own");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_what_stands_between_two_nodes_does_not_part_them();
  test_a_norm_behind_is_added_in_one();
  test_nodes_stay_where_others_need_what_they_hand_on();
  test_matmuls_of_one_input_are_a_group();
  test_heads_are_normed_rotated_and_stored_in_one_whatever_the_order();
  test_layers_do_not_mix();
  return summary();
}

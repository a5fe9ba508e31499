#include <string>

#include "core/error.h"
#include "core/kernel_params.h"
#include "models/common/layers.h"

namespace akunu::models {
namespace {

constexpr uint32_t kMostWidth = 64;
constexpr uint64_t kMostNumbers = 1u << 28;  // numbers of a row have 32 bits in the kernels

// Of a convolution, in rows. `before` and `behind` are what the message says around it.
void check_width(uint32_t width, const std::string& before, const std::string& behind) {
  if (width < 2 || width > kMostWidth)
    throw ModelFormatError(before + std::to_string(width) + behind + "; it must be 2 to " +
                           std::to_string(kMostWidth));
}

const Scan& checked(const Scan& scan) {
  const auto text = [](uint64_t number) { return std::to_string(number); };
  if (scan.n_heads == 0 || scan.head_dim == 0 || scan.n_groups == 0 ||
      scan.n_heads % scan.n_groups != 0)
    throw ModelFormatError(text(scan.n_heads) + " heads of a scan, of " + text(scan.head_dim) +
                           " numbers, do not go into " + text(scan.n_groups) + " groups");
  if (scan.state_dim == 0 || scan.state_dim > kMaxStateDim)
    throw UnsupportedModelError("the state of a scan has " + text(scan.state_dim) +
                                " numbers for each of a head; akunu has 1 to " +
                                text(kMaxStateDim));
  check_width(scan.width, "the convolution before a scan is over ", " rows");
  if (uint64_t{scan.n_heads} * scan.head_dim >= kMostNumbers ||
      uint64_t{scan.n_groups} * scan.state_dim >= kMostNumbers)
    throw ModelFormatError(text(scan.n_heads) + " heads of a scan, of " + text(scan.head_dim) +
                           " numbers, are beyond what any model has");
  if (!(scan.time_min >= 0 && scan.time_max >= scan.time_min))
    throw ModelFormatError("the limits of a scan's steps of time are " +
                           std::to_string(scan.time_min) + " and " + std::to_string(scan.time_max));
  return scan;
}

}  // namespace

void give_convolutions(ArchDescriptor& arch, const ModelConfig& config) {
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    if (!config.layers[i].convolves) continue;
    ShortConvolution convolution = config.convolution;
    convolution.dim = config.dim;
    arch.layers[i].mixer = convolution;
    check_width(config.convolution.width, "the width of the short convolution is ", "");
  }
}

void give_delta_rules(ArchDescriptor& arch, const ModelConfig& config) {
  const DeltaRule& rule = config.delta_rule;
  const auto text = [](uint64_t number) { return std::to_string(number); };
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    if (!config.layers[i].recurs) continue;
    arch.layers[i].mixer = rule;
    for (const uint32_t number :
         {rule.n_key_heads, rule.n_value_heads, rule.key_dim, rule.value_dim})
      require(number, "number or length of heads of the delta rule", config);
    if (rule.n_value_heads % rule.n_key_heads != 0)
      throw ModelFormatError(text(rule.n_value_heads) + " heads of values cannot share " +
                             text(rule.n_key_heads) + " heads of keys evenly");
    if (rule.key_dim > kMaxStateDim)
      throw UnsupportedModelError("keys of the delta rule have " + text(rule.key_dim) +
                                  " numbers; akunu has 1 to " + text(kMaxStateDim));
    check_width(rule.width, "the convolution before the delta rule is over ", " rows");
    if (uint64_t{rule.n_key_heads} * rule.key_dim >= kMostNumbers ||
        uint64_t{rule.n_value_heads} * rule.value_dim >= kMostNumbers)
      throw ModelFormatError(text(rule.n_value_heads) + " heads of the delta rule, of " +
                             text(rule.value_dim) + " numbers, are beyond what any model has");
  }
}

void give_scans(ArchDescriptor& arch, const ModelConfig& config) {
  for (size_t i = 0; i < arch.layers.size(); ++i)
    if (config.layers[i].scans) arch.layers[i].mixer = checked(config.scan);
}

void give_scans_beside(ArchDescriptor& arch, const ModelConfig& config) {
  for (size_t i = 0; i < arch.layers.size(); ++i)
    if (config.layers[i].scans)
      arch.layers[i].mixer = AttentionAndScan{*arch.layers[i].attention(), checked(config.scan)};
}

}  // namespace akunu::models

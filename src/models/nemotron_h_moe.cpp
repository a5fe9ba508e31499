// Nemotron 3 (2025): its feed-forward networks are experts without gates, and one more for all rows.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::nemotron_h_moe {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = nemotron_h::describe(config);
  give_experts(arch, config, Scoring::sigmoid, true);
  return arch;
}

constinit const Family family{
    .architecture = "nemotron_h_moe",
    .titles = {.recurrent = "Nemotron 3"},
    .describe = describe,
    .traits = {.rotates = false, .experts = true, .scans = true, .alternates = true},
    .written = {.both_epsilons = true},
};

}  // namespace akunu::models::nemotron_h_moe

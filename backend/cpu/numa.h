// Machines whose memory lies in several nodes (NUMA): which processors belong to which, and where
// memory and helpers go. `root` is put before every path; tests pass a tree of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace akunu::cpu {

struct MemoryNode {
  uint32_t number = 0;
  std::vector<uint32_t> processors;  // those that may be used
};

// The nodes with processors among `allowed`, in order; none where the system has no such folder.
std::vector<MemoryNode> memory_nodes(const std::vector<uint32_t>& allowed,
                                     const std::string& root = "");

// Of the nodes of the processors in this thread's affinity mask: those that have workers. Empty
// where that is one, or where there are more workers than processors: the system places them then.
std::vector<MemoryNode> nodes_to_spread_over(uint32_t n_workers);

// The place in `nodes` of the one that a worker belongs to, in proportion to their processors:
// neighbours, whose slices follow each other in memory, share a node.
size_t node_of_worker(const std::vector<MemoryNode>& nodes, uint32_t worker, uint32_t n_workers);

// The thread that calls may run on the processors of this node only; a refusal changes nothing.
void stay_on(const MemoryNode& node);

// Pages that nobody has touched yet, of whole blocks from the system, come from the nodes in turn.
// False where the system does not allow it: they come from where they are touched first.
bool interleave(std::byte* memory, uint64_t bytes, const std::vector<MemoryNode>& nodes);

// "2 memory nodes (4 + 4 processors): ...", for people.
std::string describe_placement(const std::vector<MemoryNode>& nodes);

}  // namespace akunu::cpu

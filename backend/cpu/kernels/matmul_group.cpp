// matmul_group: members of any formats that read one activation kind; see matmul.h.
#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_32.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/formats_k.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

const GroupMember* member_of(const Call& call, uint32_t i) {
  return static_cast<const GroupMember*>(call.kernel->members[i]);
}

uint64_t slices(const Call& call) {
  const auto& params = *static_cast<const MatmulGroupParams*>(call.params);
  uint64_t n = 0;
  for (uint32_t i = 0; i < 3; ++i)
    if (const GroupMember* member = member_of(call, i))
      n += member->count(params.n[i], params.k, call.n_rows);
  return n;
}

uint64_t scratch_bytes(const Call& call) {
  const auto& params = *static_cast<const MatmulGroupParams*>(call.params);
  uint64_t most = 0;
  for (uint32_t i = 0; i < 3; ++i)
    if (const GroupMember* member = member_of(call, i)) {
      const uint64_t bytes = member->scratch_bytes(params.k);
      if (bytes > most) most = bytes;
    }
  return most;
}

void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
  const auto& params = *static_cast<const MatmulGroupParams*>(call.params);
  uint64_t first = 0;  // the member's first slice
  for (uint32_t i = 0; i < 3 && begin < end; ++i) {
    const GroupMember* member = member_of(call, i);
    if (member == nullptr) continue;
    const uint64_t count = member->count(params.n[i], params.k, call.n_rows);
    const MatmulMember operands{
        call.operands[1 + i], reinterpret_cast<const float*>(call.operands[4 + i]),
        reinterpret_cast<float*>(call.operands[7 + i]), params.n[i], params.k};
    for (; begin < end && begin < first + count; ++begin)
      member->run(call, operands, begin - first, scratch);
    first += count;
  }
}

struct FormatMember {
  int32_t format, activation;
  GroupMember member;
};

template <template <class> class Format>
constexpr FormatMember entry() {
  using F = Format<ThisIsa>;
  return {F::kFormat, F::Input::kKind, group_member<ThisIsa, F>()};
}

constexpr FormatMember kMembers[] = {
    entry<F32>(),  entry<F16>(),  entry<BF16>(), entry<Q4_0>(), entry<Q4_1>(),
    entry<Q5_0>(), entry<Q5_1>(), entry<Q8_0>(), entry<Q2_K>(), entry<Q3_K>(),
    entry<Q4_K>(), entry<Q5_K>(), entry<Q6_K>(),
};

}  // namespace

template <>
bool Families<ThisIsa>::matmul_group(const KernelKey& request, Kernel& kernel) {
  kernel = {slices, run, scratch_bytes};
  for (uint32_t i = 0; i < 3; ++i) {
    if (request.weights[i] == kAbsent) continue;
    for (const FormatMember& known : kMembers)
      if (known.format == request.weights[i] && known.activation == request.activation)
        kernel.members[i] = &known.member;
    if (kernel.members[i] == nullptr) return false;
  }
  return kernel.members[0] != nullptr;
}

}  // namespace akunu::cpu

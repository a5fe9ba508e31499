#include "core/process_limits.h"

#include <sys/resource.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>

#include "core/system_file.h"

namespace akunu {
namespace {

std::optional<uint64_t> limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

}  // namespace

std::optional<uint64_t> address_space_left() {
  const std::optional<uint64_t> all = limit_of(RLIMIT_AS), data = limit_of(RLIMIT_DATA);
  if (!all && !data) return std::nullopt;
  // Pages: in all, resident, shared, code, 0, data with stacks. Systems without it do not enforce these limits either.
  const std::optional<std::string> text = read_system_file("/proc/self/statm");
  if (!text) return std::nullopt;
  const std::vector<std::string_view> fields = split(*text, ' ');
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::optional<uint64_t> left;
  const auto consider = [&](const std::optional<uint64_t>& limit, size_t field) {
    if (!limit || field >= fields.size()) return;
    const std::optional<uint64_t> pages = leading_number(fields[field]);
    if (!pages) return;
    const uint64_t here = *limit - std::min(*limit, *pages * page);
    left = std::min(left.value_or(here), here);
  };
  consider(all, 0);
  consider(data, 5);
  return left;
}

uint64_t thread_stack_bytes() {
  constexpr uint64_t kUsual = 8 * 1024 * 1024;
  return limit_of(RLIMIT_STACK).value_or(kUsual);
}

void give_back_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace akunu

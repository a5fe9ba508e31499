#include "files/bus_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>

namespace akunu {

// One guarded mapping. Slots are used again and never freed, so that the handler may walk the list
// at any time without a lock.
struct BusGuard::Slot {
  // Odd while the fields below change; a handler that sees that, or two versions, looks elsewhere:
  // memory that a thread is reading belongs to a slot that does not change.
  std::atomic<uint32_t> version{0};
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};  // begin == end: free
  std::atomic<int> descriptor{-1};
  std::atomic<bool> damaged{false};
  Slot* next = nullptr;  // set before the slot is in the list
};

// A signal handler belongs to the process and gets no argument of ours: this state cannot hang on
// a model. Everything that the handler reads is atomic; what only guards use is under the mutex.
struct GuardRegistry {
  using Slot = BusGuard::Slot;

  // A handler that was there before ours. Never freed, since ours may be reading it, but found
  // again: there are as many as there were different ones.
  struct Before {
    struct sigaction action;
    Before* next;
  };

  std::atomic<Slot*> slots{nullptr};
  std::atomic<const Before*> before{nullptr};
  std::mutex mutex;
  Before* all_before = nullptr;
  size_t n_guards = 0;
  bool installed = false;

  Slot* take();
  void install();
  void remove();
  static void set(Slot& slot, uintptr_t begin, uintptr_t end, int descriptor);

  // The handler's side: async-signal-safe.
  bool replace_lost_page(uintptr_t address);
  bool replace_what_was_truncated();
  static bool replace(Slot& slot, uintptr_t from, uintptr_t end);
  void pass_on(int signal, siginfo_t* info, void* context, bool is_fault) const;
};

namespace {

static_assert(std::atomic<uintptr_t>::is_always_lock_free &&
              std::atomic<void*>::is_always_lock_free);

GuardRegistry& registry() {
  static constinit GuardRegistry the_registry;
  return the_registry;
}

// Of this process to itself, as raise() does.
bool is_raised(const siginfo_t& info) {
#if defined(__linux__)
  return info.si_code == SI_TKILL && info.si_pid == getpid();
#else
  static_cast<void>(info);
  return false;
#endif
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  // The kernel's own codes are positive; si_addr means something only with them.
  const bool is_fault = info->si_code > 0;
  const bool saved =
      is_fault ? registry().replace_lost_page(reinterpret_cast<uintptr_t>(info->si_addr))
               // A handler that was installed after ours has seen the fault first, has put ours
               // back and raises the signal for us, like Python's faulthandler.
               : is_raised(*info) && registry().replace_what_was_truncated();
  errno = error;
  if (!saved) registry().pass_on(signal, info, context, is_fault);
}

bool is_same(const struct sigaction& a, const struct sigaction& b) {
  return a.sa_flags == b.sa_flags && a.sa_sigaction == b.sa_sigaction &&
         std::memcmp(&a.sa_mask, &b.sa_mask, sizeof a.sa_mask) == 0;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_bus_error;
}

}  // namespace

bool GuardRegistry::replace_lost_page(uintptr_t address) {
  for (Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    const uint32_t version = slot->version.load();
    const uintptr_t begin = slot->begin.load(), end = slot->end.load();
    if (version % 2 != 0 || slot->version.load() != version) continue;
    if (address < begin || address >= end) continue;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    return replace(*slot, address / page * page, end);
  }
  return false;
}

bool GuardRegistry::replace_what_was_truncated() {
  bool any = false;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    const uint32_t version = slot->version.load();
    const uintptr_t begin = slot->begin.load(), end = slot->end.load();
    const int descriptor = slot->descriptor.load();
    if (version % 2 != 0 || slot->version.load() != version) continue;
    struct stat status{};
    if (begin == end || slot->damaged.load() || fstat(descriptor, &status) != 0) continue;
    const auto size = static_cast<uintptr_t>(status.st_size);
    const uintptr_t lost_from = begin + (size + page - 1) / page * page;
    if (lost_from < end) any |= replace(*slot, lost_from, end);
  }
  return any;
}

// Zeros that take no memory, over all that follows: a file is cut at its end, and the next page
// would only come here again.
bool GuardRegistry::replace(Slot& slot, uintptr_t from, uintptr_t end) {
  slot.damaged.store(true);
  return mmap(reinterpret_cast<void*>(from), end - from, PROT_READ,
              MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void GuardRegistry::pass_on(int signal, siginfo_t* info, void* context, bool is_fault) const {
  const struct sigaction& action = before.load()->action;
  if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(signal, info, context);
  if (action.sa_handler == SIG_IGN && !is_fault) return;
  if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
    return action.sa_handler(signal);
  // The default ends the process: a fault comes again as soon as this returns, with its address.
  struct sigaction end_process{};
  end_process.sa_handler = SIG_DFL;
  sigaction(signal, &end_process, nullptr);
  if (!is_fault) raise(signal);
}

BusGuard::Slot* GuardRegistry::take() {
  for (Slot* slot = slots.load(); slot != nullptr; slot = slot->next)
    if (slot->begin.load() == slot->end.load()) return slot;
  auto slot = std::make_unique<Slot>();
  slot->next = slots.load();
  slots.store(slot.get());
  return slot.release();
}

void GuardRegistry::set(Slot& slot, uintptr_t begin, uintptr_t end, int descriptor) {
  slot.version.fetch_add(1);
  slot.begin.store(begin);
  slot.end.store(end);
  slot.descriptor.store(descriptor);
  slot.damaged.store(false);
  slot.version.fetch_add(1);
}

void GuardRegistry::install() {
  if (installed) return;  // also where somebody came after us and passes on what is not theirs
  struct sigaction current{};
  sigaction(SIGBUS, nullptr, &current);
  Before* known = all_before;
  while (known != nullptr && !is_same(known->action, current)) known = known->next;
  if (known == nullptr) known = all_before = new Before{current, all_before};
  before.store(known);
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
  installed = true;
}

void GuardRegistry::remove() {
  struct sigaction current{};
  sigaction(SIGBUS, nullptr, &current);
  if (!is_ours(current)) return;  // taking ours away would take away somebody else's
  sigaction(SIGBUS, &before.load()->action, nullptr);
  installed = false;
}

BusGuard::BusGuard(std::span<const std::byte> mapping, int descriptor) {
  GuardRegistry& guards = registry();
  const std::lock_guard lock(guards.mutex);
  slot_ = guards.take();
  const auto begin = reinterpret_cast<uintptr_t>(mapping.data());
  GuardRegistry::set(*slot_, begin, begin + mapping.size(), descriptor);
  if (guards.n_guards++ == 0) guards.install();
}

BusGuard::~BusGuard() {
  GuardRegistry& guards = registry();
  const std::lock_guard lock(guards.mutex);
  GuardRegistry::set(*slot_, 0, 0, -1);
  if (--guards.n_guards == 0) guards.remove();
}

bool BusGuard::damaged() const { return slot_->damaged.load(); }

}  // namespace akunu

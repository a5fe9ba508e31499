// Files that are cut while they are mapped: what is lost reads as zeros and is reported, faults
// elsewhere go where they went before, and nothing stays behind. Runs plain and under sanitizers.
#include "files/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "core/error.h"
#include "files/gguf/gguf.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

class TemporaryFile {
 public:
  explicit TemporaryFile(size_t size) {
    static int n_files = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("akunu-map-" + std::to_string(getpid()) + "-" + std::to_string(n_files++)))
                .string();
    std::ofstream(path_, std::ios::binary) << std::string(size, 'x');
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  void cut(size_t size) const { std::filesystem::resize_file(path_, size); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

char read_at(const MappedFile& file, size_t at) {
  return *reinterpret_cast<const volatile char*>(file.bytes().data() + at);
}

struct sigaction current_action() {
  struct sigaction action{};
  sigaction(SIGBUS, nullptr, &action);
  return action;
}

bool is_default() {
  const struct sigaction action = current_action();
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
}

void test_a_whole_file_is_not_damaged() {
  const TemporaryFile file(3 * kPage);
  const auto mapped = MappedFile::open(file.path());
  check(read_at(*mapped, 3 * kPage - 1) == 'x' && !mapped->damage(), "all is well");
  std::ofstream(file.path(), std::ios::app) << "more";
  check(!mapped->damage(), "what comes behind its end is nobody's loss");
}

void test_what_was_cut_off_reads_as_zeros() {
  const TemporaryFile file(64 * kPage);
  const auto mapped = MappedFile::open(file.path());
  file.cut(10 * kPage);
  check(read_at(*mapped, 10 * kPage - 1) == 'x', "what is left is there");
  check(read_at(*mapped, 40 * kPage) == 0 && read_at(*mapped, 64 * kPage - 1) == 0,
        "what is lost reads as zeros");
  check(read_at(*mapped, 20 * kPage) == 0, "also before the first place that was missed");
  const std::string damage = mapped->damage().value_or("");
  check(damage == file.path() + ": the file was cut from " + std::to_string(64 * kPage) + " to " +
                      std::to_string(10 * kPage) + " bytes while it was in use; load it again",
        damage);
  file.cut(64 * kPage);
  check(contains(mapped->damage().value_or(""), "could not be read while it was in use"),
        "a file that grows back is damaged all the same");
  check(!MappedFile::open(file.path())->damage(), "mapped anew it is whole");
}

void test_a_cut_is_seen_without_a_fault() {
  const TemporaryFile file(kPage);
  const auto mapped = MappedFile::open(file.path());
  file.cut(kPage - 1);
  check(read_at(*mapped, kPage - 1) == 0, "the rest of the last page reads as zeros");
  check(contains(mapped->damage().value_or(""), "was cut from"), "and it is reported");
}

void test_many_threads_may_fault_at_once() {
  const TemporaryFile file(512 * kPage);
  const auto mapped = MappedFile::open(file.path());
  const TemporaryFile whole(512 * kPage);
  const auto untouched = MappedFile::open(whole.path());
  std::atomic<bool> go{false};
  std::atomic<uint64_t> n_read{0};
  std::vector<std::thread> readers;
  for (size_t offset = 0; offset < 4; ++offset)
    readers.emplace_back([&, offset] {
      while (!go.load()) std::this_thread::yield();
      for (size_t page = offset * 101; page < 512; ++page)
        n_read += read_at(*mapped, page * kPage) != 1;
    });
  std::vector<std::thread> openers;  // slots change beside the faults
  for (int i = 0; i < 2; ++i)
    openers.emplace_back([&] {
      while (!go.load()) std::this_thread::yield();
      for (int round = 0; round < 50; ++round) MappedFile::open(whole.path());
    });
  file.cut(0);
  go.store(true);
  for (std::thread& thread : readers) thread.join();
  for (std::thread& thread : openers) thread.join();
  check(n_read == 512 + 411 + 310 + 209, "every read returned");
  check(mapped->damage() && !untouched->damage(), "damage is told of the file that has it");
}

void test_gguf_says_that_it_was_cut() {
  const TemporaryFile file(4096);
  {
    std::ofstream out(file.path(), std::ios::binary);
    const uint64_t header[] = {uint64_t{3} << 32 | 0x46554747u, 0, 0};
    out.write(reinterpret_cast<const char*>(header), sizeof header);
  }
  const GgufFile opened = GgufFile::open(file.path());
  check(!opened.damage(), "a whole file");
  file.cut(3);
  check(contains(opened.damage().value_or(""), "was cut from 24 to 3 bytes"), "and a cut one");
}

void test_nothing_stays_behind() {
  check(is_default(), "without files there is no handler of ours");
  const TemporaryFile file(kPage);
  {
    const auto one = MappedFile::open(file.path());
    const auto two = MappedFile::open(file.path());
    check(!is_default(), "with one there is");
  }
  check(is_default(), "and it goes with the last");
}

std::atomic<int> n_handled{0};
void* repair_from = nullptr;

// Somebody else's way to live with SIGBUS: puts memory where it was missed.
void repair(int, siginfo_t* info, void*) {
  if (info->si_code > 0)
    mmap(repair_from, kPage, PROT_READ, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
  n_handled.fetch_add(1);
}

void test_other_faults_go_to_the_handler_before() {
  struct sigaction theirs{};
  theirs.sa_sigaction = repair;
  theirs.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &theirs, nullptr);
  const TemporaryFile ours(kPage), other(kPage);
  {
    const auto mapped = MappedFile::open(ours.path());
    FileDescriptor descriptor(::open(other.path().c_str(), O_RDONLY));
    repair_from = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, descriptor.number(), 0);
    other.cut(0);
    check(*static_cast<volatile char*>(repair_from) == 0 && n_handled == 1,
          "a fault in memory that is not ours");
    raise(SIGBUS);
    check(n_handled == 2, "a signal that somebody sends");
    check(!mapped->damage(), "and our file is whole");
    munmap(repair_from, kPage);
  }
  check(current_action().sa_sigaction == repair, "the handler is put back");
  struct sigaction none{};
  none.sa_handler = SIG_DFL;
  sigaction(SIGBUS, &none, nullptr);
}

// As Python's faulthandler does, if it is enabled after a model was loaded.
struct sigaction handler_before{};
void report_and_pass_on(int) {
  n_handled.fetch_add(1);
  sigaction(SIGBUS, &handler_before, nullptr);
  raise(SIGBUS);
}

void test_a_handler_that_came_after_ours() {
  const TemporaryFile file(8 * kPage);
  n_handled = 0;
  {
    const auto mapped = MappedFile::open(file.path());
    struct sigaction theirs{};
    theirs.sa_handler = report_and_pass_on;
    theirs.sa_flags = SA_NODEFER;
    sigaction(SIGBUS, &theirs, &handler_before);
    file.cut(kPage);
    check(read_at(*mapped, 5 * kPage) == 0 && n_handled == 1, "it reports and passes on to ours");
    check(mapped->damage().has_value(), "which saves the thread");
    sigaction(SIGBUS, &theirs, &handler_before);
  }
  check(current_action().sa_handler == report_and_pass_on, "a handler on top of ours stays there");
  sigaction(SIGBUS, &handler_before, nullptr);
  MappedFile::open(file.path());
  check(is_default(), "ours goes once it is on top again");
}

// What happens in a child that `run` is to end by a signal.
template <class Run>
int signal_that_ends(Run&& run) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    run();
    _exit(0);
  }
  int state = 0;
  waitpid(child, &state, 0);
  return WIFSIGNALED(state) ? WTERMSIG(state) : 0;
}

void test_faults_that_nobody_handles_end_the_process() {
  const TemporaryFile ours(kPage), other(kPage);
  const auto mapped = MappedFile::open(ours.path());
  check(signal_that_ends([&] {
          FileDescriptor descriptor(::open(other.path().c_str(), O_RDONLY));
          void* memory = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, descriptor.number(), 0);
          other.cut(0);
          _exit(*static_cast<volatile char*>(memory));
        }) == SIGBUS,
        "a fault outside our files");
  check(signal_that_ends([] {
          kill(getpid(), SIGBUS);
          std::this_thread::sleep_for(std::chrono::seconds(5));
        }) == SIGBUS,
        "a signal from a process");
  check(signal_that_ends([] { raise(SIGBUS); }) == SIGBUS, "a signal to itself");
  check(signal_that_ends([&] {
          ours.cut(0);
          _exit(read_at(*mapped, 0));
        }) == 0,
        "a forked child is guarded too");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  struct sigaction none{};  // sanitizers have a handler of their own
  none.sa_handler = SIG_DFL;
  sigaction(SIGBUS, &none, nullptr);
  test_nothing_stays_behind();
  test_faults_that_nobody_handles_end_the_process();
  test_a_whole_file_is_not_damaged();
  test_what_was_cut_off_reads_as_zeros();
  test_a_cut_is_seen_without_a_fault();
  test_gguf_says_that_it_was_cut();
  test_other_faults_go_to_the_handler_before();
  test_a_handler_that_came_after_ours();
  test_many_threads_may_fault_at_once();
  test_nothing_stays_behind();
  return summary();
}

#include "cpu/isa_level.h"

#include <array>
#include <cstdlib>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "core/error.h"
#include "core/system_file.h"

namespace akunu::cpu {

// The levels' types, each defined by its header in isa/.
struct Generic;
struct Avx2;
struct AvxVnni;
struct AvxVnniEmulated;
struct Avx512;
struct Amx;
struct AmxEmulated;
struct Neon;
struct I8mm;

namespace {

bool always() { return true; }

#if defined(__x86_64__)
struct CpuidLeaf {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

CpuidLeaf cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  CpuidLeaf result;
  __get_cpuid_count(leaf, subleaf, &result.a, &result.b, &result.c,
                    &result.d);  // zeros if too high
  return result;
}

// Which register state the operating system saves when it switches threads.
uint64_t saved_state() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

constexpr uint64_t kXmmAndYmm = 0x6;

[[maybe_unused]] bool has_avx2() {
  constexpr uint32_t kFma = 1u << 12, kOsxsave = 1u << 27, kAvx = 1u << 28, kF16c = 1u << 29;
  constexpr uint32_t kAvx2 = 1u << 5;
  const uint32_t features = cpuid(1).c;
  constexpr uint32_t kNeeded = kFma | kOsxsave | kAvx | kF16c;
  if ((features & kNeeded) != kNeeded || (cpuid(7).b & kAvx2) == 0) return false;
  return (saved_state() & kXmmAndYmm) == kXmmAndYmm;  // legal only after OSXSAVE was seen
}

[[maybe_unused]] bool has_avxvnni() {
  constexpr uint32_t kAvxVnni = 1u << 4;
  return has_avx2() && (cpuid(7, 1).a & kAvxVnni) != 0;
}

[[maybe_unused]] bool has_avx512() {
  constexpr uint32_t kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31;
  constexpr uint32_t kVnni = 1u << 11;
  constexpr uint64_t kMasksAndZmm = 0xe0;
  if (!has_avx2()) return false;
  const CpuidLeaf features = cpuid(7);
  constexpr uint32_t kNeeded = kF | kDq | kBw | kVl;
  if ((features.b & kNeeded) != kNeeded || (features.c & kVnni) == 0) return false;
  return (saved_state() & kMasksAndZmm) == kMasksAndZmm;
}

// A program has to ask before it may use the registers; a system that knows no such question, or a
// thread with too small a stack for signals, is a no.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

[[maybe_unused]] bool has_avx512_bf16() {
  constexpr uint32_t kAvx512Bf16 = 1u << 5;
  return has_avx512() && (cpuid(7, 1).a & kAvx512Bf16) != 0;
}

[[maybe_unused]] bool has_amx() {
  constexpr uint32_t kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
  constexpr uint64_t kTileState = 0x60000;
  constexpr uint32_t kNeeded = kAmxBf16 | kAmxTile;
  if (!has_avx512_bf16() || (cpuid(7).d & kNeeded) != kNeeded) return false;
  return (saved_state() & kTileState) == kTileState && may_use_tiles();
}
#elif defined(__aarch64__)
#if defined(__APPLE__)
bool has_feature(const char* name) {
  int present = 0;
  size_t size = sizeof(present);
  return sysctlbyname(name, &present, &size, nullptr, 0) == 0 && present != 0;
}
#endif

[[maybe_unused]] bool has_neon() {
#if defined(__APPLE__)
  return has_feature("hw.optional.arm.FEAT_DotProd");
#elif defined(__linux__)
  // The atomics of ARMv8.1 are used by compilers unasked; floats need nothing beyond ARMv8.
  constexpr unsigned long kAtomics = 1ul << 8, kDotProducts = 1ul << 20;
  constexpr unsigned long kNeeded = kAtomics | kDotProducts;
  return (getauxval(AT_HWCAP) & kNeeded) == kNeeded;
#else
  return false;
#endif
}

[[maybe_unused]] bool has_i8mm() {
  if (!has_neon()) return false;
#if defined(__APPLE__)
  return has_feature("hw.optional.arm.FEAT_I8MM");
#elif defined(__linux__)
  constexpr unsigned long kInt8Matrices = 1ul << 13;
  return (getauxval(AT_HWCAP2) & kInt8Matrices) != 0;
#else
  return false;
#endif
}
#endif

// A level whose kernels are part of this build or, where AKUNU_CPU_LEVELS left it out, are not.
template <class Isa, bool kIsBuilt>
constexpr IsaLevel level(IsaLevel level) {
  if constexpr (kIsBuilt) {
    level.find = find_kernel<Isa>;
    level.probes = probes<Isa>;
  }
  return level;
}

// AKUNU_HAS_X: 1 where this build has the level X.
constexpr std::array kLevels{
    level<Generic, true>({"generic", "nothing special", always}),
#if defined(__x86_64__)
    level<Avx2, AKUNU_HAS_Avx2>(
        {"avx2", "AVX2, FMA and F16C", has_avx2, ActivationKind::q8_32, ActivationKind::q16_32}),
    level<AvxVnni, AKUNU_HAS_AvxVnni>({"avxvnni", "what avx2 needs, and AVX-VNNI", has_avxvnni,
                                       ActivationKind::q8_32, ActivationKind::q16_32}),
    level<AvxVnniEmulated, AKUNU_HAS_AvxVnniEmulated>({"avxvnni-emulated", "what avx512 needs",
                                                       has_avx512, ActivationKind::q8_32,
                                                       ActivationKind::q16_32, true}),
    level<Avx512, AKUNU_HAS_Avx512>({"avx512", "AVX-512 F, BW, DQ, VL and VNNI", has_avx512,
                                     ActivationKind::q8_32, ActivationKind::q16_32}),
    level<AmxEmulated, AKUNU_HAS_AmxEmulated>({"amx-emulated", "what avx512 needs, and AVX512_BF16",
                                               has_avx512_bf16, ActivationKind::bf16,
                                               ActivationKind::bf16_pair, true}),
    level<Amx, AKUNU_HAS_Amx>({"amx", "what avx512 needs, AVX512_BF16 and AMX for bf16", has_amx,
                               ActivationKind::bf16, ActivationKind::bf16_pair}),
#elif defined(__aarch64__)
    level<Neon, AKUNU_HAS_Neon>({"neon", "ARMv8.2 with dot products of int8", has_neon}),
    level<I8mm, AKUNU_HAS_I8mm>(
        {"i8mm", "what neon needs, and products of int8 matrices (ARMv8.6)", has_i8mm}),
#endif
};

std::string names(bool only_available) {
  std::string text;
  for (const IsaLevel& info : kLevels) {
    if (!info.is_built() || (only_available && !info.is_available())) continue;
    text += (text.empty() ? "" : ", ") + std::string(info.name);
  }
  return text;
}

// Panels of weights up to this many bytes are prefetched into L1: the second one answers late while
// memory is busy. A Zen 4 has 32 KiB for two of them, for those of a second weight (gate and up)
// and for the input, and loses up to half where they don't fit; a Zen 5 gains by larger ones too, a
// Zen 3 not by small ones. Others were measured with L2 only (docs/decisions/prefetching-on-the-cpu.md).
uint64_t l1_panel_bytes() {
#if defined(__x86_64__)
  const CpuidLeaf vendor = cpuid(0);
  const uint32_t version = cpuid(1).a;
  constexpr uint32_t kAuth = 0x68747541, kEnti = 0x69746e65, kCamd = 0x444d4163;
  if (vendor.b != kAuth || vendor.d != kEnti || vendor.c != kCamd) return 0;
  constexpr uint32_t kZen3And4 = 0x19, kZen5 = 0x1a;  // of the former, only a Zen 4 has AVX-512
  constexpr uint64_t kFirstCache = 32 * 1024;
  const uint32_t family = (version >> 8 & 15) + (version >> 20 & 255);
  if (family == kZen5) return UINT64_MAX;
  return family == kZen3And4 && has_avx512() ? kFirstCache / 4 : 0;
#else
  return 0;
#endif
}

}  // namespace

std::span<const IsaLevel> isa_levels() { return kLevels; }

IsaChoice choose_isa_level(std::string_view forced) {
  std::string source = "the caller";
  const char* variable = std::getenv("AKUNU_CPU_ISA");
  if (forced.empty() && variable != nullptr && *variable != '\0') {
    forced = variable;
    source = "AKUNU_CPU_ISA";
  }
  if (forced.empty()) {
    const IsaLevel* best = &kLevels.front();
    for (const IsaLevel& info : kLevels)
      if (info.can_run() && !info.is_emulated) best = &info;
    return {best, "the best of this build that CPU and operating system allow; it needs " +
                      std::string(best->needs)};
  }
  for (const IsaLevel& info : kLevels) {
    if (info.name != forced) continue;
    if (!info.is_built())
      throw ArgumentError("instruction set level \"" + std::string(forced) + "\" (from " + source +
                          ") is not in this build, which has " + names(false) +
                          "; one with all of them: pip install --config-settings " +
                          "cmake.define.AKUNU_CPU_LEVELS=all .");
    if (info.is_available()) return {&info, "asked for by " + source};
    throw ArgumentError("instruction set level \"" + std::string(forced) + "\" (from " + source +
                        ") needs " + std::string(info.needs) +
                        ", which this CPU or its operating system does not offer; " +
                        "available here: " + names(true));
  }
  throw ArgumentError("instruction set level \"" + std::string(forced) + "\" (from " + source +
                      ") is not one of " + names(false) + "; available here: " + names(true));
}

std::optional<Kernel> find_kernel(const IsaLevel& level, const KernelRequest& request) {
  KernelKey key{request.operation};
  key.activation = static_cast<int32_t>(request.activation);
  for (size_t i = 0; i < request.weights.size(); ++i)
    if (request.weights[i]) key.weights[i] = static_cast<int32_t>(*request.weights[i]);
  key.cache = static_cast<int32_t>(request.cache);
  // Queries of prompts meet caches of halves as inputs do weights of halves, but beside weights in F32.
  const bool attends =
      request.operation == Operation::attention || request.operation == Operation::sink_attention;
  if (attends && request.row_class == RowClass::many && request.cache == Format::f16 &&
      request.activation != ActivationKind::f32 &&
      level.prompts_with_halves == ActivationKind::q16_32)
    key.query = static_cast<int32_t>(ActivationKind::q16_32);
  // Slices of whole heads are for prompts: of a generated row's weights they would be too few to be
  // shared evenly.
  if (request.operation == Operation::matmul_rope_kv_write && request.row_class != RowClass::many)
    return std::nullopt;
  Kernel kernel = {};
  if (!level.find(key, kernel)) return std::nullopt;
  static const uint64_t largest = l1_panel_bytes();
  kernel.l1_panel_bytes = largest;
  return kernel;
}

std::string cpu_name() {
#if defined(__x86_64__)
  std::array<CpuidLeaf, 3> brand;
  if (cpuid(0x80000000u).a >= 0x80000004u) {
    for (uint32_t i = 0; i < 3; ++i) brand[i] = cpuid(0x80000002u + i);
    char text[sizeof brand + 1] = {};
    std::memcpy(text, brand.data(), sizeof brand);
    std::string name(text);
    const size_t first = name.find_first_not_of(' ');
    const size_t last = name.find_last_not_of(' ');
    if (first != std::string::npos) return name.substr(first, last - first + 1);
  }
  return "x86-64";
#else
  const std::string text = read_system_file("/proc/cpuinfo").value_or("");
  for (const std::string_view line : split(text, '\n'))
    if (const size_t colon = line.find(": ");
        line.starts_with("model name") && colon != std::string_view::npos)
      return std::string(line.substr(colon + 2));
  return "64-bit CPU";
#endif
}

}  // namespace akunu::cpu

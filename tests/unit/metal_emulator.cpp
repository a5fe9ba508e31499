// The emulator of Metal kernels: what it computes, and that it reports what is wrong. The kernels
// are in metal_emulator.metal.
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include "metal/emulator/executor.h"
#include "unit/check.h"
#include "unit/half.h"

using namespace akunu::metal::emulator;
using namespace akunu::test;

namespace {

constexpr Level kLevels[] = {Level::plain, Level::checked};

template <class T>
BoundBuffer bind(std::vector<T>& data, std::string_view label = {}, uint64_t offset = 0) {
  return {reinterpret_cast<std::byte*>(data.data()), data.size() * sizeof(T), offset, label};
}
template <class T>
BoundBuffer bind_one(T& value) {
  return {reinterpret_cast<std::byte*>(&value), sizeof(T), 0, {}};
}

Launch launch_of(std::string_view name, std::vector<BoundBuffer> buffers, uint32_t threadgroups = 1,
                 uint32_t threads = 32) {
  Launch launch;
  launch.function = find_function(name);
  check(launch.function != nullptr, name);
  launch.label = "label";
  for (size_t i = 0; i < buffers.size(); ++i) launch.buffers[i] = buffers[i];
  launch.threadgroups = {threadgroups, 1, 1};
  launch.threads = {threads, 1, 1};
  return launch;
}

// The error of a launch, or an empty string.
std::string error_of(const Launch& launch, Level level, uint64_t seed = 1) {
  Executor executor(level, seed);
  return message_of<EmulatorError>([&] { executor.run(launch); });
}

void check_holds(const std::string& message, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts)
    check(contains(message, part), "\"" + message + "\" holds \"" + std::string(part) + "\"");
}

void check_error(const Launch& launch, Level level, std::initializer_list<std::string_view> parts) {
  check_holds(error_of(launch, level), parts);
}

void check_right(const Launch& launch, Level level) {
  const std::string message = error_of(launch, level);
  check(message.empty(), "no error: " + message);
}

void test_library() {
  check(find_function("combine") == nullptr, "a template has no name of its own");
  check(find_function("narrow") == nullptr && find_function("narrow_to_half") != nullptr,
        "a host name");
  const Function* function = find_function("combine_plus_1");
  const auto arguments = arguments_of(*function);
  check(arguments.size() == 4, "built-ins are no arguments");
  check(arguments[0].name == "input" && arguments[0].index == 0 && arguments[0].is_read_only &&
            arguments[0].element_bytes == 4 && arguments[0].alignment == 4,
        "device const float*");
  check(!arguments[1].is_read_only && arguments[1].index == 1, "device float*");
  check(arguments[2].index == 25 && arguments[2].is_read_only && arguments[2].element_bytes == 16 &&
            arguments[2].alignment == 16,
        "constant struct&");
  check(arguments[3].kind == Argument::Kind::threadgroup && arguments[3].index == 0, "tile");
  check(constants_of(*function).empty(), "only constants that the function uses");
  const auto constants = constants_of(*find_function("constants"));
  check(constants.size() == 2 && constants[0].index == 1 && constants[0].name == "kFactor" &&
            constants[0].bytes == 4 && !constants[0].is_bool,
        "a constant behind another");
  check(constants[1].index == 2 && constants[1].is_bool, "a bool");
  std::set<std::string_view> names;
  for (const Function* each : functions()) names.insert(name_of(*each));
  check(names.size() == functions().size() && names.contains("widen_char"), "names");
}

void test_threadgroups(Level level) {
  std::vector<float> input(256), out(256);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 7) + 1.0f;
  struct {
    float factor = 2.0f;
    uint32_t padding[3] = {};
  } scale;
  for (const bool is_plus : {true, false}) {
    Launch launch =
        launch_of(is_plus ? "combine_plus_1" : "combine_times_2", {bind(input), bind(out)}, 2, 128);
    launch.buffers[25] = bind_one(scale);
    launch.threadgroup_bytes[0] = 512;
    check_right(launch, level);
    for (size_t group = 0; group < 2; ++group) {
      for (size_t simdgroup = 0; simdgroup < 4; ++simdgroup) {
        float expected = 0.0f;  // whole numbers: the order of additions does not matter
        for (size_t lane = 0; lane < 32; ++lane) {
          const auto at = [&](size_t i) { return input[group * 128 + i % 128]; };
          const size_t i = simdgroup * 32 + lane;
          expected += is_plus ? at(i) + at(i + 1) : at(i) * at(i + 1) * at(i + 1) * at(i + 2);
        }
        for (size_t lane = 0; lane < 32; ++lane) {
          check(out[group * 128 + simdgroup * 32 + lane] == 2.0f * expected, "sum of neighbours");
        }
      }
    }
  }
}

void test_half(Level level) {
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<float> floats(65536);
  check_right(launch_of("widen_half", {bind(halves), bind(floats)}, 64, 1024), level);
  bool is_exact = true;
  for (size_t i = 0; i < halves.size(); ++i) {
    const double expected = half_value(halves[i]);
    is_exact =
        is_exact && (std::isnan(expected) ? std::isnan(floats[i])
                                          : static_cast<double>(floats[i]) == expected &&
                                                std::signbit(floats[i]) == ((i & 0x8000) != 0));
  }
  check(is_exact, "every half as a float");

  // Between each half and the next: a bit below the middle, the middle, a bit above.
  std::vector<uint16_t> rounded(65536);
  for (const int side : {-1, 0, 1}) {
    for (uint32_t i = 0; i < 65536; ++i) {
      const uint16_t magnitude = static_cast<uint16_t>(i & 0x7fff);
      const double low = half_value(magnitude);
      const double high =
          magnitude >= 0x7bff ? 65536.0 : half_value(static_cast<uint16_t>(magnitude + 1));
      float value =
          magnitude >= 0x7c00 ? static_cast<float>(low) : static_cast<float>((low + high) / 2);
      if (side != 0 && magnitude < 0x7c00) value = std::nextafter(value, side < 0 ? 0.0f : 1e9f);
      floats[i] = i & 0x8000 ? -value : value;
    }
    check_right(launch_of("narrow_to_half", {bind(floats), bind(rounded)}, 64, 1024), level);
    bool is_nearest = true;
    for (uint32_t i = 0; i < 65536; ++i) {
      const uint32_t magnitude = i & 0x7fff;
      const uint32_t up = side > 0 || (side == 0 && magnitude % 2 == 1) ? 1 : 0;
      const uint32_t expected = magnitude >= 0x7c00 ? magnitude : magnitude + up;
      const uint32_t found = rounded[i] & 0x7fffu;
      is_nearest = is_nearest && (magnitude > 0x7c00 ? found > 0x7c00 : found == expected) &&
                   (rounded[i] & 0x8000) == (i & 0x8000);
    }
    check(is_nearest, "to the nearest half, ties to even");
  }
}

void test_constants(Level level) {
  std::vector<uint32_t> out(32), bias(32, 100);
  Launch launch = launch_of("constants", {bind(out)});
  const ConstantValue without[] = {{1, 21}, {2, 0}};
  launch.constants = without;
  check_right(launch, level);
  check(out[5] == 42 + 4, "a constant computed of another, and a table");
  const ConstantValue with[] = {{1, 1}, {2, 1}};
  launch.constants = with;
  check_error(launch, level, {"kernel constants (label)", "buffer 1 (bias) is not bound"});
  launch.buffers[1] = bind(bias);
  check_right(launch, level);
  check(out[5] == 106, "an argument that a constant brings in");

  const ConstantValue one[] = {{1, 1}};
  launch.constants = one;
  check_error(launch, level, {"function constant 2 (kHasBias) is not set"});
  const ConstantValue unknown[] = {{1, 1}, {2, 1}, {5, 1}};
  launch.constants = unknown;
  check_error(launch, level, {"function constant 5 is set, but not used"});
  const ConstantValue no_bool[] = {{1, 1}, {2, 2}};
  launch.constants = no_bool;
  check_error(launch, level, {"function constant 2 (kHasBias) is a bool"});
}

void test_built_ins(Level level) {
  const uint32_t groups[3] = {3, 2, 2}, threads[3] = {8, 4, 2};
  const uint32_t grid[3] = {24, 8, 4};
  std::vector<uint32_t> out(8 * 24 * 8 * 4);
  Launch launch = launch_of("built_ins", {bind(out)});
  launch.threadgroups = {3, 2, 2};
  launch.threads = {8, 4, 2};
  check_right(launch, level);
  bool is_right = true;
  for (uint32_t z = 0; z < grid[2]; ++z) {
    for (uint32_t y = 0; y < grid[1]; ++y) {
      for (uint32_t x = 0; x < grid[0]; ++x) {
        const uint32_t* own = &out[8 * ((z * grid[1] + y) * grid[0] + x)];
        const uint32_t group =
            (z / threads[2] * groups[1] + y / threads[1]) * groups[0] + x / threads[0];
        const uint32_t index =
            (z % threads[2] * threads[1] + y % threads[1]) * threads[0] + x % threads[0];
        is_right = is_right && own[0] == group && own[1] == index && own[2] == index &&
                   own[3] == index / 32 && own[4] == index % 32 && own[5] == 2 && own[6] == 32 &&
                   own[7] == 240804;
      }
    }
  }
  check(is_right, "built-in arguments");
}

void test_vocabulary(Level level) {
  std::vector<float> input = {1.0f, 2.0f, 3.0f, 4.0f, 0, 0, 0, 0};
  alignas(16) float aligned[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  std::vector<float> out(16);
  Launch launch = launch_of("vectors", {bind_one(aligned), bind(out)});
  // All lanes write the same numbers, which is a race; one threadgroup of level plain runs it.
  if (level == Level::plain) {
    check_right(launch, level);
    const float expected[16] = {10, 6,   3, 1, 1.5f, 3, 20, 7, 1, 3, 3, 4, 24, 1.5f + 3 + 20 + 2,
                                3,  5.5f};
    for (size_t i = 0; i < 16; ++i) {
      check(out[i] == expected[i], "vector " + std::to_string(i) + ": " + std::to_string(out[i]));
    }
    std::vector<uint32_t> words(8);
    check_right(launch_of("numbers", {bind(words), bind(out)}), level);
    const uint32_t whole[7] = {8, 31, 15, 3, 5, 3, 32};
    for (size_t i = 0; i < 7; ++i) check(words[i] == whole[i], "number " + std::to_string(i));
    const double real[14] = {std::exp(1.0),
                             0.125,
                             std::log(2.0),
                             3,
                             std::tanh(0.5),
                             std::sin(1.0),
                             std::cos(1.0),
                             1.0 / 3,
                             std::sqrt(2.0),
                             0.5,
                             std::sqrt(2.0),
                             0x1p-46,
                             3,
                             2};
    for (size_t i = 0; i < 14; ++i) {
      check(std::abs(static_cast<double>(out[i]) - real[i]) <= 1.2e-7 * real[i],
            "function " + std::to_string(i));
    }
  } else {
    check_error(launch, level, {"kernel vectors", "writes byte", "wrote"});
  }
}

void test_simd_functions(Level level) {
  std::vector<uint32_t> out(15 * 32);
  check_right(launch_of("simd_functions", {bind(out)}), level);
  const auto own = [](uint32_t lane) { return lane * lane + 1; };
  uint32_t total = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) total += own(lane);
  uint32_t before = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t expected[15] = {total,
                                   own(31),
                                   own(0),
                                   own(31 - lane),
                                   own(lane ^ 5),
                                   lane < 3 ? own(lane) : own(lane - 3),
                                   lane > 28 ? own(lane) : own(lane + 3),
                                   own(7),
                                   own(0),
                                   before + own(lane),
                                   before,
                                   1,
                                   0x49249249u,
                                   8,
                                   496};
    before += own(lane);
    for (uint32_t n = 0; n < 15; ++n) {
      check(out[32 * n + lane] == expected[n], "SIMD function " + std::to_string(n));
    }
  }
}

// Every half by its number. Both zeros are 0: the positive one stays.
std::map<double, uint16_t> half_bits() {
  std::map<double, uint16_t> bits;
  for (uint32_t i = 0; i < 0x7c00; ++i) {
    bits[half_value(static_cast<uint16_t>(i))] = static_cast<uint16_t>(i);
    if (i > 0)
      bits[half_value(static_cast<uint16_t>(i | 0x8000))] = static_cast<uint16_t>(i | 0x8000);
  }
  return bits;
}

template <class T, class Store, class Load>
void test_matrices(std::string_view kernel, Level level, Store store, Load load) {
  std::vector<T> a(64), b(128), out(192);
  for (size_t i = 0; i < 64; ++i) a[i] = store(static_cast<int>(i * 7 % 11) - 5);
  for (size_t i = 0; i < 128; ++i) b[i] = store(static_cast<int>(i * 5 % 13) - 6);
  Launch launch = launch_of(kernel, {bind(a), bind(b), bind(out)});
  launch.threadgroup_bytes[0] = 512;
  check_right(launch, level);
  for (size_t row = 0; row < 8; ++row) {
    for (size_t column = 0; column < 8; ++column) {
      double sum = 0.0;  // small whole numbers
      for (size_t k = 0; k < 8; ++k) sum += load(a[row * 8 + k]) * load(b[k * 16 + 8 + column]);
      const size_t i = row * 8 + column;
      check(load(out[i]) == sum + load(a[i]), "product and addend");
      check(load(out[64 + i]) == load(b[column * 16 + 8 + row]), "transposed");
      check(load(out[128 + i]) == sum, "product");
    }
  }
}

void test_matrices(Level level) {
  test_matrices<float>(
      "matrices_float", level, [](int value) { return static_cast<float>(value); },
      [](float value) { return static_cast<double>(value); });
  const auto bits = half_bits();
  test_matrices<uint16_t>(
      "matrices_half", level, [&](int value) { return bits.at(value); },
      [](uint16_t value) { return half_value(value); });
}

void test_atomics(Level level) {
  std::vector<uint32_t> sums(4);
  std::vector<int32_t> bounds(2);
  Launch launch = launch_of("atomics", {bind(sums), bind(bounds)}, 3, 64);
  launch.threadgroup_bytes[0] = 16;
  check_right(launch, level);
  check(sums[0] == 192, "lanes counted in threadgroup memory");
  check(sums[1] == 0xffffffffu, "or");
  check(bounds[0] == 151 && bounds[1] == -40, "signed bounds");
  check(sums[2] >= 1 && sums[2] <= 192 && sums[3] == 191, "one exchange succeeds");
}

void test_order() {
  std::set<std::vector<uint32_t>> orders;
  std::set<uint32_t> first_groups;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<uint32_t> next(1), out(256);
    Launch launch = launch_of("order", {bind(next), bind(out)}, 4, 64);
    Executor executor(Level::plain, seed);
    executor.run(launch);
    check(std::set<uint32_t>(out.begin(), out.end()).size() == 256, "every lane runs once");
    orders.insert(out);
    first_groups.insert(out[0] / 64);
    std::vector<uint32_t> second_next(1), second(256);
    Launch again = launch_of("order", {bind(second_next), bind(second)}, 4, 64);
    executor.run(again);
    check(second != out, "another order at every launch");
    std::vector<uint32_t> same_next(1), same(256);
    Executor twin(Level::plain, seed);
    twin.run(launch_of("order", {bind(same_next), bind(same)}, 4, 64));
    check(same == out, "a seed is an order");
  }
  check(orders.size() == 8 && first_groups.size() > 1, "another order with every seed");
}

void test_meetings(Level level) {
  std::vector<uint32_t> out(128);
  check_error(launch_of("half_a_barrier", {bind(out)}), level,
              {"kernel half_a_barrier (label): threadgroup (0, 0, 0): lane ",
               "threadgroup_barrier at ", "metal_emulator.metal:", "returned"});
  uint32_t n = 40;
  check_error(launch_of("early_return", {bind(out), bind_one(n)}, 1, 64), level,
              {"threadgroup_barrier", "returned"});
  n = 32;
  check_error(launch_of("early_return", {bind(out), bind_one(n)}, 1, 64), level,
              {"threadgroup_barrier", "returned", "SIMD-group"});
  n = 64;
  check_right(launch_of("early_return", {bind(out), bind_one(n)}, 1, 64), level);
  check_error(launch_of("two_barriers", {bind(out)}, 1, 64), level,
              {"reached threadgroup_barrier", "SIMD-group", "waits in threadgroup_barrier"});
  check_error(launch_of("divergent_sum", {bind(out)}), level,
              {"simd_sum at", "simd_max at", "waits in"});
  check_error(launch_of("missing_round", {bind(out)}), level,
              {"lane 7", "simdgroup_barrier", "returned"});
  std::vector<float> floats(64);
  check_error(launch_of("divergent_matrix", {bind(floats)}), level, {"lane 11", "simdgroup_store"});
  check_error(launch_of("shuffle_outside", {bind(out)}), level,
              {"lane 31 in simd_shuffle at", "reads a lane that does not exist"});
  // An executor goes on after an error.
  Executor executor(level);
  check(!message_of<EmulatorError>([&] {
           executor.run(launch_of("half_a_barrier", {bind(out)}));
         }).empty(),
        "an error");
  executor.end_stage();
  executor.run(launch_of("write_all", {bind(out)}));
  check(out[31] == 31, "the launch after an error");
}

void test_validation(Level level) {
  std::vector<float> input(64), out(64);
  struct alignas(16) {
    float factor[5] = {1.0f};
  } scale;
  const auto good = [&] {
    Launch launch = launch_of("combine_plus_1", {bind(input), bind(out)}, 2, 32);
    launch.buffers[25] = {reinterpret_cast<std::byte*>(&scale), 16, 0, {}};
    launch.threadgroup_bytes[0] = 128;
    return launch;
  };
  check_right(good(), level);
  const auto is_refused = [&](auto change, std::string_view part) {
    Launch launch = good();
    change(launch);
    check_error(launch, level, {"kernel combine_plus_1 (label): ", part});
  };
  is_refused([](Launch& l) { l.buffers[0].contents = nullptr; }, "buffer 0 (input) is not bound");
  is_refused([](Launch& l) { l.buffers[1].offset = 257; }, "buffer 1 (out) is bound at byte 257");
  is_refused([](Launch& l) { l.buffers[1].offset = 2; }, "no multiple of 4");
  is_refused([](Launch& l) { l.buffers[25].offset = 4, l.buffers[25].size = 20; },
             "buffer 25 (scale) is bound at byte 4, no multiple of 16");
  is_refused([](Launch& l) { l.buffers[25].size = 12; }, "needs 16 bytes, 12 are bound");
  is_refused([](Launch& l) { l.threadgroup_bytes[0] = 0; }, "threadgroup memory 0 (tile) has no");
  is_refused([](Launch& l) { l.threadgroup_bytes[0] = 136; }, "136 bytes, no multiple of 16");
  is_refused([](Launch& l) { l.threadgroup_bytes[1] = 16; }, "threadgroup memory 1 is no argument");
  is_refused([](Launch& l) { l.threadgroup_bytes[0] = 32768 + 16; }, "32768 is all there is");
  is_refused([](Launch& l) { l.threads = {0, 1, 1}; }, "0 threads per threadgroup");
  is_refused([](Launch& l) { l.threads = {48, 1, 1}; }, "48 threads per threadgroup");
  is_refused([](Launch& l) { l.threads = {1024, 2, 1}; }, "2048 threads per threadgroup");
  is_refused([](Launch& l) { l.threadgroups = {1, 0, 1}; }, "no threadgroups");
  Launch nothing;
  check_error(nothing, level, {"without a function"});
}

void test_bounds() {
  constexpr Level level = Level::checked;
  std::vector<uint32_t> input(8), out(32);
  int32_t at = 7;
  // One lane is enough; the others would race.
  const auto write = [&](int32_t where, uint64_t offset) {
    at = where;
    return launch_of("write_at", {bind(out, "results", offset), bind_one(at)});
  };
  check_right(write(31, 0), level);
  check_right(write(23, 32), level);
  check_error(write(32, 0), level,
              {"kernel write_at (label): threadgroup (0, 0, 0): lane 3 writes 4 bytes outside",
               "0 bytes behind the end of buffer 0 (out) \"results\""});
  check_error(write(24, 32), level, {"lane 3 writes 4 bytes outside"});
  check_error(write(-1, 32), level, {"4 bytes below the beginning of buffer 0 (out)"});
  at = 8;
  check_error(launch_of("read_at", {bind(input), bind(out), bind_one(at)}), level,
              {"reads 4 bytes outside", "buffer 0 (input)"});
  std::vector<uint32_t> aligned(12);
  at = 20;
  check_error(launch_of("wide_read", {bind(input), bind(aligned), bind_one(at)}), level,
              {"lane 0 reads", "outside", "buffer 0 (input)"});
  struct alignas(16) {
    float factor[16] = {};
  } scales;
  at = 0;
  check_right(launch_of("behind_reference", {bind_one(scales), bind(out), bind_one(at)}), level);
  at = 1;
  check_error(launch_of("behind_reference", {bind_one(scales), bind(out), bind_one(at)}), level,
              {"reads 4 bytes outside", "0 bytes behind the end of buffer 0 (scale)"});
  at = 0;
  check_right(launch_of("copy_struct", {bind_one(scales), bind(out), bind_one(at)}), level);
  at = 4;
  check_error(launch_of("copy_struct", {bind_one(scales), bind(out), bind_one(at)}), level,
              {"lane 0 reads", "outside", "buffer 0 (input)"});
  at = 15;
  Launch tile = launch_of("tile_at", {bind_one(at)});
  tile.threadgroup_bytes = {64, 128};
  check_right(tile, level);
  at = 16;
  check_error(tile, level,
              {"lane 0 writes 4 bytes outside", "behind the end of threadgroup memory 0"});
  at = 32;
  tile.threadgroup_bytes = {256, 128};
  check_error(tile, level,
              {"lane 1 writes 4 bytes outside", "behind the end of threadgroup memory 1"});
  check_error(
      launch_of("write_const", {bind(input, "weights")}), level,
      {"lane 5 writes byte 4 of buffer 0 (input) \"weights\", which its signature only reads"});
}

void test_races_of_lanes() {
  constexpr Level level = Level::checked;
  std::vector<uint32_t> buffer(64), out(64);
  uint32_t distance = 0;
  const auto hand_over = [&](std::string_view name, uint32_t how_far) {
    distance = how_far;
    Launch launch =
        launch_of(name, {bind(buffer, "numbers"), bind(out), bind_one(distance)}, 1, 64);
    launch.threadgroup_bytes[0] = 256;
    return launch;
  };
  for (const std::string kind : {"tile", "buffer"}) {
    const std::string name = "hand_over_" + kind;
    check_right(hand_over(name, 0), level);
    check_error(hand_over(name, 1), level, {"with no barrier between them", "lane"});
    check_right(hand_over(name + "_barrier", 1), level);
    check_right(hand_over(name + "_barrier", 32), level);
    check_right(hand_over(name + "_simd", 0), level);
    check_error(hand_over(name + "_simd", 32), level, {"with no barrier between them"});
    check_error(hand_over(name + "_wrong", 1), level, {"with no barrier between them"});
  }
  check_error(hand_over("hand_over_tile", 1), level,
              {" of threadgroup memory 0 (tile), which lane "});
  check_error(hand_over("hand_over_buffer", 1), level,
              {" of buffer 0 (buffer) \"numbers\", which lane "});

  uint32_t safe = 1;
  Launch overwrite = launch_of("overwrite_after_read", {bind(out), bind_one(safe)}, 1, 64);
  overwrite.threadgroup_bytes[0] = 16;
  check_right(overwrite, level);
  safe = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const std::string message = error_of(overwrite, level, seed);
    check(contains(message, "byte 0 of threadgroup memory 0 (tile)"), message);
  }

  std::vector<uint8_t> bytes(64);
  check_right(launch_of("bytes_of_a_word", {bind(bytes)}, 2, 32), level);
  std::vector<uint32_t> count(1);
  check_error(launch_of("atomic_and_plain", {bind(count), bind(out)}), level,
              {"byte 0 of buffer 0 (count)", "lane"});
}

void test_races_of_threadgroups() {
  constexpr Level level = Level::checked;
  std::vector<uint32_t> numbers(64), out(64);
  check_right(launch_of("write_all", {bind(numbers)}, 1, 64), level);
  check_error(launch_of("write_all", {bind(numbers)}, 2, 32), level,
              {"of threadgroup (", "wrote of the same launch, which nothing orders"});
  check_right(launch_of("read_all", {bind(numbers), bind(out)}, 2, 32), level);

  Launch write = launch_of("write_all", {bind(numbers, "hidden")});
  write.label = "first";
  Launch read = launch_of("read_all", {bind(numbers, "hidden"), bind(out)}, 2, 32);
  read.label = "second";
  {
    Executor executor(level);
    executor.run(write);
    check_holds(message_of<EmulatorError>([&] { executor.run(read); }),
                {"kernel read_all (second)", "of buffer 0 (input) \"hidden\"",
                 "of kernel write_all (first) wrote", "no barrier is between the launches"});
  }
  {
    Executor executor(level);
    executor.run(read);
    check(!message_of<EmulatorError>([&] { executor.run(write); }).empty(),
          "a write after a read of the same stage");
  }
  Executor executor(level);
  executor.run(write);
  executor.end_stage();
  executor.run(read);
  executor.end_stage();
  executor.run(write);
  executor.end_stage();
  Launch elsewhere = read;
  elsewhere.buffers[1] = bind(out);
  const std::string message = message_of<EmulatorError>([&] { executor.run(elsewhere); });
  check(message.empty(), "a barrier orders launches: " + message);
}

// Not a test: how many times per second one lane follows another.
void print_speed() {
  constexpr uint32_t kThreadgroups = 32;
  constexpr uint32_t kThreads = 256;
  for (const Level level : kLevels) {
    uint32_t rounds = 200;
    std::vector<float> out(kThreadgroups * kThreads);
    const Launch launch =
        launch_of("switches", {bind(out), bind_one(rounds)}, kThreadgroups, kThreads);
    Executor executor(level);
    const auto start = std::chrono::steady_clock::now();
    executor.run(launch);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::printf("%s: %.1f million switches per second\n",
                level == Level::plain ? "plain" : "checked",
                1e-6 * kThreadgroups * kThreads * rounds / taken.count());
  }
}

}  // namespace

int main(int n_arguments, char**) {
  if (n_arguments > 1) {
    print_speed();
    return 0;
  }
  test_library();
  for (const Level level : kLevels) {
    test_threadgroups(level);
    test_half(level);
    test_constants(level);
    test_built_ins(level);
    test_vocabulary(level);
    test_simd_functions(level);
    test_matrices(level);
    test_atomics(level);
    test_meetings(level);
    test_validation(level);
  }
  test_order();
  test_bounds();
  test_races_of_lanes();
  test_races_of_threadgroups();
  return summary();
}

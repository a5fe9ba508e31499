// How many steps a submission has, by what steps took.
#include "inference/step_pace.h"

#include <string>

#include "unit/check.h"

namespace akunu::test {
namespace {

void test_steps_by_what_they_took() {
  StepPace pace;
  check(pace.steps(1, 0.04, 32) == 32 && pace.steps(kMaxFewRows, 0.04, 32) == 32,
        "few rows have the chain of the chip until one was measured");
  check(pace.steps(64, 0.04, 32) == 8, "more rows are taken to cost more");
  check(pace.steps(512, 0.04, 1) == 1, "a chip without chains has none");

  pace.took(64, 0.015);
  check(pace.steps(64, 0.04, 32) == 2, "two steps of 15 ms");
  check(pace.steps(128, 0.04, 32) == 1, "of twice as many rows one");
  check(pace.steps(1, 0.04, 32) == 2, "fewer rows are not taken to cost less");
  pace.took(1, 0.002);
  check(pace.steps(1, 0.04, 32) == 20, "until they were measured");
  pace.took(1, 0.004);
  const uint32_t between = pace.steps(1, 0.04, 32);
  check(between == 13, "one that took longer counts half: " + std::to_string(between));
  pace.took(1, 1.0);
  check(pace.steps(1, 0.04, 32) == 1, "one step at least");
  pace.took(2, 0.0);
  check(pace.steps(2, 0.04, 32) == 32, "no time at all");
}

}  // namespace
}  // namespace akunu::test

int main() {
  akunu::test::test_steps_by_what_they_took();
  return akunu::test::summary();
}

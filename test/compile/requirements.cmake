# cmake -DHEADERS=folder/*.hpp -DREFUSAL=text -P requirements.cmake -- compiler option...
#
# Fails unless the compiler's first error in each of the public headers is the #error that begins with the text.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/ColockScriptCommand.cmake)

file(GLOB_RECURSE headers ${HEADERS})
list(FILTER headers EXCLUDE REGEX "/detail/")
list(LENGTH headers count)
if(count EQUAL 0)
    message(FATAL_ERROR "no header is ${HEADERS}")
endif()
foreach(header IN LISTS headers)
    # The first error ends the compilation.
    execute_process(COMMAND ${command} -Wfatal-errors -fsyntax-only -x c++ ${header}
        RESULT_VARIABLE result ERROR_VARIABLE said)
    string(REGEX MATCH "error: [^\n]*" first "${said}")
    if(result STREQUAL "0" OR NOT first MATCHES "^error: (#error )?\"${REFUSAL}")
        message(FATAL_ERROR "${header}: the compiler ended with ${result}, not with \"${REFUSAL}\":\n${said}")
    endif()
endforeach()
message("${count} headers refused: ${first}")

# cmake -DKIND=warning|error -DSOURCE=file -P named_lines.cmake -- compiler option...
#
# Fails unless the compiler's warnings or errors name exactly the lines that end with "// warning" or "// error". An
# error that names another file fails, too.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/ColockScriptCommand.cmake)

execute_process(COMMAND ${command} ${SOURCE} RESULT_VARIABLE result ERROR_VARIABLE said)
message("${said}")
if(KIND STREQUAL "warning" AND NOT result STREQUAL "0")
    message(FATAL_ERROR "the compiler ended with ${result}")
elseif(KIND STREQUAL "error" AND result STREQUAL "0")
    message(FATAL_ERROR "the compiler accepted the file")
endif()

# The lines "file:line:column: error: ..." of the output.
string(REGEX MATCHALL "[^\n]*:[0-9]+:[0-9]+: (fatal )?${KIND}: " messages "${said}")
cmake_path(GET SOURCE FILENAME name)
set(named "")
foreach(message IN LISTS messages)
    if(message MATCHES "/${name}:([0-9]+):")
        list(APPEND named ${CMAKE_MATCH_1})
    elseif(KIND STREQUAL "error")
        message(FATAL_ERROR "an error in another file: ${message}")
    endif()
endforeach()

file(READ ${SOURCE} text)
# These characters would split or join elements of a CMake list.
string(REGEX REPLACE "[][;]" " " text "${text}")
string(REPLACE "\n" ";" lines "${text}")
set(number 0)
set(expected 0)
foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    if(line MATCHES "// ${KIND}$")
        math(EXPR expected "${expected} + 1")
        if(NOT number IN_LIST named)
            message(FATAL_ERROR "no ${KIND} for line ${number}: ${line}")
        endif()
    elseif(number IN_LIST named)
        message(FATAL_ERROR "an unexpected ${KIND} for line ${number}: ${line}")
    endif()
endforeach()
if(expected EQUAL 0)
    message(FATAL_ERROR "no line of ${name} is marked")
endif()

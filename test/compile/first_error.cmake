# cmake -DSOURCE=file -DFOLDER=folder -P first_error.cmake -- compiler option...
#
# Each line of the file that ends with "// error: sentence" is compiled without the others. Fails unless the compiler's
# first error names this line and has the sentence. An error in a template has both in different lines.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/ColockScriptCommand.cmake)

file(READ ${SOURCE} text)
# These characters would split or join elements of a CMake list.
string(REPLACE ";" "<semicolon>" text "${text}")
string(REPLACE "[" "<opening>" text "${text}")
string(REPLACE "]" "<closing>" text "${text}")
string(REPLACE "\n" ";" lines "${text}")

cmake_path(GET SOURCE FILENAME name)
# The headers are compiled once, for all mistakes. Both compilers find the result next to the header.
set(includes "${lines}")
list(FILTER includes INCLUDE REGEX "^#include")
list(JOIN includes "\n" includes)
file(WRITE ${FOLDER}/${name}.hpp "${includes}\n")
set(precompile ${command})
list(REMOVE_ITEM precompile -fsyntax-only)
execute_process(COMMAND ${precompile} -x c++-header ${FOLDER}/${name}.hpp -o ${FOLDER}/${name}.hpp.gch
    COMMAND_ERROR_IS_FATAL ANY)
list(LENGTH lines count)
math(EXPR last "${count} - 1")
set(failures "")
set(mistakes 0)
foreach(mistake RANGE ${last})
    list(GET lines ${mistake} line)
    if(NOT line MATCHES "// error: (.*)$")
        continue()
    endif()
    set(sentence "${CMAKE_MATCH_1}")
    math(EXPR mistakes "${mistakes} + 1")
    math(EXPR number "${mistake} + 1")

    # The other mistakes become empty lines, so that the numbers of the lines stay the same. The sentence is left out,
    # because the compiler quotes the line.
    set(alone "${lines}")
    list(TRANSFORM alone REPLACE "^.*// error: .*$" "")
    list(REMOVE_AT alone ${mistake})
    string(REGEX REPLACE "// error: .*$" "" code "${line}")
    list(INSERT alone ${mistake} "${code}")
    list(JOIN alone "\n" alone)
    string(REPLACE "<semicolon>" ";" alone "${alone}")
    string(REPLACE "<opening>" "[" alone "${alone}")
    string(REPLACE "<closing>" "]" alone "${alone}")
    file(WRITE ${FOLDER}/${name} "${alone}")

    execute_process(COMMAND ${command} -Wfatal-errors -include ${FOLDER}/${name}.hpp ${FOLDER}/${name}
        RESULT_VARIABLE result ERROR_VARIABLE said)
    string(FIND "${said}" "/${name}:${number}:" named)
    string(FIND "${said}" "${sentence}" found)
    if(result STREQUAL "0" OR named EQUAL -1 OR found EQUAL -1)
        string(APPEND failures "line ${number}: no error with \"${sentence}\":\n${said}\n")
    endif()
endforeach()
if(mistakes EQUAL 0)
    message(FATAL_ERROR "no line of ${name} is marked")
elseif(failures)
    message(FATAL_ERROR "${failures}")
endif()
message("${mistakes} mistakes named")

# cmake -DEXPECT=pattern -P run.cmake -- program argument...
#
# Fails unless the program ends with exit code 0 and its whole output matches the pattern. ctest can only check one of
# these conditions.
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/../cmake/ColockScriptCommand.cmake)
execute_process(COMMAND ${command} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
message("${output}${errors}")
if(NOT result STREQUAL "0")
    message(FATAL_ERROR "ended with ${result}")
endif()
if(NOT output MATCHES "${EXPECT}")
    message(FATAL_ERROR "its output does not match: ${EXPECT}")
endif()

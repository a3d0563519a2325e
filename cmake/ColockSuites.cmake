# ctest includes this file for each test executable. It makes a test of every outermost suite.
if(NOT EXISTS ${executable})
    add_test(${name}.not_built ${executable})
    return()
endif()
execute_process(COMMAND ${executable} --list_content ERROR_VARIABLE content OUTPUT_QUIET RESULT_VARIABLE failed)
# The output may also contain messages of a loaded library.
string(REGEX MATCHALL "(^|\n)[A-Za-z_][A-Za-z0-9_]*" suites "${content}")
if(failed OR NOT suites)
    add_test(${name}.cannot_list_its_suites ${executable} --run_test=!a_suite)
endif()
foreach(suite IN LISTS suites)
    string(STRIP ${suite} suite)
    add_test(${name}.${suite} ${executable} --run_test=${suite} --color_output=no)
    # The suites with the longest timeouts start first.
    set_tests_properties(${name}.${suite} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} COST ${timeout}
        RUN_SERIAL ${serial} PROCESSORS ${processors}
        SKIP_REGULAR_EXPRESSION "(^|\n)skipped: ${suite}: ")
endforeach()

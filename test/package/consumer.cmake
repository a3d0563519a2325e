add_executable(consumer ../consumer.cpp)
set(linked ${COMPONENTS})
list(REMOVE_ITEM linked adapter_contract)
foreach(component IN LISTS linked)
    target_link_libraries(consumer PRIVATE colock::${component})
    string(TOUPPER ${component} name)
    target_compile_definitions(consumer PRIVATE WITH_${name})
endforeach()

add_executable(own_backend ../own_backend.cpp)
#[ contract
target_link_libraries(own_backend PRIVATE colock::adapter_contract)
#]
add_custom_command(TARGET own_backend POST_BUILD COMMAND own_backend --run_test=map_adapter,map_locker)

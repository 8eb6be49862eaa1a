# SPDX-License-Identifier: GPL-2.0-or-later
# Tests of the trace-file reader. test_tracefile compares it with libtracecmd on real captures:
# those of tests/data, and with --wide those below the folder that NRP_TRACES names.
add_library(nrp_trace_parts STATIC
	${CMAKE_CURRENT_LIST_DIR}/tools/trace_parts.c
	${CMAKE_CURRENT_LIST_DIR}/tools/trace_write.c)
target_link_libraries(nrp_trace_parts PUBLIC nrp_flags PRIVATE PkgConfig::ZSTD)

# Development tool: makes small test inputs from large captures.
add_executable(cut_trace ${CMAKE_CURRENT_LIST_DIR}/tools/cut_trace.c)
target_link_libraries(cut_trace PRIVATE nrp_capture nrp_trace_parts)

add_library(nrp_trace_sample STATIC ${CMAKE_CURRENT_LIST_DIR}/trace_sample.c)
target_link_libraries(nrp_trace_sample PUBLIC nrp_trace_parts nrp_capture cmocka)

foreach(name tracefile_sample tracefile_pages tracefile_damage tracefile_refused)
	add_executable(test_${name} ${CMAKE_CURRENT_LIST_DIR}/test_${name}.c)
	target_link_libraries(test_${name} PRIVATE nrp_trace_sample PkgConfig::XXHASH)
	add_test(NAME ${name} COMMAND test_${name})
endforeach()

# What damaged captures still give, against libtracecmd's reading of the whole ones.
add_executable(test_salvage ${CMAKE_CURRENT_LIST_DIR}/test_salvage.c)
target_compile_definitions(test_salvage PRIVATE NRP_TEST_DATA="${CMAKE_CURRENT_LIST_DIR}/data")
target_link_libraries(test_salvage PRIVATE nrp_trace_sample PkgConfig::TRACECMD)
add_test(NAME salvage COMMAND test_salvage)

add_executable(test_tracefile ${CMAKE_CURRENT_LIST_DIR}/test_tracefile.c)
target_compile_definitions(test_tracefile PRIVATE
	NRP_TEST_DATA="${CMAKE_CURRENT_LIST_DIR}/data")
target_link_libraries(test_tracefile PRIVATE nrp_trace_sample PkgConfig::TRACECMD)
add_test(NAME tracefile COMMAND test_tracefile)
add_test(NAME tracefile_wide COMMAND test_tracefile --wide)
set_tests_properties(tracefile tracefile_wide PROPERTIES SKIP_RETURN_CODE 77)

# SPDX-License-Identifier: GPL-2.0-or-later
# The store: test_store opens files, test_store_captures keeps captures, test_samples records,
# test_blocks what holds them, test_pushdown chooses blocks, test_node_counts counts by nodes.
foreach(test test_store test_store_captures test_samples test_blocks test_pushdown
		test_node_counts)
	add_executable(${test} ${CMAKE_CURRENT_LIST_DIR}/${test}.c
		${CMAKE_CURRENT_LIST_DIR}/store_util.c)
	target_link_libraries(${test} PRIVATE nrp_schema cmocka)
	add_test(NAME ${test} COMMAND ${test})
endforeach()

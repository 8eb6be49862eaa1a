# SPDX-License-Identifier: GPL-2.0-or-later
# Tests of the text readers. test_text_captures compares with what trace-cmd prints: 77 without it.
add_executable(test_textline ${CMAKE_CURRENT_LIST_DIR}/test_textline.c)
target_link_libraries(test_textline PRIVATE nrp_capture cmocka)
add_test(NAME textline COMMAND test_textline)

add_executable(test_text_captures ${CMAKE_CURRENT_LIST_DIR}/test_text_captures.c)
target_compile_definitions(test_text_captures PRIVATE
	NRP_TEST_DATA="${CMAKE_CURRENT_LIST_DIR}/data")
target_link_libraries(test_text_captures PRIVATE nrp_capture cmocka)
add_test(NAME text_captures COMMAND test_text_captures)
add_test(NAME text_captures_wide COMMAND test_text_captures --wide)
set_tests_properties(text_captures text_captures_wide PROPERTIES SKIP_RETURN_CODE 77)

# SPDX-License-Identifier: GPL-2.0-or-later
# Tests of replay/policies: expected values are those of the specification.
foreach(name filter ratelimit ratelimit_race scan_pte scan_vma)
	add_executable(test_${name} ${CMAKE_CURRENT_LIST_DIR}/test_${name}.c)
	target_link_libraries(test_${name} PRIVATE nrp_policies cmocka)
	add_test(NAME ${name} COMMAND test_${name})
endforeach()

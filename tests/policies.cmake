# SPDX-License-Identifier: GPL-2.0-or-later
# Tests of replay/policies: expected values are those of the specification.
foreach(name filter migrate_outcome ratelimit ratelimit_race scan_period scan_pte scan_reset
		scan_shmem scan_vma task_claim task_fault tiering_promote)
	add_executable(test_${name} ${CMAKE_CURRENT_LIST_DIR}/test_${name}.c)
	target_link_libraries(test_${name} PRIVATE nrp_policies cmocka)
	add_test(NAME ${name} COMMAND test_${name})
endforeach()

# Lanes over stored captures: small hand-made ones.
foreach(name hugetlb_lane outcomes scan_periods task_moves tiering)
	add_executable(test_${name} ${CMAKE_CURRENT_LIST_DIR}/test_${name}.c
		${CMAKE_CURRENT_LIST_DIR}/lane_util.c ${CMAKE_CURRENT_LIST_DIR}/store_util.c)
	target_link_libraries(test_${name} PRIVATE nrp_replay cmocka)
	add_test(NAME ${name} COMMAND test_${name})
endforeach()

foreach(name lock_jobs lock_lane lost_scans)
	add_executable(test_${name} ${CMAKE_CURRENT_LIST_DIR}/test_${name}.c
		${CMAKE_CURRENT_LIST_DIR}/lock_records.c ${CMAKE_CURRENT_LIST_DIR}/lane_util.c
		${CMAKE_CURRENT_LIST_DIR}/store_util.c)
	target_link_libraries(test_${name} PRIVATE nrp_replay cmocka)
	add_test(NAME ${name} COMMAND test_${name})
endforeach()

# The scanner beside a slow model of it, over random address spaces.
add_executable(test_scan_model ${CMAKE_CURRENT_LIST_DIR}/test_scan_model.c
	${CMAKE_CURRENT_LIST_DIR}/scan_model.c)
target_link_libraries(test_scan_model PRIVATE nrp_policies cmocka)
add_test(NAME scan_model COMMAND test_scan_model)

# Lanes as a command line writes them.
add_executable(test_registry ${CMAKE_CURRENT_LIST_DIR}/test_registry.c)
target_link_libraries(test_registry PRIVATE nrp_replay cmocka)
add_test(NAME registry COMMAND test_registry)

# The mmap_lock engine beside a slow model of it.
add_executable(test_mmap_lock ${CMAKE_CURRENT_LIST_DIR}/test_mmap_lock.c
	${CMAKE_CURRENT_LIST_DIR}/lock_model.c ${CMAKE_CURRENT_LIST_DIR}/lock_scenario.c)
target_link_libraries(test_mmap_lock PRIVATE nrp_replay cmocka)
add_test(NAME mmap_lock COMMAND test_mmap_lock)

add_executable(test_lock_events ${CMAKE_CURRENT_LIST_DIR}/test_lock_events.c
	${CMAKE_CURRENT_LIST_DIR}/store_util.c)
target_link_libraries(test_lock_events PRIVATE nrp_trace_sample nrp_replay cmocka)
add_test(NAME lock_events COMMAND test_lock_events)

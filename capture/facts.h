/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Side files of a capture: host facts (X.facts) and /proc/vmstat before and after (X.vmstat0/1). */
#ifndef NRP_FACTS_H
#define NRP_FACTS_H

#include "capture/events.h"
#include "numareplay/store.h"

#include <stdio.h>

/* Opens a plain file of at most @max_size bytes: text that a user named, or that lies beside. */
int nrp_open_text(FILE **ret, const char *path, int64_t max_size, struct nrp_error *err);

/*
 * Calls @each with every line of such a file, as it stands there: @size bytes, its end included,
 * and a NUL behind them. Ends with the first error.
 */
int nrp_each_line(const char *path, int64_t max_size,
		  int (*each)(void *context, char *line, size_t size), void *context,
		  struct nrp_error *err);

/* Does a file that begins like this hold perf's binary data, of either byte order? */
bool nrp_is_perf_data(const char *head, size_t size);

/*
 * Reads a facts file: sections [uname] [cmdline] [nodes] [sysctl] [thp] [hugetlb] [events]; unknown
 * sections and keys are kept as settings. Fills @facts and table host_setting. A line
 * "system:event" of [events] says that the event was recorded, and sets its entry in @recorded.
 */
int nrp_facts_read(const char *path, struct nrp_host_facts *facts, bool recorded[NRP_NR_EVENTS],
		   struct nrp_store *store, int64_t capture_id, struct nrp_error *err);

/*
 * Reads a /proc/vmstat snapshot ("name value" lines) into table counter; @snapshot 0 before, 1
 * after. NRP_INPUT: other lines, none, or in the second snapshot fewer events than in the first.
 */
int nrp_vmstat_read(const char *path, int snapshot, struct nrp_store *store, int64_t capture_id,
		    struct nrp_error *err);

/* The parts of a topology; -ENOMEM, -ERANGE (too large), -EEXIST (the CPU has another node). */
int nrp_facts_cpu(struct nrp_host_facts *facts, uint64_t cpu, int nid);
int nrp_facts_node(struct nrp_host_facts *facts, uint64_t nid);
/*
 * "0-1,4" up to the text's end or a blank: the CPUs of a node; empty for a node without CPUs. NULL,
 * what is wrong, or "": out of memory.
 */
const char *nrp_facts_cpu_list(struct nrp_host_facts *facts, const char *list, int nid);

/*
 * Topology as other programs print it, told apart by content: numactl -H, lscpu -p, a process's
 * numa_maps, or a folder that is a copy of /sys (or of its devices/system/node). Adds nodes, their
 * CPUs and memory to @facts; numa_maps give nodes and the page size only. NRP_INPUT: none of
 * these, not readable, or it contradicts what is known.
 */
int nrp_topology_read(const char *path, struct nrp_host_facts *facts, struct nrp_error *err);

#endif

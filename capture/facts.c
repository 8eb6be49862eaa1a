/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/facts.h"
#include "numareplay/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SIDE_FILE (16 << 20) /* bytes; a /proc/vmstat is 4 KB, a 1024-node facts file 5 MB */
#define MAX_LINE 65536

int nrp_open_text(FILE **ret, const char *path, int64_t max_size, struct nrp_error *err)
{
	/* A FIFO would wait for somebody who writes. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), code = fd < 0 ? -errno : 0;
	struct stat st = { 0 };
	FILE *f = NULL;

	if (code == 0 && fstat(fd, &st) < 0)
		code = -errno;
	if (code == 0 && S_ISREG(st.st_mode) && st.st_size <= max_size) {
		f = fdopen(fd, "r");
		code = f ? 0 : -errno;
	}
	if (f) {
		*ret = f;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	if (code < 0)
		return nrp_fail(err, NRP_INPUT, code, path, -1, "name a readable file", "%s",
				strerror(-code));
	if (!S_ISREG(st.st_mode))
		return nrp_fail(err, NRP_INPUT, -EINVAL, path, -1, "name a plain file",
				S_ISDIR(st.st_mode) ? "is not a plain file but a directory"
						    : "is not a plain file");
	return nrp_fail(err, NRP_INPUT, -EFBIG, path, -1, "name the capture's own side file",
			"is larger than %lld MiB", (long long)(max_size >> 20));
}

bool nrp_is_perf_data(const char *head, size_t size)
{
	return size >= 8 && (!memcmp(head, "PERFILE2", 8) || !memcmp(head, "2ELIFREP", 8));
}

int nrp_each_line(const char *path, int64_t max_size,
		  int (*each)(void *context, char *line, size_t size), void *context,
		  struct nrp_error *err)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	FILE *f;
	int r = nrp_open_text(&f, path, max_size, err);

	if (r < 0)
		return r;
	while (r == 0 && (n = getline(&line, &room, f)) >= 0)
		r = each(context, line, (size_t)n);
	if (r == 0 && !feof(f))
		r = nrp_fail(err, NRP_INPUT, -EIO, path, -1, "check the disk",
			     "cannot be read to its end");
	free(line);
	fclose(f);
	return r;
}

struct facts_reader {
	const char *path;
	struct nrp_host_facts *facts;
	bool *recorded; /* [NRP_NR_EVENTS] */
	struct nrp_store *store;
	int64_t capture_id;
	char section[64];
	int64_t offset; /* of the current line */
	struct nrp_error *err;
};

static int setting(struct facts_reader *r, const char *name, const char *value)
{
	return nrp_store_put_setting(r->store, r->capture_id, name, value, r->err);
}

static int bad_line(struct facts_reader *r, const char *what)
{
	return nrp_fail(r->err, NRP_INPUT, -EBADMSG, r->path, r->offset,
			"correct the line, or import without the facts file", "%s", what);
}

int nrp_facts_cpu(struct nrp_host_facts *f, uint64_t cpu, int nid)
{
	if (cpu >= NRP_MAX_CPUS)
		return -ERANGE;
	if ((int)cpu >= f->nr_cpus) {
		int16_t *grown = reallocarray(f->cpu_nid, cpu + 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		for (int i = f->nr_cpus; i <= (int)cpu; i++)
			grown[i] = -1;
		f->cpu_nid = grown;
		f->nr_cpus = (int)cpu + 1;
	}
	if (f->cpu_nid[cpu] >= 0 && f->cpu_nid[cpu] != nid)
		return -EEXIST;
	f->cpu_nid[cpu] = (int16_t)nid;
	return 0;
}

int nrp_facts_node(struct nrp_host_facts *f, uint64_t nid)
{
	int64_t *grown;

	if (nid >= NRP_MAX_NODES)
		return -ERANGE;
	if ((int)nid < f->nr_nodes)
		return 0;
	grown = reallocarray(f->node_memkb, nid + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	for (int i = f->nr_nodes; i <= (int)nid; i++)
		grown[i] = -1;
	f->node_memkb = grown;
	f->nr_nodes = (int)nid + 1;
	return 0;
}

const char *nrp_facts_cpu_list(struct nrp_host_facts *f, const char *p, int nid)
{
	while (isdigit((unsigned char)*p)) {
		char *end;
		unsigned long from = strtoul(p, &end, 10), to = from;

		if (*end == '-' && isdigit((unsigned char)end[1]))
			to = strtoul(end + 1, &end, 10);
		if (to < from || to >= NRP_MAX_CPUS)
			return "bad CPU list";
		/* The last one first, so that the array grows once for each range. */
		for (unsigned long cpu = to + 1; cpu-- > from;) {
			int r = nrp_facts_cpu(f, cpu, nid);

			if (r < 0)
				return r == -ENOMEM ? "" : "a CPU of two nodes";
		}
		p = end;
		if (*end != ',' || !isdigit((unsigned char)end[1]))
			break;
		p++;
	}
	return !*p || *p == ' ' || *p == '\t' ? NULL : "bad CPU list";
}

/* "0 cpus=0-1 distance=10,20 memkb=1546548" */
static int node_line(struct facts_reader *r, const char *line)
{
	struct nrp_host_facts *f = r->facts;
	const char *cpus = strstr(line, "cpus="), *memkb = strstr(line, "memkb=");
	char *end;
	unsigned long nid = strtoul(line, &end, 10);

	if (end == line || nid >= NRP_MAX_NODES)
		return bad_line(r, "bad node number");
	if (nrp_facts_node(f, nid) < 0)
		return nrp_fail_nomem(r->err);
	if (f->node_memkb[nid] >= 0)
		return bad_line(r, "a node that was listed before");
	if (memkb && isdigit((unsigned char)memkb[6]))
		f->node_memkb[nid] = strtoll(memkb + 6, NULL, 10);
	if (cpus) {
		const char *what = nrp_facts_cpu_list(f, cpus + 5, (int)nid);

		if (what)
			return *what ? bad_line(r, what) : nrp_fail_nomem(r->err);
	}
	char name[32];

	snprintf(name, sizeof(name), "node%lu", nid);
	return setting(r, name, end + strspn(end, " \t"));
}

/* The tunables that later stages use; "/proc/sys/kernel/numa_balancing 1". */
static int known_sysctl(struct facts_reader *r, const char *path, const char *text)
{
	struct nrp_host_facts *f = r->facts;
	const char *base = strrchr(path, '/');
	const struct {
		const char *proc, *debugfs;
		int64_t *to;
	} known[] = {
		{ "numa_balancing", NULL, &f->balancing },
		{ "numa_balancing_scan_delay_ms", "scan_delay_ms", &f->scan_delay_ms },
		{ "numa_balancing_scan_period_min_ms", "scan_period_min_ms",
		  &f->scan_period_min_ms },
		{ "numa_balancing_scan_period_max_ms", "scan_period_max_ms",
		  &f->scan_period_max_ms },
		{ "numa_balancing_scan_size_mb", "scan_size_mb", &f->scan_size_mb },
	};

	base = base ? base + 1 : path;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		char *end;
		long long value;

		if (strcmp(base, known[i].proc) != 0 &&
		    (!known[i].debugfs || strcmp(base, known[i].debugfs) != 0))
			continue;
		value = strtoll(text, &end, 10);
		if (end == text || end[strspn(end, " \t")] || value < 0 || value > NRP_MAX_SYSCTL)
			return bad_line(r, "no value for a tunable");
		*known[i].to = value;
	}
	return 0;
}

/* "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size 2097152"; the folders may be missing. */
static bool is_pmd_size(const char *line, const char *end)
{
	static const char name[] = "hpage_pmd_size";
	size_t size = sizeof(name) - 1;

	return (size_t)(end - line) >= size && !memcmp(end - size, name, size) &&
	       (end == line + size || end[-(ptrdiff_t)size - 1] == '/');
}

/*
 * Bytes of a PMD-sized huge page. Hugepagesize of /proc/meminfo is none: it is the default size of
 * hugetlb pages, which a boot parameter sets.
 */
static int pmd_size(struct facts_reader *r, char *line, char *value)
{
	char *end;
	long long size = strtoll(value, &end, 10), page = r->facts->page_size;

	if (end[strspn(end, " \t")] || size <= 0 || (size & (size - 1)) != 0)
		return bad_line(r, "no size of a huge page");
	if (page > 0 && size > page && size / page <= NRP_MAX_HUGE_PAGES)
		r->facts->huge_pages = size / page;
	*value = '\0';
	return setting(r, line, value + 1 + strspn(value + 1, " \t"));
}

/* "migrate:mm_migrate_pages", as tracefs' set_event lists what is recorded. */
static int event_line(struct facts_reader *r, char *line)
{
	char *colon = strchr(line, ':');

	if (!colon)
		return bad_line(r, "no \"system:event\"");
	*colon = '\0';
	r->recorded[nrp_event_by_name(line, colon + 1)] = true;
	return 0;
}

static int facts_line(struct facts_reader *r, char *line)
{
	struct nrp_host_facts *f = r->facts;
	char *value;

	if (!strcmp(r->section, "uname")) {
		snprintf(f->kernel, sizeof(f->kernel), "%.*s", (int)sizeof(f->kernel) - 1, line);
		nrp_text_clean(f->kernel);
		return 0;
	}
	if (!strcmp(r->section, "nodes"))
		return node_line(r, line);
	if (!strcmp(r->section, "events"))
		return event_line(r, line);
	if (!strcmp(r->section, "cmdline"))
		return setting(r, "cmdline", line);
	value = strpbrk(line, " \t");
	if (!strcmp(r->section, "sysctl") && value) {
		*value = '\0';
		value += 1 + strspn(value + 1, " \t");
		return known_sysctl(r, line, value) < 0 ? -EBADMSG : setting(r, line, value);
	}
	if (!strcmp(r->section, "thp") && value && is_pmd_size(line, value))
		return pmd_size(r, line, value);
	if (value && value > line && value[-1] == ':') {
		value[-1] = '\0';
		return setting(r, line, value + strspn(value, " \t"));
	}
	return setting(r, r->section, line);
}

static int any_line(void *context, char *line, size_t size)
{
	struct facts_reader *r = context;
	int ret = 0;

	if (size > MAX_LINE || memchr(line, '\0', size))
		return bad_line(r, "not a facts file");
	line[strcspn(line, "\r\n")] = '\0';
	if (line[0] == '[' && line[strlen(line) - 1] == ']' && !strchr(line, ' '))
		snprintf(r->section, sizeof(r->section), "%.*s", (int)strlen(line) - 2, line + 1);
	else if (line[0])
		ret = facts_line(r, line);
	r->offset += (int64_t)size;
	return ret;
}

int nrp_facts_read(const char *path, struct nrp_host_facts *facts, bool recorded[NRP_NR_EVENTS],
		   struct nrp_store *store, int64_t capture_id, struct nrp_error *err)
{
	struct facts_reader r = {
		.path = path,
		.facts = facts,
		.recorded = recorded,
		.store = store,
		.capture_id = capture_id,
		.err = err,
	};

	return nrp_each_line(path, MAX_SIDE_FILE, any_line, &r, err);
}

/* ---- /proc/vmstat ------------------------------------------------------------------- */

struct vmstat_reader {
	const char *path;
	int snapshot;
	struct nrp_store *store;
	int64_t capture_id;
	uint64_t counters;
	int64_t offset; /* of the current line */
	struct nrp_error *err;
};

/* Events of a kind never become fewer; most of the other names are levels. */
static bool counts_events(const char *name)
{
	return !strncmp(name, "numa_", 5) || !strncmp(name, "pg", 2);
}

/* The second snapshot must not be behind the first. */
static int check_order(const struct vmstat_reader *r, const char *name)
{
	int64_t delta;

	if (r->snapshot == 0 || !counts_events(name) ||
	    nrp_store_counter_delta(r->store, r->capture_id, name, &delta) < 0 || delta >= 0)
		return 0;
	return nrp_fail(r->err, NRP_INPUT, -EBADMSG, r->path, r->offset,
			"give the snapshots of one boot, the one before recording first",
			"%s is smaller than before recording", name);
}

static int vmstat_line(void *context, char *line, size_t size)
{
	struct vmstat_reader *r = context;
	size_t name = strcspn(line, " \t");
	bool blank = line[name] == ' ' || line[name] == '\t';
	char *end = line;
	int64_t value;
	int ret;

	errno = 0;
	value = blank ? strtoll(line + name, &end, 10) : 0;
	if (!name || !blank || end == line + name || errno || value < 0 || name > 200 ||
	    end + strspn(end, " \t\r\n") != line + size)
		return nrp_fail(r->err, NRP_INPUT, -EBADMSG, r->path, r->offset,
				"give the unchanged text of /proc/vmstat",
				"not a \"name value\" line");
	line[name] = '\0';
	r->counters++;
	ret = nrp_store_put_counter(r->store, r->capture_id, line, r->snapshot, value, r->err);
	if (ret == 0)
		ret = check_order(r, line);
	r->offset += (int64_t)size;
	return ret;
}

int nrp_vmstat_read(const char *path, int snapshot, struct nrp_store *store, int64_t capture_id,
		    struct nrp_error *err)
{
	struct vmstat_reader r = { .path = path,
				   .snapshot = snapshot,
				   .store = store,
				   .capture_id = capture_id,
				   .err = err };
	int ret = nrp_each_line(path, MAX_SIDE_FILE, vmstat_line, &r, err);

	if (ret == 0 && !r.counters)
		ret = nrp_fail(err, NRP_INPUT, -ENODATA, path, -1,
			       "give the text of /proc/vmstat, or move the file away", "is empty");
	return ret;
}

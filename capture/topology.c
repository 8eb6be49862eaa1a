/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes, their CPUs and memory from what other programs print. */
#include "capture/facts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_SIDE_FILE (64 << 20) /* bytes; numa_maps of a large process have some MB */
#define MAX_LINE 65536
#define MAX_COLUMNS 64 /* of lscpu -p */

enum format { UNKNOWN, NUMACTL, LSCPU, NUMA_MAPS };

struct topology {
	const char *path; /* the file being read */
	struct nrp_host_facts *facts;
	int64_t offset; /* of the current line, -1: none */
	enum format format;
	int cpu_column, node_column; /* of lscpu */
	uint64_t page_kb;            /* smallest of numa_maps, 0: none */
	bool found;
	struct nrp_error *err;
};

static int bad(struct topology *t, const char *what)
{
	return nrp_fail(
		t->err, NRP_INPUT, -EBADMSG, t->path, t->offset,
		"give the unchanged text of numactl -H, lscpu -p or numa_maps, or a copy of "
		"/sys/devices/system/node",
		"%s", what);
}

static int add_cpu(struct topology *t, uint64_t cpu, uint64_t nid)
{
	int r = nrp_facts_node(t->facts, nid);

	if (r == 0)
		r = nrp_facts_cpu(t->facts, cpu, (int)nid);
	if (r == 0)
		return 0;
	return r == -ENOMEM   ? nrp_fail_nomem(t->err)
	       : r == -ERANGE ? bad(t, "CPU or node number too large")
			      : bad(t, "a CPU of two nodes");
}

static int add_node(struct topology *t, uint64_t nid)
{
	int r = nrp_facts_node(t->facts, nid);

	t->found = true;
	if (r == 0)
		return 0;
	return r == -ENOMEM ? nrp_fail_nomem(t->err) : bad(t, "node number too large");
}

/* The first source that names a node's memory counts: numactl rounds to MB. */
static int add_memory(struct topology *t, uint64_t nid, uint64_t kb)
{
	int r = add_node(t, nid);

	if (r == 0 && t->facts->node_memkb[nid] < 0 && kb <= INT64_MAX / 1024)
		t->facts->node_memkb[nid] = (int64_t)kb;
	return r;
}

/* Digits at *p, which is moved behind them. */
static bool take_number(const char **p, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)**p))
		return false;
	errno = 0;
	*ret = strtoull(*p, &end, 10);
	*p = end;
	return !errno;
}

/* "node 0 cpus: 0 1 2", "node 0 size: 1510 MB"; "node 0 free:" and distances say nothing here. */
static int numactl_line(struct topology *t, const char *line)
{
	const char *p = line;
	uint64_t nid, value;

	if (strncmp(p, "node ", 5) != 0)
		return 0;
	p += 5;
	if (!take_number(&p, &nid))
		return 0;
	if (!strncmp(p, " cpus:", 6)) {
		int r = add_node(t, nid);

		for (p += 6; r == 0 && *p; p += strspn(p, " ")) {
			p += strspn(p, " ");
			if (!*p)
				break;
			if (!take_number(&p, &value) || (*p && *p != ' '))
				return bad(t, "a CPU that is no number");
			r = add_cpu(t, value, nid);
		}
		return r;
	}
	if (strncmp(p, " size: ", 7) != 0)
		return 0;
	p += 7;
	return take_number(&p, &value) && !strcmp(p, " MB") && value < INT64_MAX / (1 << 20)
		       ? add_memory(t, nid, value * 1024)
		       : bad(t, "a size that is no number of MB");
}

/* "# CPU,Core,Socket,Node,,L1d": which column is what. */
static void lscpu_header(struct topology *t, const char *line)
{
	int column = 0;

	for (const char *p = line + 1 + strspn(line + 1, " "); *p && column < MAX_COLUMNS;
	     column++) {
		size_t n = strcspn(p, ",");

		if (n == 3 && !strncasecmp(p, "CPU", 3))
			t->cpu_column = column;
		if (n == 4 && !strncasecmp(p, "Node", 4))
			t->node_column = column;
		p += n + (p[n] == ',');
	}
}

/* "0,0,0,0,,0,0"; a CPU that is offline has an empty node. */
static int lscpu_line(struct topology *t, const char *line)
{
	uint64_t value[2] = { 0, 0 };
	bool has[2] = { false, false };
	int column = 0;

	if (*line == '#') {
		lscpu_header(t, line);
		return 0;
	}
	if (t->node_column < 0)
		return bad(t, "lscpu -p without a column Node");
	for (const char *p = line; column <= t->cpu_column || column <= t->node_column; column++) {
		int which = column == t->cpu_column ? 0 : column == t->node_column ? 1 : -1;

		if (which >= 0)
			has[which] = take_number(&p, &value[which]);
		p += strcspn(p, ",");
		if (!*p)
			break;
		p++;
	}
	if (!has[0])
		return bad(t, "a line without a CPU number");
	if (!has[1])
		return 0;
	t->found = true;
	return add_cpu(t, value[0], value[1]);
}

/* "7f0ca5000000 default file=.. huge dirty=1 N1=1 kernelpagesize_kB=2048" */
static int numa_maps_line(struct topology *t, char *line)
{
	bool huge = false;
	char *save;

	t->found = true;
	for (char *word = strtok_r(line, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
		const char *p = word + 1;
		uint64_t value;

		if (!strcmp(word, "huge"))
			huge = true;
		if (*word == 'N' && take_number(&p, &value) && *p == '=') {
			int r = add_node(t, value);

			if (r < 0)
				return r;
		}
		p = word + 18;
		if (!huge && !strncmp(word, "kernelpagesize_kB=", 18) && take_number(&p, &value) &&
		    value > 0 && value <= 65536 && (!t->page_kb || value < t->page_kb))
			t->page_kb = value;
	}
	return 0;
}

static enum format detect(const char *line)
{
	static const char *const policies[] = { " default",     " bind:", " prefer",
						" interleave:", " local", " weighted interleave:" };
	size_t hex = strspn(line, "0123456789abcdef");

	if (!strncmp(line, "available: ", 11) || !strncmp(line, "node 0 ", 7))
		return NUMACTL;
	if (*line == '#')
		return LSCPU;
	for (size_t i = 0; hex && i < sizeof(policies) / sizeof(policies[0]); i++)
		if (!strncmp(line + hex, policies[i], strlen(policies[i])))
			return NUMA_MAPS;
	return UNKNOWN;
}

static int text_line(struct topology *t, char *line)
{
	if (t->format == UNKNOWN)
		t->format = detect(line);
	switch (t->format) {
	case NUMACTL:
		return numactl_line(t, line);
	case LSCPU:
		return lscpu_line(t, line);
	case NUMA_MAPS:
		return numa_maps_line(t, line);
	default:
		return bad(t, "no topology that is known here");
	}
}

struct lines {
	struct topology *t;
	int (*each)(struct topology *, char *);
};

static int any_line(void *context, char *line, size_t size)
{
	const struct lines *lines = context;
	struct topology *t = lines->t;
	int r = 0;

	if (size > MAX_LINE || memchr(line, '\0', size))
		return bad(t, "not text");
	line[strcspn(line, "\r\n")] = '\0';
	if (*line)
		r = lines->each(t, line);
	t->offset += (int64_t)size;
	return r;
}

/* Calls @each with every line of t->path that is not blank. */
static int each_line(struct topology *t, int (*each)(struct topology *, char *))
{
	struct lines lines = { t, each };

	t->offset = 0;
	return nrp_each_line(t->path, MAX_SIDE_FILE, any_line, &lines, t->err);
}

/* ---- a copy of /sys/devices/system/node ------------------------------------------------ */

static uint64_t node_of_path(const struct topology *t)
{
	const char *slash = strrchr(t->path, '/'), *node = slash;

	while (node > t->path && node[-1] != '/')
		node--;
	return strtoull(node + strlen("node"), NULL, 10);
}

static int cpulist_line(struct topology *t, char *line)
{
	const char *what = nrp_facts_cpu_list(t->facts, line, (int)node_of_path(t));

	return !what ? 0 : *what ? bad(t, what) : nrp_fail_nomem(t->err);
}

/* "00000000,000aaaa0": the lowest CPU is the last bit. */
static int cpumap_line(struct topology *t, char *line)
{
	uint64_t cpu = 0;
	int r = 0;

	for (size_t i = strlen(line); r == 0 && i-- > 0;) {
		int digit;

		if (line[i] == ',')
			continue;
		if (!isxdigit((unsigned char)line[i]))
			return bad(t, "no map of CPUs");
		digit = isdigit((unsigned char)line[i])
				? line[i] - '0'
				: tolower((unsigned char)line[i]) - 'a' + 10;
		for (int bit = 0; r == 0 && bit < 4; bit++)
			if (digit & 1 << bit)
				r = add_cpu(t, cpu + (uint64_t)bit, node_of_path(t));
		cpu += 4;
	}
	return r;
}

/* "Node 0 MemTotal:        8386460 kB" */
static int meminfo_line(struct topology *t, char *line)
{
	const char *p = strstr(line, "MemTotal:");
	uint64_t kb;

	if (!p)
		return 0;
	p += 9 + strspn(p + 9, " \t");
	return take_number(&p, &kb) ? add_memory(t, node_of_path(t), kb)
				    : bad(t, "a size that is no number of kB");
}

/* One file of a node; *ret_there says whether it exists. */
static int node_file(struct topology *t, const char *folder, const char *node, const char *name,
		     int (*each)(struct topology *, char *), bool *ret_there)
{
	const char *whole = t->path;
	struct stat st;
	char *path;
	int r = 0;

	if (asprintf(&path, "%s/%s/%s", folder, node, name) < 0)
		return nrp_fail_nomem(t->err);
	*ret_there = stat(path, &st) == 0;
	if (*ret_there) {
		t->path = path;
		r = each_line(t, each);
		t->path = whole;
		t->offset = -1;
	}
	free(path);
	return r;
}

static int read_node(struct topology *t, const char *folder, const char *node)
{
	const char *digits = node + strlen("node");
	uint64_t nid;
	bool there;
	int r;

	if (strncmp(node, "node", 4) != 0 || !take_number(&digits, &nid) || *digits)
		return 0;
	r = add_node(t, nid);
	if (r == 0)
		r = node_file(t, folder, node, "cpulist", cpulist_line, &there);
	if (r == 0 && !there)
		r = node_file(t, folder, node, "cpumap", cpumap_line, &there);
	return r < 0 ? r : node_file(t, folder, node, "meminfo", meminfo_line, &there);
}

static int read_nodes(struct topology *t, const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return 0;
	while (r == 0 && (entry = readdir(dir)))
		r = read_node(t, folder, entry->d_name);
	closedir(dir);
	return r;
}

static int read_folder(struct topology *t)
{
	static const char *const places[] = { "", "/devices/system/node",
					      "/sys/devices/system/node" };
	int r = 0;

	for (size_t i = 0; r == 0 && !t->found && i < sizeof(places) / sizeof(places[0]); i++) {
		char *folder;

		if (asprintf(&folder, "%s%s", t->path, places[i]) < 0)
			return nrp_fail_nomem(t->err);
		r = read_nodes(t, folder);
		free(folder);
	}
	return r;
}

int nrp_topology_read(const char *path, struct nrp_host_facts *facts, struct nrp_error *err)
{
	struct topology t = {
		.path = path,
		.facts = facts,
		.offset = -1,
		.cpu_column = 0,
		.node_column = -1,
		.err = err,
	};
	struct stat st;
	int r;

	r = stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? read_folder(&t)
							: each_line(&t, text_line);
	t.offset = -1;
	if (r == 0 && !t.found)
		r = bad(&t, "names no node");
	if (r == 0 && t.page_kb && facts->page_size < 0)
		facts->page_size = (int64_t)t.page_kb * 1024;
	return r;
}

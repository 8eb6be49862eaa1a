/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of a scan.pte lane share: who shares pages with whom (scan_pte_kin.c), what a
 * fault shows of its entry (scan_pte_evidence.c), and the answers (scan_pte_lane.c).
 */
#ifndef NRP_SCAN_PTE_INTERNAL_H
#define NRP_SCAN_PTE_INTERNAL_H

#include "replay/pages.h"
#include "replay/scan_pte_lane.h"

#define NRP_PTE_PIN_REFERENCES 1024
/* Faults that came last: far more than there are at once on one page. */
#define NRP_PTE_HOLDERS 64
/* Address spaces of a family whose writes are followed. */
#define NRP_PTE_MEMBERS 4

/* Processes that may share anonymous pages: related by forks without an exec in between. */
struct nrp_pte_family {
	uint64_t last_fork; /* ns, 0: none seen */
	uint32_t live;      /* its tasks that have not exited */
	bool complete;      /* it began with an exec in the capture: all members are known */
	uint64_t alone_mm;  /* all live members are threads of this one, 0: not known */
	struct {
		uint64_t mm, time; /* last tasks to leave, of two address spaces; 0 time: none */
	} left[2];
	uint64_t member[NRP_PTE_MEMBERS]; /* its address spaces */
	uint32_t nr_members;              /* more than NRP_PTE_MEMBERS: not all are listed */
	/* ns: last time that a task did this whose address space is not known, 0: never */
	uint64_t stranger_wrote, stranger_left;
};

struct nrp_pte_task {
	uint32_t family; /* 0: not known */
	bool gone;
	uint64_t mm;        /* 0: not known yet */
	uint64_t parent_mm; /* 0: born by exec, or not known */
	uint64_t born;      /* ns, 0: before the capture */
};

struct nrp_pte_mm {
	uint32_t family; /* 0: not known */
	uint32_t live;   /* tasks known to live in it */
	uint64_t parent_mm, born;
	uint64_t left; /* ns: when its last task did */
	int32_t users; /* at its last scan pass, -1 unknown */
};

/* A huge-page-aligned stretch of one VMA: the scanner arms it as a whole. */
struct nrp_pte_cell {
	uint64_t armed;                 /* ns: the last covering scan, 0: none */
	uint64_t before_fork;           /* the last one before the family's last fork */
	uint64_t fork;                  /* the fork that before_fork is about */
	enum nrp_known single_threaded; /* at the last covering scan */
	int16_t nid;                    /* of the scanning CPU, -1 unknown */
};

struct nrp_pte_page {
	uint64_t fault; /* ns of the last one, 0: none */
	bool anonymous; /* its references were all mappings once: not in the page cache */
};

/* A page that all living members of a family map. */
struct nrp_pte_everyones {
	uint64_t time, fork; /* ns: the last fault that shows it, and the last fork before */
};

/* A fault that took its page before it began, and gives it to an attempt. */
struct nrp_pte_holder {
	uint64_t frame, time, until; /* ns: until the attempt began */
};

/* Most faults of a capture show the same few things of their entry: answers that were given. */
struct nrp_pte_given {
	struct nrp_scan_pte pte;
	enum nrp_known pmd;
	bool used;
	enum nrp_scan_pte_answer answer[NRP_NR_SCAN_PTE_VARIANTS];
};
#define NRP_PTE_GIVEN 64

struct nrp_scan_pte_lane {
	const struct nrp_host_facts *facts;
	struct nrp_pte_given given[NRP_PTE_GIVEN];
	struct nrp_scan_pte_policy asked[NRP_NR_SCAN_PTE_VARIANTS]; /* that given answers */
	size_t nr_asked;
	int host;
	uint64_t page_size, huge_size, huge_pages;
	struct nrp_pte_holder holders[NRP_PTE_HOLDERS];
	size_t next_holder;
	int32_t own_references;        /* that the fault itself holds where its counts are read */
	uint64_t stranger_fork;        /* last fork in a family that is not complete */
	struct nrp_pte_family *family; /* [0] is not used */
	uint32_t nr_families, family_room;
	uint64_t writes_since; /* ns: first page fault on record, 0: none */
	struct nrp_pages *tasks, *mms, *cells, *pages;
	struct nrp_pages *everyones; /* by (family, page): struct nrp_pte_everyones */
	struct nrp_scan_pte_proofs *known, *learned; /* of the whole capture; NULL: none */
	struct nrp_pages *written;  /* keyed by (mm, page): ns of the first write since a fork */
	struct nrp_pages *together; /* keyed by (family, page): ns when all its spaces shared it */
	struct nrp_pages *proved;   /* by (family, page pointer): address of an anonymous page */
};

/* The page of a fault, for what bridges the time since its entry was armed. */
struct nrp_pte_evidence {
	bool counts; /* map count and references are known */
	enum nrp_known base, pmd;
	enum nrp_known shared; /* mapped more than once, at every scan that may have armed it */
};

/* ---- scan_pte_kin.c -------------------------------------------------------------------- */

/* NULL: out of memory. */
struct nrp_pte_task *nrp_scan_pte_task(struct nrp_scan_pte_lane *l, int32_t tid);
/* A task was seen in an address space. 0 or -ENOMEM. */
int nrp_scan_pte_live_in(struct nrp_scan_pte_lane *l, int32_t tid, uint64_t mm);
/* NULL: out of memory. */
struct nrp_pte_cell *nrp_scan_pte_cell(struct nrp_scan_pte_lane *l, uint64_t mm, uint64_t vm_start,
				       uint64_t addr);
/* Scans from before the address space was born belong to another one at the same pointer. */
void nrp_scan_pte_forget_old(struct nrp_pte_cell *c, const struct nrp_pte_mm *m);
/* When (ns) the last fork that may concern this address space was. */
uint64_t nrp_scan_pte_last_fork(const struct nrp_scan_pte_lane *l, const struct nrp_pte_mm *m);

/* ---- scan_pte_evidence.c --------------------------------------------------------------- */

/* What the fault shows of its mapping and of its page's size. */
struct nrp_pte_evidence nrp_scan_pte_look_at(const struct nrp_scan_pte_lane *l,
					     const struct nrp_hint_fault *f,
					     struct nrp_scan_pte *pte);
/* What is known of the entry when it was armed; remembers the fault. 0 or -ENOMEM. */
int nrp_scan_pte_gather(struct nrp_scan_pte_lane *l, const struct nrp_hint_fault *f,
			struct nrp_scan_pte *pte, struct nrp_pte_evidence *e);

#endif

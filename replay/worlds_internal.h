/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the worlds share. */
#ifndef NRP_WORLDS_INTERNAL_H
#define NRP_WORLDS_INTERNAL_H

#include "replay/page_table.h"
#include "replay/shared_pages.h"
#include "replay/worlds.h"

#define NRP_NOWHERE (-1)

/* A page in one world. */
struct nrp_place {
	int16_t nid;
	bool cpupid_apart; /* last_cpupid differs from the recorded one */
	uint32_t last_cpupid;
	/* Single-threaded: (perhaps) remote here, local on record, since then; 0: not. */
	uint64_t apart_since;
};

/* Worlds that have a page at the same place, with the same memory of its user. */
struct nrp_group {
	uint32_t worlds; /* bit w: world w */
	struct nrp_place place;
};

/* A page that is not in all worlds as it is on record. */
struct nrp_places {
	/*
	 * Not in the locality book yet: page-seconds since the groups last changed, and the squares
	 * of their spans, in which the page and its users stayed where they were on record.
	 */
	double seconds, squares;
	uint32_t next_free; /* of the free ones */
	int32_t count;
	struct nrp_group group[]; /* as many as there are worlds */
};

#define NRP_PLACES_MAX (sizeof(struct nrp_places) + NRP_MAX_WORLDS * sizeof(struct nrp_group))

/* The fault statistics that choose a preferred node: of a task, or of its group. */
struct nrp_preference {
	uint64_t passes; /* of the address space, at the last decay */
	double *pages;   /* [nr_nodes] memory faults on record, decayed */
	double *differs; /* [2 lanes][nr_nodes] lane minus record */
	double off[2];   /* sums of the differences' sizes */
	bool apart;      /* some difference is not 0 */
};

/* What the filter and the scheduler last showed of a task. */
struct nrp_task {
	int32_t tid;
	bool known, alive;
	bool weights_known;
	bool grouped;
	int16_t preferred_nid;
	int16_t node; /* where it runs, -1: unknown */
	int32_t scan_seq;
	uint32_t mm;         /* number + 1, 0: unknown */
	uint32_t preference; /* number + 1 */
	int32_t group_id;
	/* The group's weights at the last filter call: of two nodes, a source and a target. */
	int16_t nid[2];
	uint64_t cpu[2], mem[2];
};

struct nrp_world {
	struct nrp_world_config config;
	struct nrp_world_result result;
	struct nrp_ratelimit_window *window; /* [nr_nodes] */
	bool *window_open;                   /* [nr_nodes] */
	double expected;                     /* accumulates the success rate */
	/* At the fault under way: */
	bool tries; /* made an attempt */
	bool apart; /* the page is elsewhere than on record */
};

/* Worlds whose window on a node is full, as long as all these windows last. */
struct nrp_full_windows {
	uint32_t worlds;
	uint64_t until; /* jiffies: the end that comes first */
};

/* Counts that some worlds have in common, until other worlds come. */
struct nrp_common_count {
	uint32_t worlds;
	uint64_t faults, pages;
};

/* A fault with what all worlds need of it. */
struct nrp_step {
	const struct nrp_hint_fault *f;
	const struct nrp_fault_context *context;
	uint64_t time;    /* of the decision */
	uint64_t pages;   /* base pages */
	int src, this;    /* nodes */
	int observed_nid; /* of the page after the fault, as recorded */
	bool attempted;   /* the kernel's attempt came to the limiter's place */
	bool refused, moved;
	/*
	 * The fault began while another one was moving the page, and saw the node it came from. On
	 * record nothing comes of it any more.
	 */
	bool overtaken;
	bool is_private; /* single-threaded, private VMA: local pages are not armed */
	bool filtered;   /* the record has the filter call */
	uint32_t kept;   /* worlds that had the pass that armed this page */
	uint32_t range;  /* that armed this page, or NRP_NO_RANGE */
	struct nrp_task *task;
	struct nrp_mm *mm;
	struct nrp_page *page;
};

struct nrp_worlds {
	const struct nrp_host_facts *facts;
	struct nrp_filter_host filter_host;
	enum nrp_filter_variant host_filter;
	uint64_t period_max_ns, origin;
	unsigned int page_shift;
	int nr_nodes, nr_worlds;
	int first_of_lane[2]; /* its central world, -1: no world */
	uint32_t thinned;     /* bit w: world w leaves passes out */
	uint32_t diverged;    /* bit w: from the start */
	uint32_t lane[2];     /* bit w: world w is of the lane */
	uint32_t fails;       /* bit w: nothing unknown succeeds in world w */
	bool same_filter;     /* all worlds have the host's */
	bool one_filter;      /* all worlds have the same */
	bool filter_passes;   /* some world asks no filter (tests) */
	bool has_threads;     /* an address space was scanned that may have several */
	struct nrp_world world[NRP_MAX_WORLDS];
	struct nrp_full_windows *full;           /* [nr_nodes] */
	struct nrp_common_count remote, refused; /* of quiet faults; not in the results yet */
	struct nrp_world_result common;          /* what all worlds have in common */
	struct nrp_worlds_totals totals;
	struct nrp_address_spaces *spaces;
	struct nrp_page_table *pages;
	struct nrp_page_table_ops ops;
	struct nrp_shared_pages *shared; /* NULL: no page has several mappings */
	struct nrp_locality *locality;
	unsigned char *places;                       /* struct nrp_places; number 0 is not used */
	size_t places_size;                          /* of each, bytes */
	uint32_t nr_places, room_places, free_place; /* free ones are a list, 0: none */
	struct nrp_task *tasks;
	uint32_t nr_tasks, room_tasks;
	struct nrp_pages *task_numbers; /* keyed by tid: number + 1 */
	uint32_t task_cache[256];       /* by tid: number + 1 */
	struct nrp_preference *preferences;
	uint32_t nr_preferences, room_preferences;
	struct nrp_pages *preference_numbers; /* keyed by (grouped, id): number + 1 */
	uint64_t tried, succeeded; /* recorded attempts that ran, and those that moved the page */
	uint64_t huge_local, huge_remote; /* recorded faults on private huge pages of one thread */
	uint64_t tick_time, tick;         /* last pair of time and jiffies */
	uint64_t ticks_at, ticks;         /* a time (0: none) and its jiffies */
	bool have_tick;
	uint32_t attempted_in; /* worlds that made the attempt of the last fault */
	/* Counts per address space (worlds_counts.c). */
	struct {
		struct nrp_space_count *of; /* [nr_spaces][nr_worlds + 2]: worlds, all, record */
		uint32_t nr_spaces;
		int64_t now;  /* of the faults since the last change; -1: none */
		bool stepped; /* results of single worlds may have changed since then */
		struct nrp_space_count before[NRP_MAX_WORLDS], all;
	} counts;
	struct nrp_pages *faulters; /* keyed by page; with shared */
	bool failed;                /* out of memory where nobody could be told */
	uint64_t now;               /* of the record that is fed */
};

/* Seconds since the origin. */
static inline double nrp_worlds_seconds(const struct nrp_worlds *w, uint64_t time)
{
	return (double)(int64_t)(time - w->origin) * 1e-9;
}

/* The page's places in the worlds, if it has any of its own. */
static inline struct nrp_places *nrp_worlds_places(const struct nrp_worlds *w, uint32_t number)
{
	return (struct nrp_places *)(w->places + (size_t)number * w->places_size);
}

/* Calls for each world of @worlds: for (..) while (..). */
static inline int nrp_next_world(uint32_t *worlds)
{
	int i = __builtin_ctz(*worlds);

	*worlds &= *worlds - 1;
	return i;
}

static inline bool nrp_place_equal(const struct nrp_place *a, const struct nrp_place *b)
{
	return a->nid == b->nid && a->last_cpupid == b->last_cpupid &&
	       a->cpupid_apart == b->cpupid_apart && a->apart_since == b->apart_since;
}

/* Where the page is in the first world of a lane; @nid: on record. */
static inline int nrp_places_nid(const struct nrp_places *places, int world, int nid)
{
	for (int g = 0; places && g < places->count; g++)
		if (places->group[g].worlds >> world & 1)
			return places->group[g].place.nid;
	return nid;
}

/* ---- worlds_pages.c: where pages lie, and the locality book ------------------------- */

/* All that return int: 0 or -ENOMEM. */
struct nrp_page_table *nrp_worlds_new_pages(struct nrp_worlds *w);
/* Number of a free set of places, 0: out of memory. */
uint32_t nrp_worlds_take_places(struct nrp_worlds *w);
void nrp_worlds_give_back(struct nrp_worlds *w, struct nrp_page *page);
/* Adds @worlds to the group with this place. */
void nrp_places_add(struct nrp_places *places, uint32_t worlds, const struct nrp_place *place);
/* Enters the page-seconds that a split page's places have gathered: before any of them changes. */
int nrp_worlds_book_time(struct nrp_worlds *w, struct nrp_page *page);
/* Page-seconds since the page's previous fault, where somebody is remote or elsewhere. */
int nrp_worlds_account(struct nrp_worlds *w, struct nrp_page *page, uint64_t now,
		       int next_accessor);
/* The book's side of a step: only changes of place are written. */
int nrp_worlds_book_changes(struct nrp_worlds *w, const struct nrp_step *s,
			    const struct nrp_place *before, const struct nrp_place *after);
/* A page that somebody else moved is where it was found, in every world. */
int nrp_worlds_move_externally(struct nrp_worlds *w, struct nrp_page *page, int nid);
/* Its last user stays until now. */
void nrp_worlds_close_page(struct nrp_worlds *w, struct nrp_page *page);
/* Closes a page that is none any more. */
void nrp_worlds_end_page(struct nrp_worlds *w, struct nrp_page *page);
/* Counts the pages, and how few of them the remote time rests on. */
int nrp_worlds_concentrate(struct nrp_worlds *w);

/* ---- worlds_decide.c: one fault in one world ---------------------------------------- */

void nrp_world_step(struct nrp_worlds *w, int world, const struct nrp_step *s,
		    struct nrp_place *place);
/*
 * Missing faults of a page that is remote in the world but was local on record (E2). @apart_pages:
 * base pages, if they are elsewhere than on record now, else 0.
 */
void nrp_world_missing(struct nrp_worlds *w, int world, struct nrp_place *place, uint64_t addr,
		       const struct nrp_mm *mm, uint64_t until, uint64_t apart_pages);

/* What the filter says to a remote page; NRP_FILTER_UNDECIDED: cannot be told. */
enum nrp_filter_answer nrp_world_filter(const struct nrp_worlds *w, enum nrp_filter_variant filter,
					const struct nrp_step *s, const struct nrp_place *place);
/* Does an undecided filter pass in this world? */
bool nrp_world_guess(struct nrp_worlds *w, int world, const struct nrp_step *s,
		     const struct nrp_place *place);
/*
 * An attempt that the record does not have, in each of @worlds: those in which it moves the page.
 * *ret_refused: those whose limiter refuses it.
 */
uint32_t nrp_worlds_try(struct nrp_worlds *w, uint32_t worlds, const struct nrp_step *s,
			uint32_t *ret_refused);
/* Enter the counts that worlds have in common. */
void nrp_worlds_enter_remote(struct nrp_worlds *w);
void nrp_worlds_enter_refused(struct nrp_worlds *w);

/* ---- worlds_counts.c: counts per address space and shared page ------------------------- */

/* The faults that follow are of this address space; -1: of none that is known. */
int nrp_worlds_enter_space(struct nrp_worlds *w, int64_t number);
void nrp_worlds_count_record(struct nrp_worlds *w, int64_t number, const struct nrp_step *s);
struct nrp_pages *nrp_worlds_new_faulters(void);
/* A fault on a page that several address spaces may map. */
int nrp_worlds_count_faulter(struct nrp_worlds *w, const struct nrp_page *page, int nid);
/* The page known as (@space, @vfn) so far is @leader. */
int nrp_worlds_join_faulters(struct nrp_worlds *w, uint32_t space, uint64_t vfn,
			     const struct nrp_page *leader);

/* ---- worlds_quiet.c: worlds that agree share a step where nothing happened on record -- */

/* Was the page local on record, and was nothing tried? */
bool nrp_worlds_is_quiet(const struct nrp_worlds *w, const struct nrp_step *s);
int nrp_worlds_step_quiet(struct nrp_worlds *w, const struct nrp_step *s,
			  struct nrp_places *places);

/* ---- worlds_tasks.c: where tasks run, and what they prefer -------------------------- */

/* NULL: out of memory. Valid until the next call. */
struct nrp_task *nrp_worlds_task(struct nrp_worlds *w, int32_t tid);
/* The task was seen on @nid, in address space @mm (number). */
int nrp_worlds_task_seen(struct nrp_worlds *w, struct nrp_task *task, uint32_t mm, int nid,
			 uint64_t time);
void nrp_worlds_learn_task(struct nrp_task *task, const struct nrp_hint_fault *f);
/* Counts the fault's pages where they are on record, and where the lanes' first worlds have them.
 */
int nrp_worlds_prefer(struct nrp_worlds *w, const struct nrp_step *s, const int nid[2]);

#endif

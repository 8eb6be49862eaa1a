/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/shared_pages.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>

/* What is known of a name. */
struct known {
	bool seen;
	struct nrp_page_name leader; /* the name it follows; itself, if it leads */
	uint64_t frame;              /* of a leader; 0: moved since it was seen */
};

/* The leader that was seen on a frame last, or moved from a mapping's page last. */
struct trail {
	bool seen;
	struct nrp_page_name leader;
};

struct nrp_shared_pages {
	struct nrp_pages *names;  /* keyed by name */
	struct nrp_pages *frames; /* keyed by frame */
	struct nrp_pages *moved;  /* keyed by (vm_start, vfn) */
};

struct nrp_shared_pages *nrp_shared_pages_new(void)
{
	struct nrp_shared_pages *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->names = nrp_pages_new(sizeof(struct known));
	s->frames = nrp_pages_new(sizeof(struct trail));
	s->moved = nrp_pages_new(sizeof(struct trail));
	return s->names && s->frames && s->moved ? s : nrp_shared_pages_free(s);
}

struct nrp_shared_pages *nrp_shared_pages_free(struct nrp_shared_pages *s)
{
	if (s) {
		nrp_pages_free(s->names);
		nrp_pages_free(s->frames);
		nrp_pages_free(s->moved);
		free(s);
	}
	return NULL;
}

static bool same(const struct nrp_page_name *a, const struct nrp_page_name *b)
{
	return a->space == b->space && a->vfn == b->vfn;
}

/* Made on first use; NULL: out of memory. Valid until a name is seen for the first time. */
static struct known *known(struct nrp_shared_pages *s, const struct nrp_page_name *name)
{
	return nrp_pages_get(s->names, name->space, name->vfn);
}

/* The name that stands for the page of a name that was seen. */
static struct nrp_page_name leader_of(struct nrp_shared_pages *s, struct nrp_page_name name)
{
	for (;;) {
		const struct known *k = known(s, &name);

		if (same(&k->leader, &name))
			return name;
		name = k->leader;
	}
}

/* @leader is on @frame from now on. */
static int settle(struct nrp_shared_pages *s, const struct nrp_page_name *leader, uint64_t frame)
{
	struct trail *t = nrp_pages_get(s->frames, frame, 0);

	if (!t)
		return -ENOMEM;
	known(s, leader)->frame = frame;
	*t = (struct trail){ .seen = true, .leader = *leader };
	return 0;
}

/* Does the trail lead to a page of other address spaces that is still on @frame (0: on the move)?
 */
static bool leads(struct nrp_shared_pages *s, const struct trail *t,
		  const struct nrp_page_name *name, uint64_t frame, struct nrp_page_name *ret)
{
	if (!t->seen || t->leader.space == name->space)
		return false;
	*ret = leader_of(s, t->leader);
	return !same(ret, name) && known(s, ret)->frame == frame;
}

/* The page that @name turns out to be. */
static int find_other(struct nrp_shared_pages *s, const struct nrp_page_name *name, uint64_t frame,
		      uint64_t vm_start, struct nrp_page_name *ret, bool *ret_found)
{
	const struct trail *on_frame = nrp_pages_get(s->frames, frame, 0);
	const struct trail *moved = vm_start ? nrp_pages_get(s->moved, vm_start, name->vfn) : NULL;

	if (!on_frame || (vm_start && !moved))
		return -ENOMEM;
	*ret_found =
		leads(s, on_frame, name, frame, ret) || (moved && leads(s, moved, name, 0, ret));
	return 0;
}

/* @leader, seen before or not, follows the page that it turns out to be, or stands for itself. */
static int place(struct nrp_shared_pages *s, struct nrp_page_name *leader, uint64_t frame,
		 uint64_t vm_start, bool shared, bool *ret_joined)
{
	struct nrp_page_name other;
	bool found = false;
	struct known *k;
	int r = shared ? find_other(s, leader, frame, vm_start, &other, &found) : 0;

	if (r < 0)
		return r;
	k = known(s, leader);
	if (!k)
		return -ENOMEM;
	k->seen = true;
	k->frame = 0;
	k->leader = found ? other : *leader;
	if (found) {
		*leader = other;
		*ret_joined = true;
	}
	return settle(s, leader, frame);
}

int nrp_shared_pages_see(struct nrp_shared_pages *s, struct nrp_page_name *name, uint64_t frame,
			 uint64_t vm_start, bool shared, bool *ret_joined, bool *ret_parted)
{
	struct known *k = known(s, name);
	struct nrp_page_name leader;
	uint64_t was_on;

	*ret_joined = *ret_parted = false;
	if (!k)
		return -ENOMEM;
	if (!k->seen)
		return place(s, name, frame, vm_start, shared, ret_joined);
	leader = leader_of(s, *name);
	was_on = known(s, &leader)->frame;
	if (was_on == frame) {
		*name = leader;
		return 0;
	}
	if (same(&leader, name) || (!was_on && shared)) {
		*name = leader;
		/* On the move, and shared: it may be one that is known under other names. */
		if (!was_on && shared)
			return place(s, name, frame, vm_start, true, ret_joined);
		return settle(s, name, frame);
	}
	*ret_parted = true;
	return place(s, name, frame, vm_start, shared, ret_joined);
}

int nrp_shared_pages_moved(struct nrp_shared_pages *s, const struct nrp_page_name *name,
			   uint64_t vm_start)
{
	struct known *k = known(s, name);
	struct trail *t;

	if (!k)
		return -ENOMEM;
	if (!k->seen)
		return 0;
	k->frame = 0;
	if (!vm_start)
		return 0;
	t = nrp_pages_get(s->moved, vm_start, name->vfn);
	if (!t)
		return -ENOMEM;
	*t = (struct trail){ .seen = true, .leader = *name };
	return 0;
}

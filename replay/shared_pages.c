/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "replay/shared_pages.h"
#include "replay/pages.h"

#include <errno.h>
#include <stdlib.h>

/* What is known of a name. */
struct known {
	bool seen;
	struct nrp_page_name leader; /* the name that stands for the page; itself, if it is alone */
	uint64_t frame;              /* of a leader; 0: moved since it was seen */
	uint32_t followers;          /* of a leader */
};

/* The leader that was seen on a frame last. */
struct frame {
	bool seen;
	struct nrp_page_name leader;
};

struct nrp_shared_pages {
	struct nrp_pages *names, *frames;
};

struct nrp_shared_pages *nrp_shared_pages_new(void)
{
	struct nrp_shared_pages *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->names = nrp_pages_new(sizeof(struct known));
	s->frames = nrp_pages_new(sizeof(struct frame));
	return s->names && s->frames ? s : nrp_shared_pages_free(s);
}

struct nrp_shared_pages *nrp_shared_pages_free(struct nrp_shared_pages *s)
{
	if (s) {
		nrp_pages_free(s->names);
		nrp_pages_free(s->frames);
		free(s);
	}
	return NULL;
}

static bool same(const struct nrp_page_name *a, const struct nrp_page_name *b)
{
	return a->space == b->space && a->vfn == b->vfn;
}

static struct known *known(struct nrp_shared_pages *s, const struct nrp_page_name *name)
{
	return nrp_pages_get(s->names, name->space, name->vfn);
}

/* @leader is on @frame from now on. */
static int settle(struct nrp_shared_pages *s, const struct nrp_page_name *leader, uint64_t frame)
{
	struct known *k = known(s, leader);
	struct frame *f = nrp_pages_get(s->frames, frame, 0);

	if (!k || !f)
		return -ENOMEM;
	k->frame = frame;
	*f = (struct frame){ .seen = true, .leader = *leader };
	return 0;
}

/* The page on @frame that @name may be: of another address space, seen there, and still there. */
static int find_leader(struct nrp_shared_pages *s, const struct nrp_page_name *name, uint64_t frame,
		       struct nrp_page_name *ret, bool *ret_found)
{
	const struct frame *f = nrp_pages_get(s->frames, frame, 0);
	const struct known *k;

	if (!f)
		return -ENOMEM;
	*ret = f->leader;
	*ret_found = false;
	if (!f->seen || f->leader.space == name->space)
		return 0;
	k = known(s, ret);
	if (!k)
		return -ENOMEM;
	*ret_found = k->frame == frame;
	return 0;
}

/* @name stands for itself, or follows the page that is on the frame. */
static int place(struct nrp_shared_pages *s, struct nrp_page_name *name, uint64_t frame,
		 bool shared, bool *ret_joined)
{
	struct nrp_page_name leader;
	struct known *k;
	bool found = false;
	int r = shared ? find_leader(s, name, frame, &leader, &found) : 0;

	if (r < 0)
		return r;
	if (!found)
		leader = *name;
	k = known(s, name);
	if (!k)
		return -ENOMEM;
	k->seen = true;
	k->leader = leader;
	k->frame = 0;
	if (found) {
		k = known(s, &leader);
		k->followers++;
		*name = leader;
		*ret_joined = true;
		return 0;
	}
	return settle(s, name, frame);
}

int nrp_shared_pages_see(struct nrp_shared_pages *s, struct nrp_page_name *name, uint64_t frame,
			 bool shared, bool *ret_joined, bool *ret_parted)
{
	struct known *k = known(s, name), *leader;
	struct nrp_page_name found;
	bool other = false;
	int r;

	*ret_joined = *ret_parted = false;
	if (!k)
		return -ENOMEM;
	if (!k->seen)
		return place(s, name, frame, shared, ret_joined);
	found = k->leader;
	leader = known(s, &found);
	if (!leader)
		return -ENOMEM;
	if (leader->frame == frame) {
		*name = found;
		return 0;
	}
	if (same(&found, name)) {
		/* Alone so far: a page that was moved may turn out to be one that is known. */
		if (!leader->followers && shared) {
			r = find_leader(s, name, frame, &found, &other);
			if (r < 0)
				return r;
			if (other)
				return place(s, name, frame, shared, ret_joined);
			found = *name;
		}
		return settle(s, &found, frame);
	}
	if (!leader->frame && shared) {
		*name = found;
		return settle(s, &found, frame);
	}
	leader->followers--;
	*ret_parted = true;
	return place(s, name, frame, shared, ret_joined);
}

int nrp_shared_pages_moved(struct nrp_shared_pages *s, const struct nrp_page_name *name)
{
	struct known *k = known(s, name);

	if (!k)
		return -ENOMEM;
	k->frame = 0;
	return 0;
}

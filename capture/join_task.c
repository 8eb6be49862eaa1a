/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Task placement (sched_*_numa, sched_migrate_task, sched_setnuma) and task life. */
#include "capture/join_internal.h"

#include <errno.h>

/* The NUMA placement events are the only ones that say which process a thread belongs to. */
static int learn_tgid(struct nrp_joiner *j, const struct nrp_step *step, int32_t tid, int32_t tgid,
		      struct nrp_error *err)
{
	struct nrp_thread *t;

	if (tid <= 0 || tgid <= 0)
		return 0;
	t = nrp_thread_get(j->threads, tid, step->raw->cpu);
	if (!t)
		return nrp_fail_nomem(err);
	t->tgid = tgid;
	return 0;
}

static int write_move(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_task_move *m,
		      struct nrp_error *err)
{
	int r = 0;

	if (!NRP_NULL(m, task_move, src_cpu) && !NRP_NULL(m, task_move, src_nid))
		nrp_join_check_cpu(j, m->src_cpu, m->src_nid);
	if (!NRP_NULL(m, task_move, dst_cpu) && !NRP_NULL(m, task_move, dst_nid))
		nrp_join_check_cpu(j, m->dst_cpu, m->dst_nid);
	if (!NRP_NULL(m, task_move, tgid))
		r = learn_tgid(j, step, m->tid, m->tgid, err);
	if (r == 0 && !NRP_NULL(m, task_move, dst_tgid))
		r = learn_tgid(j, step, m->dst_tid, m->dst_tgid, err);
	return r < 0 ? r : nrp_writer_append(j->writer, NRP_TASK_MOVE, m, err);
}

static void move_start(const struct nrp_step *step, struct nrp_task_move *m, uint8_t kind)
{
	NRP_ROW_INIT(m);
	NRP_SET(m, task_move, time, step->raw->time);
	NRP_SET(m, task_move, cpu, step->raw->cpu);
	NRP_SET(m, task_move, kind, kind);
}

static int move_numa(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_task_move m;

	move_start(step, &m, NRP_MOVE_MOVE);
	NRP_TAKE(step, &m, task_move, tid, MOVE_NUMA, pid);
	NRP_TAKE(step, &m, task_move, tgid, MOVE_NUMA, tgid);
	NRP_TAKE(step, &m, task_move, ngid, MOVE_NUMA, ngid);
	NRP_TAKE(step, &m, task_move, src_cpu, MOVE_NUMA, src_cpu);
	NRP_TAKE(step, &m, task_move, src_nid, MOVE_NUMA, src_nid);
	NRP_TAKE(step, &m, task_move, dst_cpu, MOVE_NUMA, dst_cpu);
	NRP_TAKE(step, &m, task_move, dst_nid, MOVE_NUMA, dst_nid);
	return write_move(j, step, &m, err);
}

/* Fields of an event that names a pair of tasks. */
#define TAKE_PAIR(step, m, EVENT)                                                                  \
	do {                                                                                       \
		NRP_TAKE(step, m, task_move, tid, EVENT, src_pid);                                 \
		NRP_TAKE(step, m, task_move, tgid, EVENT, src_tgid);                               \
		NRP_TAKE(step, m, task_move, ngid, EVENT, src_ngid);                               \
		NRP_TAKE(step, m, task_move, src_cpu, EVENT, src_cpu);                             \
		NRP_TAKE(step, m, task_move, src_nid, EVENT, src_nid);                             \
		NRP_TAKE(step, m, task_move, dst_tid, EVENT, dst_pid);                             \
		NRP_TAKE(step, m, task_move, dst_tgid, EVENT, dst_tgid);                           \
		NRP_TAKE(step, m, task_move, dst_ngid, EVENT, dst_ngid);                           \
		NRP_TAKE(step, m, task_move, dst_cpu, EVENT, dst_cpu);                             \
		NRP_TAKE(step, m, task_move, dst_nid, EVENT, dst_nid);                             \
	} while (0)

/* sched_stick_numa names one task up to 4.18 and a pair later: whichever fields are there. */
static int stick_numa(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_task_move m;

	move_start(step, &m, NRP_MOVE_STICK);
	NRP_TAKE(step, &m, task_move, tid, STICK_NUMA, pid);
	NRP_TAKE(step, &m, task_move, tgid, STICK_NUMA, tgid);
	NRP_TAKE(step, &m, task_move, ngid, STICK_NUMA, ngid);
	TAKE_PAIR(step, &m, STICK_NUMA);
	return write_move(j, step, &m, err);
}

static int swap_numa(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_task_move m;

	move_start(step, &m, NRP_MOVE_SWAP);
	TAKE_PAIR(step, &m, SWAP_NUMA);
	return write_move(j, step, &m, err);
}

static int migrate_task(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_task_move m;

	move_start(step, &m, NRP_MOVE_MIGRATE);
	NRP_TAKE(step, &m, task_move, tid, MIGRATE_TASK, pid);
	NRP_TAKE(step, &m, task_move, src_cpu, MIGRATE_TASK, orig_cpu);
	NRP_TAKE(step, &m, task_move, dst_cpu, MIGRATE_TASK, dest_cpu);
	return nrp_writer_append(j->writer, NRP_TASK_MOVE, &m, err);
}

static int preferred(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	struct nrp_preferred p;

	NRP_ROW_INIT(&p);
	NRP_SET(&p, preferred, time, step->raw->time);
	NRP_SET(&p, preferred, cpu, step->raw->cpu);
	NRP_TAKE(step, &p, preferred, tid, PREFERRED, pid);
	NRP_TAKE(step, &p, preferred, nid, PREFERRED, nid);
	return nrp_writer_append(j->writer, NRP_PREFERRED, &p, err);
}

static int life(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	unsigned int name_field = NRP_EF_EXIT_comm;
	struct nrp_task_life l;
	char name[256];

	NRP_ROW_INIT(&l);
	NRP_SET(&l, task_life, time, step->raw->time);
	NRP_SET(&l, task_life, cpu, step->raw->cpu);
	switch (step->desc->event) {
	case NRP_EV_FORK:
		NRP_SET(&l, task_life, kind, NRP_LIFE_FORK);
		NRP_TAKE(step, &l, task_life, tid, FORK, parent_pid);
		NRP_TAKE(step, &l, task_life, child_tid, FORK, child_pid);
		name_field = NRP_EF_FORK_child_comm;
		break;
	case NRP_EV_EXEC:
		NRP_SET(&l, task_life, kind, NRP_LIFE_EXEC);
		NRP_TAKE(step, &l, task_life, tid, EXEC, pid);
		name_field = NRP_EF_EXEC_filename;
		break;
	default:
		NRP_SET(&l, task_life, kind, NRP_LIFE_EXIT);
		NRP_TAKE(step, &l, task_life, tid, EXIT, pid);
		break;
	}
	if (nrp_step_string(step, name_field, name, sizeof(name))) {
		uint32_t id = nrp_join_intern(j, name, err);

		if (!id)
			return -EIO;
		NRP_SET(&l, task_life, name, id);
	}
	if (l.kind == NRP_LIFE_EXIT) {
		int r = nrp_join_close_fault(j, step->thread, 0, err);

		if (r < 0)
			return r;
	}
	return nrp_writer_append(j->writer, NRP_TASK_LIFE, &l, err);
}

int nrp_join_task(struct nrp_joiner *j, const struct nrp_step *step, struct nrp_error *err)
{
	switch (step->desc->event) {
	case NRP_EV_MOVE_NUMA:
		return move_numa(j, step, err);
	case NRP_EV_STICK_NUMA:
		return stick_numa(j, step, err);
	case NRP_EV_SWAP_NUMA:
		return swap_numa(j, step, err);
	case NRP_EV_MIGRATE_TASK:
		return migrate_task(j, step, err);
	case NRP_EV_PREFERRED:
		return preferred(j, step, err);
	default:
		return life(j, step, err);
	}
}

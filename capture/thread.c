/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/thread.h"

#include <stdlib.h>

struct slot {
	uint64_t key; /* 0: free */
	struct nrp_thread *thread;
};

#define RECENT 64

struct nrp_thread_table {
	struct slot *slots;
	size_t mask; /* slots - 1 */
	struct nrp_thread **order;
	size_t count;
	struct slot recent[RECENT]; /* copies, by the key's lowest bits: most events find theirs */
};

struct nrp_thread_table *nrp_thread_table_new(void)
{
	struct nrp_thread_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->mask = 255;
	table->slots = calloc(table->mask + 1, sizeof(*table->slots));
	table->order = calloc(table->mask + 1, sizeof(struct nrp_thread *));
	if (!table->slots || !table->order)
		return nrp_thread_table_free(table);
	return table;
}

struct nrp_thread_table *nrp_thread_table_free(struct nrp_thread_table *table)
{
	if (!table)
		return NULL;
	for (size_t i = 0; i < table->count; i++) {
		free(table->order[i]->weights);
		free(table->order[i]);
	}
	free(table->order);
	free(table->slots);
	free(table);
	return NULL;
}

static uint64_t key_of(int32_t tid, uint32_t cpu)
{
	/* Never 0: the idle tasks get keys above every tid. */
	return tid ? (uint32_t)tid : (UINT64_C(1) << 32) + cpu;
}

static struct slot *find(const struct slot *slots, size_t mask, uint64_t key)
{
	size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;

	while (slots[i].key && slots[i].key != key)
		i = (i + 1) & mask;
	return (struct slot *)&slots[i];
}

static bool grow(struct nrp_thread_table *table)
{
	size_t mask = table->mask * 2 + 1;
	struct slot *slots = calloc(mask + 1, sizeof(*slots));
	struct nrp_thread **order = reallocarray(table->order, mask + 1, sizeof(*order));

	if (order)
		table->order = order;
	if (!slots || !order) {
		free(slots);
		return false;
	}
	for (size_t i = 0; i <= table->mask; i++)
		if (table->slots[i].key)
			*find(slots, mask, table->slots[i].key) = table->slots[i];
	free(table->slots);
	table->slots = slots;
	table->mask = mask;
	return true;
}

struct nrp_thread *nrp_thread_get(struct nrp_thread_table *table, int32_t tid, uint32_t cpu)
{
	uint64_t key = key_of(tid, cpu);
	struct slot *recent = &table->recent[key % RECENT], *slot;

	if (recent->key == key)
		return recent->thread;
	slot = find(table->slots, table->mask, key);
	if (!slot->key) {
		struct nrp_thread *thread;

		if (2 * (table->count + 1) > table->mask) {
			if (!grow(table))
				return NULL;
			slot = find(table->slots, table->mask, key);
		}
		thread = calloc(1, sizeof(*thread));
		if (!thread)
			return NULL;
		thread->tid = tid;
		slot->key = key;
		slot->thread = thread;
		table->order[table->count++] = thread;
	}
	*recent = *slot;
	return slot->thread;
}

struct nrp_thread *nrp_thread_at(struct nrp_thread_table *table, size_t i)
{
	return i < table->count ? table->order[i] : NULL;
}

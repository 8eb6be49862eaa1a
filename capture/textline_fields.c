/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Behind an event's name: "key=value key=value", found by key, into the payload. */
#include "capture/textline_internal.h"

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static struct nrp_field *field_of(struct nrp_textline *t, enum nrp_event event, int i)
{
	return &t->cat.desc[event].field[i];
}

static void set_integer(struct nrp_textline *t, enum nrp_event event, int i, uint64_t value)
{
	t->payload.slot[i] = value;
	*field_of(t, event, i) = (struct nrp_field){
		.offset = (uint16_t)(offsetof(struct nrp_text_payload, slot) + 8 * (size_t)i),
		.size = 8,
		.is_signed = true,
	};
}

static void set_string(struct nrp_textline *t, enum nrp_event event, int i, const char *p,
		       const char *end)
{
	size_t n = (size_t)(end - p);

	if (n >= sizeof(t->payload.string))
		n = sizeof(t->payload.string) - 1;
	memcpy(t->payload.string, p, n);
	t->payload.string[n] = '\0';
	*field_of(t, event, i) = (struct nrp_field){
		.offset = offsetof(struct nrp_text_payload, string),
		.size = (uint16_t)(n + 1),
		.is_string = true,
	};
}

/* "12", "-11", "0xff", "ff" if @hex, "true". */
static bool parse_value(const char *p, const char *end, bool hex, uint64_t *ret)
{
	uint64_t value;

	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		return nrp_text_number(p + 2, end, 16, ret);
	if (hex)
		return nrp_text_number(p, end, 16, ret);
	if (p < end && *p == '-') {
		if (!nrp_text_number(p + 1, end, 10, &value) || value > UINT64_C(1) << 63)
			return false;
		*ret = 0 - value;
		return true;
	}
	if (nrp_text_number(p, end, 10, ret))
		return true;
	if (end - p == 4 && !memcmp(p, "true", 4))
		*ret = 1;
	else if (end - p == 5 && !memcmp(p, "false", 5))
		*ret = 0;
	else
		return false;
	return true;
}

/* Can the field have this value? Cut off, one that it cannot have would look like a good one. */
static bool is_within(uint64_t value, enum nrp_text_limit limit)
{
	switch (limit) {
	case NRP_TEXT_8_BITS:
		return nrp_fits(value, 1);
	case NRP_TEXT_32_BITS:
		return nrp_fits(value, 4);
	case NRP_TEXT_NODE:
		return value + 1 <= NRP_MAX_NODES;
	default:
		return true;
	}
}

/* %p hashes a pointer to 32 bits: "0000000082b6b905"; no kernel object lies there. */
static bool is_hashed(enum nrp_event event, int field, const char *p, const char *end)
{
	bool lock = event >= NRP_EV_LOCK_START && event <= NRP_EV_LOCK_RELEASED;

	/* the first field of both */
	return field == NRP_EF_LOCK_START_mm && (lock || event >= NRP_EV_CONTENTION_BEGIN) &&
	       end - p == 16 && !memcmp(p, "00000000", 8) && memcmp(p + 8, "00000000", 8) != 0;
}

static bool is_enum(enum nrp_event event, int field)
{
	return (event == NRP_EV_MIGRATE_PAGES && field >= NRP_EF_MIGRATE_PAGES_mode) ||
	       event == NRP_EV_MIGRATE_START;
}

static void take_word(struct nrp_textline *t, enum nrp_event event, int i, const char *p,
		      const char *end)
{
	const struct nrp_text_key *key = &t->event[event].key[i];
	uint64_t value;

	if (parse_value(p, end, key->hex, &value) && is_within(value, key->limit)) {
		set_integer(t, event, i, value);
		t->stats.hashed += is_hashed(event, i, p, end);
	} else if (is_enum(event, i) && nrp_text_enum(p, (size_t)(end - p), &value)) {
		set_integer(t, event, i, value);
	} else if (event == NRP_EV_SKIP_VMA && i == NRP_EF_SKIP_VMA_reason && p < end) {
		set_string(t, event, i, p, end);
	} else {
		t->stats.unresolved++;
	}
}

/*
 * "{1,2,3}" of faults[]; returns what is behind it. trace-cmd prints faults[] without a declared
 * size as zeros whatever they hold: zeros are values only where some array of the text is not zero,
 * which its first reading tells.
 */
static const char *take_array(struct nrp_textline *t, enum nrp_event event, int i, const char *p,
			      const char *end)
{
	const char *close = memchr(p, '}', (size_t)(end - p));
	bool zeros = true;
	size_t n = 0;

	if (!close) {
		t->stats.unresolved++;
		return end;
	}
	for (const char *at = p + 1; at < close && n < 4 * NRP_MAX_NODES; n++) {
		const char *comma = memchr(at, ',', (size_t)(close - at));
		const char *stop = comma ? comma : close;

		if (!parse_value(at, stop, false, &t->payload.weight[n]))
			break;
		zeros = zeros && !t->payload.weight[n];
		at = stop + 1;
	}
	t->arrays_printed |= !zeros;
	if (!t->arrays_printed)
		t->stats.zero_arrays++;
	else
		*field_of(t, event, i) = (struct nrp_field){
			.offset = offsetof(struct nrp_text_payload, weight),
			.size = (uint16_t)(8 * n),
		};
	return close + 1;
}

/* f0=.. f1=..: the weights of kernels without array arguments, one after the other. */
static bool take_weight(struct nrp_textline *t, const char *key, size_t size, const char *p,
			const char *end)
{
	uint64_t n;

	if (key[0] != 'f' || !nrp_text_number(key + 1, key + size, 10, &n))
		return false;
	if (n != t->cat.weight_fields || n >= 4 * NRP_MAX_NODES ||
	    !parse_value(p, end, false, &t->payload.weight[n]))
		return true;
	t->cat.weight_fields++;
	if (n == 0)
		*field_of(t, NRP_EV_FILTER_BEGIN, NRP_EF_FILTER_BEGIN_f0) = (struct nrp_field){
			.offset = offsetof(struct nrp_text_payload, weight),
			.size = 8,
		};
	return true;
}

/* Index of a key; fields mostly come in the order of the list, so @hint is tried first. */
static int find_key(const struct nrp_text_event *e, const char *key, size_t size, int hint)
{
	for (int n = 0; n < NRP_MAX_EVENT_FIELDS; n++) {
		int i = (hint + n) % NRP_MAX_EVENT_FIELDS;

		if (e->key[i].size == size && !memcmp(e->key[i].name, key, size))
			return i;
	}
	return -1;
}

/* The last place of @word between @p and @end, or NULL. */
static const char *find_last(const char *p, const char *end, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(end - p) < n)
		return NULL;
	for (const char *at = end - n; at >= p; at--)
		if (!memcmp(at, word, n))
			return at;
	return NULL;
}

/* "comm=A pid=1 child_comm=B child_pid=2", of which A and B may be any text: from the right. */
static void take_fork(struct nrp_textline *t, const char *p, const char *end)
{
	const char *child_pid = find_last(p, end, " child_pid=");
	const char *child_comm = child_pid ? find_last(p, child_pid, " child_comm=") : NULL;
	const char *pid = child_comm ? find_last(p, child_comm, " pid=") : NULL;

	if (!pid)
		return;
	take_word(t, NRP_EV_FORK, NRP_EF_FORK_parent_pid, pid + 5, child_comm);
	set_string(t, NRP_EV_FORK, NRP_EF_FORK_child_comm, child_comm + 12, child_pid);
	child_pid += 11;
	take_word(t, NRP_EV_FORK, NRP_EF_FORK_child_pid, child_pid, nrp_text_word(child_pid, end));
}

/* A field of any text begins at @p: keeps it, returns where the next field begins. */
static const char *take_text(struct nrp_textline *t, enum nrp_event event, const char *p,
			     const char *end)
{
	const struct nrp_text_event *e = &t->event[event];
	const char *next = find_last(p, end, e->resume);

	if (e->text_field >= 0)
		set_string(t, event, e->text_field, p, next ? next : end);
	return next ? next : end;
}

void nrp_text_fields(struct nrp_textline *t, enum nrp_event event, const char *p, const char *end)
{
	const struct nrp_text_event *e = &t->event[event];
	const char *key, *value;
	int next = 0;

	if (event == NRP_EV_FORK) {
		take_fork(t, p, end);
		return;
	}
	while ((p = nrp_text_skip(p, end)) < end) {
		int i;

		for (key = p; p < end && is_word(*p); p++)
			;
		if (p == key || p == end || *p != '=') {
			p = nrp_text_word(p, end);
			continue;
		}
		value = ++p;
		if (e->text_key && (size_t)(value - key) == strlen(e->text_key) &&
		    !memcmp(key, e->text_key, (size_t)(value - key))) {
			p = take_text(t, event, value, end);
			continue;
		}
		i = find_key(e, key, (size_t)(value - key) - 1, next);
		if (i >= 0 && p < end && *p == '{') {
			p = take_array(t, event, i, p, end);
			next = i + 1;
			continue;
		}
		p = nrp_text_word(p, end);
		if (event == NRP_EV_FILTER_BEGIN &&
		    take_weight(t, key, (size_t)(value - key) - 1, value, p))
			continue;
		if (i < 0)
			continue;
		take_word(t, event, i, value, p > value && p[-1] == ',' ? p - 1 : p);
		next = i + 1;
	}
}

void nrp_text_arguments(struct nrp_textline *t, enum nrp_event event, const char *p,
			const char *end)
{
	const struct nrp_text_event *e = &t->event[event];
	int next = 0;

	while ((p = nrp_text_skip(p, end)) < end) {
		const char *key = p, *value;
		size_t size;
		int i;

		while (p < end && is_word(*p))
			p++;
		size = (size_t)(p - key);
		if (!size || p == end || *p != ':') {
			p += p < end;
			continue;
		}
		value = nrp_text_skip(p + 1, end);
		for (p = value; p < end && is_word(*p); p++)
			;
		i = find_key(e, key, size, next);
		if (i < 0)
			continue;
		take_word(t, event, i, value, p);
		next = i + 1;
	}
}

void nrp_text_result(struct nrp_textline *t, enum nrp_event event, const char *p, const char *end)
{
	p = nrp_text_skip(p, end);
	take_word(t, event, 0, p, nrp_text_word(p, end));
}

/* "READ|RT", or the number. false: a name that is none of them. */
static bool lock_flags(const char *p, const char *end, uint64_t *ret)
{
	static const char *const names[] = { "SPIN", "READ", "WRITE", "RT", "PERCPU", "MUTEX" };

	if (parse_value(p, end, false, ret))
		return true;
	*ret = 0;
	while (p < end) {
		const char *bar = memchr(p, '|', (size_t)(end - p)), *stop = bar ? bar : end;
		size_t i = 0, n = sizeof(names) / sizeof(names[0]);

		while (i < n && !((size_t)(stop - p) == strlen(names[i]) &&
				  !memcmp(p, names[i], (size_t)(stop - p))))
			i++;
		if (i == n)
			return false;
		*ret |= UINT64_C(1) << i;
		p = bar ? bar + 1 : end;
	}
	return true;
}

void nrp_text_contention(struct nrp_textline *t, enum nrp_event event, const char *p,
			 const char *end)
{
	const char *word, *open, *equals, *close;
	uint64_t value;

	p = nrp_text_skip(p, end);
	word = nrp_text_word(p, end);
	take_word(t, event, NRP_EF_CONTENTION_BEGIN_lock_addr, p, word);
	open = nrp_text_skip(word, end);
	equals = open < end && *open == '(' ? memchr(open, '=', (size_t)(end - open)) : NULL;
	close = equals ? memchr(equals, ')', (size_t)(end - equals)) : NULL;
	if (!close) {
		t->stats.unresolved++;
		return;
	}
	if (event == NRP_EV_CONTENTION_END)
		take_word(t, event, NRP_EF_CONTENTION_END_ret, equals + 1, close);
	else if (lock_flags(equals + 1, close, &value))
		set_integer(t, event, NRP_EF_CONTENTION_BEGIN_flags, value);
	else
		t->stats.unresolved++;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capture.probe_set: which events a capture could hold. */
#include "numareplay/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run(struct nrp_store *store, sqlite3_stmt *s, struct nrp_error *err)
{
	int r = sqlite3_step(s) == SQLITE_DONE ? 0 : nrp_store_fail(store, err, "store the probes");

	sqlite3_finalize(s);
	return r;
}

int nrp_store_put_probes(struct nrp_store *store, int64_t capture_id, const char *const *names,
			 size_t count, struct nrp_error *err)
{
	sqlite3_stmt *s;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return nrp_fail_nomem(err);
	/* Event names are C identifiers: nothing to escape. */
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%s\"%s\"", i ? "," : "[", names[i]);
	fprintf(out, "%s]", count ? "" : "[");
	if (fclose(out) != 0) {
		free(text);
		return nrp_fail_nomem(err);
	}
	s = nrp_store_prepare(store, "UPDATE capture SET probe_set = ?1 WHERE id = ?2", err);
	if (!s) {
		free(text);
		return -EIO;
	}
	sqlite3_bind_text(s, 1, text, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(s, 2, capture_id);
	free(text);
	return run(store, s, err);
}

int nrp_store_capture_has_probe(struct nrp_store *store, int64_t capture_id, const char *name,
				bool *ret, struct nrp_error *err)
{
	sqlite3_stmt *s = nrp_store_prepare(store,
					    "SELECT instr(probe_set, '\"' || ?1 || '\"') > 0 FROM "
					    "capture WHERE id = ?2",
					    err);
	int r;

	if (!s)
		return -EIO;
	sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 2, capture_id);
	r = sqlite3_step(s);
	if (r == SQLITE_ROW || r == SQLITE_DONE) {
		*ret = r == SQLITE_ROW && sqlite3_column_int(s, 0) > 0;
		r = 0;
	} else {
		r = nrp_store_fail(store, err, "read the probes");
	}
	sqlite3_finalize(s);
	return r;
}

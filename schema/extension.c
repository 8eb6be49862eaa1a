/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of a numareplay database in any program that uses SQLite: .load numareplay in the
 * sqlite3 shell, sqlite3_load_extension() elsewhere. It registers the tables of vtab.c.
 */
#include "schema/internal.h"

SQLITE_EXTENSION_INIT1

#define OLDEST_SQLITE 3038000 /* sqlite3_vtab_in() */

__attribute__((visibility("default"))) int sqlite3_numareplay_init(sqlite3 *db, char **ret_error,
								   const sqlite3_api_routines *api);

int sqlite3_numareplay_init(sqlite3 *db, char **ret_error, const sqlite3_api_routines *api)
{
	SQLITE_EXTENSION_INIT2(api);
	if (sqlite3_libversion_number() < OLDEST_SQLITE) {
		*ret_error = sqlite3_mprintf("numareplay needs SQLite 3.38 or newer");
		return SQLITE_ERROR;
	}
	return nrp_register_tables(db);
}

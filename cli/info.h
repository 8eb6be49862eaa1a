/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The capture summary of info, which report prints too where nothing was replayed. */
#ifndef NRP_CLI_INFO_H
#define NRP_CLI_INFO_H

#include "numareplay/store.h"

#include <jansson.h>

int nrp_cli_print_capture(struct nrp_store *store, const struct nrp_capture *capture,
			  struct nrp_error *err);
int nrp_cli_capture_json(json_t **ret, struct nrp_store *store, const struct nrp_capture *capture,
			 struct nrp_error *err);

#endif

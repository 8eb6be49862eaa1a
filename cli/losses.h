/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The losses of a capture, summed up per CPU and cause. */
#ifndef NRP_CLI_LOSSES_H
#define NRP_CLI_LOSSES_H

#include "numareplay/store.h"

#include <jansson.h>

/* An array of objects; empty if nothing was lost. */
int cli_losses_json(json_t **ret, struct nrp_store *store, const struct nrp_capture *capture,
		    struct nrp_error *err);
/* One line per CPU and cause, up to a limit. */
int cli_print_losses(struct nrp_store *store, const struct nrp_capture *capture,
		     struct nrp_error *err);

#endif

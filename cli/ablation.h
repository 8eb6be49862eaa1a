/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ablation of scan.vma: replay --ablation runs it, report shows it again. */
#ifndef NRP_CLI_ABLATION_H
#define NRP_CLI_ABLATION_H

#include "analysis/ablation.h"

/* Runs and prints it (@json: as a document), and stores it with @save. */
enum nrp_status nrp_cli_ablation(struct nrp_store *store, const struct nrp_capture *capture,
				 const struct nrp_lane_spec *base, bool save, bool json);
/*
 * The stored one: text is printed, a document goes into *ret_doc if that is not NULL. *ret_found
 * tells whether there is one. Prints errors.
 */
enum nrp_status nrp_cli_stored_ablation(struct nrp_store *store, const struct nrp_capture *capture,
					json_t **ret_doc, bool *ret_found);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/ablation.h"
#include "cli/common.h"

#include <errno.h>

static int save_one(const struct nrp_ablation *a, const struct nrp_verify *verify,
		    struct nrp_store *store, struct nrp_error *err)
{
	int r = nrp_store_begin(store, err);

	if (r < 0)
		return r;
	r = nrp_fidelity_save(verify, store, a->capture_id, err);
	if (r == 0)
		r = nrp_ablation_save(a, store, err);
	if (r == 0)
		r = nrp_store_commit(store, err);
	if (r < 0)
		nrp_store_rollback(store);
	return r;
}

enum nrp_status nrp_cli_ablation(struct nrp_store *store, const struct nrp_capture *capture,
				 const struct nrp_lane_spec *base, bool save, bool json)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_ablation a = { 0 };
	struct nrp_verify verify;
	enum nrp_status s;
	int r = nrp_verify_run(&verify, store, capture, &err);

	if (r == 0)
		r = nrp_ablation_run(&a, store, capture, &verify, base, &err);
	if (r == 0 && save)
		r = save_one(&a, &verify, store, &err);
	if (r < 0)
		s = cli_error(&err);
	else
		s = json ? cli_print_json(nrp_ablation_json(&a))
			 : cli_print_text(nrp_ablation_text(&a, cli_width()));
	nrp_ablation_clear(&a);
	nrp_verify_clear(&verify);
	return s;
}

enum nrp_status nrp_cli_stored_ablation(struct nrp_store *store, const struct nrp_capture *capture,
					json_t **ret_doc, bool *ret_found)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_ablation a;
	enum nrp_status s = NRP_DONE;
	int r = nrp_ablation_load(&a, store, capture, &err);

	*ret_found = r == 0;
	if (r == -ENOENT && !err.code)
		return NRP_DONE;
	if (r < 0)
		return cli_error(&err);
	if (ret_doc) {
		*ret_doc = nrp_ablation_json(&a);
		s = *ret_doc ? NRP_DONE : NRP_INTERNAL;
	} else {
		s = cli_print_text(nrp_ablation_text(&a, cli_width()));
	}
	nrp_ablation_clear(&a);
	return s;
}

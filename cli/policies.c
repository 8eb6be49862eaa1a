/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/common.h"
#include "cli/options.h"
#include "replay/registry.h"

#include <stdio.h>
#include <string.h>

enum { OPT_JSON };

static const struct cli_option options[] = {
	[OPT_JSON] = { "json", 0, NULL, "print the document numareplay.policies/1" },
	{ NULL, 0, NULL, NULL },
};

static const char *variant_name(int family, int8_t variant)
{
	return nrp_family((enum nrp_family_id)family)->variant[variant].name;
}

static void print_family(const struct nrp_family *f)
{
	printf("%s  %s%s\n    kernel: %s\n", f->name, f->doc,
	       f->replayed   ? ""
	       : f->verified ? " (verified; its variants are not compared by this version)"
			     : " (known by name; not replayed by this version)",
	       f->source);
	for (const struct nrp_variant *v = f->variant; v->name; v++)
		printf("  %-20s %-24s %s\n  %-20s %-24s origin: %s\n", v->name, v->kernels, v->doc,
		       "", "", v->origin);
	for (const struct nrp_param *p = f->param; p->name; p++)
		printf("  --set %s.%s=N  %s; default %s; %s\n", f->name, p->name, p->unit, p->value,
		       p->doc);
	putchar('\n');
}

static void print_profile(const struct nrp_profile *p)
{
	printf("%s ", p->name);
	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		printf(" %s=%s", nrp_family((enum nrp_family_id)f)->name,
		       variant_name(f, p->variant[f]));
	putchar('\n');
}

static void print_global_params(void)
{
	printf("\nparameters of no family\n");
	for (const struct nrp_param *p = nrp_global_param; p->name; p++)
		printf("  --set %s=N  %s; default %s; %s\n", p->name, p->unit, p->value, p->doc);
}

static json_t *params_json(const struct nrp_param *list)
{
	json_t *params = json_array();

	for (const struct nrp_param *p = list; p->name; p++)
		json_array_append_new(params,
				      json_pack("{s:s,s:s,s:s,s:s}", "name", p->name, "unit",
						p->unit, "default", p->value, "meaning", p->doc));
	return params;
}

static json_t *family_json(const struct nrp_family *f)
{
	json_t *variants = json_array();

	for (const struct nrp_variant *v = f->variant; v->name; v++)
		json_array_append_new(variants,
				      json_pack("{s:s,s:s,s:s,s:s}", "name", v->name, "kernels",
						v->kernels, "origin", v->origin, "rule", v->doc));
	return json_pack("{s:s,s:s,s:s,s:b,s:b,s:o,s:o}", "name", f->name, "what", f->doc, "kernel",
			 f->source, "verified", f->verified, "replayed", f->replayed, "variants",
			 variants, "parameters", params_json(f->param));
}

static json_t *profile_json(const struct nrp_profile *p)
{
	json_t *variants = json_object();

	for (int f = 0; f < NRP_NR_FAMILIES; f++)
		json_object_set_new(variants, nrp_family((enum nrp_family_id)f)->name,
				    json_string(variant_name(f, p->variant[f])));
	return json_pack("{s:s,s:o}", "name", p->name, "variants", variants);
}

static bool wanted(const struct cli_args *args, const char *name)
{
	return !args->files || !strcmp(args->file[0], name);
}

static enum nrp_status run(const struct cli_args *args)
{
	bool json = cli_given(args, OPT_JSON), any = false;
	json_t *families = json_array(), *profiles = json_array();

	for (int f = 0; f < NRP_NR_FAMILIES; f++) {
		const struct nrp_family *family = nrp_family((enum nrp_family_id)f);

		if (!wanted(args, family->name))
			continue;
		any = true;
		if (json)
			json_array_append_new(families, family_json(family));
		else
			print_family(family);
	}
	if (!json && !args->files)
		printf("profiles (upstream; vendor kernels differ, so verify decides): host off\n");
	for (size_t i = 0; i < nrp_nr_profiles(); i++) {
		if (!wanted(args, nrp_profile(i)->name))
			continue;
		any = true;
		if (json)
			json_array_append_new(profiles, profile_json(nrp_profile(i)));
		else
			print_profile(nrp_profile(i));
	}
	if (!json && !args->files)
		print_global_params();
	if (!any) {
		json_decref(families);
		json_decref(profiles);
		cli_error_text("no family or profile '%s': numareplay policies lists them",
			       args->file[0]);
		return NRP_USAGE;
	}
	if (json)
		return cli_print_json(json_pack("{s:s,s:o,s:o,s:o}", "schema",
						"numareplay.policies/1", "families", families,
						"profiles", profiles, "parameters",
						params_json(nrp_global_param)));
	json_decref(families);
	json_decref(profiles);
	return NRP_DONE;
}

const struct cli_command cli_policies = {
	.name = "policies",
	.synopsis = "[NAME]",
	.summary = "list policy families, variants, parameters and kernel profiles",
	.min_files = 0,
	.max_files = 1,
	.options = options,
	.run = run,
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Development tool: writes the seeds of the fuzz targets below the folder named. */
#include "tests/fuzz/fuzz.h"

#include "capture/events.h"
#include "schema/block.h"
#include "tests/store_util.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

static const char *root;

static void write_seed(const char *target, const char *name, const void *data, size_t size)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, target);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/%s/%s", root, target, name);
	f = fopen(path, "wb");
	must(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
}

/* A seed that starts with a byte of flags. */
static void write_flagged(const char *target, uint8_t flags, const struct nrp_blob *blob)
{
	struct nrp_blob seed = { 0 };
	char name[32];

	snprintf(name, sizeof(name), "flags-%02x", flags);
	must(nrp_blob_append(&seed, &flags, 1) && nrp_blob_append(&seed, blob->data, blob->size));
	write_seed(target, name, seed.data, seed.size);
	free(seed.data);
}

/* Whole files, in each format and byte order, with an instance. */
static void make_headers(void)
{
	static const char *const names[] = { "v6", "v7-none", "v7-zstd" };

	for (unsigned int i = 0; i < 2 * SAMPLE_NR_FORMATS; i++) {
		struct sample_kind kind = { .big = i & 1,
					    .long_size = i & 1 ? 4 : 8,
					    .page_size = FUZZ_PAGE,
					    .pages = 1,
					    .name = { "", i & 1 ? "inst" : NULL } };
		struct sample *sample = sample_new(&kind, i + 1);
		struct nrp_blob bytes = sample_bytes(sample->parts, (enum sample_format)(i / 2));
		char name[32];

		snprintf(name, sizeof(name), "%s%s", names[i / 2], i & 1 ? "-big" : "");
		write_seed("header", name, bytes.data, bytes.size);
		free(bytes.data);
		sample_free(sample);
	}
}

static void make_options(void)
{
	for (uint8_t flags = 0; flags < 4; flags++) {
		bool big = flags & FUZZ_BIG;
		struct nrp_trace_parts *parts = sample_parts(big, 8);
		struct nrp_blob out = { 0 };

		for (size_t i = 0; i < parts->nr_options; i++) {
			const struct nrp_part_option *o = &parts->options[i];

			must(nrp_blob_number(&out, o->id, 2, big) &&
			     nrp_blob_number(&out, o->data.size, 4, big) &&
			     nrp_blob_append(&out, o->data.data, o->data.size));
		}
		must(nrp_blob_number(&out, 0, 2, big) && nrp_blob_number(&out, 8, 4, big) &&
		     nrp_blob_number(&out, 0, 8, big));
		write_flagged("options", flags, &out);
		free(out.data);
		nrp_parts_free(parts);
	}
}

/* Every kind of entry, on two pages: missed events, time extends and stamps, discarded ones. */
static struct nrp_blob some_pages(uint8_t flags)
{
	struct nrp_blob out = { 0 };
	struct sample_page page;

	page_begin(&page, &out, FUZZ_PAGE, flags & FUZZ_LONG32 ? 4 : 8, flags & FUZZ_BIG, 1000);
	page_event(&page, 10, SAMPLE_ID, 12, 1);
	page_time_extend(&page, 1u << 29);
	page_event(&page, 0, SAMPLE_ID, 160, 2);
	page_discarded(&page, 3, 12);
	page_end(&page, 0);
	page_begin(&page, &out, FUZZ_PAGE, flags & FUZZ_LONG32 ? 4 : 8, flags & FUZZ_BIG,
		   page.time + 5);
	page_time_stamp(&page, page.time + 100);
	page_event(&page, 1, 1, 8, 3);
	page_end(&page, 7);
	return out;
}

static void make_pages(void)
{
	for (uint8_t flags = 0; flags < 12; flags++) {
		struct nrp_blob one = some_pages(flags), both = some_pages(flags);

		must(nrp_blob_append(&both, one.data, one.size));
		write_flagged("pages", flags, &both);
		free(one.data);
		free(both.data);
	}
}

static void make_chunks(void)
{
	for (uint8_t flags = 0; flags < 4; flags++) {
		struct nrp_blob pages = some_pages(flags), out = { 0 };
		bool big = flags & FUZZ_BIG;

		must(nrp_blob_number(&out, 2, 4, big));
		for (size_t at = 0; at < pages.size; at += FUZZ_PAGE) {
			uint8_t packed[2 * FUZZ_PAGE];
			size_t n = ZSTD_compress(packed, sizeof(packed), pages.data + at, FUZZ_PAGE,
						 1);

			must(!ZSTD_isError(n) && nrp_blob_number(&out, n, 4, big) &&
			     nrp_blob_number(&out, FUZZ_PAGE, 4, big) &&
			     nrp_blob_append(&out, packed, n));
		}
		write_flagged("chunks", flags, &out);
		free(pages.data);
		free(out.data);
	}
}

#define COMMON_FIELDS                                                                              \
	"ID: %d\nformat:\n"                                                                        \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static void put_format(struct nrp_blob *out, enum nrp_event event, const char *fields)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), COMMON_FIELDS "%s", 400 + (int)event, fields);

	must(nrp_blob_number(out, (uint64_t)event, 1, false) &&
	     nrp_blob_append(out, text, (size_t)n + 1));
}

static void make_formats(void)
{
	for (uint8_t flags = 0; flags < 4; flags++) {
		struct nrp_blob out = { 0 };

		put_format(&out, NRP_EV_FILTER_BEGIN,
			   "\tfield:int src_nid;\toffset:8;\tsize:4;\tsigned:1;\n"
			   "\tfield:u64 faults[8];\toffset:16;\tsize:64;\tsigned:0;\n"
			   "\tfield:u64 f0;\toffset:80;\tsize:8;\tsigned:0;\n"
			   "\tfield:u64 f1;\toffset:88;\tsize:8;\tsigned:0;\n\n"
			   "print fmt: \"%llx\", REC->f0\n");
		put_format(&out, NRP_EV_SKIP_VMA,
			   "\tfield:unsigned long vm_start;\toffset:8;\tsize:8;\tsigned:0;\n"
			   "\tfield:u32 reason;\toffset:16;\tsize:4;\tsigned:0;\n\n"
			   "print fmt: \"%s\", __print_symbolic(REC->reason, { 0, \"unsuitable\" "
			   "}, { 0x3, \"scan_delay\" })\n");
		put_format(
			&out, NRP_EV_EXEC,
			"\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
			"\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n");
		write_flagged("formats", flags, &out);
		free(out.data);
	}
}

static void make_blocks(void)
{
	struct nrp_encoder *encoder = nrp_encoder_new();

	for (int kind = 0; kind < NRP_NR_KINDS; kind++) {
		const struct nrp_kind *desc = nrp_kind((enum nrp_record_kind)kind);
		const uint8_t header[10] = {
			(uint8_t)kind, kind % 3 ? 255 : 2, 255, 255, 255, 255, 255, 255, 255, 255
		};
		struct nrp_columns columns = { .desc = desc };
		uint32_t nr_rows = 70; /* a batch, and some */
		void *rows = calloc(nr_rows, desc->row_size);
		struct nrp_block_image image;
		struct nrp_blob seed = { 0 };

		must(rows && encoder);
		util_random_rows((enum nrp_record_kind)kind, rows, nr_rows, 1000, 0);
		util_columns(&columns, rows, nr_rows);
		must(nrp_block_encode(encoder, (enum nrp_record_kind)kind, &columns,
				      util_order(nr_rows), &image) == 0);
		must(nrp_blob_append(&seed, header, sizeof(header)) &&
		     nrp_blob_append(&seed, image.data, image.size));
		write_seed("block", desc->name, seed.data, seed.size);
		nrp_columns_clear(&columns);
		free(seed.data);
		free(rows);
	}
	nrp_encoder_free(encoder);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_fuzz_corpus DIR\n");
		return 2;
	}
	root = argv[1];
	mkdir(root, 0777);
	setenv("NRP_TEST_SEED", "1", 1);
	util_seed();
	make_headers();
	make_options();
	make_pages();
	make_chunks();
	make_formats();
	make_blocks();
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* One line, whatever names of files and messages hold. */
static void put_line(const char *text)
{
	fputs("numareplay: ", stderr);
	for (; *text; text++) {
		bool control = (unsigned char)*text < ' ' || *text == 0x7f;

		fputc(*text == '\n' || *text == '\t' ? ' ' : control ? '?' : *text, stderr);
	}
	fputc('\n', stderr);
}

enum nrp_status cli_error(const struct nrp_error *err)
{
	char offset[40] = "";

	if (err->offset >= 0)
		snprintf(offset, sizeof(offset), "offset %lld: ", (long long)err->offset);
	cli_error_text("%s%s%s%s%s%s", err->file, err->file[0] ? ": " : "", offset,
		       err->what[0] ? err->what : "failed", err->remedy[0] ? ": " : "",
		       err->remedy);
	return err->status == NRP_DONE ? NRP_INTERNAL : err->status;
}

void cli_error_text(const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	put_line(text ? text : "out of memory");
	free(text);
}

size_t cli_width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
		return size.ws_col;
	return 80;
}

enum nrp_status cli_print_json(json_t *doc)
{
	int r;

	if (!doc) {
		cli_error_text("out of memory");
		return NRP_INTERNAL;
	}
	r = json_dumpf(doc, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(doc);
	return r == 0 ? NRP_DONE : NRP_INTERNAL;
}

enum nrp_status cli_print_text(char *text)
{
	if (!text) {
		cli_error_text("out of memory");
		return NRP_INTERNAL;
	}
	fputs(text, stdout);
	free(text);
	return NRP_DONE;
}

enum nrp_status cli_open(struct nrp_store **ret_store, struct nrp_capture *ret_capture,
			 const char *path, const char *which, enum nrp_store_mode mode)
{
	struct nrp_error err = NRP_ERROR_INIT;
	struct nrp_store *store;

	if (nrp_store_open(&store, path, mode, &err) < 0)
		return cli_error(&err);
	if (nrp_store_load_capture(store, which, ret_capture, &err) < 0) {
		nrp_store_close(store);
		return cli_error(&err);
	}
	*ret_store = store;
	return NRP_DONE;
}

int cli_fail_output(struct nrp_error *err, const char *path, int error)
{
	enum nrp_status status = NRP_USAGE;
	const char *remedy = "name another place";

	switch (error) {
	case EACCES:
	case EPERM:
	case EROFS:
		status = NRP_HOST;
		remedy = "name a place that you may write to";
		break;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		status = NRP_INTERNAL;
		remedy = "free some space, or name another place";
		break;
	case EIO:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		status = NRP_INTERNAL;
		break;
	default:
		break;
	}
	return nrp_fail(err, status, -error, path, -1, remedy, "cannot be written: %s",
			strerror(error));
}

bool cli_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

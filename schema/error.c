/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "numareplay/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int nrp_fail(struct nrp_error *err, enum nrp_status status, int code, const char *file,
	     int64_t offset, const char *remedy, const char *fmt, ...)
{
	va_list args;

	/* What went wrong first is the cause; what follows from it would only hide it. */
	if (!err || err->status != NRP_DONE)
		return code;

	err->status = status;
	err->code = code;
	err->offset = offset;
	snprintf(err->file, sizeof(err->file), "%s", file ? file : "");
	snprintf(err->remedy, sizeof(err->remedy), "%s", remedy ? remedy : "");
	va_start(args, fmt);
	vsnprintf(err->what, sizeof(err->what), fmt, args);
	va_end(args);
	return code;
}

int nrp_fail_nomem(struct nrp_error *err)
{
	return nrp_fail(err, NRP_INTERNAL, -ENOMEM, NULL, -1, NULL, "out of memory");
}

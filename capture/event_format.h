/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is the text of an event format, as the kernel prints it, whole and free of contradictions? */
#ifndef NRP_EVENT_FORMAT_H
#define NRP_EVENT_FORMAT_H

#include "capture/tracefile.h"

/*
 * Name, ID and fields are there in the kernel's form; fields follow each other without overlap,
 * have names of their own and the size of their type. @long_size: bytes of the kernel's long.
 * -ENOMEM, or -EBADMSG with *ret_what in a few words.
 */
int nrp_event_format_check(const struct nrp_event_format *format, int long_size,
			   const char **ret_what);

#endif

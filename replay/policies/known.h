/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts that may be unknown, and what follows from them. */
#ifndef NRP_POLICY_KNOWN_H
#define NRP_POLICY_KNOWN_H

#include <stdbool.h>

/* A fact, or the answer: no, yes, not known. */
enum nrp_known { NRP_KNOWN_NO, NRP_KNOWN_YES, NRP_KNOWN_NOT };

static inline enum nrp_known nrp_known_of(bool fact)
{
	return fact ? NRP_KNOWN_YES : NRP_KNOWN_NO;
}

static inline enum nrp_known nrp_known_and(enum nrp_known a, enum nrp_known b)
{
	if (a == NRP_KNOWN_NO || b == NRP_KNOWN_NO)
		return NRP_KNOWN_NO;
	return a == NRP_KNOWN_YES && b == NRP_KNOWN_YES ? NRP_KNOWN_YES : NRP_KNOWN_NOT;
}

static inline enum nrp_known nrp_known_not(enum nrp_known a)
{
	return a == NRP_KNOWN_NOT ? a : nrp_known_of(a == NRP_KNOWN_NO);
}

static inline enum nrp_known nrp_known_or(enum nrp_known a, enum nrp_known b)
{
	return nrp_known_not(nrp_known_and(nrp_known_not(a), nrp_known_not(b)));
}

#endif

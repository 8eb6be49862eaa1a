/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text that comes from files and command lines. What the store gives out is UTF-8 without control
 * characters, so that it can be printed on a line and put into JSON.
 */
#ifndef NUMAREPLAY_TEXT_H
#define NUMAREPLAY_TEXT_H

#include <stdbool.h>

/* Is @text UTF-8 without control characters? */
bool nrp_text_is_clean(const char *text);
/* Replaces every byte that is in the way by '?'. */
void nrp_text_clean(char *text);

#endif

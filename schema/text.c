/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "numareplay/text.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at @p, 0 if it is none that may stay. Stops at the NUL of a cut one. */
static size_t character(const unsigned char *p)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t size = *p < 0x80   ? 1
		      : *p < 0xc0 ? 0
		      : *p < 0xe0 ? 2
		      : *p < 0xf0 ? 3
		      : *p < 0xf8 ? 4
				  : 0;
	uint32_t code;

	if (size <= 1)
		return *p < ' ' || *p == 0x7f ? 0 : size;
	code = *p & (0xffu >> (size + 1));
	for (size_t i = 1; i < size; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < smallest[size] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ||
	    code < 0xa0) /* the last: control characters of Latin-1 */
		return 0;
	return size;
}

bool nrp_text_is_clean(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t size;

	for (; *p; p += size) {
		size = character(p);
		if (!size)
			return false;
	}
	return true;
}

void nrp_text_clean(char *text)
{
	unsigned char *p = (unsigned char *)text;
	size_t size;

	for (; *p; p += size) {
		size = character(p);
		if (!size) {
			*p = '?';
			size = 1;
		}
	}
}

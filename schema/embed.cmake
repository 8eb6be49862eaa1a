# SPDX-License-Identifier: GPL-2.0-or-later
# Writes OUTPUT, a C file that defines the text of the file INPUT as the string NAME.
file(READ "${INPUT}" text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n\t\"" text "${text}")
file(WRITE "${OUTPUT}" "/* Generated from schema.sql by embed.cmake. */
#include \"schema/internal.h\"

const char ${NAME}[] =
\t\"${text}\";
")

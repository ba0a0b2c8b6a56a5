/* duration.h - durations and sizes as people write them. Pure. */
#ifndef SPOOL_DURATION_H
#define SPOOL_DURATION_H

#include <stddef.h>
#include <stdint.h>

/* `500ms 30s 5m 2h 7d`, or 0. At most 100 years. -EINVAL. */
int duration_parse(const char *text, int64_t *ns);
/* In the largest unit of which there are at least two and no remainder; a single second is 1s. */
void duration_format(int64_t ns, char *text, size_t size);

/* A count of bytes, with or without K, M, G, T (1024 each). -EINVAL. */
int size_parse(const char *text, int64_t *bytes);

#endif

/*
 * log.h - what the daemon says: one sentence a line, on stderr in front, to the system log in the background.
 *
 * Any thread may write. Names from outside are escaped first: a line stays one line and shows what it is about.
 */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <syslog.h>

#define LOG_LINE_MAX 2048          /* bytes of a line, longer ones are cut */
#define LOG_NAME_MAX (4 * 255 + 1) /* room for any escaped name of an entry */

/* From now on to stderr, or to the system log (LOG_DAEMON). What libfuse has to say goes the same way. */
void log_open(bool foreground);

/* `priority` is one of LOG_EMERG ... LOG_DEBUG; the line end is added here. */
void log_line(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes `name` to `text`, every byte that is not printable ASCII, and the backslash, as \xNN. Returns `text`. */
const char *log_escape(const char *name, char *text, size_t size);

/*
 * While libfuse's errors are held, its warnings and errors are kept instead of written, so that they can become part
 * of a sentence. Letting go returns them, "" when there were none; the text is valid until the next hold.
 */
void log_hold_fuse(void);
const char *log_release_fuse(void);

#endif

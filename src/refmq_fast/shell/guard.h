/* Reading memory that may not be there: a mapping of a file that somebody made shorter, or whose medium fails, answers a
 * read with SIGBUS. Here it becomes a plain "no".
 *
 * The handler belongs to the whole process. It acts for a thread that is inside `rmq_guarded_copy` only; any other SIGBUS
 * goes to whoever had the signal before.
 */
#ifndef RMQ_SHELL_GUARD_H
#define RMQ_SHELL_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes the signal, once for the process. False: the system does not let us, and nothing may be read through mappings. */
bool rmq_guard_install(void);

/* memcpy. False if some of `from` could not be read; `to` may hold a part of it then. */
bool rmq_guarded_copy(uint8_t *to, const uint8_t *from, size_t length);

#endif

/* The Python types refmq_fast.Shell and refmq_fast.Notes. */
#ifndef RMQ_BIND_BIND_SHELL_H
#define RMQ_BIND_BIND_SHELL_H

#include "bind_plane.h"

/* From now on the lock of this store guards the notes, which are a refmq_fast.Notes. The store outlives them. */
void rmq_guard_notes(PyObject *notes, StoreObject *owner);

#endif

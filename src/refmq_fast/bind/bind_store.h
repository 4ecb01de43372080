/* The Python type refmq_fast.Store: a C store over a Python disk. bind_store.c has its life, bind_store_put.c and
 * bind_store_get.c have its calls, bind_job.c what is awaited. Topics and keys are UTF-8 bytes here. */
#ifndef RMQ_BIND_BIND_STORE_H
#define RMQ_BIND_BIND_STORE_H

#include <stdatomic.h>

#include "bind_disk.h"

#include "../shell/lock.h"
#include "../shell/notes.h"
#include "../store/dispatch.h"
#include "../store/get.h"
#include "../store/jobs.h"

typedef struct {
    PyObject_HEAD
    rmq_store *store; /* NULL once it is closed */
    rmq_python_disk disk;
    PyObject *emit;                   /* NULL: nobody traces */
    PyObject *actions[RMQ_ACTIONS];   /* the names of the events */
    PyObject *failure;                /* the exception with which the store failed */
    PyTypeObject *job_type;
    rmq_records records;              /* memory of reads */
    unsigned jobs;                    /* under way */
    int is_shared;                    /* with the threads of a shell: every call takes the lock */
    rmq_lock lock;
    atomic_ulong holder;              /* the Python thread that has it, or 0 */
    unsigned depth;                   /* how often that thread has taken it */
} StoreObject;

/* From now on every call takes the lock. RMQ_NO_MEMORY. */
rmq_status rmq_share(StoreObject *self);

/* Around whatever touches the store or the plane above it. A thread may enter again. */
void rmq_enter(StoreObject *self);
void rmq_leave(StoreObject *self);

/* `method` with the lock around it, as `method`_locked. */
#define RMQ_LOCKED(method)                                                                                             \
    static PyObject *method##_locked(PyObject *given, PyObject *arguments)                                             \
    {                                                                                                                  \
        PyObject *result;                                                                                              \
                                                                                                                       \
        rmq_enter((StoreObject *)given);                                                                               \
        result = method(given, arguments);                                                                             \
        rmq_leave((StoreObject *)given);                                                                               \
        return result;                                                                                                 \
    }

/* The notes of a refmq_fast.Notes, or NULL for any other object. */
rmq_notes *rmq_notes_of(PyObject *object);

/* The lock of this store guards the notes from now on, or nobody's for NULL. `notes` is a refmq_fast.Notes. */
void rmq_guard_notes(PyObject *notes, StoreObject *owner);

/* The exception for a status, or nothing for RMQ_OK: 0, or -1 with it set. */
int rmq_store_outcome(StoreObject *self, rmq_status status);

/* Whether the store is open: 1, or 0 with an exception set. */
int rmq_store_is_open(const StoreObject *self);

/* Gives the store up, now or when its last job has ended. */
void rmq_store_close(StoreObject *self);

/* Sets `value` to each 64-bit number of a tuple; -1 with an exception set. The caller frees `numbers` with PyMem_Free. */
int rmq_numbers_of(PyObject *tuple, int64_t **numbers, size_t *count);

extern PyMethodDef rmq_store_put_methods[];
extern PyMethodDef rmq_store_get_methods[];
extern PyMethodDef rmq_store_job_methods[];

PyTypeObject *rmq_job_type(PyObject *module);

/* The type refmq_fast.Store of this module, borrowed; NULL with an exception set. */
PyTypeObject *rmq_store_type(PyObject *module);

/* Several tables of methods as one, which must live as long as its type; NULL without memory. */
PyMethodDef *rmq_joined_methods(PyMethodDef *const *tables, size_t table_count);

/* Who is told of what was dispatched: a list that gets the fields of each. */
typedef struct {
    StoreObject *self;
    PyObject *list;
} rmq_listening;

rmq_status rmq_add_dispatched(void *context, const rmq_dispatched *dispatched);

#endif

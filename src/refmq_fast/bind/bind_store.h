/* The Python type refmq_fast.Store: a C store over a Python disk. bind_store.c has its life, bind_store_put.c and
 * bind_store_get.c have its calls, bind_job.c what is awaited. Topics and keys are UTF-8 bytes here. */
#ifndef RMQ_BIND_BIND_STORE_H
#define RMQ_BIND_BIND_STORE_H

#include "bind_disk.h"

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
} StoreObject;

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

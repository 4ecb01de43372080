/* A `Disk` given by Python (refmq/model/disk.py) as the table of operations that the C store calls: any object with the
 * methods of the Protocol, or a refmq_fast.PosixDisk, which is called without Python. */
#ifndef RMQ_BIND_BIND_DISK_H
#define RMQ_BIND_BIND_DISK_H

#include "bind.h"

#include "../shell/disk_posix.h"

/* The disk, and the exception with which its last failed operation ended: C passes a status on, and whoever called C from
 * Python raises the exception again. */
typedef struct {
    PyObject *disk;
    PyObject *disk_full;   /* classes of refmq.errors */
    PyObject *disk_failed;
    PyObject *error;
    rmq_posix_disk *posix;  /* of a refmq_fast.PosixDisk, which `disk` then is; NULL for any other object */
    uint64_t posix_errors;  /* how many of its errors had been seen when `error` was kept */
} rmq_python_disk;

/* 0, or -1 with a Python exception set. `disk` gets a reference of its own. */
int rmq_python_disk_init(rmq_python_disk *context, PyObject *disk, PyObject *module);
void rmq_python_disk_clear(rmq_python_disk *context);
int rmq_python_disk_traverse(rmq_python_disk *context, visitproc visit, void *arg);

/* The table; `context` must outlive it. */
rmq_disk rmq_python_disk_table(rmq_python_disk *context);

/* Takes the exception that is set and keeps it: RMQ_DISK_FULL, RMQ_DISK_FAILED, or RMQ_DIED for any other, a simulated
 * crash above all. */
rmq_status rmq_keep_error(rmq_python_disk *context);

/* The same for an exception that somebody caught. */
rmq_status rmq_keep_caught(rmq_python_disk *context, PyObject *error);

/* The exception with which the disk failed last, a new reference, or NULL. */
PyObject *rmq_kept_error(rmq_python_disk *context);

/* Sets the kept exception again. Returns NULL. */
PyObject *rmq_raise_kept(rmq_python_disk *context);

#endif

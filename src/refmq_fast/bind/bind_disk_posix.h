/* The Python types of real files in C: refmq_fast.PosixDisk, PosixFile and DiskWork. refmq.net.posix_disk makes them a
 * `Disk` as refmq/model/disk.py has it. */
#ifndef RMQ_BIND_BIND_DISK_POSIX_H
#define RMQ_BIND_BIND_DISK_POSIX_H

#include "bind.h"

#include "../shell/disk_posix.h"

int rmq_bind_disk_posix(PyObject *module);

/* The disk inside a refmq_fast.PosixDisk, which must outlive what uses it; NULL for any other object. */
rmq_posix_disk *rmq_posix_disk_of(PyObject *module, PyObject *disk);

/* A refmq_fast.DiskWork for what a job of a store over this disk wants performed; `holder` keeps alive what the operation
 * points to. NULL with an exception set: the flush has failed with it. */
PyObject *rmq_new_disk_work(PyObject *module, PyObject *disk, PyObject *holder, const rmq_operation *operation);

/* The exception of refmq.errors for an error of a disk, a new reference; NULL with another exception set. */
PyObject *rmq_disk_exception(const rmq_disk_error *error);

#endif

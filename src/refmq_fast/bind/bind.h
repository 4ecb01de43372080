/* What each file in bind/ offers to module.c: a function that adds its subject's functions to the module.
 * Each returns 0, or -1 with a Python exception set. */
#ifndef RMQ_BIND_BIND_H
#define RMQ_BIND_BIND_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

int rmq_bind_crc32(PyObject *module);

#endif

/* What each file in bind/ offers to module.c: a function that adds what it has to the module.
 * Each returns 0, or -1 with a Python exception set. */
#ifndef RMQ_BIND_BIND_H
#define RMQ_BIND_BIND_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Locks of objects, for interpreters without a GIL. They came with Python 3.13; before, the GIL is the lock. */
#if PY_VERSION_HEX < 0x030D0000
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#define Py_BEGIN_CRITICAL_SECTION2(first, second) {
#define Py_END_CRITICAL_SECTION2() }
#endif

/* Makes a type and adds it to the module. */
int rmq_add_type(PyObject *module, PyType_Spec *spec);

int rmq_bind_crc32(PyObject *module);
int rmq_bind_job(PyObject *module);
int rmq_bind_record(PyObject *module);
int rmq_bind_store(PyObject *module);
int rmq_bind_plane(PyObject *module); /* after the store */
int rmq_bind_notes(PyObject *module);
int rmq_bind_shell(PyObject *module); /* after the plane */
int rmq_bind_trace(PyObject *module);
int rmq_bind_frame(PyObject *module);
int rmq_bind_messages(PyObject *module);
int rmq_bind_maker(PyObject *module);

#endif

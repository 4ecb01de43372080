/* The Python type refmq_fast.Plane. bind_plane.c has its life and its steps, bind_plane_tables.c what the control plane
 * installs and asks. */
#ifndef RMQ_BIND_BIND_PLANE_H
#define RMQ_BIND_BIND_PLANE_H

#include "bind_store.h"

#include "../plane/plane.h"

typedef struct {
    PyObject_HEAD
    rmq_plane *plane;
    StoreObject *owner; /* of the store below it */
    PyObject *emit;     /* NULL: nobody traces */
    PyObject *output;   /* a list: what the driver has not taken yet */
    uint8_t *scratch;
    size_t scratch_size;
} PlaneObject;

/* `method` of a plane with the lock of its store around it, as `method`_locked. */
#define RMQ_PLANE_LOCKED(method)                                                                                       \
    static PyObject *method##_locked(PyObject *given, PyObject *arguments)                                             \
    {                                                                                                                  \
        StoreObject *owner = ((PlaneObject *)given)->owner;                                                            \
        PyObject *result;                                                                                              \
                                                                                                                       \
        rmq_enter(owner);                                                                                              \
        result = method(given, arguments);                                                                             \
        rmq_leave(owner);                                                                                              \
        return result;                                                                                                 \
    }

extern PyMethodDef rmq_plane_step_methods[];
extern PyMethodDef rmq_plane_table_methods[];

/* The type refmq_fast.Plane of this module, borrowed; NULL with an exception set. */
PyTypeObject *rmq_plane_type(PyObject *module);

/* Whether the plane and its store are open: 1, or 0 with an exception set. */
int rmq_plane_is_open(const PlaneObject *self);

/* None for RMQ_OK; otherwise NULL with the exception of the status set. */
PyObject *rmq_plane_outcome(PlaneObject *self, rmq_status status);

#endif

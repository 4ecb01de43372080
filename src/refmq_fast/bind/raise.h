/* From a status to a Python exception: the one place that knows both. */
#ifndef RMQ_BIND_RAISE_H
#define RMQ_BIND_RAISE_H

#include "bind.h"

#include "../core/damage.h"

/* Sets the exception `name` of refmq.errors with the four arguments of a DecodeError. Returns NULL. */
PyObject *rmq_raise_damage(const char *name, const rmq_damage *damage);

/* Sets the exception `name` of refmq.errors with one argument. Returns NULL. */
PyObject *rmq_raise_text(const char *name, const char *text);

/* A class of refmq.errors, a new reference; NULL with an exception set. */
PyObject *rmq_errors_class(const char *name);

#endif

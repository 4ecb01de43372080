/* Makes the exceptions of refmq.errors. */
#include "raise.h"

PyObject *rmq_errors_class(const char *name)
{
    PyObject *module = PyImport_ImportModule("refmq.errors");
    PyObject *class;

    if (module == NULL) {
        return NULL;
    }
    class = PyObject_GetAttrString(module, name);
    Py_DECREF(module);
    return class;
}

static PyObject *value_of(const rmq_damage_value *value)
{
    PyObject *text, *quoted;

    if (value->kind == RMQ_VALUE_NUMBER) {
        return PyLong_FromLongLong(value->number);
    }
    text = PyUnicode_DecodeUTF8(value->text, (Py_ssize_t)value->size, "replace");
    if (text == NULL || value->kind == RMQ_VALUE_TEXT) {
        return text;
    }
    quoted = PyObject_Repr(text);
    Py_DECREF(text);
    return quoted;
}

PyObject *rmq_raise_damage(const char *name, const rmq_damage *damage)
{
    PyObject *class = rmq_errors_class(name), *error = NULL;
    PyObject *expected = value_of(&damage->expected), *found = value_of(&damage->found);

    if (class != NULL && expected != NULL && found != NULL) {
        error = PyObject_CallFunction(class, "sLOO", damage->field, (long long)damage->offset, expected, found);
    }
    if (error != NULL) {
        PyErr_SetObject(class, error);
    }
    Py_XDECREF(error);
    Py_XDECREF(found);
    Py_XDECREF(expected);
    Py_XDECREF(class);
    return NULL;
}

PyObject *rmq_raise_text(const char *name, const char *text)
{
    PyObject *class = rmq_errors_class(name);

    if (class != NULL) {
        PyErr_SetString(class, text);
        Py_DECREF(class);
    }
    return NULL;
}

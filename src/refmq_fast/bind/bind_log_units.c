/* Python's side of core/log_units.h. */
#include "bind.h"

#include "../core/log_units.h"
#include "../core/record.h"

#define KEYS_SLACK (RMQ_PROPERTIES_BYTES_MAX / 2 + 2)

PyDoc_STRVAR(read_log_units_doc, "read_log_units(data, position, check_crc, /)\n--\n\n"
                                 "Records of a log, their keys, and where reading stopped, as "
                                 "refmq.verify.spark.log_pieces lays them out.");

static PyObject *bind_read_log_units(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *result = NULL;
    Py_buffer data = {0};
    rmq_log_units found = {0};
    long long position;
    int check_crc;
    size_t stopped = 0;

    if (!PyArg_ParseTuple(arguments, "y*Lp", &data, &position, &check_crc)) {
        return NULL;
    }
    found.unit_max = (size_t)data.len / RMQ_RECORD_BYTES_MIN + 1;
    found.key_max = (size_t)data.len / 8 + KEYS_SLACK; /* most have a unique key of 32 characters */
    found.units = PyMem_RawMalloc(found.unit_max * sizeof *found.units);
    found.keys = PyMem_RawMalloc(found.key_max * sizeof *found.keys);
    if (found.units == NULL || found.keys == NULL) {
        PyErr_NoMemory();
        goto exit;
    }
    Py_BEGIN_ALLOW_THREADS
    stopped = rmq_read_log_units(data.buf, (size_t)data.len, position, check_crc != 0, &found);
    Py_END_ALLOW_THREADS
    result = Py_BuildValue("(y#y#n)", (const char *)found.units, (Py_ssize_t)(found.unit_count * sizeof *found.units),
                           (const char *)found.keys, (Py_ssize_t)(found.key_count * sizeof *found.keys),
                           (Py_ssize_t)stopped);
exit:
    PyMem_RawFree(found.units);
    PyMem_RawFree(found.keys);
    PyBuffer_Release(&data);
    return result;
}

static PyMethodDef log_units_methods[] = {
    {"read_log_units", bind_read_log_units, METH_VARARGS, read_log_units_doc},
    {NULL, NULL, 0, NULL},
};

int rmq_bind_log_units(PyObject *module)
{
    return PyModule_AddFunctions(module, log_units_methods);
}

/* Python's side of core/digest.h. */
#include "bind.h"

#include <string.h>

#include "../core/digest.h"

#define CELLS 65536 /* 5.5 MiB; what one chunk of a trace needs is a few thousand */

/* Finished cells, one after another. */
typedef struct {
    rmq_digest_cell *cells;
    size_t count;
    size_t capacity;
} Found;

/* Moves what is in a table to `found` and empties the table. 0, or -1 without memory. Needs no GIL. */
static int take_cells(Found *found, rmq_digest_cell *table, size_t used)
{
    if (found->count + used > found->capacity) {
        const size_t capacity = (found->count + used) * 2;
        rmq_digest_cell *grown = PyMem_RawRealloc(found->cells, capacity * sizeof *grown);

        if (grown == NULL) {
            return -1;
        }
        found->cells = grown;
        found->capacity = capacity;
    }
    for (size_t at = 0; at < CELLS; at++) {
        if (table[at].count != 0) {
            found->cells[found->count++] = table[at];
        }
    }
    memset(table, 0, CELLS * sizeof *table);
    return 0;
}

static int digest_all(Found *found, const uint8_t *rows, size_t count, const rmq_digest_names *names)
{
    rmq_digest_cell *table = PyMem_RawCalloc(CELLS, sizeof *table);
    int status = table == NULL ? -1 : 0;

    while (status == 0 && count > 0) {
        size_t used = 0;
        const size_t taken = rmq_digest_rows(rows, count, names, table, CELLS, &used);

        rows += taken * RMQ_DIGEST_ROW_BYTES;
        count -= taken;
        status = take_cells(found, table, used);
    }
    PyMem_RawFree(table);
    return status;
}

PyDoc_STRVAR(digest_doc, "digest_rows(rows, roles, topics, groups, keys, /)\n--\n\n"
                         "The cells of the digest of some rows of a trace, as refmq.verify.spark.digest lays them out.");

static PyObject *bind_digest(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *result = NULL;
    Py_buffer rows = {0}, roles = {0}, topics = {0}, groups = {0}, keys = {0};
    rmq_digest_names names = {0};
    Found found = {0};
    int status;

    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*", &rows, &roles, &topics, &groups, &keys)) {
        return NULL;
    }
    names.count = (size_t)roles.len / RMQ_DIGEST_OUTCOMES;
    if ((size_t)topics.len != names.count * sizeof *names.topics ||
        (size_t)groups.len != names.count * sizeof *names.groups || (size_t)keys.len != sizeof names.keys ||
        rows.len % RMQ_DIGEST_ROW_BYTES != 0) {
        PyErr_SetString(PyExc_ValueError, "the tables do not have the sizes that belong together");
        goto exit;
    }
    if (((uintptr_t)topics.buf | (uintptr_t)groups.buf) % sizeof *names.topics != 0) {
        PyErr_SetString(PyExc_ValueError, "the tables are not aligned");
        goto exit;
    }
    names.roles = roles.buf;
    names.topics = topics.buf;
    names.groups = groups.buf;
    memcpy(names.keys, keys.buf, sizeof names.keys);
    Py_BEGIN_ALLOW_THREADS
    status = digest_all(&found, rows.buf, (size_t)rows.len / RMQ_DIGEST_ROW_BYTES, &names);
    Py_END_ALLOW_THREADS
    result = status < 0 ? PyErr_NoMemory()
                        : PyBytes_FromStringAndSize((const char *)found.cells,
                                                    (Py_ssize_t)(found.count * sizeof *found.cells));
exit:
    PyMem_RawFree(found.cells);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&roles);
    PyBuffer_Release(&topics);
    PyBuffer_Release(&groups);
    PyBuffer_Release(&keys);
    return result;
}

static PyMethodDef digest_methods[] = {
    {"digest_rows", bind_digest, METH_VARARGS, digest_doc},
    {NULL, NULL, 0, NULL},
};

int rmq_bind_digest(PyObject *module)
{
    return PyModule_AddFunctions(module, digest_methods);
}

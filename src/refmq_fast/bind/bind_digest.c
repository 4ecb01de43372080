/* Python's side of core/digest.h. */
#include "bind.h"

#include <stdbool.h>
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

PyDoc_STRVAR(survey_doc,
             "survey_rows(rows, roles, topics, groups, keys, counts, actors, state, cells, places, /)\n--\n\n"
             "Adds rows to a survey, as refmq.verify.spark.survey lays it out; how many were taken.");

#define SURVEY_TABLES 10

/* The tables of a survey, in the order of the arguments. */
enum { ROWS, ROLES, TOPICS, GROUPS, KEYS, COUNTS, ACTORS, STATE, CELL_TABLE, PLACES };
enum { FIRST_NS, LAST_NS, CELLS_USED, PLACES_USED, STATE_SIZE };

static bool is_power_of_two(size_t number)
{
    return number >= 8 && (number & (number - 1)) == 0;
}

/* Whether the tables have the sizes that belong together, and are aligned. */
static bool tables_agree(const Py_buffer *tables, size_t names)
{
    const size_t cells = (size_t)tables[CELL_TABLE].len / sizeof(rmq_digest_cell);
    const size_t places = (size_t)tables[PLACES].len / sizeof(uint64_t);
    uintptr_t addresses = 0;

    for (size_t at = TOPICS; at < SURVEY_TABLES; at++) {
        addresses |= at == ACTORS ? 0 : (uintptr_t)tables[at].buf;
    }
    return addresses % sizeof(uint64_t) == 0 && tables[ROWS].len % RMQ_DIGEST_ROW_BYTES == 0 &&
           (size_t)tables[ROLES].len == names * RMQ_DIGEST_OUTCOMES &&
           (size_t)tables[TOPICS].len == names * sizeof(uint64_t) &&
           (size_t)tables[GROUPS].len == names * sizeof(uint64_t) && tables[KEYS].len == 4 * sizeof(uint64_t) &&
           (size_t)tables[COUNTS].len == names * RMQ_DIGEST_OUTCOMES * sizeof(uint64_t) &&
           tables[STATE].len == STATE_SIZE * sizeof(int64_t) && is_power_of_two(cells) && is_power_of_two(places) &&
           (size_t)tables[CELL_TABLE].len == cells * sizeof(rmq_digest_cell);
}

static size_t survey_all(const Py_buffer *tables, size_t count_of_names)
{
    int64_t *state = tables[STATE].buf;
    rmq_digest_names names = {
        .count = count_of_names, .roles = tables[ROLES].buf, .topics = tables[TOPICS].buf, .groups = tables[GROUPS].buf};
    rmq_survey survey = {
        .counts = tables[COUNTS].buf,
        .actors = tables[ACTORS].buf,
        .first_ns = state[FIRST_NS],
        .last_ns = state[LAST_NS],
        .cells = tables[CELL_TABLE].buf,
        .cell_capacity = (size_t)tables[CELL_TABLE].len / sizeof(rmq_digest_cell),
        .cells_used = (size_t)state[CELLS_USED],
        .places = tables[PLACES].buf,
        .place_capacity = (size_t)tables[PLACES].len / sizeof(uint64_t),
        .places_used = (size_t)state[PLACES_USED],
    };
    size_t taken;

    memcpy(names.keys, tables[KEYS].buf, sizeof names.keys);
    taken = rmq_survey_rows(tables[ROWS].buf, (size_t)tables[ROWS].len / RMQ_DIGEST_ROW_BYTES, &names, &survey);
    state[FIRST_NS] = survey.first_ns;
    state[LAST_NS] = survey.last_ns;
    state[CELLS_USED] = (int64_t)survey.cells_used;
    state[PLACES_USED] = (int64_t)survey.places_used;
    return taken;
}

static PyObject *bind_survey(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *result = NULL;
    Py_buffer tables[SURVEY_TABLES] = {{0}};
    size_t names, taken = 0;

    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*w*w*w*w*w*", &tables[ROWS], &tables[ROLES], &tables[TOPICS],
                          &tables[GROUPS], &tables[KEYS], &tables[COUNTS], &tables[ACTORS], &tables[STATE],
                          &tables[CELL_TABLE], &tables[PLACES])) {
        return NULL;
    }
    names = (size_t)tables[ACTORS].len;
    if (!tables_agree(tables, names)) {
        PyErr_SetString(PyExc_ValueError, "the tables do not have the sizes that belong together, or are not aligned");
        goto exit;
    }
    Py_BEGIN_ALLOW_THREADS
    taken = survey_all(tables, names);
    Py_END_ALLOW_THREADS
    result = PyLong_FromSize_t(taken);
exit:
    for (size_t at = 0; at < SURVEY_TABLES; at++) {
        PyBuffer_Release(&tables[at]);
    }
    return result;
}

static PyMethodDef digest_methods[] = {
    {"digest_rows", bind_digest, METH_VARARGS, digest_doc},
    {"survey_rows", bind_survey, METH_VARARGS, survey_doc},
    {NULL, NULL, 0, NULL},
};

int rmq_bind_digest(PyObject *module)
{
    return PyModule_AddFunctions(module, digest_methods);
}

/* What is asked of a store through refmq_fast.Store. Nothing here changes it. */
#include "bind_store.h"

#include "../core/bytes.h"

/* --- records ----------------------------------------------------------------------------------------------------- */

/* Each of the records that were read, as a tuple of bytes. */
static PyObject *records_tuple(const rmq_records *records)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)records->count);
    size_t at = 0;

    for (Py_ssize_t i = 0; tuple != NULL && i < (Py_ssize_t)records->count; i++) {
        const Py_ssize_t size = rmq_load_be32(records->data + at);
        PyObject *one = PyBytes_FromStringAndSize((const char *)records->data + at, size);

        if (one == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, i, one);
            at += (size_t)size;
        }
    }
    return tuple;
}

/* A filter that asks Python about properties. */
typedef struct {
    StoreObject *self;
    PyObject *matches;
} asking;

static rmq_status ask_python(void *context, rmq_text properties, bool *is_wanted)
{
    asking *to = context;
    PyObject *result = PyObject_CallFunction(to->matches, "y#", (const char *)properties.at, (Py_ssize_t)properties.size);

    if (result == NULL) {
        return rmq_keep_error(&to->self->disk);
    }
    *is_wanted = PyObject_IsTrue(result) == 1;
    Py_DECREF(result);
    return RMQ_OK;
}

static int read_codes(PyObject *codes, rmq_filter *filter, int32_t **memory)
{
    int64_t *numbers;
    size_t count;

    *memory = NULL;
    if (codes == Py_None) {
        return 0;
    }
    if (rmq_numbers_of(codes, &numbers, &count) < 0) {
        return -1;
    }
    *memory = PyMem_Calloc(count + 1, sizeof **memory);
    if (*memory == NULL) {
        PyMem_Free(numbers);
        (void)PyErr_NoMemory();
        return -1;
    }
    filter->has_codes = true;
    filter->codes = *memory;
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] >= INT32_MIN && numbers[i] <= INT32_MAX) { /* no unit has any other */
            (*memory)[filter->code_count] = (int32_t)numbers[i];
            filter->code_count += 1;
        }
    }
    PyMem_Free(numbers);
    return 0;
}

static PyObject *store_get_message(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    const char *topic;
    Py_ssize_t size;
    long long queue_id, queue_offset, count_max, terms;
    PyObject *codes;
    asking to = {self, NULL};
    rmq_filter filter = {.has_codes = false};
    int32_t *memory;
    rmq_get_result result;
    rmq_status status;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "y#LLLOOL:get_message", &topic, &size, &queue_id,
                                                      &queue_offset, &count_max, &codes, &to.matches, &terms) ||
        read_codes(codes, &filter, &memory) < 0) {
        return NULL;
    }
    filter.matches = to.matches == Py_None ? NULL : ask_python;
    filter.context = &to;
    filter.terms = terms;
    status = rmq_get_message(self->store, (rmq_text){(const uint8_t *)topic, (size_t)size}, queue_id, queue_offset,
                             count_max, &filter, &self->records, &result);
    PyMem_Free(memory);
    if (rmq_store_outcome(self, status) < 0) {
        return NULL;
    }
    return Py_BuildValue("(iLLLNO)", (int)result.status, (long long)result.next_offset, (long long)result.min_offset,
                         (long long)result.max_offset, records_tuple(&self->records),
                         result.suggest_slave ? Py_True : Py_False);
}

/* The bytes of one record, or None. */
static PyObject *store_message_at(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    long long physical_offset;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "L:message_at", &physical_offset)) {
        return NULL;
    }
    self->records.used = 0;
    self->records.count = 0;
    if (rmq_store_outcome(self, rmq_message_at(self->store, physical_offset, &self->records)) < 0) {
        return NULL;
    }
    if (self->records.count == 0) {
        Py_RETURN_NONE;
    }
    return PyBytes_FromStringAndSize((const char *)self->records.data, (Py_ssize_t)self->records.used);
}

static PyObject *store_query_by_key(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    const char *topic, *key;
    Py_ssize_t topic_size, key_size;
    long long count_max, begin_ms, end_ms;
    rmq_index_end end;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "y#y#LLL:query_by_key", &topic, &topic_size, &key,
                                                      &key_size, &count_max, &begin_ms, &end_ms)) {
        return NULL;
    }
    if (rmq_store_outcome(self, rmq_query_by_key(self->store, (rmq_text){(const uint8_t *)topic, (size_t)topic_size},
                                                 (rmq_text){(const uint8_t *)key, (size_t)key_size}, count_max,
                                                 begin_ms, end_ms, &self->records)) < 0) {
        return NULL;
    }
    end = rmq_index_end_of(&self->store->index);
    return Py_BuildValue("(NLL)", records_tuple(&self->records), (long long)rmq_index_last_ms(&self->store->index),
                         (long long)(end.last > 0 ? end.last : 0));
}

/* --- queues ------------------------------------------------------------------------------------------------------ */

static PyObject *store_min_offset(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    const char *topic;
    Py_ssize_t size;
    long long queue_id;
    int64_t found;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "y#L:min_offset", &topic, &size, &queue_id) ||
        rmq_store_outcome(self, rmq_min_offset(self->store, (rmq_text){(const uint8_t *)topic, (size_t)size}, queue_id,
                                               &found)) < 0) {
        return NULL;
    }
    return PyLong_FromLongLong(found);
}

static PyObject *store_max_offset(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    const char *topic;
    Py_ssize_t size;
    long long queue_id;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "y#L:max_offset", &topic, &size, &queue_id)) {
        return NULL;
    }
    return PyLong_FromLongLong(
        rmq_max_offset(self->store, (rmq_text){(const uint8_t *)topic, (size_t)size}, queue_id));
}

static PyObject *store_offset_by_time(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    const char *topic;
    Py_ssize_t size;
    long long queue_id, timestamp_ms;
    int boundary;
    int64_t found;

    if (!rmq_store_is_open(self) ||
        !PyArg_ParseTuple(arguments, "y#LLi:offset_by_time", &topic, &size, &queue_id, &timestamp_ms, &boundary) ||
        rmq_store_outcome(self, rmq_offset_by_time(self->store, (rmq_text){(const uint8_t *)topic, (size_t)size},
                                                   queue_id, timestamp_ms, (rmq_boundary)boundary, &found)) < 0) {
        return NULL;
    }
    return PyLong_FromLongLong(found);
}

static PyObject *store_store_time(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    const char *topic;
    Py_ssize_t size;
    long long queue_id, queue_offset;
    int64_t found;

    if (!rmq_store_is_open(self) ||
        !PyArg_ParseTuple(arguments, "y#LL:store_time", &topic, &size, &queue_id, &queue_offset) ||
        rmq_store_outcome(self, rmq_store_time(self->store, (rmq_text){(const uint8_t *)topic, (size_t)size}, queue_id,
                                               queue_offset, &found)) < 0) {
        return NULL;
    }
    return PyLong_FromLongLong(found);
}

typedef struct {
    StoreObject *self;
    PyObject *list;
} collecting;

static rmq_status add_unit(void *context, int64_t queue_offset, const rmq_unit *unit)
{
    collecting *to = context;
    /* An address in an extension file, which we do not have, leads nowhere. */
    const int64_t tags_code = unit->tags_code < INT32_MIN ? 0 : unit->tags_code;
    PyObject *one = Py_BuildValue("(LLiL)", (long long)queue_offset, (long long)unit->physical_offset, (int)unit->size,
                                  (long long)tags_code);
    const int failed = one == NULL || PyList_Append(to->list, one) < 0;

    Py_XDECREF(one);
    return failed ? rmq_keep_error(&to->self->disk) : RMQ_OK;
}

static PyObject *store_units(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    collecting to = {self, NULL};
    const char *topic;
    Py_ssize_t size;
    long long queue_id, queue_offset, count_max;

    if (!rmq_store_is_open(self) ||
        !PyArg_ParseTuple(arguments, "y#LLL:units", &topic, &size, &queue_id, &queue_offset, &count_max)) {
        return NULL;
    }
    to.list = PyList_New(0);
    if (to.list != NULL &&
        rmq_store_outcome(self, rmq_units_from(self->store, (rmq_text){(const uint8_t *)topic, (size_t)size}, queue_id,
                                               queue_offset, count_max, add_unit, &to)) < 0) {
        Py_CLEAR(to.list);
    }
    return to.list;
}

static PyObject *store_queues(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    StoreObject *self = (StoreObject *)given;
    PyObject *list;

    if (!rmq_store_is_open(self)) {
        return NULL;
    }
    list = PyList_New(0);
    for (const rmq_queue *queue = self->store->first_queue; list != NULL && queue != NULL; queue = queue->after) {
        PyObject *one = Py_BuildValue("(s#L)", (const char *)queue->topic.at, (Py_ssize_t)queue->topic.size,
                                      (long long)queue->queue_id);
        const int failed = one == NULL || PyList_Append(list, one) < 0;

        Py_XDECREF(one);
        if (failed) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* --- the log ----------------------------------------------------------------------------------------------------- */

static PyObject *store_read_log(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    long long physical_offset, length_max;
    PyObject *data;
    size_t size;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "LL:read_log", &physical_offset, &length_max)) {
        return NULL;
    }
    size = rmq_log_bytes_from(&self->store->log, physical_offset, length_max, self->store->log.files.wrote);
    data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (data != NULL && size > 0 &&
        rmq_store_outcome(self, rmq_log_read(&self->store->log, physical_offset, (uint8_t *)PyBytes_AS_STRING(data),
                                             size)) < 0) {
        Py_CLEAR(data);
    }
    return data;
}

RMQ_LOCKED(store_get_message)
RMQ_LOCKED(store_message_at)
RMQ_LOCKED(store_query_by_key)
RMQ_LOCKED(store_min_offset)
RMQ_LOCKED(store_max_offset)
RMQ_LOCKED(store_offset_by_time)
RMQ_LOCKED(store_store_time)
RMQ_LOCKED(store_units)
RMQ_LOCKED(store_queues)
RMQ_LOCKED(store_read_log)

PyMethodDef rmq_store_get_methods[] = {
    {"get_message", store_get_message_locked, METH_VARARGS, "The fields of a GetResult."},
    {"message_at", store_message_at_locked, METH_VARARGS, "message_at(physical_offset, /)\n--\n\nA record, or None."},
    {"query_by_key", store_query_by_key_locked, METH_VARARGS, "The fields of a QueryResult."},
    {"min_offset", store_min_offset_locked, METH_VARARGS, "min_offset(topic, queue_id, /)\n--\n\nThe first readable message."},
    {"max_offset", store_max_offset_locked, METH_VARARGS, "max_offset(topic, queue_id, /)\n--\n\nOne past the last message."},
    {"offset_by_time", store_offset_by_time_locked, METH_VARARGS, "The message of a time; 0 lower, 1 upper, 2 nearest."},
    {"store_time", store_store_time_locked, METH_VARARGS, "When a message was stored; -1 if it cannot be read."},
    {"units", store_units_locked, METH_VARARGS, "The fields of each QueueUnit."},
    {"queues", store_queues_locked, METH_NOARGS, "queues()\n--\n\nTopic and queue id of every queue, in no order."},
    {"read_log", store_read_log_locked, METH_VARARGS, "read_log(physical_offset, length_max, /)\n--\n\nBytes of the log."},
    {NULL, NULL, 0, NULL},
};

/* What changes a store through refmq_fast.Store: puts, dispatch, the log of a master, deletion of topics. */
#include "bind_store.h"

#include <string.h>

#include "../core/message_id.h"
#include "../store/append.h"
#include "../store/dispatch.h"
#include "../store/replica.h"

/* --- plan -------------------------------------------------------------------------------------------------------- */

static int host_of(const char *ip, Py_ssize_t size, long long port, rmq_host *host)
{
    if (size != 4 && size != 16) {
        PyErr_SetString(PyExc_ValueError, "an address has 4 or 16 bytes");
        return -1;
    }
    memset(host, 0, sizeof *host);
    memcpy(host->ip, ip, (size_t)size);
    host->ip_bytes = (uint8_t)size;
    host->port = port;
    return 0;
}

/* Reads the fourteen fields of a message and the time. The message points into the arguments. */
static int read_message(PyObject *arguments, rmq_message_to_store *message, int64_t *now_ms)
{
    const char *topic, *body, *properties, *born_ip, *store_ip;
    Py_ssize_t topic_size, body_size, properties_size, born_size, store_size;
    long long queue_id, born_ms, born_port, store_port, flag, sys_flag, reconsume, prepared, delay_level, now;

    if (!PyArg_ParseTuple(arguments, "y#Ly#y#Ly#Ly#LLLLLLL", &topic, &topic_size, &queue_id, &body, &body_size,
                          &properties, &properties_size, &born_ms, &born_ip, &born_size, &born_port, &store_ip,
                          &store_size, &store_port, &flag, &sys_flag, &reconsume, &prepared, &delay_level, &now)) {
        return -1;
    }
    *message = (rmq_message_to_store){
        .topic = {(const uint8_t *)topic, (size_t)topic_size},
        .queue_id = queue_id,
        .body = {(const uint8_t *)body, (size_t)body_size},
        .properties = {(const uint8_t *)properties, (size_t)properties_size},
        .born_timestamp_ms = born_ms,
        .flag = flag,
        .sys_flag = sys_flag,
        .reconsume_times = reconsume,
        .prepared_transaction_offset = prepared,
        .delay_level = delay_level,
    };
    *now_ms = now;
    if (host_of(born_ip, born_size, born_port, &message->born_host) < 0) {
        return -1;
    }
    return host_of(store_ip, store_size, store_port, &message->store_host);
}

static PyObject *places_tuple(const rmq_append_plan *plan)
{
    PyObject *places = PyTuple_New((Py_ssize_t)plan->count);

    for (size_t i = 0; places != NULL && i < plan->count; i++) {
        const rmq_place *place = &plan->places[i];
        PyObject *one = Py_BuildValue("(LLLL)", (long long)place->physical_offset, (long long)place->queue_offset,
                                      (long long)place->fingerprint, (long long)place->size_bytes);
        if (one == NULL) {
            Py_CLEAR(places);
        } else {
            PyTuple_SET_ITEM(places, (Py_ssize_t)i, one);
        }
    }
    return places;
}

static PyObject *ids_text(const rmq_append_plan *plan, const rmq_host *store_host)
{
    const size_t size_max = plan->count * (RMQ_MESSAGE_ID_CHARS_MAX + 1);
    char *ids = PyMem_Malloc(size_max);
    size_t size = 0;
    PyObject *text;

    if (ids == NULL) {
        return PyErr_NoMemory();
    }
    for (size_t i = 0; i < plan->count; i++) {
        if (i > 0) {
            ids[size] = ',';
            size += 1;
        }
        size += rmq_message_id(store_host, plan->places[i].physical_offset, ids + size);
    }
    text = PyUnicode_FromStringAndSize(ids, (Py_ssize_t)size);
    PyMem_Free(ids);
    return text;
}

/* The fields of an AppendPlan, or the number of a PutStatus. */
static PyObject *plan_value(StoreObject *self, rmq_status status, rmq_put_status put, const rmq_append_plan *plan,
                            const rmq_host *store_host)
{
    if (rmq_store_outcome(self, status) < 0) {
        return NULL;
    }
    if (put != RMQ_PUT_OK) {
        return PyLong_FromLong(put);
    }
    return Py_BuildValue("(Ly#s#LLnnLLNNO)", (long long)plan->physical_offset, (const char *)plan->data.at,
                         (Py_ssize_t)plan->data.size, (const char *)plan->topic.at, (Py_ssize_t)plan->topic.size,
                         (long long)plan->queue_id, (long long)plan->queue_offset, (Py_ssize_t)plan->count,
                         (Py_ssize_t)plan->data.size, (long long)plan->durable_at, (long long)plan->store_timestamp_ms,
                         ids_text(plan, store_host), places_tuple(plan), plan->is_queued ? Py_True : Py_False);
}

static PyObject *store_plan(PyObject *given, PyObject *arguments, bool is_batch)
{
    StoreObject *self = (StoreObject *)given;
    rmq_message_to_store message;
    rmq_append_plan plan;
    rmq_put_status put;
    int64_t now_ms;
    rmq_status status;

    if (!rmq_store_is_open(self) || read_message(arguments, &message, &now_ms) < 0) {
        return NULL;
    }
    status = is_batch ? rmq_plan_batch(self->store, &message, now_ms, &plan, &put)
                      : rmq_plan_message(self->store, &message, now_ms, &plan, &put);
    return plan_value(self, status, put, &plan, &message.store_host);
}

static PyObject *store_plan_message(PyObject *given, PyObject *arguments)
{
    return store_plan(given, arguments, false);
}

static PyObject *store_plan_batch(PyObject *given, PyObject *arguments)
{
    return store_plan(given, arguments, true);
}

/* --- append ------------------------------------------------------------------------------------------------------ */

static int read_places(PyObject *tuple, rmq_place **places, size_t *count)
{
    const Py_ssize_t size = PyTuple_GET_SIZE(tuple);

    *count = (size_t)size;
    *places = PyMem_Calloc(*count + 1, sizeof **places);
    if (*places == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        long long physical_offset, queue_offset, fingerprint, size_bytes;

        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(tuple, i), "LLLL", &physical_offset, &queue_offset, &fingerprint,
                              &size_bytes)) {
            PyMem_Free(*places);
            return -1;
        }
        (*places)[i] = (rmq_place){physical_offset, queue_offset, fingerprint, size_bytes};
    }
    return 0;
}

static PyObject *store_append(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    const char *data, *topic;
    Py_ssize_t data_size, topic_size;
    long long physical_offset, queue_id, queue_offset, durable_at, store_ms;
    PyObject *tuple;
    int is_queued;
    rmq_place *places;
    rmq_append_plan plan;
    rmq_put_status put;
    rmq_status status, failed;

    if (!rmq_store_is_open(self) ||
        !PyArg_ParseTuple(arguments, "Ly#y#LLLLO!p:append", &physical_offset, &data, &data_size, &topic, &topic_size,
                          &queue_id, &queue_offset, &durable_at, &store_ms, &PyTuple_Type, &tuple, &is_queued) ||
        read_places(tuple, &places, &plan.count) < 0) {
        return NULL;
    }
    plan.physical_offset = physical_offset;
    plan.data = (rmq_text){(const uint8_t *)data, (size_t)data_size};
    plan.topic = (rmq_text){(const uint8_t *)topic, (size_t)topic_size};
    plan.queue_id = queue_id;
    plan.queue_offset = queue_offset;
    plan.durable_at = durable_at;
    plan.store_timestamp_ms = store_ms;
    plan.places = places;
    plan.is_queued = is_queued != 0;
    status = rmq_append(self->store, &plan, &put, &failed);
    PyMem_Free(places);
    if (status == RMQ_OK && put == RMQ_PUT_OK) {
        status = rmq_write_appended(self->store); /* whoever called acknowledges as it likes */
    }
    return rmq_store_outcome(self, status) < 0 ? NULL : PyLong_FromLong(put);
}

/* --- dispatch ---------------------------------------------------------------------------------------------------- */

rmq_status rmq_add_dispatched(void *context, const rmq_dispatched *dispatched)
{
    rmq_listening *to = context;
    PyObject *one = Py_BuildValue("(s#LLLLLLy#)", (const char *)dispatched->topic.at, (Py_ssize_t)dispatched->topic.size,
                                  (long long)dispatched->queue_id, (long long)dispatched->queue_offset,
                                  (long long)dispatched->physical_offset, (long long)dispatched->size_bytes,
                                  (long long)dispatched->tags_code, (long long)dispatched->store_timestamp_ms,
                                  (const char *)dispatched->properties.at, (Py_ssize_t)dispatched->properties.size);
    const int failed = one == NULL || PyList_Append(to->list, one) < 0;

    Py_XDECREF(one);
    return failed ? rmq_keep_error(&to->self->disk) : RMQ_OK;
}

static PyObject *store_dispatch(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    rmq_listening to = {self, NULL};
    long long count_max;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "L:dispatch", &count_max)) {
        return NULL;
    }
    to.list = PyList_New(0);
    if (to.list != NULL &&
        rmq_store_outcome(self, rmq_dispatch(self->store, count_max, rmq_add_dispatched, &to)) < 0) {
        Py_CLEAR(to.list);
    }
    return to.list;
}

/* --- the rest ---------------------------------------------------------------------------------------------------- */

static PyObject *store_append_log(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    long long physical_offset;
    const char *data;
    Py_ssize_t size;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "Ly#:append_log", &physical_offset, &data, &size)) {
        return NULL;
    }
    if (rmq_store_outcome(self, rmq_append_log(self->store, physical_offset, (const uint8_t *)data, (size_t)size)) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *store_set_slave(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    int is_slave;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "p:set_slave", &is_slave) ||
        rmq_store_outcome(self, rmq_set_slave(self->store, is_slave != 0)) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *store_delete_topic(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    const char *topic;
    Py_ssize_t size;
    int64_t count;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "y#:delete_topic", &topic, &size) ||
        rmq_store_outcome(self, rmq_delete_topic(self->store, (rmq_text){(const uint8_t *)topic, (size_t)size},
                                                 &count)) < 0) {
        return NULL;
    }
    return PyLong_FromLongLong(count);
}

RMQ_LOCKED(store_plan_message)
RMQ_LOCKED(store_plan_batch)
RMQ_LOCKED(store_append)
RMQ_LOCKED(store_dispatch)
RMQ_LOCKED(store_append_log)
RMQ_LOCKED(store_set_slave)
RMQ_LOCKED(store_delete_topic)

PyMethodDef rmq_store_put_methods[] = {
    {"plan_message", store_plan_message_locked, METH_VARARGS, "The fields of an AppendPlan, or the number of a PutStatus."},
    {"plan_batch", store_plan_batch_locked, METH_VARARGS, "The same for a batch."},
    {"append", store_append_locked, METH_VARARGS, "Performs a plan: the number of a PutStatus."},
    {"dispatch", store_dispatch_locked, METH_VARARGS, "dispatch(count_max, /)\n--\n\nThe fields of each Dispatched."},
    {"append_log", store_append_log_locked, METH_VARARGS, "append_log(physical_offset, data, /)\n--\n\nA slave's append."},
    {"set_slave", store_set_slave_locked, METH_VARARGS, "set_slave(is_slave, /)\n--\n\nChanges the role."},
    {"delete_topic", store_delete_topic_locked, METH_VARARGS, "delete_topic(topic, /)\n--\n\nHow many queues went."},
    {NULL, NULL, 0, NULL},
};

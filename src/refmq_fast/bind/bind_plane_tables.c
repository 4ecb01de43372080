/* refmq_fast.Plane: what the control plane installs, sets and asks. */
#include "bind_plane.h"

#include <stddef.h>
#include <string.h>

/* --- configuration ------------------------------------------------------------------------------------------------- */

#define SWITCH(name)                                                                                                   \
    {                                                                                                                  \
        #name, offsetof(rmq_plane_config, name), true                                                                  \
    }
#define NUMBER(name)                                                                                                   \
    {                                                                                                                  \
        #name, offsetof(rmq_plane_config, name), false                                                                 \
    }

static const struct {
    const char *name;
    size_t at;
    bool is_switch;
} SETTINGS[] = {
    SWITCH(trace_on),           SWITCH(sync_flush),      SWITCH(is_slave),         SWITCH(waits_for_slaves),
    SWITCH(slave_read),         SWITCH(long_polling),    SWITCH(fast_failure),     SWITCH(hands_over_all),
    NUMBER(permission),
    NUMBER(short_polling_ms),   NUMBER(sends_max),       NUMBER(flush_timeout_ms), NUMBER(accepts_sends_from_ms),
    NUMBER(pulls_max),          NUMBER(send_wait_ms),    NUMBER(pull_wait_ms),
};

static int read_text(PyObject *settings, const char *name, rmq_short_text *text)
{
    PyObject *value = PyDict_GetItemString(settings, name); /* borrowed */
    char *bytes;
    Py_ssize_t size;

    if (value == NULL) {
        PyErr_Format(PyExc_KeyError, "the setting %s is missing", name);
        return -1;
    }
    if (PyBytes_AsStringAndSize(value, &bytes, &size) < 0) {
        return -1;
    }
    if ((size_t)size > RMQ_PLANE_TEXT_MAX) {
        PyErr_Format(PyExc_ValueError, "%s has %zd bytes, %u are the most", name, size, RMQ_PLANE_TEXT_MAX);
        return -1;
    }
    memcpy(text->bytes, bytes, (size_t)size);
    text->size = (uint8_t)size;
    return 0;
}

PyDoc_STRVAR(configure_doc, "configure(settings, ip, port, /)\n--\n\nInstalls the settings and the broker's address.");

static PyObject *plane_configure(PyObject *given, PyObject *arguments)
{
    PlaneObject *self = (PlaneObject *)given;
    rmq_plane_config config;
    PyObject *settings;
    const char *ip;
    Py_ssize_t ip_size;
    long long port;

    memset(&config, 0, sizeof config);
    if (!rmq_plane_is_open(self) ||
        !PyArg_ParseTuple(arguments, "O!y#L:configure", &PyDict_Type, &settings, &ip, &ip_size, &port)) {
        return NULL;
    }
    if (ip_size != 4 && ip_size != 16) {
        PyErr_SetString(PyExc_ValueError, "an address has 4 or 16 bytes");
        return NULL;
    }
    for (size_t i = 0; i < sizeof SETTINGS / sizeof SETTINGS[0]; i++) {
        PyObject *value = PyDict_GetItemString(settings, SETTINGS[i].name);
        int64_t number;

        if (value == NULL) {
            return PyErr_Format(PyExc_KeyError, "the setting %s is missing", SETTINGS[i].name);
        }
        number = PyLong_AsLongLong(value);
        if (PyErr_Occurred()) {
            return NULL;
        }
        if (SETTINGS[i].is_switch) {
            *(bool *)((char *)&config + SETTINGS[i].at) = number != 0;
        } else {
            memcpy((char *)&config + SETTINGS[i].at, &number, sizeof number);
        }
    }
    if (read_text(settings, "cluster", &config.cluster) < 0 || read_text(settings, "region", &config.region) < 0) {
        return NULL;
    }
    memcpy(config.store_host.ip, ip, (size_t)ip_size);
    config.store_host.ip_bytes = (uint8_t)ip_size;
    config.store_host.port = port;
    self->plane->snapshot.config = config;
    Py_RETURN_NONE;
}

/* --- tables -------------------------------------------------------------------------------------------------------- */

static rmq_text text_of(const char *at, Py_ssize_t size)
{
    return (rmq_text){(const uint8_t *)at, (size_t)size};
}

static PyObject *plane_put_topic(PyObject *given, PyObject *arguments)
{
    PlaneObject *self = (PlaneObject *)given;
    const char *name;
    Py_ssize_t size;
    long long read, write, permission;
    int may_send, may_pull, multi;
    rmq_topic topic;

    if (!rmq_plane_is_open(self) || !PyArg_ParseTuple(arguments, "y#LLLppp:put_topic", &name, &size, &read, &write,
                                                      &permission, &may_send, &may_pull, &multi)) {
        return NULL;
    }
    memset(&topic, 0, sizeof topic);
    topic.read_queues = read > 0 ? read : 0;
    topic.write_queues = write > 0 ? write : 0;
    topic.permission = permission;
    topic.may_send = may_send != 0;
    topic.may_pull = may_pull != 0;
    topic.has_multi_tags = multi != 0;
    return rmq_plane_outcome(self, rmq_put_topic(&self->plane->snapshot, text_of(name, size), &topic));
}

static PyObject *plane_put_group(PyObject *given, PyObject *arguments)
{
    PlaneObject *self = (PlaneObject *)given;
    const char *name;
    Py_ssize_t size;
    long long broker_id, when_slow;
    int may_consume, may_broadcast;
    rmq_group group;

    if (!rmq_plane_is_open(self) || !PyArg_ParseTuple(arguments, "y#ppLL:put_group", &name, &size, &may_consume,
                                                      &may_broadcast, &broker_id, &when_slow)) {
        return NULL;
    }
    memset(&group, 0, sizeof group);
    group.may_consume = may_consume != 0;
    group.may_broadcast = may_broadcast != 0;
    group.broker_id = broker_id;
    group.broker_when_slow = when_slow;
    return rmq_plane_outcome(self, rmq_put_group(&self->plane->snapshot, text_of(name, size), &group));
}

static PyObject *plane_put_subscription(PyObject *given, PyObject *arguments)
{
    PlaneObject *self = (PlaneObject *)given;
    const char *group, *topic;
    Py_ssize_t group_size, topic_size;
    long long version;
    int is_broadcasting, wants_all;
    PyObject *tuple;
    int64_t *numbers;
    int32_t *codes;
    rmq_subscription one;
    rmq_status status;

    if (!rmq_plane_is_open(self) ||
        !PyArg_ParseTuple(arguments, "y#y#pLpO!:put_subscription", &group, &group_size, &topic, &topic_size,
                          &is_broadcasting, &version, &wants_all, &PyTuple_Type, &tuple)) {
        return NULL;
    }
    memset(&one, 0, sizeof one);
    if (rmq_numbers_of(tuple, &numbers, &one.code_count) < 0) {
        return NULL;
    }
    codes = PyMem_Calloc(one.code_count + 1, sizeof *codes);
    for (size_t i = 0; codes != NULL && i < one.code_count; i++) {
        codes[i] = (int32_t)numbers[i];
    }
    PyMem_Free(numbers);
    if (codes == NULL) {
        return PyErr_NoMemory();
    }
    one.is_broadcasting = is_broadcasting != 0;
    one.version = version;
    one.wants_all = wants_all != 0;
    status = rmq_put_subscription(&self->plane->snapshot, text_of(group, group_size), text_of(topic, topic_size), &one,
                                  codes);
    PyMem_Free(codes);
    return rmq_plane_outcome(self, status);
}

static PyObject *plane_remove_topic(PyObject *given, PyObject *arguments)
{
    PlaneObject *self = (PlaneObject *)given;
    const char *name;
    Py_ssize_t size;

    if (!rmq_plane_is_open(self) || !PyArg_ParseTuple(arguments, "y#:remove_topic", &name, &size)) {
        return NULL;
    }
    rmq_remove_topic(&self->plane->snapshot, text_of(name, size));
    Py_RETURN_NONE;
}

static PyObject *plane_remove_group(PyObject *given, PyObject *arguments)
{
    PlaneObject *self = (PlaneObject *)given;
    const char *name;
    Py_ssize_t size;

    if (!rmq_plane_is_open(self) || !PyArg_ParseTuple(arguments, "y#:remove_group", &name, &size)) {
        return NULL;
    }
    rmq_remove_group(&self->plane->snapshot, text_of(name, size));
    Py_RETURN_NONE;
}

static PyObject *plane_remove_subscription(PyObject *given, PyObject *arguments)
{
    PlaneObject *self = (PlaneObject *)given;
    const char *group, *topic;
    Py_ssize_t group_size, topic_size;

    if (!rmq_plane_is_open(self) ||
        !PyArg_ParseTuple(arguments, "y#y#:remove_subscription", &group, &group_size, &topic, &topic_size)) {
        return NULL;
    }
    rmq_remove_subscription(&self->plane->snapshot, text_of(group, group_size), text_of(topic, topic_size));
    Py_RETURN_NONE;
}

/* --- offsets ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(set_offset_doc, "set_offset(topic, group, queue_id, offset, /)\n--\n\n"
                             "Sets an offset that the control plane knows. False if the names are too long.");

static PyObject *plane_set_offset(PyObject *given, PyObject *arguments)
{
    PlaneObject *self = (PlaneObject *)given;
    const char *topic, *group;
    Py_ssize_t topic_size, group_size;
    long long queue_id, offset;
    int64_t before;
    rmq_status status;

    if (!rmq_plane_is_open(self) || !PyArg_ParseTuple(arguments, "y#y#LL:set_offset", &topic, &topic_size, &group,
                                                      &group_size, &queue_id, &offset)) {
        return NULL;
    }
    status = rmq_commit_offset(&self->plane->offsets, text_of(topic, topic_size), text_of(group, group_size), queue_id,
                               offset, true, &before);
    if (status == RMQ_NOT_MINE) {
        Py_RETURN_FALSE;
    }
    if (rmq_store_outcome(self->owner, status) < 0) {
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyObject *plane_forget_offsets(PyObject *given, PyObject *Py_UNUSED(none))
{
    PlaneObject *self = (PlaneObject *)given;

    if (!rmq_plane_is_open(self)) {
        return NULL;
    }
    rmq_forget_offsets(&self->plane->offsets);
    Py_RETURN_NONE;
}

static PyObject *plane_take_offsets(PyObject *given, PyObject *Py_UNUSED(none))
{
    PlaneObject *self = (PlaneObject *)given;
    PyObject *list = rmq_plane_is_open(self) ? PyList_New(0) : NULL;
    const rmq_offset *one;

    while (list != NULL && (one = rmq_next_changed(&self->plane->offsets)) != NULL) {
        const char *names = (const char *)one->key.text.at;
        const size_t group_at = one->topic_size + 1;
        PyObject *fields = Py_BuildValue("(s#s#LL)", names, (Py_ssize_t)one->topic_size, names + group_at,
                                         (Py_ssize_t)(one->key.text.size - group_at), (long long)one->key.number,
                                         (long long)one->offset);

        if (fields == NULL || PyList_Append(list, fields) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(fields);
    }
    return list;
}

/* --- counts -------------------------------------------------------------------------------------------------------- */

static int add_send(PyObject *list, rmq_topic *topic)
{
    PyObject *fields;
    int status;

    if (topic->sends == 0) {
        return 0;
    }
    fields = Py_BuildValue("(s#LLLL)", (const char *)topic->key.text.at, (Py_ssize_t)topic->key.text.size,
                           (long long)topic->sends, (long long)topic->messages, (long long)topic->sent_bytes,
                           (long long)topic->took_ms);
    status = fields == NULL ? -1 : PyList_Append(list, fields);
    Py_XDECREF(fields);
    topic->sends = topic->messages = topic->sent_bytes = topic->took_ms = 0;
    return status;
}

/* Adds the tally of a group in a queue. */
static int add_pull(PyObject *list, const rmq_pull_count *count)
{
    const char *names = (const char *)count->key.text.at;
    const size_t group_at = count->topic_size + 1;
    PyObject *fields = Py_BuildValue("(s#Ls#LLLL)", names, (Py_ssize_t)count->topic_size, (long long)count->key.number,
                                     names + group_at, (Py_ssize_t)(count->key.text.size - group_at),
                                     (long long)count->pulls, (long long)count->found, (long long)count->messages,
                                     (long long)count->found_bytes);
    const int status = fields == NULL ? -1 : PyList_Append(list, fields);

    Py_XDECREF(fields);
    return status;
}

static PyObject *plane_take_counts(PyObject *given, PyObject *Py_UNUSED(none))
{
    PlaneObject *self = (PlaneObject *)given;
    PyObject *sends, *pulls;
    rmq_topic *topic;
    rmq_pull_count *count;
    size_t at = 0;
    int status = 0;

    if (!rmq_plane_is_open(self)) {
        return NULL;
    }
    sends = PyList_New(0);
    pulls = PyList_New(0);
    status = sends == NULL || pulls == NULL ? -1 : 0;
    while (status == 0 && (topic = rmq_table_next(&self->plane->snapshot.topics, &at)) != NULL) {
        status = add_send(sends, topic);
    }
    at = 0;
    while (status == 0 && (count = rmq_table_next(&self->plane->pull_counts, &at)) != NULL) {
        status = add_pull(pulls, count);
    }
    if (status < 0) {
        Py_XDECREF(sends);
        Py_XDECREF(pulls);
        return NULL;
    }
    rmq_forget_pull_counts(self->plane);
    return Py_BuildValue("(NN)", sends, pulls);
}

RMQ_PLANE_LOCKED(plane_configure)
RMQ_PLANE_LOCKED(plane_put_topic)
RMQ_PLANE_LOCKED(plane_put_group)
RMQ_PLANE_LOCKED(plane_put_subscription)
RMQ_PLANE_LOCKED(plane_remove_topic)
RMQ_PLANE_LOCKED(plane_remove_group)
RMQ_PLANE_LOCKED(plane_remove_subscription)
RMQ_PLANE_LOCKED(plane_set_offset)
RMQ_PLANE_LOCKED(plane_forget_offsets)
RMQ_PLANE_LOCKED(plane_take_offsets)
RMQ_PLANE_LOCKED(plane_take_counts)

PyMethodDef rmq_plane_table_methods[] = {
    {"configure", plane_configure_locked, METH_VARARGS, configure_doc},
    {"put_topic", plane_put_topic_locked, METH_VARARGS,
     "put_topic(name, read_queues, write_queues, permission, may_send, may_pull, has_multi_tags, /)\n--\n\nA topic."},
    {"put_group", plane_put_group_locked, METH_VARARGS,
     "put_group(name, may_consume, may_broadcast, broker_id, broker_when_slow, /)\n--\n\nA consumer group."},
    {"put_subscription", plane_put_subscription_locked, METH_VARARGS,
     "put_subscription(group, topic, is_broadcasting, version, wants_all, codes, /)\n--\n\nWhat a group wants."},
    {"remove_topic", plane_remove_topic_locked, METH_VARARGS, "remove_topic(name, /)\n--\n\nA topic is gone."},
    {"remove_group", plane_remove_group_locked, METH_VARARGS, "remove_group(name, /)\n--\n\nA consumer group is gone."},
    {"remove_subscription", plane_remove_subscription_locked, METH_VARARGS,
     "remove_subscription(group, topic, /)\n--\n\nA group wants a topic no more."},
    {"set_offset", plane_set_offset_locked, METH_VARARGS, set_offset_doc},
    {"forget_offsets", plane_forget_offsets_locked, METH_NOARGS, "Forgets all offsets: the control plane sets them anew."},
    {"take_offsets", plane_take_offsets_locked, METH_NOARGS,
     "The offsets that were committed here since the last call: topic, group, queue and offset."},
    {"take_counts", plane_take_counts_locked, METH_NOARGS,
     "What was counted since the last call: of sends by topic; of pulls by topic, queue and group."},
    {NULL, NULL, 0, NULL},
};

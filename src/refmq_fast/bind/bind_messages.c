/* Python's side of core/message_list.h: MessageReader, which makes the messages of a pull response.
 *
 * It is told what a message is: a class with slots, as refmq.client.message.ReceivedMessage, whose instances it fills slot
 * by slot. Everything is immutable once it is made, so any thread may use it. The GIL is kept: half of the work is making
 * Python objects, and a response has 32 messages.
 */
#include "bind.h"

#include "../core/message_list.h"

#define UNIQUE_KEY "UNIQ_KEY"

/* The slots of a message, in the order of SLOT_NAMES. */
enum {
    TOPIC,
    BODY,
    MSG_ID,
    QUEUE,
    QUEUE_OFFSET,
    PHYSICAL_OFFSET,
    PROPERTIES,
    FLAG,
    SYS_FLAG,
    BORN_TIMESTAMP,
    BORN_HOST,
    STORE_TIMESTAMP,
    STORE_HOST,
    RECONSUME_TIMES,
    PREPARED_OFFSET,
    OFFSET_MSG_ID,
    STORED_BYTES,
    FINGERPRINT,
    SETTLER,
    SLOTS
};

static const char *const SLOT_NAMES[SLOTS] = {
    "topic",
    "body",
    "msg_id",
    "queue",
    "queue_offset",
    "physical_offset",
    "properties",
    "flag",
    "sys_flag",
    "born_timestamp_ms",
    "born_host",
    "store_timestamp_ms",
    "store_host",
    "reconsume_times",
    "prepared_transaction_offset",
    "offset_msg_id",
    "stored_bytes",
    "fingerprint",
    "settler",
};

typedef struct {
    PyObject_HEAD
    PyTypeObject *message;  /* the class */
    PyObject *slots[SLOTS]; /* its member descriptors */
    PyObject *unique_key;   /* the string UNIQ_KEY */
} Reader;

/* Whom the messages of one response are from and for. */
typedef struct {
    PyObject *queue;
    PyObject *topic;
    rmq_text topic_text;
    long long queue_id;
    PyObject *settler;
} Source;

static PyObject *string_of(rmq_text text)
{
    return PyUnicode_DecodeUTF8(text.size == 0 ? "" : (const char *)text.at, (Py_ssize_t)text.size, "strict");
}

static PyObject *host_of(const uint8_t *host)
{
    uint8_t text[RMQ_HOST_TEXT_BYTES_MAX];

    return PyUnicode_DecodeASCII((const char *)text, (Py_ssize_t)rmq_message_host_text(host, text), "strict");
}

static PyObject *offset_id_of(const rmq_message *read)
{
    uint8_t text[RMQ_MESSAGE_ID_BYTES];

    rmq_message_offset_id(read, text);
    return PyUnicode_DecodeASCII((const char *)text, sizeof text, "strict");
}

static PyObject *properties_of(rmq_text text)
{
    PyObject *properties = PyDict_New();
    rmq_text name, value;

    while (properties != NULL && rmq_message_next_property(&text, &name, &value)) {
        PyObject *key = string_of(name);
        PyObject *item = key == NULL ? NULL : string_of(value);

        if (item == NULL || PyDict_SetItem(properties, key, item) < 0) {
            Py_CLEAR(properties);
        }
        Py_XDECREF(key);
        Py_XDECREF(item);
    }
    return properties;
}

/* Puts a value, of which the reference is taken over, into a slot. A null value is an error of before. */
static int fill(Reader *reader, PyObject *instance, int slot, PyObject *value)
{
    PyObject *descriptor = reader->slots[slot];
    int result;

    if (value == NULL) {
        return -1;
    }
    result = Py_TYPE(descriptor)->tp_descr_set(descriptor, instance, value);
    Py_DECREF(value);
    return result;
}

/* The slots that hold what the record says of itself as a number. */
static int fill_numbers(Reader *reader, PyObject *made, const rmq_message *read)
{
    const struct {
        int slot;
        long long value;
    } numbers[] = {
        {QUEUE_OFFSET, read->queue_offset},
        {PHYSICAL_OFFSET, read->physical_offset},
        {FLAG, read->flag},
        {SYS_FLAG, read->sys_flag},
        {BORN_TIMESTAMP, read->born_timestamp_ms},
        {STORE_TIMESTAMP, read->store_timestamp_ms},
        {RECONSUME_TIMES, read->reconsume_times},
        {PREPARED_OFFSET, read->prepared_transaction_offset},
        {STORED_BYTES, (long long)read->body.size},
        {FINGERPRINT, 0}, /* of a message that nobody records */
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (fill(reader, made, numbers[i].slot, PyLong_FromLongLong(numbers[i].value)) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The slots that name the message: its properties, and the id among them or that of the broker. */
static int fill_names(Reader *reader, PyObject *made, const rmq_message *read)
{
    PyObject *properties = properties_of(read->properties);
    PyObject *offset_id = properties == NULL ? NULL : offset_id_of(read);
    PyObject *found = offset_id == NULL ? NULL : PyDict_GetItemWithError(properties, reader->unique_key);
    int result = -1;

    if (offset_id != NULL && (found != NULL || !PyErr_Occurred()) &&
        fill(reader, made, MSG_ID, Py_NewRef(found == NULL ? offset_id : found)) == 0 &&
        fill(reader, made, OFFSET_MSG_ID, Py_NewRef(offset_id)) == 0 &&
        fill(reader, made, PROPERTIES, PyDictProxy_New(properties)) == 0) {
        result = 0;
    }
    Py_XDECREF(offset_id);
    Py_XDECREF(properties);
    return result;
}

static PyObject *make_message(Reader *reader, const rmq_message *read, const Source *source)
{
    PyObject *made = reader->message->tp_alloc(reader->message, 0);

    if (made == NULL) {
        return NULL;
    }
    if (fill(reader, made, TOPIC, Py_NewRef(source->topic)) < 0 ||
        fill(reader, made, BODY,
             PyBytes_FromStringAndSize((const char *)read->body.at, (Py_ssize_t)read->body.size)) < 0 ||
        fill(reader, made, QUEUE, Py_NewRef(source->queue)) < 0 || fill_numbers(reader, made, read) < 0 ||
        fill(reader, made, BORN_HOST, host_of(read->born_host)) < 0 ||
        fill(reader, made, STORE_HOST, host_of(read->store_host)) < 0 || fill_names(reader, made, read) < 0 ||
        fill(reader, made, SETTLER, Py_NewRef(source->settler)) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}

/* Appends the messages that are for us from `*at` on to `found`, and moves `*at` to the first that is not. */
static int read_all(Reader *reader, const uint8_t *data, size_t length, size_t *at, const Source *source,
                    PyObject *found)
{
    rmq_message read;

    while (*at < length && rmq_message_read(data + *at, length - *at, &read) == RMQ_OK &&
           read.queue_id == source->queue_id && rmq_text_equals(read.topic, source->topic_text)) {
        PyObject *made = make_message(reader, &read, source);
        int result = made == NULL ? -1 : PyList_Append(found, made);

        Py_XDECREF(made);
        if (result < 0) {
            return -1;
        }
        *at += read.size_bytes;
    }
    return 0;
}

PyDoc_STRVAR(read_doc, "read(data, start, queue, topic, queue_id, settler, /)\n--\n\n"
                       "The messages of this queue that begin at start, one after another, and where the first one does\n"
                       "that the reference has to look at; the end of data when there is none.");

static PyObject *reader_read(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *found = NULL, *result = NULL;
    Py_buffer buffer = {0};
    Py_ssize_t start, topic_size;
    Source source;
    size_t at;

    if (count != 6) {
        PyErr_Format(PyExc_TypeError, "read takes six arguments, not %zd", count);
        return NULL;
    }
    start = PyLong_AsSsize_t(arguments[1]);
    source.queue_id = PyLong_AsLongLong(arguments[4]);
    if (PyErr_Occurred()) {
        return NULL;
    }
    source.queue = arguments[2];
    source.topic = arguments[3];
    source.topic_text.at = (const uint8_t *)PyUnicode_AsUTF8AndSize(arguments[3], &topic_size);
    source.settler = arguments[5];
    if (source.topic_text.at == NULL || PyObject_GetBuffer(arguments[0], &buffer, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    source.topic_text.size = (size_t)topic_size;
    if (start < 0 || start > buffer.len) {
        PyErr_Format(PyExc_ValueError, "messages begin at 0 to %zd, not %zd", buffer.len, start);
        goto exit;
    }
    found = PyList_New(0);
    at = (size_t)start;
    if (found != NULL &&
        read_all((Reader *)self, buffer.buf, (size_t)buffer.len, &at, &source, found) == 0) {
        result = Py_BuildValue("On", found, (Py_ssize_t)at);
    }
exit:
    Py_XDECREF(found);
    PyBuffer_Release(&buffer);
    return result;
}

static int take_slots(Reader *reader)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        PyObject *descriptor = PyObject_GetAttrString((PyObject *)reader->message, SLOT_NAMES[slot]);

        reader->slots[slot] = descriptor;
        if (descriptor == NULL) {
            return -1;
        }
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
            PyErr_Format(PyExc_TypeError, "%s of a message is to be a slot", SLOT_NAMES[slot]);
            return -1;
        }
    }
    return 0;
}

static PyObject *reader_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", NULL};
    PyObject *message;
    Reader *reader;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!:MessageReader", names, &PyType_Type, &message)) {
        return NULL;
    }
    reader = (Reader *)type->tp_alloc(type, 0);
    if (reader == NULL) {
        return NULL;
    }
    reader->message = (PyTypeObject *)Py_NewRef(message);
    reader->unique_key = PyUnicode_InternFromString(UNIQUE_KEY);
    if (reader->unique_key == NULL || take_slots(reader) < 0) {
        Py_DECREF(reader);
        return NULL;
    }
    return (PyObject *)reader;
}

static int reader_traverse(PyObject *self, visitproc visit, void *arg)
{
    Reader *reader = (Reader *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(reader->message);
    for (int slot = 0; slot < SLOTS; slot++) {
        Py_VISIT(reader->slots[slot]);
    }
    return 0;
}

static void reader_dealloc(PyObject *self)
{
    Reader *reader = (Reader *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_XDECREF(reader->message);
    for (int slot = 0; slot < SLOTS; slot++) {
        Py_XDECREF(reader->slots[slot]);
    }
    Py_XDECREF(reader->unique_key);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef reader_methods[] = {
    {"read", (PyCFunction)(void (*)(void))reader_read, METH_FASTCALL, read_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(reader_doc, "MessageReader(message, /)\n--\n\n"
                         "Makes instances of a class with the slots of ReceivedMessage from the bytes of a pull response.");

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, (void *)reader_doc},
    {Py_tp_new, (void *)reader_new},
    {Py_tp_traverse, (void *)reader_traverse},
    {Py_tp_dealloc, (void *)reader_dealloc},
    {Py_tp_methods, reader_methods},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    .name = "refmq_fast.MessageReader",
    .basicsize = sizeof(Reader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = reader_slots,
};

int rmq_bind_messages(PyObject *module)
{
    return rmq_add_type(module, &reader_spec);
}

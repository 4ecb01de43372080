/* Python's side of core/frame.h: FrameCodec, which turns frames into commands and commands into frames.
 *
 * It is told what a command is: a class with slots, as refmq.protocol.command.RemotingCommand, whose instances it fills
 * and reads slot by slot. Everything is immutable once it is made, so any thread may use it. The GIL is kept: a frame is
 * copied once, and what else happens to it is making Python objects.
 */
#include "bind.h"

#include <string.h>

#include "../core/frame.h"

#define STACK_BYTES 4096 /* headers and heads of this size need no allocation: nearly all of them */

/* The slots of a command, in the order of SLOT_NAMES. */
enum { CODE, OPAQUE, FLAG, LANGUAGE, VERSION, REMARK, EXT_FIELDS, BODY, SERIALIZE_TYPE, HEADER, SLOTS };

static const char *const SLOT_NAMES[SLOTS] = {"code",   "opaque",     "flag", "language",       "version",
                                              "remark", "ext_fields", "body", "serialize_type", "header"};

typedef struct {
    PyObject_HEAD
    PyTypeObject *command;    /* the class */
    PyObject *slots[SLOTS];   /* its member descriptors */
    PyObject *languages;      /* tuple: the byte's value -> its Python value */
    PyObject *serializations; /* tuple, likewise */
} Codec;

/* What became of an attempt. */
enum { FAILED = -1, UNFIT = 0, DONE = 1 };

/* --- bytes to commands --------------------------------------------------------------------------------------------- */

static PyObject *string_of(rmq_text text)
{
    return PyUnicode_DecodeUTF8(text.size == 0 ? "" : (const char *)text.at, (Py_ssize_t)text.size, "strict");
}

static PyObject *bytes_of(const uint8_t *at, size_t size)
{
    return PyBytes_FromStringAndSize((const char *)at, (Py_ssize_t)size);
}

static PyObject *fields_of(const rmq_command *command)
{
    PyObject *fields;

    if (!command->has_fields) {
        return Py_NewRef(Py_None);
    }
    fields = PyDict_New();
    for (size_t i = 0; fields != NULL && i < command->field_count; i++) {
        PyObject *key = string_of(command->fields[i].key);
        PyObject *value = key == NULL ? NULL : string_of(command->fields[i].value);

        if (value == NULL || PyDict_SetItem(fields, key, value) < 0) {
            Py_CLEAR(fields);
        }
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return fields;
}

/* Puts a value, of which the reference is taken over, into a slot. A null value is an error of before. */
static int fill(Codec *codec, PyObject *instance, int slot, PyObject *value)
{
    PyObject *descriptor = codec->slots[slot];
    int result;

    if (value == NULL) {
        return -1;
    }
    result = Py_TYPE(descriptor)->tp_descr_set(descriptor, instance, value);
    Py_DECREF(value);
    return result;
}

static PyObject *make_command(Codec *codec, const uint8_t *data, const rmq_frame *frame, const rmq_command *read)
{
    PyObject *made = codec->command->tp_alloc(codec->command, 0);

    if (made == NULL) {
        return NULL;
    }
    if (fill(codec, made, CODE, PyLong_FromLong(read->code)) < 0 ||
        fill(codec, made, OPAQUE, PyLong_FromLong(read->opaque)) < 0 ||
        fill(codec, made, FLAG, PyLong_FromLong(read->flag)) < 0 ||
        fill(codec, made, LANGUAGE, Py_NewRef(PyTuple_GET_ITEM(codec->languages, read->language))) < 0 ||
        fill(codec, made, VERSION, PyLong_FromLong(read->version)) < 0 ||
        fill(codec, made, REMARK, read->has_remark ? string_of(read->remark) : Py_NewRef(Py_None)) < 0 ||
        fill(codec, made, EXT_FIELDS, fields_of(read)) < 0 ||
        fill(codec, made, BODY, bytes_of(data + frame->body_at, frame->length - frame->body_at)) < 0 ||
        fill(codec, made, SERIALIZE_TYPE, Py_NewRef(PyTuple_GET_ITEM(codec->serializations, read->serialize))) < 0 ||
        fill(codec, made, HEADER, bytes_of(data + RMQ_FRAME_PREFIX_BYTES, frame->header_length)) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}

/* The command of the frame that begins with `data`, NULL without an exception when it is not for us. */
static PyObject *decode_frame(Codec *codec, const uint8_t *data, size_t length, size_t frame_length_max, size_t *end)
{
    uint8_t stack[STACK_BYTES];
    uint8_t *scratch = stack;
    rmq_frame frame;
    rmq_command read;
    PyObject *made = NULL;

    if (rmq_frame_find(data, length, frame_length_max, &frame) != RMQ_OK) {
        return NULL;
    }
    if (frame.header_length > sizeof stack) {
        scratch = PyMem_Malloc(frame.header_length);
        if (scratch == NULL) {
            return PyErr_NoMemory();
        }
    }
    if (rmq_frame_decode(data, &frame, scratch, &read) == RMQ_OK) {
        made = make_command(codec, data, &frame, &read);
        *end = frame.length;
    }
    if (scratch != stack) {
        PyMem_Free(scratch);
    }
    return made;
}

/* How long a frame may be, as both methods are told. UNFIT for a number that the reference has its own opinion of. */
static int frame_length_of(PyObject *given, size_t *length)
{
    const Py_ssize_t value = PyLong_AsSsize_t(given);

    if (value == -1 && PyErr_Occurred()) {
        return FAILED;
    }
    *length = (size_t)value;
    return value >= (Py_ssize_t)RMQ_FRAME_PREFIX_BYTES && value <= (Py_ssize_t)INT32_MAX ? DONE : UNFIT;
}

PyDoc_STRVAR(decode_doc, "decode(buffer, start, frame_length_max, /)\n--\n\n"
                         "The command of the frame that begins at start, and where the next one does. None when the\n"
                         "frame is not complete, or the reference has to look at it.");

static PyObject *codec_decode(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Py_buffer buffer = {0};
    PyObject *made = NULL, *result = NULL;
    size_t frame_length_max, end = 0;
    Py_ssize_t start;
    int outcome;

    if (count != 3) {
        PyErr_Format(PyExc_TypeError, "decode takes three arguments, not %zd", count);
        return NULL;
    }
    start = PyLong_AsSsize_t(arguments[1]);
    if (start == -1 && PyErr_Occurred()) {
        return NULL;
    }
    outcome = frame_length_of(arguments[2], &frame_length_max);
    if (outcome != DONE) {
        return outcome == FAILED ? NULL : Py_NewRef(Py_None);
    }
    if (PyObject_GetBuffer(arguments[0], &buffer, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    if (start < 0 || start > buffer.len) {
        PyErr_Format(PyExc_ValueError, "a frame begins at 0 to %zd, not %zd", buffer.len, start);
        goto exit;
    }
    made = decode_frame((Codec *)self, (const uint8_t *)buffer.buf + start, (size_t)(buffer.len - start),
                        frame_length_max, &end);
    if (made != NULL) {
        result = Py_BuildValue("Nn", made, start + (Py_ssize_t)end);
    } else if (!PyErr_Occurred()) {
        result = Py_NewRef(Py_None);
    }
exit:
    PyBuffer_Release(&buffer);
    return result;
}

/* --- commands to bytes --------------------------------------------------------------------------------------------- */

static PyObject *slot_of(Codec *codec, PyObject *instance, int slot)
{
    PyObject *descriptor = codec->slots[slot];

    return Py_TYPE(descriptor)->tp_descr_get(descriptor, instance, (PyObject *)Py_TYPE(instance));
}

static int read_int32(PyObject *given, int64_t low, int64_t high, int32_t *value)
{
    int overflow = 0;
    long long number;

    if (!PyLong_Check(given)) {
        return UNFIT;
    }
    number = PyLong_AsLongLongAndOverflow(given, &overflow);
    if (overflow != 0 || number < low || number > high) {
        return UNFIT;
    }
    *value = (int32_t)number;
    return DONE;
}

static int read_number(Codec *codec, PyObject *instance, int slot, int64_t low, int64_t high, int32_t *value)
{
    PyObject *given = slot_of(codec, instance, slot);
    int outcome;

    if (given == NULL) {
        return FAILED;
    }
    outcome = read_int32(given, low, high, value);
    Py_DECREF(given);
    return outcome;
}

/* The UTF-8 of a string, which lives as long as the string. UNFIT for anything else and for half a surrogate pair. */
static int read_text(PyObject *given, rmq_text *text)
{
    Py_ssize_t size;

    if (!PyUnicode_CheckExact(given)) {
        return UNFIT;
    }
    text->at = (const uint8_t *)PyUnicode_AsUTF8AndSize(given, &size);
    if (text->at == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            return FAILED;
        }
        PyErr_Clear();
        return UNFIT;
    }
    text->size = (size_t)size;
    return DONE;
}

static int read_fields(PyObject *given, rmq_command *command)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    int outcome;

    command->field_count = 0;
    command->has_fields = given != Py_None;
    if (given == Py_None) {
        return DONE;
    }
    if (!PyDict_CheckExact(given) || PyDict_GET_SIZE(given) > (Py_ssize_t)RMQ_FIELDS_MAX) {
        return UNFIT;
    }
    while (PyDict_Next(given, &at, &key, &value)) {
        rmq_field *field = &command->fields[command->field_count];

        outcome = read_text(key, &field->key);
        if (outcome == DONE) {
            outcome = read_text(value, &field->value);
        }
        if (outcome != DONE) {
            return outcome;
        }
        command->field_count += 1;
    }
    return DONE;
}

/* What a command holds besides numbers: kept while its texts are read. */
typedef struct {
    PyObject *remark;
    PyObject *fields;
    PyObject *body;
} Held;

#define TRY(attempt)                                                                                                   \
    do {                                                                                                               \
        const int outcome_ = (attempt);                                                                                \
        if (outcome_ != DONE) {                                                                                        \
            return outcome_;                                                                                           \
        }                                                                                                              \
    } while (0)

static int read_command(Codec *codec, PyObject *given, PyObject *opaque, rmq_command *command, Held *held)
{
    int32_t number;

    TRY(read_number(codec, given, CODE, INT32_MIN, INT32_MAX, &command->code));
    if (opaque == Py_None) {
        TRY(read_number(codec, given, OPAQUE, INT32_MIN, INT32_MAX, &command->opaque));
    } else {
        TRY(read_int32(opaque, INT32_MIN, INT32_MAX, &command->opaque));
    }
    TRY(read_number(codec, given, FLAG, INT32_MIN, INT32_MAX, &command->flag));
    TRY(read_number(codec, given, LANGUAGE, 0, RMQ_LANGUAGES - 1, &number));
    command->language = (uint8_t)number;
    TRY(read_number(codec, given, VERSION, INT32_MIN, INT32_MAX, &command->version));
    TRY(read_number(codec, given, SERIALIZE_TYPE, RMQ_SERIALIZE_JSON, RMQ_SERIALIZE_ROCKETMQ, &number));
    command->serialize = (uint8_t)number;
    held->remark = slot_of(codec, given, REMARK);
    held->fields = slot_of(codec, given, EXT_FIELDS);
    held->body = slot_of(codec, given, BODY);
    if (held->remark == NULL || held->fields == NULL || held->body == NULL) {
        return FAILED;
    }
    command->has_remark = held->remark != Py_None;
    command->remark = (rmq_text){NULL, 0};
    if (command->has_remark) {
        TRY(read_text(held->remark, &command->remark));
    }
    TRY(read_fields(held->fields, command));
    return PyBytes_CheckExact(held->body) ? DONE : UNFIT;
}

/* The frame of a command whose body is `body`; NULL without an exception when it has none that is ours to write. */
static PyObject *encode_frame(const rmq_command *command, PyObject *body, size_t frame_length_max)
{
    const size_t body_length = (size_t)PyBytes_GET_SIZE(body);
    const size_t needed = rmq_frame_head_bytes_max(command);
    uint8_t stack[STACK_BYTES];
    uint8_t *head = stack;
    PyObject *frame = NULL;
    size_t used = 0;

    if (needed > sizeof stack) {
        head = PyMem_Malloc(needed);
        if (head == NULL) {
            return PyErr_NoMemory();
        }
    }
    if (rmq_frame_encode_head(command, body_length, frame_length_max, head, needed, &used) == RMQ_OK) {
        frame = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(used + body_length));
        if (frame != NULL) {
            memcpy(PyBytes_AS_STRING(frame), head, used);
            memcpy(PyBytes_AS_STRING(frame) + used, PyBytes_AS_STRING(body), body_length);
        }
    }
    if (head != stack) {
        PyMem_Free(head);
    }
    return frame;
}

PyDoc_STRVAR(encode_doc, "encode(command, opaque, frame_length_max, /)\n--\n\n"
                         "The frame of a command under this request id, or its own if that is None. None when the\n"
                         "command has no such frame, or the reference has to write it.");

static PyObject *codec_encode(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Codec *codec = (Codec *)self;
    Held held = {NULL, NULL, NULL};
    PyObject *frame = NULL;
    rmq_command command;
    size_t frame_length_max;
    int outcome;

    if (count != 3) {
        PyErr_Format(PyExc_TypeError, "encode takes three arguments, not %zd", count);
        return NULL;
    }
    outcome = frame_length_of(arguments[2], &frame_length_max);
    if (outcome == DONE) {
        outcome = PyObject_TypeCheck(arguments[0], codec->command)
                      ? read_command(codec, arguments[0], arguments[1], &command, &held)
                      : UNFIT;
    }
    if (outcome == DONE) {
        frame = encode_frame(&command, held.body, frame_length_max);
    }
    Py_XDECREF(held.remark);
    Py_XDECREF(held.fields);
    Py_XDECREF(held.body);
    return frame != NULL || PyErr_Occurred() ? frame : Py_NewRef(Py_None);
}

/* --- the type ------------------------------------------------------------------------------------------------------ */

static int take_slots(Codec *codec)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        PyObject *descriptor = PyObject_GetAttrString((PyObject *)codec->command, SLOT_NAMES[slot]);

        codec->slots[slot] = descriptor;
        if (descriptor == NULL) {
            return -1;
        }
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
            PyErr_Format(PyExc_TypeError, "%s of a command is to be a slot", SLOT_NAMES[slot]);
            return -1;
        }
    }
    return 0;
}

static PyObject *codec_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "", "", NULL};
    PyObject *command, *languages, *serializations;
    Codec *codec;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!O!O!:FrameCodec", names, &PyType_Type, &command,
                                     &PyTuple_Type, &languages, &PyTuple_Type, &serializations)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(languages) != RMQ_LANGUAGES || PyTuple_GET_SIZE(serializations) != 2) {
        PyErr_Format(PyExc_ValueError, "there are %u languages and 2 serializations, not %zd and %zd", RMQ_LANGUAGES,
                     PyTuple_GET_SIZE(languages), PyTuple_GET_SIZE(serializations));
        return NULL;
    }
    codec = (Codec *)type->tp_alloc(type, 0);
    if (codec == NULL) {
        return NULL;
    }
    codec->command = (PyTypeObject *)Py_NewRef(command);
    codec->languages = Py_NewRef(languages);
    codec->serializations = Py_NewRef(serializations);
    if (take_slots(codec) < 0) {
        Py_DECREF(codec);
        return NULL;
    }
    return (PyObject *)codec;
}

static int codec_traverse(PyObject *self, visitproc visit, void *arg)
{
    Codec *codec = (Codec *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(codec->command);
    for (int slot = 0; slot < SLOTS; slot++) {
        Py_VISIT(codec->slots[slot]);
    }
    Py_VISIT(codec->languages);
    Py_VISIT(codec->serializations);
    return 0;
}

static void codec_dealloc(PyObject *self)
{
    Codec *codec = (Codec *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_XDECREF(codec->command);
    for (int slot = 0; slot < SLOTS; slot++) {
        Py_XDECREF(codec->slots[slot]);
    }
    Py_XDECREF(codec->languages);
    Py_XDECREF(codec->serializations);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef codec_methods[] = {
    {"decode", (PyCFunction)(void (*)(void))codec_decode, METH_FASTCALL, decode_doc},
    {"encode", (PyCFunction)(void (*)(void))codec_encode, METH_FASTCALL, encode_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(codec_doc, "FrameCodec(command, languages, serializations, /)\n--\n\n"
                        "Turns frames into instances of a class with the slots of RemotingCommand, and back.");

static PyType_Slot codec_slots[] = {
    {Py_tp_doc, (void *)codec_doc},
    {Py_tp_new, (void *)codec_new},
    {Py_tp_traverse, (void *)codec_traverse},
    {Py_tp_dealloc, (void *)codec_dealloc},
    {Py_tp_methods, codec_methods},
    {0, NULL},
};

static PyType_Spec codec_spec = {
    .name = "refmq_fast.FrameCodec",
    .basicsize = sizeof(Codec),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = codec_slots,
};

int rmq_bind_frame(PyObject *module)
{
    return rmq_add_type(module, &codec_spec);
}

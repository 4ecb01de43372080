/* Python's side of core/trace.h: TracePage, memory in which a node's events are packed one behind the other.
 *
 * One thread packs and another reads what is finished. Records that are finished never change, so what has to be
 * guarded is how far they go, and the table of strings while it is searched: the lock of the page and that of the
 * dictionary do that where there is no GIL.
 */
#include "bind.h"

#include <stdbool.h>
#include <string.h>

#include "../core/trace.h"
#include "../shell/notes.h"

#define EVENT_FIELDS 8
#define SIZE_RECORDS_MAX (1 << 20) /* 64 MiB; the writer of traces takes pages of a few thousand records */

typedef struct {
    PyObject_HEAD
    PyObject *strings; /* str -> int: the table of the file */
    uint8_t *records;
    size_t size;       /* of the memory, in bytes */
    size_t end;        /* whatever lies before is finished */
    uint64_t sequence; /* of the next event */
} Page;

/* What became of an attempt. */
enum { FAILED = -1, UNFIT = 0, DONE = 1 };

/* The Python integer that `given` is or stands for, a new reference; NULL if it is none, with or without an exception
 * as in `struct`: whatever is no number does not fit, whatever goes wrong in __index__ is somebody's mistake. */
static PyObject *integer_of(PyObject *given)
{
    PyObject *integer = PyNumber_Index(given);

    if (integer == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
    }
    return integer;
}

static int read_signed(PyObject *given, int64_t low, int64_t high, int64_t *value)
{
    PyObject *integer = integer_of(given);
    int overflow = 0;

    if (integer == NULL) {
        return PyErr_Occurred() ? FAILED : UNFIT;
    }
    *value = PyLong_AsLongLongAndOverflow(integer, &overflow);
    Py_DECREF(integer);
    return overflow == 0 && low <= *value && *value <= high ? DONE : UNFIT;
}

static int read_unsigned(PyObject *given, uint64_t *value)
{
    PyObject *integer = integer_of(given);

    if (integer == NULL) {
        return PyErr_Occurred() ? FAILED : UNFIT;
    }
    *value = PyLong_AsUnsignedLongLong(integer);
    Py_DECREF(integer);
    if (*value == (uint64_t)-1 && PyErr_Occurred()) {
        PyErr_Clear(); /* negative, or too large */
        return UNFIT;
    }
    return DONE;
}

/* The number of a string in the table; UNFIT when it is new there. */
static int find_string(PyObject *strings, PyObject *text, int64_t high, int64_t *number)
{
    PyObject *found = PyDict_GetItemWithError(strings, text); /* borrowed: the lock of the dictionary is held */

    if (found == NULL) {
        return PyErr_Occurred() ? FAILED : UNFIT;
    }
    return read_signed(found, 0, high, number);
}

#define TRY(attempt)                                                                                                   \
    do {                                                                                                               \
        const int outcome_ = (attempt);                                                                                \
        if (outcome_ != DONE) {                                                                                        \
            return outcome_;                                                                                           \
        }                                                                                                              \
    } while (0)

static int pack_event(Page *page, PyObject *const *fields, PyObject *const *arguments)
{
    rmq_trace_event event;
    int64_t outcome, action, actor, subject, queue_id, d;

    if (page->size - page->end < RMQ_TRACE_RECORD_BYTES) {
        return UNFIT;
    }
    TRY(find_string(page->strings, fields[0], UINT16_MAX, &action));
    TRY(find_string(page->strings, fields[1], UINT32_MAX, &actor));
    TRY(find_string(page->strings, fields[2], UINT32_MAX, &subject));
    TRY(read_signed(fields[3], INT32_MIN, INT32_MAX, &queue_id));
    TRY(read_signed(fields[4], INT64_MIN, INT64_MAX, &event.a));
    TRY(read_signed(fields[5], INT64_MIN, INT64_MAX, &event.b));
    TRY(read_signed(fields[6], INT64_MIN, INT64_MAX, &event.c));
    TRY(read_signed(fields[7], 0, UINT32_MAX, &d));
    TRY(read_signed(arguments[0], INT64_MIN, INT64_MAX, &event.at_ns));
    TRY(read_signed(arguments[1], 0, UINT8_MAX, &outcome));
    TRY(read_unsigned(arguments[2], &event.operation));
    event.outcome = (uint8_t)outcome;
    event.action = (uint16_t)action;
    event.sequence = (uint32_t)(page->sequence & UINT32_MAX);
    event.d = (uint32_t)d;
    event.actor = (uint32_t)actor;
    event.subject = (uint32_t)subject;
    event.queue_id = (int32_t)queue_id;
    rmq_trace_pack_event(&event, page->records + page->end);
    page->end += RMQ_TRACE_RECORD_BYTES;
    page->sequence += 1;
    return DONE;
}

PyDoc_STRVAR(pack_doc, "pack(event, at_ns, outcome, operation, /)\n--\n\n"
                       "Packs one event. False, and nothing has changed, without room, with a string that is not in\n"
                       "the table, or with a number that does not fit its field.");

static PyObject *page_pack(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Page *page = (Page *)self;
    PyObject *event;
    int outcome;

    if (count != 4) {
        PyErr_Format(PyExc_TypeError, "pack takes four arguments, not %zd", count);
        return NULL;
    }
    event = arguments[0];
    if (!PyTuple_Check(event) || PyTuple_GET_SIZE(event) != EVENT_FIELDS) {
        PyErr_Format(PyExc_ValueError, "an event is a tuple of %d fields", EVENT_FIELDS);
        return NULL;
    }
    Py_BEGIN_CRITICAL_SECTION2(self, page->strings);
    outcome = pack_event(page, ((PyTupleObject *)event)->ob_item, arguments + 1);
    Py_END_CRITICAL_SECTION2();
    return outcome == FAILED ? NULL : PyBool_FromLong(outcome == DONE);
}

#define UNKNOWN_TEXT UINT32_MAX

/* The record of a noted event; false if a text has no number here, or a number does not fit. */
static bool event_of(const rmq_note *note, const uint32_t *numbers, size_t count, rmq_trace_event *event)
{
    if (note->action >= count || note->actor >= count || note->subject >= count || note->d < 0 ||
        note->d > UINT32_MAX || note->queue_id < INT32_MIN || note->queue_id > INT32_MAX ||
        numbers[note->action] > UINT16_MAX || numbers[note->actor] == UNKNOWN_TEXT ||
        numbers[note->subject] == UNKNOWN_TEXT) {
        return false;
    }
    event->outcome = 0;
    event->action = (uint16_t)numbers[note->action];
    event->at_ns = note->at_ns;
    event->a = note->a;
    event->b = note->b;
    event->c = note->c;
    event->d = (uint32_t)note->d;
    event->actor = numbers[note->actor];
    event->subject = numbers[note->subject];
    event->queue_id = (int32_t)note->queue_id;
    event->operation = 0;
    return true;
}

PyDoc_STRVAR(pack_notes_doc, "pack_notes(notes, start, numbers, /)\n--\n\n"
                             "Packs the events that refmq_fast.Notes gave, from an offset on, as far as there is room and\n"
                             "they can be packed: how many. `numbers` has the number of each text in the table, as\n"
                             "unsigned 32-bit integers; the largest stands for a text that is not there.");

static PyObject *page_pack_notes(PyObject *self, PyObject *arguments)
{
    Page *page = (Page *)self;
    Py_buffer notes, numbers;
    Py_ssize_t start;
    size_t packed = 0;

    if (!PyArg_ParseTuple(arguments, "y*ny*:pack_notes", &notes, &start, &numbers)) {
        return NULL;
    }
    if (start < 0 || start > notes.len || (notes.len - start) % (Py_ssize_t)sizeof(rmq_note) != 0) {
        PyErr_SetString(PyExc_ValueError, "these are no whole notes");
    }
    Py_BEGIN_CRITICAL_SECTION(self);
    while (!PyErr_Occurred() && start < notes.len && page->size - page->end >= RMQ_TRACE_RECORD_BYTES) {
        rmq_trace_event event;
        rmq_note note;

        memcpy(&note, (const char *)notes.buf + start, sizeof note);
        if (!event_of(&note, numbers.buf, (size_t)numbers.len / sizeof(uint32_t), &event)) {
            break;
        }
        event.sequence = (uint32_t)(page->sequence & UINT32_MAX);
        rmq_trace_pack_event(&event, page->records + page->end);
        page->end += RMQ_TRACE_RECORD_BYTES;
        page->sequence += 1;
        packed += 1;
        start += (Py_ssize_t)sizeof note;
    }
    Py_END_CRITICAL_SECTION();
    PyBuffer_Release(&numbers);
    PyBuffer_Release(&notes);
    return PyErr_Occurred() ? NULL : PyLong_FromSize_t(packed);
}

PyDoc_STRVAR(put_doc, "put(records, sequence, /)\n--\n\n"
                      "Adds finished records; the next event has this sequence number. ValueError without room.");

static PyObject *page_put(PyObject *self, PyObject *arguments)
{
    Page *page = (Page *)self;
    const char *records;
    Py_ssize_t length;
    unsigned long long sequence;
    size_t room;
    int fits;

    if (!PyArg_ParseTuple(arguments, "y#K:put", &records, &length, &sequence)) {
        return NULL;
    }
    Py_BEGIN_CRITICAL_SECTION(self);
    room = page->size - page->end;
    fits = length % RMQ_TRACE_RECORD_BYTES == 0 && (size_t)length <= room;
    if (fits) {
        memcpy(page->records + page->end, records, (size_t)length);
        page->end += (size_t)length;
        page->sequence = sequence;
    }
    Py_END_CRITICAL_SECTION();
    if (!fits) {
        PyErr_Format(PyExc_ValueError, "%zd bytes are not whole records, or more than the %zu that fit in", length,
                     room / RMQ_TRACE_RECORD_BYTES);
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(read_doc, "read(start, /)\n--\n\n"
                       "A copy of what is finished, from an offset on.");

static PyObject *page_read(PyObject *self, PyObject *argument)
{
    Page *page = (Page *)self;
    const size_t start = PyLong_AsSize_t(argument);
    size_t end;

    if (start == (size_t)-1 && PyErr_Occurred()) {
        return NULL;
    }
    Py_BEGIN_CRITICAL_SECTION(self);
    end = page->end;
    Py_END_CRITICAL_SECTION();
    return PyBytes_FromStringAndSize((const char *)page->records + (start < end ? start : end),
                                     start < end ? (Py_ssize_t)(end - start) : 0);
}

PyDoc_STRVAR(sequence_doc, "The sequence number of the next event.");

static PyObject *page_sequence(PyObject *self, void *Py_UNUSED(closure))
{
    uint64_t sequence;

    Py_BEGIN_CRITICAL_SECTION(self);
    sequence = ((Page *)self)->sequence;
    Py_END_CRITICAL_SECTION();
    return PyLong_FromUnsignedLongLong(sequence);
}

PyDoc_STRVAR(room_doc, "So many records fit in.");

static PyObject *page_room(PyObject *self, void *Py_UNUSED(closure))
{
    Page *page = (Page *)self;
    size_t room;

    Py_BEGIN_CRITICAL_SECTION(self);
    room = page->size - page->end;
    Py_END_CRITICAL_SECTION();
    return PyLong_FromSize_t(room / RMQ_TRACE_RECORD_BYTES);
}

static PyObject *page_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "", "", NULL};
    PyObject *strings;
    Py_ssize_t size_records;
    unsigned long long sequence;
    Page *page;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "nO!K:TracePage", names, &size_records, &PyDict_Type,
                                     &strings, &sequence)) {
        return NULL;
    }
    if (size_records < 1 || size_records > SIZE_RECORDS_MAX) {
        PyErr_Format(PyExc_ValueError, "a page has 1 to %d records, not %zd", SIZE_RECORDS_MAX, size_records);
        return NULL;
    }
    page = (Page *)type->tp_alloc(type, 0);
    if (page == NULL) {
        return NULL;
    }
    page->size = (size_t)size_records * RMQ_TRACE_RECORD_BYTES;
    page->sequence = sequence;
    page->strings = Py_NewRef(strings);
    page->records = PyMem_Malloc(page->size);
    if (page->records == NULL) {
        Py_DECREF(page);
        return PyErr_NoMemory();
    }
    return (PyObject *)page;
}

static int page_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Page *)self)->strings);
    return 0;
}

static void page_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_XDECREF(((Page *)self)->strings);
    PyMem_Free(((Page *)self)->records);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef page_methods[] = {
    {"pack", (PyCFunction)(void (*)(void))page_pack, METH_FASTCALL, pack_doc},
    {"pack_notes", page_pack_notes, METH_VARARGS, pack_notes_doc},
    {"put", page_put, METH_VARARGS, put_doc},
    {"read", page_read, METH_O, read_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef page_properties[] = {
    {"room", page_room, NULL, room_doc, NULL},
    {"sequence", page_sequence, NULL, sequence_doc, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(page_doc, "TracePage(size_records, strings, sequence, /)\n--\n\n"
                       "Memory for so many records of a trace; the first event has this sequence number.");

static PyType_Slot page_slots[] = {
    {Py_tp_doc, (void *)page_doc},
    {Py_tp_new, (void *)page_new},
    {Py_tp_traverse, (void *)page_traverse},
    {Py_tp_dealloc, (void *)page_dealloc},
    {Py_tp_methods, page_methods},
    {Py_tp_getset, page_properties},
    {0, NULL},
};

static PyType_Spec page_spec = {
    .name = "refmq_fast.TracePage",
    .basicsize = sizeof(Page),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = page_slots,
};

int rmq_bind_trace(PyObject *module)
{
    return rmq_add_type(module, &page_spec);
}

/* refmq_fast.Notes: trace events that the C plane and store have noted (shell/notes.h), for the recorder to take. Given to a
 * Store and a Plane in place of a callable. */
#include "bind_store.h"

typedef struct {
    PyObject_HEAD
    rmq_notes notes;
    StoreObject *owner; /* whose lock guards the notes; NULL before there is one */
} NotesObject;

static void notes_dealloc(PyObject *given)
{
    PyTypeObject *type = Py_TYPE(given);

    rmq_notes_free(&((NotesObject *)given)->notes);
    type->tp_free(given);
    Py_DECREF(type);
}

rmq_notes *rmq_notes_of(PyObject *object)
{
    /* Nobody else has this destructor, whichever copy of the module the type is from. */
    return Py_TYPE(object)->tp_dealloc == notes_dealloc ? &((NotesObject *)object)->notes : NULL;
}

void rmq_guard_notes(PyObject *notes, StoreObject *owner)
{
    ((NotesObject *)notes)->owner = owner;
}

static PyObject *notes_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", NULL};
    unsigned long long seed;
    NotesObject *self;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "K:Notes", names, &seed)) {
        return NULL;
    }
    self = (NotesObject *)type->tp_alloc(type, 0);
    if (self != NULL) {
        rmq_notes_init(&self->notes, seed);
    }
    return (PyObject *)self;
}

static PyObject *new_names(rmq_notes *notes)
{
    PyObject *names = PyList_New(0);

    for (; names != NULL && notes->names_told < notes->name_count; notes->names_told++) {
        const rmq_text text = notes->names[notes->names_told]->key.text;
        PyObject *name = PyUnicode_DecodeUTF8((const char *)text.at, (Py_ssize_t)text.size, "replace");

        if (name == NULL || PyList_Append(names, name) < 0) {
            Py_CLEAR(names);
        }
        Py_XDECREF(name);
    }
    return names;
}

PyDoc_STRVAR(take_doc, "take()\n--\n\n"
                       "What was noted since the last call: the texts that are new, in the order of their numbers; the\n"
                       "events, as rmq_note of shell/notes.h lays them out; how many were dropped behind them.");

static PyObject *notes_take(PyObject *given, PyObject *Py_UNUSED(none))
{
    NotesObject *self = (NotesObject *)given;
    PyObject *names, *events, *taken = NULL;

    if (self->owner != NULL) {
        rmq_enter(self->owner);
    }
    names = new_names(&self->notes);
    events = PyBytes_FromStringAndSize((const char *)self->notes.notes,
                                       (Py_ssize_t)(self->notes.count * sizeof(rmq_note)));
    if (names != NULL && events != NULL) {
        taken = Py_BuildValue("(OOK)", names, events, (unsigned long long)self->notes.dropped);
        self->notes.count = 0;
        self->notes.dropped = 0;
    }
    if (self->owner != NULL) {
        rmq_leave(self->owner);
    }
    Py_XDECREF(names);
    Py_XDECREF(events);
    return taken;
}

PyDoc_STRVAR(note_doc, "note(event, /)\n--\n\nNotes an event of the control plane: a tuple of eight fields.");

static PyObject *notes_note(PyObject *given, PyObject *event)
{
    NotesObject *self = (NotesObject *)given;
    const char *action, *actor, *subject;
    Py_ssize_t action_size, actor_size, subject_size;
    long long queue_id, a, b, c, d;

    if (!PyTuple_Check(event)) {
        PyErr_SetString(PyExc_TypeError, "an event is a tuple");
        return NULL;
    }
    if (!PyArg_ParseTuple(event, "s#s#s#LLLLL:note", &action, &action_size, &actor, &actor_size, &subject, &subject_size,
                          &queue_id, &a, &b, &c, &d)) {
        return NULL;
    }
    if (self->owner != NULL) {
        rmq_enter(self->owner);
    }
    rmq_note_event(&self->notes, (rmq_text){(const uint8_t *)action, (size_t)action_size},
                   (rmq_text){(const uint8_t *)actor, (size_t)actor_size},
                   (rmq_text){(const uint8_t *)subject, (size_t)subject_size}, queue_id, a, b, c, d);
    if (self->owner != NULL) {
        rmq_leave(self->owner);
    }
    Py_RETURN_NONE;
}

static PyMethodDef notes_methods[] = {
    {"take", notes_take, METH_NOARGS, take_doc},
    {"note", notes_note, METH_O, note_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot notes_slots[] = {
    {Py_tp_doc, (void *)"Notes(seed, /)\n--\n\nTrace events that C has noted."},
    {Py_tp_new, (void *)notes_new},
    {Py_tp_dealloc, (void *)notes_dealloc},
    {Py_tp_methods, notes_methods},
    {0, NULL},
};

static PyType_Spec notes_spec = {
    .name = "refmq_fast.Notes",
    .basicsize = sizeof(NotesObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = notes_slots,
};

int rmq_bind_notes(PyObject *module)
{
    return rmq_add_type(module, &notes_spec);
}

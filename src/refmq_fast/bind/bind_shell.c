/* refmq_fast.Shell: the threads of the C plane, as the control plane starts them, talks with them and stops them. */
#include "bind_plane.h"

#include "../shell/shell.h"
#include "raise.h"

typedef struct {
    PyObject_HEAD
    rmq_shell *shell;
    PlaneObject *plane;
} ShellObject;

/* --- life ---------------------------------------------------------------------------------------------------------- */

static int64_t limit_of(PyObject *limits, const char *name)
{
    PyObject *value = PyDict_GetItemString(limits, name); /* borrowed */

    if (value == NULL) {
        PyErr_Format(PyExc_KeyError, "the limit %s is missing", name);
        return -1;
    }
    return PyLong_AsLongLong(value);
}

/* The default limits of a connection stay where Python has none of its own. */
static int read_limits(PyObject *given, rmq_shell_limits *limits)
{
    *limits = (rmq_shell_limits){.conn = rmq_conn_default_limits()};
    limits->conn.frame_length_max = (size_t)limit_of(given, "frame_length_max");
    limits->conn.requests_in_flight_max = (size_t)limit_of(given, "requests_in_flight_max");
    limits->conn.request_bytes_in_flight_max = (size_t)limit_of(given, "request_bytes_in_flight_max");
    limits->conn.write_high_bytes = (size_t)limit_of(given, "write_high_bytes");
    limits->conn.write_max_bytes = (size_t)limit_of(given, "write_max_bytes");
    limits->conn.idle_timeout_ms = limit_of(given, "idle_timeout_ms");
    limits->conn.frame_timeout_ms = limit_of(given, "frame_timeout_ms");
    limits->connections_max = limit_of(given, "connections_max");
    limits->memory_bytes_max = limit_of(given, "memory_bytes_max");
    limits->linger_ms = limit_of(given, "linger_ms");
    limits->tls = (int)limit_of(given, "tls") == RMQ_TLS_NEVER    ? RMQ_TLS_NEVER
                  : (int)limit_of(given, "tls") == RMQ_TLS_ALWAYS ? RMQ_TLS_ALWAYS
                                                                  : RMQ_TLS_MAYBE;
    if (PyErr_Occurred()) {
        return -1;
    }
    if (limits->conn.frame_length_max < RMQ_FRAME_PREFIX_BYTES || limits->conn.frame_length_max > INT32_MAX ||
        limits->conn.write_high_bytes > limits->conn.write_max_bytes || limits->conn.write_max_bytes == 0) {
        PyErr_SetString(PyExc_ValueError, "a connection cannot have these limits");
        return -1;
    }
    return 0;
}

static PyObject *shell_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "", "", NULL};
    PyTypeObject *plane_type = rmq_plane_type(PyType_GetModule(type));
    PyObject *plane, *given;
    unsigned long long seed;
    rmq_shell_limits limits;
    rmq_posix_disk *disk;
    rmq_notes *notes;
    PlaneObject *owner;
    ShellObject *self;

    if (plane_type == NULL || !PyArg_ParseTupleAndKeywords(arguments, keywords, "O!O!K:Shell", names, plane_type, &plane,
                                                           &PyDict_Type, &given, &seed)) {
        return NULL;
    }
    owner = (PlaneObject *)plane;
    if (!rmq_plane_is_open(owner) || read_limits(given, &limits) < 0) {
        return NULL;
    }
    disk = owner->owner->disk.posix;
    notes = owner->emit == NULL ? NULL : rmq_notes_of(owner->emit);
    if (disk == NULL || (owner->emit != NULL && notes == NULL)) {
        return rmq_raise_text("UsageError", "a shell needs a PosixDisk below its store, and Notes for its events");
    }
    self = (ShellObject *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    if (rmq_share(owner->owner) != RMQ_OK ||
        rmq_shell_new(owner->owner->store, owner->plane, disk, &owner->owner->lock, notes, &limits, seed,
                      &self->shell) != RMQ_OK) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->plane = (PlaneObject *)Py_NewRef(plane);
    if (notes != NULL) {
        rmq_guard_notes(owner->emit, owner->owner);
    }
    return (PyObject *)self;
}

/* Without the interpreter: the IO thread may have to end a flush first. */
static void stop(ShellObject *self)
{
    Py_BEGIN_ALLOW_THREADS;
    rmq_shell_stop(self->shell);
    Py_END_ALLOW_THREADS;
}

static int shell_traverse(PyObject *given, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(given));
    Py_VISIT((PyObject *)((ShellObject *)given)->plane);
    return 0;
}

static void shell_dealloc(PyObject *given)
{
    ShellObject *self = (ShellObject *)given;
    PyTypeObject *type = Py_TYPE(given);

    PyObject_GC_UnTrack(given);
    if (self->shell != NULL) {
        stop(self);
        rmq_shell_free(self->shell);
    }
    Py_XDECREF((PyObject *)self->plane);
    type->tp_free(given);
    Py_DECREF(type);
}

PyDoc_STRVAR(listen_doc, "listen(descriptor, on_vip_port, /)\n--\n\n"
                         "One more listening socket. The shell owns it from now on.");

static PyObject *shell_listen(PyObject *given, PyObject *arguments)
{
    int descriptor, on_vip_port;
    rmq_letter *letter;

    if (!PyArg_ParseTuple(arguments, "ip:listen", &descriptor, &on_vip_port)) {
        return NULL;
    }
    letter = rmq_letter_new(RMQ_DOWN_LISTEN, 0, 0);
    if (letter == NULL) {
        return PyErr_NoMemory();
    }
    letter->number = descriptor;
    letter->on_vip_port = on_vip_port != 0;
    rmq_post(&((ShellObject *)given)->shell->down, letter);
    Py_RETURN_NONE;
}

static PyObject *shell_start(PyObject *given, PyObject *Py_UNUSED(none))
{
    ShellObject *self = (ShellObject *)given;

    if (self->shell->is_running) {
        return rmq_raise_text("UsageError", "the shell is running already");
    }
    if (rmq_shell_start(self->shell) != RMQ_OK) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

static PyObject *shell_stop(PyObject *given, PyObject *Py_UNUSED(none))
{
    stop((ShellObject *)given);
    Py_RETURN_NONE;
}

/* --- letters up ---------------------------------------------------------------------------------------------------- */

static PyObject *arrival_of(const rmq_letter *letter)
{
    const rmq_arrival *one = &letter->arrival;

    if (letter->kind != RMQ_UP_ARRIVED) {
        return Py_NewRef(Py_None);
    }
    /* The fields of refmq.store.values.Dispatched. */
    return Py_BuildValue("(s#LLLLLLy#)", (const char *)letter->bytes, (Py_ssize_t)letter->split, (long long)one->queue_id,
                         (long long)one->queue_offset, (long long)one->physical_offset, (long long)one->size_bytes,
                         (long long)one->tags_code, (long long)one->store_timestamp_ms,
                         (const char *)letter->bytes + letter->split, (Py_ssize_t)(letter->size - letter->split));
}

static PyObject *tuple_of(const rmq_letter *letter)
{
    PyObject *arrival = arrival_of(letter);

    if (arrival == NULL) {
        return NULL;
    }
    return Py_BuildValue("(iLLy#LNiy#nN)", (int)letter->kind, (long long)letter->connection, (long long)letter->number,
                         (const char *)letter->peer.ip, (Py_ssize_t)letter->peer.ip_bytes, (long long)letter->peer.port,
                         PyBool_FromLong(letter->on_vip_port), (int)letter->serialize, (const char *)letter->bytes,
                         (Py_ssize_t)letter->size, (Py_ssize_t)letter->split, arrival);
}

PyDoc_STRVAR(collect_doc, "collect()\n--\n\n"
                          "The letters from the threads, oldest first: kind, connection, number, ip, port, on_vip_port,\n"
                          "serialize, bytes, split, and the fields of a Dispatched or None (shell/mail.h).");

static PyObject *shell_collect(PyObject *given, PyObject *Py_UNUSED(none))
{
    ShellObject *self = (ShellObject *)given;
    rmq_letter *letter = rmq_collect(&self->shell->up);
    PyObject *letters = PyList_New(0);

    while (letter != NULL) {
        rmq_letter *next = letter->next;
        PyObject *one = letters == NULL ? NULL : tuple_of(letter);

        if (one == NULL || PyList_Append(letters, one) < 0) {
            Py_CLEAR(letters);
        } else if (letter->kind == RMQ_UP_SOCKET) {
            letter->number = -1; /* whoever reads the list has the descriptor now */
        }
        Py_XDECREF(one);
        rmq_shell_heard(self->shell, letter);
        rmq_letter_free(letter);
        letter = next;
    }
    return letters;
}

/* --- letters down -------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(write_doc, "write(connection, data, /)\n--\n\nBytes for a peer.");

static PyObject *shell_write(PyObject *given, PyObject *arguments)
{
    ShellObject *self = (ShellObject *)given;
    long long connection;
    const char *data;
    Py_ssize_t size;
    rmq_letter *letter;

    if (!PyArg_ParseTuple(arguments, "Ly#:write", &connection, &data, &size)) {
        return NULL;
    }
    letter = rmq_letter_new(RMQ_DOWN_WRITE, connection, (size_t)size);
    if (letter == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(letter->bytes, data, (size_t)size);
    rmq_post(&self->shell->down, letter);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(post_doc, "post(kind, connection=0, number=0, /)\n--\n\nA letter to the IO thread (shell/mail.h).");

static PyObject *shell_post(PyObject *given, PyObject *arguments)
{
    ShellObject *self = (ShellObject *)given;
    int kind;
    long long connection = 0, number = 0;
    rmq_letter *letter;

    if (!PyArg_ParseTuple(arguments, "i|LL:post", &kind, &connection, &number)) {
        return NULL;
    }
    if (kind <= RMQ_DOWN_WRITE || kind > RMQ_DOWN_ABORT_ALL || kind == RMQ_DOWN_LISTEN) {
        return PyErr_Format(PyExc_ValueError, "%d is no kind of letter", kind);
    }
    letter = rmq_letter_new((rmq_letter_kind)kind, connection, 0);
    if (letter == NULL) {
        return PyErr_NoMemory();
    }
    letter->number = number;
    rmq_post(&self->shell->down, letter);
    Py_RETURN_NONE;
}

/* --- the rest ------------------------------------------------------------------------------------------------------ */

PyDoc_STRVAR(watch_doc, "watch(topic, is_wanted, /)\n--\n\n"
                        "Whether letters tell of the records of a topic. False if there are too many such topics.");

static PyObject *shell_watch(PyObject *given, PyObject *arguments)
{
    ShellObject *self = (ShellObject *)given;
    const char *at;
    Py_ssize_t size;
    int is_wanted;
    rmq_text topic;
    rmq_status status = RMQ_OK;

    if (!PyArg_ParseTuple(arguments, "y#p:watch", &at, &size, &is_wanted)) {
        return NULL;
    }
    topic = (rmq_text){(const uint8_t *)at, (size_t)size};
    rmq_enter(self->plane->owner);
    if (is_wanted) {
        status = rmq_shell_watch(self->shell, topic);
    } else {
        rmq_shell_unwatch(self->shell, topic);
    }
    rmq_leave(self->plane->owner);
    return status == RMQ_NO_MEMORY ? PyErr_NoMemory() : PyBool_FromLong(status == RMQ_OK);
}

static PyObject *shell_bell(PyObject *given, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(((ShellObject *)given)->shell->up.bell);
}

static PyObject *shell_counts(PyObject *given, void *Py_UNUSED(closure))
{
    const rmq_shell *shell = ((ShellObject *)given)->shell;

    return Py_BuildValue("(LLL)", (long long)atomic_load(&shell->connections), (long long)atomic_load(&shell->refused),
                         (long long)atomic_load(&shell->held_bytes));
}

static PyMethodDef shell_methods[] = {
    {"listen", shell_listen, METH_VARARGS, listen_doc},
    {"start", shell_start, METH_NOARGS, "start()\n--\n\nStarts the threads."},
    {"stop", shell_stop, METH_NOARGS, "stop()\n--\n\nEnds the threads, and cuts what is still connected."},
    {"collect", shell_collect, METH_NOARGS, collect_doc},
    {"write", shell_write, METH_VARARGS, write_doc},
    {"post", shell_post, METH_VARARGS, post_doc},
    {"watch", shell_watch, METH_VARARGS, watch_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef shell_properties[] = {
    {"bell", shell_bell, NULL, "A descriptor that is readable while there are letters.", NULL},
    {"counts", shell_counts, NULL, "Connections, those that were refused, and the bytes that connections hold.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(shell_doc, "Shell(plane, limits, seed, /)\n--\n\nThe threads of a C plane: see shell/shell.h.");

static PyType_Slot shell_slots[] = {
    {Py_tp_doc, (void *)shell_doc},
    {Py_tp_new, (void *)shell_new},
    {Py_tp_traverse, (void *)shell_traverse},
    {Py_tp_dealloc, (void *)shell_dealloc},
    {Py_tp_methods, shell_methods},
    {Py_tp_getset, shell_properties},
    {0, NULL},
};

static PyType_Spec shell_spec = {
    .name = "refmq_fast.Shell",
    .basicsize = sizeof(ShellObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = shell_slots,
};

int rmq_bind_shell(PyObject *module)
{
    return rmq_add_type(module, &shell_spec);
}

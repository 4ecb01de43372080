/* refmq_fast.Plane: the C plane, driven step by step from Python. What it wants done gathers in a list that the driver
 * takes. Times are two numbers, of the wall and of the uptime. Texts are UTF-8 bytes. */
#include "bind_plane.h"

#include <stdlib.h>
#include <string.h>

#include "../core/header_binary.h"
#include "../core/header_json.h"
#include "raise.h"

/* --- the port ------------------------------------------------------------------------------------------------------ */

static rmq_status keep(PlaneObject *self, PyObject *one)
{
    const int failed = one == NULL || PyList_Append(self->output, one) < 0;

    Py_XDECREF(one);
    return failed ? rmq_keep_error(&self->owner->disk) : RMQ_OK;
}

static rmq_status port_answer(void *context, int64_t connection, int64_t number, rmq_text head, rmq_text body)
{
    PyObject *frame = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(head.size + body.size));

    if (frame == NULL) {
        return rmq_keep_error(&((PlaneObject *)context)->owner->disk);
    }
    memcpy(PyBytes_AS_STRING(frame), head.at, head.size);
    if (body.size > 0) {
        memcpy(PyBytes_AS_STRING(frame) + head.size, body.at, body.size);
    }
    return keep(context, Py_BuildValue("(LLN)", (long long)connection, (long long)number, frame));
}

static rmq_status port_hand_over(void *context, const rmq_held *pull)
{
    return keep(context, Py_BuildValue("(LLO)", (long long)pull->connection, (long long)pull->number, Py_None));
}

static rmq_status port_event(void *context, const char *action, rmq_text actor, rmq_text subject, int64_t queue_id,
                             int64_t a, int64_t b, int64_t c, int64_t d)
{
    PlaneObject *self = context;
    PyObject *fields = Py_BuildValue("(ss#s#LLLLL)", action, actor.at == NULL ? "" : (const char *)actor.at,
                                     (Py_ssize_t)actor.size, subject.at == NULL ? "" : (const char *)subject.at,
                                     (Py_ssize_t)subject.size, (long long)queue_id, (long long)a, (long long)b,
                                     (long long)c, (long long)d);
    PyObject *result = fields == NULL ? NULL : PyObject_CallOneArg(self->emit, fields);

    Py_XDECREF(fields);
    if (result == NULL) {
        return rmq_keep_error(&self->owner->disk);
    }
    Py_DECREF(result);
    return RMQ_OK;
}

static rmq_status note_event(void *context, const char *action, rmq_text actor, rmq_text subject, int64_t queue_id,
                             int64_t a, int64_t b, int64_t c, int64_t d)
{
    rmq_note_plane_event(rmq_notes_of(((PlaneObject *)context)->emit), action, actor, subject, queue_id, a, b, c, d);
    return RMQ_OK;
}

/* --- life ---------------------------------------------------------------------------------------------------------- */

static PyObject *plane_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "", "", NULL};
    rmq_port port = {NULL, port_answer, port_hand_over, NULL};
    PyTypeObject *store_type = rmq_store_type(PyType_GetModule(type));
    PyObject *store, *emit;
    unsigned long long seed;
    PlaneObject *self;

    if (store_type == NULL || !PyArg_ParseTupleAndKeywords(arguments, keywords, "O!OK:Plane", names, store_type, &store,
                                                           &emit, &seed)) {
        return NULL;
    }
    if (!rmq_store_is_open((StoreObject *)store)) {
        return NULL;
    }
    self = (PlaneObject *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->owner = (StoreObject *)Py_NewRef(store);
    self->emit = emit == Py_None ? NULL : Py_NewRef(emit);
    self->output = PyList_New(0);
    port.context = self;
    port.event = self->emit == NULL ? NULL : rmq_notes_of(self->emit) != NULL ? note_event : port_event;
    if (self->output == NULL || rmq_plane_new(self->owner->store, &port, seed, &self->plane) != RMQ_OK) {
        Py_DECREF(self);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static int plane_traverse(PyObject *given, visitproc visit, void *arg)
{
    PlaneObject *self = (PlaneObject *)given;

    Py_VISIT(Py_TYPE(given));
    Py_VISIT(self->owner);
    Py_VISIT(self->emit);
    Py_VISIT(self->output);
    return 0;
}

static int plane_clear(PyObject *given)
{
    PlaneObject *self = (PlaneObject *)given;

    if (self->plane != NULL) {
        rmq_plane_free(self->plane);
        self->plane = NULL;
    }
    Py_CLEAR(self->owner);
    Py_CLEAR(self->emit);
    Py_CLEAR(self->output);
    return 0;
}

static void plane_dealloc(PyObject *given)
{
    PyTypeObject *type = Py_TYPE(given);

    PyObject_GC_UnTrack(given);
    (void)plane_clear(given);
    free(((PlaneObject *)given)->scratch);
    type->tp_free(given);
    Py_DECREF(type);
}

int rmq_plane_is_open(const PlaneObject *self)
{
    if (self->owner == NULL) {
        (void)rmq_raise_text("UsageError", "the plane is closed");
        return 0;
    }
    return rmq_store_is_open(self->owner);
}

PyObject *rmq_plane_outcome(PlaneObject *self, rmq_status status)
{
    if (rmq_store_outcome(self->owner, status) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* --- steps --------------------------------------------------------------------------------------------------------- */

static int decode(uint8_t serialize, rmq_text header, uint8_t *scratch, rmq_command *command)
{
    const rmq_status status = serialize == RMQ_SERIALIZE_JSON
                                  ? rmq_header_json_decode(header.at, header.size, scratch, command)
                                  : rmq_header_binary_decode(header.at, header.size, command);

    command->serialize = serialize;
    return status == RMQ_OK;
}

static int read_host(const char *ip, Py_ssize_t size, long long port, rmq_host *host)
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

PyDoc_STRVAR(serve_doc, "serve(number, connection, ip, port, serialize, header, body, waited_ms, draw, on_vip_port,\n"
                        "      wall_ms, uptime_ms, /)\n--\n\n"
                        "Takes the step of a request. False, and nothing has happened, for one that is not ours.");

static PyObject *plane_serve(PyObject *given, PyObject *arguments)
{
    PlaneObject *self = (PlaneObject *)given;
    const char *ip, *header, *body;
    Py_ssize_t ip_size, header_size, body_size;
    long long number, connection, port, waited_ms, wall_ms, uptime_ms;
    unsigned char serialize;
    unsigned int draw;
    int on_vip_port;
    rmq_request request;
    rmq_command command;
    rmq_status status;

    if (!rmq_plane_is_open(self) ||
        !PyArg_ParseTuple(arguments, "LLy#Lby#y#LIpLL:serve", &number, &connection, &ip, &ip_size, &port, &serialize,
                          &header, &header_size, &body, &body_size, &waited_ms, &draw, &on_vip_port, &wall_ms,
                          &uptime_ms) ||
        read_host(ip, ip_size, port, &request.peer) < 0) {
        return NULL;
    }
    request.number = number;
    request.connection = connection;
    request.command = &command;
    request.header = (rmq_text){(const uint8_t *)header, (size_t)header_size};
    request.body = (rmq_text){(const uint8_t *)body, (size_t)body_size};
    request.waited_ms = waited_ms > 0 ? waited_ms : 0;
    request.draw = draw;
    request.on_vip_port = on_vip_port != 0;
    if (rmq_reserve((void **)&self->scratch, &self->scratch_size, (size_t)header_size + 1, 1) != RMQ_OK) {
        return PyErr_NoMemory();
    }
    if (!decode(serialize, request.header, self->scratch, &command)) {
        Py_RETURN_FALSE;
    }
    status = rmq_serve_frame(self->plane, &request, (rmq_moment){wall_ms, uptime_ms});
    if (status == RMQ_NOT_MINE) {
        Py_RETURN_FALSE;
    }
    if (rmq_store_outcome(self->owner, status) < 0) {
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyObject *plane_durable(PyObject *given, PyObject *arguments)
{
    PlaneObject *self = (PlaneObject *)given;
    long long flushed_to, wall_ms, uptime_ms;

    if (!rmq_plane_is_open(self) || !PyArg_ParseTuple(arguments, "LLL:durable", &flushed_to, &wall_ms, &uptime_ms)) {
        return NULL;
    }
    return rmq_plane_outcome(self, rmq_durable(self->plane, flushed_to, (rmq_moment){wall_ms, uptime_ms}));
}

/* The steps that are given nothing but the time. */
static PyObject *timed(PyObject *given, PyObject *arguments, rmq_status (*step)(rmq_plane *plane, rmq_moment now))
{
    PlaneObject *self = (PlaneObject *)given;
    long long wall_ms, uptime_ms;

    if (!rmq_plane_is_open(self) || !PyArg_ParseTuple(arguments, "LL", &wall_ms, &uptime_ms)) {
        return NULL;
    }
    return rmq_plane_outcome(self, step(self->plane, (rmq_moment){wall_ms, uptime_ms}));
}

static PyObject *plane_flush_failed(PyObject *given, PyObject *arguments)
{
    return timed(given, arguments, rmq_flush_failed);
}

static PyObject *plane_tick(PyObject *given, PyObject *arguments)
{
    return timed(given, arguments, rmq_tick);
}

static PyObject *plane_drain(PyObject *given, PyObject *arguments)
{
    return timed(given, arguments, rmq_drain);
}

static PyObject *plane_dispatch(PyObject *given, PyObject *arguments)
{
    PlaneObject *self = (PlaneObject *)given;
    long long count_max, wall_ms, uptime_ms;
    rmq_listening to = {NULL, NULL};
    bool went_on;

    if (!rmq_plane_is_open(self) || !PyArg_ParseTuple(arguments, "LLL:dispatch", &count_max, &wall_ms, &uptime_ms)) {
        return NULL;
    }
    to.self = self->owner;
    to.list = PyList_New(0);
    if (to.list != NULL &&
        rmq_store_outcome(self->owner, rmq_plane_dispatch(self->plane, count_max, rmq_add_dispatched, &to, &went_on,
                                                          (rmq_moment){wall_ms, uptime_ms})) < 0) {
        Py_CLEAR(to.list);
    }
    return to.list;
}

static PyObject *plane_closed(PyObject *given, PyObject *arguments)
{
    PlaneObject *self = (PlaneObject *)given;
    long long connection;

    if (!rmq_plane_is_open(self) || !PyArg_ParseTuple(arguments, "L:closed", &connection)) {
        return NULL;
    }
    rmq_closed(self->plane, connection);
    Py_RETURN_NONE;
}

static PyObject *plane_take_output(PyObject *given, PyObject *Py_UNUSED(none))
{
    PlaneObject *self = (PlaneObject *)given;
    PyObject *taken = self->output, *fresh = PyList_New(0);

    if (fresh == NULL) {
        return NULL;
    }
    self->output = fresh;
    return taken;
}

/* --- what the driver reads ----------------------------------------------------------------------------------------- */

static PyObject *plane_take_wants(PyObject *given, PyObject *Py_UNUSED(none))
{
    PlaneObject *self = (PlaneObject *)given;
    PyObject *wants;

    if (!rmq_plane_is_open(self)) {
        return NULL;
    }
    wants = Py_BuildValue("(OO)", self->plane->wants_flush ? Py_True : Py_False,
                          self->plane->wants_dispatch ? Py_True : Py_False);
    self->plane->wants_flush = self->plane->wants_dispatch = false;
    return wants;
}

static PyObject *plane_waiting(PyObject *given, PyObject *Py_UNUSED(none))
{
    PlaneObject *self = (PlaneObject *)given;

    if (!rmq_plane_is_open(self)) {
        return NULL;
    }
    return Py_BuildValue("(LL)", (long long)self->plane->acks.count, (long long)self->plane->hold.count);
}

RMQ_PLANE_LOCKED(plane_serve)
RMQ_PLANE_LOCKED(plane_durable)
RMQ_PLANE_LOCKED(plane_flush_failed)
RMQ_PLANE_LOCKED(plane_tick)
RMQ_PLANE_LOCKED(plane_drain)
RMQ_PLANE_LOCKED(plane_dispatch)
RMQ_PLANE_LOCKED(plane_closed)
RMQ_PLANE_LOCKED(plane_take_output)
RMQ_PLANE_LOCKED(plane_take_wants)
RMQ_PLANE_LOCKED(plane_waiting)

PyMethodDef rmq_plane_step_methods[] = {
    {"serve", plane_serve_locked, METH_VARARGS, serve_doc},
    {"durable", plane_durable_locked, METH_VARARGS, "durable(flushed_to, wall_ms, uptime_ms, /)\n--\n\nThe log is flushed so far."},
    {"flush_failed", plane_flush_failed_locked, METH_VARARGS, "flush_failed(wall_ms, uptime_ms, /)\n--\n\nNobody waits on."},
    {"tick", plane_tick_locked, METH_VARARGS, "tick(wall_ms, uptime_ms, /)\n--\n\nWhat is due by the clock."},
    {"drain", plane_drain_locked, METH_VARARGS, "drain(wall_ms, uptime_ms, /)\n--\n\nAnswers the pulls that wait."},
    {"dispatch", plane_dispatch_locked, METH_VARARGS,
     "dispatch(count_max, wall_ms, uptime_ms, /)\n--\n\nGives units, wakes pulls: the fields of each Dispatched."},
    {"closed", plane_closed_locked, METH_VARARGS, "closed(connection, /)\n--\n\nA connection is gone."},
    {"take_output", plane_take_output_locked, METH_NOARGS,
     "The answers since the last call: connection, number and frame; None for a pull that is handed over."},
    {"take_wants", plane_take_wants_locked, METH_NOARGS, "Whether a flush and a dispatch are wanted since the last call."},
    {"waiting", plane_waiting_locked, METH_NOARGS, "How many puts and how many pulls wait."},
    {NULL, NULL, 0, NULL},
};

/* --- the type ------------------------------------------------------------------------------------------------------ */

PyTypeObject *rmq_plane_type(PyObject *module)
{
    PyObject *type = PyObject_GetAttrString(module, "Plane");

    Py_XDECREF(type); /* the module keeps it */
    return (PyTypeObject *)type;
}

int rmq_bind_plane(PyObject *module)
{
    PyMethodDef *methods = rmq_joined_methods(
        (PyMethodDef *const[]){rmq_plane_step_methods, rmq_plane_table_methods}, 2);
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)"Plane(store, emit, seed, /)\n--\n\nThe hot path of a broker over an open store."},
        {Py_tp_new, (void *)plane_new},
        {Py_tp_traverse, (void *)plane_traverse},
        {Py_tp_clear, (void *)plane_clear},
        {Py_tp_dealloc, (void *)plane_dealloc},
        {Py_tp_methods, methods},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "refmq_fast.Plane",
        .basicsize = sizeof(PlaneObject),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
        .slots = slots,
    };

    if (methods == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    if (rmq_add_type(module, &spec) < 0) {
        PyMem_Free(methods); /* there is no type that needs them */
        return -1;
    }
    return 0;
}

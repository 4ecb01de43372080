/* refmq_fast.Store: how it is made, opened at the positions of a recovery, and closed. */
#include "bind_store.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "../store/open.h"
#include "raise.h"

static const char *const ACTION_NAMES[RMQ_ACTIONS] = {
    [RMQ_APPEND_MESSAGE] = "AppendMessage",     [RMQ_ROLL_FILE] = "RollFile",
    [RMQ_DISPATCH_MESSAGE] = "DispatchMessage", [RMQ_SERVE_MESSAGE] = "ServeMessage",
    [RMQ_FLUSH_LOG] = "FlushLog",               [RMQ_FLUSH_QUEUE] = "FlushQueue",
    [RMQ_FLUSH_INDEX] = "FlushIndex",           [RMQ_WRITE_CHECKPOINT] = "WriteCheckpoint",
    [RMQ_EXPIRE_FILE] = "ExpireFile",           [RMQ_STOP_STORE] = "StopStore",
};

/* --- outcomes ---------------------------------------------------------------------------------------------------- */

int rmq_store_is_open(const StoreObject *self)
{
    if (self->store == NULL) {
        (void)rmq_raise_text("UsageError", "the store is not started");
    }
    return self->store != NULL;
}

int rmq_store_outcome(StoreObject *self, rmq_status status)
{
    if (self->store != NULL && self->store->has_failed && self->failure == NULL) {
        self->failure = rmq_kept_error(&self->disk);
    }
    switch (status) {
    case RMQ_OK:
    case RMQ_PENDING:
        return 0;
    case RMQ_NO_MEMORY:
        (void)PyErr_NoMemory();
        return -1;
    case RMQ_DAMAGED:
        (void)rmq_raise_damage("CorruptRecord", &self->store->damage);
        return -1;
    case RMQ_MISUSE:
        (void)rmq_raise_text("UsageError", self->store->message);
        return -1;
    case RMQ_FAILED:
        PyErr_SetObject((PyObject *)Py_TYPE(self->failure), self->failure);
        return -1;
    case RMQ_UNFIT:
        PyErr_SetString(PyExc_OverflowError, "a number does not fit its field");
        return -1;
    case RMQ_MORE:
    case RMQ_NOT_MINE:
    case RMQ_NO_ROOM: /* of connections: no store says so */
    case RMQ_DISK_FULL:
    case RMQ_DISK_FAILED:
    case RMQ_DIED:
        break;
    }
    (void)rmq_raise_kept(&self->disk);
    return -1;
}

int rmq_numbers_of(PyObject *tuple, int64_t **numbers, size_t *count)
{
    const Py_ssize_t size = PyTuple_Size(tuple);

    *numbers = NULL;
    if (size < 0) {
        return -1;
    }
    *count = (size_t)size;
    *numbers = PyMem_Calloc(*count + 1, sizeof **numbers);
    if (*numbers == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        (*numbers)[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (PyErr_Occurred()) {
            PyMem_Free(*numbers);
            *numbers = NULL;
            return -1;
        }
    }
    return 0;
}

/* An event becomes the plain tuple that refmq.model.step.EventFields describes. */
static rmq_status emit_event(void *context, const rmq_event *event)
{
    StoreObject *self = context;
    PyObject *fields = Py_BuildValue("(Oss#LLLLL)", self->actions[event->action], "",
                                     event->subject.at == NULL ? "" : (const char *)event->subject.at,
                                     (Py_ssize_t)event->subject.size, (long long)event->queue_id, (long long)event->a,
                                     (long long)event->b, (long long)event->c, (long long)event->d);
    PyObject *result = fields == NULL ? NULL : PyObject_CallOneArg(self->emit, fields);

    Py_XDECREF(fields);
    if (result == NULL) {
        return rmq_keep_error(&self->disk);
    }
    Py_DECREF(result);
    return RMQ_OK;
}

/* --- configuration ----------------------------------------------------------------------------------------------- */

#define NUMBER(name)                                                                                                   \
    {                                                                                                                  \
        #name, offsetof(rmq_store_config, name), false                                                                 \
    }
#define SWITCH(name)                                                                                                   \
    {                                                                                                                  \
        #name, offsetof(rmq_store_config, name), true                                                                  \
    }

static const struct {
    const char *name;
    size_t at;
    bool is_switch;
} SETTINGS[] = {
    NUMBER(log_file_bytes),
    NUMBER(queue_file_bytes),
    SWITCH(index_enabled),
    NUMBER(index_slots),
    NUMBER(index_entries),
    NUMBER(piece_bytes),
    NUMBER(message_bytes_max),
    NUMBER(query_count_max),
    NUMBER(read_units_min),
    NUMBER(memory_transfer_bytes_max),
    NUMBER(memory_transfer_count_max),
    NUMBER(disk_transfer_bytes_max),
    NUMBER(disk_transfer_count_max),
    NUMBER(memory_bytes),
    NUMBER(memory_ratio_percent),
    SWITCH(sync_flush),
    NUMBER(flush_page_bytes),
    NUMBER(log_flush_interval_ms),
    NUMBER(log_flush_pages),
    NUMBER(log_flush_thorough_ms),
    NUMBER(queue_flush_interval_ms),
    NUMBER(queue_flush_pages),
    NUMBER(queue_flush_thorough_ms),
    NUMBER(file_reserved_ms),
    NUMBER(delete_files_max),
    NUMBER(disk_used_percent_max),
    NUMBER(disk_clean_forcibly_percent),
    NUMBER(disk_full_percent),
    SWITCH(clean_forcibly),
    SWITCH(is_slave),
    SWITCH(correct_offsets_on_slave),
    SWITCH(cut_damage),
    SWITCH(dispatch_unflushed),
    SWITCH(ignore_flush_failure),
    SWITCH(keep_clock_steps),
    NUMBER(log_tail_bytes),
    NUMBER(tail_bytes),
    NUMBER(index_pages),
    NUMBER(hash_seed),
};

/* The number of a setting; -1 with an exception set if it is missing or none. */
static int64_t setting(PyObject *settings, const char *name)
{
    PyObject *value = PyDict_GetItemString(settings, name); /* borrowed */

    if (value == NULL) {
        PyErr_Format(PyExc_KeyError, "the setting %s is missing", name);
        return -1;
    }
    return PyLong_AsLongLong(value);
}

static int read_lists(PyObject *settings, rmq_store_config *config)
{
    PyObject *delays = PyDict_GetItemString(settings, "delays_ms"), *hours = PyDict_GetItemString(settings, "delete_when");
    int64_t *numbers;
    size_t count;

    if (delays == NULL || hours == NULL) {
        PyErr_SetString(PyExc_KeyError, "the setting delays_ms or delete_when is missing");
        return -1;
    }
    if (rmq_numbers_of(delays, &numbers, &count) < 0) {
        return -1;
    }
    if (count > RMQ_DELAY_LEVELS_MAX) {
        PyMem_Free(numbers);
        PyErr_Format(PyExc_ValueError, "there are %zu delay levels, the C store has room for %d", count,
                     RMQ_DELAY_LEVELS_MAX);
        return -1;
    }
    memcpy(config->delays_ms, numbers, count * sizeof *numbers);
    config->delay_levels = (int64_t)count;
    PyMem_Free(numbers);
    if (rmq_numbers_of(hours, &numbers, &count) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] >= 0 && numbers[i] < RMQ_DELETE_HOURS_MAX) {
            config->delete_hours |= UINT32_C(1) << numbers[i];
        }
    }
    PyMem_Free(numbers);
    return 0;
}

static int read_config(PyObject *settings, rmq_store_config *config)
{
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < sizeof SETTINGS / sizeof SETTINGS[0]; i++) {
        const int64_t value = setting(settings, SETTINGS[i].name);

        if (PyErr_Occurred()) {
            return -1;
        }
        if (SETTINGS[i].is_switch) {
            *(bool *)((char *)config + SETTINGS[i].at) = value != 0;
        } else {
            memcpy((char *)config + SETTINGS[i].at, &value, sizeof value);
        }
    }
    return read_lists(settings, config);
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static PyObject *store_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "", "", NULL};
    PyObject *disk, *settings, *emit;
    rmq_store_config config;
    rmq_disk table;
    rmq_notes *notes;
    rmq_emit told;
    StoreObject *self;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO!O:Store", names, &disk, &PyDict_Type, &settings, &emit) ||
        read_config(settings, &config) < 0) {
        return NULL;
    }
    self = (StoreObject *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->emit = emit == Py_None ? NULL : Py_NewRef(emit);
    self->job_type = rmq_job_type(PyType_GetModule(type));
    for (size_t i = 0; i < RMQ_ACTIONS; i++) {
        self->actions[i] = PyUnicode_InternFromString(ACTION_NAMES[i]);
    }
    if (self->job_type == NULL || rmq_python_disk_init(&self->disk, disk, PyType_GetModule(type)) < 0 || self->actions[RMQ_ACTIONS - 1] == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    table = rmq_python_disk_table(&self->disk);
    notes = self->emit == NULL ? NULL : rmq_notes_of(self->emit);
    told = notes != NULL ? rmq_note_store_event : self->emit == NULL ? NULL : emit_event;
    if (rmq_store_new(&config, &table, told, notes != NULL ? (void *)notes : self, &self->store) != RMQ_OK) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

void rmq_store_close(StoreObject *self)
{
    if (self->store != NULL && self->jobs == 0) {
        rmq_store_free(self->store);
        self->store = NULL;
    }
}

static int store_traverse(PyObject *given, visitproc visit, void *arg)
{
    StoreObject *self = (StoreObject *)given;

    Py_VISIT(Py_TYPE(given));
    Py_VISIT(self->emit);
    Py_VISIT(self->failure);
    Py_VISIT(self->job_type);
    return rmq_python_disk_traverse(&self->disk, visit, arg);
}

static int store_clear(PyObject *given)
{
    StoreObject *self = (StoreObject *)given;

    rmq_store_close(self); /* first: closing files needs the disk */
    if (self->emit != NULL && rmq_notes_of(self->emit) != NULL) {
        rmq_guard_notes(self->emit, NULL); /* the lock goes, and with it whoever else notes anything */
    }
    Py_CLEAR(self->emit);
    Py_CLEAR(self->failure);
    Py_CLEAR(self->job_type);
    rmq_python_disk_clear(&self->disk);
    return 0;
}

static void store_dealloc(PyObject *given)
{
    StoreObject *self = (StoreObject *)given;
    PyTypeObject *type = Py_TYPE(given);

    PyObject_GC_UnTrack(given);
    (void)store_clear(given);
    for (size_t i = 0; i < RMQ_ACTIONS; i++) {
        Py_XDECREF(self->actions[i]);
    }
    if (self->is_shared) {
        rmq_lock_close(&self->lock);
    }
    free(self->records.data);
    type->tp_free(given);
    Py_DECREF(type);
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

static PyObject *none_or_error(StoreObject *self, rmq_status status)
{
    if (rmq_store_outcome(self, status) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *store_open_name(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    const char *path;
    long long changed, flushed;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "sLL:open_name", &path, &changed, &flushed)) {
        return NULL;
    }
    return none_or_error(self, rmq_open_name(self->store, path, changed, flushed));
}

static PyObject *store_open_log(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    PyObject *tuple;
    long long wrote, flushed, zeroed, last_ms, flushed_ms;
    int64_t *bases;
    size_t count;
    rmq_status status;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "O!LLLLL:open_log", &PyTuple_Type, &tuple, &wrote,
                                                      &flushed, &zeroed, &last_ms, &flushed_ms) ||
        rmq_numbers_of(tuple, &bases, &count) < 0) {
        return NULL;
    }
    status = rmq_open_log(self->store, bases, count, wrote, flushed, zeroed, last_ms, flushed_ms);
    PyMem_Free(bases);
    return none_or_error(self, status);
}

static PyObject *store_open_queue(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    const char *topic;
    Py_ssize_t topic_size;
    PyObject *tuple;
    long long queue_id, wrote, flushed, zeroed, min_offset, log_min, last_physical_end, dispatched_end;
    int is_dirty;
    int64_t *bases;
    rmq_opened_queue opened;
    rmq_status status;

    if (!rmq_store_is_open(self) ||
        !PyArg_ParseTuple(arguments, "y#LO!LLLLLLLp:open_queue", &topic, &topic_size, &queue_id, &PyTuple_Type, &tuple,
                          &wrote, &flushed, &zeroed, &min_offset, &log_min, &last_physical_end, &dispatched_end,
                          &is_dirty) ||
        rmq_numbers_of(tuple, &bases, &opened.count) < 0) {
        return NULL;
    }
    opened.topic = (rmq_text){(const uint8_t *)topic, (size_t)topic_size};
    opened.queue_id = queue_id;
    opened.bases = bases;
    opened.wrote = wrote;
    opened.flushed = flushed;
    opened.zeroed_base = zeroed;
    opened.min_offset = min_offset;
    opened.log_min = log_min;
    opened.last_physical_end = last_physical_end;
    opened.dispatched_end = dispatched_end;
    opened.is_dirty = is_dirty != 0;
    status = rmq_open_queue(self->store, &opened);
    PyMem_Free(bases);
    return none_or_error(self, status);
}

static PyObject *store_open_offset(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    const char *topic;
    Py_ssize_t size;
    long long queue_id, offset;

    if (!rmq_store_is_open(self) ||
        !PyArg_ParseTuple(arguments, "y#LL:open_offset", &topic, &size, &queue_id, &offset)) {
        return NULL;
    }
    return none_or_error(self, rmq_open_offset(self->store, (rmq_text){(const uint8_t *)topic, (size_t)size}, queue_id,
                                               offset));
}

static PyObject *store_open_index_file(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    long long name;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "L:open_index_file", &name)) {
        return NULL;
    }
    return none_or_error(self, rmq_open_index_file(self->store, name));
}

static PyObject *store_open_done(PyObject *given, PyObject *arguments)
{
    StoreObject *self = (StoreObject *)given;
    long long dispatched_to, dispatched_ms, checkpointed_to, now_ms;

    if (!rmq_store_is_open(self) || !PyArg_ParseTuple(arguments, "LLLL:open_done", &dispatched_to, &dispatched_ms,
                                                      &checkpointed_to, &now_ms)) {
        return NULL;
    }
    return none_or_error(self, rmq_open_done(self->store, dispatched_to, dispatched_ms, checkpointed_to, now_ms));
}

static PyObject *store_close(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    rmq_store_close((StoreObject *)given);
    Py_RETURN_NONE;
}

/* --- positions --------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(positions_doc, "positions()\n--\n\n"
                            "Where the log begins and ends, where a slave's next piece starts, and how far it is\n"
                            "durable and dispatched.");

static PyObject *store_positions(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    const StoreObject *self = (StoreObject *)given;

    if (!rmq_store_is_open(self)) {
        return NULL;
    }
    return Py_BuildValue("(LLLLL)", (long long)rmq_files_begin(&self->store->log.files),
                         (long long)self->store->log.files.wrote, (long long)rmq_log_received_to(&self->store->log),
                         (long long)self->store->log.files.flushed, (long long)self->store->dispatched_to);
}

RMQ_LOCKED(store_positions)

static PyObject *store_accepts_puts(PyObject *given, void *Py_UNUSED(closure))
{
    StoreObject *self = (StoreObject *)given;
    int accepts;

    rmq_enter(self);
    accepts = self->store != NULL && rmq_accepts_puts(self->store);
    rmq_leave(self);
    return PyBool_FromLong(accepts);
}

/* --- the lock ---------------------------------------------------------------------------------------------------- */

rmq_status rmq_share(StoreObject *self)
{
    if (self->is_shared) {
        return RMQ_OK;
    }
    RMQ_TRY(rmq_lock_open(&self->lock));
    self->is_shared = 1;
    return RMQ_OK;
}

void rmq_enter(StoreObject *self)
{
    const unsigned long me = PyThread_get_thread_ident();

    if (!self->is_shared) {
        return;
    }
    if (atomic_load(&self->holder) == me) { /* nobody else could have written that */
        self->depth += 1;
        return;
    }
    if (!rmq_lock_try(&self->lock)) {
        Py_BEGIN_ALLOW_THREADS; /* whoever holds it may want the interpreter */
        rmq_lock_take(&self->lock);
        Py_END_ALLOW_THREADS;
    }
    atomic_store(&self->holder, me);
    self->depth = 1;
}

void rmq_leave(StoreObject *self)
{
    if (!self->is_shared) {
        return;
    }
    assert(atomic_load(&self->holder) == PyThread_get_thread_ident() && self->depth > 0);
    self->depth -= 1;
    if (self->depth == 0) {
        atomic_store(&self->holder, 0);
        rmq_lock_release(&self->lock);
    }
}

PyDoc_STRVAR(hold_doc, "hold()\n--\n\n"
                       "Keeps the threads of a shell out of plane and store until `let_go`: for a step of several calls.");

static PyObject *store_hold(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    rmq_enter((StoreObject *)given);
    Py_RETURN_NONE;
}

static PyObject *store_let_go(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    StoreObject *self = (StoreObject *)given;

    if (self->is_shared && atomic_load(&self->holder) != PyThread_get_thread_ident()) {
        return rmq_raise_text("UsageError", "this thread does not hold the store");
    }
    rmq_leave(self);
    Py_RETURN_NONE;
}

static PyObject *store_failure(PyObject *given, void *Py_UNUSED(closure))
{
    const StoreObject *self = (StoreObject *)given;

    return Py_NewRef(self->failure == NULL ? Py_None : self->failure);
}

static PyMethodDef life_methods[] = {
    {"open_name", store_open_name, METH_VARARGS, "open_name(path, changed, flushed, /)\n--\n\nSee store/open.h."},
    {"open_log", store_open_log, METH_VARARGS, "See store/open.h."},
    {"open_queue", store_open_queue, METH_VARARGS, "See store/open.h."},
    {"open_offset", store_open_offset, METH_VARARGS, "See store/open.h."},
    {"open_index_file", store_open_index_file, METH_VARARGS, "See store/open.h."},
    {"open_done", store_open_done, METH_VARARGS, "See store/open.h."},
    {"close", store_close, METH_NOARGS, "Closes the files. Afterwards nothing may be asked."},
    {"positions", store_positions_locked, METH_NOARGS, positions_doc},
    {"hold", store_hold, METH_NOARGS, hold_doc},
    {"let_go", store_let_go, METH_NOARGS, "let_go()\n--\n\nThe end of `hold`."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef store_properties[] = {
    {"accepts_puts", store_accepts_puts, NULL, "Whether a legal put would be stored now.", NULL},
    {"failure", store_failure, NULL, "The exception with which the store failed, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(store_doc, "Store(disk, settings, emit, /)\n--\n\n"
                        "A C store over a Python disk, not open yet. refmq.net.fast_store makes it a MessageStore.");

static PyType_Slot store_slots[] = {
    {Py_tp_doc, (void *)store_doc},
    {Py_tp_new, (void *)store_new},
    {Py_tp_traverse, (void *)store_traverse},
    {Py_tp_clear, (void *)store_clear},
    {Py_tp_dealloc, (void *)store_dealloc},
    {Py_tp_getset, store_properties},
    {Py_tp_methods, NULL}, /* set below */
    {0, NULL},
};

PyMethodDef *rmq_joined_methods(PyMethodDef *const *tables, size_t table_count)
{
    size_t count = 1;
    PyMethodDef *all;

    for (size_t i = 0; i < table_count; i++) {
        for (const PyMethodDef *method = tables[i]; method->ml_name != NULL; method++) {
            count += 1;
        }
    }
    all = PyMem_Calloc(count, sizeof *all);
    count = 0;
    for (size_t i = 0; all != NULL && i < table_count; i++) {
        for (const PyMethodDef *method = tables[i]; method->ml_name != NULL; method++) {
            all[count] = *method;
            count += 1;
        }
    }
    return all;
}

PyTypeObject *rmq_store_type(PyObject *module)
{
    PyObject *type = PyObject_GetAttrString(module, "Store");

    Py_XDECREF(type); /* the module keeps it */
    return (PyTypeObject *)type;
}

int rmq_bind_store(PyObject *module)
{
    PyType_Slot slots[sizeof store_slots / sizeof store_slots[0]];
    PyType_Spec spec = {
        .name = "refmq_fast.Store",
        .basicsize = sizeof(StoreObject),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
        .slots = slots,
    };
    PyMethodDef *const tables[] = {life_methods, rmq_store_put_methods, rmq_store_get_methods, rmq_store_job_methods};
    PyMethodDef *methods = rmq_joined_methods(tables, 4);

    if (methods == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    memcpy(slots, store_slots, sizeof slots);
    slots[sizeof slots / sizeof slots[0] - 2].pfunc = methods;
    if (rmq_add_type(module, &spec) < 0) {
        PyMem_Free(methods); /* there is no type that needs them */
        return -1;
    }
    return 0;
}

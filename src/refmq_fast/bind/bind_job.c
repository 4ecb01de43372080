/* What is awaited of a store: refmq_fast.Job, driven by a coroutine in Python. */
#include "bind_store.h"

#include "bind_disk_posix.h"
#include "raise.h"

typedef struct {
    PyObject_HEAD
    StoreObject *owner;
    rmq_job job;
    bool is_over;
} JobObject;

/* --- Job --------------------------------------------------------------------------------------------------------- */

static void end_job(JobObject *self)
{
    if (!self->is_over) {
        self->is_over = true;
        self->owner->jobs -= 1;
    }
}

static PyObject *operation_tuple(const rmq_operation *operation)
{
    if (operation->kind == RMQ_FLUSH_DIRECTORY) {
        return Py_BuildValue("(OiOs)", Py_None, 0, Py_None, operation->directory);
    }
    if (operation->end == RMQ_TO_THE_END) {
        return Py_BuildValue("(OLOO)", (PyObject *)operation->file, (long long)operation->start, Py_None, Py_None);
    }
    return Py_BuildValue("(OLLO)", (PyObject *)operation->file, (long long)operation->start, (long long)operation->end,
                         Py_None);
}

PyDoc_STRVAR(job_next_doc, "next(error, /)\n--\n\n"
                           "Goes on after an operation, which ended well (None) or with an exception. The next one: a file\n"
                           "with the start and end of what to flush, or None and a directory; for a PosixDisk a\n"
                           "DiskWork; None when all is done.");

static PyObject *job_next(PyObject *given, PyObject *error)
{
    JobObject *self = (JobObject *)given;
    rmq_status performed = error == Py_None ? RMQ_OK : rmq_keep_caught(&self->owner->disk, error);
    rmq_operation operation;
    rmq_status status;

    if (self->is_over || !rmq_store_is_open(self->owner)) {
        return PyErr_Occurred() ? NULL : rmq_raise_text("UsageError", "the job is over");
    }
    while ((status = rmq_job_next(&self->job, performed, &operation)) == RMQ_PENDING) {
        PyObject *work;

        if (self->owner->disk.posix == NULL) {
            return operation_tuple(&operation);
        }
        work = rmq_new_disk_work(PyType_GetModule(Py_TYPE(given)), self->owner->disk.disk, given, &operation);
        if (work != NULL) {
            return work;
        }
        performed = rmq_keep_error(&self->owner->disk); /* it failed before it began */
    }
    end_job(self);
    if (rmq_store_outcome(self->owner, status) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *job_result(PyObject *given, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(((JobObject *)given)->job.result);
}

static int job_traverse(PyObject *given, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(given));
    Py_VISIT(((JobObject *)given)->owner);
    return 0;
}

/* A job that nobody takes to its end ends here, as if what performs its operations had died. */
static void job_dealloc(PyObject *given)
{
    JobObject *self = (JobObject *)given;
    PyTypeObject *type = Py_TYPE(given);

    PyObject_GC_UnTrack(given);
    rmq_enter(self->owner);
    if (!self->is_over && self->owner->store != NULL) {
        rmq_operation operation;
        (void)rmq_job_next(&self->job, RMQ_DIED, &operation);
    }
    end_job(self);
    rmq_leave(self->owner);
    Py_XDECREF((PyObject *)self->owner);
    type->tp_free(given);
    Py_DECREF(type);
}

static PyObject *job_next_locked(PyObject *given, PyObject *error)
{
    StoreObject *owner = ((JobObject *)given)->owner;
    PyObject *result;

    rmq_enter(owner);
    result = job_next(given, error);
    rmq_leave(owner);
    return result;
}

static PyMethodDef job_methods[] = {
    {"next", job_next_locked, METH_O, job_next_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef job_properties[] = {
    {"result", job_result, NULL, "Of a flush: how far the log is durable; of a clean: how many files of it went.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot job_slots[] = {
    {Py_tp_doc, (void *)"A flush, maintenance, cleaning or stop under way. Made by a Store."},
    {Py_tp_traverse, (void *)job_traverse},
    {Py_tp_dealloc, (void *)job_dealloc},
    {Py_tp_methods, job_methods},
    {Py_tp_getset, job_properties},
    {0, NULL},
};

static PyType_Spec job_spec = {
    .name = "refmq_fast.Job",
    .basicsize = sizeof(JobObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = job_slots,
};

PyTypeObject *rmq_job_type(PyObject *module)
{
    return (PyTypeObject *)PyObject_GetAttrString(module, "Job");
}

int rmq_bind_job(PyObject *module)
{
    return rmq_add_type(module, &job_spec);
}

/* --- the methods of a store that start one ----------------------------------------------------------------------- */

static JobObject *new_job(StoreObject *owner)
{
    JobObject *job;

    if (!rmq_store_is_open(owner)) {
        return NULL;
    }
    job = (JobObject *)owner->job_type->tp_alloc(owner->job_type, 0);
    if (job != NULL) {
        job->owner = (StoreObject *)Py_NewRef((PyObject *)owner);
        owner->jobs += 1;
    }
    return job;
}

static PyObject *start_flush(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    JobObject *job = new_job((StoreObject *)given);

    if (job != NULL) {
        rmq_start_flush(&job->job, job->owner->store);
    }
    return (PyObject *)job;
}

static PyObject *start_maintain(PyObject *given, PyObject *arguments)
{
    long long now_ms;
    JobObject *job;

    if (!PyArg_ParseTuple(arguments, "L:start_maintain", &now_ms)) {
        return NULL;
    }
    job = new_job((StoreObject *)given);
    if (job != NULL) {
        rmq_start_maintain(&job->job, job->owner->store, now_ms);
    }
    return (PyObject *)job;
}

static PyObject *start_clean(PyObject *given, PyObject *arguments)
{
    long long now_ms;
    int hour;
    JobObject *job;

    if (!PyArg_ParseTuple(arguments, "Li:start_clean", &now_ms, &hour)) {
        return NULL;
    }
    if (hour < -1 || hour >= RMQ_DELETE_HOURS_MAX) {
        return PyErr_Format(PyExc_ValueError, "%d is no hour of a day", hour);
    }
    job = new_job((StoreObject *)given);
    if (job != NULL) {
        rmq_start_clean(&job->job, job->owner->store, now_ms, hour);
    }
    return (PyObject *)job;
}

static PyObject *start_clean_queues(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    JobObject *job = new_job((StoreObject *)given);

    if (job != NULL) {
        rmq_start_clean_queues(&job->job, job->owner->store);
    }
    return (PyObject *)job;
}

static PyObject *start_stop(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    JobObject *job = new_job((StoreObject *)given);

    if (job != NULL) {
        rmq_start_stop(&job->job, job->owner->store);
    }
    return (PyObject *)job;
}

RMQ_LOCKED(start_flush)
RMQ_LOCKED(start_maintain)
RMQ_LOCKED(start_clean)
RMQ_LOCKED(start_clean_queues)
RMQ_LOCKED(start_stop)

PyMethodDef rmq_store_job_methods[] = {
    {"start_flush", start_flush_locked, METH_NOARGS, "start_flush()\n--\n\nA job: makes the log durable."},
    {"start_maintain", start_maintain_locked, METH_VARARGS, "start_maintain(now_ms, /)\n--\n\nA job: does what is due."},
    {"start_clean", start_clean_locked, METH_VARARGS, "start_clean(now_ms, hour, /)\n--\n\nA job; an hour of -1 means now."},
    {"start_clean_queues", start_clean_queues_locked, METH_NOARGS, "start_clean_queues()\n--\n\nA job."},
    {"start_stop", start_stop_locked, METH_NOARGS, "start_stop()\n--\n\nA job: a clean stop."},
    {NULL, NULL, 0, NULL},
};

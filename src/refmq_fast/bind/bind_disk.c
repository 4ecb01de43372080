/* Calls a Python disk, and keeps the exception when it raises one. */
#include "bind_disk.h"
#include "bind_disk_posix.h"

#include <string.h>

int rmq_python_disk_init(rmq_python_disk *context, PyObject *disk, PyObject *module)
{
    PyObject *errors = PyImport_ImportModule("refmq.errors");

    if (errors == NULL) {
        return -1;
    }
    context->disk_full = PyObject_GetAttrString(errors, "DiskFull");
    context->disk_failed = PyObject_GetAttrString(errors, "DiskFailed");
    Py_DECREF(errors);
    context->disk = Py_NewRef(disk);
    context->posix = rmq_posix_disk_of(module, disk);
    return context->disk_full == NULL || context->disk_failed == NULL ? -1 : 0;
}

void rmq_python_disk_clear(rmq_python_disk *context)
{
    context->posix = NULL;
    Py_CLEAR(context->disk);
    Py_CLEAR(context->disk_full);
    Py_CLEAR(context->disk_failed);
    Py_CLEAR(context->error);
}

int rmq_python_disk_traverse(rmq_python_disk *context, visitproc visit, void *arg)
{
    Py_VISIT(context->disk);
    Py_VISIT(context->disk_full);
    Py_VISIT(context->disk_failed);
    Py_VISIT(context->error);
    return 0;
}

/* --- errors ------------------------------------------------------------------------------------------------------ */

static rmq_status keep(rmq_python_disk *context, PyObject *error)
{
    Py_XSETREF(context->error, error);
    context->posix_errors = context->posix == NULL ? 0 : rmq_posix_disk_error(context->posix)->count;
    if (PyObject_TypeCheck(error, (PyTypeObject *)context->disk_full)) {
        return RMQ_DISK_FULL;
    }
    return PyObject_TypeCheck(error, (PyTypeObject *)context->disk_failed) ? RMQ_DISK_FAILED : RMQ_DIED;
}

rmq_status rmq_keep_caught(rmq_python_disk *context, PyObject *error)
{
    return keep(context, Py_NewRef(error));
}

rmq_status rmq_keep_error(rmq_python_disk *context)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(value, traceback);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return keep(context, value);
}

/* An error of a disk in C becomes an exception when somebody asks for it. */
PyObject *rmq_kept_error(rmq_python_disk *context)
{
    const rmq_disk_error *error = context->posix == NULL ? NULL : rmq_posix_disk_error(context->posix);

    if (error != NULL && error->count > context->posix_errors) {
        PyObject *made = rmq_disk_exception(error);

        if (made == NULL) {
            (void)rmq_keep_error(context);
        } else {
            (void)keep(context, made);
        }
    }
    return Py_XNewRef(context->error);
}

PyObject *rmq_raise_kept(rmq_python_disk *context)
{
    Py_XDECREF(rmq_kept_error(context)); /* the context keeps it */
    if (context->error == NULL) {
        PyErr_SetString(PyExc_SystemError, "the disk failed and nobody knows why");
        return NULL;
    }
    PyErr_SetObject((PyObject *)Py_TYPE(context->error), context->error);
    return NULL;
}

/* Gives up the outcome of a call that returns nothing. */
static rmq_status done(rmq_python_disk *context, PyObject *result)
{
    if (result == NULL) {
        return rmq_keep_error(context);
    }
    Py_DECREF(result);
    return RMQ_OK;
}

/* --- the table --------------------------------------------------------------------------------------------------- */

static rmq_status ask(rmq_python_disk *context, const char *method, const char *path, bool *answer)
{
    PyObject *result = PyObject_CallMethod(context->disk, method, "s", path);

    if (result == NULL) {
        return rmq_keep_error(context);
    }
    *answer = PyObject_IsTrue(result) == 1;
    return done(context, result);
}

static rmq_status disk_exists(void *context, const char *path, bool *is_there)
{
    return ask(context, "exists", path, is_there);
}

static rmq_status disk_is_directory(void *context, const char *path, bool *is_one)
{
    return ask(context, "is_directory", path, is_one);
}

static rmq_status disk_is_empty(void *context, const char *directory, bool *is_empty)
{
    const rmq_status status = ask(context, "list", directory, is_empty);

    *is_empty = !*is_empty;
    return status;
}

/* Two attributes of the answer to a question about a path. */
static rmq_status numbers(rmq_python_disk *context, const char *method, const char *path, const char *const *names,
                          int64_t *found, size_t count)
{
    PyObject *result = PyObject_CallMethod(context->disk, method, "s", path);

    for (size_t i = 0; result != NULL && i < count; i++) {
        PyObject *number = PyObject_GetAttrString(result, names[i]);

        found[i] = number == NULL ? -1 : PyLong_AsLongLong(number);
        Py_XDECREF(number);
        if (PyErr_Occurred()) {
            Py_CLEAR(result);
        }
    }
    return done(context, result);
}

static rmq_status disk_modified_ms(void *context, const char *path, int64_t *modified_ms)
{
    static const char *const names[] = {"modified_ms"};

    return numbers(context, "info", path, names, modified_ms, 1);
}

static rmq_status disk_usage(void *context, const char *path, int64_t *total_bytes, int64_t *free_bytes)
{
    static const char *const names[] = {"total_bytes", "free_bytes"};
    int64_t found[2] = {0, 0};
    const rmq_status status = numbers(context, "usage", path, names, found, 2);

    *total_bytes = found[0];
    *free_bytes = found[1];
    return status;
}

static rmq_status disk_open(void *context, const char *path, rmq_file *file)
{
    rmq_python_disk *disk = context;

    *file = PyObject_CallMethod(disk->disk, "open", "s", path);
    return *file == NULL ? rmq_keep_error(disk) : RMQ_OK;
}

static rmq_status disk_create(void *context, const char *path, int64_t size_bytes, bool reserve, rmq_file *file)
{
    rmq_python_disk *disk = context;
    PyObject *method = PyObject_GetAttrString(disk->disk, "create");
    PyObject *arguments = Py_BuildValue("(sL)", path, (long long)size_bytes);
    PyObject *keywords = Py_BuildValue("{sO}", "reserve", reserve ? Py_True : Py_False);

    *file = NULL;
    if (method != NULL && arguments != NULL && keywords != NULL) {
        *file = PyObject_Call(method, arguments, keywords);
    }
    Py_XDECREF(method);
    Py_XDECREF(arguments);
    Py_XDECREF(keywords);
    return *file == NULL ? rmq_keep_error(disk) : RMQ_OK;
}

static rmq_status disk_make_directory(void *context, const char *path)
{
    rmq_python_disk *disk = context;

    return done(disk, PyObject_CallMethod(disk->disk, "make_directory", "s", path));
}

static rmq_status disk_remove(void *context, const char *path)
{
    rmq_python_disk *disk = context;

    return done(disk, PyObject_CallMethod(disk->disk, "remove", "s", path));
}

static rmq_status disk_rename(void *context, const char *source, const char *target)
{
    rmq_python_disk *disk = context;

    return done(disk, PyObject_CallMethod(disk->disk, "rename", "ss", source, target));
}

static rmq_status disk_read(void *context, rmq_file file, int64_t position, uint8_t *to, size_t length)
{
    PyObject *data = PyObject_CallMethod(file, "read", "Ln", (long long)position, (Py_ssize_t)length);

    if (data != NULL && (!PyBytes_Check(data) || (size_t)PyBytes_GET_SIZE(data) != length)) {
        PyErr_Format(PyExc_ValueError, "a read of %zu bytes gave something else", length);
        Py_CLEAR(data);
    }
    if (data != NULL) {
        memcpy(to, PyBytes_AS_STRING(data), length);
    }
    return done(context, data);
}

static rmq_status disk_write(void *context, rmq_file file, int64_t position, const uint8_t *from, size_t length)
{
    return done(context, PyObject_CallMethod(file, "write", "Ly#", (long long)position,
                                             from == NULL ? "" : (const char *)from, (Py_ssize_t)length));
}

static rmq_status disk_data_end(void *context, rmq_file file, int64_t *end)
{
    PyObject *found = PyObject_CallMethod(file, "data_end", NULL);
    PyObject *size = PyObject_GetAttrString(file, "size_bytes");
    int64_t size_bytes = -1;
    rmq_status status;

    if (found != NULL && size != NULL) {
        *end = PyLong_AsLongLong(found);
        size_bytes = PyLong_AsLongLong(size);
        *end = *end < size_bytes ? *end : size_bytes;
    }
    status = PyErr_Occurred() ? rmq_keep_error(context) : RMQ_OK;
    Py_XDECREF(found);
    Py_XDECREF(size);
    return status;
}

static void disk_close(void *context, rmq_file file)
{
    PyObject *type, *value, *traceback, *result;

    (void)context;
    PyErr_Fetch(&type, &value, &traceback); /* a file may be closed while an error is on its way */
    result = PyObject_CallMethod(file, "close", NULL);
    if (result == NULL) {
        PyErr_WriteUnraisable(file);
    }
    Py_XDECREF(result);
    Py_DECREF((PyObject *)file);
    PyErr_Restore(type, value, traceback);
}

rmq_disk rmq_python_disk_table(rmq_python_disk *context)
{
    const rmq_disk table = {
        .context = context,
        .exists = disk_exists,
        .is_directory = disk_is_directory,
        .is_empty = disk_is_empty,
        .modified_ms = disk_modified_ms,
        .usage = disk_usage,
        .open = disk_open,
        .create = disk_create,
        .make_directory = disk_make_directory,
        .remove = disk_remove,
        .rename = disk_rename,
        .read = disk_read,
        .write = disk_write,
        .data_end = disk_data_end,
        .close = disk_close,
    };

    return context->posix != NULL ? rmq_posix_disk_table(context->posix) : table;
}

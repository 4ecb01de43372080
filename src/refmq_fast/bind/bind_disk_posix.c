/* refmq_fast.PosixDisk: shell/disk_posix.h from Python. */
#include "bind_disk_posix.h"

#include "raise.h"

typedef struct {
    PyObject_HEAD
    rmq_posix_disk *disk;
    rmq_disk table;
} DiskObject;

typedef struct {
    PyObject_HEAD
    DiskObject *owner;
    rmq_file file; /* NULL once it is closed */
} FileObject;

typedef struct {
    PyObject_HEAD
    DiskObject *owner;
    PyObject *holder; /* keeps the file or the path alive */
    rmq_disk_work work;
    enum { PENDING, READY, PERFORMED, FINISHED } state;
} WorkObject;

static PyTypeObject *type_of(PyObject *module, const char *name)
{
    PyObject *type = PyObject_GetAttrString(module, name);

    Py_XDECREF(type); /* the module keeps it */
    return (PyTypeObject *)type;
}

static PyTypeObject *sibling_type(const DiskObject *self, const char *name)
{
    PyObject *module = PyType_GetModule(Py_TYPE((PyObject *)self));

    return module == NULL ? NULL : type_of(module, name);
}

/* --- errors ------------------------------------------------------------------------------------------------------ */

PyObject *rmq_disk_exception(const rmq_disk_error *error)
{
    const char *name = error->status == RMQ_DISK_FULL ? "DiskFull" : error->is_flush ? "FlushFailed" : "DiskFailed";
    PyObject *class = rmq_errors_class(name);
    PyObject *path = PyUnicode_DecodeFSDefault(error->path), *made = NULL;

    if (class != NULL && path != NULL) {
        made = PyObject_CallFunction(class, "Oss", path, error->operation, error->reason);
    }
    Py_XDECREF(path);
    Py_XDECREF(class);
    return made;
}

/* 0, or -1 with the exception for a status. */
static int outcome(const DiskObject *self, rmq_status status)
{
    PyObject *error;

    if (status == RMQ_OK) {
        return 0;
    }
    if (status != RMQ_DISK_FULL && status != RMQ_DISK_FAILED) {
        (void)PyErr_NoMemory();
        return -1;
    }
    error = rmq_disk_exception(rmq_posix_disk_error(self->disk));
    if (error != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return -1;
}

static PyObject *none_or_error(const DiskObject *self, rmq_status status)
{
    if (outcome(self, status) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* --- PosixFile --------------------------------------------------------------------------------------------------- */

static PyObject *new_file(DiskObject *owner, rmq_file file)
{
    PyTypeObject *type = sibling_type(owner, "PosixFile");
    FileObject *made = type == NULL ? NULL : (FileObject *)type->tp_alloc(type, 0);

    if (made == NULL) {
        owner->table.close(owner->table.context, file);
        return NULL;
    }
    made->owner = (DiskObject *)Py_NewRef((PyObject *)owner);
    made->file = file;
    return (PyObject *)made;
}

static int is_open(const FileObject *self)
{
    if (self->file == NULL) {
        (void)rmq_raise_text("UsageError", "the file is closed");
    }
    return self->file != NULL;
}

static PyObject *file_read(PyObject *given, PyObject *arguments)
{
    FileObject *self = (FileObject *)given;
    const rmq_disk *table = &self->owner->table;
    long long position;
    Py_ssize_t length;
    PyObject *data;

    if (!PyArg_ParseTuple(arguments, "Ln:read", &position, &length) || !is_open(self)) {
        return NULL;
    }
    data = PyBytes_FromStringAndSize(NULL, length);
    if (data != NULL && outcome(self->owner, table->read(table->context, self->file, position,
                                                         (uint8_t *)PyBytes_AS_STRING(data), (size_t)length)) < 0) {
        Py_CLEAR(data);
    }
    return data;
}

static PyObject *file_write(PyObject *given, PyObject *arguments)
{
    FileObject *self = (FileObject *)given;
    const rmq_disk *table = &self->owner->table;
    long long position;
    Py_buffer data;
    rmq_status status;

    if (!PyArg_ParseTuple(arguments, "Ly*:write", &position, &data)) {
        return NULL;
    }
    if (!is_open(self)) {
        PyBuffer_Release(&data);
        return NULL;
    }
    status = table->write(table->context, self->file, position, data.buf, (size_t)data.len);
    PyBuffer_Release(&data);
    return none_or_error(self->owner, status);
}

static PyObject *file_data_end(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    FileObject *self = (FileObject *)given;
    const rmq_disk *table = &self->owner->table;
    int64_t end;

    if (!is_open(self) || outcome(self->owner, table->data_end(table->context, self->file, &end)) < 0) {
        return NULL;
    }
    return PyLong_FromLongLong(end);
}

static PyObject *file_close(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    FileObject *self = (FileObject *)given;

    if (self->file != NULL) {
        self->owner->table.close(self->owner->table.context, self->file);
        self->file = NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *new_work(DiskObject *owner, PyObject *holder, const rmq_operation *operation);

static PyObject *file_start_flush(PyObject *given, PyObject *arguments)
{
    FileObject *self = (FileObject *)given;
    long long start, end;
    rmq_operation operation = {.kind = RMQ_FLUSH_FILE, .file = self->file};

    if (!PyArg_ParseTuple(arguments, "LL:start_flush", &start, &end) || !is_open(self)) {
        return NULL;
    }
    operation.start = start;
    operation.end = end;
    return new_work(self->owner, given, &operation);
}

static PyObject *file_path(PyObject *given, void *Py_UNUSED(closure))
{
    const FileObject *self = (FileObject *)given;

    return is_open(self) ? PyUnicode_DecodeFSDefault(rmq_posix_file_path(self->file)) : NULL;
}

static PyObject *file_size(PyObject *given, void *Py_UNUSED(closure))
{
    const FileObject *self = (FileObject *)given;

    return is_open(self) ? PyLong_FromLongLong(rmq_posix_file_size(self->file)) : NULL;
}

static void file_dealloc(PyObject *given)
{
    FileObject *self = (FileObject *)given;
    PyTypeObject *type = Py_TYPE(given);

    if (self->file != NULL) {
        self->owner->table.close(self->owner->table.context, self->file);
    }
    Py_XDECREF((PyObject *)self->owner);
    type->tp_free(given);
    Py_DECREF(type);
}

static PyMethodDef file_methods[] = {
    {"read", file_read, METH_VARARGS, "read(position, length, /)\n--\n\nExactly so many bytes."},
    {"write", file_write, METH_VARARGS, "write(position, data, /)\n--\n\nOverwrites bytes inside the file."},
    {"data_end", file_data_end, METH_NOARGS, "data_end()\n--\n\nBehind it the file is all zeros."},
    {"start_flush", file_start_flush, METH_VARARGS, "start_flush(start, end, /)\n--\n\nA DiskWork."},
    {"close", file_close, METH_NOARGS, "close()\n--\n\nGives the file up; a flush under way goes on."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef file_properties[] = {
    {"path", file_path, NULL, "Where it is now, relative to the root.", NULL},
    {"size_bytes", file_size, NULL, "Its size.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot file_slots[] = {
    {Py_tp_doc, (void *)"An open file of a PosixDisk."},
    {Py_tp_dealloc, (void *)file_dealloc},
    {Py_tp_methods, file_methods},
    {Py_tp_getset, file_properties},
    {0, NULL},
};

static PyType_Spec file_spec = {
    .name = "refmq_fast.PosixFile",
    .basicsize = sizeof(FileObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = file_slots,
};

/* --- DiskWork ---------------------------------------------------------------------------------------------------- */

static PyObject *new_work(DiskObject *owner, PyObject *holder, const rmq_operation *operation)
{
    PyTypeObject *type = sibling_type(owner, "DiskWork");
    WorkObject *made = type == NULL ? NULL : (WorkObject *)type->tp_alloc(type, 0);
    rmq_status status;

    if (made == NULL) {
        return NULL;
    }
    made->owner = (DiskObject *)Py_NewRef((PyObject *)owner);
    made->holder = Py_NewRef(holder);
    made->state = FINISHED;
    status = rmq_disk_start(owner->disk, operation, &made->work);
    if (status != RMQ_PENDING && outcome(owner, status) < 0) {
        Py_DECREF((PyObject *)made);
        return NULL;
    }
    made->state = status == RMQ_PENDING ? PENDING : READY;
    return (PyObject *)made;
}

PyDoc_STRVAR(work_start_doc, "start()\n--\n\nWhether it has what it needs; if not, no descriptor is free at the moment.");

static PyObject *work_start(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    WorkObject *self = (WorkObject *)given;
    rmq_status status;

    if (self->state != PENDING) {
        return PyBool_FromLong(self->state == READY);
    }
    status = rmq_disk_start_again(self->owner->disk, &self->work);
    if (status == RMQ_PENDING) {
        Py_RETURN_FALSE;
    }
    self->state = status == RMQ_OK ? READY : FINISHED;
    if (outcome(self->owner, status) < 0) {
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyObject *work_perform(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    WorkObject *self = (WorkObject *)given;

    if (self->state != READY) {
        return rmq_raise_text("UsageError", "the work is not ready, or was performed already");
    }
    self->state = PERFORMED;
    Py_BEGIN_ALLOW_THREADS;
    rmq_disk_perform(&self->work);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *work_finish(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    WorkObject *self = (WorkObject *)given;

    if (self->state != PERFORMED) {
        return rmq_raise_text("UsageError", "the work was not performed, or is finished already");
    }
    self->state = FINISHED;
    return none_or_error(self->owner, rmq_disk_finish(self->owner->disk, &self->work));
}

static void work_dealloc(PyObject *given)
{
    WorkObject *self = (WorkObject *)given;
    PyTypeObject *type = Py_TYPE(given);

    if (self->state != FINISHED) {
        (void)rmq_disk_finish(self->owner->disk, &self->work); /* nobody waits; a failure is remembered */
    }
    Py_XDECREF(self->holder);
    Py_XDECREF((PyObject *)self->owner);
    type->tp_free(given);
    Py_DECREF(type);
}

static PyMethodDef work_methods[] = {
    {"start", work_start, METH_NOARGS, work_start_doc},
    {"perform", work_perform, METH_NOARGS, "perform()\n--\n\nFlushes, in any thread, once `start` said True."},
    {"finish", work_finish, METH_NOARGS, "finish()\n--\n\nRaises what the flush failed with; in the disk's thread."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot work_slots[] = {
    {Py_tp_doc, (void *)"A flush that another thread can perform."},
    {Py_tp_dealloc, (void *)work_dealloc},
    {Py_tp_methods, work_methods},
    {0, NULL},
};

static PyType_Spec work_spec = {
    .name = "refmq_fast.DiskWork",
    .basicsize = sizeof(WorkObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = work_slots,
};

/* --- PosixDisk --------------------------------------------------------------------------------------------------- */

static PyObject *disk_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "open_files_max", "mapped_bytes", "mapped_file_bytes_min", NULL};
    rmq_posix_settings settings = RMQ_POSIX_SETTINGS;
    Py_ssize_t open_files_max = (Py_ssize_t)settings.open_files_max;
    long long mapped_bytes = settings.mapped_bytes, mapped_file_bytes_min = settings.mapped_file_bytes_min;
    PyObject *root = NULL;
    DiskObject *self;
    rmq_status status;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O&|$nLL:PosixDisk", names, PyUnicode_FSConverter, &root,
                                     &open_files_max, &mapped_bytes, &mapped_file_bytes_min)) {
        return NULL;
    }
    if (open_files_max <= 0 || mapped_bytes < 0) {
        Py_DECREF(root);
        PyErr_SetString(PyExc_ValueError, "a disk needs a descriptor, and cannot map less than nothing");
        return NULL;
    }
    settings.open_files_max = (size_t)open_files_max;
    settings.mapped_bytes = mapped_bytes;
    settings.mapped_file_bytes_min = mapped_file_bytes_min;
    self = (DiskObject *)type->tp_alloc(type, 0);
    status = self == NULL ? RMQ_NO_MEMORY : rmq_posix_disk_new(PyBytes_AS_STRING(root), &settings, &self->disk);
    Py_DECREF(root);
    if (status != RMQ_OK) {
        Py_XDECREF((PyObject *)self);
        return status == RMQ_UNFIT ? rmq_raise_text("UsageError", "the path of a store is empty or too long")
                                   : PyErr_NoMemory();
    }
    self->table = rmq_posix_disk_table(self->disk);
    return (PyObject *)self;
}

static void disk_dealloc(PyObject *given)
{
    DiskObject *self = (DiskObject *)given;
    PyTypeObject *type = Py_TYPE(given);

    if (self->disk != NULL) {
        rmq_posix_disk_free(self->disk); /* files, works and stores hold a reference: there are none */
    }
    type->tp_free(given);
    Py_DECREF(type);
}

typedef rmq_status question(void *context, const char *path, bool *answer);

static PyObject *ask(PyObject *given, PyObject *argument, question *put)
{
    DiskObject *self = (DiskObject *)given;
    const char *path = PyUnicode_AsUTF8(argument);
    bool answer = false;

    if (path == NULL || outcome(self, put(self->table.context, path, &answer)) < 0) {
        return NULL;
    }
    return PyBool_FromLong(answer);
}

static PyObject *disk_exists(PyObject *given, PyObject *path)
{
    return ask(given, path, ((DiskObject *)given)->table.exists);
}

static PyObject *disk_is_directory(PyObject *given, PyObject *path)
{
    return ask(given, path, ((DiskObject *)given)->table.is_directory);
}

static PyObject *disk_is_empty(PyObject *given, PyObject *path)
{
    return ask(given, path, ((DiskObject *)given)->table.is_empty);
}

static PyObject *disk_modified_ms(PyObject *given, PyObject *argument)
{
    DiskObject *self = (DiskObject *)given;
    const char *path = PyUnicode_AsUTF8(argument);
    int64_t modified_ms;

    if (path == NULL || outcome(self, self->table.modified_ms(self->table.context, path, &modified_ms)) < 0) {
        return NULL;
    }
    return PyLong_FromLongLong(modified_ms);
}

static PyObject *disk_usage(PyObject *given, PyObject *argument)
{
    DiskObject *self = (DiskObject *)given;
    const char *path = PyUnicode_AsUTF8(argument);
    int64_t total, available;

    if (path == NULL || outcome(self, self->table.usage(self->table.context, path, &total, &available)) < 0) {
        return NULL;
    }
    return Py_BuildValue("(LL)", (long long)total, (long long)available);
}

static PyObject *disk_open(PyObject *given, PyObject *argument)
{
    DiskObject *self = (DiskObject *)given;
    const char *path = PyUnicode_AsUTF8(argument);
    rmq_file file;

    if (path == NULL || outcome(self, self->table.open(self->table.context, path, &file)) < 0) {
        return NULL;
    }
    return new_file(self, file);
}

static PyObject *disk_create(PyObject *given, PyObject *arguments)
{
    DiskObject *self = (DiskObject *)given;
    const char *path;
    long long size_bytes;
    int reserve;
    rmq_file file;

    if (!PyArg_ParseTuple(arguments, "sLp:create", &path, &size_bytes, &reserve)) {
        return NULL;
    }
    if (size_bytes < 0) {
        return rmq_raise_text("UsageError", "a file cannot be smaller than nothing");
    }
    if (outcome(self, self->table.create(self->table.context, path, size_bytes, reserve != 0, &file)) < 0) {
        return NULL;
    }
    return new_file(self, file);
}

static PyObject *disk_make_directory(PyObject *given, PyObject *argument)
{
    DiskObject *self = (DiskObject *)given;
    const char *path = PyUnicode_AsUTF8(argument);

    return path == NULL ? NULL : none_or_error(self, self->table.make_directory(self->table.context, path));
}

static PyObject *disk_remove(PyObject *given, PyObject *argument)
{
    DiskObject *self = (DiskObject *)given;
    const char *path = PyUnicode_AsUTF8(argument);

    return path == NULL ? NULL : none_or_error(self, self->table.remove(self->table.context, path));
}

static PyObject *disk_rename(PyObject *given, PyObject *arguments)
{
    DiskObject *self = (DiskObject *)given;
    const char *source, *target;

    if (!PyArg_ParseTuple(arguments, "ss:rename", &source, &target)) {
        return NULL;
    }
    return none_or_error(self, self->table.rename(self->table.context, source, target));
}

static PyObject *disk_start_flush(PyObject *given, PyObject *path)
{
    rmq_operation operation = {.kind = RMQ_FLUSH_DIRECTORY, .directory = PyUnicode_AsUTF8(path)};

    return operation.directory == NULL ? NULL : new_work((DiskObject *)given, path, &operation);
}

static PyObject *disk_rest(PyObject *given, PyObject *Py_UNUSED(nothing))
{
    rmq_posix_disk_rest(((DiskObject *)given)->disk);
    Py_RETURN_NONE;
}

static PyObject *disk_descriptors(PyObject *given, void *Py_UNUSED(closure))
{
    return PyLong_FromSize_t(rmq_posix_disk_descriptors(((DiskObject *)given)->disk));
}

static PyMethodDef disk_methods[] = {
    {"exists", disk_exists, METH_O, "exists(path, /)\n--\n\nWhether there is something."},
    {"is_directory", disk_is_directory, METH_O, "is_directory(path, /)\n--\n\nWhether it is one."},
    {"is_empty", disk_is_empty, METH_O, "is_empty(directory, /)\n--\n\nWhether it has no names in it."},
    {"modified_ms", disk_modified_ms, METH_O, "modified_ms(path, /)\n--\n\nWhen it was written last."},
    {"usage", disk_usage, METH_O, "usage(path, /)\n--\n\nAll bytes of its file system, and the free ones."},
    {"open", disk_open, METH_O, "open(path, /)\n--\n\nA PosixFile."},
    {"create", disk_create, METH_VARARGS, "create(path, size_bytes, reserve, /)\n--\n\nA PosixFile of zeros."},
    {"make_directory", disk_make_directory, METH_O, "make_directory(path, /)\n--\n\nWith what is missing above it."},
    {"remove", disk_remove, METH_O, "remove(path, /)\n--\n\nA file or an empty directory."},
    {"rename", disk_rename, METH_VARARGS, "rename(source, target, /)\n--\n\nReplaces the target."},
    {"start_flush", disk_start_flush, METH_O, "start_flush(directory, /)\n--\n\nA DiskWork for the names in it."},
    {"rest", disk_rest, METH_NOARGS, "rest()\n--\n\nCloses every descriptor that no flush needs."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef disk_properties[] = {
    {"descriptors", disk_descriptors, NULL, "How many are open.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(disk_doc, "PosixDisk(root, /, *, open_files_max=256, mapped_bytes=67108864, mapped_file_bytes_min=8388608)\n"
                       "--\n\n"
                       "Real files below a directory, without Python between them and a Store. One thread at a time.");

static PyType_Slot disk_slots[] = {
    {Py_tp_doc, (void *)disk_doc},
    {Py_tp_new, (void *)disk_new},
    {Py_tp_dealloc, (void *)disk_dealloc},
    {Py_tp_methods, disk_methods},
    {Py_tp_getset, disk_properties},
    {0, NULL},
};

static PyType_Spec disk_spec = {
    .name = "refmq_fast.PosixDisk",
    .basicsize = sizeof(DiskObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = disk_slots,
};

/* --- for bind_store.c and bind_job.c ------------------------------------------------------------------------------ */

rmq_posix_disk *rmq_posix_disk_of(PyObject *module, PyObject *disk)
{
    PyTypeObject *type = type_of(module, "PosixDisk");

    if (type == NULL) {
        PyErr_Clear();
        return NULL;
    }
    return Py_IS_TYPE(disk, type) ? ((DiskObject *)disk)->disk : NULL;
}

PyObject *rmq_new_disk_work(PyObject *module, PyObject *disk, PyObject *holder, const rmq_operation *operation)
{
    if (rmq_posix_disk_of(module, disk) == NULL) {
        PyErr_SetString(PyExc_TypeError, "it is no PosixDisk");
        return NULL;
    }
    return new_work((DiskObject *)disk, holder, operation);
}

int rmq_bind_disk_posix(PyObject *module)
{
    PyType_Spec *const specs[] = {&file_spec, &work_spec, &disk_spec};

    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        if (rmq_add_type(module, specs[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The module refmq_fast._native: multi-phase initialisation, no mutable statics. */
#include "bind_disk_posix.h"

int rmq_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    const int status = type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)type);

    Py_XDECREF(type);
    return status;
}

static int exec_module(PyObject *module)
{
    if (rmq_bind_crc32(module) < 0 || rmq_bind_trace(module) < 0 || rmq_bind_record(module) < 0 ||
        rmq_bind_job(module) < 0 || rmq_bind_disk_posix(module) < 0 || rmq_bind_store(module) < 0 ||
        rmq_bind_plane(module) < 0 || rmq_bind_notes(module) < 0 || rmq_bind_shell(module) < 0) {
        return -1;
    }
    return rmq_bind_frame(module) < 0 || rmq_bind_messages(module) < 0 || rmq_bind_maker(module) < 0 ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, (void *)exec_module},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "refmq_fast._native",
    .m_doc = "The C side of refmq_fast. Import refmq_fast instead.",
    .m_size = 0,
    .m_slots = module_slots,
};

/* Found by its name when Python imports the module; declared only to say that nothing else calls it. */
PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&module_definition);
}

/* Maker: makes instances of a frozen class with slots from all of its values, without its __init__.
 *
 * The __init__ of a frozen dataclass goes through object.__setattr__ for each field, which takes a microsecond for ten of
 * them; filling the slots takes a fifth of that. Only for classes that check nothing when they are made.
 */
#include "bind.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyTypeObject *kind;
    PyObject *slots; /* tuple of its member descriptors, in the order of the arguments */
} Maker;

static PyObject *maker_call(PyObject *self, PyObject *const *arguments, size_t flagged, PyObject *names)
{
    Maker *maker = (Maker *)self;
    const Py_ssize_t count = PyVectorcall_NARGS(flagged);
    PyObject *made;

    if (names != NULL || count != PyTuple_GET_SIZE(maker->slots)) {
        PyErr_Format(PyExc_TypeError, "a %s is made of %zd values, without their names", maker->kind->tp_name,
                     PyTuple_GET_SIZE(maker->slots));
        return NULL;
    }
    made = maker->kind->tp_alloc(maker->kind, 0);
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        PyObject *descriptor = PyTuple_GET_ITEM(maker->slots, i);

        if (Py_TYPE(descriptor)->tp_descr_set(descriptor, made, arguments[i]) < 0) {
            Py_CLEAR(made);
        }
    }
    return made;
}

static PyObject *slots_of(PyObject *kind, PyObject *names)
{
    PyObject *slots = PyTuple_New(PyTuple_GET_SIZE(names));

    for (Py_ssize_t i = 0; slots != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *descriptor = PyObject_GetAttr(kind, PyTuple_GET_ITEM(names, i));

        if (descriptor != NULL && !Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
            PyErr_Format(PyExc_TypeError, "%R is no slot", PyTuple_GET_ITEM(names, i));
            Py_CLEAR(descriptor);
        }
        if (descriptor == NULL) {
            Py_CLEAR(slots);
            break;
        }
        PyTuple_SET_ITEM(slots, i, descriptor);
    }
    return slots;
}

static PyObject *maker_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *parameters[] = {"", "", NULL};
    PyObject *kind, *names;
    Maker *maker;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!O!:Maker", parameters, &PyType_Type, &kind, &PyTuple_Type,
                                     &names)) {
        return NULL;
    }
    maker = (Maker *)type->tp_alloc(type, 0);
    if (maker == NULL) {
        return NULL;
    }
    maker->call = maker_call;
    maker->kind = (PyTypeObject *)Py_NewRef(kind);
    maker->slots = slots_of(kind, names);
    if (maker->slots == NULL) {
        Py_DECREF(maker);
        return NULL;
    }
    return (PyObject *)maker;
}

static int maker_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Maker *)self)->kind);
    Py_VISIT(((Maker *)self)->slots);
    return 0;
}

static void maker_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_XDECREF(((Maker *)self)->kind);
    Py_XDECREF(((Maker *)self)->slots);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef maker_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Maker, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(maker_doc, "Maker(kind, names, /)\n--\n\n"
                        "Called with a value for each of these slots, it makes an instance of kind without __init__.");

static PyType_Slot maker_slots[] = {
    {Py_tp_doc, (void *)maker_doc},
    {Py_tp_new, (void *)maker_new},
    {Py_tp_traverse, (void *)maker_traverse},
    {Py_tp_dealloc, (void *)maker_dealloc},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_members, maker_members},
    {0, NULL},
};

static PyType_Spec maker_spec = {
    .name = "refmq_fast.Maker",
    .basicsize = sizeof(Maker),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = maker_slots,
};

int rmq_bind_maker(PyObject *module)
{
    return rmq_add_type(module, &maker_spec);
}

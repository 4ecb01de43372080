/* Python's side of core/record.h and its kin, for tests and fuzzers that hold them beside the reference: same values,
 * same refusals. The data plane does not come this way. */
#include "bind.h"

#include <string.h>

#include "../core/batch.h"
#include "../core/hash.h"
#include "../core/message_id.h"
#include "../core/properties.h"
#include "../core/record.h"
#include "../core/scan.h"
#include "../core/utf8.h"
#include "raise.h"

static PyObject *bytes_of(const uint8_t *at, size_t size)
{
    return PyBytes_FromStringAndSize((const char *)at, (Py_ssize_t)size);
}

static PyObject *header_tuple(const rmq_record_header *header)
{
    return Py_BuildValue("(LkLLLLLLLy#LLy#LLLL)", header->size_bytes, (unsigned long)header->magic, header->body_crc,
                         header->queue_id, header->flag, header->queue_offset, header->physical_offset,
                         header->sys_flag, header->born_timestamp_ms, header->born_host.ip,
                         (Py_ssize_t)header->born_host.ip_bytes, header->born_host.port, header->store_timestamp_ms,
                         header->store_host.ip, (Py_ssize_t)header->store_host.ip_bytes, header->store_host.port,
                         header->reconsume_times, header->prepared_transaction_offset, header->body_bytes);
}

PyDoc_STRVAR(decode_record_doc, "decode_record(data, start, base, check_crc, /)\n--\n\n"
                                "The header of a record as a tuple, its topic, body and properties.");

static PyObject *decode_record(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *data;
    Py_ssize_t size, start;
    long long base;
    int check_crc;
    rmq_record_header header;
    rmq_record_parts parts;
    rmq_damage damage;
    const uint8_t *from;

    if (!PyArg_ParseTuple(arguments, "y#nLp:decode_record", &data, &size, &start, &base, &check_crc)) {
        return NULL;
    }
    if (start < 0 || start > size) {
        return PyErr_Format(PyExc_ValueError, "start is outside the data");
    }
    from = (const uint8_t *)data;
    if (rmq_decode_record(from, (size_t)size, (size_t)start, base, check_crc != 0, &header, &parts, &damage) != RMQ_OK) {
        return rmq_raise_damage("CorruptRecord", &damage);
    }
    return Py_BuildValue("(NNNN)", header_tuple(&header), bytes_of(from + parts.topic_at, parts.topic_end - parts.topic_at),
                         bytes_of(from + parts.body_at, parts.body_end - parts.body_at),
                         bytes_of(from + parts.properties_at, parts.end - parts.properties_at));
}

PyDoc_STRVAR(check_record_doc, "check_record(data, at, position, in_file, page_bytes, check_crc, /)\n--\n\n"
                               "The header of a record as a tuple, if it is as it was once written at its place.");

static PyObject *check_record(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *data;
    Py_ssize_t size, at;
    long long position, in_file, page_bytes;
    int check_crc;
    rmq_record_header header;
    rmq_damage damage;

    if (!PyArg_ParseTuple(arguments, "y#nLLLp:check_record", &data, &size, &at, &position, &in_file, &page_bytes,
                          &check_crc)) {
        return NULL;
    }
    if (at < 0 || at > size || page_bytes < 1) {
        return PyErr_Format(PyExc_ValueError, "at is outside the data, or a page has no bytes");
    }
    if (rmq_check_record((const uint8_t *)data, (size_t)size, (size_t)at, position, in_file, page_bytes, check_crc != 0,
                         &header, &damage) != RMQ_OK) {
        return rmq_raise_damage("CorruptRecord", &damage);
    }
    return header_tuple(&header);
}

PyDoc_STRVAR(scan_records_doc, "scan_records(data, position, in_file, page_bytes, check_crc, /)\n--\n\n"
                               "How many bytes of sound records follow each other, how many they are, and the store\n"
                               "time of the last one.");

static PyObject *scan_records(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer data;
    long long position, in_file, page_bytes;
    int check_crc;
    int64_t records = 0, last_store_ms = 0;
    size_t end;

    if (!PyArg_ParseTuple(arguments, "y*LLLp:scan_records", &data, &position, &in_file, &page_bytes, &check_crc)) {
        return NULL;
    }
    if (page_bytes < 1) {
        PyBuffer_Release(&data);
        return PyErr_Format(PyExc_ValueError, "a page has no bytes");
    }
    Py_BEGIN_ALLOW_THREADS
    end = rmq_scan_records(data.buf, (size_t)data.len, position, in_file, page_bytes, check_crc != 0, &records,
                           &last_store_ms);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    return Py_BuildValue("(nLL)", (Py_ssize_t)end, records, last_store_ms);
}

PyDoc_STRVAR(decode_batch_doc, "decode_batch(data, /)\n--\n\n"
                               "Flag, body and properties of each message of a batch send.");

static PyObject *decode_batch(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *data;
    Py_ssize_t size;
    size_t at = 0;
    PyObject *found;

    if (!PyArg_ParseTuple(arguments, "y#:decode_batch", &data, &size)) {
        return NULL;
    }
    found = PyList_New(0);
    while (found != NULL && at < (size_t)size) {
        rmq_batched message;
        rmq_damage damage;
        PyObject *one;
        int failed;

        if (rmq_next_batched((const uint8_t *)data, (size_t)size, &at, &message, &damage) != RMQ_OK) {
            Py_DECREF(found);
            return rmq_raise_damage("WireError", &damage);
        }
        one = Py_BuildValue("(iNN)", (int)message.flag, bytes_of(message.body.at, message.body.size),
                            bytes_of(message.properties.at, message.properties.size));
        failed = one == NULL || PyList_Append(found, one) < 0;
        Py_XDECREF(one);
        if (failed) {
            Py_CLEAR(found);
        }
    }
    return found;
}

PyDoc_STRVAR(string_hash_doc, "string_hash(text, /)\n--\n\nJava's hash of a text in UTF-8.");

static PyObject *string_hash(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *text;
    Py_ssize_t size;

    if (!PyArg_ParseTuple(arguments, "y#:string_hash", &text, &size)) {
        return NULL;
    }
    return PyLong_FromLong(rmq_string_hash(0, (const uint8_t *)text, (size_t)size));
}

PyDoc_STRVAR(key_hash_doc, "key_hash(topic, key, /)\n--\n\nThe hash of a key in the index, of texts in UTF-8.");

static PyObject *key_hash(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *topic, *key;
    Py_ssize_t topic_size, key_size;

    if (!PyArg_ParseTuple(arguments, "y#y#:key_hash", &topic, &topic_size, &key, &key_size)) {
        return NULL;
    }
    return PyLong_FromLong(rmq_key_hash((const uint8_t *)topic, (size_t)topic_size, (const uint8_t *)key, (size_t)key_size));
}

static PyObject *text_or_none(rmq_text text)
{
    if (text.at == NULL) {
        Py_RETURN_NONE;
    }
    return bytes_of(text.at, text.size);
}

PyDoc_STRVAR(find_properties_doc, "find_properties(wire, /)\n--\n\n"
                                  "TAGS, KEYS, UNIQ_KEY and DELAY as they stand in the wire form, or None; and what a\n"
                                  "trace takes for the unique key.");

static PyObject *find_properties(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *wire;
    Py_ssize_t size;
    rmq_known_properties known;
    rmq_text properties;

    if (!PyArg_ParseTuple(arguments, "y#:find_properties", &wire, &size)) {
        return NULL;
    }
    properties = (rmq_text){(const uint8_t *)wire, (size_t)size};
    rmq_find_properties(properties, &known);
    return Py_BuildValue("(NNNNN)", text_or_none(known.tags), text_or_none(known.keys), text_or_none(known.unique_key),
                         text_or_none(known.delay), text_or_none(rmq_unique_key(properties)));
}

PyDoc_STRVAR(replace_utf8_doc, "replace_utf8(text, /)\n--\n\n"
                               "The same text with replacement characters for what is not UTF-8, and where that begins.");

static PyObject *replace_utf8(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *text;
    Py_ssize_t size;
    PyObject *replaced;

    if (!PyArg_ParseTuple(arguments, "y#:replace_utf8", &text, &size)) {
        return NULL;
    }
    replaced = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)rmq_utf8_replace((const uint8_t *)text, (size_t)size, NULL));
    if (replaced == NULL) {
        return NULL;
    }
    (void)rmq_utf8_replace((const uint8_t *)text, (size_t)size, (uint8_t *)PyBytes_AS_STRING(replaced));
    return Py_BuildValue("(Nn)", replaced, (Py_ssize_t)rmq_utf8_valid_to((const uint8_t *)text, (size_t)size));
}

PyDoc_STRVAR(message_id_doc, "message_id(ip, port, physical_offset, /)\n--\n\nThe id that a broker gives a message.");

static PyObject *message_id(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *ip;
    Py_ssize_t size;
    int port;
    long long physical_offset;
    rmq_host host = {.ip_bytes = 0};
    char text[RMQ_MESSAGE_ID_CHARS_MAX];

    if (!PyArg_ParseTuple(arguments, "y#iL:message_id", &ip, &size, &port, &physical_offset)) {
        return NULL;
    }
    if (size != 4 && size != 16) {
        return PyErr_Format(PyExc_ValueError, "an address has 4 or 16 bytes");
    }
    memcpy(host.ip, ip, (size_t)size);
    host.ip_bytes = (uint8_t)size;
    host.port = port;
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)rmq_message_id(&host, physical_offset, text));
}

PyDoc_STRVAR(parse_message_id_doc, "parse_message_id(text, /)\n--\n\n"
                                   "Address, port and physical offset of an id; None for what is no id.");

static PyObject *parse_message_id(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *text;
    Py_ssize_t size;
    rmq_host host;
    int64_t physical_offset;

    if (!PyArg_ParseTuple(arguments, "s#:parse_message_id", &text, &size)) {
        return NULL;
    }
    if (!rmq_parse_message_id(text, (size_t)size, &host, &physical_offset)) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(NLL)", bytes_of(host.ip, host.ip_bytes), host.port, physical_offset);
}

static PyMethodDef record_methods[] = {
    {"decode_record", decode_record, METH_VARARGS, decode_record_doc},
    {"check_record", check_record, METH_VARARGS, check_record_doc},
    {"scan_records", scan_records, METH_VARARGS, scan_records_doc},
    {"decode_batch", decode_batch, METH_VARARGS, decode_batch_doc},
    {"string_hash", string_hash, METH_VARARGS, string_hash_doc},
    {"key_hash", key_hash, METH_VARARGS, key_hash_doc},
    {"find_properties", find_properties, METH_VARARGS, find_properties_doc},
    {"replace_utf8", replace_utf8, METH_VARARGS, replace_utf8_doc},
    {"message_id", message_id, METH_VARARGS, message_id_doc},
    {"parse_message_id", parse_message_id, METH_VARARGS, parse_message_id_doc},
    {NULL, NULL, 0, NULL},
};

int rmq_bind_record(PyObject *module)
{
    return PyModule_AddFunctions(module, record_methods);
}

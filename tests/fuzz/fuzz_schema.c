/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as each message that a stranger can send: the first byte chooses the type, the second
 * whether the rest is packed or JSON. What is read reads back as itself in both forms. */
#include "common/json.h"
#include "common/message.h"
#include "proto/berth.pb-c.h"

#define MEMORY_MAX (4u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCServiceDescriptor *const services[] = {
    &berth__jobs__descriptor,  &berth__blobs__descriptor,  &berth__images__descriptor,
    &berth__nodes__descriptor, &berth__server__descriptor, &berth__sessions__descriptor,
    &berth__agent__descriptor,
};
static const ProtobufCMessageDescriptor *const others[] = {
    &berth__frame__descriptor,       &berth__from_guest__descriptor,
    &berth__to_guest__descriptor,    &berth__job__descriptor,
    &berth__event__descriptor,       &berth__stored_task__descriptor,
    &berth__stored_node__descriptor,
};

static const ProtobufCMessageDescriptor *choose(uint8_t number)
{
    unsigned total = G_N_ELEMENTS(others);
    for (gsize i = 0; i < G_N_ELEMENTS(services); i++)
        total += services[i]->n_methods;
    unsigned index = number % total;
    if (index < G_N_ELEMENTS(others))
        return others[index];
    index -= (unsigned)G_N_ELEMENTS(others);
    gsize service = 0;
    for (; index >= services[service]->n_methods; service++)
        index -= services[service]->n_methods;
    return services[service]->methods[index].input;
}

static void check_packed(const ProtobufCMessage *message)
{
    g_autoptr(ProtobufCMessage) copy = berth_message_copy(message);
    g_assert(berth_message_equal(copy, message));
}

static void check_json(const ProtobufCMessage *message, gboolean must_read_back)
{
    for (int flags = 0; flags < 4; flags++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = berth_json_print_message(message, (BerthJsonFlags)flags);
        g_autoptr(ProtobufCMessage) back =
            berth_json_parse_message(message->descriptor, text, strlen(text), &error);
        if (must_read_back && back == NULL)
            g_error("%s: %s", error->message, text);
        if (must_read_back)
            g_assert(berth_message_equal(back, message));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const ProtobufCMessageDescriptor *descriptor = choose(data[0]);
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) message = NULL;
    gboolean is_json = (data[1] & 1) != 0;
    if (is_json)
        message = berth_json_parse_message(descriptor, (const char *)data + 2, size - 2, &error);
    else
        message =
            berth_message_unpack_limited(descriptor, data + 2, size - 2, MEMORY_MAX, NULL, &error);
    g_assert((message == NULL) == (error != NULL));
    if (message == NULL)
        return 0;
    check_packed(message);
    /* A packed message may have fields and enum values of a newer schema, which JSON cannot say. */
    check_json(message, is_json);
    return 0;
}

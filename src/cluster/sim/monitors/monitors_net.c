/* monitors_net.c - a network that loses, doubles, delays and cuts, and somebody on it who records.
 *
 * Whoever records has no key. He can send what he has heard again, to anybody and much later, and
 * make things up. What he plays again counts as a recording only where the original can't count any
 * more: it was heard, or it is brought to another process, or to another incarnation of the same.
 */
#include "cluster/sim/monitors/monitors_cluster.h"

#include <string.h>

#include "engine/base/memory.h"

enum { FIRST_PACKETS = 256, PACKETS_MAX = 1 << 16, RECORD_PER_MILLE = 30 };

struct monitor_address monitors_address(enum monitors_door door, uint32_t index, uint32_t port)
{
    struct monitor_address address = {.size = 6};
    address.bytes[0] = (uint8_t)door;
    address.bytes[1] = (uint8_t)index;
    for (uint32_t i = 0; i < 4; i++) {
        address.bytes[2 + i] = (uint8_t)(port >> (8 * i));
    }
    return address;
}

bool monitors_net_init(struct monitors_cluster *cluster)
{
    struct monitors_net *net = &cluster->net;
    net->first_free = UINT32_MAX;
    for (uint32_t i = 0; i < DATAGRAM_KEY_BYTES; i++) {
        net->key.bytes[i] = (uint8_t)world_below(&cluster->world, 256);
        net->wrong_key.bytes[i] = (uint8_t)world_below(&cluster->world, 256);
    }
    net->scratch.limit = (size_t)2 * DATAGRAM_BYTES_MAX;
    return buf_reserve(&net->scratch, DATAGRAM_BYTES_MAX);
}

void monitors_net_done(struct monitors_cluster *cluster)
{
    struct monitors_net *net = &cluster->net;
    memory_free(NULL, net->packets, net->packet_capacity * sizeof *net->packets);
    buf_done(&net->scratch);
}

/* ---- packets ---- */

static bool grow(struct monitors_cluster *cluster)
{
    struct monitors_net *net = &cluster->net;
    uint32_t old = net->packet_capacity;
    uint32_t capacity = old == 0 ? FIRST_PACKETS : old * 2;
    if (capacity > PACKETS_MAX) {
        world_fail(&cluster->world, "too many datagrams are on their way");
        return false;
    }
    struct monitors_packet *packets =
        memory_resize(NULL, net->packets, old * sizeof *packets, capacity * sizeof *packets);
    if (packets == NULL) {
        world_fail(&cluster->world, "out of memory");
        return false;
    }
    for (uint32_t i = old; i < capacity; i++) {
        packets[i].next_free = i + 1 < capacity ? i + 1 : UINT32_MAX;
    }
    net->packets = packets;
    net->packet_capacity = capacity;
    net->first_free = old;
    return true;
}

void monitors_packet_free(struct monitors_cluster *cluster, uint32_t packet)
{
    cluster->net.packets[packet].next_free = cluster->net.first_free;
    cluster->net.first_free = packet;
}

/* ---- delivery ---- */

static void arrive_timer(void *context, uint64_t number)
{
    struct monitors_cluster *cluster = context;
    uint32_t index = (uint32_t)number;
    struct monitors_packet *packet = &cluster->net.packets[index];
    enum monitors_door door = (enum monitors_door)packet->to.bytes[0];
    uint32_t target = packet->to.bytes[1];
    if (door == MONITORS_DOOR_OPERATOR) {
        struct datagram datagram;
        struct error err;
        struct text bytes = {(const char *)packet->bytes, packet->size_bytes};
        if (datagram_decode(bytes, &cluster->net.key, &datagram, &err) == STATUS_OK) {
            monitors_operator_hear(&cluster->operators[target], &datagram);
        }
        monitors_packet_free(cluster, index);
        return;
    }
    struct monitors_process *process = &cluster->processes[target];
    struct monitor_address address =
        monitors_address(door, target, door == MONITORS_DOOR_HEART ? process->port : 0);
    if (!process->is_up || memcmp(address.bytes, packet->to.bytes, sizeof address.bytes) != 0) {
        monitors_packet_free(cluster, index);
        return;
    }
    monitors_process_arrive(process, door, index);
}

static void put(struct monitors_cluster *cluster, const struct monitors_packet *packet)
{
    struct monitors_net *net = &cluster->net;
    struct world *world = &cluster->world;
    if (net->first_free == UINT32_MAX && !grow(cluster)) return;
    uint32_t index = net->first_free;
    struct monitors_packet *copy = &net->packets[index];
    net->first_free = copy->next_free;
    memcpy(copy, packet, offsetof(struct monitors_packet, bytes) + packet->size_bytes);
    uint64_t delay_ms = world_below(world, net->delay_ms + 1);
    if (world_chance(world, net->late_per_mille)) delay_ms += world_below(world, net->late_ms + 1);
    world_after(world, delay_ms, arrive_timer, cluster, index);
}

/* ---- recordings ---- */

static void record(struct monitors_cluster *cluster, struct monitors_packet *packet,
                   enum datagram_kind kind)
{
    struct monitors_net *net = &cluster->net;
    /* Orders are what an enemy would want, and there are few. */
    bool is_order = kind == DATAGRAM_ORDER;
    if (!is_order && !world_chance(&cluster->world, RECORD_PER_MILLE)) return;
    uint32_t half = MONITORS_RECORDS_MAX / 2;
    packet->record = ++net->recorded_count;
    uint32_t place = (uint32_t)(packet->record % half) + (is_order ? half : 0);
    net->records[place] = (struct monitors_record){.packet = *packet};
    if (place >= net->record_count) net->record_count = place + 1;
}

void monitors_recording_heard(struct monitors_cluster *cluster, uint64_t recording)
{
    for (uint32_t i = 0; i < cluster->net.record_count && recording != 0; i++) {
        struct monitors_record *chosen = &cluster->net.records[i];
        if (chosen->packet.record == recording) chosen->was_heard = true;
    }
}

void monitors_replay(struct monitors_cluster *cluster, uint32_t place)
{
    struct monitors_net *net = &cluster->net;
    struct world *world = &cluster->world;
    struct monitors_record *chosen = &net->records[place];
    struct monitors_packet packet = chosen->packet;
    if (packet.size_bytes == 0 || packet.to.bytes[0] == MONITORS_DOOR_OPERATOR) return;
    struct monitors_process *meant = &cluster->processes[packet.to.bytes[1]];
    struct monitors_process *target = meant;
    if (world_chance(world, 200))
        target = &cluster->processes[world_below(world, cluster->process_count)];
    enum monitors_door door = (enum monitors_door)packet.to.bytes[0];
    if (!monitors_is_monitor(target)) door = MONITORS_DOOR_HEART;
    /* Whoever records finds out where the node's socket is now. */
    packet.to =
        monitors_address(door, target->index, door == MONITORS_DOOR_HEART ? target->port : 0);
    bool is_old = target != meant || chosen->was_heard || packet.receiver_run != target->run;
    packet.origin = is_old ? MONITORS_REPLAYED : MONITORS_GENUINE;
    if (world_is_traced(world)) {
        world_trace(world, "net: a recording is played to %s", target->name);
    }
    put(cluster, &packet);
}

void monitors_forge(struct monitors_cluster *cluster)
{
    struct monitors_net *net = &cluster->net;
    struct world *world = &cluster->world;
    struct monitors_process *target =
        &cluster->processes[world_below(world, cluster->process_count)];
    if (net->record_count == 0) return;
    struct monitors_packet packet = net->records[world_below(world, net->record_count)].packet;
    if (packet.size_bytes == 0) return;
    enum monitors_door door =
        monitors_is_monitor(target) ? MONITORS_DOOR_MAIN : MONITORS_DOOR_HEART;
    packet.to =
        monitors_address(door, target->index, door == MONITORS_DOOR_HEART ? target->port : 0);
    packet.origin = MONITORS_FORGED;
    struct datagram datagram;
    struct error err;
    struct text bytes = {(const char *)packet.bytes, packet.size_bytes};
    if (world_chance(world, 500)) {
        packet.bytes[world_below(world, packet.size_bytes)] ^=
            (uint8_t)world_between(world, 1, 255);
    } else if (datagram_decode(bytes, &net->key, &datagram, &err) == STATUS_OK) {
        datagram.sequence += 1000;
        datagram_encode(&datagram, &net->wrong_key, &net->scratch);
        memcpy(packet.bytes, net->scratch.bytes, net->scratch.size);
        packet.size_bytes = (uint32_t)net->scratch.size;
    }
    put(cluster, &packet);
}

/* ---- sending ---- */

void monitors_send(struct monitors_cluster *cluster, const struct monitors_process *sender,
                   struct monitor_address from, struct monitor_address to,
                   const struct datagram *datagram)
{
    struct monitors_net *net = &cluster->net;
    struct world *world = &cluster->world;
    struct monitors_packet packet;
    cluster->report.message_count++;
    packet.from = from;
    packet.to = to;
    packet.origin = MONITORS_GENUINE;
    packet.sender = sender != NULL ? sender->index : UINT32_MAX;
    packet.sender_run = sender != NULL ? sender->run : 0;
    packet.receiver_run = 0;
    packet.record = 0;
    bool to_operator = to.bytes[0] == MONITORS_DOOR_OPERATOR;
    bool is_own = !to_operator && sender != NULL && to.bytes[1] == sender->index;
    datagram_encode(datagram, &net->key, &net->scratch);
    if (net->scratch.failed || net->scratch.size > DATAGRAM_BYTES_MAX) {
        world_fail(world, "a datagram of kind %d is too long", (int)datagram->kind);
        return;
    }
    packet.size_bytes = (uint32_t)net->scratch.size;
    memcpy(packet.bytes, net->scratch.bytes, net->scratch.size);
    if (!to_operator) {
        packet.receiver_run = cluster->processes[to.bytes[1]].run;
        if (!cluster->faults_are_over) record(cluster, &packet, datagram->kind);
    }
    if (!is_own) {
        if (sender != NULL && !to_operator && net->cut[sender->index][to.bytes[1]]) return;
        if (net->holds_orders && datagram->kind == DATAGRAM_ORDER) {
            net->cut[packet.sender][to.bytes[1]] = true; /* Nothing may overtake it. */
            return;
        }
        if (world_chance(world, net->lose_per_mille)) return;
        if (world_chance(world, net->double_per_mille)) put(cluster, &packet);
    }
    put(cluster, &packet);
}

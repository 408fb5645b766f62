/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_driver.c - simulated drivers: they start and kill, late, in vain, or not at all.
 *
 * Terms fence nodes, not drivers: a driver carries out a command of a minute ago. A node's folder
 * has a lock, so a second process of one name ends at once, and a start fails while one runs.
 */
#include "cluster/sim/monitors/monitors_cluster.h"

/* A real driver gives up at its own timeout. */
enum { DRIVE_LIMIT_MS = 60000, DRIVE_SLOW_MS = 3000, DRIVE_CALM_MS = 50, POLL_MS = 50 };

/* Tells the monitor; one that is paused or hangs hears it later. */
static void driven_timer(void *context, uint64_t number)
{
    struct monitors_cluster *cluster = context;
    struct monitors_drive *drive = &cluster->drives[number];
    struct monitors_process *monitor = monitors_monitor(cluster, drive->monitor);
    struct error err;
    if (monitor->is_up && monitor->run == drive->monitor_run) {
        if (monitor->is_paused || monitor->is_hung) {
            world_after(&cluster->world, POLL_MS, driven_timer, cluster, number);
            return;
        }
        if (drive->trouble != NULL) error_write(&err, STATUS_IO, "%s", drive->trouble);
        monitors_process_driven(monitor, drive->node, drive->trouble != NULL ? &err : NULL);
    }
    drive->is_used = false;
}

static void finish(struct monitors_cluster *cluster, uint64_t number, const char *trouble)
{
    cluster->drives[number].trouble = trouble;
    driven_timer(cluster, number);
}

static uint64_t drive_delay(struct monitors_cluster *cluster)
{
    struct world *world = &cluster->world;
    const struct monitors_settings *settings = &cluster->settings;
    if (cluster->faults_are_over) return world_between(world, 1, DRIVE_CALM_MS);
    if (world_chance(world, settings->drive_hang_per_mille)) {
        return world_between(world, DRIVE_SLOW_MS, DRIVE_LIMIT_MS);
    }
    if (world_chance(world, settings->drive_slow_per_mille)) {
        return world_between(world, 1, DRIVE_SLOW_MS);
    }
    return world_between(world, 1, settings->drive_ms);
}

static void drive_timer(void *context, uint64_t number)
{
    struct monitors_cluster *cluster = context;
    struct monitors_drive *drive = &cluster->drives[number];
    struct monitors_process *target = &cluster->processes[drive->node];
    struct monitors_process *monitor = monitors_monitor(cluster, drive->monitor);
    /* A driver is a thread of its monitor, which may be paused. One whose monitor has died
     * continues, as a service of its host would. */
    if (monitor->is_up && monitor->run == drive->monitor_run && monitor->is_paused) {
        world_after(&cluster->world, POLL_MS, drive_timer, cluster, number);
        return;
    }
    /* Some fail before they have acted, some after. */
    if (drive->fails &&
        (cluster->driver_is_broken[drive->node] || world_chance(&cluster->world, 500))) {
        finish(cluster, number, "the driver failed");
        return;
    }
    if (drive->kind == DRIVE_RESTART && !drive->has_killed) {
        monitors_process_kill(target);
        drive->has_killed = true;
        world_after(&cluster->world, world_between(&cluster->world, 1, DRIVE_CALM_MS), drive_timer,
                    cluster, number);
        return;
    }
    if (drive->fails) {
        finish(cluster, number, "the driver failed to start it");
    } else if (target->is_up) {
        finish(cluster, number, "it runs already");
    } else {
        monitors_process_start(target);
        finish(cluster, number, NULL);
    }
}

void monitors_drive(struct monitors_process *monitor, const struct monitor_effect *effect)
{
    struct monitors_cluster *cluster = monitor->cluster;
    struct world *world = &cluster->world;
    uint32_t place = 0;
    while (place < MONITORS_DRIVES_MAX && cluster->drives[place].is_used) {
        place++;
    }
    if (place == MONITORS_DRIVES_MAX) {
        world_fail(world, "the drivers are told more than %u things at once",
                   (unsigned)MONITORS_DRIVES_MAX);
        return;
    }
    bool fails =
        !cluster->faults_are_over && (cluster->driver_is_broken[effect->node] ||
                                      world_chance(world, cluster->settings.drive_fail_per_mille));
    cluster->drives[place] = (struct monitors_drive){.is_used = true,
                                                     .monitor = monitors_position(monitor),
                                                     .monitor_run = monitor->run,
                                                     .node = effect->node,
                                                     .kind = effect->drive,
                                                     .fails = fails,
                                                     .is_old = !cluster->faults_are_over};
    cluster->report.restart_count++;
    world_after(world, drive_delay(cluster), drive_timer, cluster, place);
}

bool monitors_drives_are_done(const struct monitors_cluster *cluster)
{
    for (uint32_t i = 0; i < MONITORS_DRIVES_MAX; i++) {
        if (cluster->drives[i].is_used && cluster->drives[i].is_old) return false;
    }
    return true;
}

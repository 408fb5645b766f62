# SPDX-License-Identifier: Apache-2.0
# systemctl.sh - as much of systemctl as the documents use, for tests without systemd.
#
# Units of a template are started by its ExecStart, as its User, with its StateDirectory, and again
# when they fail; all else of the unit is checked elsewhere, by systemd-analyze. Of other units it says that all is well.
# STAND_IN is a folder for process numbers and output.
set -eu

action=$1
shift
now=false
names=
for word; do
    case $word in
    --now) now=true ;;
    -*) ;;
    *) names="$names ${word%.service}" ;;
    esac
done

value() # KEY of $unit
{
    sed -n "s/^$1=//p" "$unit"
}

# A unit is a process group.
is_up()
{
    [ -e "$STAND_IN/$name.pid" ] && kill -s 0 -- "-$(cat "$STAND_IN/$name.pid")" 2>/dev/null
}

# Restart=on-failure, RestartSec=1.
start()
{
    ! is_up || return 0
    user=$(value User)
    install -d -o "$user" -g "$user" "/var/lib/$(value StateDirectory)"
    # shellcheck disable=SC2046 # The command line is meant to be split.
    setsid sh -c 'until "$@"; do sleep 1; done' sh \
        setpriv --reuid="$user" --regid="$(value Group)" --clear-groups --no-new-privs env -i \
        HOME="$(getent passwd "$user" | cut -d: -f6)" PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin \
        $(value ExecStart | sed "s/%i/${name#*@}/g") >"$STAND_IN/$name.out" 2>&1 &
    echo $! >"$STAND_IN/$name.pid"
}

stop()
{
    ! is_up || kill -- "-$(cat "$STAND_IN/$name.pid")"
    while is_up; do
        sleep 0.1
    done
}

for name in $names; do
    unit=/etc/systemd/system/${name%%@*}@.service
    case $name in
    *@*) ;;
    *) continue ;;
    esac
    [ -e "$unit" ] || {
        echo "Unit $name.service not found." >&2
        exit 5
    }
    case $action in
    start) start ;;
    stop) stop ;;
    restart)
        stop
        start
        ;;
    enable) ! $now || start ;;
    disable) ! $now || stop ;;
    status) is_up ;;
    *)
        echo "systemctl.sh does not know '$action'" >&2
        exit 1
        ;;
    esac
done

#!/bin/sh
# Compares a group of RAM drives served over NBD with nbdkit's memory plugin: the same client (fio)
# over Unix sockets, in alternating runs, so that a busy machine disturbs both alike.
#   nbd_ratio.sh WARPRAID_BENCH [SECONDS] [ROUNDS]
# with the path of the program warpraid-bench; 5 seconds and 5 rounds unless given. Environment:
#   NBD_RATIO_RW, _BS, _DEPTH, _JOBS   randread, 4k, 32, 1
#   NBD_RATIO_GROUP                    "--level raid5 --drives ram:5x128M"
#   NBD_RATIO_PLACES=0                 let the scheduler place client and servers; otherwise, given
#                                      enough processors, the client gets the first ones, one for
#                                      each job, and both servers the others, so that a server is
#                                      not measured by how often it shares a processor with its client
#   NBD_RATIO_MIN                      exit with 1 when the ratio of the medians is below (1.5)
# Columns: I/O operations per second, and microseconds of processor time per operation, of the
# server alone and of its client. The machine should have nothing else to do: a server with many
# threads gets a larger share of a busy one. The second ratio, of the processor time that server and
# client spend on an operation, does not depend on that: it is the one to expect when the
# processors are what limits.
set -eu

program=${1:?usage: nbd_ratio.sh WARPRAID_BENCH [SECONDS] [ROUNDS]}
seconds=${2:-5}
rounds=${3:-5}
size=$((256 * 1024 * 1024))

for tool in fio nbdkit nbdinfo nbdcopy; do
    command -v "$tool" >/dev/null || { echo "nbd_ratio.sh: $tool is not installed" >&2; exit 77; }
done

jobs=${NBD_RATIO_JOBS:-1}
client_places=
server_places=
if [ "${NBD_RATIO_PLACES:-1}" != 0 ] && [ "$(nproc)" -ge $((jobs + 2)) ]; then
    client_places="taskset -c 0-$((jobs - 1))"
    server_places="taskset -c $jobs-$(($(nproc) - 1))"
fi

work=$(mktemp -d)
ours_pid=
theirs_pid=
finish() {
    for pid in $ours_pid $theirs_pid; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT INT TERM

# shellcheck disable=SC2086 # lists of words
$server_places "$program" serve "$work/ours.sock" ${NBD_RATIO_GROUP:---level raid5 --drives ram:5x128M} &
ours_pid=$!
$server_places nbdkit --foreground --unix "$work/theirs.sock" memory "size=$size" &
theirs_pid=$!
ours_uri="nbd+unix:///bench?socket=$work/ours.sock"
theirs_uri="nbd+unix:///?socket=$work/theirs.sock"

# Both serve the same bytes: memory that was never written would be read from nowhere.
head -c "$size" /dev/urandom >"$work/image"
for uri in "$ours_uri" "$theirs_uri"; do
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        nbdinfo --size "$uri" >/dev/null 2>&1 && break
        sleep 0.3
    done
    nbdcopy "$work/image" "$uri"
done
rm "$work/image"

# Processor time in ticks: of a process, or of this shell's children that have ended.
ticks_of() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }
ticks_of_children() { awk '{ sub(/.*\) /, ""); print $14 + $15 }' "/proc/$$/stat"; }
tick_us=$((1000000 / $(getconf CLK_TCK)))

# measure NAME PID URI SECONDS: appends "iops server_us client_us" to the file NAME.
measure() {
    server_before=$(ticks_of "$2")
    client_before=$(ticks_of_children)
    $client_places fio --name=ratio --ioengine=nbd --uri="$3" --rw="${NBD_RATIO_RW:-randread}" \
        --bs="${NBD_RATIO_BS:-4k}" --iodepth="${NBD_RATIO_DEPTH:-32}" \
        --numjobs="$jobs" --group_reporting --time_based --runtime="$4" \
        --size="$size" --randseed=7 --output-format=terse --terse-version=3 >"$work/fio"
    server_ticks=$(($(ticks_of "$2") - server_before))
    client_ticks=$(($(ticks_of_children) - client_before))
    awk -F';' -v server=$((server_ticks * tick_us)) -v client=$((client_ticks * tick_us)) \
        '$1 == 3 { iops = $8 + $49;
                   operations = iops * ($9 + $50) / 1000
                   printf "%d %.2f %.2f\n", iops, server / operations, client / operations }' \
        "$work/fio" >>"$work/$1"
}
median() { awk -v field="$2" '{ print $field }' "$work/$1" | sort -n |
    awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
row() { printf '%-8s %10s %9s %9s   %10s %9s %9s\n' "$@"; }

# One short run of each that does not count.
measure warm "$ours_pid" "$ours_uri" 1
measure warm "$theirs_pid" "$theirs_uri" 1

row round warpraid server client nbdkit server client
round=1
while [ "$round" -le "$rounds" ]; do
    measure ours "$ours_pid" "$ours_uri" "$seconds"
    measure theirs "$theirs_pid" "$theirs_uri" "$seconds"
    row "$round" $(tail -n 1 "$work/ours") $(tail -n 1 "$work/theirs")
    round=$((round + 1))
done
row median "$(median ours 1)" "$(median ours 2)" "$(median ours 3)" \
    "$(median theirs 1)" "$(median theirs 2)" "$(median theirs 3)"
awk -v ours="$(median ours 1)" -v theirs="$(median theirs 1)" -v least="${NBD_RATIO_MIN:-1.5}" \
    -v our_us="$(median ours 2) $(median ours 3)" -v their_us="$(median theirs 2) $(median theirs 3)" \
    'BEGIN { split(our_us, a, " "); split(their_us, b, " ")
             printf "ratio of operations per second: %.2f (at least %s is wanted)\n", ours / theirs, least
             printf "ratio of processor time per operation: %.2f\n", (b[1] + b[2]) / (a[1] + a[2])
             exit ours < theirs * least }'

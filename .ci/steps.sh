# The steps of .ci/run. Each leaves a line `passed failed skipped name` in $counts; a step that ends badly
# without having counted a failure counts as one.

# Programs whose tests start threads of their own. The thread sanitizer does not see the kernel's side
# of io_uring, so the others would only be slow. PROGRAM:FILTER runs a part: every test of control_test
# has the same threads, and they move a hundred MiB each.
tsan_targets="base_test io_test nbd_negotiation_test nbd_transmission_test nbd_lifecycle_test api_test control_test:Service.Re*:Undo.LeavesEvery*"

seconds_left() {
    echo $((budget_seconds - ($(date +%s) - started)))
}

# Runs a command that may take what is left of the budget, and at least a minute.
within_budget() {
    left=$(seconds_left)
    [ "$left" -ge 60 ] || left=60
    timeout --kill-after=20 "$left" "$@"
}

record_failure() {
    if ! awk -v name="$1" '$4 == name && $2 > 0 { found = 1 } END { exit !found }' "$counts"; then
        echo "0 1 0 $1" >>"$counts"
    fi
}

step_test() {
    WARPRAID_COUNTS_NAME=test within_budget make test
}

step_asan() {
    within_budget cmake --preset asan || return 1
    within_budget cmake --build --preset asan -j "$(nproc)" || return 1
    WARPRAID_COUNTS_NAME=asan within_budget \
        python3 .ci/run_ctest.py --preset asan -L '^(unit|property|fuzz-replay)$'
}

step_tsan() {
    within_budget cmake --preset tsan || return 1
    known=$(cmake --build --preset tsan --target help | sed 's/:.*//')
    targets=
    for target in $(echo "$tsan_targets" | sed 's/:[^ ]*//g'); do
        if echo "$known" | grep -qx "$target"; then
            targets="$targets $target"
        else
            echo "there is no target $target: correct tsan_targets in .ci/steps.sh"
            return 1
        fi
    done
    # shellcheck disable=SC2086 # a list of words
    within_budget cmake --build --preset tsan -j "$(nproc)" --target $targets || return 1
    failed=0
    passed=0
    set -f # filters are not file names
    for target in $tsan_targets; do
        case $target in *:*) filter=${target#*:} ;; *) filter='*' ;; esac
        if within_budget "build/tsan/tests/${target%%:*}" --gtest_brief=1 --gtest_filter="$filter"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED under the thread sanitizer: $target" | tee -a "$failures"
        fi
    done
    set +f
    echo "$passed $failed 0 tsan" >>"$counts"
}

step_static() {
    left=$(seconds_left)
    if [ "$left" -lt 60 ]; then
        echo "SKIPPED: no time is left for clang-tidy"
        echo "0 0 1 static" >>"$counts"
        return 0
    fi
    # `make test` has configured this build: its compile commands are what the sources are read with.
    python3 tidy/clang_tidy.py --build build/release --seconds $((left - 30)) || return 1
    echo "1 0 0 static" >>"$counts"
}

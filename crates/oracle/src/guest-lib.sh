# Words for jobs in the guest. KEY names an array of this boot; what is found out about it goes to
# `results` as KEY.what=value. A word that fails ends the job (set -e).
set -eEuo pipefail
trap 'echo "job failed (rc $?) at: $BASH_COMMAND"' ERR
declare -A md
md_next=0

# pause SECONDS: a sleep without a program, whose start would cost a guest more than a short pause.
mkfifo "$TMPDIR/nothing"
exec {nothing}<>"$TMPDIR/nothing"
pause() { read -rt "$1" -u "$nothing" || true; }

say() { echo "$1=$2" >>results; }

# A program's start costs a guest more than the work of most of them, so the shell does what it can do itself.

# say_text KEY FILE: the text of a file in one line.
say_text() {
    local text
    text=$(<"$2")
    say "$1" "${text//$'\n'/ }"
}

# say_size KEY: the bytes of the array.
say_size() {
    local sectors
    read -r sectors <"/sys/block/${md[$1]#/dev/}/size"
    say "$1.size" $((sectors * 512))
}

# md_name KEY: give the array the next free device name.
md_name() {
    md[$1]=/dev/md$md_next
    md_next=$((md_next + 1))
}

# create KEY ARGUMENT...: mdadm --create. Waits for nothing.
create() {
    local key=$1
    shift
    md_name "$key"
    mdadm --create "${md[$key]}" --run --homehost=oracle --name="$key" "$@" </dev/null
    say_size "$key"
}

# assemble KEY ARGUMENT...: mdadm --assemble --run. A refusal is a result, not an error.
assemble() {
    local key=$1
    shift
    md_name "$key"
    if mdadm --assemble "${md[$key]}" --run "$@" >"assemble.$key.txt" 2>&1 && active "$key"; then
        say "$key.assembled" yes
        say_size "$key"
        say "$key.state" "$(state_of "$key")"
        return 0
    fi
    say "$key.assembled" no
    say_text "$key.refusal" "assemble.$key.txt"
    mdadm --stop "${md[$key]}" >/dev/null 2>&1 || true
    unset "md[$key]"
}

# assembled KEY: did it come up? For conditions.
assembled() { [ -n "${md[$1]:-}" ]; }

# state_of KEY: the words of mdadm for its state.
state_of() {
    local detail
    detail=$(mdadm --detail "${md[$1]}")
    if [[ $detail =~ $'\n'\ *State\ :\ ([^$'\n']*[^\ $'\n']) ]]; then echo "${BASH_REMATCH[1]}"; fi
}

active() {
    local state=none
    read -r state 2>/dev/null <"/sys/block/${md[$1]#/dev/}/md/array_state" || true
    case $state in none | clear | inactive) return 1 ;; esac
}

# settle KEY: wait until no resync, recovery, check or repair runs. Levels without redundancy never do.
settle() {
    local action="/sys/block/${md[$1]#/dev/}/md/sync_action" does
    while [ -e "$action" ] && { does=; read -r does <"$action" || true; [ "$does" != idle ]; }; do pause 0.05; done
}

# fill KEY FILE: write the start of FILE over the whole array.
fill() {
    dd if="$2" of="${md[$1]}" bs=1M iflag=count_bytes count="$(blockdev --getsize64 "${md[$1]}")" \
        conv=fsync oflag=direct status=none
}

# digest KEY: SHA-256 of the whole array, read from the members and not from a cache.
digest() {
    local sum
    blockdev --flushbufs "${md[$1]}"
    sum=$(sha256sum <"${md[$1]}")
    say "$1.sha256" "${sum%% *}"
}

# check KEY [repair]: let md compare all redundancy; repair it first if asked.
check() {
    local sys="/sys/block/${md[$1]#/dev/}/md"
    settle "$1"
    [ -e "$sys/sync_action" ] || return 0
    if [ "${2:-}" = repair ]; then
        echo repair >"$sys/sync_action"
        settle "$1"
    fi
    echo check >"$sys/sync_action"
    settle "$1"
    say "$1.mismatch_cnt" "$(<"$sys/mismatch_cnt")"
}

# add KEY DEVICE: a new member; wait until it is rebuilt.
add() {
    mdadm --manage "${md[$1]}" --add "$2"
    sleep 0.2
    settle "$1"
    say "$1.state" "$(state_of "$1")"
}

# stop KEY: with patience, for md keeps an array busy for a moment after the last close.
stop() {
    local try
    for try in 1 2 3 4 5 6 7 8 9; do
        if mdadm --stop "${md[$1]}" 2>/dev/null; then
            unset "md[$1]"
            return 0
        fi
        sleep 0.1
    done
    mdadm --stop "${md[$1]}"
    unset "md[$1]"
}

# examine KEY DEVICE...: what mdadm reads on each member, into examine.KEY.N.txt.
examine() {
    local key=$1 n=0
    shift
    for device in "$@"; do
        mdadm --examine "$device" >"examine.$key.$n.txt" 2>&1 || true
        n=$((n + 1))
    done
}

# stamp KEY write|check ARGUMENT...: the stamp program over the whole array.
stamp() {
    local key=$1 what=$2
    shift 2
    if [ ! -x "${STAMP:-}" ]; then
        echo "openraid-stamp is not built; run: cargo build -p openraid-oracle"
        return 1
    fi
    if "$STAMP" "$what" "${md[$key]}" "$@" >"stamp.$key.txt"; then
        say "$key.stamp" good
    else
        say_text "$key.stamp" "stamp.$key.txt"
    fi
}

# Processes by /proc alone: who is alive, who carries a run's mark, and signals to no one else.

# The fields of a stat line after the name, which may hold anything.
ck_fields() {
  [ $# -ge 20 ] || return 1
  ck_state=$1 ck_parent=$2 ck_group=$3 ck_session=$4
  shift 19
  ck_begun=$1
}

# PID: its state, parent, group, session and start; false when it is gone, or a zombie.
ck_process() {
  ck_text= ck_more= ck_state=
  [ -r "/proc/$1/stat" ] || return 1
  while IFS= read -r ck_more || [ -n "$ck_more" ]; do
    ck_text="$ck_text $ck_more" ck_more=
  done 2>/dev/null <"/proc/$1/stat"
  ck_fields ${ck_text##*) }
  case $ck_state in '' | [ZXx]) return 1 ;; esac
}

# PID START: whether that process, and no other that got its number since, is alive.
ck_is() {
  case $1 in '' | *[!0-9]*) return 1 ;; esac
  ck_process "$1" && [ "$ck_begun" = "$2" ]
}

# NAME PID START: signal that process and no other.
ck_kill() {
  ck_is "$2" "$3" && kill -s "$1" "$2" 2>/dev/null
}

# RUN: ck_found becomes the pids whose environment has its mark, whatever they call themselves.
ck_marked() {
  ck_found= ck_names=
  set +f
  if printf 'a\000' | grep -qzxF a 2>/dev/null; then
    ck_names=$(grep -lzxF -e "COCKPIT_RUN=$1" /proc/[0-9]*/environ 2>/dev/null)
  else
    ck_names=$(
      for ck_file in /proc/[0-9]*/environ; do
        [ -r "$ck_file" ] || continue
        tr '\n\000' '\001\n' 2>/dev/null <"$ck_file" | while IFS= read -r ck_text; do
          [ "$ck_text" = "COCKPIT_RUN=$1" ] && printf '%s\n' "$ck_file" && break
        done
      done 2>/dev/null
    )
  fi
  set -f
  for ck_file in $ck_names; do
    ck_file=${ck_file#/proc/}
    ck_found="$ck_found ${ck_file%%/*}"
  done
}

# LINE KEY: ck_number becomes the number that a one-line record has under a key, or empty.
ck_number_in() {
  ck_number=
  case $1 in *"\"$2\":"*) ;; *) return 1 ;; esac
  ck_number=${1#*"\"$2\":"}
  ck_number=${ck_number# }
  ck_number=${ck_number%%[!0-9]*}
  [ -n "$ck_number" ]
}

# FILE: ck_line becomes the first line of a plain file of ours, or empty; so is a record that only has its room.
ck_first_line() {
  ck_line=
  if [ -f "$1" ] && [ ! -L "$1" ] && [ -r "$1" ]; then
    IFS= read -r ck_line 2>/dev/null <"$1"
  fi
  case $ck_line in *[!\ ]*) ;; *) ck_line= ;; esac
}

# ck_uptime_cs: hundredths of a second, of a clock that nobody sets.
ck_clock() {
  read -r ck_up ck_more </proc/uptime
  ck_uptime_cs=${ck_up%.*}${ck_up#*.}
}

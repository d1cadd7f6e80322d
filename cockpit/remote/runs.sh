# Runs on a host without Python: requests on stdin, answers on stdout, one after the other. It keeps no run alive and
# nothing in mind: every fact lies in the run's folder, which has the form that supervisor.py gives it.
#
#   op ID words…          a request; an order for a start follows in lines of its own, see runs_start.sh
#   = key words…          a line of its answer
#   D LENGTH              that many bytes of a file follow
#   ! code facts          it is refused
#   . ID                  the answer is whole
ck_umask=$(umask)
umask 077
ck_had_lc_all=${LC_ALL+yes} ck_lc_all=${LC_ALL-}
LC_ALL=C
export LC_ALL
unset COCKPIT_RUN COCKPIT_DIR
ck_blanks=' 	
'
IFS=$ck_blanks
set -f
exec 2>/dev/null
ck_roots=0 ck_user=$(id -u) ck_chunk=65536

ck_one_line() {
  case $1 in
    *'
'*) printf '%s' "$1" | tr '\n' ' ' ;;
    *) printf '%s' "$1" ;;
  esac
}

# ck_session_by: what gives a job a session of its own, or a process group at least, since a script that ends with
# `kill 0` would take us and other runs with it. A shell alone can do that on a terminal only.
ck_find_session() {
  ck_session_by=$(command -v setsid) && return
  ck_session_by=
  if busybox setsid true >/dev/null 2>&1; then
    ck_session_by="$(command -v busybox) setsid"
  elif perl -MPOSIX -e 1 >/dev/null 2>&1; then
    ck_session_by="$(command -v perl) -MPOSIX -e POSIX::setsid();exec{\$ARGV[0]}@ARGV"
  elif timeout --version >/dev/null 2>&1; then
    ck_session_by="$(command -v timeout) 0"
  fi
}

# What this host has of what may be missing.
ck_look_around() {
  ck_flock=$(command -v flock) || ck_flock=
  ck_find_session
  ck_signals_by=
  env --default-signal true >/dev/null 2>&1 && ck_signals_by="$(command -v env) --default-signal"
  ck_boot=
  [ -r /proc/sys/kernel/random/boot_id ] && read -r ck_boot </proc/sys/kernel/random/boot_id
  ck_process 1
  ck_first_start=$ck_begun
}

ck_on_open() {
  ck_name_host
  ck_look_around
  ck_find_candidates
  ck_given=$1
  if ck_choose "$ck_given"; then
    printf '= root %s\n' "$(ck_one_line "$ck_made")"
  else
    printf '= no_root %s\n' "$(ck_one_line "$ck_why")"
  fi
  [ -z "$ck_given" ] || [ -z "$ck_path" ] || ck_add_root "$ck_path"
  ck_at=0
  while [ $ck_at -lt $ck_candidates ]; do
    ck_at=$((ck_at + 1))
    eval "ck_add_root \"\$ck_candidate_$ck_at\""
  done
  ck_choose_default && ck_first_line "$ck_default/roots.json" && printf '= noted %s\n' "$ck_line"
  printf '= host_id %s\n= boot_id %s\n= pid1_start %s\n' "$ck_host" "$ck_boot" "$ck_first_start"
  printf '= tools setsid=%s flock=%s\n' "${ck_session_by%% *}" "$ck_flock"
  printf '= now_s %s\n' "$(date +%s)"
}

# Folders of runs: inode, time, path.
ck_on_list() {
  ck_at=0
  while [ $ck_at -lt $ck_roots ]; do
    ck_at=$((ck_at + 1))
    eval "ck_place=\$ck_root_$ck_at/v1/\$ck_host"
    [ -d "$ck_place" ] && [ ! -L "$ck_place" ] && [ -O "$ck_place" ] || continue
    (
      CDPATH= cd -- "$ck_place" >/dev/null || exit
      set +f
      ck_names=
      for ck_word in [a-z0-9]*; do
        case $ck_word in *[!a-z0-9-]*) ;; *) ck_names="$ck_names $ck_word" ;; esac
      done
      [ -z "$ck_names" ] || stat -c '= run %i %Y %F %n' -- $ck_names
    )
  done
  printf '= now_s %s\n' "$(date +%s)"
}

# FILE: whether somebody alive holds the lock on it.
ck_is_held() {
  [ -n "$ck_flock" ] && [ -f "$1" ] && [ ! -L "$1" ] && ! "$ck_flock" -n -s "$1" true
}

# RUN: what its files say. Who lives is looked at before the records of an end: a sh writes the one and then leaves.
ck_on_facts() {
  printf '= folder %s\n' "$(ck_one_line "$ck_folder")"
  ck_first_line "$ck_folder/sup.json"
  printf '= sup.json %s\n' "$ck_line"
  ck_number_in "$ck_line" job_pid
  ck_job=$ck_number
  ck_number_in "$ck_line" job_start
  ck_supervised= ck_alive=
  ck_is_held "$ck_folder/lock" && ck_supervised=lock
  ck_is "$ck_job" "$ck_number" && ck_alive=job
  if [ -z "$ck_alive" ]; then
    ck_is_held "$ck_folder/job.lock" && ck_alive=lock
    ck_tell_marked "$1"
  fi
  printf '= alive %s\n= supervised %s\n' "$ck_alive" "$ck_supervised"
  for ck_word in exit exit.shim stop.json hb; do
    ck_first_line "$ck_folder/$ck_word"
    printf '= %s %s\n' "$ck_word" "$ck_line"
  done
  ck_number_in "$ck_line" ladder_pid
  ck_job=$ck_number
  ck_number_in "$ck_line" ladder_start
  ck_is "$ck_job" "$ck_number" && printf '= ladder 1\n'
  ck_tell_left "$ck_line"
  stat -c '= file %s %Y %i %F %n' -- "$ck_folder/log" "$ck_folder/exit.shim" "$ck_folder"
  ck_cgroup_kills
  printf '= oom %s\n= now_s %s\n' "$ck_oom" "$(date +%s)"
}

# HEARTBEAT: those that a ladder left and that still live.
ck_tell_left() {
  case $1 in *'"left":[['*) ;; *) return ;; esac
  ck_rest=${1#*'"left":[['}
  ck_rest=${ck_rest%%']]'*}
  IFS='[],'
  set -- $ck_rest
  IFS=$ck_blanks
  while [ $# -ge 2 ]; do
    [ -n "$1" ] || { shift && continue; }
    ck_is "$1" "$2" && ck_tell_process "$1"
    shift 2
  done
}
ck_tell_process() {
  printf '= process %s %s %s\n' "$1" "$ck_begun" "$(head -c 200 "/proc/$1/cmdline" | tr '\000\n' '  ')"
}

# RUN: the living processes with its mark.
ck_tell_marked() {
  ck_marked "$1"
  for ck_each in $ck_found; do
    [ "$ck_each" != $$ ] && ck_process "$ck_each" || continue
    ck_tell_process "$ck_each"
  done
}

# RUN…: how long their logs are, and which of them have a record of an end.
ck_on_sizes() {
  ck_rest="$*"
  set --
  for ck_word in $ck_rest; do
    ck_find "$ck_word" || continue
    set -- "$@" "$ck_folder/log"
    ck_first_line "$ck_folder/exit.shim"
    [ -n "$ck_line" ] || ck_first_line "$ck_folder/exit"
    [ -z "$ck_line" ] || printf '= ended %s\n' "$ck_word"
  done
  [ $# -eq 0 ] || stat -c '= file %s %Y %i %F %n' -- "$@"
}

# FILE OFFSET LIMIT: its bytes from there on. The length is promised before they are read: what a file that shrinks
# meanwhile lacks is made up by zeros, and the size that is told after them says so.
ck_on_read() {
  ck_file=$ck_folder/$1
  [ -f "$ck_file" ] && [ ! -L "$ck_file" ] || { printf '! io\n' && return; }
  ck_size=$(stat -c %s -- "$ck_file")
  ck_length=$((${ck_size:-0} - $2))
  [ $ck_length -le "$3" ] || ck_length=$3
  printf '= size %s\n' "${ck_size:-0}"
  [ $ck_length -gt 0 ] || return 0
  printf 'D %s\n' $ck_length
  {
    dd if="$ck_file" bs=$ck_chunk skip=$(($2 / ck_chunk)) count=$((ck_length / ck_chunk + 2)) |
      tail -c +$(($2 % ck_chunk + 1))
    cat /dev/zero
  } | head -c $ck_length
  printf '= size %s\n' "$(stat -c %s -- "$ck_file")"
}

# FROM LENGTH: bytes of ck_file.
ck_piece() {
  dd if="$ck_file" bs=$ck_chunk skip=$(($1 / ck_chunk)) count=$(($2 / ck_chunk + 2)) |
    tail -c +$(($1 % ck_chunk + 1)) | head -c "$2"
}

ck_tell_log_size() {
  ck_file=$ck_folder/log
  [ -f "$ck_file" ] && [ ! -L "$ck_file" ] || { printf '! io\n' && return 1; }
  printf '= size %s\n' "$(stat -c %s -- "$ck_file")"
}

# RUN FROM LENGTH first|last exact|any TEXT: where it stands in a piece of the log.
ck_on_find() {
  ck_tell_log_size || return 0
  [ "$(printf xab | grep -abo -F -e ab)" = 1:ab ] || { printf '! no_grep\n' && return; }
  ck_text=$(printf %b "$6") ck_case=
  [ "$5" = exact ] || ck_case=-i
  ck_end=tail
  [ "$4" = last ] || ck_end=head
  ck_found=$(ck_piece "$2" "$3" | grep -abo -F $ck_case -e "$ck_text" | $ck_end -n 1)
  ck_found=${ck_found%%:*}
  case $ck_found in '' | *[!0-9]*) ;; *) printf '= hit %s\n' $(($2 + ck_found)) ;; esac
}

# RUN FROM LENGTH LINES: how many newlines are in a piece of the log, or where the last one of so many ends.
ck_on_lines() {
  ck_tell_log_size || return 0
  ck_found=$(($(ck_piece "$2" "$3" | wc -l)))
  printf '= lines %s\n' $ck_found
  [ $ck_found -lt "$4" ] || printf '= hit %s\n' $(($2 + $(ck_piece "$2" "$3" | head -n "$4" | wc -c)))
}

# What a start prints, up to the word that it began: what stands between us and the job may keep the pipe for good.
ck_until_begun() {
  while IFS= read -r ck_line; do
    printf '%s\n' "$ck_line"
    [ "$ck_line" = '= began 1' ] && return
  done
}

# The order is read to its end whatever becomes of it, so that none of it is taken for a request.
ck_on_start() {
  ck_ahead=
  ck_answer=$(ck_start "$1" | ck_until_begun)
  case $ck_answer in *'= whole 1'*) ;; *)
    while IFS= read -r ck_line && [ "$ck_line" != go ]; do :; done
    ;;
  esac
  case $ck_answer in
    *'= existed 1'* | *'= began 1' | *'! '*) ;;
    *)
      case $ck_answer in *'= claimed 1'*) ck_find "$1" && ! ck_has_job && rm -rf -- "$ck_folder" ;; esac
      ck_answer="$ck_answer
! not_started"
      ;;
  esac
  printf '%s\n' "$ck_answer"
}

ck_has_job() {
  ck_first_line "$ck_folder/sup.json"
  [ -n "$ck_line" ]
}

# RUN INT_S TERM_S INT_CS TERM_CS: ask for a stop, and see that someone climbs the ladder.
ck_on_stop() {
  ck_keep_end
  ck_first_line "$ck_folder/stop.json"
  ck_number_in "$ck_line" number
  ck_asked_for=$((${ck_number:-0} + 1))
  printf '%-510s\n' "{\"number\":$ck_asked_for,\"int_s\":$2,\"term_s\":$3,\"int_cs\":$4,\"term_cs\":$5,\"wall_s\":$(date +%s)}" \
    1<>"$ck_folder/stop.json" || { printf '! io\n' && return; }
  printf '= number %s\n' $ck_asked_for
  ck_first_line "$ck_folder/hb"
  ck_number_in "$ck_line" ladder_pid
  ck_job=$ck_number
  ck_number_in "$ck_line" ladder_start
  ck_is "$ck_job" "$ck_number" && return
  ($ck_session_by /bin/sh -c "$ck_stop_program" cockpit-stop "$ck_folder" "$1" &) </dev/null >/dev/null 2>&1
}

# An end that was there before anybody asked for a stop is the job's own.
ck_keep_end() {
  ck_first_line "$ck_folder/exit"
  [ -z "$ck_line" ] || return 0
  ck_first_line "$ck_folder/exit.shim"
  ck_number_in "$ck_line" code || return 0
  ck_wall=$(stat -c %Y -- "$ck_folder/exit.shim")
  ck_code=$ck_number ck_signal=null ck_reason=exited
  if [ "$ck_code" -gt 128 ] && [ "$ck_code" -lt 160 ]; then
    ck_signal=$((ck_code - 128)) ck_code=null ck_reason=signal
  fi
  ck_first_line "$ck_folder/stop.json"
  [ -n "$ck_line" ] && return 0
  printf '%-510s\n' "{\"by\":\"job\",\"code\":$ck_code,\"signal\":$ck_signal,\"reason\":\"$ck_reason\",\"wall_s\":${ck_wall:-null}}" 1<>"$ck_folder/exit"
}

# PID START NAME
ck_on_signal() {
  case $1 in 1 | $$) printf '! bad_request\n' && return ;; esac
  if ! ck_is "$1" "$2"; then
    printf '= sent 0\n'
  elif ck_kill "$3" "$1" "$2"; then
    printf '= sent 1\n'
  else
    printf '! not_yours pid=%s\n' "$1"
  fi
}

ck_on_disk() {
  ck_expand "$1"
  ck_df "$ck_path" -k && printf '= room %s %s\n' "$ck_free" "$ck_total"
  ck_df "$ck_path" -i && printf '= inodes %s %s\n' "$ck_free" "$ck_total"
}

# RUN: what is to be done with it, if there is one.
ck_of_run() {
  if ck_find "$2"; then
    "$@"
  else
    printf '! unknown_run run=%s\n' "$2"
  fi
}
ck_read_of_run() {
  shift
  ck_on_read "$@"
}

printf 'cockpit-runs 1\n'
while read -r ck_op ck_id ck_words; do
  case $ck_op in
    open) ck_on_open "$ck_words" ;;
    root) ck_add_root "$ck_words" ;;
    ping) printf '= now_s %s\n' "$(date +%s)" ;;
    list) ck_on_list ;;
    sizes) ck_on_sizes $ck_words ;;
    facts) ck_of_run ck_on_facts $ck_words ;;
    read) ck_of_run ck_read_of_run $ck_words ;;
    find) ck_of_run ck_on_find $ck_words ;;
    lines) ck_of_run ck_on_lines $ck_words ;;
    start) ck_on_start $ck_words ;;
    stop) ck_of_run ck_on_stop $ck_words ;;
    signal) ck_on_signal $ck_words ;;
    disk) ck_on_disk "$ck_words" ;;
    *) printf '! bad_request\n' ;;
  esac
  printf '. %s\n' "$ck_id"
done

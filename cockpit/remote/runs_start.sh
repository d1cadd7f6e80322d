# The start of a run. What is asked for comes on stdin, line by line: a letter, a blank and a value; a line that
# begins with + goes on with the value before it. Secrets are among the values: they become exported variables of a
# subshell and so the job's environment, and are in no argument and no file.

# RUN, in a subshell: read the order, claim the folder, start the job. Prints the answer.
ck_start() {
  ck_run=$1 ck_key= ck_value= ck_refused= ck_root= ck_spec= ck_cwd= ck_needed=0 ck_cards= ck_noted=
  ck_script= ck_has_script= ck_first= ck_folder= ck_claimed= ck_ahead=
  shift
  while ck_read_item; do
    case $ck_key in
      R) ck_root=$ck_value ;;
      J) ck_noted=$ck_value ;;
      S) ck_spec=$ck_value ;;
      C) ck_cwd=$ck_value ;;
      N) ck_needed=$ck_value ;;
      G) ck_cards=$ck_value ;;
      T) ck_script=$ck_value ck_has_script=yes ;;
      claim) ck_claim || ck_refused=yes ;;
      *) [ -n "$ck_refused" ] || case $ck_key in
        W) [ $# -gt 0 ] || ck_expand_command
           set -- "$@" "$ck_value" ;;
        P) ck_expand "$ck_value"
           ck_first=$ck_first$ck_path: ;;
        D) ck_is_name && { ck_is_set "${ck_value%%=*}" || ck_export; } ;;
        E) ck_is_name && ck_export ;;
        go) break ;;
      esac ;;
    esac
    [ "$ck_key" = go ] && break
  done
  if [ "$ck_key" != go ]; then
    ck_give_back
    exit 1
  fi
  printf '= whole 1\n'
  [ -n "$ck_refused" ] && exit 0
  ck_begin "$@"
}

# The job, once everything about it is known.
ck_begin() {
  [ -n "$ck_has_script" ] && set -- "$@" "$ck_folder/script"
  PATH=$ck_first${PATH:-/usr/local/bin:/usr/bin:/bin}
  COCKPIT_RUN=$ck_run COCKPIT_DIR=$ck_folder
  export PATH COCKPIT_RUN COCKPIT_DIR
  ck_launch "$@"
}

# One item: ck_key and ck_value; false when the order was cut short. ck_ahead is the line that was read already.
ck_read_item() {
  [ -n "$ck_ahead" ] || IFS= read -r ck_ahead || return 1
  case $ck_ahead in
    claim | go)
      ck_key=$ck_ahead ck_value= ck_ahead=
      return 0
      ;;
  esac
  ck_key=${ck_ahead%"${ck_ahead#?}"}
  ck_value=${ck_ahead#??}
  while :; do
    IFS= read -r ck_ahead || return 1
    case $ck_ahead in
      +*) ck_value="$ck_value
${ck_ahead#+}" ;;
      *) return 0 ;;
    esac
  done
}

ck_expand_command() {
  case $ck_value in '~' | '~/'*)
    ck_expand "$ck_value"
    ck_value=$ck_path
    ;;
  esac
}

ck_is_name() {
  case ${ck_value%%=*} in '' | [0-9]* | *[!A-Za-z0-9_]*) return 1 ;; esac
}

ck_is_set() {
  case $1 in
    LC_ALL) [ -n "$ck_had_lc_all" ] ;;
    *) eval "[ -n \"\${$1+set}\" ]" ;;
  esac
}

# Ours is the C locale until the job starts, so its LC_ALL waits.
ck_export() {
  case $ck_value in
    LC_ALL=*) ck_lc_all=${ck_value#*=} ck_had_lc_all=yes ;;
    *) export "$ck_value" ;;
  esac
}

ck_refuse() {
  printf '! %s\n' "$(ck_one_line "$1")"
}

# The folder is the claim. It gets every record now, while there is room.
ck_claim() {
  if ck_find "$ck_run"; then
    printf '= existed 1\n'
    return 1
  fi
  if [ -z "$ck_session_by" ]; then
    ck_refuse no_session
    return 1
  fi
  ck_expand "$ck_cwd"
  ck_cwd=$ck_path
  if ! (CDPATH= cd -- "$ck_cwd") >/dev/null 2>&1; then
    ck_refuse "no_cwd path=$ck_cwd"
    return 1
  fi
  if ! ck_room "$ck_cwd" "$ck_needed" || ! ck_choose "$ck_root"; then
    ck_refuse "$ck_why"
    return 1
  fi
  ck_folder=$ck_made/$ck_run
  if ! mkdir -- "$ck_folder" 2>/dev/null; then
    if [ -d "$ck_folder" ]; then printf '= existed 1\n'; else ck_refuse "io path=$ck_folder"; fi
    return 1
  fi
  printf '= claimed 1\n'
  ck_claimed=yes ck_now=$(date +%s)
  if ! ck_allocate 2>/dev/null; then
    ck_give_back
    ck_refuse "io path=$ck_folder"
    return 1
  fi
  if [ -n "$ck_noted" ] && ck_choose_default; then
    printf '%s\n' "$ck_noted" >"$ck_default/roots.json.new" && mv -f -- "$ck_default/roots.json.new" "$ck_default/roots.json"
  fi 2>/dev/null
  :
}

# A claim that came to nothing, so that the same run can be started again.
ck_give_back() {
  [ -z "$ck_claimed" ] || rm -rf -- "$ck_folder"
}

ck_allocate() {
  for ck_word in exit exit.shim stop.json; do
    printf '\n%510s\n' '' >"$ck_folder/$ck_word" || return 1
  done
  printf '\n%8190s\n' '' >"$ck_folder/sup.json" || return 1
  printf '\n%2046s\n' '' >"$ck_folder/hb" || return 1
  : >"$ck_folder/lock" && : >"$ck_folder/job.lock" && : >"$ck_folder/log" || return 1
  if [ -n "$ck_has_script" ]; then
    printf '%s' "$ck_script" >"$ck_folder/script" || return 1
  fi
  printf '%s,"claimed_s":%s,"locks":null}' "$ck_spec" "$ck_now" |
    dd of="$ck_folder/spec.json.new" conv=fsync 2>/dev/null || return 1
  mv -- "$ck_folder/spec.json.new" "$ck_folder/spec.json" || return 1
  [ "$(tail -c 1 -- "$ck_folder/spec.json")" = '}' ] || return 1
  ck_lock_job
}

# The job inherits a lock, where locks stay on this kernel: whatever holds it is of this run.
ck_lock_job() {
  [ -n "$ck_flock" ] || return 0
  case $(stat -f -c %T -- "$ck_folder" 2>/dev/null) in
    nfs* | cifs | smb* | lustre | ceph | gpfs | afs | fuse* | v9fs) return 0 ;;
  esac
  exec 9<>"$ck_folder/job.lock"
  "$ck_flock" -n 9 || :
}

# The job's own words: its sh in a session of its own, a child of nobody. A shell that starts `job &` leaves SIGINT
# ignored, and none can take that back; so the job is no background job: a child of a child, which ends its parent,
# for which everybody waited.
ck_launch() {
  ck_cgroup_kills
  ck_record="{\"mode\":\"sh\",\"pid\":null,\"start\":null,\"host_id\":\"$ck_host\",\"uid\":$ck_user,\"cards\":${ck_cards:-[]},\"oom\":$ck_oom,\"boot_id\":\"$ck_boot\",\"pid1_start\":$ck_first_start,\"started_s\":$ck_now"
  if [ -n "$ck_had_lc_all" ]; then export LC_ALL="$ck_lc_all"; else unset LC_ALL; fi
  umask "$ck_umask"
  CDPATH= cd -- "$ck_cwd" >/dev/null || exit 1
  (
    (
      IFS=' ' read -r ck_more ck_more ck_more ck_parent ck_more </proc/self/stat
      [ "$ck_parent" = $$ ] || kill -s KILL "$ck_parent"
      IFS=' '
      exec $ck_session_by $ck_signals_by /bin/sh -c "$ck_shim" cockpit "$ck_record" "$@" \
        4>&1 >>"$COCKPIT_DIR/log" 3>&1 2>/dev/null </dev/null
    )
    :
  ) 2>/dev/null
}

# ck_oom: where the kernel counts processes killed for memory, and how many there were.
ck_cgroup_kills() {
  ck_oom=null ck_own= ck_own_memory=
  while IFS= read -r ck_text; do
    case $ck_text in
      0::*) ck_own=${ck_text#0::} ;;
      *:memory:* | *:memory,*:* | *,memory:*) ck_own_memory=${ck_text#*:*:} ;;
    esac
  done 2>/dev/null </proc/self/cgroup
  for ck_file in "/sys/fs/cgroup$ck_own/memory.events" /sys/fs/cgroup/memory.events \
    "/sys/fs/cgroup/memory$ck_own_memory/memory.oom_control" /sys/fs/cgroup/memory/memory.oom_control /proc/vmstat; do
    [ -r "$ck_file" ] || continue
    while read -r ck_text ck_more; do
      [ "$ck_text" = oom_kill ] || continue
      case $ck_file in *[\"\\]*) ;; *) ck_oom="[\"$ck_file\",$ck_more]" ;; esac
      return 0
    done <"$ck_file"
  done
}

# The stop ladder of one run, in a session of its own so that it ends what it began whatever becomes of the link:
# INT to the job's group, TERM to all of the run, then freeze and KILL until nothing is left. $1 RUN-DIR  $2 RUN
export LC_ALL=C
umask 077
set -f
cd -- "$1" || exit 74
ck_run=$2
ck_first_line sup.json
ck_number_in "$ck_line" job_pid
ck_job=$ck_number
ck_number_in "$ck_line" job_start
ck_job_start=$ck_number
ck_process $$
ck_own_start=$ck_begun
ck_job_group=$ck_job
ck_is "$ck_job" "$ck_job_start" && ck_job_group=$ck_group
ck_known= ck_sent= ck_step=0 ck_killing_cs=1000 ck_straggler_cs=200
ck_asked_for=1 ck_int_cs=360000000 ck_term_cs=360000000 ck_alone_cs=

# Ourselves and all above us are no part of any run.
ck_spared=" 0 1 $$ "
ck_above=$$
while ck_process "$ck_above" && [ "$ck_parent" -gt 1 ]; do
  ck_spared="$ck_spared$ck_parent "
  ck_above=$ck_parent
done

# What is asked for by now: who asks again may shorten what was allowed before.
ck_asked() {
  ck_first_line stop.json
  ck_number_in "$ck_line" number && ck_asked_for=$ck_number
  ck_number_in "$ck_line" int_cs && [ "$ck_number" -lt $ck_int_cs ] && ck_int_cs=$ck_number
  ck_number_in "$ck_line" term_cs && [ "$ck_number" -lt $ck_term_cs ] && ck_term_cs=$ck_number
}

# Every living process as pid:start:parent:group:session.
ck_table() {
  ck_all=
  set +f
  set -- /proc/[0-9]*
  set -f
  for ck_entry in "$@"; do
    ck_entry=${ck_entry#/proc/}
    if ck_process "$ck_entry"; then
      ck_all="$ck_all $ck_entry:$ck_begun:$ck_parent:$ck_group:$ck_session"
    fi
  done
}

# ck_members: everything alive of the run as pid:start:group, by session, mark and descent, and what was seen before.
ck_scan() {
  ck_table
  ck_in=" "
  ck_seeds=" "
  for ck_each in $ck_known; do
    case " $ck_all " in *" ${ck_each%:*}:"*) ck_seeds="$ck_seeds${ck_each%%:*} " ;; esac
  done
  ck_marked "$ck_run"
  ck_seeds="$ck_seeds$ck_found "
  case " $ck_all " in *" $ck_job:$ck_job_start:"*) ck_whole=$ck_job ;; *) ck_whole=none ;; esac
  ck_grown=yes
  while [ -n "$ck_grown" ]; do
    ck_grown=
    for ck_each in $ck_all; do
      ck_pid=${ck_each%%:*}
      case $ck_in$ck_spared in *" $ck_pid "*) continue ;; esac
      ck_tail=${ck_each#*:*:}
      case $ck_seeds in
        *" $ck_pid "*) ;;
        *)
          case $ck_in in
            *" ${ck_tail%%:*} "*) ;;
            *) [ "${ck_each##*:}" = "$ck_whole" ] || continue ;;
          esac
          ;;
      esac
      ck_in="$ck_in$ck_pid "
      ck_grown=yes
    done
  done
  ck_members=
  for ck_each in $ck_all; do
    case $ck_in in *" ${ck_each%%:*} "*) ;; *) continue ;; esac
    ck_pid=${ck_each%%:*}
    ck_rest=${ck_each#*:}
    ck_tail=${ck_rest#*:*:}
    ck_members="$ck_members $ck_pid:${ck_rest%%:*}:${ck_tail%%:*}"
  done
  ck_known=$ck_members
}

# The cheap look: which of those we know are alive; the thorough one when none is.
ck_look() {
  ck_left=
  for ck_each in $ck_known; do
    ck_rest=${ck_each#*:}
    ck_is "${ck_each%%:*}" "${ck_rest%%:*}" && ck_left="$ck_left $ck_each"
  done
  if [ -n "$ck_left" ]; then
    ck_members=$ck_left
  else
    ck_scan
  fi
}

# SIGNAL: to every member; INT to those of the job's own group alone. A stopped one could not hear it.
ck_send() {
  ck_reached=
  for ck_each in $ck_members; do
    [ "$1" = INT ] && [ "${ck_each##*:}" != "$ck_job_group" ] && continue
    ck_rest=${ck_each#*:}
    ck_kill "$1" "${ck_each%%:*}" "${ck_rest%%:*}" || continue
    ck_reached=yes
    [ "$ck_state" = T ] && kill -s CONT "${ck_each%%:*}" 2>/dev/null
  done
  [ -n "$ck_reached" ]
}

# Freeze, look again, kill: nothing forks away in between. The job's sh goes last, since it notes how the job ended.
ck_kill_all() {
  ck_send_but_shim STOP
  ck_scan
  ck_send_but_shim KILL
}
ck_send_but_shim() {
  ck_others=
  for ck_each in $ck_members; do
    [ "${ck_each%%:*}" = "$ck_job" ] && continue
    ck_others=yes
    ck_rest=${ck_each#*:}
    ck_kill "$1" "${ck_each%%:*}" "${ck_rest%%:*}"
  done
  if [ -z "$ck_others" ] && [ "$1" = KILL ] && [ $((ck_uptime_cs - ck_since_cs)) -gt 100 ]; then
    ck_kill KILL "$ck_job" "$ck_job_start"
  fi
}

# ck_pairs: the members as a record has them, as many as fit.
ck_pair() {
  ck_pairs=
  for ck_each in $ck_members; do
    ck_rest=${ck_each#*:}
    [ ${#ck_pairs} -lt 220 ] && ck_pairs="$ck_pairs${ck_pairs:+,}[${ck_each%%:*},${ck_rest%%:*}]"
  done
}

# STOPS: say in the heartbeat's place how far the ladder is.
ck_tell() {
  ck_pair
  printf '%-2046s\n' "{\"phase\":\"stopping\",\"sent\":[$ck_sent],\"stops\":$1,\"left\":[$ck_pairs],\"ladder_pid\":$$,\"ladder_start\":$ck_own_start,\"wall_s\":$(date +%s)}" 1<>hb
}

ck_job_is_over() {
  ck_first_line exit.shim
  [ -n "$ck_line" ] || ! ck_is "$ck_job" "$ck_job_start"
}

# When the present step is over: its grace, or shortly after the job itself ended.
ck_is_due() {
  ck_clock
  case $ck_step in
    0) return 0 ;;
    1) ck_grace_cs=$ck_int_cs ;;
    2) ck_grace_cs=$ck_term_cs ;;
    *) ck_grace_cs=$ck_killing_cs ;;
  esac
  [ $((ck_uptime_cs - ck_since_cs)) -ge "$ck_grace_cs" ] && return 0
  [ $ck_step -ge 3 ] && return 1
  ck_job_is_over || return 1
  [ -n "$ck_alone_cs" ] || ck_alone_cs=$ck_uptime_cs
  ck_from_cs=$ck_alone_cs
  [ "$ck_since_cs" -gt "$ck_from_cs" ] && ck_from_cs=$ck_since_cs
  [ $((ck_uptime_cs - ck_from_cs)) -ge $ck_straggler_cs ]
}

ck_next() {
  ck_step=$((ck_step + 1)) ck_since_cs=$ck_uptime_cs
  case $ck_step in
    1) ck_name=INT && { ck_send INT || { ck_next && return; }; } ;;
    2) ck_name=TERM && ck_send TERM ;;
    3) ck_name=KILL && ck_kill_all ;;
  esac
  ck_sent="$ck_sent${ck_sent:+,}\"$ck_name\""
  ck_tell $((ck_asked_for - 1))
}

# The end as it is to be read later, when there is one to tell.
ck_record_end() {
  ck_pair
  ck_first_line exit
  [ -z "$ck_line" ] || return 0
  ck_code=null ck_signal=null ck_reason=signal
  ck_first_line exit.shim
  if ck_number_in "$ck_line" code; then
    if [ "$ck_number" -gt 128 ] && [ "$ck_number" -lt 160 ]; then
      ck_signal=$((ck_number - 128))
    else
      ck_code=$ck_number ck_reason=exited
    fi
  elif ck_is "$ck_job" "$ck_job_start"; then
    return 0
  else
    case $ck_sent in *KILL*) ck_signal=9 ;; *) return 0 ;; esac
  fi
  printf '%-510s\n' "{\"by\":\"cockpit\",\"code\":$ck_code,\"signal\":$ck_signal,\"reason\":\"$ck_reason\",\"sent\":[$ck_sent],\"left\":[$ck_pairs],\"wall_s\":$(date +%s)}" 1<>exit
}

ck_asked
ck_scan
ck_tell $((ck_asked_for - 1))
while [ -n "$ck_members" ]; do
  ck_asked
  if ck_is_due; then
    ck_scan
    [ -n "$ck_members" ] || break
    [ $ck_step -ge 3 ] && break
    ck_next
  elif [ $ck_step -eq 3 ]; then
    ck_kill_all
  fi
  sleep 0.2 2>/dev/null || sleep 1
  ck_look
done
ck_record_end
ck_tell "$ck_asked_for"

# The sh between a host and its job: $1 is the run's record so far, the rest is the job. It stays to write the job's
# exit code in place, into blocks that were taken at the start. A job does not inherit its handlers, and `exec` takes
# no builtin for a program. Its own words ("Terminated") go nowhere, the job's to the log (3); 4 hears that it began.
trap : HUP INT QUIT TERM USR1 USR2
cockpit_record=$1
shift
cockpit_start() {
  shift 19
  cockpit_begun=$1
}
set -f
IFS= read -r cockpit_stat <"/proc/$$/stat"
IFS=' '
cockpit_start ${cockpit_stat##*) }
printf '%s,"job_pid":%s,"job_start":%s}\n' "$cockpit_record" $$ "$cockpit_begun" 1<>"$COCKPIT_DIR/sup.json" || exit 74
printf '= began 1\n' >&4
exec 4>&-
(exec "$@" 2>&3 3>&-)
cockpit_code=$?
printf '{"code":%d}' "$cockpit_code" 1<>"$COCKPIT_DIR/exit.shim"
exit "$cockpit_code"

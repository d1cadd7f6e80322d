# A host without Python: nvidia-smi's own stream and /proc, in lines that cockpit.domain.smi reads.
# One nvidia-smi streams; a second one asks for processes, and only while the first one answers.
export LC_ALL=C
exec 3<&0 </dev/null
full=index,count,uuid,name,pci.bus_id,driver_version,utilization.gpu,utilization.memory,memory.total,memory.used,memory.reserved,temperature.gpu,power.draw,enforced.power.limit,fan.speed,clocks.sm,clocks.max.sm,clocks.mem,clocks_throttle_reasons.active,ecc.errors.corrected.volatile.total,ecc.errors.uncorrected.volatile.total,pcie.link.gen.current,pcie.link.width.current,persistence_mode,mig.mode.current
basic=index,count,uuid,name,pci.bus_id,driver_version,utilization.gpu,utilization.memory,memory.total,memory.used,temperature.gpu,power.draw,fan.speed,clocks.sm
interval=@interval@
milliseconds=@milliseconds@
smi=
for place in "$(command -v nvidia-smi 2>/dev/null)" /usr/bin/nvidia-smi /usr/local/nvidia/bin/nvidia-smi /usr/lib/wsl/lib/nvidia-smi /usr/local/bin/nvidia-smi /opt/bin/nvidia-smi; do
  [ -n "$place" ] && [ -x "$place" ] && smi=$place && break
done
line_buffered=
command -v stdbuf >/dev/null 2>&1 && line_buffered='stdbuf -oL'

first_line() {
  [ -r "$2" ] && IFS= read -r line <"$2" && printf '%s %s\n' "$1" "$line"
}

hello() {
  printf 'H begin %s\n' "${smi:+nvidia-smi}"
  printf 'H interval %s\nH hostname %s\nH kernel %s\nH uid %s\nH user %s\nH now %s\n' \
    "$interval" "$(uname -n)" "$(uname -r)" "$(id -u)" "$(id -un 2>/dev/null)" "$(date +%s)"
  first_line 'H uptime' /proc/uptime
  first_line 'H boot_id' /proc/sys/kernel/random/boot_id
  first_line 'H first' /proc/1/stat
  while IFS= read -r line; do
    case $line in PRETTY_NAME=*) printf 'H os %s\n' "${line#*=}" ;; esac
  done 2>/dev/null </etc/os-release
  [ -e /.dockerenv ] && printf 'H container 1\n'
  printf 'H end\n'
}

tick() {
  first_line U /proc/uptime
  first_line S /proc/stat
  first_line L /proc/loadavg
  while IFS= read -r line; do
    case $line in
      MemTotal:* | MemFree:* | MemAvailable:* | SwapTotal:*) printf 'M %s\n' "$line" ;;
      SwapFree:*) printf 'M %s\n' "$line" && break ;;
    esac
  done </proc/meminfo
  while IFS= read -r line; do
    case $line in *:*) printf 'N %s\n' "$line" ;; esac
  done </proc/net/dev
  printf 'T\n'
}

disks() {
  for place in / "$HOME" /workspace /root/autodl-tmp /data /mnt /ephemeral; do
    [ -d "$place" ] && df -Pk "$place" 2>/dev/null
  done | while IFS= read -r line; do printf 'D %s\n' "$line"; done
  printf 'D end\n'
}

processes() {
  "$smi" --query-compute-apps=gpu_uuid,pid,used_memory,process_name --format=csv,noheader,nounits \
    2>/dev/null </dev/null | while IFS= read -r row; do
    pid=${row#*, }
    pid=${pid%%,*}
    here=0
    case $pid in *[!0-9]* | '') ;; *) [ -d "/proc/$pid" ] && here=1 ;; esac
    printf 'A %s %s\n' "$here" "$row"
  done
  printf 'A end\n'
}

rows() {
  next=0
  while IFS= read -r row; do
    case $row in
      'exit code '*) printf 'X %s\n' "${row#exit code }" ;;
      *) printf 'G %s\n' "$row" ;;
    esac
    read -r now _ </proc/uptime
    now=${now%%.*}
    case $row in *', GPU-'*)
      if [ "$now" -ge "$next" ]; then
        processes
        next=$((now + 30))
      fi ;;
    esac
  done
}

stream() {
  fields=$full
  pause=5
  while :; do
    {
      $line_buffered "$smi" --query-gpu=$fields --format=csv,noheader,nounits -lms "$milliseconds" 2>&1 </dev/null
      code=$?
      printf 'exit code %s\n' "$code"
      exit $code
    } | rows
    [ "$fields" = "$full" ] && fields=$basic && continue
    fields=$full
    sleep $pause
    [ $pause -lt 60 ] && pause=$((pause * 2))
  done
}

hello
mine=$$
(
  while read -r word <&3; do [ "$word" = quit ] && break; done
  kill -TERM "$mine"
) >/dev/null 2>&1 &
watching=$!
streaming=
if [ -n "$smi" ]; then
  stream &
  streaming=$!
fi
finish() {
  trap - TERM HUP INT PIPE
  kill $watching $streaming 2>/dev/null
  exit 0
}
trap finish TERM HUP INT PIPE
count=0
while tick; do
  [ $((count % 30)) -eq 0 ] && disks &
  count=$((count + 1))
  sleep "$interval" &
  wait $! || :
done
finish

# Which host this is, and where its runs are kept: as supervisor_host.py and supervisor_store.py have it, so that a
# Python that comes later finds the same folders.

# ck_host: the platform's own name for the instance if it has one, else the host's, and a digest.
ck_name_host() {
  ck_name=$(
    [ -r /proc/1/environ ] && tr '\n\000' '\001\n' 2>/dev/null </proc/1/environ | while IFS= read -r ck_text; do
      case $ck_text in
        RUNPOD_POD_ID=?*) printf '1%s\n' "${ck_text#*=}" ;;
        VAST_CONTAINERLABEL=?*) printf '2%s\n' "${ck_text#*=}" ;;
        CONTAINER_ID=?*) printf '3%s\n' "${ck_text#*=}" ;;
      esac
    done | sort | head -n 1
  )
  ck_name=${ck_name#?}
  [ -n "$ck_name" ] || ck_name=$(uname -n)
  ck_machine=
  [ -r /etc/machine-id ] && read -r ck_machine </etc/machine-id
  ck_digest=$(printf '%s\000%s' "$ck_machine" "$ck_name" | sha256sum | cut -c 1-10)
  ck_slug=$(printf '%s' "$ck_name" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-')
  ck_slug=${ck_slug#-}
  ck_slug=$(printf '%s' "${ck_slug%-}" | cut -c 1-40)
  ck_host=${ck_slug:-host}-$ck_digest
}

# PATH: ck_path becomes it with ~ expanded, and absolute.
ck_expand() {
  case $1 in
    '~') ck_path=${HOME:-/} ;;
    '~/'*) ck_path=${HOME:-}/${1#'~/'} ;;
    /*) ck_path=$1 ;;
    *) ck_path=$PWD/$1 ;;
  esac
}

# PATH -k|-i: ck_free and ck_total where it is or would be, in KiB or inodes; false when df does not say.
ck_df() {
  ck_free= ck_total= ck_used= ck_place=$1
  while [ ! -e "$ck_place" ] && [ -n "$ck_place" ]; do ck_place=${ck_place%/*}; done
  ck_last=$(df -P "$2" -- "${ck_place:-/}" 2>/dev/null | tail -n 1)
  for ck_word in $ck_last; do
    case $ck_word in
      [0-9]*% | -) [ -n "$ck_total" ] && return 0 ;;
    esac
    ck_total=$ck_used ck_used=$ck_free ck_free=$ck_word
    case $ck_total in *[!0-9]*) ck_total= ;; esac
  done
  return 1
}

# PATH MIB: whether there is room; else ck_why is a code and facts.
ck_room() {
  if ck_df "$1" -k && [ $((ck_free / 1024)) -lt "$2" ]; then
    ck_why="disk_full free_mib=$((ck_free / 1024)) needed_mib=$2 path=$1"
    return 1
  fi
  if ck_df "$1" -i && [ "$ck_total" -gt 0 ] && [ $((ck_free * 100)) -lt "$ck_total" ]; then
    ck_why="no_inodes path=$1"
    return 1
  fi
}

# PATH: make a folder that is ours alone, or find that it is.
ck_own_folder() {
  mkdir -- "$1" 2>/dev/null
  if [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] && [ "$(stat -c %a -- "$1")" = 700 ]; then
    return 0
  fi
  if [ -d "$1" ]; then ck_why="unsafe_folder path=$1"; else ck_why="run_root path=$1"; fi
  return 1
}

# ROOT: make this host's folder in it; ck_made becomes its path. Else ck_why says why not.
ck_make() {
  mkdir -p -- "$1" 2>/dev/null
  ck_why="run_root path=$1"
  [ -d "$1" ] && [ ! -L "$1" ] || return 1
  ck_mode=$(stat -c '%u %a' -- "$1") || return 1
  ck_owner=${ck_mode% *} ck_mode=${ck_mode#* }
  ck_why="unsafe_folder path=$1"
  [ "$ck_owner" = 0 ] || [ -O "$1" ] || return 1
  case $ck_mode in
    [1357]???) ;;
    *[2367] | *[2367]?) return 1 ;;
  esac
  ck_made=$1
  for ck_word in v1 "$ck_host"; do
    ck_made=$ck_made/$ck_word
    ck_own_folder "$ck_made" || return 1
  done
}

# ck_candidate_1 and on: what the platform keeps over a stop, then the user's own state, then what all share.
ck_find_candidates() {
  ck_candidates=0
  for ck_word in /root/autodl-tmp /workspace /home/featurize/work; do
    [ -d "$ck_word" ] && [ -w "$ck_word" ] && [ -x "$ck_word" ] && ck_candidate "$ck_word/.cockpit"
  done
  case ${XDG_STATE_HOME:-} in /*) ck_candidate "$XDG_STATE_HOME/cockpit" ;; esac
  case ${HOME:-} in /*) ck_candidate "$HOME/.local/state/cockpit" ;; esac
  ck_user=$(id -u)
  ck_candidate "/var/tmp/cockpit-$ck_user"
  ck_candidate "/tmp/cockpit-$ck_user"
}
ck_candidate() {
  case $1 in *'
'*) return ;; esac
  ck_candidates=$((ck_candidates + 1))
  eval "ck_candidate_$ck_candidates=\$1"
}

# ck_default: this host's folder in the first root that will do; else ck_why.
ck_choose_default() {
  ck_default= ck_number=0
  while [ $ck_number -lt $ck_candidates ]; do
    ck_number=$((ck_number + 1))
    eval "ck_text=\$ck_candidate_$ck_number"
    if ck_make "$ck_text" && ck_room "$ck_made" 256; then
      ck_default=$ck_made
      return 0
    fi
  done
  return 1
}

# GIVEN: ck_made becomes this host's folder in the root that was asked for, which must do; none: the default.
ck_choose() {
  if [ -z "$1" ]; then
    ck_choose_default || return 1
    ck_made=$ck_default
    return 0
  fi
  ck_expand "$1"
  mkdir -p -- "$ck_path" 2>/dev/null
  ck_path=$(CDPATH= cd -- "$ck_path" 2>/dev/null && pwd -P && printf .) || { ck_why="run_root path=$1" && return 1; }
  ck_path=${ck_path%?.}
  ck_make "$ck_path" && ck_room "$ck_made" 16
}

# ROOT: one more that may hold runs.
ck_add_root() {
  ck_roots=$((ck_roots + 1))
  eval "ck_root_$ck_roots=\$1"
}

# RUN: ck_folder becomes its folder, in whichever root.
ck_find() {
  ck_number=0
  while [ $ck_number -lt $ck_roots ]; do
    ck_number=$((ck_number + 1))
    eval "ck_folder=\$ck_root_$ck_number/v1/\$ck_host/\$1"
    [ -d "$ck_folder" ] && [ ! -L "$ck_folder" ] && [ -O "$ck_folder" ] && return 0
  done
  return 1
}
